// SPDX-License-Identifier: MIT OR Apache-2.0
//! Deterministic randomness of a task: which page comes next, and bytes that no layer below can compress or recognise.
//! Guests and the simulator draw from it alike, so that a scenario's seed means the same to both. The generator is
//! splitmix64 (Steele, Lea, Flood 2014), a counter with a good mixer; 8 bytes a step.

use std::collections::BTreeSet;

/// So many numbers are searched one by one.
const FEW: u64 = 32;

/// A source of numbers that is the same for the same seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Numbers from the start, for a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, every one equally likely but for 1 in 2^64; 0 where there is none.
    pub fn below(&mut self, end: u64) -> u64 {
        let wide = u128::from(self.number()) * u128::from(end);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// Fills a buffer.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            let bytes = self.number().to_le_bytes();
            chunk.copy_from_slice(bytes.get(..chunk.len()).unwrap_or(&[]));
        }
    }

    /// So many distinct numbers below `end`, at random (Floyd's method), in order; all of them where there are fewer.
    pub fn distinct(&mut self, count: u64, end: u64) -> Vec<u64> {
        let (mut chosen, mut set) = (Vec::new(), BTreeSet::new());
        for last in end.saturating_sub(count)..end {
            let candidate = self.below(last + 1);
            let is_taken = if count > FEW { set.contains(&candidate) } else { chosen.contains(&candidate) };
            let number = if is_taken { last } else { candidate };
            chosen.push(number);
            if count > FEW {
                set.insert(number);
            }
        }
        chosen.sort_unstable();
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_bytes_and_neighbours_differ() {
        let bytes = |seed| {
            let mut buffer = [0; 29];
            Random::new(seed).fill(&mut buffer);
            buffer
        };
        assert_eq!(bytes(7), bytes(7));
        assert_ne!(bytes(7), bytes(8));
        assert!(bytes(7).iter().filter(|&&byte| byte == 0).count() < 4);
    }

    #[test]
    fn a_burst_touches_exactly_as_many_distinct_pages_as_asked() {
        let check = |count, end, expect| {
            let chosen = Random::new(1).distinct(count, end);
            assert_eq!(chosen.len(), expect);
            assert!(chosen.is_sorted_by(|one, next| one < next));
            assert!(chosen.iter().all(|&page| page < end));
        };
        check(12, 1024, 12);
        check(40, 41, 40);
        check(13, 13, 13);
        check(20, 13, 13);
        check(0, 13, 0);
    }

    #[test]
    fn every_page_has_its_turn() {
        let mut random = Random::new(3);
        let mut seen = BTreeSet::new();
        for _ in 0..2000 {
            seen.extend(random.distinct(3, 101));
        }
        assert_eq!(seen.len(), 101);
    }
}
