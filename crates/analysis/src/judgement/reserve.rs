// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reservations about a change that helps on the twin: a wait gets longer, the trial leaves open whether one does, or data are written
//! again and again. Such a change is a candidate, and no command advises it. Judges figures; runs nothing.

use super::SHORTEST_FELT_S;
use crate::prediction::{DIRTIED, Doubt, LEADS, PEAK, Prediction, Row, WAITS, differ};
use crate::rule_figures::is_of_waits;

/// Part of a wait that is left from which it got hardly shorter: a sixth less, as in the table of advices.
const HARDLY: f64 = 5.0 / 6.0;
/// Data are written again and again if programs dirty at least this many times as much with a change as now.
const AGAIN: f64 = 2.0;
/// Part of the present bytes from which the lower end of an interval is hardly less.
const HARDLY_LESS: f64 = 0.95;

/// End of the names of figures that are all waits on one disk.
const WAITED: &str = ".waited_seconds";

impl Row {
    /// Whether it may get longer by more than people feel.
    fn is_open(&self) -> bool {
        let grows = |then: f64| then >= SHORTEST_FELT_S && then > self.now && differ(self.least, self.now, then);
        match (self.doubt, self.roughly) {
            (None | Some(Doubt::Unmeasured | Doubt::Unwritten), _) => false,
            (_, Some((_, most))) => grows(most),
            (_, None) => self.now >= SHORTEST_FELT_S || grows(self.then),
        }
    }
}

impl Prediction {
    /// Returns why a change that helps is not advised without reserve: a wait gets longer, the trial does not show whether one does,
    /// the twin lacks a finding of waits, data are written again and again, or tasks wait and no predicted wait gets shorter. `None` where
    /// nothing speaks against it.
    pub fn reserve(&self) -> Option<String> {
        if let Some(longer) = self.may_lengthen() {
            return Some(longer);
        }
        if let Some(rule) = self.hidden_waits() {
            return Some(format!(
                "the twin does not show {rule}, so it is not known whether the waits of this finding get longer"
            ));
        }
        if let Some(row) = self.written_again() {
            return Some(format!("programs write the same data again and again on the twin: {}", row.sentence()));
        }
        let is_any = self.rows_of(LEADS).any(|row| row.is_wait() && row.now >= SHORTEST_FELT_S);
        let is_shorter = self.leads().any(|row| row.is_wait() && row.improves());
        if is_any && !is_shorter {
            return Some("the twin predicts no shorter wait".to_owned());
        }
        if let Some(row) = self.as_long_in_all() {
            return Some(format!("on the twin, all waits together get no shorter: {}", row.sentence()));
        }
        let row = self.hardly_shorter()?;
        Some(format!("on the twin, no recorded wait gets much shorter: {}", row.sentence()))
    }

    /// Returns which wait gets longer, or of which wait of the recording the trial does not show whether it does.
    pub fn may_lengthen(&self) -> Option<String> {
        let grows = |row: &&Row| row.is_wait() && row.worsens() && row.then >= SHORTEST_FELT_S;
        if let Some(row) = self.felt().find(grows) {
            let verb = if row.is_certain() { "gets" } else { "may get" };
            return Some(format!("a wait {verb} longer: {}", row.sentence()));
        }
        let open = self.open_wait()?;
        Some(format!("the twin does not show whether {} gets longer", open.named()))
    }

