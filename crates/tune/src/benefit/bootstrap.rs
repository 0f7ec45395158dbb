// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stationary block bootstrap (Politis and Romano, 1994): blocks of random length, wrapped around, keep what follows
//! each other together. The generator has a fixed seed, so that one pair of recordings has one answer.

/// Mean length of a block, as a part of the series. It must be longer than what hangs together: with eight blocks, a
/// recording of ten minutes has blocks of 75 s.
const BLOCKS: usize = 8;
/// Degrees of freedom of an error from eight blocks on each of two sides.
const FREEDOM: f64 = 2.0 * (BLOCKS as f64 - 1.0);

/// Samples drawn.
const DRAWS: usize = 400;

/// Correlation of neighbours, the higher one of two series: it says how long a burst lasts. Short series show less of it than
/// there is, which is added (Kendall, 1954).
pub(super) fn memory(series: [&[f64]; 2]) -> f64 {
    let of = |series: &[f64]| {
        let count = series.len() as f64;
        let mean = series.iter().sum::<f64>() / count;
        let spread: f64 = series.iter().map(|value| (value - mean).powi(2)).sum();
        let together: f64 = series.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
        let found = if spread > 0.0 { together / spread } else { 0.0 };
        found + (1.0 + 4.0 * found.max(0.0)) / count
    };
    series.into_iter().map(of).fold(0.0, f64::max).min(0.95)
}

/// Degrees of freedom of an error of two series of this length, whose neighbours are so correlated.
pub(super) fn freedom(count: f64, memory: f64) -> f64 {
    let independent = count * (1.0 - memory) / (1.0 + memory);
    (2.0 * (independent - 1.0)).clamp(3.0, FREEDOM)
}

/// Standard error of an estimate of two series whose neighbours have this correlation. Draws without an estimate are
/// left out.
pub(super) fn standard_error<T: Copy>(
    before: &[T],
    after: &[T],
    memory: f64,
    estimate: impl Fn(&[T], &[T]) -> Option<f64>,
) -> f64 {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let (mut one, mut other) = (Vec::with_capacity(before.len()), Vec::with_capacity(after.len()));
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for _ in 0..DRAWS {
        draw(&mut random, before, &mut one);
        draw(&mut random, after, &mut other);
        if let Some(value) = estimate(&one, &other) {
            count += 1.0;
            sum += value;
            squares += value * value;
        }
    }
    if count < DRAWS as f64 / 2.0 {
        return f64::INFINITY;
    }
    // Blocks that are wrapped around hide a part of the variance.
    let hidden = BLOCKS as f64 / (BLOCKS as f64 - 1.0);
    // What hangs together beyond the end of a block, the draws do not have.
    let block = (before.len().min(after.len()) as f64 / BLOCKS as f64).max(2.0);
    let inflation = |correlation: f64| (1.0 + correlation) / (1.0 - correlation);
    let beyond = inflation(memory) / inflation(memory * (1.0 - 1.0 / block));
    ((squares - sum * sum / count) / (count - 1.0) * hidden * beyond).max(0.0).sqrt()
}

fn draw<T: Copy>(random: &mut Random, from: &[T], to: &mut Vec<T>) {
    let mean = (from.len() as f64 / BLOCKS as f64).max(2.0);
    to.clear();
    let mut at = 0;
    while to.len() < from.len() {
        if to.is_empty() || random.share() * mean < 1.0 {
            at = random.below(from.len());
        }
        to.extend(from.get(at % from.len()).copied());
        at += 1;
    }
}

/// xorshift64*.
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// From 0 to 1, 1 left out.
    pub(super) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, end: usize) -> usize {
        ((self.share() * end as f64) as usize).min(end.saturating_sub(1))
    }
}
