// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/proc/pressure/*` and a cgroup's `*.pressure`. Only the totals are raw: the averages are the
//! kernel's own derivation. Mirrors kernel/sched/psi.c.

use super::{Flaw, Parsed, scan};
use floodline_record::units::Nanos;

/// Time lost, of the two lines of a pressure file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Time at least one task waited.
    pub some: Option<Nanos>,
    /// Time all non-idle tasks waited; `/proc/pressure/cpu` has it since 5.13.
    pub full: Option<Nanos>,
}

/// The totals of a pressure file, in microseconds there.
pub fn parse(text: &[u8]) -> (Pressure, Parsed) {
    let mut pressure = Pressure::default();
    let mut notes = scan::Notes::default();
    for line in notes.lines(text) {
        let (key, rest) = scan::split(line, b' ');
        let field = match key {
            b"some" => &mut pressure.some,
            b"full" => &mut pressure.full,
            _ => continue,
        };
        let total = scan::words(rest).find_map(|word| word.strip_prefix(b"total="));
        notes.set(field, total.unwrap_or_default(), 1000);
    }
    let parsed = notes.finish();
    (pressure, if pressure.some.is_none() { parsed.and(Err(Flaw("a line of some"))) } else { parsed })
}

#[cfg(test)]
mod tests {
    use super::*;

    const V5_10: &str = "some avg10=6.64 avg60=2.06 avg300=0.77 total=15228239\n\
                         full avg10=0.00 avg60=0.00 avg300=0.00 total=42\n";

    fn check(text: &str, some: Option<u64>, full: Option<u64>, understood: bool) {
        let (pressure, parsed) = parse(text.as_bytes());
        assert_eq!(pressure, Pressure { some: some.map(Nanos), full: full.map(Nanos) }, "{text:?}");
        assert_eq!(parsed.is_ok(), understood, "{text:?}");
    }

    #[test]
    fn totals_become_nanoseconds() {
        check(V5_10, Some(15_228_239_000), Some(42_000), true);
        check("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", Some(0), None, true);
        check("some avg10=0.00 avg60=0.00 avg300=0.00\n", None, None, false);
        check("some total=18446744073709551615\n", None, None, false);
        check("some avg10=6.64 avg60=2.06 avg300=0.77 total=152", None, None, false);
        check("full total=3\n", None, Some(3000), false);
        check("", None, None, false);
    }

    #[test]
    fn any_bytes_are_survived() {
        crate::parse::testing::survives_anything(V5_10, |bytes| {
            let _ = parse(bytes);
        });
    }
}
