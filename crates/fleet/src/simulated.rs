// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tier 2: the twin of one host before and after the change. Chooses the hosts to simulate, runs the twin as few times
//! as necessary, and weighs the result by the error of its back-test.

use crate::Depth;
use crate::arithmetic::SEVERITY_MAX;
use crate::change::Change;
use crate::harm::Felt;
use crate::row::{Cause, Confidence, Row, Verdict};
use floodline_analysis::judgement::Verdict as Judged;
use floodline_analysis::prediction::{self, Better, LEADS, Prediction, Setting, WAITS};
use floodline_analysis::report::Severity;
use floodline_record::human;
use floodline_record::text::Text;
use floodline_sim::{Progress, SimError};
use floodline_twin::backtest::{self, MISS_MAX};
use floodline_twin::changed::Refusal;
use floodline_twin::predict::{Measured, Question, Run, conclude, rests_on};
use floodline_twin::shown::{self, Shown};
use floodline_twin::{Options, Recorded, Twin, TwinError, of};
use std::collections::BTreeMap;

/// Severity from which a host suffers.
const SUFFERS: f64 = 1.0;
/// Severity from which a host suffers if the twin misses its own recording and arithmetic does not agree.
const SUFFERS_DOUBTFUL: f64 = 5.0;
/// Severity from which its margin is small.
const TIGHT: f64 = 0.5;
/// Multiple of the recorded peak of unwritten data from which a twin is that of another host: it lacks what cleans the data
/// early, such as `sync_file_range`, and meets limits that the host does not meet.
const OTHER_HOST: f64 = 3.0;
/// The same multiple where the recorded data fits below a limit that the data of the twin exceeds.
const MEETS_LIMIT: f64 = 1.5;
/// Deviation of that peak up to which a twin has what a threshold held back.
const SAME_PEAK: f64 = 0.1;
/// Severity of a trade: a host that is sick before the change gets rid of more waiting than it gets.
const TRADE: f64 = 0.9;
/// Part of the arithmetic's severity below which a twin misses stores that no counter shows.
const MISSES_STORES: f64 = 1.0 / 3.0;