    /// Returns the first finding of waits of the recording that the twin does not show, and whose wait is not predicted either. A change
    /// may lengthen such waits, whatever it does to other figures.
    pub(super) fn hidden_waits(&self) -> Option<&'static str> {
        let is_told = |rule: &str| self.hurt_by(rule).is_some_and(|row| row.doubt.is_none());
        self.not_reproduced.iter().copied().find(|rule| is_of_waits(rule) && !is_told(rule))
    }

    /// Returns the row of dirtied bytes, if a change that allows no more unwritten data makes hardly fewer of them, and probably twice as
    /// many. Programs then rewrite data that were written too early. They may wait for that although no figure of the recording shows it.
    /// With more unwritten data, programs get further, which does no harm. `None` if the prediction has no peak of unwritten data, or
    /// nothing is dirtied now.
    fn written_again(&self) -> Option<&Row> {
        let peak = self.rows_of([PEAK]).next()?;
        let is_again = |row: &&Row| {
            row.worsens() && row.now > 0.0 && row.low >= HARDLY_LESS * row.now && row.then >= AGAIN * row.now
        };
        self.rows_of([DIRTIED]).find(is_again).filter(|_| peak.then <= peak.now)
    }

    /// Returns the total of waits, if the recording has it and the change does not make it shorter. Waits that get shorter and more
    /// frequent are a gain for some tasks and a loss for others. Where tasks wait on several disks, it is enough that they wait less on one
    /// of them, and no longer on the others.
    fn as_long_in_all(&self) -> Option<&Row> {
        let is_told = |row: &&Row| row.is_measured && row.doubt.is_none() && row.now >= SHORTEST_FELT_S;
        let of_devices = || self.on_devices().filter(|row| row.figure.ends_with(WAITED));
        let is_less_on_one = of_devices().any(|row| row.improves()) && !of_devices().any(Row::worsens);
        self.rows_of([WAITS]).find(|row| is_told(row) && !row.improves() && (row.worsens() || !is_less_on_one))
    }

    /// Returns the wait of the recording that is left longest, where the change hardly moves any of those that are predicted. Waits
    /// that the recording does not have rest on what the twin assumes about syncs, and these assumptions also decide how the
    /// waits of the recording move.
    fn hardly_shorter(&self) -> Option<&Row> {
        let of_recording = || {
            let is_told = |row: &&Row| row.is_wait() && row.is_measured && row.doubt.is_none();
            self.felt().filter(is_told).filter(|row| row.now >= SHORTEST_FELT_S)
        };
        let is_much = |row: &Row| row.improves() && row.then <= HARDLY * row.now;
        if of_recording().any(is_much) {
            return None;
        }
        of_recording().max_by(|one, other| one.then.total_cmp(&other.then))
    }

    /// Returns the first wait of the recording of which the trial does not show whether it gets longer: the back-test misses it, or
    /// the demand of writers is not known, and not both of its estimates ([`Row::roughly`]) stay at or below the present value.
    fn open_wait(&self) -> Option<&Row> {
        self.rows_of(LEADS).find(|row| row.is_wait() && row.is_measured && row.is_open())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prediction::{LONGEST, PEAK};
    use floodline_record::version::KernelVersion;

    const MIB: f64 = 1_048_576.0;
    const FSYNC: &str = LONGEST;

    fn wait(figure: &str, now: f64, then: f64) -> Row {
        Row { off_share: Some(0.02), least: 0.02, ..Row::new(figure, figure, "seconds", now, then) }
    }

    fn risk(now: f64, then: f64) -> Row {
        Row { least: MIB, ..Row::new(PEAK, "peak data at risk", "bytes", now * MIB, then * MIB) }
    }

    fn of(rows: Vec<Row>) -> Prediction {
        let kernel = KernelVersion::new(6, 12, 0);
        Prediction { rows, back_test_error: Some(0.1), ..Prediction::new(Vec::new(), kernel) }
    }

    #[test]
    fn a_wait_of_which_the_trial_does_not_tell_whether_it_grows_is_open() {
        let missed = |doubt, roughly| Row { doubt: Some(doubt), roughly, ..wait(WAITS, 3.3, 2.0) };
        let check = |row: Row, is_open: bool| {
            let prediction = of(vec![wait(FSYNC, 1.6, 0.9), row]);
            assert_eq!(prediction.open_wait().is_some(), is_open, "{prediction:?}");
        };
        check(wait(WAITS, 3.3, 6.6), false);
        check(missed(Doubt::BackTest, Some((2.0, 6.6))), true);
        check(missed(Doubt::BackTest, Some((1.0, 2.0))), false);
        check(missed(Doubt::BackTest, None), true);
        check(missed(Doubt::Demand, None), true);
        check(missed(Doubt::Unmeasured, None), false);
        check(Row { now: 0.01, then: 0.05, ..missed(Doubt::BackTest, None) }, false);
        check(Row { is_measured: false, ..missed(Doubt::BackTest, None) }, false);
    }

    #[test]
    fn a_change_is_advised_only_if_a_wait_gets_shorter_and_none_longer() {
        let reserve = |rows: Vec<Row>| of(rows).reserve().unwrap_or_default();
        assert_eq!(reserve(vec![wait(FSYNC, 4.3, 2.0), wait(WAITS, 44.0, 40.0)]), "");
        let longer = reserve(vec![wait(FSYNC, 4.3, 0.1), wait(WAITS, 44.0, 86.0)]);
        // A screen leaves out what is in brackets first.
        assert!(longer.starts_with("a wait gets longer: ") && !longer.contains('('), "{longer}");
        assert!(longer.contains(WAITS), "{longer}");
        assert!(reserve(vec![wait(FSYNC, 4.3, 4.3), risk(300.0, 30.0)]).contains("no shorter wait"));
        assert_eq!(reserve(vec![risk(300.0, 30.0)]), "", "no task waits");
        assert!(
            reserve(vec![wait(FSYNC, 1.0, 0.6), wait(WAITS, 11.0, 11.1)])
                .contains("together get no shorter: stall_seconds")
        );
        // A wait that the recording does not have rests on what the twin assumes about syncs.
        let assumed = || Row { is_measured: false, off_share: None, ..wait(FSYNC, 4.0, 0.75) };
        assert!(
            reserve(vec![assumed(), wait(WAITS, 42.0, 38.4)])
                .contains("no recorded wait gets much shorter: stall_seconds")
        );
        assert_eq!(reserve(vec![assumed(), wait(WAITS, 42.0, 20.0)]), "");
        assert_eq!(reserve(vec![assumed()]), "", "the recording has no wait");
        assert_eq!(reserve(vec![wait(WAITS, 0.01, 0.05), risk(300.0, 30.0)]), "", "too short to be felt");
    }

    #[test]
    fn a_change_after_which_data_are_written_again_and_again_is_a_candidate() {
        let dirtied = |low: f64, then: f64| Row {
            low: low * MIB,
            least: MIB,
            ..Row::new(DIRTIED, "dirtied", "bytes", 562.0 * MIB, then * MIB)
        };
        let reserve = |rows: Vec<Row>| of(rows).reserve().unwrap_or_default();
        let lower = |row: Row| reserve(vec![wait(FSYNC, 4.4, 0.3), risk(112.0, 25.0), row]);
        let why = lower(dirtied(1514.0, 4166.0));
        assert!(why.contains("again and again on the twin: dirtied 562 MiB → about 4.07 GiB"), "{why}");
        assert!(!lower(dirtied(555.0, 4166.0)).is_empty(), "hardly less at the lower end");
        assert_eq!(lower(dirtied(500.0, 4166.0)), "", "it may be as much as now");
        assert_eq!(lower(dirtied(700.0, 780.0)), "");
        assert_eq!(
            reserve(vec![wait(FSYNC, 4.4, 0.3), dirtied(1514.0, 4166.0)]),
            "",
            "it may allow more unwritten data"
        );
        let from_none = Row { now: 0.0, ..dirtied(1514.0, 4166.0) };
        assert_eq!(lower(from_none), "", "no data are written again if there were none");
        // With a higher limit, programs get further.
        assert_eq!(reserve(vec![wait(FSYNC, 4.4, 0.3), risk(1.0, 200.0), dirtied(1514.0, 4166.0)]), "");
    }

    #[test]
    fn a_finding_of_waits_that_the_twin_lacks_is_a_reservation_unless_its_wait_is_predicted() {
        let lacks = |rule, rows| {
            let reserve = Prediction { not_reproduced: vec![rule], ..of(rows) }.reserve();
            reserve.is_some_and(|why| why.contains("does not show"))
        };
        let less_at_risk = || vec![risk(1170.0, 793.0)];
        assert!(lacks("fsync-behind-writeback", less_at_risk()), "its wait is no figure of the recording");
        assert!(!lacks("dirty-data-at-risk", less_at_risk()), "it is no finding of waits");
        let told = |doubt| vec![Row { doubt, roughly: Some((0.1, 0.2)), ..wait(FSYNC, 2.0, 0.5) }];
        assert!(!lacks("dirty-cliff", told(None)));
        assert!(lacks("dirty-cliff", told(Some(Doubt::BackTest))), "the back-test misses it");
    }
}
