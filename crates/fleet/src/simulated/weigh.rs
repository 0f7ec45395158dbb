// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weighs the answer of a twin: by the error of its back-test, by the unwritten data that it holds, and beside what arithmetic
//! found without it.

use super::filled::fill;
use super::sentences::{
    BETWEEN_DISKS, DEMAND_NOT_KNOWN, LIMIT_NOT_SEEN, NOT_STATED, WORSE_IN_UNLIKE, below_limits, calm, changes, effect,
    in_any, longer_call,
};
use super::{Answer, Peak, Wanted};
use crate::arithmetic::SEVERITY_MAX;
use crate::harm::{LONGEST_S, LONGEST_TIMES, STALL};
use crate::row::{Cause, Confidence, Row, Verdict};
use floodline_analysis::judgement::Verdict as Judged;
use floodline_analysis::prediction::{self, Better, DIRTIED, Doubt, LEADS, Prediction, WAITS};
use floodline_analysis::report::Severity;
use floodline_analysis::rule_figures::rests_on;
use floodline_record::human;
use floodline_twin::backtest::MISS_MAX;
use std::borrow::Cow;

/// Severity from which a host suffers.
pub(super) const SUFFERS: f64 = 1.0;
/// Severity from which a host suffers if the twin misses its own recording and arithmetic does not agree.
const SUFFERS_DOUBTFUL: f64 = 5.0;
/// Severity from which a host suffers without arithmetic, however the waits of a twin that misses its own recording are
/// compared.
const SUFFERS_IN_ANY: f64 = 2.0;
/// Severity from which its margin is small.
pub(super) const TIGHT: f64 = 0.5;
/// Multiple of the recorded peak of unwritten data from which a twin is that of another host: it lacks what cleans the data
/// early, such as `sync_file_range`, and meets limits that the host does not meet.
const OTHER_HOST: f64 = 3.0;
/// The same multiple where the recorded data fits below a limit that the data of the twin exceeds.
const MEETS_LIMIT: f64 = 1.5;
/// Deviation of that peak up to which a twin has what a threshold held back.
const SAME_PEAK: f64 = 0.1;
/// Severity of a trade: a host that is sick before the change gets rid of more waiting than it gets.
const TRADE: f64 = 0.9;
/// Part of the waits of all tasks that is left where a change ends nearly all of them.
const MOST_ENDS: f64 = 0.1;
/// Bytes left unwritten at the end of a run are a pile from this part of the bytes written now.
const LEFT: f64 = 0.5;
/// Part of the arithmetic's severity below which a twin misses stores that no counter shows.
const MISSES_STORES: f64 = 1.0 / 3.0;

impl Answer {
    /// Whether its waits are those of a host with more unwritten data than was recorded: it holds several times as much,
    /// or it meets a limit below which the recorded data fits. What may have been there between two samples is not more.
    fn is_of_another_host(&self, margin: Option<f64>) -> bool {
        let Some(Peak { weighed: peak, .. }) = self.peak.filter(|_| !self.is_between_samples) else { return false };
        let meets_limit = margin.is_some_and(|margin| margin >= 1.0 && margin < peak);
        peak > OTHER_HOST || (peak > MEETS_LIMIT && meets_limit)
    }

    /// Returns the harm between its bounds that is nearest to the harm by arithmetic.
    fn nearest(&self, by_arithmetic: f64) -> f64 {
        by_arithmetic.max(self.severity).min(self.severity_max.max(self.since_recorded))
    }

    /// Harm where pages are dirtied again, on a disk whose limit no recording shows. The disk of the twin then has none, so that the harm is
    /// that of the bytes alone. On a slow disk, tasks also wait for them. The geometric mean of both counts.
    fn on_a_disk_of_unknown_limit(&self, severity: f64) -> f64 {
        let slow = self.on_slow_disks.filter(|slow| *slow > severity && severity >= TIGHT);
        slow.map_or(severity, |slow| (severity * slow.min(SEVERITY_MAX)).sqrt())
    }

    /// The least harm of all that its waits can be compared with: those of either demand before the change, those of the recording,
    /// and those without syncs that no recording shows. A twin that misses its recording has a different error in each comparison.
    fn least(&self) -> f64 {
        let unsynced = self.without_assumed_syncs.unwrap_or(f64::INFINITY);
        self.severity.min(self.since_recorded).min(unsynced)
    }

