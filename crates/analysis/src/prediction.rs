// SPDX-License-Identifier: MIT OR Apache-2.0
//! Predicted effect of a change: figures before and after with an interval, findings that appear and vanish. Plain
//! data; the twin fills it and the view shows it. The JSON form is a stable interface: fields are added, never renamed.

mod beyond;
mod limits;
mod on_devices;

pub use self::beyond::{Horizon, Unseen};
pub use self::limits::{Limit, LimitOf, Limits};

use crate::change::Expected;
use crate::report::Severity;
use floodline_record::human;
use floodline_record::version::KernelVersion;
use serde::Serialize;

/// Largest error of a figure that is still predicted, and largest median error of a twin that is still relied on.
pub const MISS_MAX: f64 = 0.25;

/// Version of the JSON form.
pub const SCHEMA: &str = "floodline.predict/2";

/// One setting and its new value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Setting {
    /// Name, of the host or of the scenario.
    pub key: String,
    /// New value.
    pub value: String,
}

impl Setting {
    /// A setting of a name.
    pub fn new(key: impl Into<String>, value: impl ToString) -> Setting {
        Setting { key: key.into(), value: value.to_string() }
    }
}

/// Which direction of a figure is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// A smaller value.
    Less,
    /// A larger value.
    More,
}

/// A rule with a finding in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// Name of the rule.
    pub rule: &'static str,
    /// Severity of the finding.
    pub severity: Severity,
}

/// Why it is not certain whether a finding is there after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The rule lacks an input in a run of the model, such as a trace.
    Unchecked,
    /// The runs disagree: other seeds, bounds of the demand, or speeds of the devices.
    Runs,
    /// It is not there now, and one run of three or more has it.
    OneRun,
    /// The recording has the finding, and the unchanged twin does not.
    Unshown,
    /// The unchanged twin has the finding, and the recording rules it out.
    OnlyTwin,
    /// The unchanged twin has it as a warning or worse, and the recording as an info.
    Severity,
    /// The unchanged twin has it, and the recording lacks an input for the rule: it may be there already.
    Hidden,
    /// It is not there now, and every run has it. The run without variation has it as critical.
    New,
    /// It is not there now, and every run has it. The run without variation has it as a warning, so it is near the line of its rule.
    NewWarning,
    /// It is not there now, and every run has it. It hurts by waits, but the waits of all tasks do not get clearly longer.
    NoLonger,
    /// It ends in every run, but no wait that it rests on gets clearly shorter.
    Waits,
    /// No run has it, and it rests on what the twin assumes: which programs sync, or how fast a disk is that was never at its limit.
    Assumed,
    /// A disk that was never at its limit may be slower than in the twin, and every run has it as an info at most, or only a run on disks
    /// of a usual speed has it.
    Speed,
    /// The runs agree, but the unchanged twin misses the recording, or it misses each figure by which the finding is said to be there.
    Missed,
    /// No run has it, but more data become dirty, and the twin misses the wait by which it hurts.
    MissedWait,
    /// The new kernel moves the inodes of removed cgroups at great cost, and no run of the model has these inodes.
    Inodes,
}

/// Share of right answers from which an answer is likely rather than open.
pub const LIKELY: f64 = 0.75;

/// A finding of which it is not certain whether it is there after a change, with the more likely answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Doubtful {
    /// Name of the rule.
    pub rule: &'static str,
    /// Severity of the finding.
    pub severity: Severity,
    /// Whether it is there after the change, by the more likely answer.
    pub is_there: bool,
    /// Why it is not certain.
    pub reason: Reason,
    /// Answers of this kind on hosts whose change was really made.
    pub answers: u32,
    /// Those of them that were right.
    pub right: u32,
    /// Whether enough of them were right for the answer to be said as likely.
    pub is_likely: bool,
}

