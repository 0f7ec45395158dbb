// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quantities as people write them in scenario files: `128 MiB`, `100 MB/s`, `30 IO/s`, `200ms`, `8/s`.
//! Exact: whole numbers inside, no rounding on the way in, and what is printed reads back the same.
//! Decimal (kB, MB) and binary (KiB, MiB) units are both accepted and never guessed from `M`.

mod share;

pub use share::Share;

use floodline_record::units::{Bytes, BytesPerSecond, Nanos};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// The text is not such a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} {}; write {}", self.wrong(), self.instead())]
pub struct NotAQuantity {
    text: String,
    not: &'static str,
    what: &'static str,
    examples: &'static str,
}

impl NotAQuantity {
    fn wrong(&self) -> String {
        match self.not {
            TOO_FINE => "has too many decimal places".to_owned(),
            not => format!("is {not} {}", self.what),
        }
    }

    fn instead(&self) -> &'static str {
        if self.not == TOO_FINE { "it per hour with fewer decimal places, such as \"0.5/h\"" } else { self.examples }
    }
}

const SIZES: &[(&str, u64)] = &[
    ("B", 1),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
    ("PB", 1_000_000_000_000_000),
    ("PiB", 1 << 50),
    ("EB", 1_000_000_000_000_000_000),
    ("EiB", 1 << 60),
];
const RATES: &[(&str, u64)] = &[
    ("B/s", 1),
    ("kB/s", 1_000),
    ("KiB/s", 1 << 10),
    ("MB/s", 1_000_000),
    ("MiB/s", 1 << 20),
    ("GB/s", 1_000_000_000),
    ("GiB/s", 1 << 30),
];
const IO_RATES: &[(&str, u64)] = &[("IO/s", 1), ("kIO/s", 1_000)];
const TIMES: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// What a text is instead of a quantity.
const NOT: &str = "not";
const TOO_LARGE: &str = "too large for";
const TOO_FINE: &str = "too precise";

/// `NUMBER[.FRACTION] UNIT` as a whole number of the smallest unit, or what is wrong with it.
fn read(text: &str, units: &[(&str, u64)]) -> Result<u64, &'static str> {
    // The file holds integers of at most 63 bits; so does everything that is computed from them.
    let fits = |value: u128| u64::try_from(value).ok().filter(|&small| i64::try_from(small).is_ok());
    fits(read_whole(text, units).ok_or(NOT)?).ok_or(TOO_LARGE)
}

fn read_whole(text: &str, units: &[(&str, u64)]) -> Option<u128> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = units.iter().find(|(name, _)| *name == unit.trim_start())?.1;
    let (whole, fraction) = number.split_once('.').map_or((number, ""), |(whole, fraction)| (whole, fraction));
    if whole.is_empty() || fraction.len() > 9 || (fraction.is_empty() && number.contains('.')) {
        return None;
    }
    let parts = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let fraction: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let whole = if whole.bytes().all(|digit| digit.is_ascii_digit()) {
        whole.parse().unwrap_or(u128::MAX)
    } else {
        return None;
    };
    let value = whole.saturating_mul(parts).saturating_add(fraction).saturating_mul(u128::from(scale));
    (value == u128::MAX || value % parts == 0).then_some(value / parts)
}

/// The shortest exact way to write it.
fn write(value: u64, units: &[(&str, u64)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let best = units.iter().rfind(|(_, scale)| value.is_multiple_of(*scale) && (value > 0 || *scale == 1));
    match best {
        Some((unit, scale)) => write!(f, "{} {unit}", value / scale),
        None => write!(f, "{value}"),
    }
}

/// Serializes as text, deserializes from text, and says so in the JSON Schema.
macro_rules! as_text {
    ($name:ident, $what:literal, $examples:literal, $pattern:literal) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!($what, "; write ", $examples))
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern, "description": concat!($what, ": ", $examples) })
            }
        }

        impl $name {
            fn wrong(text: &str) -> NotAQuantity {
                NotAQuantity { text: text.to_owned(), not: NOT, what: $what, examples: $examples }
            }
        }
    };
}

