// SPDX-License-Identifier: MIT OR Apache-2.0
//! Readings of counters that only a run of the twin can decide. Without a trace, a program that appends may write one file that grows or
//! many files, each of which gets old by itself. One that waits whenever it writes may sync after some of its calls, once at the end of
//! each burst, or never: then a limit holds it up. Where the twin misses its recording, the other readings are tried for the programs that
//! wrote most. The one that is clearly nearest to the recording is taken.

use super::group::{Group, PAGE};
use super::made::Made;
use super::nearer::{BY, CLEARLY, SIZE_MAX, ran};
use super::replaced::Replaced;
use super::syncs::{Syncs, rested, runs};
use super::{Fit, Fitted, made, rounds};
use crate::backtest::{Figure, backtest};
use crate::patience::EVENTS_MAX;
use crate::provenance::Origin;
use crate::{Recorded, Twin, TwinError};
use floodline_analysis::prediction::{LONGEST, WAITS};
use floodline_record::version::KernelVersion;
use floodline_scenario::SyncCall;
use std::collections::BTreeMap;

/// A reading of the counters of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Each of its calls writes a file of its own. Each is synced if it syncs after about each call.
    Files,
    /// It syncs once at the end of each burst.
    AtEnds,
    /// It never syncs: its waits are those of a limit.
    Unsynced,
}

/// The chosen readings, by the name of the program. Other programs are read as their counters suggest at first.
pub(super) type Choices = BTreeMap<Vec<u8>, Choice>;

/// The other readings of a program, and the bytes that it dirtied.
#[derive(Clone, Debug)]
pub(super) struct Open {
    comm: Vec<u8>,
    bytes: f64,
    choices: Vec<Choice>,
}

const ALL: [Choice; 3] = [Choice::AtEnds, Choice::Unsynced, Choice::Files];

/// Least part of all dirtied bytes of a program whose other readings are tried.
const MOST: f64 = 0.05;
/// Smallest call that may write a file of its own. The most such files follow, of a program and of a second.
const FILE_MIN: f64 = PAGE;
const FILES_MAX: f64 = 40_000.0;
/// Most programs whose readings are tried, and tasks times seconds of all runs together.
const PROGRAMS_MAX: usize = 3;
const ALL_SIZE_MAX: f64 = 24_000.0;

/// The programs with other readings than those of their `syncs`.
pub(super) fn open(groups: &[Group], syncs: &[Syncs], recorded: &Recorded) -> Vec<Open> {
    let all: f64 = groups.iter().map(|group| group.total.dirtied()).sum();
    let mut found: BTreeMap<&[u8], Open> = BTreeMap::new();
    for (group, syncs) in groups.iter().zip(syncs) {
        let may_be = |choice: &Choice| choice.may_be(group, groups, *syncs, recorded);
        let choices: Vec<Choice> = ALL.into_iter().filter(may_be).collect();
        if choices.is_empty() {
            continue;
        }
        let one = Open { comm: group.comm.clone(), bytes: 0.0, choices };
        found.entry(&group.comm).or_insert(one).bytes += group.total.dirtied();
    }
    let mut found: Vec<Open> = found.into_values().filter(|one| one.bytes >= MOST * all).collect();
    found.sort_by(|one, other| other.bytes.total_cmp(&one.bytes));
    found.truncate(PROGRAMS_MAX);
    found
}

/// Whether the calls of a program may write a file each.
fn may_write_files(group: &Group) -> bool {
    let total = &group.total;
    let is_of_calls = total.by_calls > total.mapped && total.direct <= 0.0 && total.cancelled <= 0.0;
    is_of_calls && group.made.is_none() && total.wchar >= FILE_MIN * total.calls && total.calls <= FILES_MAX
}

/// Whether the syncs of a program were concluded from its waits, which may also be those of a limit.
fn may_be_held(syncs: &Syncs) -> bool {
    syncs.origin == Origin::Derived && syncs.at_ends.is_none() && !syncs.is_by_age && !syncs.is_in_place
}

/// Reads the programs as chosen. Of several with one name, only those that may be what was chosen.
pub(super) fn apply(choices: &Choices, groups: &mut [Group], syncs: &mut [Syncs], recorded: &Recorded) {
    let chosen = |(group, syncs): (&Group, &Syncs)| {
        let choice = choices.get(&group.comm).copied()?;
        choice.may_be(group, groups, *syncs, recorded).then_some(choice)
    };
    let chosen: Vec<Option<Choice>> = groups.iter().zip(&*syncs).map(chosen).collect();
    for ((group, syncs), choice) in groups.iter_mut().zip(syncs).zip(chosen) {
        if let Some(choice) = choice {
            choice.apply(group, syncs);
        }
    }
}

