// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tier 2: the twin of one host before and after the change. Chooses the hosts to simulate, and runs the twin as few times
//! as necessary. Its answer is weighed beside ([`weigh`]).

mod filled;
mod later;
mod sentences;
mod slowest;
mod synced;
mod weigh;

use crate::Depth;
use crate::arithmetic::SEVERITY_MAX;
use crate::between::Between;
use crate::change::Change;
use crate::harm::{BYTES_TIMES, Felt, STALL};
use crate::row::{Cause, Confidence, Row, Verdict};
use crate::waits;
use floodline_analysis::diagnose::device;
use floodline_analysis::prediction::{DIRTIED, PEAK, Prediction, Setting};
use floodline_record::text::Text;
use floodline_record::window::Window;
use floodline_sim::{Progress, SimError};
use floodline_twin::backtest::{Figure, MISS_MAX};
use floodline_twin::changed::Refusal;
use floodline_twin::predict::horizon::beyond;
use floodline_twin::predict::{Measured, Question, Run, conclude};
use floodline_twin::shown::{self, Shown};
use floodline_twin::{Options, Origin, Provenance, Recorded, Twin, TwinError, of_while};
use slowest::Disks;
use std::collections::{BTreeMap, BTreeSet};
use weigh::{SUFFERS, weigh};

/// Parts of a twin's key that mark a sync.
const SYNC: &str = "sync";

/// Least amount of recorded unwritten data that a twin is compared with, bytes: the least difference that people notice.
const LITTLE: f64 = 1_048_576.0;

/// Part of the recorded waits below which a change takes most of them away.
const RELIEVED: f64 = 0.5;
/// Part of the window from which recorded waits show what the tasks waited for.
const SHOWN: f64 = 0.01;

/// Whether a host should be simulated, and whether only as a control.
pub(crate) fn is_wanted(row: &Row, change: &Change, depth: Depth) -> Option<Wanted> {
    if !depth.twin || row.cause == Cause::NoChange {
        return None;
    }
    let is_near = row.margin.is_some_and(|margin| margin < crate::arithmetic::TIGHT);
    let is_flagged = matches!(row.verdict, Verdict::Suffers | Verdict::Tight)
        || is_near
        || row.sick_already.is_some()
        || row.gets_folios
        || !change.simulated_only.is_empty();
    match row.verdict {
        Verdict::NotKnown if row.cause != Cause::NotSimulated => None,
        _ if is_flagged => Some(Wanted::Flagged),
        _ if is_control(&row.host, depth.control) => Some(Wanted::Control),
        _ => None,
    }
}

/// Reason for simulating a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Arithmetic found a problem or a small margin.
    Flagged,
    /// As a control of the arithmetic.
    Control,
}

