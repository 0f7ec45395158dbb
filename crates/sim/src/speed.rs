// SPDX-License-Identifier: MIT OR Apache-2.0
//! Speed of the machine's CPU: the cost of a byte, a call and a fault on the assumed CPU, and the factors by which
//! another CPU is slower. A recording gives the factors by the CPU time of the workload's own processes: one for
//! copies, one for calls, and one for everything else. An emulated CPU copies some 20 times as slowly as the assumed
//! one, and takes hundreds of times as long to enter the kernel, to go to sleep and to wake up. The factors depend on
//! no latency and no throughput of the recording.

use crate::world::Costs;
use floodline_record::id::Entity;
use floodline_record::record::What;
use floodline_record::sample::ProcessRow;
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use std::collections::BTreeMap;

/// Two bytes a nanosecond into the page cache, and more out of it.
pub(crate) const COSTS: Costs = Costs {
    copy_in: 2_000_000_000,
    copy_out: 4_000_000_000,
    call: 1_000,
    create: 4_000,
    start: 0,
    request: 5_000,
    map: 1_000,
    convert: 2_000,
    page: 200,
    switch_inode: 1_000,
    switch_folio: 100,
    list_step: 25,
    list_visit: 2,
    evict: 250,
    fault: 2_000,
    percent: ONE,
};

/// The assumed CPU time, in hundredths.
const ONE: u64 = 100;
/// Least CPU time to measure a speed by: CPU time is counted in ticks.
const LEAST: u64 = 200_000_000;
/// Largest plausible slowdown.
const MOST: u64 = 1_000 * ONE;

/// A pooled factor from which a CPU is taken for an emulated one, hundredths.
const EMULATED: u64 = 5 * ONE;
/// Factor of calls over that of copies on an emulated CPU, used for calls where the processes of a recording differ too
/// little to measure both. Median of the recordings that show it: 30 (from 5 to 90).
const CALLS_PER_COPY: f64 = 30.0;
/// Plausible range of that ratio. A fit outside of it measured something else.
const PLAUSIBLE: std::ops::RangeInclusive<f64> = 1.0..=150.0;
/// Least difference between processes, as the determinant of their normalised costs: 0 if all do the same, 1 if one only
/// copies and another only calls.
const DIFFERENT: f64 = 0.1;
/// Part of the factor of calls that a call takes on an emulated CPU: a quarter. The rest of the CPU time is spent between two
/// calls, where a program goes to sleep and wakes up.
const PER_CALL: u64 = 4;
/// The same for submitting a request and waiting for it: half. The thread of a journal used 0.7 ms for each request, and the
/// kernel's workers about as much.
const PER_REQUEST: u64 = 2;
/// The same for mapping the blocks of a run and handing it to the queue: a fifth, as no thread goes to sleep or wakes up between
/// two runs of a file. An fsync of 600 scattered runs took 77 ms (median of 7), and 217 ms in the model with a half. With slow
/// runs, others get their requests into the queue among those of a flusher, where real ones come too late and wait until
/// writeback throttling has let the queue drain.
const PER_RUN: u64 = 5;

/// Speed of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    /// CPU time over that of the assumed machine, hundredths.
    pub slowdown: u64,
    /// The same for copies between programs and the page cache alone.
    pub copies: u64,
    /// The same for system calls and what surrounds them alone: going to sleep and waking up.
    pub calls: u64,
    /// CPU time per second that the recorder uses.
    pub observer: Nanos,
}

impl Default for Speed {
    /// The assumed machine, on which the recorder uses no CPU time.
    fn default() -> Speed {
        Speed { slowdown: ONE, copies: ONE, calls: ONE, observer: Nanos(0) }
    }
}

impl Costs {
    /// Costs on a machine of the given speed.
    pub(crate) fn on(self, machine: &Speed) -> Costs {
        let [all, copies, calls] =
            [machine.slowdown, machine.copies, machine.calls].map(|factor| factor.clamp(1, MOST));
        let part = |of: u64| if all > EMULATED { (calls / of).max(1) } else { calls };
        let (requests, runs, calls) = (part(PER_REQUEST), part(PER_RUN), part(PER_CALL));
        let time = |nanos: u64, percent: u64| nanos * percent / ONE;
        let speed = |bytes: u64| (u128::from(bytes) * u128::from(ONE) / u128::from(copies)).max(1);
        let speed = |bytes: u64| u64::try_from(speed(bytes)).unwrap_or(u64::MAX);
        Costs {
            copy_in: speed(self.copy_in),
            copy_out: speed(self.copy_out),
            call: time(self.call, calls),
            create: time(self.create, calls),
            // Up to a millisecond per time that it is slower.
            start: all.saturating_sub(ONE) * 10_000,
            request: time(self.request, requests),
            map: time(self.map, runs),
            convert: time(self.convert, requests),
            page: time(self.page, copies),
            switch_inode: time(self.switch_inode, all),
            switch_folio: time(self.switch_folio, all),
            list_step: time(self.list_step, all),
            list_visit: time(self.list_visit, all),
            evict: time(self.evict, all),
            fault: time(self.fault, all),
            percent: all,
        }
    }
}