impl Doubtful {
    /// A doubt whose answer was right in `right` of `answers` known cases.
    pub fn new(seen: &Seen, is_there: bool, reason: Reason, (right, answers): (u32, u32)) -> Doubtful {
        let is_likely = is_likely(right, answers);
        Doubtful { rule: seen.rule, severity: seen.severity, is_there, reason, answers, right, is_likely }
    }
}

/// The answer that no finding comes that a prediction does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NoOther {
    /// Such answers on hosts whose change was really made.
    pub answers: u32,
    /// Those of them that were right.
    pub right: u32,
    /// Whether enough of them were right for the answer to be said as likely.
    pub is_likely: bool,
}

impl NoOther {
    /// An answer that was right in `right` of `answers` known cases.
    pub fn new(right: u32, answers: u32) -> NoOther {
        NoOther { answers, right, is_likely: is_likely(right, answers) }
    }
}

fn is_likely(right: u32, answers: u32) -> bool {
    answers > 0 && f64::from(right) >= LIKELY * f64::from(answers)
}

/// How sure the answer is whether a finding is there after the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sure {
    /// Nothing speaks against it.
    Certain,
    /// It is not certain, but most answers of its kind were right.
    Likely,
    /// It may be either.
    Open,
}

/// Reason why a figure is not predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// The back-test of this figure misses by more than 25 %.
    BackTest,
    /// The two bounds of demand disagree in direction.
    Demand,
    /// The recording does not have this wait, and the twin changes it by less than its assumptions about syncs may be wrong.
    Unmeasured,
    /// The run ends before the data that decide the figure are written ([`Horizon`]).
    Horizon,
    /// The twin does not change the bytes that are written, but it misses how many are unwritten at once. What is overwritten or dropped
    /// before it is written depends on that.
    Unwritten,
}

/// One figure before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Name; throughput of a program is `program NAME`.
    pub figure: String,
    /// Name for people (escaped).
    pub label: String,
    /// Unit: `seconds`, `bytes` or `bytes_per_second`.
    pub unit: &'static str,
    /// Which direction is good.
    pub better: Better,
    /// Value now: from the recording if it contains the figure, else simulated.
    pub now: f64,
    /// Whether `now` is from the recording.
    pub is_measured: bool,
    /// Predicted value.
    pub then: f64,
    /// Lower end of the 90 % interval.
    pub low: f64,
    /// Upper end of the 90 % interval.
    pub high: f64,
    /// Error of the back-test, as a share; absent where the recording does not have the figure.
    pub off_share: Option<f64>,
    /// The two estimates of a figure that the back-test misses, the smaller first, in the unit: the value of the changed twin, and the
    /// present value times the factor by which the change moves the twin. Absent where the figure is predicted.
    pub roughly: Option<(f64, f64)>,
    /// The least difference that people notice, in the unit.
    pub least: f64,
    /// Reason why the figure is not predicted, if it is not.
    pub doubt: Option<Doubt>,
}

impl Row {
    /// A figure of the recording, of which less is better, with a prediction as certain as can be.
    pub fn new(figure: impl Into<String>, label: impl Into<String>, unit: &'static str, now: f64, then: f64) -> Row {
        Row {
            figure: figure.into(),
            label: label.into(),
            unit,
            better: Better::Less,
            now,
            is_measured: true,
            then,
            low: then,
            high: then,
            off_share: None,
            roughly: None,
            least: 0.0,
            doubt: None,
        }
    }

    /// Whether the change improves the figure by more than people notice, over the whole interval.
    pub fn improves(&self) -> bool {
        self.doubt.is_none() && self.differs() && (self.then < self.now) == (self.better == Better::Less)
    }

    /// Whether the change makes it worse.
    pub fn worsens(&self) -> bool {
        self.doubt.is_none() && self.differs() && (self.then > self.now) == (self.better == Better::Less)
    }

    /// Whether the whole interval lies on one side of the present value, further from it than people notice.
    pub fn is_certain(&self) -> bool {
        let is_beyond = |end| differ(self.least, self.now, end);
        (self.high < self.now && is_beyond(self.high)) || (self.low > self.now && is_beyond(self.low))
    }