/// Whether a host belongs to the control: by a hash (FNV-1a) of its name, equal in every run.
fn is_control(host: &str, share: f64) -> bool {
    let hash = host
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    // The low bits of FNV differ little between similar names.
    let mixed = (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((mixed >> 32) as f64) < share * f64::from(u32::MAX)
}

/// Result of the twin.
struct Answer {
    /// Harm by the twin, and by the one with the other bound of the demand: the smaller and the larger of both.
    severity: f64,
    severity_max: f64,
    /// Harm by the twin with the demand that is back-tested.
    of_first: f64,
    /// Largest harm of the changed runs compared with the recorded waits before the change.
    since_recorded: f64,
    /// Recorded waits of all tasks before the change, seconds.
    recorded_stall_seconds: f64,
    /// Whether tasks wait noticeably in the recording, and for less than half of that time in the twin with the change.
    relieves: bool,
    /// Harm without the waits of syncs. `None` unless the twin has a sync for which the recording shows no caller.
    without_assumed_syncs: Option<f64>,
    /// Whether both bounds of the demand are the same.
    is_demand_known: bool,
    /// Whether a task of the twin syncs the filesystem that gets most of its data.
    syncs_most: bool,
    /// Largest amount of unwritten data, beside the recorded one.
    peak: Option<Peak>,
    /// Whether that much may have been unwritten between two samples of the recording.
    is_between_samples: bool,
    /// Whether pages are dirtied again because they are written sooner. Arithmetic, which has the recorded bytes, then predicts the
    /// least that tasks wait.
    dirties_again: bool,
    /// Time that the disk takes for a byte, as a multiple of what arithmetic takes: a disk that takes bytes at once after a quiet
    /// time is slower than its busy time shows.
    slower: f64,
    /// Longest call that empties, removes or closes a file, before and after the change, seconds. No prediction has this figure.
    longest_other: Option<(f64, f64)>,
    /// Harm on the slowest disks that the recording allows, where arithmetic has no answer.
    on_slowest_disks: Option<f64>,
    /// Harm on slow disks, where pages are dirtied again and the recording shows no limit of these disks.
    on_slow_disks: Option<f64>,
    /// Bytes that the disks can write in the time of the recording, at the speed that they showed while they were busy. `None` without one.
    writable_bytes: Option<f64>,
    error: Option<f64>,
    prediction: Prediction,
    is_cut: bool,
}

/// Largest amount of unwritten data of a twin beside the recorded one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Peak {
    /// As a multiple of the recorded one.
    times: f64,
    /// As a multiple of the recorded one, or of [`LITTLE`] where that is more. A multiple of little data decides nothing.
    weighed: f64,
}

impl Peak {
    /// From both amounts in bytes, the recorded one above zero.
    fn of(simulated: f64, recorded: f64) -> Peak {
        Peak { times: simulated / recorded, weighed: simulated / recorded.max(LITTLE) }
    }
}

/// Seconds that tasks wait before the change.
#[derive(Clone, Copy, Debug)]
struct Waits {
    recorded: f64,
    twin: f64,
    /// In the twin with the other demand.
    other: f64,
}

/// Waits of one twin over those of another, from which they are not the same.
const APART: f64 = 1.4;

impl Waits {
    /// Whether the recorded waits show which twin is like the host: the first one waits as long as the host did, and the second
    /// far less or far more.
    fn tell_apart(self, seconds: f64) -> bool {
        let distance = |waits: f64| (waits.max(f64::MIN_POSITIVE) / self.recorded).ln().abs();
        let is_first = distance(self.twin) <= (1.0 + MISS_MAX).ln();
        self.recorded >= SHOWN * seconds && is_first && distance(self.other) >= APART.ln() + distance(self.twin)
    }

    /// Whether the recorded waits show syncs that the twin assumes: the twin waits as long as the host did, and `without` these syncs far
    /// less.
    fn show_syncs(self, without: f64, seconds: f64) -> bool {
        without < self.twin && Waits { other: without, ..self }.tell_apart(seconds)
    }
}

/// Runs the twin of a host and refines the row. If no twin can be made, the arithmetic stands.
pub(crate) fn refine(
    recorded: &Recorded,
    change: &Change,
    wanted: Wanted,
    depth: Depth,
    row: &mut Row,
    go_on: &dyn Fn() -> bool,
) {
    let settings = settings(change, row);
    let asked = || -> Result<Option<Answer>, (Why, String)> {
        let twin = of_while(recorded, &Options::default(), &|_| go_on())
            .map_err(|error: TwinError| (Why::NoTwin, error.to_string()))?;
        let question = Question::new(&twin, &recorded.window, &settings)
            .map_err(|error| (Why::Refused(error.refusal), error.to_string()))?;
        answer(recorded, &twin, &question, (depth, row), go_on).map_err(|error| (Why::NotRun, error.to_string()))
    };
    match asked() {
        Ok(Some(answer)) => {
            let (unseen, note) = later::unseen(&answer.prediction);
            weigh(answer, wanted, recorded.window.seconds(), row);
            row.notes.extend(note);
            later::leave_open(unseen, row);
        }
        Ok(None) => row.notes.push("The simulation was ended before it had an answer.".to_owned()),
        Err((why, told)) => not_simulated(why, &told, row),
    }
}