    /// The least harm of a twin that holds more unwritten data than was recorded, but less than any limit, and its data as a
    /// multiple of the recorded. Only for a change that arithmetic cannot judge: more data meets no limit then, and tasks wait
    /// longer in every comparison.
    fn harm_below_limits(&self, is_of_another: bool, row: &Row) -> Option<(f64, f64)> {
        let peak = self.peak.filter(|_| is_of_another && !self.is_cut && row.cause == Cause::NotSimulated)?;
        let is_below = row.margin.is_some_and(|margin| peak.weighed < margin);
        let is_longer = || Stated::of(&self.without_relief_of_assumed_syncs()).is_longer();
        let least = self.least();
        (is_below && least >= SUFFERS_IN_ANY && is_longer()).then_some((least, peak.times))
    }

    /// Whether a reliable twin writes pages again and again: below a limit that arithmetic found, in the large folios of a new kernel, or by
    /// a change that only a simulation can judge.
    /// No wait states that, and bytes are what it predicts best.
    fn writes_again(&self, row: &Row, stated: Stated, is_reliable: bool) -> bool {
        let is_shorter = |row: &prediction::Row| row.unit == "seconds" && row.improves();
        let waits_for_less = stated == Stated::Better && self.prediction.leads().any(is_shorter);
        let is_found = row.verdict == Verdict::Suffers || row.gets_folios || row.cause == Cause::NotSimulated;
        self.dirties_again && is_reliable && is_found && !waits_for_less
    }

    /// Its prediction. Where it has a sync for which the recording shows no caller, nothing gets better because that sync waits for
    /// less: it may be that none waits at all.
    fn without_relief_of_assumed_syncs(&self) -> Cow<'_, Prediction> {
        if self.without_assumed_syncs.is_none() {
            return Cow::Borrowed(&self.prediction);
        }
        let is_of_sync = |row: &prediction::Row| row.figure.starts_with("durable.") || row.figure == WAITS;
        let rows: Vec<prediction::Row> =
            self.prediction.rows.iter().filter(|row| !(is_of_sync(row) && row.improves())).cloned().collect();
        if rows.len() == self.prediction.rows.len() {
            return Cow::Borrowed(&self.prediction);
        }
        Cow::Owned(Prediction { rows, ..self.prediction.clone() })
    }

    /// The longest call that empties, removes or closes a file, before and after the change, if it gets noticeably longer.
    fn longer_call(&self) -> Option<(f64, f64)> {
        self.longest_other.filter(|(now, then)| *then > LONGEST_TIMES * now && then - now >= LONGEST_S)
    }

    /// Whether the two bounds of the demand disagree on the direction of a recorded wait, which may get noticeably longer, and no other wait
    /// tells what the change does. `predict` then says that the direction is not known.
    fn is_demand_open(&self, stated: Stated) -> bool {
        let leads = || self.prediction.leads().filter(|row| row.unit == "seconds");
        let may_grow = |row: &prediction::Row| row.high > LONGEST_TIMES * row.now && row.high - row.now >= LONGEST_S;
        let is_open = leads().any(|row| row.doubt == Some(Doubt::Demand) && row.is_measured && may_grow(row));
        is_open && !stated.is_longer() && !leads().any(|row| row.improves())
    }

    /// Whether it has the data that a threshold held back, and lets it loose.
    fn has_what_was_held_back(&self) -> bool {
        self.is_demand_known && self.peak.is_some_and(|peak| (peak.weighed - 1.0).abs() <= SAME_PEAK)
    }
}

