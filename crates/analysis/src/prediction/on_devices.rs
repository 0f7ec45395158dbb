// SPDX-License-Identifier: MIT OR Apache-2.0
//! Predicted waits on single disks, beside those of the whole host.

use super::{LONGEST, ON_DEVICE, Prediction, Row, WAITS, differ};

/// End of the names of figures that are all waits on one disk.
const WAITED: &str = ".waited_seconds";

impl Prediction {
    /// Waits on single disks, where the recording has several disks on which tasks wait. Without those that repeat a wait of the host.
    pub fn on_devices(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.is_of_device() && row.is_measured && !self.is_repeated(row))
    }

    /// Whether the host has the same wait as a disk, before and after the change.
    pub fn is_repeated(&self, of_device: &Row) -> bool {
        let figure = if of_device.figure.ends_with(WAITED) { WAITS } else { LONGEST };
        let is_same = |one: f64, other: f64| !differ(of_device.least, one, other);
        self.rows.iter().any(|row| {
            let is_wait = row.figure == figure && row.is_measured && row.doubt == of_device.doubt;
            is_wait && is_same(row.now, of_device.now) && is_same(row.then, of_device.then)
        })
    }
}

impl Row {
    /// Whether the figure is a wait on one disk.
    pub fn is_of_device(&self) -> bool {
        self.figure.starts_with(ON_DEVICE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prediction::{P99, PEAK};
    use floodline_record::version::KernelVersion;

    fn of(rows: Vec<Row>) -> Prediction {
        Prediction { rows, ..Prediction::new(Vec::new(), KernelVersion::new(6, 12, 0)) }
    }

    #[test]
    fn waits_on_single_disks_lead_before_bytes() {
        let row = |figure: &str, unit| Row::new(figure, figure, unit, 4.0, 2.0);
        let disk = "device.vda.waited_seconds";
        let all = of(vec![row(PEAK, "bytes"), row(disk, "seconds"), row(LONGEST, "seconds"), row(P99, "seconds")]);
        assert_eq!(all.leads().map(|row| row.figure.as_str()).collect::<Vec<_>>(), [LONGEST, disk, PEAK]);
    }

    #[test]
    fn a_wait_of_the_host_is_not_repeated_for_its_disk() {
        let row = |figure: &str, now, then| Row { least: 0.02, ..Row::new(figure, figure, "seconds", now, then) };
        let longest = |disk: &str| format!("device.{disk}.longest_wait_seconds");
        let shown = |rows: Vec<Row>| of(rows).leads().map(|row| row.figure.clone()).collect::<Vec<_>>();
        let of_host = || row(LONGEST, 8.94, 8.49);
        let of_disks = || vec![row(&longest("a"), 8.94, 8.49), row(&longest("b"), 2.0, 0.1)];
        let with = |host: Row| shown([vec![host], of_disks()].concat());
        assert_eq!(with(of_host()), [LONGEST.to_owned(), longest("b")]);
        assert_eq!(with(row(LONGEST, 8.94, 5.0)).len(), 3, "another wait is the longest then");
        assert_eq!(with(row(WAITS, 8.94, 8.49)).len(), 3, "it is another figure");
        assert_eq!(with(Row { is_measured: false, ..of_host() }).len(), 3, "the recording does not have it");
        assert_eq!(shown(vec![row(WAITS, 9.0, 4.0), row("device.a.waited_seconds", 9.0, 4.0)]), [WAITS]);
    }
}
