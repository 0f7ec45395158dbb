// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quantiles of the normal and of Student's distribution, by the approximations of Abramowitz and Stegun (26.2.23,
//! 26.7.5). Their error is below 0.001 for the normal one.

/// Quantile of the normal distribution, for a share above one half.
pub(super) fn normal(share: f64) -> f64 {
    let t = (-2.0 * (1.0 - share).ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    t - above / below
}

/// Quantile of Student's distribution from that of the normal one.
pub(super) fn student(normal: f64, freedom: f64) -> f64 {
    let (z, v) = (normal, freedom.max(2.0));
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    z + first / v + second / (v * v)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (share, expect) in [(0.975, 1.95996), (0.995, 2.57583), (0.9995, 3.29053)] {
            assert!((normal(share) - expect).abs() < 0.001, "{share}: {}", normal(share));
        }
        assert!((student(normal(0.975), 10.0) - 2.228).abs() < 0.01);
        assert!((student(normal(0.995), 20.0) - 2.845).abs() < 0.01);
    }
}