    /// Whether a figure that is not predicted gets worse by both estimates ([`Row::roughly`]).
    pub fn worsens_roughly(&self) -> bool {
        self.moves_roughly(self.better == Better::Less)
    }

    /// Whether a figure that is not predicted gets better by both estimates ([`Row::roughly`]).
    pub fn improves_roughly(&self) -> bool {
        self.moves_roughly(self.better == Better::More)
    }

    fn moves_roughly(&self, is_up: bool) -> bool {
        let moves = |then: f64| differ(self.least, self.now, then) && (then > self.now) == is_up;
        self.roughly.is_some_and(|(least, most)| moves(least) && moves(most))
    }

    fn differs(&self) -> bool {
        differ(self.least, self.now, self.then)
    }
}

/// Whether two values differ by more than people notice: by `least` and by 5 %.
pub fn differ(least: f64, one: f64, other: f64) -> bool {
    let difference = (one - other).abs();
    difference > least && difference > 0.05 * one.abs().max(other.abs())
}

/// Predicted effect of a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The change.
    pub settings: Vec<Setting>,
    /// Kernel of the recording, and the predicted one where it changes.
    pub kernel: KernelVersion,
    /// Kernel after the change.
    pub kernel_then: KernelVersion,
    /// Summary in one sentence.
    pub headline: String,
    /// Median error of the back-test, as a share; absent without one.
    pub back_test_error: Option<f64>,
    /// Figures of the back-test that miss by more than 25 %.
    pub missed: Vec<String>,
    /// Figures.
    pub rows: Vec<Row>,
    /// Dirty limits of cgroups, by arithmetic. Absent where no cgroup has one, or where the arithmetic does not know the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Data at risk up to which more of them are a price of the change, bytes: about as much as now, or what the disks write
    /// in a few seconds. Absent where any more is harm.
    pub risk_room_bytes: Option<f64>,
    /// Findings of the recording, warnings and worse, with the severity that they have now.
    pub recorded: Vec<Seen>,
    /// Rules with a finding now and none after the change.
    pub vanish: Vec<Seen>,
    /// Rules with a finding after the change and none now.
    pub appear: Vec<Seen>,
    /// Rules with a finding before and after.
    pub stay: Vec<Seen>,
    /// Findings of the recording that the twin does not show.
    pub not_reproduced: Vec<&'static str>,
    /// Those of them that are expected to stay: a changed run shows them.
    pub lasting: Vec<Seen>,
    /// Findings of which it is not certain whether they are there after the change, with the more likely answer, the reason for the
    /// doubt, and how many such answers were right. Each of the lists above has the more likely answer.
    pub doubtful: Vec<Doubtful>,
    /// The answer that no other finding comes. Absent where that is certain: the twin is like its recording.
    pub no_other: Option<NoOther>,
    /// Rules that cannot be judged in a run of the model, as they need a trace. Their findings may appear or stay.
    pub unjudged: Vec<&'static str>,
    /// Whether the recording shows that a program syncs. Otherwise a wait for syncs that the recording does not have is one that the twin
    /// assumes ([`Row::is_assumed`]): a cost, and no harm.
    #[serde(skip)]
    pub shows_syncs: bool,
    /// Runs of the model.
    pub runs: usize,
    /// Whether a run was ended early.
    pub is_cut: bool,
    /// Devices whose limit of written bytes was not seen, where the verdict on the change is another one without that limit.
    pub only_up_to: Vec<Unseen>,
    /// Findings that the unchanged twin has between the samples of the recording, and that the change ends. The recording can neither show nor
    /// exclude them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub between: Vec<Seen>,
    /// Time between two samples of the recording, in seconds, if it is more than 2 s. Shorter stalls may lie between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sparse_s: Option<f64>,
    /// What is written only after the end of the recorded time. Absent where that decides no figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub horizon: Option<Horizon>,
    /// Notes to the prediction: ceilings of devices, demand, steps that were not simulated.
    pub notes: Vec<String>,
    /// What the model leaves out of this host, a text each, with the effect that this may have.
    pub simplified: Vec<String>,
}