/// Decides from both tiers.
pub(super) fn weigh(answer: Answer, wanted: Wanted, seconds: f64, row: &mut Row) {
    let Answer { error, is_cut, ref prediction, .. } = answer;
    row.tier = 2;
    row.control = wanted == Wanted::Control;
    row.back_test_error = error;
    fill(prediction, answer.writable_bytes, row);
    let is_of_another = answer.is_of_another_host(row.margin);
    let is_reliable = error.is_some_and(|error| error <= MISS_MAX) && !is_cut && !is_of_another;
    if row.cause == Cause::NeverWritten {
        return weigh_never_written(&answer, is_reliable, seconds, row);
    }
    let is_cliff = row.is_firm && row.cause == Cause::DirtyCliff;
    let severity = match () {
        () if is_of_another => 0.0,
        // Writers that were held back want more than they show: the larger demand is nearer.
        () if is_cliff => answer.severity_max,
        // The demand whose twin reproduces the recording.
        () if is_reliable => answer.of_first,
        () => answer.severity,
    };
    // How much a sync finds depends on its moment, so a twin that is close to what people notice clears nothing. Syncs of another
    // filesystem find none of it.
    let finds_it = answer.has_what_was_held_back() && answer.syncs_most && syncs(prediction);
    let leaves = leaves_unwritten(prediction);
    if is_cliff && is_reliable && severity < TIGHT && finds_it && !leaves {
        row.is_firm = false;
    }
    // Few flushes come from a journal or from a program that syncs rarely. If the change ends the recorded waits in a twin without syncs,
    // writers waited there, and no sync did.
    if is_cliff && is_reliable && row.syncs_rarely && answer.relieves && !syncs(prediction) && !leaves {
        row.is_firm = false;
    }
    // Programs that write the same pages again, or remove what they wrote, pile up no more than their files. A pile that no program syncs
    // is written later, and none waits for it.
    let is_synced = syncs(prediction) || !row.syncs_rarely;
    if is_cliff && is_reliable && row.is_of_age && severity < TIGHT && (!piles_up(prediction) || !is_synced) {
        row.is_firm = false;
    }
    row.confidence = if is_reliable { Confidence::High } else { Confidence::Low };
    if let Some(error) = error.filter(|error| *error > MISS_MAX) {
        row.notes.push(format!("The twin misses this recording by {}.", human::percent(error)));
    }
    if let Some((least, times)) = answer.harm_below_limits(is_of_another, row) {
        row.severity = least.min(SEVERITY_MAX);
        return row.decide(Verdict::Suffers, Cause::Simulated, below_limits(least, times));
    }
    if let Some(Peak { times, .. }) = answer.peak.filter(|_| is_of_another) {
        row.notes.push(format!("The twin holds {times:.1} times the recorded unwritten data: it does not count."));
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
    let by_arithmetic = slowed(row, answer.slower);
    let certain = answer.without_relief_of_assumed_syncs();
    let stated = if is_of_another { Stated::Nothing } else { Stated::of(&certain) };
    let is_between_disks = is_reliable && !is_cliff && answer.writes_again(row, stated, is_reliable);
    let severity = if is_between_disks { answer.on_a_disk_of_unknown_limit(severity) } else { severity };
    let effect = match (is_of_another, is_reliable) {
        (true, _) => String::new(),
        (false, true) => effect("Predicted", row, prediction, seconds),
        (false, false) => effect("In a twin that misses this recording", row, prediction, seconds),
    };
    let has_effect = !changes(row, prediction, seconds).is_empty();
    // The effect in a twin that misses its recording must be large, unless arithmetic finds the same without a twin.
    // A wait by arithmetic that is too short to be noticed is not the same, nor is one that depends on how data arrives between
    // two samples.
    let agrees = row.verdict == Verdict::Suffers && !(row.predicts_waits && by_arithmetic < SUFFERS) && !row.may_fit;
    // The twin may have made up a sync that no recording shows. It proves neither harm nor help: arithmetic decides that.
    // Where arithmetic finds that a threshold grows to more than the disk writes quickly, and a reliable twin states harm, both
    // agree. Whether a program syncs is still assumed.
    let is_held = row.cause == Cause::DirtyCliff && is_reliable && stated == Stated::Worse;
    let severity = match answer.without_assumed_syncs {
        Some(without) if row.verdict != Verdict::Suffers && !is_held => severity.min(without),
        // What it hid is the wait of the programs.
        Some(without) if !is_of_another && matches!(certain, Cow::Owned(_)) => without,
        _ => severity,
    };
    row.severity = severity.min(SEVERITY_MAX);
    let enough = if is_reliable || agrees { SUFFERS } else { SUFFERS_DOUBTFUL };
    let rests_on_assumed_sync = row.verdict != Verdict::Suffers
        && is_held
        && answer.without_assumed_syncs.is_some_and(|without| without < enough);
    // No relief outweighs a cost from which a host suffers.
    let is_cheap = is_reliable && severity < SUFFERS;
    if let Some(relief) = Relief::of(&certain, row).filter(|_| is_cheap && row.verdict == Verdict::Suffers) {
        let (_, cause, told) = arithmetic;
        row.severity = severity.clamp(TIGHT, TRADE);
        return row.decide(Verdict::Tight, cause, format!("{} {told}", relief.told(row)));
    }
    // Two predictions of the same waits, both longer: their mean decides.
    let both = (is_reliable && agrees && stated == Stated::Worse)
        .then(|| mean_of_longer(&answer, by_arithmetic, seconds, row))
        .flatten();
    let is_certain =
        !is_reliable && row.cause == Cause::NotSimulated && stated.is_longer() && answer.least() >= SUFFERS_IN_ANY;
    // No other figure of the prediction shows such a call.
    let call = answer.longer_call().filter(|_| is_reliable && !stated.is_longer());
    let call_harms =
        call.is_some() && row.cause == Cause::NotSimulated && severity.min(answer.least()) >= SUFFERS_IN_ANY;
    let is_suffering = is_certain
        || call_harms
        || both.map_or(severity, |both| both.max(severity)) >= enough
            && (stated.allows(row, is_reliable) || answer.writes_again(row, stated, is_reliable))
            && (has_effect || row.verdict == Verdict::Suffers);
    // What stands without a twin of this host. Where a twin that misses its recording does not predict the waits, arithmetic is the only
    // answer: large harm counts, without the waits before the change.
    let by_written = of_written(by_arithmetic, row.removed_share);
    let more_by_written = more(by_written, &answer, seconds);
    let is_only_answer = stated == Stated::Nothing
        && !is_reliable
        && row.predicts_waits
        && !row.may_fit
        && by_written >= SUFFERS_DOUBTFUL
        && more_by_written >= SUFFERS;
    let alone = match () {
        () if is_of_another && row.predicts_waits => by_written,
        () if is_only_answer => more_by_written,
        () => by_arithmetic,
    };
    let helped = helped(&answer, stated, row).filter(|_| is_reliable);
    match arithmetic {
        (_, cause, told) if is_suffering => {
            let is_named = matches!(row.verdict, Verdict::Suffers | Verdict::Tight);
            let cause = if is_named { cause } else { appeared(prediction).unwrap_or(Cause::Simulated) };
            // Where the twin states no longer wait, arithmetic alone says that the host suffers.
            let effect = match stated.is_longer() {
                true => effect,
                // Bytes are stated.
                false if answer.dirties_again && is_reliable && has_effect => format!("{effect} {NOT_STATED}"),
                false => NOT_STATED.to_owned(),
            };
            if !stated.is_longer() && is_reliable {
                row.confidence = Confidence::Medium;
            }
            if is_between_disks && answer.on_a_disk_of_unknown_limit(answer.of_first) > answer.of_first {
                row.confidence = Confidence::Medium;
                row.notes.push(BETWEEN_DISKS.to_owned());
            }
            if rests_on_assumed_sync {
                row.confidence = Confidence::Medium;
                row.notes.push("The twin assumes a sync that no recording shows.".to_owned());
            }
            let told = match is_named {
                true => format!("{told} {effect}"),
                false if is_certain => in_any(answer.least()),
                false => call.filter(|_| call_harms).map_or(effect, longer_call),
            };
            let misses_stores = row.hides_stores && severity < MISSES_STORES * by_arithmetic;
            let is_by_arithmetic = row.is_firm && (misses_stores || !is_reliable && !is_cliff);
            row.severity = match () {
                () if is_by_arithmetic => by_arithmetic,
                // Tasks of a sick host wait already, which arithmetic does not subtract.
                () if row.predicts_waits && row.sick_already.is_none() => of_both(&answer, by_arithmetic, is_reliable),
                // The twin has another sync than the host.
                () if row.waits_for_pile && is_cliff => (severity * by_arithmetic).sqrt(),
                () => severity,
            }
            .min(SEVERITY_MAX);
            row.decide(Verdict::Suffers, cause, told);
        }
        // Without a twin of this host, the wait that arithmetic predicts stands.
        (Verdict::Suffers, cause, told)
            if row.is_firm || is_only_answer || (is_of_another && row.predicts_waits && alone >= SUFFERS) =>
        {
            row.severity = alone;
            row.confidence = Confidence::Medium;
            row.decide(Verdict::Suffers, cause, told);
        }
        (Verdict::Suffers, cause, told) if !is_reliable => {
            // The twin is calm but unreliable: neither tier is conclusive.
            row.severity = if is_of_another { alone.clamp(TIGHT, TRADE) } else { severity.max(TIGHT) };
            row.decide(
                Verdict::Tight,
                cause,
                format!("{told} The simulation does not show it, but is not reliable here."),
            );
        }
        (Verdict::Suffers, cause, told) => {
            row.severity = row.severity.clamp(0.0, TRADE);
            let calm = match stated.is_longer() {
                true => "In the simulation, the effect of the change is smaller.",
                false => calm(is_reliable),
            };
            row.decide(Verdict::Tight, cause, format!("{told} {calm} {effect}"));
        }
        (Verdict::Tight, ..)
            if severity < TIGHT
                && !stated.is_longer()
                // A twin that holds what no sample shows cannot clear what no sample shows.
                && !answer.peak.is_some_and(|peak| peak.weighed > OTHER_HOST)
                && row.cause != Cause::MemoryTooSmall
                && !row.is_firm
                && row.margin.is_none_or(|margin| margin >= crate::arithmetic::TIGHT) =>
        {
            let (cause, told) = helped.unwrap_or_else(|| (Cause::WideMargin, calm(is_reliable).to_owned()));
            row.decide(Verdict::Fine, cause, format!("{told} {effect}"));
        }
        (Verdict::Tight, cause, told) => {
            row.severity = row.severity.clamp(0.0, TRADE);
            if row.is_firm && is_reliable && !is_cliff {
                // A twin does not have what arithmetic found.
                row.confidence = Confidence::Medium;
            }
            row.decide(Verdict::Tight, cause, format!("{told} {effect}").trim_end().to_owned());
        }
        // Harm that is stated is no wide margin, however small it is.
        _ if has_effect && (stated == Stated::Worse || (severity >= TIGHT && stated == Stated::Nothing)) => {
            row.severity = row.severity.clamp(TIGHT, TRADE);
            row.decide(Verdict::Tight, appeared(prediction).unwrap_or(Cause::Simulated), effect);
        }
        _ if severity >= SUFFERS && (stated == Stated::Nothing || call.is_some()) => {
            row.severity = TRADE;
            let told =
                call.map_or_else(|| format!("In the simulation, a figure gets worse. {NOT_STATED}"), longer_call);
            row.decide(Verdict::Tight, appeared(prediction).unwrap_or(Cause::Simulated), told);
        }
        (Verdict::NotKnown, ..) if answer.on_slowest_disks.is_some_and(|harm| harm >= SUFFERS_IN_ANY) => {
            row.confidence = Confidence::Low;
            // Between what people hardly notice and the harm on a slow disk: it orders these hosts.
            let slow = answer.on_slowest_disks.unwrap_or(0.0).min(SEVERITY_MAX);
            row.severity = (TIGHT * slow).sqrt();
            row.decide(Verdict::NotKnown, Cause::LimitNotSeen, LIMIT_NOT_SEEN.to_owned());
        }
        (Verdict::NotKnown, ..) if !is_reliable && severity >= SUFFERS && !stated.is_longer() => {
            row.severity = 0.0;
            row.decide(Verdict::NotKnown, Cause::UnlikeTwin, WORSE_IN_UNLIKE.to_owned());
        }
        (Verdict::NotKnown | Verdict::Fine, ..) if answer.is_demand_open(stated) => {
            row.severity = 0.0;
            row.confidence = Confidence::Low;
            row.decide(Verdict::NotKnown, Cause::DemandNotKnown, DEMAND_NOT_KNOWN.to_owned());
        }
        (Verdict::NotKnown, ..) => {
            let told = if stated.is_longer() { "On the whole the change helps." } else { calm(is_reliable) };
            let (cause, told) = helped.unwrap_or_else(|| no_worse(told, row));
            row.decide(Verdict::Fine, cause, format!("{told} {effect}"));
        }
        (Verdict::Fine, ..) => {
            if let Some((cause, told)) = helped {
                row.decide(Verdict::Fine, cause, format!("{told} {effect}"));
            }
        }
    }
}

/// Data that only a sync writes. The setting alone decides that the host suffers. How long a sync then waits for what has piled up is in a
/// twin that reproduces the recording, also if the recording does not show the caller of the sync.
fn weigh_never_written(answer: &Answer, is_reliable: bool, seconds: f64, row: &mut Row) {
    if !is_reliable || answer.of_first < SUFFERS {
        return;
    }
    row.severity = answer.of_first.min(SEVERITY_MAX);
    let effect = effect("Predicted", row, &answer.prediction, seconds);
    let told = format!("{} {effect}", row.finding);
    row.decide(Verdict::Suffers, Cause::NeverWritten, told);
}

/// The cause and the sentence for a host that is sick before the change, and that the change helps.
fn helped(answer: &Answer, stated: Stated, row: &Row) -> Option<(Cause, String)> {
    let rule = row.sick_already.as_deref().filter(|_| stated == Stated::Better)?;
    let Prediction { vanish, stay, .. } = &answer.prediction;
    let is_left = stay.iter().any(|seen| seen.severity == Severity::Critical);
    let ends = answer.relieves && !is_left && vanish.iter().any(|seen| seen.rule == rule);
    if !ends && !answer.prediction.leads().any(|row| row.unit == "seconds" && row.improves()) {
        return None;
    }
    let (cause, what) = if ends { (Cause::Cured, "cures it") } else { (Cause::Helped, "helps") };
    Some((cause, format!("The host is sick before the change ({rule}). In the simulation the change {what}.")))
}

/// The cause and the sentence for a host that the change makes no worse.
fn no_worse(told: &str, row: &Row) -> (Cause, String) {
    match &row.sick_already {
        Some(rule) => (Cause::SickAlready, format!("The host is sick before the change ({rule}). {told}")),
        None => (crate::arithmetic::fine_cause(row), told.to_owned()),
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
            Stated::Mixed => is_reliable || row.verdict == Verdict::Suffers,
            Stated::Nothing => row.verdict == Verdict::Suffers,
            Stated::Better | Stated::Same => row.verdict == Verdict::Suffers && (row.is_firm || !is_reliable),
        }
    }
}

