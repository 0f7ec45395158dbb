// SPDX-License-Identifier: MIT OR Apache-2.0
//! A counter whose CPUs hold changes back until they reach a batch: readers see only the folded changes. Two CPUs model
//! all CPUs of a machine that has more than one. Mirrors lib/percpu_counter.c.

/// One of the two modelled CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cpu {
    /// The only CPU of a machine with one CPU.
    #[default]
    One,
    /// The second modelled CPU.
    Other,
}

impl Cpu {
    /// Returns the CPU after it on a machine with `cpus` CPUs.
    pub const fn next(self, cpus: u64) -> Cpu {
        match self {
            Cpu::One if cpus > 1 => Cpu::Other,
            _ => Cpu::One,
        }
    }
}

/// A per-CPU counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PercpuCounter {
    folded: i64,
    held: [i64; 2],
}

impl PercpuCounter {
    /// Makes a counter with a folded value and nothing held back.
    pub const fn at(value: i64) -> PercpuCounter {
        PercpuCounter { folded: value, held: [0; 2] }
    }

    /// Adds on a CPU. Folds the held changes of that CPU once they reach `batch`.
    #[inline]
    pub fn add(&mut self, amount: i64, cpu: Cpu, batch: u64) {
        let held = &mut self.held[cpu as usize];
        *held = held.saturating_add(amount);
        if held.unsigned_abs() >= batch {
            self.folded = self.folded.saturating_add(*held);
            *held = 0;
        }
    }

    /// What a reader sees, which is never below 0.
    #[inline]
    pub fn read(self) -> u64 {
        u64::try_from(self.folded).unwrap_or(0)
    }

    /// What it is.
    pub fn sum(self) -> u64 {
        let [one, other] = self.held;
        u64::try_from(self.folded.saturating_add(one).saturating_add(other)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_see_whole_batches() {
        let mut counter = PercpuCounter::at(1);
        let mut check = |amount, read, sum| {
            counter.add(amount, Cpu::One, 16);
            assert_eq!((counter.read(), counter.sum()), (read, sum));
        };
        check(15, 1, 16);
        check(1, 17, 17);
        check(-10, 17, 7);
        check(-6, 1, 1);
        check(512, 513, 513);
    }

    #[test]
    fn two_cpus_hold_back_twice_as_much() {
        let mut counter = PercpuCounter::at(0);
        let mut cpu = Cpu::default();
        let mut check = |times, read, sum| {
            for _ in 0..times {
                cpu = cpu.next(8);
                counter.add(1, cpu, 16);
            }
            assert_eq!((counter.read(), counter.sum()), (read, sum));
        };
        check(30, 0, 30);
        check(1, 16, 31);
        check(1, 32, 32);
    }
}