/// A quantity that is one whole number of a smallest unit.
macro_rules! quantities {
    ($($(#[$doc:meta])+ $name:ident($inner:ident) $units:ident, $what:literal, $examples:literal, $pattern:literal;)+) => {$(
        $(#[$doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl FromStr for $name {
            type Err = NotAQuantity;
            fn from_str(text: &str) -> Result<$name, NotAQuantity> {
                read(text, $units)
                    .map(|raw| $name($inner(raw)))
                    .map_err(|not| NotAQuantity { not, ..$name::wrong(text) })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write(self.0.0, $units, f)
            }
        }

        as_text!($name, $what, $examples, $pattern);
    )+};
}

/// Requests per second of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestsPerSecond(pub u64);

quantities! {
    /// An amount of memory or of data, e.g. `128 MiB`.
    ByteSize(Bytes) SIZES, "a size", "\"128 MiB\", \"4 KiB\" or \"100 MB\"", r"^[0-9]+(\.[0-9]+)? ?([kMGTPE]B|[KMGTPE]iB|B)$";
    /// A rate of bytes, e.g. `100 MB/s`.
    ByteRate(BytesPerSecond) RATES, "a rate of bytes", "\"100 MB/s\" or \"64 KiB/s\"", r"^[0-9]+(\.[0-9]+)? ?([kMG]B|[KMG]iB|B)/s$";
    /// A rate of device requests, e.g. `30 IO/s`.
    IoRate(RequestsPerSecond) IO_RATES, "a rate of requests", "\"30 IO/s\"", r"^[0-9]+(\.[0-9]+)? ?k?IO/s$";
    /// A length of time, e.g. `200ms`.
    Time(Nanos) TIMES, "a length of time", "\"200ms\", \"10s\" or \"5min\"", r"^[0-9]+(\.[0-9]+)? ?(ns|us|ms|s|min|h)$";
}

impl ByteSize {
    /// The number of bytes.
    pub const fn bytes(self) -> u64 {
        self.0.0
    }
}

impl Time {
    /// The number of nanoseconds.
    pub const fn nanos(self) -> u64 {
        self.0.0
    }
}

/// How often something happens: so many times per so much time, e.g. `8/s`, `2/min`. Kept as the two
/// numbers, so that the n-th time is at exactly `n × per ÷ times` and nothing drifts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frequency {
    /// Times; never 0.
    pub times: u32,
    /// Per this much time; never 0.
    pub per: Nanos,
}

const PERS: &[(&str, u64)] =
    &[("ms", 1_000_000), ("s", 1_000_000_000), ("min", 60_000_000_000), ("h", 3_600_000_000_000)];

impl Frequency {
    /// Reads it, or returns what the text is instead.
    fn read(text: &str) -> Result<Frequency, &'static str> {
        let (times, per) = text.split_once('/').ok_or(NOT)?;
        let per = PERS.iter().find(|(name, _)| *name == per.trim()).ok_or(NOT)?.1;
        let (whole, part) = times.trim().split_once('.').unwrap_or((times.trim(), "0"));
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits(whole) || !is_digits(part) {
            return Err(NOT);
        }
        // 0.25/s are 25 in 100 s.
        let part = part.trim_end_matches('0');
        let scale = u32::try_from(part.len()).ok().and_then(|digits| 10_u64.checked_pow(digits)).ok_or(TOO_FINE)?;
        // What is left of a number of digits only is its size: its kind of error is not asked for.
        let times = format!("{whole}{part}").parse().map_err(|_| if part.is_empty() { TOO_LARGE } else { TOO_FINE })?;
        let per = scale.checked_mul(per).ok_or(TOO_FINE)?;
        if times == 0 { Err(NOT) } else { Ok(Frequency { times, per: Nanos(per) }) }
    }

    /// When the n-th time is due after the start, saturating.
    #[inline]
    pub fn due(self, n: u64) -> Nanos {
        let nanos = u128::from(n) * u128::from(self.per.0) / u128::from(self.times.max(1));
        Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Times per second.
    pub fn per_second(self) -> f64 {
        f64::from(self.times) / self.per.as_secs_f64()
    }
}

