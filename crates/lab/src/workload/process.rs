// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's counters of a process.

use floodline_record::record::{TaskIo, TaskName};
use floodline_scenario::TaskCopy;

/// Reads the counters of a process.
pub(super) fn counters(pid: u32) -> TaskIo {
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    parse(&io, &stat)
}

/// Minor and major faults of the children that a process has reaped. Their bytes are among its own.
pub(super) fn of_ended(pid: u32) -> (Option<u64>, Option<u64>) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    (field(&stat, 8), field(&stat, 10))
}

/// A field of `stat`. The name in parentheses may hold anything: fields are counted from the last one on.
fn field(stat: &str, number: usize) -> Option<u64> {
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(number)?.parse().ok())
}

fn parse(io: &str, stat: &str) -> TaskIo {
    let of = |name: &str| io.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.parse().ok());
    TaskIo {
        rchar: of("rchar"),
        wchar: of("wchar"),
        syscr: of("syscr"),
        syscw: of("syscw"),
        read_bytes: of("read_bytes"),
        write_bytes: of("write_bytes"),
        cancelled_write_bytes: of("cancelled_write_bytes"),
        minflt: field(stat, 7),
        majflt: field(stat, 9),
    }
}

/// Growth from one reading to another; `None` for counters that either reading lacks.
pub(super) fn growth(before: &TaskIo, after: &TaskIo) -> TaskIo {
    let step = |before: Option<u64>, after: Option<u64>| after?.checked_sub(before?);
    TaskIo {
        rchar: step(before.rchar, after.rchar),
        wchar: step(before.wchar, after.wchar),
        syscr: step(before.syscr, after.syscr),
        syscw: step(before.syscw, after.syscw),
        read_bytes: step(before.read_bytes, after.read_bytes),
        write_bytes: step(before.write_bytes, after.write_bytes),
        cancelled_write_bytes: step(before.cancelled_write_bytes, after.cancelled_write_bytes),
        minflt: step(before.minflt, after.minflt),
        majflt: step(before.majflt, after.majflt),
    }
}

/// Name of a task copy in events.
pub(super) fn name(task: &TaskCopy) -> TaskName {
    TaskName { task: task.task.clone().into(), copy: task.copy }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IO: &str = "rchar: 323934931\nwchar: 323929600\nsyscr: 632687\nsyscw: 632675\nread_bytes: 0\n\
                      write_bytes: 323932160\ncancelled_write_bytes: 0\n";
    const STAT: &str = "41 (a) b (c) S 1 41 41 0 -1 4194560 1013 0 17 0 5 3 0 0 20 0 1 0 100 2 3";

    #[test]
    fn counters_of_a_process_are_read() {
        let io = parse(IO, STAT);
        assert_eq!(
            (io.write_bytes, io.syscw, io.minflt, io.majflt),
            (Some(323_932_160), Some(632_675), Some(1013), Some(17))
        );
    }

    #[test]
    fn what_cannot_be_read_is_not_zero() {
        assert_eq!(parse("", ""), TaskIo::default());
        assert_eq!(parse("write_bytes: many\n", "1 (x"), TaskIo::default());
        let after = TaskIo { write_bytes: Some(1), ..TaskIo::default() };
        assert_eq!(growth(&TaskIo::default(), &after), TaskIo::default());
        let before = TaskIo { write_bytes: Some(2), ..TaskIo::default() };
        assert_eq!(growth(&before, &after).write_bytes, None);
    }
}
