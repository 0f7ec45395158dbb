// SPDX-License-Identifier: MIT OR Apache-2.0
//! Speed of the machine's CPU: the cost of a byte, a call and a fault on the assumed CPU, and the factor by which
//! another CPU is slower. A recording gives that factor by the CPU time of the workload's own processes. It is one
//! number, which depends on no latency and no throughput.

use crate::world::Costs;
use floodline_record::id::Entity;
use floodline_record::record::What;
use floodline_record::sample::ProcessRow;
use floodline_record::units::Nanos;
use floodline_record::window::Window;

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
/// Least CPU use of a process to be measured: processes that mostly sleep spend their time on waking up.
const BUSY: f64 = 0.1;
/// Largest plausible slowdown.
const MOST: u64 = 1_000 * ONE;

/// Speed of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    /// CPU time over that of the assumed machine, hundredths.
    pub slowdown: u64,
    /// CPU time per second that the recorder uses.
    pub observer: Nanos,
}

impl Default for Speed {
    /// The assumed machine, on which the recorder uses no CPU time.
    fn default() -> Speed {
        Speed { slowdown: ONE, observer: Nanos(0) }
    }
}

impl Costs {
    /// Costs on a machine that takes `percent` of the assumed CPU time.
    pub(crate) fn slower(self, percent: u64) -> Costs {
        let percent = percent.clamp(1, MOST);
        let time = |nanos: u64| nanos * percent / ONE;
        let speed = |bytes: u64| (u128::from(bytes) * u128::from(ONE) / u128::from(percent)).max(1);
        let speed = |bytes: u64| u64::try_from(speed(bytes)).unwrap_or(u64::MAX);
        Costs {
            copy_in: speed(self.copy_in),
            copy_out: speed(self.copy_out),
            call: time(self.call),
            create: time(self.create),
            // Up to a millisecond per time that it is slower.
            start: percent.saturating_sub(ONE) * 10_000,
            request: time(self.request),
            map: time(self.map),
            convert: time(self.convert),
            page: time(self.page),
            switch_inode: time(self.switch_inode),
            switch_folio: time(self.switch_folio),
            list_step: time(self.list_step),
            list_visit: time(self.list_visit),
            evict: time(self.evict),
            fault: time(self.fault),
            percent,
        }
    }

    /// Cost of the calls and bytes of a process on this machine, nanoseconds.
    fn of(self, row: &ProcessRow, creates: u64) -> Option<u128> {
        let calls = u128::from(row.syscr?.0) + u128::from(row.syscw?.0);
        let copied = |bytes: u64, speed: u64| u128::from(bytes) * 1_000_000_000 / u128::from(speed);
        let bytes = copied(row.wchar?.0, self.copy_in) + copied(row.rchar?.0, self.copy_out);
        let faults = u128::from(row.minflt?.0) + u128::from(row.majflt?.0);
        // Opening and closing are not counted by the kernel.
        let once = calls * u128::from(self.call) + u128::from(creates) * u128::from(self.create + 2 * self.call);
        Some(once + bytes + faults * u128::from(self.fault))
    }
}

impl Speed {
    /// Measures the machine of a recording: the CPU time of the workload's processes over the cost of their bytes,
    /// calls and faults on the assumed machine. Returns nothing if they did too little. Tasks that burn CPU time of
    /// their own do not count. The observer is the first process, which records in a guest of the lab.
    pub fn of(window: &Window) -> Option<Speed> {
        let done = |task: &str, operation: &str| -> u64 {
            let is_of = |of: &str, named: &str| of == task && named == operation;
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
        let used = |row: &ProcessRow| Some(row.utime?.0 + row.stime?.0);
        let (mut total, mut assumed, mut longest) = (0_u64, 0_u128, 0.0_f64);
        let mut seen: Vec<&str> = Vec::new();
        for event in &window.events {
            let What::TaskStarted { task, pid: Some(pid) } = &event.what else { continue };
            if done(&task.task, "burn") > 0 {
                continue;
            }
            // Operations are counted for all copies together.
            let creates = if seen.contains(&task.task.as_str()) { 0 } else { done(&task.task, "create") };
            seen.push(&task.task);
            let Some((row, seconds)) = growth(*pid) else { continue };
            let (Some(used), Some(cost)) = (used(row), COSTS.of(row, creates)) else { continue };
            total += used;
            assumed += cost;
            longest = longest.max(seconds);
        }
        let share = total as f64 / 1e9 / longest.max(1e-9);
        if total < LEAST || assumed == 0 || share < BUSY {
            return None;
        }
        let slowdown = u128::from(total) * u128::from(ONE) / assumed;
        let slowdown = u64::try_from(slowdown).unwrap_or(MOST).clamp(1, MOST);
        let observer = growth(1).and_then(|(row, seconds)| Some(used(row)? as f64 / seconds.max(1e-9)));
        let observer = Nanos(observer.map_or(0, |nanos| nanos as u64).min(900_000_000));
        Some(Speed { slowdown, observer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slower_machine_takes_longer_for_everything() {
        let slow = COSTS.slower(4_000);
        assert_eq!((slow.copy_in, slow.call, slow.fault), (50_000_000, 40_000, 80_000));
        assert_eq!(COSTS.slower(ONE).copy_out, COSTS.copy_out);
        assert_eq!(COSTS.slower(0).call, 10, "no division by nothing");
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
            ..ProcessRow::default()
        };
        assert_eq!(COSTS.of(&row, 25), Some(1_000_000 + 100_000 + 150_000 + 100_000));
        assert_eq!(COSTS.of(&ProcessRow::default(), 0), None, "unknown is not nothing");
        assert_eq!(Speed::of(&Window::default()), None);
    }
}
