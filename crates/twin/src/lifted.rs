// SPDX-License-Identifier: MIT OR Apache-2.0
//! A twin whose devices have no limit of bytes that was not seen. A device that was never saturated by bytes has in the twin the speed
//! that it showed while it was busy, and may be many times as fast. The recording holds for both: where the verdict on a change
//! differs between them, it rests on a limit that is not known.

use crate::Twin;
use crate::headline::headline;
use floodline_analysis::prediction::{Prediction, Unseen};

/// The twin without limits of written bytes that were not seen. `None` where each was seen, or where busy times show one: the speed of a
/// device with credit is fitted to them.
pub(crate) fn lifted(twin: &Twin) -> Option<Twin> {
    let mut lifted = twin.clone();
    let mut is_any = false;
    for ceiling in lifted.ceilings.iter_mut().filter(|ceiling| !ceiling.known.write_bytes && !ceiling.has_credit) {
        let scenarios = std::iter::once(&mut lifted.scenario).chain(lifted.demand.other_mut());
        for device in scenarios.filter_map(|one| one.machine.devices.get_mut(&ceiling.device)) {
            is_any |= device.write_bandwidth.take().is_some();
        }
        // Data at risk are gone in a moment.
        ceiling.write_bytes_per_second = ceiling.write_bytes_per_second.map(|_| f64::INFINITY);
    }
    is_any.then_some(lifted)
}

/// The devices without a limit of written bytes that was seen, and the speed at which the twin has each.
pub(crate) fn unseen(twin: &Twin) -> Vec<Unseen> {
    let is_open = |ceiling: &&crate::Ceiling| !ceiling.known.write_bytes && !ceiling.has_credit;
    let unseen = |ceiling: &crate::Ceiling| {
        Some(Unseen { device: ceiling.device.clone(), bytes_per_second: ceiling.write_bytes_per_second? })
    };
    twin.ceilings.iter().filter(is_open).filter_map(unseen).collect()
}

/// Writes into a prediction whether its verdict is the same without the limits that were not seen. `without` is the prediction of
/// [`lifted`]. If that twin is not like its recording, nothing is written.
pub(crate) fn tell(prediction: &mut Prediction, without: &Prediction, twin: &Twin) {
    let found = prediction.found();
    prediction.runs += without.runs;
    if without.no_verdict(&found).is_some() {
        return;
    }
    let is_other = without.verdict(&found) != prediction.verdict(&found);
    let unseen = unseen(twin);
    match is_other {
        true => {
            prediction.only_up_to = unseen;
            prediction.headline = headline(prediction);
        }
        false => prediction.notes.extend(unseen.first().map(|_| {
            let devices: Vec<&str> = unseen.iter().map(|one| one.device.as_str()).collect();
            format!("Without a byte limit on {}, the verdict is the same.", devices.join(" and "))
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ceiling, KnownLimits, Options, Recorded};
    use floodline_analysis::judgement::Verdict;
    use floodline_analysis::prediction::{Row, Seen};
    use floodline_analysis::report::Severity;
    use floodline_record::record::Sink;
    use floodline_record::version::KernelVersion;
    use floodline_scenario::ByteRate;
    use floodline_testkit::Fixture;

    fn twin() -> Twin {
        let mut recorded = Recorded::default();
        for record in Fixture::healthy().records() {
            let Ok(()) = recorded.record(&record);
        }
        crate::of(&recorded, &Options::default()).expect("it has a twin")
    }

    /// The twin with one device that writes 33 MB/s, whose limits are known as given.
    fn with(known: KnownLimits, has_credit: bool) -> Twin {
        let mut twin = twin();
        let name = twin.scenario.machine.devices.keys().next().expect("a device").clone();
        twin.ceilings = vec![Ceiling {
            device: name.clone(),
            is_known: known != KnownLimits::default(),
            known,
            write_bytes_per_second: Some(33e6),
            requests_per_second: None,
            has_credit,
            text: String::new(),
        }];
        let device = twin.scenario.machine.devices.get_mut(&name).expect("it is there");
        device.write_bandwidth = Some(ByteRate(floodline_record::units::BytesPerSecond(33_000_000)));
        twin
    }

    fn speed(twin: &Twin) -> Option<u64> {
        twin.scenario.machine.devices.values().next().and_then(|device| device.write_bandwidth).map(|rate| rate.0.0)
    }

    #[test]
    fn only_a_limit_that_was_not_seen_is_lifted() {
        let requests = KnownLimits { writes: true, ..KnownLimits::default() };
        for known in [KnownLimits::default(), requests] {
            let lifted = lifted(&with(known, false)).expect("its bytes were never limited");
            assert_eq!(speed(&lifted), None, "{known:?}");
        }
        assert!(lifted(&with(KnownLimits { write_bytes: true, ..requests }, false)).is_none());
        assert!(lifted(&with(requests, true)).is_none(), "its busy times show a limit");
    }

    fn prediction(then: f64, vanish: bool) -> Prediction {
        let row = |figure: &str, then| Row {
            off_share: Some(0.02),
            least: 0.02,
            ..Row::new(figure, "longest fsync", "seconds", 1.0, then)
        };
        let seen = vec![Seen { rule: "starved-dirty-budget", severity: Severity::Critical }];
        let (vanish, stay) = if vanish { (seen, Vec::new()) } else { (Vec::new(), seen) };
        Prediction {
            rows: vec![row(floodline_analysis::prediction::LONGEST, then)],
            back_test_error: Some(0.1),
            vanish,
            stay,
            ..Prediction::new(Vec::new(), KernelVersion::new(6, 12, 0))
        }
    }

    #[test]
    fn a_verdict_that_only_an_unseen_limit_makes_is_open() {
        let twin = with(KnownLimits { writes: true, ..KnownLimits::default() }, false);
        let told = |without: Prediction| {
            let mut harms = Prediction { runs: 4, ..prediction(4.0, false) };
            assert_eq!(harms.verdict(&harms.found()), Verdict::Harms);
            tell(&mut harms, &Prediction { runs: 2, ..without }, &twin);
            assert_eq!(harms.runs, 6, "all runs count");
            (harms.no_verdict(&harms.found()), harms.notes.clone(), harms.headline.clone())
        };
        let (why, notes, headline) = told(prediction(0.1, true));
        assert!(why.as_ref().is_some_and(|why| why.contains("it harms with") && why.contains("31.5 MiB/s")), "{why:?}");
        assert!(notes.is_empty() && headline.starts_with("No verdict: on the twin it harms with"), "{headline}");
        let (why, notes, _) = told(prediction(4.0, false));
        assert_eq!((why, notes.len()), (None, 1), "it harms whatever the limit is");
        assert!(notes[0].starts_with("Without a byte limit on "), "{notes:?}");
        let unlike = Prediction { back_test_error: Some(0.6), ..prediction(0.1, true) };
        assert_eq!(told(unlike).0, None, "a disk without that limit does not fit the recording");
    }
}