impl Prediction {
    /// A prediction of no figure yet, for a change that keeps the kernel.
    pub fn new(settings: Vec<Setting>, kernel: KernelVersion) -> Prediction {
        Prediction {
            schema: SCHEMA,
            settings,
            kernel,
            kernel_then: kernel,
            headline: String::new(),
            back_test_error: None,
            missed: Vec::new(),
            rows: Vec::new(),
            limits: None,
            risk_room_bytes: None,
            recorded: Vec::new(),
            vanish: Vec::new(),
            appear: Vec::new(),
            stay: Vec::new(),
            not_reproduced: Vec::new(),
            lasting: Vec::new(),
            doubtful: Vec::new(),
            no_other: None,
            unjudged: Vec::new(),
            shows_syncs: false,
            runs: 0,
            is_cut: false,
            only_up_to: Vec::new(),
            between: Vec::new(),
            sparse_s: None,
            horizon: None,
            notes: Vec::new(),
            simplified: Vec::new(),
        }
    }

    /// How sure the answer is for a rule.
    pub fn sure(&self, rule: &str) -> Sure {
        match self.doubtful.iter().find(|one| one.rule == rule) {
            Some(one) if one.is_likely => Sure::Likely,
            Some(_) => Sure::Open,
            None => Sure::Certain,
        }
    }

    /// Severity that the finding of a rule has in the recording.
    pub fn severity_now(&self, rule: &str) -> Option<Severity> {
        self.recorded.iter().find(|seen| seen.rule == rule).map(|seen| seen.severity)
    }

    /// Whether the recording has a finding of a rule.
    pub fn has_before(&self, rule: &str) -> bool {
        let lists = [&self.vanish, &self.stay];
        lists.iter().any(|list| list.iter().any(|seen| seen.rule == rule)) || self.not_reproduced.contains(&rule)
    }

    /// Whether the twin is like its recording: then its figures are said without reserve.
    pub fn is_reliable(&self) -> bool {
        self.back_test_error.is_some_and(|error| error <= MISS_MAX)
    }

    /// Whether people notice no difference between this prediction and another one of the same host.
    pub fn is_like(&self, other: &Prediction) -> bool {
        let is_near = |(one, other): (&Row, &Row)| {
            let is_same = one.figure == other.figure && one.doubt == other.doubt;
            is_same && (one.then - other.then).abs() <= one.least && one.worsens() == other.worsens()
        };
        let rows = self.rows.len() == other.rows.len() && self.rows.iter().zip(&other.rows).all(is_near);
        rows && self.vanish == other.vanish && self.appear == other.appear
    }

    /// Figures that lead, the most important first. The total of waits is left out where the recording does not have it:
    /// the twin's own total is no figure of this host.
    pub fn leads(&self) -> impl Iterator<Item = &Row> {
        let (waits, bytes) = LEADS.split_at(BYTES_FROM);
        self.own(waits).chain(self.on_devices()).chain(self.own(bytes))
    }

    /// The figures of these names, without a total of waits that only the twin has.
    fn own(&self, names: &'static [&'static str]) -> impl Iterator<Item = &Row> {
        let is_own = |row: &&Row| row.is_measured || row.figure != WAITS;
        names.iter().filter_map(|name| self.rows.iter().find(|row| row.figure == *name)).filter(is_own)
    }

    /// The figures of the machine that are predicted, as a plan file has them.
    pub fn expected(&self) -> Vec<Expected> {
        let is_shown = |row: &&Row| row.doubt.is_none() && !row.figure.starts_with("program ");
        let expected = |row: &Row| Expected {
            figure: row.figure.clone(),
            unit: if row.unit == "seconds" { "s".to_owned() } else { row.unit.to_owned() },
            now: row.now,
            then: row.then,
            low: row.low,
            high: row.high,
        };
        self.rows.iter().filter(is_shown).map(expected).collect()
    }
}