/// Severity by arithmetic on a disk that takes `slower` times as long for a byte.
fn slowed(row: &Row, slower: f64) -> f64 {
    match () {
        () if row.predicts_waits || row.waits_for_pile => row.severity * slower,
        // Syncs wait for a share of a full queue.
        () if row.cause == Cause::DirtyCliff => row.severity * slower.sqrt(),
        () => row.severity,
    }
    .min(SEVERITY_MAX)
}

/// Severity by arithmetic where a share of the data is removed before it is written. Below a smaller limit data is written sooner, so less
/// of it is removed: between today's share and none, the geometric mean.
fn of_written(by_arithmetic: f64, removed: f64) -> f64 {
    by_arithmetic * (1.0 - removed).max(0.0).sqrt()
}

/// Severity by two predictions of the same waits, that of the twin and that of arithmetic. Where the demand lies between two twins, or
/// the twin waits before the change and the host did not, the harm nearest to arithmetic counts. A twin that reproduces the recording has
/// what arithmetic leaves out: smaller requests, limits of I/O, and disks that several programs share. Its harm stands if it is noticed. Of a
/// twin that misses the recording, the geometric mean with arithmetic counts, unless pages are dirtied again: then arithmetic is a lower bound.
fn of_both(answer: &Answer, by_arithmetic: f64, is_reliable: bool) -> f64 {
    let nearest = answer.nearest(by_arithmetic);
    let is_bound = answer.dirties_again && nearest > by_arithmetic;
    let stands = is_bound || (is_reliable && nearest >= SUFFERS);
    let severity = if stands { nearest } else { (nearest * by_arithmetic).sqrt() };
    severity.max(SUFFERS)
}

