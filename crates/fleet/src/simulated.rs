// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tier 2: the twin of one host before and after the change. Chooses the hosts to simulate, runs the twin as few times
//! as necessary, and weighs the result by the error of its back-test.

use crate::Depth;
use crate::change::Change;
use crate::harm::Felt;
use crate::row::{Cause, Confidence, Row, Verdict};
use floodline_analysis::prediction::{Prediction, Setting};
use floodline_analysis::report::Severity;
use floodline_record::human;
use floodline_sim::{Progress, SimError};
use floodline_twin::backtest::{self, MISS_MAX};
use floodline_twin::predict::{Measured, Question, Run, conclude};
use floodline_twin::shown::{self, Shown};
use floodline_twin::{Options, Recorded, Twin, TwinError, of};

/// Severity from which a host suffers.
const SUFFERS: f64 = 1.0;
/// Severity from which a host suffers if the twin misses its own recording and arithmetic does not agree.
const SUFFERS_DOUBTFUL: f64 = 5.0;
/// Severity from which its margin is small.
const TIGHT: f64 = 0.5;

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
    /// Harm by the open twin, and by the closed one where demand is bounded.
    severity: f64,
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
    let asked = || -> Result<Option<Answer>, String> {
        let twin = of(recorded, &Options::default()).map_err(|error: TwinError| error.to_string())?;
        let question = Question::new(&twin, &recorded.window, &settings).map_err(|error| error.to_string())?;
        answer(recorded, &twin, &question, depth, go_on).map_err(|error| error.to_string())
    };
    match asked() {
        Ok(Some(answer)) => weigh(answer, wanted, recorded.window.seconds(), row),
        Ok(None) => row.notes.push("The simulation was ended before it had an answer.".to_owned()),
        Err(why) => {
            row.notes.push(format!("Not simulated: {}.", floodline_record::name::harmless(&why)));
            if row.cause == Cause::NotSimulated {
                let finding = format!("Only a simulation can answer, and none is possible: {why}.");
                row.decide(Verdict::NotKnown, Cause::TooShort, finding);
            }
        }
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
        let (shown, window) = shown::run(changed, run.trial, twin.every, &twin.programs, may_go_on)?;
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
    let severity = worse(1).map_or(open, |closed| open.min(closed));
    let Some(prediction) = conclude(twin, question, &measured, &results) else { return Ok(None) };
    Ok(Some(Answer { severity, error: prediction.back_test_error, is_cut: prediction.is_cut, prediction }))
}

/// Decides from both tiers.
fn weigh(answer: Answer, wanted: Wanted, seconds: f64, row: &mut Row) {
    let Answer { severity, error, prediction, is_cut } = answer;
    row.tier = 2;
    row.control = wanted == Wanted::Control;
    row.back_test_error = error;
    fill(&prediction, row);
    let is_reliable = error.is_some_and(|error| error <= MISS_MAX) && !is_cut;
    row.confidence = if is_reliable { Confidence::High } else { Confidence::Low };
    if let Some(error) = error.filter(|error| *error > MISS_MAX) {
        row.notes.push(format!("The twin misses this recording by {}.", human::percent(error)));
    }
    if is_cut {
        row.notes.push("The simulation exceeded its budget: only its beginning counts.".to_owned());
    }
    let arithmetic = (row.verdict, row.cause, row.finding.clone());
    let by_arithmetic = row.severity;
    row.severity = severity;
    let effect = effect(row, &prediction, seconds);
    // The effect in a twin that misses its recording must exceed its error, and more so without a finding of the
    // arithmetic.
    let enough = match (is_reliable, row.verdict) {
        (true, _) => SUFFERS,
        (false, Verdict::Suffers) => SUFFERS * (1.0 + 2.0 * error.unwrap_or(1.0)),
        (false, _) => SUFFERS_DOUBTFUL,
    };
    match arithmetic {
        (_, cause, told) if severity >= enough => {
            let is_named = matches!(row.verdict, Verdict::Suffers | Verdict::Tight);
            let cause = if is_named { cause } else { appeared(&prediction).unwrap_or(Cause::Simulated) };
            let told = if is_named { format!("{told} {effect}") } else { effect };
            row.severity = if row.is_firm && !is_reliable { by_arithmetic } else { severity };
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
            row.decide(Verdict::Tight, cause, format!("{told} Simulated, nothing waits noticeably longer."));
        }
        (Verdict::Tight, ..)
            if severity < TIGHT && row.margin.is_none_or(|margin| margin >= crate::arithmetic::TIGHT) =>
        {
            row.decide(
                Verdict::Fine,
                Cause::WideMargin,
                format!("Simulated, nothing waits noticeably longer. {effect}"),
            );
        }
        (Verdict::Tight, ..) => {}
        (_, _, told) if severity >= TIGHT => {
            row.decide(Verdict::Tight, appeared(&prediction).unwrap_or(Cause::Simulated), format!("{told} {effect}"));
        }
        (Verdict::NotKnown, ..) => {
            row.decide(
                Verdict::Fine,
                Cause::WideMargin,
                format!("Simulated, nothing waits noticeably longer. {effect}"),
            );
        }
        (Verdict::Fine, ..) => {}
    }
}

/// The cause of the worst finding that appears in the simulation.
fn appeared(prediction: &Prediction) -> Option<Cause> {
    let worst =
        prediction.appear.iter().filter(|seen| seen.severity >= Severity::Warning).max_by_key(|seen| seen.severity)?;
    Cause::ALL.iter().copied().find(|cause| cause.name() == worst.rule)
}

/// Copies predicted figures.
fn fill(prediction: &Prediction, row: &mut Row) {
    let of = |name: &str| prediction.rows.iter().find(|row| row.figure == name);
    if let Some(stall) = of("stall_seconds") {
        row.stall_now_seconds = Some(stall.now);
        row.stall_then_seconds = Some(stall.then);
        row.stall_then_low_seconds = Some(stall.low);
        row.stall_then_high_seconds = Some(stall.high);
    }
    let waits = [of("durable.longest_wait_seconds"), of("longest_write_wait_seconds")];
    let longest = waits.into_iter().flatten().max_by(|one, other| one.then.total_cmp(&other.then));
    row.longest_wait_now_seconds = longest.map(|wait| wait.now);
    row.longest_wait_then_seconds = longest.map(|wait| wait.then);
    let written = of("devices.written_bytes");
    row.written_now_bytes = written.map(|bytes| bytes.now);
    row.written_then_bytes = written.map(|bytes| bytes.then);
}

/// The figures in a sentence.
fn effect(row: &Row, prediction: &Prediction, seconds: f64) -> String {
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
    match (told.is_empty(), prediction.appear.first()) {
        (false, _) => format!("Predicted: {}.", told.join("; ")),
        (true, Some(seen)) => format!("Predicted: {} appears.", seen.rule),
        (true, None) => "Predicted: no figure changes noticeably.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::is_control;

    #[test]
    fn the_control_is_the_share_asked_for_and_the_same_each_time() {
        let hosts: Vec<String> = (0..20_000).map(|n| format!("web{n}.example.org")).collect();
        let count = |share| hosts.iter().filter(|host| is_control(host, share)).count();
        assert!((150..250).contains(&count(0.01)), "{}", count(0.01));
        assert_eq!((count(0.0), count(1.0)), (0, 20_000));
        assert_eq!(is_control("web7", 0.01), is_control("web7", 0.01));
    }
}
