// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages of a rewritten file that were dirty when the recording began: the program writes to the same pages again, and dirties no others.

use super::bursts::size;
use super::workload::oldest;
use floodline_record::units::{Bytes, Nanos};
use floodline_record::window::Window;
use floodline_scenario::{ByteSize, Lasting, Step, Time, Write};

/// Steps that make `bytes` of a file dirty before the recording begins. `stores` is how long the task stores after them, seconds.
/// Together they last as long as the oldest page was dirty, as those of other dirty pages do.
pub(super) fn steps(bytes: f64, file: String, stores: f64, window: &Window) -> Vec<Step> {
    let oldest = oldest(window);
    let age = Nanos(oldest.0.min(most(window).0));
    let rest = Nanos(oldest.0 - age.0);
    let then = Nanos(age.0.saturating_sub((stores * 1e9) as u64));
    let sleep = |lasting| Step::Sleep(Lasting { lasting: Time(lasting) });
    let block = ByteSize(Bytes(1 << 16));
    let write = Step::Write(Write { file, block, total: Some(size(bytes)), ..Write::default() });
    let rest = (rest.0 > 0).then(|| sleep(rest));
    rest.into_iter().chain([write, sleep(then)]).collect()
}

/// Age of a page that the flusher has not found old in any of its rounds: one period less than that at which it is written, or half of
/// that where the period is longer.
fn most(window: &Window) -> Nanos {
    let host = &window.host.last;
    let expire = host.dirty_expire_centisecs.map_or(3000, |centisecs| centisecs.0);
    let every = host.dirty_writeback_centisecs.map_or(500, |centisecs| centisecs.0);
    Nanos(expire.saturating_sub(every).max(expire / 2).saturating_mul(10_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::units::Centisecs;
    use floodline_testkit::Fixture;

    #[test]
    fn pages_that_were_dirty_are_not_old_before_the_recording_begins() {
        let told = |expire: u64, every: u64, stores: f64| {
            let window = Fixture::healthy()
                .host(move |t, row| {
                    row.dirty_expire_centisecs = Some(Centisecs(expire));
                    row.dirty_writeback_centisecs = Some(Centisecs(every));
                    row.nr_written = floodline_testkit::grows(t, 0, 10_000.0);
                })
                .window();
            let of = |step: &Step| match step {
                Step::Sleep(sleep) => Some(sleep.lasting.0.as_secs_f64()),
                _ => None,
            };
            steps(1e6, "/data/f".to_owned(), stores, &window).iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(told(3000, 500, 0.0), [Some(5.0), None, Some(25.0)]);
        assert_eq!(told(3000, 500, 4.0), [Some(5.0), None, Some(21.0)], "it stores for 4 s");
        assert_eq!(told(300, 500, 0.0), [Some(1.5), None, Some(1.5)]);
    }
}
