// SPDX-License-Identifier: MIT OR Apache-2.0
//! Throttling recomputed from what real kernels print of it: for every row of `writeback:balance_dirty_pages` and
//! `writeback:bdi_dirty_ratelimit` the rate, period, pause, next poll interval and base rate from the row's own
//! fields. The rows are of guests of the lab with one CPU and HZ 250, a disk of 20 MB/s, 100 MiB of dirty pages
//! allowed, two writers in the root cgroup, and one each in two cgroups of 96 MiB.
//!
//! What a row does not have is taken from rows near it: thresholds of the machine from the `global_dirty_state` before
//! it, the average bandwidth from the updates before and after it (it is printed before it is updated). A cgroup's own
//! thresholds are known by their sum only, and shares by a scaled set point: there every pair that prints so is tried.

use floodline_kernel::{
    Algorithm, Behaviour, Build, DirtyRatelimit, DirtyThrottleControl, KernelVersion, PauseArithmetic, RatelimitSample,
    task_ratelimit, wb_position_ratio,
};
use std::collections::BTreeMap;

const BUILD: Build = Build { hz: 250, cpus_possible: 1, page_size: 4096 };
const PAUSES: PauseArithmetic = PauseArithmetic::of(BUILD);
/// A jiffy, ms.
const TICK: i64 = 4;
/// The root cgroup's inode number.
const ROOT: u64 = 1;
/// Jiffies between the computation of a pause and its printing, on a guest that is emulated.
const LATE: i64 = 3;
/// Average bandwidth of a new wb, pages per second.
const INITIAL: u64 = 25_600;

/// The machine's domain as it was last looked at by a task, pages.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    dirty: u64,
    bg_thresh: u64,
    thresh: u64,
    limit: u64,
}

/// A row of `balance_dirty_pages`: pages, pages per second, jiffies.
#[derive(Clone, Copy, Debug)]
struct Balance {
    task: u64,
    cgroup: u64,
    limit: u64,
    setpoint: u64,
    dirty: u64,
    wb_setpoint: u64,
    wb_dirty: u64,
    dirty_ratelimit: u64,
    task_ratelimit: u64,
    dirtied: u64,
    dirtied_pause: u64,
    pause: i64,
    period: i64,
    think: i64,
    state: State,
}

/// A row of `bdi_dirty_ratelimit`, pages per second.
#[derive(Clone, Copy, Debug)]
struct Update {
    task: u64,
    cgroup: u64,
    average: u64,
    dirty_rate: u64,
    dirty_ratelimit: u64,
    task_ratelimit: u64,
    balanced: u64,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum Row {
    Balance(Balance),
    Update(Update),
}

fn rows(text: &str) -> Vec<Row> {
    let mut states: BTreeMap<u64, State> = BTreeMap::new();
    let mut rows = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split(',').collect();
        let signed = |at: usize| cells[at].parse::<i64>().unwrap_or_else(|error| panic!("{error} in {line}"));
        let number = |at: usize| u64::try_from(signed(at)).unwrap_or_else(|error| panic!("{error} in {line}"));
        // kB/s, 4 to a page.
        let rate = |at: usize| number(at) / 4;
        let state = states.get(&number(1)).copied().unwrap_or_default();
        match cells[0] {
            "g" => {
                let state = State { dirty: number(2), bg_thresh: number(3), thresh: number(4), limit: number(5) };
                states.insert(number(1), state);
            }
            "r" => rows.push(Row::Update(Update {
                task: number(1),
                cgroup: number(2),
                average: rate(4),
                dirty_rate: rate(5),
                dirty_ratelimit: rate(6),
                task_ratelimit: rate(7),
                balanced: rate(8),
                state,
            })),
            "b" => rows.push(Row::Balance(Balance {
                task: number(1),
                cgroup: number(2),
                limit: number(3),
                setpoint: number(4),
                dirty: number(5),
                wb_setpoint: number(6),
                wb_dirty: number(7),
                dirty_ratelimit: rate(8),
                task_ratelimit: rate(9),
                dirtied: number(10),
                dirtied_pause: number(11),
                pause: signed(12) / TICK,
                period: signed(13) / TICK,
                think: signed(14) / TICK,
                state,
            })),
            other => panic!("{other} in {line}"),
        }
    }
    rows
}