impl Choice {
    /// Whether the counters of a program may be read in this way. `groups` are all programs.
    fn may_be(self, group: &Group, groups: &[Group], syncs: Syncs, recorded: &Recorded) -> bool {
        let is_held = syncs.call.is_some() && may_be_held(&syncs);
        match self {
            // The trace counts the calls, and names the files.
            _ if group.synced.is_some() => false,
            // The page cache shows a file that is written again.
            Choice::Files => {
                may_write_files(group)
                    && (syncs.call.is_none() || is_held)
                    && Replaced::of(group, groups, syncs, recorded).is_none()
                    && rounds::file(group, groups, recorded).is_none()
            }
            Choice::AtEnds => is_held && !runs(group).is_empty(),
            Choice::Unsynced => is_held,
        }
    }

    /// Reads the counters of a program in this way.
    fn apply(self, group: &mut Group, syncs: &mut Syncs) {
        match self {
            Choice::Files => group.made = Some(Made::of_calls(group)),
            Choice::AtEnds => {
                let runs = rested(group);
                let (count, waited) = (runs.len() as f64, runs.iter().map(|run| run.waited).sum::<f64>());
                let at_ends = Some(waited / count.max(1.0));
                *syncs = Syncs { count, call: Some(SyncCall::Fsync), at_ends, is_each_burst: true, ..Syncs::default() };
            }
            Choice::Unsynced => *syncs = Syncs::default(),
        }
    }
}

/// Tries the readings that are open, one program after the other. Each time, a reading that is clearly nearer to the recording is kept.
pub(super) fn chosen(
    recorded: &Recorded,
    kernel: KernelVersion,
    first: Fitted,
    go_on: &dyn Fn(u64) -> bool,
) -> Result<Twin, TwinError> {
    let Fitted { mut twin, mut fit, open, .. } = first;
    let costs = |twin: &Twin| 2.0 * twin.scenario.number_of_tasks() as f64 * twin.seconds;
    if open.is_empty() || costs(&twin) > 2.0 * SIZE_MAX {
        return Ok(twin);
    }
    let go_on = |events| events < EVENTS_MAX && go_on(events);
    let Some(mut far) = far(recorded, &mut twin, &go_on).filter(|far| far.is_missed) else { return Ok(twin) };
    let mut spent = costs(&twin);
    for Open { comm, choices, .. } in open {
        let before = fit.choices.clone();
        for choice in choices {
            spent += costs(&twin);
            if spent > ALL_SIZE_MAX {
                return Ok(twin);
            }
            let mut choices = before.clone();
            choices.insert(comm.clone(), choice);
            let other = Fit { choices, ..fit.clone() };
            // The checks refuse some scenarios.
            let Ok(made) = made(recorded, kernel, &other) else { continue };
            let mut made = made.twin;
            if made.scenario == twin.scenario {
                continue;
            }
            let Some(is) = self::far(recorded, &mut made, &go_on) else { continue };
            if is.mean < CLEARLY * far.mean && is.mean + BY < far.mean {
                (twin, fit, far) = (made, other, is);
            }
        }
    }
    Ok(twin)
}

/// How far a twin is from its recording.
#[derive(Clone, Copy, Debug)]
struct Far {
    /// Mean error of the figures. One that is off by more than its value counts as one that is missing.
    mean: f64,
    /// Whether it misses a figure that predictions are about.
    is_missed: bool,
}

/// Distance of the nearer bound of the demand.
fn far(recorded: &Recorded, twin: &mut Twin, go_on: &dyn Fn(u64) -> bool) -> Option<Far> {
    let programs = twin.programs.clone();
    let other = twin.demand.other().map(|(_, other)| other);
    let both: Vec<_> = std::iter::once(&twin.scenario).chain(other).cloned().collect();
    let mut nearest: Option<Far> = None;
    for scenario in both {
        let far = of_figures(&backtest(&recorded.window, ran(recorded, twin, scenario, go_on)?, &programs))?;
        nearest = Some(nearest.filter(|other| other.mean <= far.mean).unwrap_or(far));
    }
    nearest
}

fn of_figures(figures: &[Figure]) -> Option<Far> {
    let simulated = || figures.iter().filter(|one| !one.name.starts_with("budget."));
    let count = simulated().count() as f64;
    let mean = simulated().map(|one| one.off_share.min(1.0)).sum::<f64>() / count;
    let leads = [WAITS, LONGEST, "host.unwritten_peak_bytes", "devices.written_bytes", "host.dirtied_bytes"];
    let is_missed = simulated().any(|one| leads.contains(&one.name.as_str()) && !one.is_predictable());
    (count > 0.0).then_some(Far { mean, is_missed })
}