/// Whether a host should be simulated, and whether only as a control.
pub(crate) fn is_wanted(row: &Row, change: &Change, depth: Depth) -> Option<Wanted> {
    if !depth.twin || row.cause == Cause::NoChange {
        return None;
    }
    let is_near = row.margin.is_some_and(|margin| margin < crate::arithmetic::TIGHT);
    let is_flagged = matches!(row.verdict, Verdict::Suffers | Verdict::Tight)
        || is_near
        || row.sick_already.is_some()
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
    /// Harm by the open twin, and by the closed one where demand is bounded: the smaller and the larger of both.
    severity: f64,
    severity_max: f64,
    /// Whether both bounds of the demand are the same.
    is_demand_known: bool,
    /// Largest amount of unwritten data, as a multiple of the recorded one.
    peak: Option<f64>,
    error: Option<f64>,
    prediction: Prediction,
    is_cut: bool,
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
        let twin = of(recorded, &Options::default()).map_err(|error: TwinError| (Why::NoTwin, error.to_string()))?;
        let question = Question::new(&twin, &recorded.window, &settings)
            .map_err(|error| (Why::Refused(error.refusal), error.to_string()))?;
        answer(recorded, &twin, &question, depth, go_on).map_err(|error| (Why::NotRun, error.to_string()))
    };
    match asked() {
        Ok(Some(answer)) => weigh(answer, wanted, recorded.window.seconds(), row),
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
    depth: Depth,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Answer>, SimError> {
    let mut results: Vec<(Run, Shown)> = Vec::new();
    let mut measured = Measured { back_test: Vec::new(), seen: shown::seen(&recorded.window) };
    for run in question.runs(true) {
        let Some(changed) = question.scenario(&run) else { continue };
        let may_go_on = |at: &Progress| at.events < depth.events_max && go_on();
        let (mut shown, window) = shown::run(changed, run.trial, twin.every, &twin.programs, may_go_on)?;
        shown.like(&recorded.window);
        if !go_on() {
            return Ok(None);
        }
        if !run.is_changed && run.demand == 0 && !shown.is_cut {
            measured.back_test = backtest::backtest(&recorded.window, &window, &twin.programs);
        }
        results.push((run, shown));
    }
    let seconds = twin.seconds;
    let felt = |demand: usize, is_changed: bool| {
        let found = results.iter().find(|(run, _)| run.demand == demand && run.is_changed == is_changed);
        found.map(|(_, shown)| Felt::of(&shown.figures, &shown.seen, seconds))
    };
    let worse = |demand| Some(felt(demand, false)?.worse(&felt(demand, true)?));
    let Some(open) = worse(0) else { return Ok(None) };
    // The demand lies between the two twins: an effect in only one of them is not certain.
    let closed = worse(1);
    let peak = |figures: &BTreeMap<String, f64>| figures.get("host.dirty_peak_bytes").copied();
    let now = results.iter().find(|(run, _)| run.demand == 0 && !run.is_changed);
    let peak = now
        .and_then(|(_, shown)| peak(&shown.figures))
        .zip(peak(&shown::figures(&recorded.window, &twin.programs)).filter(|recorded| *recorded > 0.0))
        .map(|(simulated, recorded)| simulated / recorded);
    let Some(prediction) = conclude(twin, question, &measured, &results) else { return Ok(None) };
    Ok(Some(Answer {
        severity: closed.map_or(open, |closed| open.min(closed)),
        severity_max: closed.map_or(open, |closed| open.max(closed)),
        is_demand_known: closed.is_none(),
        peak,
        error: prediction.back_test_error,
        is_cut: prediction.is_cut,
        prediction,
    }))
}

impl Answer {
    /// Whether its waits are those of a host with more unwritten data than was recorded: it holds several times as much,
    /// or it meets a limit below which the recorded data fits.
    fn is_of_another_host(&self, margin: Option<f64>) -> bool {
        let Some(peak) = self.peak else { return false };
        let meets_limit = margin.is_some_and(|margin| margin >= 1.0 && margin < peak);
        peak > OTHER_HOST || (peak > MEETS_LIMIT && meets_limit)
    }

    /// Whether it has the data that a threshold held back, and lets it loose.
    fn has_what_was_held_back(&self) -> bool {
        self.is_demand_known && self.peak.is_some_and(|peak| (peak - 1.0).abs() <= SAME_PEAK)
    }
}

/// Decides from both tiers.
fn weigh(answer: Answer, wanted: Wanted, seconds: f64, row: &mut Row) {
    let Answer { error, is_cut, ref prediction, .. } = answer;
    row.tier = 2;
    row.control = wanted == Wanted::Control;
    row.back_test_error = error;
    fill(prediction, row);
    let is_of_another = answer.is_of_another_host(row.margin);
    let is_reliable = error.is_some_and(|error| error <= MISS_MAX) && !is_cut && !is_of_another;
    let is_cliff = row.is_firm && row.cause == Cause::DirtyCliff;
    let severity = match () {
        () if is_of_another => 0.0,
        // Writers that a threshold held back want more than they show: the larger demand is nearer.
        () if is_cliff => answer.severity_max,
        () => answer.severity,
    };
    if is_cliff && is_reliable && severity < SUFFERS && answer.has_what_was_held_back() {
        row.is_firm = false;
    }
    row.confidence = if is_reliable { Confidence::High } else { Confidence::Low };
    if let Some(error) = error.filter(|error| *error > MISS_MAX) {
        row.notes.push(format!("The twin misses this recording by {}.", human::percent(error)));
    }
    if let Some(peak) = answer.peak.filter(|_| is_of_another) {
        row.notes.push(format!("The twin holds {peak:.1} times the recorded unwritten data: it does not count."));
    }
    if is_cut {
        row.notes.push("The simulation exceeded its budget: only its beginning counts.".to_owned());
    }
    if is_of_another && row.verdict != Verdict::Suffers {
        if row.cause == Cause::NotSimulated {
            let told = "Only a simulation can answer, and that of this host holds far more unwritten data than it did.";
            row.decide(Verdict::NotKnown, Cause::UnlikeTwin, told.to_owned());
        }
        return;
    }
    let arithmetic = (row.verdict, row.cause, row.finding.clone());
    let by_arithmetic = row.severity;
    row.severity = severity.min(SEVERITY_MAX);
    let stated = if is_of_another { Stated::Nothing } else { Stated::of(prediction) };
    let effect = match (is_of_another, is_reliable) {
        (true, _) => String::new(),
        (false, true) => effect("Predicted", row, prediction, seconds),
        (false, false) => effect("In a twin that misses this recording", row, prediction, seconds),
    };
    // The effect in a twin that misses its recording must be large, unless arithmetic finds the same without a twin.
    // A wait by arithmetic that is too short to be noticed is not the same.
    let agrees = row.verdict == Verdict::Suffers && !(row.predicts_waits && by_arithmetic < SUFFERS);
    let enough = if is_reliable || agrees { SUFFERS } else { SUFFERS_DOUBTFUL };
    if let Some(relief) = Relief::of(prediction, row).filter(|_| is_reliable && row.verdict == Verdict::Suffers) {
        let (_, cause, told) = arithmetic;
        row.severity = severity.clamp(TIGHT, TRADE);
        return row.decide(Verdict::Tight, cause, format!("{} {told}", relief.told(row)));
    }
    let is_suffering = severity >= enough && stated.allows(row, is_reliable);
    match arithmetic {
        (_, cause, told) if is_suffering => {
            let is_named = matches!(row.verdict, Verdict::Suffers | Verdict::Tight);
            let cause = if is_named { cause } else { appeared(prediction).unwrap_or(Cause::Simulated) };
            // Where the twin states no longer wait, arithmetic alone says that the host suffers.
            let effect = if stated.is_longer() { effect } else { NOT_STATED.to_owned() };
            if !stated.is_longer() && is_reliable {
                row.confidence = Confidence::Medium;
            }
            let told = if is_named { format!("{told} {effect}") } else { effect };
            let misses_stores = row.hides_stores && severity < MISSES_STORES * by_arithmetic;
            let is_by_arithmetic = row.is_firm && (misses_stores || !is_reliable && !is_cliff);
            row.severity = match () {
                () if is_by_arithmetic => by_arithmetic,
                // Tasks of a sick host wait already, which arithmetic does not subtract.
                () if row.predicts_waits && row.sick_already.is_none() => of_both(&answer, by_arithmetic),
                () => severity,
            }
            .min(SEVERITY_MAX);
            row.decide(Verdict::Suffers, cause, told);
        }
        (Verdict::Suffers, cause, told) if row.is_firm => {
            row.severity = by_arithmetic;
            row.confidence = Confidence::Medium;
            row.decide(Verdict::Suffers, cause, told);
        }
        (Verdict::Suffers, cause, told) if !is_reliable => {
            // The twin is calm but unreliable: neither tier is conclusive.
            row.severity = severity.max(TIGHT);
            row.decide(
                Verdict::Tight,
                cause,
                format!("{told} The simulation does not show it, but is not reliable here."),
            );
        }
        (Verdict::Suffers, cause, told) => {
            row.severity = row.severity.clamp(0.0, TRADE);
            let calm = match stated.is_longer() {
                true => "In the simulation the change makes less difference.",
                false => calm(is_reliable),
            };
            row.decide(Verdict::Tight, cause, format!("{told} {calm} {effect}"));
        }
        (Verdict::Tight, ..)
            if severity < TIGHT
                && !stated.is_longer()
                && row.cause != Cause::MemoryTooSmall
                && row.margin.is_none_or(|margin| margin >= crate::arithmetic::TIGHT) =>
        {
            row.decide(Verdict::Fine, Cause::WideMargin, format!("{} {effect}", calm(is_reliable)));
        }
        (Verdict::Tight, cause, told) => {
            row.severity = row.severity.clamp(0.0, TRADE);
            row.decide(Verdict::Tight, cause, format!("{told} {effect}").trim_end().to_owned());
        }
        // Harm that is stated is no wide margin, however small it is.
        _ if stated == Stated::Worse || (severity >= TIGHT && stated == Stated::Nothing) => {
            row.severity = row.severity.clamp(TIGHT, TRADE);
            row.decide(Verdict::Tight, appeared(prediction).unwrap_or(Cause::Simulated), effect);
        }
        (Verdict::NotKnown, ..) => {
            let cause = crate::arithmetic::fine_cause(row);
            let told = if stated.is_longer() { "On the whole the change helps." } else { calm(is_reliable) };
            row.decide(Verdict::Fine, cause, format!("{told} {effect}"));
        }
        (Verdict::Fine, ..) => {}
    }
}

/// What a row says where the twin cannot tell how long tasks wait.
const NOT_STATED: &str = "How much longer tasks wait is not predictable here.";

/// What a row says of a twin in which no wait gets longer.
fn calm(is_reliable: bool) -> &'static str {
    match is_reliable {
        true => "In the simulation no task waits noticeably longer.",
        false => "In a simulation that is not reliable here, no task waits noticeably longer.",
    }
}

