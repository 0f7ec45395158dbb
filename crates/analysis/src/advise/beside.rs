// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cost of smaller thresholds for a sync beside a program that writes faster than the disk. With large thresholds such a
//! program writes into memory, and the disk follows later. With small ones the disk is full while the program writes: the
//! wait moves there. Computed from the rates of the window, because no threshold tells how fast programs write.

use super::threshold::Pair;
use crate::diagnose::derived::Derived;
use crate::diagnose::device::{Device, Speed};
use floodline_record::human;
use floodline_record::units::{Nanos, Pages};

/// A wait that people notice, seconds.
const NOTICED_S: f64 = 1.0;

/// Programs that will fill the disk while they write.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ahead {
    /// The most that is unwritten while the flusher works, bytes.
    most: f64,
    /// The highest rate at which they dirty, bytes per second.
    rate: f64,
    /// Time for which the disk then writes at its full speed, seconds.
    full_s: f64,
}

/// How the cost of syncs begins. It follows from rates of the window, some of which may be those of a program that catches up after a stall.
pub(crate) const OF_SYNCS: &str = "Programs dirty up to ";
/// Its last sentence begins so.
const LAST_OF_SYNCS: &str = "More syncs wait than now, each for about ";

/// States how long a sync on the device will wait while programs write faster than the device. Returns `None` if no
/// program does, or if the pair is in percent.
pub fn cost_of_syncs(derived: &Derived<'_>, device: &Device<'_>, speed: Option<Speed>, pair: Pair) -> Option<String> {
    let Pair::Bytes { hard, background } = pair else { return None };
    let speed = speed.filter(|speed| speed.basis.is_known() && speed.value > 0.0)?.value;
    let ahead = ahead(&dirtied(derived, device), speed, background as f64, hard as f64)?;
    let seconds = ahead.most / speed;
    let full_now: f64 = device.intervals().iter().filter(|one| one.is_saturated()).map(|one| one.seconds).sum();
    (seconds >= NOTICED_S).then(|| {
        format!(
            "{OF_SYNCS}{}, and {} writes {}. If they still do that after the change, the disk is full for about {} (now {}). \
             {LAST_OF_SYNCS}{} ({}).",
            human::bytes_per_second(ahead.rate),
            device.name,
            human::bytes_per_second(speed),
            human::seconds(ahead.full_s),
            human::seconds(full_now),
            human::seconds(seconds),
            human::bytes(ahead.most)
        )
    })
}

/// Returns a cost without that of syncs, if it has one: a trial on a twin shows better how long they wait.
pub(crate) fn without_cost_of_syncs(cost: &str) -> String {
    let cut = || {
        let (before, rest) = cost.split_once(OF_SYNCS)?;
        let (_, after) = rest.split_once(LAST_OF_SYNCS)?;
        let (_, after) = after.split_once(").")?;
        Some(format!("{before}{}", after.trim_start()).trim_end().to_owned())
    };
    cut().unwrap_or_else(|| cost.to_owned())
}

/// Share of the disk's time from which the cost of held data is stated.
const BUSY_NAMED: f64 = 0.02;

/// States the cost of writing the data that stayed in memory for the whole window. `None` where the disk wrote about as much as
/// was dirtied, or where its speed is not known.
pub fn cost_of_held(derived: &Derived<'_>, device: &Device<'_>, speed: Option<Speed>) -> Option<String> {
    let speed = speed.filter(|speed| speed.basis.is_known() && speed.value > 0.0)?.value;
    let intervals = dirtied(derived, device);
    let seconds: f64 = intervals.iter().map(|(seconds, _)| seconds).sum();
    let dirtied: f64 = intervals.iter().map(|(_, bytes)| bytes).sum();
    let written: f64 = device.intervals().iter().map(|one| one.written_bytes).sum();
    let held = (dirtied - written) / seconds.max(f64::MIN_POSITIVE);
    let share = held / speed;
    // Its time is taken already.
    let is_full = device.utilisation().is_some_and(|busy| busy + share > 1.0);
    (seconds > 0.0 && share >= BUSY_NAMED).then(|| {
        if is_full {
            return format!(
                "{} has no time left for the {} that now stay in memory. The programs that write this data then wait for the disk.",
                device.name,
                human::bytes_per_second(held)
            );
        }
        format!(
            "{} then also writes the {} that now stay in memory. That takes {} of its time. Syncs wait behind it.",
            device.name,
            human::bytes_per_second(held),
            human::percent(share.min(1.0))
        )
    })
}

/// Bytes dirtied for a device in each interval, with its seconds: by the counter of its backing device where there are
/// several devices, otherwise by that of the machine. Empty where neither tells.
fn dirtied(derived: &Derived<'_>, device: &Device<'_>) -> Vec<(f64, f64)> {
    let between = |(at, bytes): (Nanos, u64), (next_at, next): (Nanos, u64)| {
        let seconds = Nanos(next_at.0.checked_sub(at.0)?).as_secs_f64();
        Some((seconds, next.checked_sub(bytes)? as f64))
    };
    let readings: Vec<(Nanos, u64)> = match derived.drains().len() {
        0 | 1 => {
            let of = |pages: Pages| pages.bytes(derived.page_size).0;
            let series = derived.window.host_series.iter();
            series.filter_map(|(at, row)| Some((at.monotonic, row.nr_dirtied.map(of)?))).collect()
        }
        _ => {
            let series = device.bdi_series().unwrap_or_default().iter();
            series.filter_map(|(at, row)| Some((*at, row.dirtied?.0))).collect()
        }
    };
    readings.windows(2).filter_map(|pair| between(pair[0], pair[1])).collect()
}

