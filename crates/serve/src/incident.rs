// SPDX-License-Identifier: MIT OR Apache-2.0
//! An incident out of the ring's segments: the recording from a minute before the trigger to a minute after it, and its
//! report.

use crate::ring::thin::Joined;
use crate::trigger::Trigger;
use floodline_analysis::diagnose::stretches::Stretches;
use floodline_analysis::report::Report;
use floodline_record::record::{Event, Record, Sink, What};
use floodline_record::recording::EncodeError;
use floodline_record::sample::SampleTime;
use floodline_record::text::Text;
use floodline_record::units::Nanos;
use floodline_view::export::rfc3339;
use floodline_view::incidents::{Incident, SCHEMA};
use std::sync::Arc;

/// Time kept before and after a trigger.
pub(crate) const AROUND: Nanos = Nanos(60 * Nanos::SECOND.0);

/// A recording and its report.
pub(crate) struct Built {
    /// The recording.
    pub(crate) bytes: Vec<u8>,
    /// Its report.
    pub(crate) report: Report,
    /// What is kept beside it.
    pub(crate) incident: Incident,
}

/// Name of an incident at a moment, without an ending.
pub(crate) fn name(at: SampleTime) -> String {
    let time = rfc3339(at.wall).unwrap_or_else(|| "unknown-time".to_owned());
    let second = time.split('.').next().unwrap_or(&time).replace(':', "");
    format!("incident-{second}Z")
}

/// Makes the recording of an incident. `is_complete`: the time after the trigger is in the segments.
pub(crate) fn build(
    name: &str,
    trigger: &Trigger,
    segments: &[Arc<Vec<u8>>],
    every: Nanos,
    is_complete: bool,
) -> Result<Built, EncodeError> {
    let at = trigger.at.monotonic;
    let from = Nanos(at.0.saturating_sub(AROUND.0));
    // The sample after the last second contains the growth within that second.
    let to = Nanos(at.0.saturating_add(AROUND.0).saturating_add(every.0));
    let mut joined = Joined::new(Some(every))?;
    let mut stretches = Stretches::new(Vec::new());
    let (mut first, mut last) = (None, None);
    let mut host = Text::default();
    let mut fold = |record: &Record| {
        if let Record::Sample(sample) = record {
            first.get_or_insert(sample.time.monotonic);
            last = Some(sample.time.monotonic);
        }
        if let Record::Facts(facts) = record {
            host = facts.hostname.to_string().into();
        }
        let Ok(()) = stretches.record(record);
    };
    for segment in segments {
        joined.add(segment.as_slice(), (from, to), Nanos(0), &mut fold)?;
    }
    let text = Text::new(format!("incident ({}): {}", trigger.kind.name(), trigger.text));
    joined.put(&Record::Event(Event { at, what: What::Note { text } }))?;
    let samples = joined.samples();
    let bytes = joined.finish()?;
    let report = stretches.finish();
    let seconds = |from: Nanos, to: Nanos| Nanos(to.0.saturating_sub(from.0)).as_secs_f64();
    let worst = report.findings.first();
    let incident = Incident {
        schema: SCHEMA.into(),
        name: name.into(),
        host,
        trigger: trigger.kind.name().into(),
        at_wall_ns: trigger.at.wall.0,
        rule: trigger.rule.or(worst.map(|finding| finding.rule)).map(Text::from),
        severity: worst.map(|finding| finding.severity).max(trigger.severity),
        summary: trigger.text.as_str().into(),
        cause: worst.map(|finding| Text::new(&finding.summary)),
        before_s: first.map_or(0.0, |first| seconds(first, at)),
        after_s: last.map_or(0.0, |last| seconds(at, last)),
        samples,
        complete: is_complete,
        duplicates: 0,
    };
    Ok(Built { bytes, report, incident })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::memory::MemoryRing;
    use crate::trigger::Kind;
    use floodline_record::recording::Decoder;
    use floodline_testkit::incidents::dirty_cliff;

    #[test]
    fn a_minute_on_both_sides_is_kept_with_its_report() {
        let mut ring = MemoryRing::new(64 << 20, 1 << 20, Some(Nanos::SECOND));
        let mut times = Vec::new();
        for record in dirty_cliff().seconds(300).records() {
            ring.record(&record).unwrap();
            if let Record::Sample(sample) = &record {
                times.push(sample.time);
            }
        }
        let at = times[150];
        let trigger = Trigger {
            kind: Kind::Mark,
            at,
            subject: String::new(),
            rule: None,
            severity: None,
            text: "Asked for.".into(),
        };
        let segments = ring.since(Nanos(at.monotonic.0 - AROUND.0));
        let built = build(&name(at), &trigger, &segments, Nanos::SECOND, true).unwrap();
        assert_eq!((built.incident.before_s, built.incident.after_s), (60.0, 61.0));
        assert_eq!(built.incident.samples, 122);
        assert!(built.incident.name.starts_with("incident-20") && built.incident.name.ends_with('Z'));
        let records: Vec<Record> =
            Decoder::new(built.bytes.as_slice()).unwrap().map(|record| record.unwrap()).collect();
        assert_eq!(records.iter().filter(|record| matches!(record, Record::Facts(_))).count(), 1);
        let read =
            floodline_analysis::diagnose::diagnose(&floodline_record::window::Window::from_records(&records), None);
        assert_eq!(read.findings, built.report.findings);
        let whole = floodline_analysis::diagnose::diagnose(&dirty_cliff().seconds(120).window(), None);
        assert_eq!(built.report.not_checked, whole.not_checked, "nothing that rules need was lost on the way");
    }
}
