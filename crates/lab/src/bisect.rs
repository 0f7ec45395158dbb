// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the step at which a figure jumps, in an ordered list of kernels: measures both ends first, then
//! bisects. Pure: the caller measures. The confidence in a step is the distance of the two sides in standard
//! deviations of repeats.

use std::collections::BTreeMap;

/// Where a figure jumps.
#[derive(Clone, Debug, PartialEq)]
pub struct Jump {
    /// Index of the last kernel that is like the oldest.
    pub before: usize,
    /// Index of the first kernel that is like the newest: the next one.
    pub after: usize,
    /// All measurements, by index.
    pub measured: BTreeMap<usize, Vec<f64>>,
    /// Distance of the two sides in standard deviations of repeats; `None` without repeats.
    pub separation: Option<f64>,
}

/// Result of a bisection.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The figure jumps.
    Jump(Jump),
    /// The ends do not differ by more than repeats do, or by more than a tenth.
    NoJump(BTreeMap<usize, Vec<f64>>),
}

/// Standard deviations by which the ends have to differ.
const DIFFERENT: f64 = 3.0;
/// Fraction by which the ends have to differ in any case.
const PART: f64 = 0.1;

/// Searches the jump among `count` kernels, oldest first. `measure` returns the figure of one run of the kernel at
/// an index. Each kernel is measured `repeat` times.
pub fn bisect<E>(
    count: usize,
    repeat: u32,
    mut measure: impl FnMut(usize, u32) -> Result<f64, E>,
) -> Result<Answer, E> {
    let mut measured = BTreeMap::new();
    let mut look = |measured: &mut BTreeMap<usize, Vec<f64>>, place: usize| -> Result<f64, E> {
        let values = (0..repeat.max(1)).map(|turn| measure(place, turn)).collect::<Result<Vec<_>, E>>()?;
        let of = mean(&values);
        measured.insert(place, values);
        Ok(of)
    };
    let Some(last) = count.checked_sub(1).filter(|last| *last > 0) else {
        if count == 1 {
            look(&mut measured, 0)?;
        }
        return Ok(Answer::NoJump(measured));
    };
    let (old, new) = (look(&mut measured, 0)?, look(&mut measured, last)?);
    if !is_different(old, new, noise(&measured)) {
        return Ok(Answer::NoJump(measured));
    }
    let (mut before, mut after) = (0, last);
    while after - before > 1 {
        let middle = usize::midpoint(before, after);
        if is_like(look(&mut measured, middle)?, old, new) {
            before = middle;
        } else {
            after = middle;
        }
    }
    let at = |place: usize| measured.get(&place).map_or(0.0, |values| mean(values));
    let apart = (at(before) - at(after)).abs();
    let separation = noise(&measured).map(|noise| if noise > 0.0 { apart / noise } else { f64::INFINITY });
    Ok(Answer::Jump(Jump { before, after, separation, measured }))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns the standard deviation of repeats over all measurements; `None` without repeats.
fn noise(measured: &BTreeMap<usize, Vec<f64>>) -> Option<f64> {
    let squares: f64 =
        measured.values().map(|values| values.iter().map(|value| (value - mean(values)).powi(2)).sum::<f64>()).sum();
    let free: usize = measured.values().map(|values| values.len().saturating_sub(1)).sum();
    (free > 0).then(|| (squares / free as f64).sqrt())
}

fn is_different(old: f64, new: f64, noise: Option<f64>) -> bool {
    let apart = (old - new).abs();
    apart > PART * old.abs().max(new.abs()) && noise.is_none_or(|noise| apart > DIFFERENT * noise)
}

/// Whether a value is nearer to the old end: by factors where that makes sense, since figures of an incident
/// and its absence differ by factors.
fn is_like(value: f64, old: f64, new: f64) -> bool {
    let scale = |value: f64| if old > 0.0 && new > 0.0 { value.max(f64::MIN_POSITIVE).ln() } else { value };
    (scale(value) - scale(old)).abs() <= (scale(value) - scale(new)).abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// Bisects figures of kernels in order; answers with the step and how many runs it took.
    fn check(figures: &[f64], repeat: u32, expect: Option<usize>) -> usize {
        let mut runs = 0;
        let measured: Result<Answer, Infallible> = bisect(figures.len(), repeat, |place, turn| {
            runs += 1;
            Ok(figures[place] * (1.0 + 0.01 * f64::from(turn)))
        });
        let Ok(answer) = measured;
        let step = match &answer {
            Answer::Jump(jump) => {
                assert_eq!(jump.after, jump.before + 1);
                Some(jump.after)
            }
            Answer::NoJump(_) => None,
        };
        assert_eq!(step, expect, "{figures:?}: {answer:?}");
        runs
    }

    #[test]
    fn the_step_is_found_in_as_many_runs_as_halving_takes() {
        assert_eq!(check(&[2.2, 2.2, 2.2, 60.0, 43.0, 60.0], 1, Some(3)), 4);
        assert_eq!(check(&[10.6, 0.1], 3, Some(1)), 6);
        check(&[0.0, 0.0, 12.0], 1, Some(2));
        check(&[0.02, 9.9, 9.9, 9.9], 2, Some(1));
    }

    #[test]
    fn ends_that_are_alike_have_no_step_between_them() {
        assert_eq!(check(&[10.0, 80.0, 10.0], 1, None), 2);
        check(&[10.0, 10.5], 3, None);
        check(&[10.0], 1, None);
        check(&[], 1, None);
    }

    #[test]
    fn a_difference_within_the_noise_of_repeats_is_none() {
        let values = [[10.0, 30.0, 20.0], [40.0, 20.0, 33.0]];
        let answer: Result<Answer, Infallible> = bisect(2, 3, |place, turn| Ok(values[place][turn as usize]));
        assert!(matches!(answer, Ok(Answer::NoJump(_))));
    }

    #[test]
    fn a_step_says_how_far_the_sides_are_apart() {
        let values = [[10.0, 11.0, 9.0], [100.0, 101.0, 99.0]];
        let answer: Result<Answer, Infallible> = bisect(2, 3, |place, turn| Ok(values[place][turn as usize]));
        let Ok(Answer::Jump(jump)) = answer else { panic!("a jump") };
        assert_eq!(jump.separation, Some(90.0));
    }
}
