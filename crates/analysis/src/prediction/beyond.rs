// SPDX-License-Identifier: MIT OR Apache-2.0
//! What lies beyond the recording: limits of devices that were never met, and data that are written only after its end.

use super::Prediction;
use floodline_record::human;
use serde::Serialize;

/// A device that was never saturated by written bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unseen {
    /// Name of the device in the twin.
    pub device: String,
    /// Speed that it showed while it was busy, bytes per second: the twin's limit. It may be many times as fast.
    pub bytes_per_second: f64,
}

/// Data that the runs of the recorded time leave unwritten. Tasks wait for these data later, so that the waits of such a run are no
/// prediction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Horizon {
    /// Whether the change puts the writes off. Otherwise the present settings do, and the recording is shorter than the age at which they
    /// write.
    pub is_put_off: bool,
    /// Unwritten bytes at the end of the recorded time: of the run that leaves more.
    pub unwritten_bytes: f64,
    /// Seconds that the disks take to write them.
    pub write_seconds: f64,
    /// Seconds to record so that such a write is in the recording.
    pub record_seconds: f64,
    /// Whether the flusher writes such data once they are old. Otherwise they stay until a sync or a threshold writes them.
    pub is_by_age: bool,
    /// How many times in a row the recorded load was simulated until these data were written. Totals are per recorded time. Absent where
    /// no run shows that write: then no wait is predicted.
    pub times: Option<u32>,
}

/// Shortest recording that is advised, seconds.
const RECORD_MIN_S: f64 = 60.0;

impl Horizon {
    /// How much is unwritten at the end, and what to do about it.
    fn told(&self) -> String {
        let (bytes, seconds) = (human::bytes(self.unwritten_bytes), human::seconds(self.write_seconds));
        let minutes = (self.record_seconds.max(RECORD_MIN_S) / 60.0).ceil();
        let whose = if self.is_put_off { "with the change" } else { "with the present settings" };
        let then = match self.is_by_age {
            true => format!("record for longer (--for {minutes:.0}min)"),
            false => "periodic writeback is off, so they stay until a sync or the background threshold writes them"
                .to_owned(),
        };
        format!(
            "at the end of the recorded time {bytes} are still unwritten {whose}; they take the disk about {seconds}, and no run shows the \
             wait for them; {then}"
        )
    }

    /// The note on the runs that show the write.
    pub fn note(&self) -> Option<String> {
        let times = self.times?;
        let (bytes, seconds) = (human::bytes(self.unwritten_bytes), human::seconds(self.write_seconds));
        let whose = if self.is_put_off { "With the change" } else { "With the present settings" };
        Some(format!(
            "{whose}, {bytes} are still unwritten at the end of the recorded time, {seconds} of work for the disk. So both twins were \
             simulated with the recorded load {times} times in a row, until such data were written. Totals are for the recorded time. \
             Where the longer run has longer waits, the table has these as present values."
        ))
    }
}

impl Prediction {
    /// Reason why the prediction gives no verdict: data that decide it are written after the end of each run.
    pub fn beyond_the_end(&self) -> Option<String> {
        self.horizon.as_ref().filter(|horizon| horizon.times.is_none()).map(Horizon::told)
    }
}
