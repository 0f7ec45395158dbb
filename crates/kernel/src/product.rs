// SPDX-License-Identifier: MIT OR Apache-2.0
//! Products of two page counts divided by a third, without wrapping. The kernel multiplies in 64 bits,
//! which is enough for thresholds below 2^32 pages; only numbers that no machine has would wrap there,
//! and those deserve a saturated answer that stays monotone rather than an arbitrary one.

/// `a * b div c`; 0 when `c` is 0, `u64::MAX` when the result does not fit.
#[inline]
pub(super) fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product.checked_div(c).unwrap_or(0),
        None => wide_mul_div(a, b, c),
    }
}

#[cold]
fn wide_mul_div(a: u64, b: u64, c: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product.checked_div(u128::from(c)).map_or(0, |quotient| u64::try_from(quotient).unwrap_or(u64::MAX))
}

/// `a * b` divided by a power of two; `u64::MAX` when the result does not fit.
#[inline]
pub(super) fn mul_shift(a: u64, b: u64, shift: u32) -> u64 {
    u64::try_from((u128::from(a) * u128::from(b)) >> shift).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn products_agree_with_wide_arithmetic(a: u64, b: u64, c in 1u64..) {
            let wide = u128::from(a) * u128::from(b);
            prop_assert_eq!(u128::from(mul_div(a, b, c)), (wide / u128::from(c)).min(u128::from(u64::MAX)));
        }

        #[test]
        fn shifts_are_divisions(a: u64, b: u64, shift in 0u32..64) {
            prop_assert_eq!(mul_shift(a, b, shift), mul_div(a, b, 1 << shift));
        }
    }

    #[test]
    fn a_zero_divisor_gives_zero() {
        assert_eq!(mul_div(5, 7, 0), 0);
        assert_eq!(mul_div(u64::MAX, 7, 0), 0);
    }
}
