// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that hold one number: `/proc/sys/vm`, `/sys/class/bdi`, `memory.current`, and the limits,
//! which may be `max`.

use super::{Flaw, scan};
use floodline_record::units::{Limit, Quantity};

const ONE_LINE: Flaw = Flaw("one line");
const FITS: Flaw = Flaw("a number that fits 64 bits");

fn line(text: &[u8]) -> Result<&[u8], Flaw> {
    let line = text.strip_suffix(b"\n").ok_or(Flaw("a newline at the end"))?;
    if line.contains(&b'\n') { Err(ONE_LINE) } else { Ok(line) }
}

/// Parses a number.
pub fn number<Q: Quantity>(text: &[u8]) -> Result<Q, Flaw> {
    scaled(text, 1)
}

/// Parses a number and multiplies it by `scale`, e.g. 1024 for a file in KiB.
pub fn scaled<Q: Quantity>(text: &[u8], scale: u64) -> Result<Q, Flaw> {
    scan::number(line(text)?).and_then(|value| value.checked_mul(scale)).map(Q::from_raw).ok_or(FITS)
}

/// Parses a limit of version 2: a number or `max`.
pub fn limit(text: &[u8]) -> Result<Limit, Flaw> {
    match line(text)? {
        b"max" => Ok(Limit::MAX),
        digits => scan::number(digits).map(Limit).ok_or(Flaw("max or a number that fits 64 bits")),
    }
}

/// Parses a limit of version 1, where "none" is `LONG_MAX` rounded down to whole pages (of up to 64 KiB), or
/// `LONG_MAX` itself before 3.19.
pub fn limit_v1(text: &[u8]) -> Result<Limit, Flaw> {
    const NO_LIMIT: u64 = i64::MAX as u64 - 0xffff;
    let limit: Limit = number(text)?;
    Ok(if limit.0 >= NO_LIMIT { Limit::MAX } else { limit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::units::{Bytes, Ppm};

    fn check<T: std::fmt::Debug + PartialEq>(parse: impl Fn(&[u8]) -> Result<T, Flaw>, text: &str, expect: Option<T>) {
        assert_eq!(parse(text.as_bytes()).ok(), expect, "{text:?}");
    }

    #[test]
    fn a_file_of_one_number_is_that_number() {
        check(number::<Bytes>, "104857600\n", Some(Bytes(104_857_600)));
        check(number::<Bytes>, "0\n", Some(Bytes(0)));
        check(|text| scaled::<Bytes>(text, 1024), "128\n", Some(Bytes(131_072)));
        check(|text| scaled::<Ppm>(text, 10_000), "100\n", Some(Ppm(1_000_000)));
        check(|text| scaled::<Bytes>(text, 1024), "18446744073709551615\n", None);
        check(number::<Bytes>, "1048", None);
        check(number::<Bytes>, "", None);
        check(number::<Bytes>, "\n", None);
        check(number::<Bytes>, "1\n2\n", None);
        check(number::<Bytes>, "max\n", None);
        check(number::<Bytes>, "-1\n", None);
    }

    #[test]
    fn limits_may_be_absent_in_the_spelling_of_their_version() {
        check(limit, "max\n", Some(Limit::MAX));
        check(limit, "805306368\n", Some(Limit(805_306_368)));
        check(limit, "max", None);
        check(limit, "ma\n", None);
        check(limit_v1, "9223372036854771712\n", Some(Limit::MAX));
        check(limit_v1, "9223372036854710272\n", Some(Limit::MAX));
        check(limit_v1, "9223372036854775807\n", Some(Limit::MAX));
        check(limit_v1, "805306368\n", Some(Limit(805_306_368)));
        check(limit_v1, "-1\n", None);
    }

    #[test]
    fn any_bytes_are_survived() {
        crate::parse::testing::survives_anything("max\n18446744073709551615\n", |bytes| {
            let _ = (limit(bytes), limit_v1(bytes), scaled::<Bytes>(bytes, 1024));
        });
    }
}
