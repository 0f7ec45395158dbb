// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits of processes for data of a file to be stored, as a trace has them: long ones each, short ones in sum.

use floodline_record::record::What;
use floodline_record::traced::waits::SlowSync;
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use std::collections::BTreeMap;

/// Mean wait for stable storage above that of any disk with little to do, seconds: a slow rotating disk takes half of it.
const SHORT_S: f64 = 0.05;

/// By process: the sum of its waits of 100 ms and more for data of a file to be stored, the longest of them, and the sum of
/// those that are not meant, as on other devices, seconds. Waits for which `is_meant` returns `None` count nowhere. A sync of everything waits
/// for all dirty data by design.
pub(super) fn slow(
    window: &Window,
    is_meant: impl Fn(&SlowSync, Nanos) -> Option<bool>,
) -> BTreeMap<u32, (f64, f64, f64)> {
    let mut sums: BTreeMap<u32, (f64, f64, f64)> = BTreeMap::new();
    for event in &window.events {
        let What::SlowSync(wait) = &event.what else { continue };
        if !wait.operation.is_of_file() {
            continue;
        }
        let Some(is_meant) = is_meant(wait, event.at) else { continue };
        let (total, longest, elsewhere) = sums.entry(wait.who.pid).or_default();
        match is_meant {
            true => {
                *total += wait.lasted.as_secs_f64();
                *longest = longest.max(wait.lasted.as_secs_f64());
            }
            false => *elsewhere += wait.lasted.as_secs_f64(),
        }
    }
    sums
}

/// By process: the sum of its waits for data of a file to be stored that were shorter than 100 ms and took longer on average
/// than on any disk that has little to do, seconds.
pub(super) fn short(window: &Window) -> BTreeMap<u32, f64> {
    let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for event in &window.events {
        let (pid, seconds, count) = match &event.what {
            What::Synced(all) if all.operation.is_of_file() => (all.who.pid, all.total.as_secs_f64(), all.count as f64),
            // It is part of the others.
            What::SlowSync(slow) if slow.operation.is_of_file() => (slow.who.pid, -slow.lasted.as_secs_f64(), -1.0),
            _ => continue,
        };
        let (sum, waits) = sums.entry(pid).or_default();
        (*sum, *waits) = (*sum + seconds, *waits + count);
    }
    let is_slow = |(sum, waits): (f64, f64)| waits >= 1.0 && sum >= SHORT_S * waits;
    sums.into_iter().filter(|(_, short)| is_slow(*short)).map(|(pid, (sum, _))| (pid, sum)).collect()
}
