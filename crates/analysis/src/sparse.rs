// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts on recordings whose samples are far apart. A stall between two samples leaves no finding in such a recording, while a
//! twin of it may show the stall. A verdict that such a finding would change is not known, and the answer says what to type next.

use crate::judgement::Verdict;
use crate::prediction::{Doubt, Prediction, Seen};
use floodline_record::human;

impl Prediction {
    /// Reason why the verdict is open because the samples of the recording are far apart. `None` where they are not.
    pub fn of_sparse(&self, rules: &[&str]) -> Option<String> {
        self.between_samples(rules).or_else(|| self.misses_sparse_waits(rules))
    }

    /// Reason why the verdict is open: between the samples of the recording, the twin shows findings that the change ends. If the host has
    /// them, the verdict is another one. `None` where the verdict is the same with and without them.
    fn between_samples(&self, rules: &[&str]) -> Option<String> {
        let every = self.sparse_s.filter(|_| !self.between.is_empty())?;
        let mut with = self.clone();
        with.vanish.extend(self.between.iter().cloned());
        let all: Vec<&str> = rules.iter().copied().chain(self.between.iter().map(|seen| seen.rule)).collect();
        (with.verdict(&all) != self.verdict(rules)).then(|| {
            let names: Vec<&str> = self.between.iter().map(|seen: &Seen| seen.rule).collect();
            format!(
                "the samples are {} apart, and between them the twin shows {}, which the recording cannot show; record again \
                 with --every 1s",
                human::seconds(every),
                names.join(", ")
            )
        })
    }

    /// Reason why a change that seems not to help has no verdict: the twin misses every wait of a recording of rare samples, so that no
    /// wait can get shorter. A recording with more samples may have other waits, or a twin that hits them.
    fn misses_sparse_waits(&self, rules: &[&str]) -> Option<String> {
        let mut waits = self.rows.iter().filter(|row| row.unit == "seconds" && row.is_measured).peekable();
        waits.peek().filter(|_| self.sparse_s.is_some() && self.verdict(rules) == Verdict::DoesNotHelp)?;
        let all_missed = waits.all(|row| row.doubt == Some(Doubt::BackTest));
        all_missed.then(|| self.with_sparse("the twin misses every wait of the recording".to_owned()))
    }

    /// Adds to the reason for no verdict that rare samples may be the cause, and what to type next.
    pub(crate) fn with_sparse(&self, why: String) -> String {
        match self.sparse_s {
            Some(every) => {
                format!("{why}; the samples are {} apart, so record again with --every 1s", human::seconds(every))
            }
            None => why,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prediction::{LONGEST, PEAK, Row, WAITS};
    use crate::report::Severity;
    use floodline_record::version::KernelVersion;

    fn seen(rule: &'static str) -> Seen {
        Seen { rule, severity: Severity::Warning }
    }

    /// A change that puts less data at risk and leaves the longest sync as it is, on a host of samples that are 5 s apart.
    fn of(rows: Vec<Row>, between: Vec<Seen>) -> Prediction {
        let base = Prediction::new(Vec::new(), KernelVersion::new(6, 12, 0));
        Prediction { rows, back_test_error: Some(0.1), sparse_s: Some(5.0), between, ..base }
    }

    fn row(figure: &'static str, unit: &'static str, now: f64, then: f64) -> Row {
        Row { off_share: Some(0.02), least: 0.02, ..Row::new(figure, figure, unit, now, then) }
    }

    #[test]
    fn a_finding_between_the_samples_opens_a_verdict_that_it_would_change() {
        let rows = || vec![row(LONGEST, "seconds", 1.0, 1.0), row(PEAK, "bytes", 200e6, 20e6)];
        let one = of(rows(), vec![seen("dirty-cliff")]);
        assert_eq!(one.verdict(&[]), Verdict::Helps, "less data are at risk, and no wait is known");
        let why = one.no_verdict(&[]).expect("it is open");
        assert_eq!(
            why,
            "the samples are 5.00 s apart, and between them the twin shows dirty-cliff, which the recording cannot show; record \
             again with --every 1s"
        );
        assert_eq!(of(rows(), Vec::new()).no_verdict(&[]), None);
        let close = Prediction { sparse_s: None, ..one };
        assert_eq!(close.no_verdict(&[]), None, "samples that are close show it");
        let shorter = vec![row(LONGEST, "seconds", 1.0, 0.1), row(PEAK, "bytes", 200e6, 20e6)];
        assert_eq!(of(shorter, vec![seen("dirty-cliff")]).no_verdict(&[]), None, "it helps in both cases");
    }

    #[test]
    fn a_change_is_not_said_to_be_useless_if_no_wait_of_a_sparse_recording_is_predicted() {
        let told = |doubt, sparse_s| {
            let waits = Row { doubt, off_share: Some(0.4), ..row(WAITS, "seconds", 20.0, 20.0) };
            let base = of(vec![waits, row(PEAK, "bytes", 200e6, 200e6)], Vec::new());
            let stay = vec![seen("dirty-cliff")];
            Prediction { sparse_s, stay, ..base }.no_verdict(&["dirty-cliff"])
        };
        let why = told(Some(Doubt::BackTest), Some(5.0)).expect("it is open");
        assert_eq!(
            why,
            "the twin misses every wait of the recording; the samples are 5.00 s apart, so record again with --every 1s"
        );
        assert_eq!(told(None, Some(5.0)), None, "a wait is predicted");
        assert_eq!(told(Some(Doubt::BackTest), None), None);
    }

    #[test]
    fn a_twin_that_misses_a_recording_of_rare_samples_says_what_to_type() {
        let missed = |sparse_s| {
            let base = of(vec![row(LONGEST, "seconds", 1.0, 0.1)], Vec::new());
            Prediction { back_test_error: Some(0.4), sparse_s, ..base }.no_verdict(&[])
        };
        assert_eq!(missed(None).as_deref(), Some("the twin misses this recording by 40 %"));
        assert_eq!(
            missed(Some(5.0)).as_deref(),
            Some(
                "the twin misses this recording by 40 %; the samples are 5.00 s apart, so record again with --every 1s"
            )
        );
    }
}
