// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts of the pages that a machine wrote lately, and how several of them are added up.

use super::{NOT, NotAQuantity, TOO_LARGE};
use std::fmt;
use std::str::FromStr;

/// Largest number of all pages to which shares of different numbers are scaled together, unless one of them has more: the counts of a
/// kernel that wrote more change more slowly.
const TOGETHER_MAX: u64 = 4_096;

/// Largest common total of an exact sum. The pages of a share, scaled to this total, fit in 128 bits.
const SUM_MAX: u128 = 1 << 95;

/// Greatest common divisor; 0 of zeros only.
fn common_divisor(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// Part of the pages that a machine wrote lately, as two numbers of pages, e.g. `30/40`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Share {
    /// Its pages; at most `of`.
    pub pages: u32,
    /// All pages; never 0.
    pub of: u32,
}

impl Share {
    /// Its pages when all pages are `of`, rounded down.
    pub fn among(self, of: u64) -> u64 {
        let pages = u128::from(self.pages) * u128::from(of) / u128::from(self.of.max(1));
        u64::try_from(pages).unwrap_or(u64::MAX)
    }

    /// A number of all pages of which each of these shares has a whole number of pages; never 0. Where that is above 4096 and above
    /// all of their numbers, a multiple of the largest of them, which is off by less than one page for each share.
    pub fn together(shares: impl IntoIterator<Item = Share>) -> u64 {
        let (mut largest, mut common) = (1, Some(1));
        for share in shares {
            let of = u64::from(share.of.max(1));
            largest = of.max(largest);
            common = common.and_then(|common: u64| {
                let divisor = common_divisor(common.into(), of.into()) as u64;
                (common / divisor).checked_mul(of)
            });
        }
        let most = TOGETHER_MAX.max(largest);
        common.filter(|common| *common <= most).unwrap_or(most / largest * largest)
    }

    /// The sum of shares, each that many times, as pages and all pages in lowest terms. Exact, unless all pages would be above 2⁹⁵:
    /// then each further share is rounded down to a number of them that is at least 2⁶³.
    pub fn sum(shares: impl IntoIterator<Item = (Share, u32)>) -> (u128, u128) {
        let (mut pages, mut all) = (0_u128, 1_u128);
        for (share, times) in shares {
            let of = u128::from(share.of.max(1));
            let factor = of / common_divisor(all, of);
            if all <= SUM_MAX / factor {
                (pages, all) = (pages.saturating_mul(factor), all * factor);
            }
            let more = u128::from(share.pages) * all / of;
            pages = pages.saturating_add(more.saturating_mul(times.into()));
        }
        let divisor = common_divisor(pages, all);
        (pages / divisor, all / divisor)
    }
}

impl FromStr for Share {
    type Err = NotAQuantity;
    fn from_str(text: &str) -> Result<Share, NotAQuantity> {
        let number = |text: &str| -> Result<u32, &'static str> {
            let text = text.trim();
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            if is_number { text.parse().map_err(|_| TOO_LARGE) } else { Err(NOT) }
        };
        let read = || {
            let (pages, of) = text.split_once('/').ok_or(NOT)?;
            Ok(Share { pages: number(pages)?, of: number(of)? })
        };
        match read() {
            Ok(share) if share.of > 0 && share.pages <= share.of => Ok(share),
            Ok(_) => Err(Share::wrong(text)),
            Err(not) => Err(NotAQuantity { not, ..Share::wrong(text) }),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.pages, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_at_most_all_pages_of_at_least_one() {
        for (text, pages, of) in
            [("30/40", 30, 40), ("0/1", 0, 1), (" 1 / 1 ", 1, 1), ("4294967295/4294967295", u32::MAX, u32::MAX)]
        {
            let share: Share = text.parse().unwrap();
            assert_eq!((share, share.to_string().parse::<Share>().unwrap()), (Share { pages, of }, share));
        }
        let said = |text: &str| text.parse::<Share>().unwrap_err().to_string();
        assert_eq!(said("41/40"), "\"41/40\" is not a part of pages, from 0/1 to 1/1; write \"30/40\" or \"1/1\"");
        assert!(said("1/4294967296").contains("is too large for a part of pages"));
        for wrong in ["", "1", "0/0", "/", "1/", "/1", "-1/2", "+1/2", "0.5", "50 %", "1/2/3", "\u{661}/2"] {
            assert!(said(wrong).contains("is not a part of pages"), "{wrong}");
        }
    }

    #[test]
    fn shares_of_different_numbers_are_scaled_to_one_that_suits_them() {
        let share = |text: &str| text.parse::<Share>().unwrap();
        let together = |texts: &[&str]| Share::together(texts.iter().map(|text| share(text)));
        assert_eq!(
            [together(&[]), together(&["7/9"]), together(&["1/2", "0/3"]), together(&["1/4", "5/40"])],
            [1, 9, 6, 40]
        );
        assert_eq!(share("1/2").among(together(&["1/2", "0/3"])), 3);
        // 36,267 pages would keep the shares for too long. A larger number is kept as it is.
        assert_eq!([together(&["16/33", "1/1099"]), together(&["1/3", "1/65536"])], [3297, 65_536]);
        assert_eq!(together(&["1/4294967295", "1/4294967291", "1/4294967279"]), 4_294_967_295);
    }

    #[test]
    fn a_sum_of_shares_is_exact() {
        let sum = |texts: &[(&str, u32)]| Share::sum(texts.iter().map(|(text, times)| (text.parse().unwrap(), *times)));
        assert_eq!([sum(&[]), sum(&[("0/7", 9)]), sum(&[("2/3", 1), ("1/3", 1)])], [(0, 1), (0, 1), (1, 1)]);
        assert_eq!([sum(&[("2/3", 1), ("2/4", 1)]), sum(&[("11/40", 1), ("1/4", 3)])], [(7, 6), (41, 40)]);
        // Four of 2⁶⁴ pages too few or too many, and primes whose product is above 2¹²⁸.
        let (pages, all) = sum(&[("1/4294967295", 1), ("4294967290/4294967291", 1)]);
        assert!(pages < all, "{pages} of {all}");
        let (pages, all) = sum(&[("1/4294967291", 1), ("4294967294/4294967295", 1)]);
        assert!(pages > all, "{pages} of {all}");
        let primes =
            ["1431655763/4294967291", "1431655759/4294967279", "1431655743/4294967231", "1431655732/4294967197"];
        let of = |last: &str| sum(&[(primes[0], 1), (primes[1], 1), (primes[2], 1), (primes[3], 1), (last, 1)]);
        let (pages, all) = of("0/4294967189");
        assert!(pages > all && pages < all / 3 * 5, "{pages} of {all}");
        let (pages, all) = sum(&[("4294967295/4294967295", u32::MAX), ("4294967278/4294967279", u32::MAX)]);
        assert!(pages > all, "{pages} of {all}");
    }
}