/// How many were looked at, how many are exact, and how many of the others are between what the inputs that are not
/// printed may have been.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    all: u32,
    exact: u32,
    within: u32,
}

impl Share {
    /// A value, and what it may be.
    fn add(&mut self, value: i64, may: &[i64]) {
        let is_exact = may.contains(&value);
        let bounds = may.iter().min().zip(may.iter().max());
        self.all += 1;
        self.exact += u32::from(is_exact);
        self.within += u32::from(!is_exact && bounds.is_some_and(|(least, most)| (*least..=*most).contains(&value)));
    }

    /// Of at least so many rows, so many parts of a thousand are exact, and so many more are within.
    fn holds(self, rows: u32, exact: u32, with_bounds: u32) -> bool {
        self.all >= rows
            && self.exact * 1000 >= self.all * exact
            && (self.exact + self.within) * 1000 >= self.all * with_bounds
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// Rates by position ratio, of the root's wb, whose only domain is the machine's.
    position: Share,
    /// The same of cgroups' wbs.
    position_in_cgroups: Share,
    period: Share,
    pause: Share,
    poll_interval: Share,
    rate_limit: Share,
}

/// Average bandwidths that a wb may have had at a row: as printed before it and after it. `None` after the last update,
/// when nothing tells.
fn averages(rows: &[Row], at: usize, cgroup: u64) -> Option<[u64; 2]> {
    let of = |row: &Row| match row {
        Row::Update(update) if update.cgroup == cgroup => Some(update.average),
        _ => None,
    };
    let before = rows[..at].iter().rev().find_map(of).unwrap_or(INITIAL);
    Some([before, rows[at..].iter().find_map(of)?])
}

/// Smoothed hard limits that a cgroup's domain may have had: rows have them since 6.15. Before, they are the machine's;
/// the cgroup's own follows its threshold up at once and down slowly.
#[derive(Clone, Copy, Debug)]
enum Limits {
    Printed,
    /// The largest threshold so far.
    UpTo(u64),
}

impl Balance {
    /// The free-run ceiling of the domain it is of.
    fn freerun(&self) -> u64 {
        (2 * self.setpoint).saturating_sub(self.limit)
    }

    /// Thresholds that the row may be of: those of the machine, and for a cgroup's wb every pair of its own with the
    /// printed free-run ceiling, background being half of the threshold as it is of the machine's.
    fn domains(&self, limits: Limits) -> Vec<DirtyThrottleControl> {
        let freerun = self.freerun();
        let global = DirtyThrottleControl {
            thresh: self.state.thresh,
            bg_thresh: self.state.bg_thresh,
            dirty: self.dirty,
            dirty_limit: self.state.limit,
            wb_dirty: self.wb_dirty,
            ..DirtyThrottleControl::default()
        };
        let mut domains = vec![global];
        if self.cgroup != ROOT {
            for freerun in freerun.saturating_sub(1)..=freerun + 1 {
                let about = freerun * 4 / 3;
                for thresh in about.saturating_sub(3)..=about + 3 {
                    let hard = match limits {
                        Limits::Printed => self.limit..=self.limit,
                        Limits::UpTo(most) => thresh..=most.max(thresh),
                    };
                    let bg_thresh = (2 * freerun).saturating_sub(thresh);
                    domains.extend(hard.map(|dirty_limit| DirtyThrottleControl {
                        thresh,
                        bg_thresh,
                        dirty_limit,
                        ..global
                    }));
                }
            }
        }
        domains.into_iter().flat_map(|domain| self.shares(domain)).collect()
    }

    /// The same with every share of the wb that prints as the row's set point: it is scaled and cut off.
    fn shares(&self, domain: DirtyThrottleControl) -> Vec<DirtyThrottleControl> {
        let about = self.wb_setpoint * (domain.thresh + 1) / self.setpoint.max(1);
        (about.saturating_sub(1)..about + 3)
            .filter(|share| self.setpoint * share / (domain.thresh + 1) == self.wb_setpoint)
            .map(|wb_thresh| DirtyThrottleControl { wb_thresh, ..domain })
            .collect()
    }