/// Whether much that is written now stays unwritten until the end of the twin after the change. A later sync or unmount waits for it.
fn leaves_unwritten(prediction: &Prediction) -> bool {
    let of = |name: &str| prediction.rows.iter().find(|row| row.figure == name);
    let less = |row: &prediction::Row| row.now - row.then;
    let written = of(prediction::WRITTEN).map_or(0.0, less);
    let dirtied = of(DIRTIED).map_or(0.0, less).max(0.0);
    let now = of(prediction::WRITTEN).map_or(0.0, |row| row.now);
    written - dirtied > LEFT * now
}

/// Whether noticeably more data is unwritten at once after the change.
fn piles_up(prediction: &Prediction) -> bool {
    let peak = prediction.rows.iter().find(|row| row.figure == prediction::PEAK);
    peak.is_none_or(|peak| peak.then >= LONGEST_TIMES * peak.now)
}

/// Whether a program of the twin syncs.
fn syncs(prediction: &Prediction) -> bool {
    prediction.rows.iter().any(|row| row.figure.starts_with("durable.") && row.now.max(row.then) > 0.0)
}

/// How much longer tasks wait by arithmetic, whose waits include those before the change.
fn more(by_arithmetic: f64, answer: &Answer, seconds: f64) -> f64 {
    by_arithmetic - answer.recorded_stall_seconds / seconds.max(f64::MIN_POSITIVE) / STALL
}