/// What a prediction states, by the judgement that every command has. Figures that it refuses state nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stated {
    /// The change harms.
    Worse,
    /// A wait gets longer, and the change helps on the whole.
    Mixed,
    /// The change helps, and no wait gets longer.
    Better,
    /// The waits are predicted, and stay the same.
    Same,
    /// The waits are not predicted.
    Nothing,
}

impl Stated {
    fn of(prediction: &Prediction) -> Stated {
        let waits =
            || prediction.rows.iter().filter(|row| row.unit == "seconds" && LEADS.contains(&row.figure.as_str()));
        let is_longer = waits().any(|wait| wait.worsens());
        let found: Vec<&str> = prediction.vanish.iter().chain(&prediction.stay).map(|seen| seen.rule).collect();
        match prediction.verdict(&found) {
            Judged::Harms => Stated::Worse,
            Judged::Helps if is_longer => Stated::Mixed,
            Judged::Helps => Stated::Better,
            Judged::DoesNotHelp if is_longer => Stated::Worse,
            Judged::DoesNotHelp if waits().any(|wait| wait.doubt.is_some()) || waits().next().is_none() => {
                Stated::Nothing
            }
            Judged::DoesNotHelp => Stated::Same,
        }
    }

    fn is_longer(self) -> bool {
        matches!(self, Stated::Worse | Stated::Mixed)
    }