#[cfg(test)]
mod tests {
    use super::super::group::{Bin, sum};
    use super::*;
    use floodline_record::record::{Record, Sink};
    use floodline_scenario::ScenarioFile;
    use floodline_sim::{Options as Simulated, simulate};

    /// A program that waits while it writes 1 MiB a second by single calls, all of them durable.
    fn writer() -> Group {
        let bin = |at: u32| Bin {
            end: f64::from(at),
            length: 1.0,
            wchar: 1_048_576.0,
            by_calls: 1_048_576.0,
            calls: 16.0,
            waited: 0.5,
            ..Bin::default()
        };
        let bins: Vec<Bin> = (1..=20).map(bin).collect();
        Group { comm: b"store".to_vec(), total: sum(&bins), bins, ..Group::default() }
    }

    fn durable() -> Syncs {
        Syncs { count: 320.0, call: Some(SyncCall::Fdatasync), ..Syncs::default() }
    }

    #[test]
    fn of_programs_with_one_name_only_those_are_read_otherwise_that_may_be() {
        let all = [
            durable(),
            Syncs { origin: Origin::Measured, ..durable() },
            Syncs { is_in_place: true, ..durable() },
            Syncs { is_by_age: true, ..durable() },
        ];
        let after = |choice: Choice| {
            let (mut groups, mut syncs) = (vec![writer(); 4], all);
            groups[1].made = Some(Made::traced(10, 4096.0));
            let choices = Choices::from([(b"store".to_vec(), choice)]);
            apply(&choices, &mut groups, &mut syncs, &Recorded::default());
            let kept = syncs.map(|syncs| syncs.call.is_some());
            (kept, groups.iter().map(|group| group.made.map(|made| made.is_traced)).collect::<Vec<_>>())
        };
        let traced = Some(true);
        assert_eq!(after(Choice::Unsynced), ([false, true, true, true], vec![None, traced, None, None]));
        assert_eq!(after(Choice::Files), ([true; 4], vec![Some(false), traced, None, None]));
    }

    #[test]
    fn a_file_that_is_written_again_is_not_tried_as_many_files() {
        let (mut group, recorded) = super::super::replaced::tests::written_again();
        group.comm = b"report".to_vec();
        let offered = |recorded: &Recorded| {
            let open = open(std::slice::from_ref(&group), &[Syncs::default()], recorded);
            open.iter().any(|one| one.choices.contains(&Choice::Files))
        };
        assert!(!offered(&recorded));
        assert!(offered(&Recorded::default()), "without the levels of the page cache, nothing shows it");
    }

    /// A host whose only program does this for 20 s.
    fn host(steps: &str) -> Recorded {
        let text = format!(
            "name = \"s\"\nsummary = \"s\"\n[machine]\nmemory = \"1 GiB\"\ndevices.a.size = \"4 GiB\"\n\
             mounts.\"/b\" = {{ type = \"ext4\", device = \"a\" }}\n[workload]\nduration = \"20s\"\n\
             [workload.tasks.log]\nsteps = [{steps}]\n"
        );
        let scenario =
            ScenarioFile::parse(&text).expect("it is good").variants.remove("default").expect("the only one");
        let mut recorded = Recorded::default();
        let take = |record: Record| {
            let Ok(()) = recorded.record(&record);
            Ok(())
        };
        simulate(&scenario, &Simulated::new("host", KernelVersion::new(6, 12, 0)), take, |_| true).expect("it runs");
        recorded
    }

    #[test]
    fn a_reading_of_which_no_twin_is_made_is_passed_over() {
        let kernel = KernelVersion::new(6, 12, 0);
        let (idle, busy) = (
            host("{ sleep = { for = \"15s\" } }"),
            host("{ write = { file = \"/b/log\", block = \"64 KiB\", order = \"append\", rate = \"200/s\" } }"),
        );
        let first = super::super::fit(&busy, kernel).expect("it writes");
        let scenario = first.twin.scenario.clone();
        let open = vec![Open { comm: b"log".to_vec(), bytes: 1e6, choices: ALL.to_vec() }];
        assert!(made(&idle, kernel, &first.fit).is_err(), "it does nothing");
        let twin = chosen(&idle, kernel, Fitted { open, ..first }, &|_| true).expect("the first one stays");
        assert_eq!(twin.scenario, scenario);
    }
}
