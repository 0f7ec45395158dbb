// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers by chance that are the same in every run.

/// xorshift64*, begun with a seed that is not 0.
#[derive(Debug)]
pub struct Dice(pub u64);

impl Dice {
    /// The next number below `sides`, which is not 0.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % sides
    }

    /// The next number below two to a power of `bits` at most. Magnitudes differ: as many are below 2^8 as between 2^8 and 2^16.
    pub fn amount(&mut self, bits: u64) -> u64 {
        let bits = 1 + self.roll(bits);
        self.roll(1 << bits)
    }
}