/// CPU time of a process, and the cost of what it did on the assumed machine, nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Used {
    cpu: u64,
    /// Cost of the bytes that it copied, and of its faults.
    copies: f64,
    /// Cost of its calls.
    calls: f64,
}

impl Used {
    /// What a process used. `creates` and `syncs` are files that it created and calls that made data durable: the kernel
    /// does not count the calls that open, close and sync. Returns nothing for a process that mostly computes: its calls
    /// do not explain its CPU time, and a task that computes until the end has counted no operation.
    fn of(row: &ProcessRow, creates: u64, syncs: u64) -> Option<Used> {
        let (user, system) = (row.utime?.0, row.stime?.0);
        if user > system {
            return None;
        }
        // A damaged recording may have any number.
        let calls = row.syscr?.0 as f64 + row.syscw?.0 as f64;
        let copied = |bytes: u64, speed: u64| bytes as f64 * 1e9 / speed as f64;
        let faults = row.minflt?.0 as f64 + row.majflt?.0 as f64;
        let nanos = calls * COSTS.call as f64
            + creates as f64 * (COSTS.create + 2 * COSTS.call) as f64
            + syncs as f64 * (COSTS.call + COSTS.request) as f64;
        let copies = copied(row.wchar?.0, COSTS.copy_in) + copied(row.rchar?.0, COSTS.copy_out);
        Some(Used {
            cpu: user.saturating_add(system),
            // A fault works on memory and does not sleep, as a copy. Each process has some hundreds while it starts.
            copies: copies + faults * COSTS.fault as f64,
            calls: nanos,
        })
    }
}