    /// Whether a host may suffer for it, by a twin that gets worse. What arithmetic found needs no figure of the twin, unless
    /// a reliable twin states the opposite. What no recording shows cannot be cleared by a twin.
    fn allows(self, row: &Row, is_reliable: bool) -> bool {
        match self {
            Stated::Worse => true,
            Stated::Mixed | Stated::Nothing => row.verdict == Verdict::Suffers,
            Stated::Better | Stated::Same => row.verdict == Verdict::Suffers && (row.is_firm || !is_reliable),
        }
    }
}

/// Severity by two predictions of the same waits, that of the twin and that of arithmetic: their geometric mean. Where the
/// demand lies between two twins, the one counts that is nearer to what arithmetic predicts.
fn of_both(answer: &Answer, by_arithmetic: f64) -> f64 {
    let twin = by_arithmetic.max(answer.severity).min(answer.severity_max);
    (twin * by_arithmetic).sqrt().max(SUFFERS)
}

/// What a limit by arithmetic does to a host that is sick before the change: a wait of its sickness gets shorter, by a
/// larger factor than any wait gets longer.
struct Relief<'a> {
    better: &'a prediction::Row,
    worse: Option<&'a prediction::Row>,
}

impl<'a> Relief<'a> {
    fn of(prediction: &'a Prediction, row: &Row) -> Option<Relief<'a>> {
        let rule = row.sick_already.as_deref()?;
        let is_limit = matches!(row.cause, Cause::CgroupLimit | Cause::MachineLimit) && !row.is_firm;
        let is_new = prediction.appear.iter().any(|seen| seen.severity == Severity::Critical);
        if !is_limit || is_new {
            return None;
        }
        // Values below what people notice are no base of a factor.
        let grows = |wait: &prediction::Row| (wait.then + wait.least) / (wait.now + wait.least).max(f64::MIN_POSITIVE);
        let largest = |one: &&prediction::Row, other: &&prediction::Row| grows(one).total_cmp(&grows(other));
        let waits = || prediction.rows.iter().filter(|wait| wait.unit == "seconds" && wait.better == Better::Less);
        let of_sickness = waits().filter(|wait| rests_on(rule).contains(&wait.figure.as_str()) && wait.improves());
        let better = of_sickness.min_by(largest)?;
        let worse = waits().filter(|wait| wait.worsens()).max_by(largest);
        worse.is_none_or(|worse| grows(worse) * grows(better) <= 1.0).then_some(Relief { better, worse })
    }

    fn told(&self, row: &Row) -> String {
        let change = |wait: &prediction::Row| {
            format!("{} {} → about {}", wait.label, human::seconds(wait.now), human::seconds(wait.then))
        };
        let rule = row.sick_already.as_deref().unwrap_or_default();
        let costs = self.worse.map_or_else(String::new, |worse| format!(" It costs: {}.", change(worse)));
        format!("The host suffers now ({rule}), and the change helps: {}.{costs}", change(self.better))
    }
}

/// The cause of the worst finding that appears in the simulation.
fn appeared(prediction: &Prediction) -> Option<Cause> {
    let worst =
        prediction.appear.iter().filter(|seen| seen.severity >= Severity::Warning).max_by_key(|seen| seen.severity)?;
    Cause::ALL.iter().copied().find(|cause| cause.name() == worst.rule)
}

/// Copies predicted figures. What is not predictable is left out, as `floodline predict` does.
fn fill(prediction: &Prediction, row: &mut Row) {
    let of = |name: &str| prediction.rows.iter().find(|row| row.figure == name && row.doubt.is_none());
    if let Some(stall) = of("stall_seconds") {
        row.stall_now_seconds = Some(stall.now);
        row.stall_then_seconds = Some(stall.then);
        row.stall_then_low_seconds = Some(stall.low);
        row.stall_then_high_seconds = Some(stall.high);
    }
    let kinds = [of("durable.longest_wait_seconds"), of("longest_write_wait_seconds")];
    let waits = || kinds.into_iter().flatten();
    row.longest_wait_now_seconds = waits().map(|wait| wait.now).reduce(f64::max);
    row.longest_wait_then_seconds = waits().map(|wait| wait.then).reduce(f64::max);
    let written = of("devices.written_bytes");
    row.written_now_bytes = written.map(|bytes| bytes.now);
    row.written_then_bytes = written.map(|bytes| bytes.then);
}

/// The figures in a sentence.
fn effect(by: &str, row: &Row, prediction: &Prediction, seconds: f64) -> String {
    let mut told = Vec::new();
    if let Some((now, then)) =
        row.stall_now_seconds.zip(row.stall_then_seconds).filter(|(now, then)| (then - now).abs() > 0.05)
    {
        let (now, then) = (human::seconds(now), human::seconds(then));
        told.push(format!("tasks wait {now} → about {then} in {}", human::seconds(seconds)));
    }
    if let Some((now, then)) = row.longest_wait_now_seconds.zip(row.longest_wait_then_seconds)
        && (then - now).abs() > 0.1
    {
        told.push(format!("the longest write or sync {} → about {}", human::seconds(now), human::seconds(then)));
    }
    if let Some((now, then)) = row.written_now_bytes.zip(row.written_then_bytes)
        && (then > 1.2 * now || now > 1.2 * then)
    {
        told.push(format!("written to disks {} → about {}", human::bytes(now), human::bytes(then)));
    }
    let is_told = |loss: &&&prediction::Row| {
        [WAITS, "durable.longest_wait_seconds", "longest_write_wait_seconds"].contains(&loss.figure.as_str())
    };
    told.extend(prediction.losses().iter().filter(|loss| !is_told(loss)).take(1).map(|loss| loss.sentence()));
    let seen = prediction.hurting().or(prediction.appear.first());
    told.extend(seen.map(|seen| format!("{} appears", seen.rule)));
    match (told.is_empty(), by) {
        (false, _) => format!("{by}: {}.", told.join("; ")),
        (true, _) if prediction.rows.iter().any(|row| row.doubt.is_some()) => {
            "Of figures that the twin predicts, none changes noticeably.".to_owned()
        }
        (true, by) => format!("{by}: no figure changes noticeably."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::version::KernelVersion;

    /// A host that arithmetic has judged, and its answer after a twin.
    fn judged(verdict: Verdict, cause: Cause, severity: f64, margin: f64, answer: Answer) -> (Verdict, f64) {
        let mut row = Row { severity, margin: Some(margin), is_firm: cause == Cause::DirtyCliff, ..Row::default() };
        row.decide(verdict, cause, "So it is.".to_owned());
        weigh(answer, Wanted::Flagged, 60.0, &mut row);
        (row.verdict, row.severity)
    }

    /// A twin with a harm by each demand, a multiple of the recorded unwritten data, and an error of its back-test.
    fn twin(severity: f64, severity_max: f64, peak: f64, error: f64) -> Answer {
        Answer {
            severity,
            severity_max,
            is_demand_known: severity == severity_max,
            peak: Some(peak),
            error: Some(error),
            // The figure that gets worse with the severity is stated.
            prediction: Prediction {
                rows: vec![wait("stall_seconds", 1.0, 1.0 + 6.0 * severity)],
                ..nothing_predicted()
            },
            is_cut: false,
        }
    }

    fn nothing_predicted() -> Prediction {
        Prediction { runs: 2, ..Prediction::new(Vec::new(), KernelVersion::new(6, 12, 0)) }
    }

    #[test]
    fn arithmetic_and_a_twin_that_agree_need_no_more_than_what_is_noticed() {
        let check = |verdict, answer, expect| {
            assert_eq!(judged(verdict, Cause::CgroupLimit, 4.0, 0.3, answer).0, expect);
        };
        check(Verdict::Suffers, twin(1.2, 1.2, 1.0, 0.5), Verdict::Suffers);
        check(Verdict::Suffers, twin(0.9, 0.9, 1.0, 0.5), Verdict::Tight);
        check(Verdict::Tight, twin(4.9, 4.9, 1.0, 0.5), Verdict::Tight);
        check(Verdict::Tight, twin(5.1, 5.1, 1.0, 0.5), Verdict::Suffers);
    }

    #[test]
    fn a_twin_that_holds_what_the_host_does_not_hold_does_not_count() {
        let check = |verdict, margin, peak, expect| {
            assert_eq!(judged(verdict, Cause::CgroupLimit, 2.0, margin, twin(6.0, 6.0, peak, 0.1)).0, expect);
        };
        check(Verdict::Suffers, 0.8, 8.0, Verdict::Tight);
        check(Verdict::Suffers, 0.8, 2.0, Verdict::Suffers);
        check(Verdict::Tight, 1.1, 1.9, Verdict::Tight);
        check(Verdict::Tight, 1.1, 1.2, Verdict::Suffers);
        check(Verdict::Tight, 1.9, 1.7, Verdict::Suffers);
    }

    #[test]
    fn a_cliff_is_cleared_only_by_a_twin_that_has_what_was_held_back() {
        let check = |answer, expect| assert_eq!(judged(Verdict::Suffers, Cause::DirtyCliff, 3.0, 40.0, answer), expect);
        check(twin(0.2, 0.2, 1.0, 0.1), (Verdict::Tight, 0.2));
        check(twin(0.2, 0.2, 0.4, 0.1), (Verdict::Suffers, 3.0));
        check(twin(0.2, 0.4, 1.0, 0.1), (Verdict::Suffers, 3.0));
        check(twin(0.2, 1.4, 1.0, 0.1), (Verdict::Suffers, 1.4));
    }

    fn wait(figure: &str, now: f64, then: f64) -> prediction::Row {
        prediction::Row { least: 0.1, ..prediction::Row::new(figure, figure, "seconds", now, then) }
    }

    #[test]
    fn a_longest_wait_that_is_not_predictable_is_not_shown() {
        let doubtful = |row| prediction::Row { doubt: Some(prediction::Doubt::BackTest), ..row };
        let check = |fsync: prediction::Row, write: prediction::Row, expect| {
            let mut row = Row::default();
            fill(&Prediction { rows: vec![fsync, write], ..nothing_predicted() }, &mut row);
            assert_eq!(row.longest_wait_now_seconds.zip(row.longest_wait_then_seconds), expect);
        };
        let fsync = || wait("durable.longest_wait_seconds", 6.17, 0.109);
        let write = || wait("longest_write_wait_seconds", 0.02, 0.216);
        check(fsync(), doubtful(write()), Some((6.17, 0.109)));
        check(doubtful(fsync()), write(), Some((0.02, 0.216)));
        // The longest of both, before and after.
        check(fsync(), write(), Some((6.17, 0.216)));
        check(doubtful(fsync()), doubtful(write()), None);
    }

    #[test]
    fn a_sick_host_that_gets_better_does_not_suffer_from_a_limit() {
        let check = |sick: Option<&str>, cause, rows: Vec<prediction::Row>, expect| {
            let mut row = Row { sick_already: sick.map(str::to_owned), margin: Some(0.3), ..Row::default() };
            row.decide(Verdict::Suffers, cause, "It held much.".to_owned());
            let prediction = Prediction { rows, ..nothing_predicted() };
            weigh(Answer { prediction, ..twin(5.0, 5.0, 1.0, 0.02) }, Wanted::Flagged, 60.0, &mut row);
            assert_eq!(row.verdict, expect, "{}", row.finding);
            row.finding
        };
        let sick = Some("overlay-umount-flush");
        let umount = |then| wait("umount.longest_wait_seconds", 6.0, then);
        let stall = |then| wait("stall_seconds", 49.0, then);
        let limit = Cause::MachineLimit;
        let told = check(sick, limit, vec![umount(0.9), stall(73.0)], Verdict::Tight);
        assert!(
            told.starts_with("The host suffers now (overlay-umount-flush), and the change helps: umount"),
            "{told}"
        );
        assert!(told.contains("It costs: stall_seconds 49 s → about 73 s."), "{told}");
        check(sick, limit, vec![umount(0.9), stall(30.0)], Verdict::Tight);
        check(sick, limit, vec![umount(4.5), stall(730.0)], Verdict::Suffers);
        // No wait gets longer.
        let told = check(sick, limit, vec![umount(6.0), stall(30.0)], Verdict::Tight);
        assert!(told.contains("no task waits noticeably longer"), "{told}");
        check(None, limit, vec![umount(0.9), stall(73.0)], Verdict::Suffers);
        check(sick, Cause::StarvedBudget, vec![umount(0.9), stall(73.0)], Verdict::Suffers);
    }

    #[test]
    fn a_host_suffers_only_by_figures_that_are_stated_and_get_worse() {
        let doubted = |now, then| prediction::Row {
            doubt: Some(prediction::Doubt::BackTest),
            ..wait("stall_seconds", now, then)
        };
        let check = |from, error, stall: prediction::Row, expect| {
            let mut row = Row { margin: Some(0.3), ..Row::default() };
            row.decide(from, Cause::MachineLimit, "By arithmetic.".to_owned());
            let prediction = Prediction { rows: vec![stall], ..nothing_predicted() };
            weigh(Answer { prediction, ..twin(60.0, 60.0, 1.0, error) }, Wanted::Flagged, 60.0, &mut row);
            assert_eq!((row.verdict, row.confidence), expect, "{}", row.finding);
            row
        };
        let (suffers, tight, fine) = (Verdict::Suffers, Verdict::Tight, Verdict::Fine);
        let (low, medium, high) = (Confidence::Low, Confidence::Medium, Confidence::High);
        let stall = |then| wait("stall_seconds", 62.0, then);
        for from in [suffers, tight, fine] {
            check(from, 0.1, stall(97.0), (suffers, high));
        }
        check(suffers, 0.1, stall(4.11), (tight, high));
        check(tight, 0.1, stall(4.11), (tight, high));
        check(suffers, 0.1, stall(62.5), (tight, high));
        check(fine, 0.1, stall(62.5), (fine, high));
        // The twin refuses the figure: arithmetic stands, and no figure does.
        let row = check(suffers, 0.1, doubted(62.0, 4.11), (suffers, medium));
        assert!(!row.finding.contains("62 s") && row.finding.contains("not predictable"), "{}", row.finding);
        assert_eq!((row.stall_now_seconds, row.stall_then_seconds), (None, None));
        check(fine, 0.1, doubted(62.0, 97.0), (tight, high));
        // A twin that misses its recording: the figure is marked.
        let row = check(suffers, 0.4, stall(97.0), (suffers, low));
        assert!(row.finding.contains("In a twin that misses this recording: tasks wait 62 s"), "{}", row.finding);
        let row = check(suffers, 0.4, stall(4.11), (suffers, low));
        assert!(!row.finding.contains("4.11"), "{}", row.finding);
        assert!(row.severity <= SEVERITY_MAX);
    }

    #[test]
    fn a_row_does_not_say_that_no_wait_gets_longer_beside_one_that_does() {
        for from in [Verdict::Tight, Verdict::NotKnown, Verdict::Fine] {
            let mut row = Row { margin: Some(9.0), ..Row::default() };
            row.decide(from, Cause::NotSimulated, "By arithmetic.".to_owned());
            let prediction = Prediction { rows: vec![wait("stall_seconds", 5.63, 16.0)], ..nothing_predicted() };
            weigh(Answer { prediction, ..twin(0.1, 0.1, 1.0, 0.1) }, Wanted::Flagged, 48.0, &mut row);
            assert_eq!(row.verdict, Verdict::Tight, "{}", row.finding);
            assert!(row.finding.contains("5.63 s → about 16 s") && !row.finding.contains("no task"), "{}", row.finding);
        }
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
    fn a_twin_of_another_host_is_named_as_the_reason() {
        let mut row = Row::default();
        row.decide(Verdict::NotKnown, Cause::NotSimulated, "Arithmetic has no answer.".to_owned());
        weigh(twin(0.0, 0.0, 9.0, 0.1), Wanted::Flagged, 60.0, &mut row);
        assert_eq!((row.verdict, row.cause), (Verdict::NotKnown, Cause::UnlikeTwin));
        assert!(!row.hint.contains("--tier"), "{}", row.hint);
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