impl Row {
    /// Whether the figure is a wait for syncs that the recording does not have. Which programs sync, and when, is then the twin's
    /// assumption, and it may be that none does.
    pub fn is_assumed(&self) -> bool {
        !self.is_measured && [LONGEST, P99, P90].contains(&self.figure.as_str())
    }

    /// The change in a few words: `longest fsync 3.10 s → about 300 ms`. If the recording does not have the figure, the present
    /// value is the twin's: `waits of all tasks about 17 s → about 3.35 s`. A wait for syncs is then said with a condition.
    pub fn sentence(&self) -> String {
        let (now, then) = self.shown();
        let about = if self.is_measured { "" } else { "about " };
        let condition = if self.is_assumed() { ", if a program syncs," } else { "" };
        if now == then && !self.improves() && !self.worsens() {
            return format!("{}{condition} {about}{now}, hardly changed", self.label);
        }
        format!("{}{condition} {about}{now} → about {then}", self.label)
    }

    /// The present and the predicted value, in a unit and with figures that do not hide the change.
    fn shown(&self) -> (String, String) {
        let (shortest, longest) = (self.now.min(self.then), self.now.max(self.then));
        let (now, then) = (shown_value(self.unit, self.now), shown_value(self.unit, self.then));
        match self.unit {
            "seconds" if longest >= WHOLE_MINUTES_S && longest < 2.0 * shortest => {
                (format!("{:.0} s", self.now), format!("{:.0} s", self.then))
            }
            "seconds" if now == then && longest >= WHOLE_SECONDS_S => {
                (format!("{:.1} s", self.now), format!("{:.1} s", self.then))
            }
            _ => (now, then),
        }
    }

    /// The change of a figure that is not predicted: `longest fsync 2.09 s → 2.45 s to 13 s`. The total of waits may be much longer than
    /// the recording, so its words say that it is a sum.
    pub fn roughly_said(&self) -> String {
        let shown = |value| shown_value(self.unit, value);
        let (least, most) = self.roughly.unwrap_or((self.then, self.then));
        let sum = if self.figure == WAITS { ", added up," } else { "" };
        format!("{}{sum} {} → {} to {}", self.label, shown(self.now), shown(least), shown(most))
    }

    /// Name of the figure within a sentence.
    pub fn named(&self) -> String {
        match self.figure.as_str() {
            WAITS => "the total of waits".to_owned(),
            figure if figure.ends_with(".waited_seconds") => format!("the total of {}", self.label),
            _ => format!("the {}", self.label),
        }
    }

    /// The sentence, after "maybe" where the interval contains the present value.
    pub fn reserved(&self) -> String {
        if self.is_certain() { self.sentence() } else { format!("maybe {}", self.sentence()) }
    }
}

/// The longest wait of a sync.
pub const LONGEST: &str = "durable.longest_wait_seconds";
/// The wait of a sync that 99 of 100 stay below.
pub const P99: &str = "durable.p99_wait_seconds";
/// The wait of a sync that 90 of 100 stay below.
pub const P90: &str = "durable.p90_wait_seconds";
/// The longest write call.
pub const LONGEST_WRITE: &str = "longest_write_wait_seconds";
/// The longest unmount.
pub const UNMOUNT: &str = "umount.longest_wait_seconds";
/// The total of waits.
pub const WAITS: &str = "stall_seconds";
/// Data at risk, which no task feels.
pub const PEAK: &str = "host.unwritten_peak_bytes";
/// What is dirtied before it is written.
pub const DIRTIED: &str = "host.dirtied_bytes";
/// What the disks write.
pub const WRITTEN: &str = "devices.written_bytes";
/// The smallest limit of a cgroup.
pub const SMALLEST_BUDGET: &str = "smallest_budget_bytes";

/// Begin of the names of figures that are waits on one disk.
pub const ON_DEVICE: &str = "device.";