impl FromStr for Frequency {
    type Err = NotAQuantity;
    fn from_str(text: &str) -> Result<Frequency, NotAQuantity> {
        Frequency::read(text).map_err(|not| NotAQuantity { not, ..Frequency::wrong(text) })
    }
}

impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for digits in 0..=9 {
            let scale = 10_u64.pow(digits);
            let known = |(_, per): &&(&str, u64)| per.checked_mul(scale) == Some(self.per.0);
            let Some((unit, _)) = PERS.iter().find(known) else { continue };
            let (whole, part) = (u64::from(self.times) / scale, u64::from(self.times) % scale);
            return match digits as usize {
                0 => write!(f, "{whole}/{unit}"),
                digits => write!(f, "{whole}.{part:0digits$}/{unit}"),
            };
        }
        write!(f, "{}/{}ns", self.times, self.per.0)
    }
}

as_text!(
    Frequency,
    "a number of times per time",
    "\"8/s\", \"0.2/s\" or \"2/min\"",
    r"^[0-9]+(\.[0-9]+)? ?/ ?(ms|s|min|h)$"
);

/// How fast data is read or written: bytes per time, or operations per time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pace {
    /// So many bytes per second, whatever the block size.
    Bytes(ByteRate),
    /// So many blocks.
    Blocks(Frequency),
}

impl FromStr for Pace {
    type Err = NotAQuantity;
    fn from_str(text: &str) -> Result<Pace, NotAQuantity> {
        let wrong = |not| NotAQuantity { not, ..Pace::wrong(text) };
        // Of the two kinds, the one whose unit is given says what is wrong.
        match (text.parse::<ByteRate>(), text.parse::<Frequency>()) {
            (Ok(rate), _) if rate != ByteRate::default() => Ok(Pace::Bytes(rate)),
            (_, Ok(frequency)) => Ok(Pace::Blocks(frequency)),
            (Err(bytes), Err(_)) if bytes.not != NOT => Err(wrong(bytes.not)),
            (_, Err(blocks)) => Err(wrong(blocks.not)),
        }
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pace::Bytes(rate) => rate.fmt(f),
            Pace::Blocks(frequency) => frequency.fmt(f),
        }
    }
}

as_text!(
    Pace,
    "a pace above zero",
    "\"10 MB/s\" or, counted in blocks, \"50/s\"",
    r"^[0-9]+(\.[0-9]+)? ?((([kMG]B|[KMG]iB|B)/s)|/ ?(ms|s|min|h))$"
);

impl Pace {
    /// When block `n` of `block` bytes is due after the start, saturating.
    #[inline]
    pub fn due(self, n: u64, block: ByteSize) -> Nanos {
        match self {
            Pace::Blocks(frequency) => frequency.due(n),
            Pace::Bytes(ByteRate(rate)) => {
                let nanos = u128::from(n) * u128::from(block.bytes()) * 1_000_000_000 / u128::from(rate.0.max(1));
                Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
        }
    }
}

/// A limit as cgroup files have it: a size, or `max` for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SizeLimit {
    /// No limit.
    Max,
    /// This many bytes.
    Size(ByteSize),
}

impl FromStr for SizeLimit {
    type Err = NotAQuantity;
    fn from_str(text: &str) -> Result<SizeLimit, NotAQuantity> {
        match text {
            "max" => Ok(SizeLimit::Max),
            text => text
                .parse()
                .map(SizeLimit::Size)
                .map_err(|error: NotAQuantity| NotAQuantity { not: error.not, ..SizeLimit::wrong(text) }),
        }
    }
}

impl fmt::Display for SizeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SizeLimit::Max => f.write_str("max"),
            SizeLimit::Size(size) => size.fmt(f),
        }
    }
}

as_text!(
    SizeLimit,
    "a size or \"max\"",
    "\"128 MiB\" or \"max\"",
    r"^(max|[0-9]+(\.[0-9]+)? ?([kMGTPE]B|[KMGTPE]iB|B))$"
);

/// A bound of a figure: a plain number, or a quantity in the figure's base unit (bytes, bytes per second,
/// seconds, times per second).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level(pub f64);

