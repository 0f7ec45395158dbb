// SPDX-License-Identifier: MIT OR Apache-2.0
//! The oldest position ratio against rows that a 3.3 kernel printed: ten disks with one endless writer
//! each, 4 GiB of dirty pages allowed. The rows are not in this repository: the folder that has
//! `throttle-trace-3.3/events.csv` is named by `FLOODLINE_REFERENCE_DATA`. Without it the test is skipped.
#![allow(clippy::disallowed_methods, reason = "reads reference data")]

use floodline_kernel::{Algorithm, DirtyThrottleControl, KernelVersion, task_ratelimit, wb_position_ratio};
use floodline_skip::{Need, skip};

/// Constant in every row, pages: the limit, and with background at half of it the set point.
const LIMIT: u64 = 1_048_576;
const SETPOINT: u64 = 917_504;
/// Average write bandwidth of the disk, pages per second (63,908 kB/s).
const BANDWIDTH: u64 = 15_977;
const ROWS: usize = 119;

/// One row, rates in pages per second.
struct Throttled {
    dirty: u64,
    wb_setpoint: u64,
    wb_dirty: u64,
    dirty_ratelimit: u64,
    task_ratelimit: u64,
}

impl Throttled {
    fn parse(line: &str) -> Throttled {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |at: usize| cells[at].parse::<u64>().unwrap_or_else(|error| panic!("{error} in {line}"));
        Throttled {
            dirty: number(2),
            wb_setpoint: number(3),
            wb_dirty: number(4),
            // The trace has kB/s, 4 to a page.
            dirty_ratelimit: number(5) / 4,
            task_ratelimit: number(6) / 4,
        }
    }

    /// Shares of the limit that print as the row's set point: it is scaled by 7/8 and cut off.
    fn wb_thresholds(&self) -> impl Iterator<Item = u64> {
        let about = self.wb_setpoint * (LIMIT + 1) / SETPOINT;
        (about..about + 3).filter(|share| SETPOINT * share / (LIMIT + 1) == self.wb_setpoint)
    }

    /// Distance of the computed rate from the traced, pages per second.
    fn error(&self, algorithm: &Algorithm) -> u64 {
        let errors = self.wb_thresholds().map(|wb_thresh| {
            let dtc = DirtyThrottleControl {
                thresh: LIMIT,
                bg_thresh: LIMIT / 2,
                dirty: self.dirty,
                dirty_limit: LIMIT,
                wb_thresh,
                wb_bg_thresh: wb_thresh / 2,
                wb_dirty: self.wb_dirty,
            };
            let pos_ratio = wb_position_ratio(algorithm, &dtc, BANDWIDTH, false);
            task_ratelimit(self.dirty_ratelimit, pos_ratio).abs_diff(self.task_ratelimit)
        });
        errors.min().expect("some share prints as this set point")
    }
}

#[test]
fn rates_of_a_3_3_kernel_are_within_one_unit_of_the_ratio() {
    let Some(folder) = std::env::var_os("FLOODLINE_REFERENCE_DATA") else {
        return skip(Need::Data, "FLOODLINE_REFERENCE_DATA does not name the folder of throttle-trace-3.3");
    };
    let path = std::path::Path::new(&folder).join("throttle-trace-3.3/events.csv");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let algorithm = Algorithm::of(KernelVersion::new(3, 3, 0));
    let errors: Vec<u64> = text.lines().skip(1).map(|line| Throttled::parse(line).error(&algorithm)).collect();
    assert_eq!(errors.len(), ROWS);
    // One unit of the 10-bit ratio is 64 kB/s here: 16 pages per second.
    assert!(errors.iter().all(|error| *error <= 16), "{errors:?}");
    assert_eq!(errors.iter().filter(|error| **error == 0).count(), 112);
}