    /// Rates that the task may have been allowed.
    fn rates(&self, algorithm: &Algorithm, averages: [u64; 2], limits: Limits) -> Vec<i64> {
        let rate = |domain: &DirtyThrottleControl, average: u64| {
            task_ratelimit(self.dirty_ratelimit, wb_position_ratio(algorithm, domain, average, false)) as i64
        };
        let domains = self.domains(limits);
        averages.iter().flat_map(|average| domains.iter().map(|domain| rate(domain, *average))).collect()
    }

    /// Jiffies that the pages it dirtied are worth at its rate.
    fn period(&self) -> Option<i64> {
        i64::try_from((BUILD.hz * self.dirtied).checked_div(self.task_ratelimit)?).ok()
    }

    /// What is printed as the pause, and the pages until the next one where it is slept.
    fn pauses(&self, averages: [u64; 2]) -> [(i64, u64); 2] {
        averages.map(|average| {
            let bounds = PAUSES.wb_pause(self.wb_dirty, average, self.dirty_ratelimit, self.task_ratelimit);
            let (most, least) = (bounds.max_pause as i64, bounds.min_pause as i64);
            let pause = match self.task_ratelimit {
                0 => most,
                _ if self.period - self.think < least => (self.period - self.think).min(0),
                _ => (self.period - self.think).min(most),
            };
            (pause, bounds.nr_dirtied_pause)
        })
    }
}

/// What is known from the rows so far.
#[derive(Default)]
struct Known {
    /// What a task may dirty until its next row.
    next: BTreeMap<u64, Vec<i64>>,
    /// Rates of a wb.
    rates: BTreeMap<u64, DirtyRatelimit>,
    /// The largest free-run ceiling of a cgroup.
    ceilings: BTreeMap<u64, u64>,
}

fn judge(rows: &[Row], kernel: KernelVersion) -> Found {
    let algorithm = Algorithm::of(kernel);
    // f1ab2831e2a4, 6.15.
    let prints_own = Behaviour::of(kernel).files.trace_has_domain;
    let (mut found, mut known) = (Found::default(), Known::default());
    for (at, row) in rows.iter().enumerate() {
        match row {
            Row::Balance(row) => {
                let most = known.ceilings.entry(row.cgroup).or_default();
                *most = row.freerun().max(*most);
                let limits = if prints_own { Limits::Printed } else { Limits::UpTo(*most * 4 / 3 + 3) };
                found.poll_interval(row, known.next.remove(&row.task));
                if let Some(averages) = averages(rows, at, row.cgroup) {
                    let rates = row.rates(&algorithm, averages, limits);
                    let of_root = row.cgroup == ROOT;
                    let share = if of_root { &mut found.position } else { &mut found.position_in_cgroups };
                    share.add(row.task_ratelimit as i64, &rates);
                    let pauses = row.pauses(averages);
                    found.pause(row, pauses.map(|(pause, _)| pause));
                    if row.pause > 0 {
                        known.next.insert(row.task, pauses.map(|(_, pages)| pages as i64).to_vec());
                    }
                }
                if let Some(period) = row.period() {
                    found.period.add(row.period, &[period]);
                }
            }
            Row::Update(row) => {
                let now =
                    DirtyRatelimit { dirty_ratelimit: row.dirty_ratelimit, balanced_dirty_ratelimit: row.balanced };
                if let Some(before) = known.rates.insert(row.cgroup, now) {
                    let may = updates(&algorithm, prints_own, rows, at, row, before);
                    let may: Vec<i64> = may.iter().map(|rates| rates.dirty_ratelimit as i64).collect();
                    found.rate_limit.add(now.dirty_ratelimit as i64, &may);
                }
            }
        }
    }
    found
}

impl Found {
    /// The clock goes on until the row is printed: more time was thought then than was counted, and the pause is
    /// longer than by the printed numbers.
    fn pause(&mut self, row: &Balance, pauses: [i64; 2]) {
        let late = pauses.map(|pause| pause + LATE);
        let may = if pauses.contains(&row.pause) { pauses.to_vec() } else { [pauses, late].concat() };
        self.pause.add(row.pause, &may);
    }