impl FromStr for Level {
    type Err = NotAQuantity;
    fn from_str(text: &str) -> Result<Level, NotAQuantity> {
        let bytes = || [SIZES, RATES, IO_RATES].iter().find_map(|units| read(text, units).ok());
        let time = || text.parse::<Time>().ok().map(|time| time.0.as_secs_f64());
        let often = || text.parse::<Frequency>().ok().map(Frequency::per_second);
        let level = bytes().map(|n| n as f64).or_else(time).or_else(often);
        level.map(Level).ok_or_else(|| Level::wrong(text))
    }
}

impl Level {
    fn wrong(text: &str) -> NotAQuantity {
        NotAQuantity {
            not: NOT,
            text: text.to_owned(),
            what: "a figure's bound",
            examples: "a number, \"2.5 MB/s\" or \"300ms\"",
        }
    }
}

as_text!(Share, "a part of pages, from 0/1 to 1/1", "\"30/40\" or \"1/1\"", r"^[0-9]+ ?/ ?[0-9]+$");

impl Serialize for Level {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Level, D::Error> {
        struct NumberOrText;
        impl Visitor<'_> for NumberOrText {
            type Value = Level;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a quantity such as \"2.5 MB/s\" or \"300ms\"")
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Level, E> {
                if value.is_finite() { Ok(Level(value)) } else { Err(E::custom("a bound is a finite number")) }
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Level, E> {
                Ok(Level(value as f64))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Level, E> {
                Ok(Level(value as f64))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Level, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(NumberOrText)
    }
}

impl JsonSchema for Level {
    fn schema_name() -> Cow<'static, str> {
        "Level".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["number", "string"], "description": "a number, or a quantity such as \"2.5 MB/s\" or \"300ms\"" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frequency_may_be_less_than_once() {
        let check = |text: &str, due: u64, shown: &str| {
            let frequency: Frequency = text.parse().unwrap();
            assert_eq!((frequency.due(1).0, frequency.to_string().as_str()), (due, shown), "{text}");
            assert_eq!(shown.parse::<Frequency>().unwrap(), frequency);
        };
        check("0.2/s", 5_000_000_000, "0.2/s");
        check("12/min", 5_000_000_000, "12/min");
        check("1.50/s", 666_666_666, "1.5/s");
        check("3.0/h", 1_200_000_000_000, "3/h");
        check("0.05/ms", 20_000_000, "0.05/ms");
        let said = |text: &str| text.parse::<Frequency>().unwrap_err().to_string();
        assert!(
            said("5000000000/s").contains("is too large for a number of times per time"),
            "{}",
            said("5000000000/s")
        );
        assert!(
            said("0.00000000000000000000001/s").ends_with(
                "has too many decimal places; write it per hour with fewer decimal places, such as \"0.5/h\""
            )
        );
        assert!(said("0/s").contains("is not a number of times per time"));
        for wrong in ["0.0/s", ".5/s", "1./s", "1..5/s", "-0.2/s", "0.00000000000000000000001/s"] {
            assert!(wrong.parse::<Frequency>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_too_large_is_not_said_to_be_something_else() {
        let pace = |text: &str| text.parse::<Pace>().unwrap_err().to_string();
        assert!(pace("1000000000000000000/s").starts_with("\"1000000000000000000/s\" is too large for a pace"));
        assert!(pace("99999999999999999999 GB/s").contains("is too large for a pace"));
        assert!(
            pace("0 B/s").contains("is not a pace above zero") && pace("fast").contains("is not a pace above zero")
        );
        let size = |text: &str| text.parse::<ByteSize>().map_err(|error| error.to_string());
        assert_eq!(size("900 TiB"), Ok(ByteSize(Bytes(900 << 40))));
        assert_eq!(size("7 EiB").map(|size| size.to_string()), Ok("7 EiB".to_owned()));
        for large in ["8 EiB", "16383 PiB", "9999999 TiB"] {
            assert!(size(large).unwrap_err().contains("is too large for a size"), "{large}");
        }
        let limit = "9999 PiB".parse::<SizeLimit>().unwrap_err().to_string();
        assert!(limit.contains("is too large for a size or \"max\""), "{limit}");
    }
}