/// Figures that matter most to people, the first first.
pub const LEADS: [&str; 6] = [LONGEST, UNMOUNT, WAITS, LONGEST_WRITE, DIRTIED, PEAK];
/// Number of the first of them that counts bytes. Waits on single disks stand before it.
const BYTES_FROM: usize = 4;

/// Wait from which [`human::seconds`] has no fractions of a second, seconds.
const WHOLE_SECONDS_S: f64 = 9.995;
/// Wait from which [`human::seconds`] has minutes without their fractions, seconds.
const WHOLE_MINUTES_S: f64 = 120.0;

/// A value for people.
pub fn shown_value(unit: &str, value: f64) -> String {
    match unit {
        "seconds" => human::seconds(value),
        "bytes_per_second" => human::bytes_per_second(value),
        _ => human::bytes(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: Vec<Row>) -> Prediction {
        Prediction { rows, ..Prediction::new(Vec::new(), KernelVersion::new(6, 12, 0)) }
    }

    #[test]
    fn a_change_is_shown_with_figures_that_do_not_hide_it() {
        let said =
            |now, then| Row { least: 0.02, ..Row::new(LONGEST, "longest fsync", "seconds", now, then) }.sentence();
        assert_eq!(said(3.1, 0.3), "longest fsync 3.10 s → about 300 ms");
        assert_eq!(said(4.0, 4.001), "longest fsync 4.00 s, hardly changed");
        assert_eq!(said(185.0, 160.0), "longest fsync 185 s → about 160 s");
        assert_eq!(said(118.0, 125.0), "longest fsync 118 s → about 125 s");
        assert_eq!(said(185.0, 20.0), "longest fsync 3 min → about 20 s");
        assert_eq!(said(10.1, 10.4), "longest fsync 10.1 s → about 10.4 s");
    }

    #[test]
    fn a_total_of_waits_that_only_the_twin_has_never_leads_but_its_growth_is_harm() {
        let waits =
            |now, then| Row { is_measured: false, ..Row::new(WAITS, "waits of all tasks", "seconds", now, then) };
        let shorter = of(vec![waits(4.7, 2.0)]);
        assert_eq!((shorter.leads().count(), shorter.harms()), (0, false));
        assert!(of(vec![waits(2.0, 7.3)]).harms());
        let measured = of(vec![Row { is_measured: true, ..waits(4.7, 2.0) }]);
        assert_eq!(measured.leads().count(), 1);
    }

    #[test]
    fn an_interval_that_ends_next_to_the_present_value_is_not_certain() {
        let row = |low, high| Row { low, high, least: 0.02, ..Row::new(WAITS, "waits", "seconds", 1.0, 0.5) };
        assert!(row(0.3, 0.9).is_certain() && row(1.1, 4.0).is_certain());
        assert!(!row(0.3, 0.97).is_certain() && !row(1.01, 4.0).is_certain() && !row(0.3, 2.0).is_certain());
        // A wait from nothing to what hardly lasts longer.
        let little = Row { now: 0.0001, ..row(0.01, 40.0) };
        assert!(!little.is_certain());
    }

    #[test]
    fn predictions_are_alike_without_a_difference_that_people_notice() {
        let with = |then| of(vec![Row { least: 0.2, ..Row::new(WAITS, "waits of all tasks", "seconds", 9.0, then) }]);
        assert!(with(1.0).is_like(&with(1.1)) && !with(1.0).is_like(&with(1.3)));
        let seen = Seen { rule: "dirty-cliff", severity: crate::report::Severity::Warning };
        assert!(!with(1.0).is_like(&Prediction { vanish: vec![seen], ..with(1.0) }));
        assert!(!with(1.0).is_like(&of(Vec::new())));
    }

    #[test]
    fn a_twin_without_a_back_test_is_not_relied_on() {
        let with = |error| Prediction { back_test_error: error, ..of(Vec::new()) };
        assert!(with(Some(MISS_MAX)).is_reliable());
        assert!(!with(Some(0.26)).is_reliable() && !with(None).is_reliable());
    }
}