/// The level under a pair of thresholds: the disk writes above the background threshold, writers are paused at the hard
/// one. Only what is unwritten while they dirty faster than the disk writes counts.
fn ahead(intervals: &[(f64, f64)], speed: f64, background: f64, hard: f64) -> Option<Ahead> {
    let (mut level, mut held, mut full_s) = (0.0_f64, 0.0_f64, 0.0_f64);
    let mut ahead: Option<(f64, f64)> = None;
    for (seconds, dirtied) in intervals.iter().filter(|(seconds, _)| *seconds > 0.0) {
        // What writers could not dirty yet they dirty as soon as there is room.
        let wanted = dirtied + held;
        let rate = dirtied / seconds;
        let writes = (level + wanted - background).clamp(0.0, speed * seconds);
        let next = level + wanted - writes;
        (level, held) = (next.min(hard), (next - hard).max(0.0));
        full_s += writes / speed;
        if level > background && (rate > speed || held > 0.0) {
            let (most, fastest) = ahead.unwrap_or_default();
            ahead = Some((most.max(level), fastest.max(rate)));
        }
    }
    ahead.map(|(most, rate)| Ahead { most, rate, full_s })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::device::{Basis, drains};
    use floodline_testkit::incidents::dirty_cliff;
    use floodline_testkit::{Fixture, grows};

    const MIB: f64 = 1048576.0;
    const PAIR: Pair = Pair::Bytes { hard: 64 << 20, background: 16 << 20 };

    fn check(intervals: &[(f64, f64)], expect: Option<f64>) {
        let most = ahead(intervals, 20.0 * MIB, 16.0 * MIB, 64.0 * MIB).map(|ahead| ahead.most / MIB);
        assert_eq!(most, expect);
    }

    #[test]
    fn a_program_that_is_slower_than_the_disk_leaves_room_for_syncs() {
        check(&[(1.0, 10.0 * MIB); 30], None);
        // The flusher catches up after each piece.
        check(&[(1.0, 30.0 * MIB), (1.0, 0.0), (1.0, 0.0)], None);
    }

    #[test]
    fn a_program_that_is_faster_fills_it_up_to_the_hard_threshold() {
        check(&[(1.0, 40.0 * MIB), (1.0, 0.0)], Some(20.0));
        check(&[(1.0, 120.0 * MIB), (1.0, 0.0), (1.0, 0.0)], Some(64.0));
        check(&[(1.0, 30.0 * MIB); 3], Some(36.0));
    }

    #[test]
    fn the_time_at_full_speed_is_what_is_written_divided_by_the_speed() {
        let full = |intervals: &[(f64, f64)]| ahead(intervals, 20.0 * MIB, 16.0 * MIB, 64.0 * MIB).unwrap().full_s;
        assert_eq!(full(&[(1.0, 40.0 * MIB), (1.0, 0.0)]), 1.2);
        assert_eq!(full(&[(1.0, 30.0 * MIB); 3]), 2.7);
    }

    #[test]
    fn what_stays_in_memory_now_is_named_with_the_time_that_its_writing_takes() {
        let speed = Some(Speed { value: 20.0 * MIB, basis: Basis::Saturated });
        let held = |pages: f64, written: f64| {
            let fixture = dirty_cliff()
                .host(move |t, row| row.nr_dirtied = grows(t, 0, pages))
                .disk("sda", move |t, row| row.written = grows(t, 0, written));
            let window = fixture.window();
            cost_of_held(&Derived::of(&window), &drains(&window)[0], speed)
        };
        let text = held(768.0, MIB).unwrap();
        assert_eq!(
            text,
            "sda then also writes the 2.00 MiB/s that now stay in memory. That takes 10 % of its time. Syncs wait behind it."
        );
        assert_eq!(held(256.0, MIB), None, "all of it is written already");
        // A disk that is busy all the time does not write more.
        let busy = dirty_cliff().host(|t, row| row.nr_dirtied = grows(t, 0, 768.0)).disk("sda", |t, row| {
            row.written = grows(t, 0, MIB);
            row.io_time = Some(Nanos((t * 1e9) as u64));
        });
        let window = busy.window();
        let text = cost_of_held(&Derived::of(&window), &drains(&window)[0], speed).unwrap();
        assert!(text.starts_with("sda has no time left for the 2.00 MiB/s that now stay in memory."), "{text}");
    }

    fn said(fixture: &Fixture) -> Option<String> {
        let window = fixture.window();
        let speed = Speed { value: 20.0 * MIB, basis: Basis::Saturated };
        cost_of_syncs(&Derived::of(&window), &drains(&window)[0], Some(speed), PAIR)
    }

    #[test]
    fn the_wait_is_said_where_the_rates_show_it() {
        let of =
            |pages_per_second: f64| dirty_cliff().host(move |t, row| row.nr_dirtied = grows(t, 0, pages_per_second));
        assert_eq!(said(&of(1000.0)), None);
        let text = said(&of(20_000.0)).unwrap();
        assert!(text.starts_with("Programs dirty up to 78.1 MiB/s, and "), "{text}");
        assert!(text.ends_with("More syncs wait than now, each for about 3.20 s (64.0 MiB)."), "{text}");
        assert_eq!(super::without_cost_of_syncs(&text), "");
        let among = format!("Less is held. {text} Pages are written more often.");
        assert_eq!(super::without_cost_of_syncs(&among), "Less is held. Pages are written more often.");
        assert_eq!(super::without_cost_of_syncs("Less is held."), "Less is held.");
    }
}