/// Why a host was not simulated.
#[derive(Clone, Copy)]
enum Why {
    /// The recording makes no twin.
    NoTwin,
    /// The change cannot be made on this host.
    Refused(Refusal),
    /// The model does not run the twin.
    NotRun,
}

/// Decides on a host that was not simulated. What refuses the change can tell of the host.
fn not_simulated(why: Why, told: &str, row: &mut Row) {
    if let Why::Refused(Refusal::MemoryTooSmall) = why {
        row.severity = SEVERITY_MAX;
        return row.decide(Verdict::Suffers, Cause::MemoryTooSmall, format!("No simulation is possible: {told}."));
    }
    row.notes.push(format!("Not simulated: {}.", Text::new(told)));
    if row.cause != Cause::NotSimulated {
        return;
    }
    let finding = format!("Only a simulation can answer, and none is possible: {told}.");
    match why {
        Why::Refused(Refusal::InForce) => {
            row.confidence = Confidence::High;
            row.decide(Verdict::Fine, Cause::NoChange, "The change is in force on this host already.".to_owned());
        }
        Why::NoTwin => row.decide(Verdict::NotKnown, Cause::TooShort, finding),
        Why::Refused(_) | Why::NotRun => row.decide(Verdict::NotKnown, Cause::NotModelled, finding),
    }
}

/// The change as settings of a twin: with the boot's settings, and without cgroups that the host lacks.
fn settings(change: &Change, row: &Row) -> Vec<Setting> {
    let is_there = |setting: &&Setting| !row.absent.contains(&setting.key);
    let boot = row.boot_settings.iter().map(|(name, value)| Setting::new(*name, value));
    change.settings.iter().filter(is_there).cloned().chain(boot).collect()
}