/// The factors of copies and of calls that explain the CPU time of processes best, by least squares of the relative
/// errors weighted by CPU time. Where the processes differ too little to tell both, or tell a ratio that is not plausible,
/// the ratio of the two is assumed, and the factors explain the sum of all. `pooled` is the one factor that explains it.
fn factors(all: &[Used], pooled: f64) -> (f64, f64) {
    let sum = |of: &dyn Fn(&Used) -> f64| all.iter().map(of).sum::<f64>();
    let weighed = |of: fn(&Used) -> f64| sum(&|used| of(used) / (used.cpu as f64).max(1.0));
    let (aa, bb) = (weighed(|used| used.copies * used.copies), weighed(|used| used.calls * used.calls));
    let ab = weighed(|used| used.copies * used.calls);
    let (a, b) = (sum(&|used| used.copies), sum(&|used| used.calls));
    let determinant = aa * bb - ab * ab;
    let mut ratio = if pooled * ONE as f64 > EMULATED as f64 { CALLS_PER_COPY } else { 1.0 };
    if determinant > DIFFERENT * aa * bb {
        let (copies, calls) = ((a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant);
        if copies > 0.0 && PLAUSIBLE.contains(&(calls / copies)) {
            return (copies, calls);
        }
        // Programs that sync all the time use CPU time that the count of their calls does not show.
        if calls > copies.max(0.0) * PLAUSIBLE.end() {
            ratio = *PLAUSIBLE.end();
        }
    }
    let copies = pooled * (a + b) / (a + ratio * b);
    (copies, ratio * copies)
}

impl Speed {
    /// Measures the machine of a recording: the CPU time of the workload's processes over the cost of their bytes,
    /// calls and faults on the assumed machine. Returns nothing if they did too little. Tasks that burn CPU time of
    /// their own do not count. The observer is the first process, which records in a guest of the lab.
    pub fn of(window: &Window) -> Option<Speed> {
        let done = |task: &str, operations: &[&str]| -> u64 {
            let is_of = |of: &str, named: &str| of == task && operations.contains(&named);
            let counts = window.events.iter().map(|event| match &event.what {
                What::TaskOperations { task: of, operation: named, count, .. } if is_of(&of.task, named) => *count,
                _ => 0,
            });
            counts.sum()
        };
        let growth = |wanted: u32| {
            let is_it = |entity: &Entity| matches!(entity, Entity::Process { pid, .. } if *pid == wanted);
            let (id, _) = window.entities.iter().find(|(_, entity)| is_it(entity))?;
            window.processes.get(id).map(|span| (&span.growth, span.seconds()))
        };
        let started = window.events.iter().filter_map(|event| match &event.what {
            What::TaskStarted { task, pid: Some(pid) } => Some((task.task.as_str(), *pid)),
            _ => None,
        });
        let started: Vec<(&str, u32)> = started.collect();
        let mut copies: BTreeMap<&str, u64> = BTreeMap::new();
        for (task, _) in &started {
            *copies.entry(task).or_default() += 1;
        }
        let mut all = Vec::new();
        for (task, pid) in started {
            if done(task, &["burn"]) > 0 {
                continue;
            }
            // Operations are counted for all copies together.
            let each = |operations: &[&str]| done(task, operations) / copies[task];
            let Some((row, _)) = growth(pid) else { continue };
            let syncs = each(&["fsync", "fdatasync", "msync"]);
            let Some(used) = Used::of(row, each(&["create"]), syncs) else { continue };
            all.push(used);
        }
        let total = all.iter().fold(0u64, |sum, used| sum.saturating_add(used.cpu));
        let assumed: f64 = all.iter().map(|used| used.copies + used.calls).sum();
        if total < LEAST || assumed < 1.0 {
            return None;
        }
        let pooled = total as f64 / assumed;
        let (copies, calls) = factors(&all, pooled);
        let [slowdown, copies, calls] =
            [pooled, copies, calls].map(|factor| ((factor * ONE as f64) as u64).clamp(1, MOST));
        let used = |row: &ProcessRow| Some(row.utime?.0.saturating_add(row.stime?.0));
        let observer = growth(1).and_then(|(row, seconds)| Some(used(row)? as f64 / seconds.max(1e-9)));
        let observer = Nanos(observer.map_or(0, |nanos| nanos as u64).min(900_000_000));
        Some(Speed { slowdown, copies, calls, observer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slower_machine_takes_longer_for_everything() {
        let machine = Speed { slowdown: 4_000, copies: 2_000, calls: 60_000, observer: Nanos(0) };
        let slow = COSTS.on(&machine);
        assert_eq!((slow.copy_in, slow.call, slow.fault), (100_000_000, 150_000, 80_000));
        assert_eq!((slow.request, slow.page, slow.list_step), (1_500_000, 4_000, 1_000));
        assert_eq!(slow.map, 120_000, "a run of pages needs no sleep");
        let assumed = COSTS.on(&Speed::default());
        assert_eq!((assumed.copy_out, assumed.request, assumed.page), (COSTS.copy_out, COSTS.request, COSTS.page));
        let none = Speed { slowdown: 0, copies: 0, calls: 0, observer: Nanos(0) };
        assert_eq!(COSTS.on(&none).call, 10, "no division by nothing");
    }

    #[test]
    fn the_cpu_time_of_what_was_done_tells_the_speed() {
        use floodline_record::units::{Bytes, Count};
        let row = ProcessRow {
            rchar: Some(Bytes(0)),
            wchar: Some(Bytes(2_000_000)),
            syscr: Some(Count(10)),
            syscw: Some(Count(90)),
            minflt: Some(Count(50)),
            majflt: Some(Count(0)),
            utime: Some(Nanos(300)),
            stime: Some(Nanos(700)),
            ..ProcessRow::default()
        };
        let used = Used::of(&row, 25, 10).map(|used| (used.cpu, used.copies, used.calls));
        assert_eq!(used, Some((1_000, 1_000_000.0 + 100_000.0, 100_000.0 + 150_000.0 + 60_000.0)));
        assert!(Used::of(&ProcessRow::default(), 0, 0).is_none(), "unknown is not nothing");
        let computes = ProcessRow { utime: Some(Nanos(701)), ..row };
        assert!(Used::of(&computes, 25, 10).is_none(), "it computes");
        assert_eq!(Speed::of(&Window::default()), None);
    }

    #[test]
    fn processes_that_differ_tell_the_factors_of_copies_and_of_calls() {
        let check = |all: &[Used], pooled: f64, expect: (f64, f64)| {
            let (copies, calls) = factors(all, pooled);
            let is_near = (copies / expect.0 - 1.0).abs() < 0.01 && (calls / expect.1 - 1.0).abs() < 0.01;
            assert!(is_near, "{copies}, {calls}: expected {expect:?}");
        };
        let used = |copies: f64, calls: f64| Used { cpu: (20.0 * copies + 600.0 * calls) as u64, copies, calls };
        let (stream, appender) = (used(250e6, 7e6), used(2e6, 1e6));
        check(&[stream, appender], 38.0, (20.0, 600.0));
        // One kind of process: its sum decides, and the ratio is assumed.
        check(&[stream, stream], 9_200.0 / 257.0, (20.0, 600.0));
        // A program that syncs all the time: its calls seem 3300 times as dear as assumed, 240 times the copies.
        let syncs = Used { cpu: 10_000_000_000, copies: 1e6, calls: 3e6 };
        check(&[used(445e6, 1e6), syncs], 19_500.0 / 450.0, (18.64, 2_796.0));
        check(&[Used { cpu: 257_000_000, ..stream }], 1.0, (1.0, 1.0));
    }
}