    /// A look that found the domains in free run prints nothing, and leaves a power of two.
    fn poll_interval(&mut self, row: &Balance, may: Option<Vec<i64>>) {
        let Some(mut may) = may else { return };
        let pages = row.dirtied_pause as i64;
        if !may.contains(&pages) && row.dirtied_pause.is_power_of_two() {
            may.extend([pages - 1, pages + 1]);
        }
        self.poll_interval.add(pages, &may);
    }
}

/// What a wb's rates may be after an update, by the machine's domain and, for a cgroup's, by its own, which the row that
/// follows has.
fn updates(
    algorithm: &Algorithm,
    prints_own: bool,
    rows: &[Row],
    at: usize,
    row: &Update,
    before: DirtyRatelimit,
) -> Vec<DirtyRatelimit> {
    // The ratio that gives the printed rate, which is one more than it.
    let wanted = row.task_ratelimit.saturating_sub(1);
    let about = wanted * 1024 / before.dirty_ratelimit.max(1);
    let gives = |ratio: &u64| task_ratelimit(before.dirty_ratelimit, *ratio) == wanted;
    let Some(pos_ratio) = (about..about + 3).find(gives) else { return Vec::new() };
    let sample = RatelimitSample {
        pos_ratio,
        avg_write_bandwidth: row.average,
        dirtied: row.dirty_rate,
        elapsed: BUILD.hz,
        strictlimit: false,
    };
    let global = DirtyThrottleControl {
        thresh: row.state.thresh,
        bg_thresh: row.state.bg_thresh,
        dirty: row.state.dirty,
        dirty_limit: row.state.limit,
        ..DirtyThrottleControl::default()
    };
    let of_task = |next: &Row| match next {
        Row::Balance(next) if next.task == row.task => Some(*next),
        _ => None,
    };
    let limits = if prints_own { Limits::Printed } else { Limits::UpTo(0) };
    let own = rows[at..].iter().find_map(of_task).into_iter().flat_map(|next| next.domains(limits));
    let domains = std::iter::once(global).chain(own);
    let of = |domain| before.update(algorithm, BUILD, &domain, &sample);
    domains.map(of).filter(|rates| rates.balanced_dirty_ratelimit == row.balanced).collect()
}

/// Release, and its rows.
const KERNELS: [((u16, u16), &str); 4] = [
    ((5, 10), include_str!("../fixtures/throttle/5.10.csv")),
    ((6, 1), include_str!("../fixtures/throttle/6.1.csv")),
    ((6, 12), include_str!("../fixtures/throttle/6.12.csv")),
    ((7, 2), include_str!("../fixtures/throttle/7.2.csv")),
];

#[test]
fn rows_of_real_kernels_are_recomputed_from_their_own_fields() {
    for (release, text) in KERNELS {
        let found = judge(&rows(text), KernelVersion::new(release.0, release.1, 0));
        assert!(found.period.holds(250, 1000, 1000), "{release:?}: {found:?}");
        assert!(found.rate_limit.holds(40, 1000, 1000), "{release:?}: {found:?}");
        assert!(found.position.holds(60, 990, 1000), "{release:?}: {found:?}");
        assert!(found.position_in_cgroups.holds(100, 990, 1000), "{release:?}: {found:?}");
        // The rest was printed late, or ran freely in between.
        assert!(found.pause.holds(350, 950, 1000), "{release:?}: {found:?}");
        assert!(found.poll_interval.holds(70, 900, 1000), "{release:?}: {found:?}");
    }
}

#[test]
fn rows_that_no_kernel_printed_are_told() {
    for (release, text) in KERNELS {
        let mut rows = rows(text);
        for (at, row) in rows.iter_mut().enumerate() {
            match row {
                Row::Balance(row) => {
                    row.task_ratelimit += row.task_ratelimit / 64 + 1;
                    row.period += 1;
                    row.dirtied_pause += 3;
                }
                Row::Update(row) => row.dirty_ratelimit += at as u64,
            }
        }
        let found = judge(&rows, KernelVersion::new(release.0, release.1, 0));
        let is_told = |share: Share| share.exact * 4 <= share.all;
        assert!(is_told(found.position), "{release:?}: {found:?}");
        assert!(is_told(found.rate_limit) && is_told(found.poll_interval), "{release:?}: {found:?}");
        assert!(is_told(found.position_in_cgroups), "{release:?}: {found:?}");
    }
}
