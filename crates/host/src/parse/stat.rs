// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/proc/stat`: CPU time and blocked tasks. Times are in clock ticks of user space, which are
//! hundredths of a second on every architecture Floodline runs on. Mirrors fs/proc/stat.c.

use super::{Parsed, scan};
use floodline_record::sample::HostRow;
use floodline_record::units::Count;

/// Nanoseconds in one tick of user space (`USER_HZ` is 100).
pub const TICK_NS: u64 = 10_000_000;

/// Fills the fields that come from stat.
pub fn parse(text: &[u8], row: &mut HostRow) -> Parsed {
    let mut notes = scan::Notes::default();
    let mut cpus = 0;
    for line in notes.lines(text) {
        let (key, value) = scan::split(line, b' ');
        match key {
            b"cpu" => times(value, row, &mut notes),
            b"ctxt" => notes.set(&mut row.ctxt, value, 1),
            b"procs_running" => notes.set(&mut row.procs_running, value, 1),
            b"procs_blocked" => {
                notes.set(&mut row.procs_blocked, value, 1);
                // It comes after all CPUs, so none of them was cut off.
                row.cpus_online = (cpus > 0).then_some(Count(cpus));
            }
            key if key.starts_with(b"cpu") && key.len() > 3 => cpus += 1,
            _ => {}
        }
    }
    notes.finish()
}

/// The line over all CPUs: user nice system idle iowait irq softirq steal …
fn times(line: &[u8], row: &mut HostRow, notes: &mut scan::Notes) {
    let mut columns = [&[][..]; 8];
    let mut words = scan::words(line);
    for column in &mut columns {
        *column = words.next().unwrap_or_default();
    }
    let [user, nice, system, idle, iowait, irq, softirq, steal] = columns;
    let mut sum = |parts: &[&[u8]]| {
        let mut sum = scan::Sum::None;
        for part in parts {
            notes.add(&mut sum, part, TICK_NS);
        }
        sum.value()
    };
    row.cpu_user = sum(&[user, nice]);
    row.cpu_system = sum(&[system, irq, softirq]);
    row.cpu_idle = sum(&[idle]);
    row.cpu_iowait = sum(&[iowait]);
    row.cpu_steal = sum(&[steal]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::testing;
    use floodline_record::units::Nanos;

    const V6_18: &str = "\
cpu  18921 3 9021 238440 811 7 224 132 0 0
cpu0 9411 0 4502 119111 401 0 112 66 0 0
cpu1 9510 3 4519 119329 410 7 112 66 0 0
intr 3811032 0 9 0 0 221 0 0 0 1
ctxt 7121337
btime 1795233421
processes 41223
procs_running 3
procs_blocked 1
softirq 1938221 0 311208 7 2019
";

    fn read(text: &[u8]) -> (HostRow, bool) {
        let mut row = HostRow::default();
        let parsed = parse(text, &mut row);
        (row, parsed.is_ok())
    }

    #[test]
    fn ticks_become_nanoseconds_and_kinds_are_summed() {
        let (row, understood) = read(V6_18.as_bytes());
        assert!(understood);
        let expect = HostRow {
            cpu_user: Some(Nanos(18_924 * TICK_NS)),
            cpu_system: Some(Nanos((9021 + 7 + 224) * TICK_NS)),
            cpu_idle: Some(Nanos(238_440 * TICK_NS)),
            cpu_iowait: Some(Nanos(811 * TICK_NS)),
            cpu_steal: Some(Nanos(132 * TICK_NS)),
            ctxt: Some(Count(7_121_337)),
            procs_running: Some(Count(3)),
            procs_blocked: Some(Count(1)),
            cpus_online: Some(Count(2)),
            ..HostRow::default()
        };
        assert_eq!(row, expect);
    }

    #[test]
    fn a_column_that_is_missing_or_does_not_fit_is_unknown() {
        let (row, understood) = read(b"cpu 1 2 3 4 18446744073709551615 6 7\nctxt 9\n");
        assert!(!understood);
        let expect = HostRow {
            cpu_user: Some(Nanos(3 * TICK_NS)),
            cpu_system: Some(Nanos(16 * TICK_NS)),
            cpu_idle: Some(Nanos(4 * TICK_NS)),
            ctxt: Some(Count(9)),
            ..HostRow::default()
        };
        assert_eq!(row, expect);
    }

    #[test]
    fn any_bytes_are_survived_and_a_cut_never_lies() {
        testing::survives_anything(V6_18, read);
        testing::a_cut_never_lies(V6_18, read);
    }
}