fn answer(
    recorded: &Recorded,
    twin: &Twin,
    question: &Question,
    (depth, row): (Depth, &Row),
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Answer>, SimError> {
    let is_arithmetic = row.predicts_waits;
    let mut results: Vec<(Run, Shown)> = Vec::new();
    let mut felt_by_tasks: Vec<(Run, Felt)> = Vec::new();
    let mut measured = Measured::of(&recorded.window);
    let mut of_second = Vec::new();
    // How a mapped file came into the page cache is not recorded, and may decide its folios. A finding of such a twin is harm only with
    // figures that people notice.
    let counts_findings = !(row.gets_folios && row.folios_by_origin) || row.verdict == Verdict::Suffers;
    let felt_of = |shown: &Shown, seconds: f64| {
        let felt = Felt::of(&shown.figures, &shown.said.seen, seconds);
        if counts_findings { felt } else { Felt { critical: BTreeSet::new(), ..felt } }
    };
    for run in question.runs(true) {
        let Some(changed) = question.scenario(&run) else { continue };
        let may_go_on = |at: &Progress| at.events < depth.events_max && go_on();
        let real = (!run.is_changed).then_some(&recorded.window);
        let (mut shown, back_test) = shown::of_twin(twin, changed, run.trial, real, may_go_on)?;
        felt_by_tasks.push((run, felt_of(&shown, twin.seconds)));
        shown.like(&recorded.window);
        if !go_on() {
            return Ok(None);
        }
        match run.demand {
            0 => measured.back_test.extend(back_test),
            1 if twin.demand.other().is_some() => of_second = back_test,
            _ => {}
        }
        results.push((run, shown));
    }
    let short = results.clone();
    let beyond = beyond(twin, question, &short);
    let later = beyond.as_ref().and_then(|beyond| later::runs((recorded, twin), beyond, depth, go_on));
    if let Some((of_longer, before_like)) = later.clone() {
        let felt = before_like.iter().map(|(run, shown)| (*run, felt_of(shown, twin.seconds)));
        (results, felt_by_tasks) = (of_longer, felt.collect());
    }
    let seconds = twin.seconds;
    let result = |demand: usize, is_changed: bool| {
        let found = results.iter().find(|(run, _)| run.demand == demand && run.is_changed == is_changed);
        found.map(|(_, shown)| shown)
    };
    let felt = |demand, is_changed| result(demand, is_changed).map(|shown| felt_of(shown, seconds));
    // The kernel's counters leave out waits for a lock or for another task. Tasks of a run measure these waits, too.
    let by_tasks = |demand: usize, is_changed: bool| {
        let found = felt_by_tasks.iter().find(|(run, _)| run.demand == demand && run.is_changed == is_changed);
        found.map(|(_, felt)| felt)
    };
    let prediction = match &beyond {
        Some(beyond) => beyond.conclude(twin, question, &measured, &short, later.map(|(results, _)| results)),
        None => conclude(twin, question, &measured, &results),
    };
    let Some(prediction) = prediction else { return Ok(None) };
    let is_assumed = |of: &Provenance| of.origin == Origin::Assumed && of.key.split('.').any(|part| part == SYNC);
    let worse = |demand| {
        let counted = felt(demand, false)?.worse(&felt(demand, true)?);
        let by_tasks = by_tasks(demand, false)?.worse(by_tasks(demand, true)?);
        Some(if is_arithmetic { counted } else { counted.max(by_tasks) })
    };
    let Some(first) = worse(0) else { return Ok(None) };
    // The demand lies between the two twins: an effect in only one of them is not certain.
    let of_other_demand = twin.demand.other().and_then(|_| worse(1));
    // A twin that waits too long before the change as well hides what the change adds: the recording has those waits.
    let before =
        Felt::of(&shown::figures(&recorded.window, &twin.programs), &measured.said.seen, recorded.window.seconds());
    let known = known_syncs(twin, is_assumed);
    let without = |demand, is_changed| {
        Some(felt(demand, is_changed)?.without_syncs(&result(demand, is_changed)?.figures, &known))
    };
    let stalls = |felt: Option<Felt>| felt.map_or(0.0, |felt| felt.stall_seconds);
    // Of two demands, one without the recorded waits is not that of this host.
    let waits = Waits { recorded: before.stall_seconds, twin: stalls(felt(0, false)), other: stalls(felt(1, false)) };
    let reproduces = |figures: &[Figure]| figures.iter().all(Figure::is_predictable);
    let is_first = waits.tell_apart(recorded.window.seconds())
        || (!of_second.is_empty() && reproduces(&measured.back_test) && !reproduces(&of_second));
    let other = of_other_demand.filter(|_| !is_first);
    let seconds_recorded = recorded.window.seconds();
    let has_assumed =
        twin.provenance.iter().any(is_assumed) && !waits.show_syncs(stalls(without(0, false)), seconds_recorded);
    // The recording has no caller of an assumed sync, so it cannot have its waits.
    let then = |demand| if has_assumed { without(demand, true) } else { felt(demand, true) };
    let since = |demand| Some(before.with_other_of(&felt(demand, false)?).worse(&then(demand)?));
    let since_recorded = [since(0), since(1)].into_iter().flatten().fold(0.0, f64::max);
    let unsynced = |demand| Some(without(demand, false)?.worse(&without(demand, true)?));
    let of_demands = [unsynced(0), unsynced(1).filter(|_| !is_first)];
    let without_assumed_syncs = has_assumed.then(|| of_demands.into_iter().flatten().reduce(f64::min).unwrap_or(0.0));
    let dirtied = |is_changed| result(0, is_changed).and_then(|shown| shown.figures.get(DIRTIED).copied());
    let dirties_again =
        dirtied(false).zip(dirtied(true)).is_some_and(|(now, then)| now > 0.0 && then > BYTES_TIMES * now);
    let peak = |figures: &BTreeMap<String, f64>| figures.get(PEAK).copied();
    let as_is = short.iter().find(|(run, _)| run.demand == 0 && !run.is_changed);
    let simulated = as_is.and_then(|(_, shown)| peak(&shown.figures));
    let is_between_samples =
        simulated.zip(most_between(&recorded.window)).is_some_and(|(simulated, most)| simulated <= most);
    let peak = simulated
        .zip(peak(&shown::figures(&recorded.window, &twin.programs)).filter(|recorded| *recorded > 0.0))
        .map(|(simulated, recorded)| Peak::of(simulated, recorded));
    let severity_max = other.map_or(first, |other| first.max(other));
    let disks = by_tasks(0, false).map(|before| Disks { recorded, twin, question, before, depth, go_on });
    // A run that the model refuses tells nothing of these disks. The answer stands.
    let on_slowest_disks = match &disks {
        Some(disks) if row.cause == Cause::NotSimulated && severity_max < SUFFERS => disks.slowest(),
        _ => None,
    };
    let on_slow_disks = match &disks {
        Some(disks) if dirties_again && first >= weigh::TIGHT => disks.slow(),
        _ => None,
    };
    Ok(Some(Answer {
        severity: other.map_or(first, |other| first.min(other)),
        severity_max,
        of_first: first,
        since_recorded,
        recorded_stall_seconds: before.stall_seconds,
        relieves: before.stall_seconds >= STALL * seconds
            && felt(0, true).is_some_and(|then| then.stall_seconds < RELIEVED * before.stall_seconds),
        without_assumed_syncs,
        is_demand_known: of_other_demand.is_none(),
        syncs_most: synced::syncs_most(&twin.scenario),
        peak,
        is_between_samples,
        dirties_again,
        slower: slower(recorded, twin),
        longest_other: by_tasks(0, false)
            .zip(by_tasks(0, true))
            .map(|(now, then)| (now.longest_other_seconds, then.longest_other_seconds)),
        on_slowest_disks,
        on_slow_disks,
        writable_bytes: writable(&recorded.window),
        error: prediction.back_test_error,
        is_cut: prediction.is_cut,
        prediction,
    }))
}

/// The most data that can have been unwritten at one time, bytes: what a sample shows, and what was dirtied until the next one. A
/// program that writes and syncs between two samples shows none of it.
fn most_between(window: &Window) -> Option<f64> {
    let rows = window.host_series.iter().map(|(_, row)| row);
    let most = |(one, next)| Between::of(one, next).map(|between| between.before.saturating_add(between.dirtied));
    let pages = rows.clone().zip(rows.skip(1)).filter_map(most).max()?;
    let page = window.facts.as_ref().map_or(4096, |facts| facts.page_size.max(1));
    Some(pages.saturating_mul(page) as f64)
}

/// Names of the longest syncs of programs whose syncs the recording shows.
fn known_syncs(twin: &Twin, is_assumed: impl Fn(&Provenance) -> bool) -> Vec<String> {
    let task = |of: &Provenance| of.key.split('.').nth(2).map(str::to_owned);
    let assumed: BTreeSet<String> = twin.provenance.iter().filter(|of| is_assumed(of)).filter_map(task).collect();
    // Tasks of one name share a figure.
    let is_assumed = |task: &String| assumed.contains(task);
    let names: BTreeSet<&str> =
        twin.programs.iter().filter(|(task, _)| is_assumed(task)).map(|(_, program)| program.comm.as_str()).collect();
    let of_others = twin.programs.values().filter(|program| !names.contains(program.comm.as_str()));
    of_others.map(|program| shown::longest_sync(&program.comm)).collect()
}

/// Bytes written from which the busy time of a disk shows a speed.
const SHOWS_SPEED: u64 = 16 << 20;

/// Bytes that the disks write in the time of a recording, at the speed that each showed. `None` if one of them wrote too little for that.
fn writable(window: &Window) -> Option<f64> {
    let drains = device::drains(window);
    let speeds = drains.iter().map(|device| {
        let written = device.span.growth.written.map_or(0, |written| written.0);
        waits::speed(device).filter(|_| written >= SHOWS_SPEED)
    });
    let speeds: Option<Vec<f64>> = speeds.collect();
    speeds.filter(|speeds| !speeds.is_empty()).map(|speeds| speeds.iter().sum::<f64>() * window.seconds())
}

/// Speed of the disk by arithmetic over that of the twin, where the twin found its credit.
fn slower(recorded: &Recorded, twin: &Twin) -> f64 {
    let sustained = twin.ceilings.iter().find(|ceiling| ceiling.has_credit).and_then(|one| one.write_bytes_per_second);
    let drains = device::drains(&recorded.window);
    let by_busy = drains.first().and_then(waits::speed);
    by_busy.zip(sustained).map_or(1.0, |(by_busy, sustained)| (by_busy / sustained.max(1.0)).max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_tell_two_twins_apart() {
        let check = |recorded, twin, other, expect| {
            let waits = Waits { recorded, twin, other };
            assert_eq!(waits.tell_apart(60.0), expect, "{waits:?}");
        };
        check(3.0, 3.2, 0.1, true);
        check(12.0, 12.1, 19.0, true);
        check(12.0, 14.0, 19.0, false);
        check(3.0, 3.2, 2.8, false);
        check(3.0, 6.0, 0.1, false);
        check(0.1, 0.1, 0.0, false);
    }

    #[test]
    fn recorded_waits_show_the_syncs_that_alone_explain_them() {
        let shows = |recorded, without| Waits { recorded, twin: 5.9, other: 40.0 }.show_syncs(without, 60.0);
        assert!(shows(5.8, 0.0), "programs without a sync do not wait");
        assert!(!shows(5.8, 5.2), "programs wait without these syncs, too");
        assert!(!shows(1.0, 0.0), "the host waited for far less");
        assert!(!shows(0.1, 0.0), "the host did not wait");
    }

    #[test]
    fn a_refused_change_tells_of_the_host() {
        let decided = |why, cause| {
            let mut row = Row::default();
            row.decide(Verdict::NotKnown, cause, "Arithmetic has no answer.".to_owned());
            not_simulated(why, "742 MiB were in use\nSUFFERS forged", &mut row);
            assert!(!row.finding.contains('\n') && row.notes.iter().all(|note| !note.contains('\n')), "{row:?}");
            (row.verdict, row.cause)
        };
        let refused = Why::Refused;
        let small = (Verdict::Suffers, Cause::MemoryTooSmall);
        assert_eq!(decided(refused(Refusal::MemoryTooSmall), Cause::NotSimulated), small);
        assert_eq!(decided(refused(Refusal::MemoryTooSmall), Cause::CgroupLimit), small);
        assert_eq!(decided(refused(Refusal::InForce), Cause::NotSimulated), (Verdict::Fine, Cause::NoChange));
        assert_eq!(decided(refused(Refusal::Other), Cause::NotSimulated), (Verdict::NotKnown, Cause::NotModelled));
        assert_eq!(decided(Why::NoTwin, Cause::NotSimulated), (Verdict::NotKnown, Cause::TooShort));
        assert_eq!(decided(Why::NoTwin, Cause::CgroupLimit), (Verdict::NotKnown, Cause::CgroupLimit));
    }

    #[test]
    fn recorded_data_below_1_mib_counts_as_1_mib() {
        assert_eq!(Peak::of(6e6, 2e6), Peak { times: 3.0, weighed: 3.0 });
        let little = Peak::of(200e3, 50e3);
        assert!(little.times == 4.0 && little.weighed < 1.0, "{little:?}");
        let more = Peak::of(60e6, 30e3);
        assert!(more.times == 2000.0 && (50.0..60.0).contains(&more.weighed), "{more:?}");
    }

    #[test]
    fn the_control_is_the_share_asked_for_and_the_same_each_time() {
        let hosts: Vec<String> = (0..20_000).map(|n| format!("web{n}.example.org")).collect();
        let count = |share| hosts.iter().filter(|host| is_control(host, share)).count();
        assert!((150..250).contains(&count(0.01)), "{}", count(0.01));
        assert_eq!((count(0.0), count(1.0)), (0, 20_000));
        assert_eq!(is_control("web7", 0.01), is_control("web7", 0.01));
    }
}