/// Geometric mean of how much longer tasks wait by the twin and by arithmetic. `None` where one of both does not predict longer waits.
fn mean_of_longer(answer: &Answer, by_arithmetic: f64, seconds: f64, row: &Row) -> Option<f64> {
    let more = more(by_arithmetic, answer, seconds);
    let twin = answer.nearest(by_arithmetic);
    let is_longer = row.predicts_waits && row.sick_already.is_none() && twin > 0.0 && more > 0.0;
    is_longer.then(|| (twin * more).sqrt())
}

/// What a limit by arithmetic does to a host that is sick before the change: a wait of its sickness gets shorter, by a
/// larger factor than any wait gets longer.
pub(super) struct Relief<'a> {
    pub(super) better: &'a prediction::Row,
    pub(super) worse: Option<&'a prediction::Row>,
}

impl<'a> Relief<'a> {
    fn of(prediction: &'a Prediction, row: &Row) -> Option<Relief<'a>> {
        let rule = row.sick_already.as_deref()?;
        let is_limit = matches!(row.cause, Cause::CgroupLimit | Cause::MachineLimit) && !row.is_firm;
        let is_pile = row.cause == Cause::DirtyCliff;
        let is_new = prediction.appear.iter().any(|seen| seen.severity == Severity::Critical);
        // Where the waits of all tasks are not predicted, another of them may get longer.
        let is_open = prediction.rows.iter().any(|wait| wait.figure == WAITS && wait.doubt.is_some());
        if !(is_limit || is_pile) || is_new || is_open {
            return None;
        }
        // Values below what people notice are no base of a factor.
        let grows = |wait: &prediction::Row| (wait.then + wait.least) / (wait.now + wait.least).max(f64::MIN_POSITIVE);
        let largest = |one: &&prediction::Row, other: &&prediction::Row| grows(one).total_cmp(&grows(other));
        let waits = || prediction.rows.iter().filter(|wait| wait.unit == "seconds" && wait.better == Better::Less);
        let worse = waits().filter(|wait| wait.worsens()).max_by(largest);
        // A larger pile is a price of most changes that relieve writers. It is one worth paying where nearly all waits end.
        if is_pile {
            let all = waits().find(|wait| wait.figure == WAITS && wait.improves() && grows(wait) <= MOST_ENDS);
            return all.filter(|_| worse.is_none()).map(|better| Relief { better, worse });
        }
        let of_sickness = waits().filter(|wait| rests_on(rule).contains(&wait.figure.as_str()) && wait.improves());
        let better = of_sickness.min_by(largest)?;
        worse.is_none_or(|worse| grows(worse) * grows(better) <= 1.0).then_some(Relief { better, worse })
    }
}

/// The cause of the worst finding that appears in the simulation.
fn appeared(prediction: &Prediction) -> Option<Cause> {
    let worst =
        prediction.appear.iter().filter(|seen| seen.severity >= Severity::Warning).max_by_key(|seen| seen.severity)?;
    Cause::ALL.iter().copied().find(|cause| cause.name() == worst.rule)
}

#[cfg(test)]
#[path = "weigh_tests.rs"]
pub(super) mod tests;

#[cfg(test)]
#[path = "weigh_unseen_tests.rs"]
mod unseen_tests;
