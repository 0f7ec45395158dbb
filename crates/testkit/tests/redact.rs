// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording without names: no string of a host is left in it, and the rules say the same of it.

use floodline_analysis::diagnose::diagnose;
use floodline_record::record::{Record, Sink};
use floodline_record::recording::Decoder;
use floodline_record::redact::Redactor;
use floodline_record::window::Window;
use floodline_testkit::Fixture;
use floodline_testkit::hostile::{Piece, of_everything, planted};
use floodline_testkit::incidents::INCIDENTS;
use serde_json::Value;

const KEY: &[u8] = b"a key of more than sixteen bytes";

#[test]
fn no_string_of_any_record_survives() {
    const SECRET: &str = "/gehëim";
    let (bytes, count) = planted(&of_everything(), SECRET, |piece| piece != Piece::Header);
    assert!(count > 100, "{count} strings hold the secret");
    let redactor = Redactor::new(KEY);
    let mut changed = 0;
    for record in Decoder::new(bytes.as_slice()).expect("it is a recording") {
        let record = record.expect("it reads to its end");
        let redacted = redactor.record(&record);
        let shown = format!("{redacted:?}");
        assert!(!shown.contains("geh"), "{shown}");
        changed += usize::from(*redacted != record);
    }
    assert!(changed > 50, "{changed} records changed");
}

#[test]
fn the_rules_say_the_same_without_names() {
    let redactor = Redactor::new(KEY);
    for (name, fixture) in INCIDENTS.iter().map(|one| (one.name, (one.make)())).chain([("healthy", Fixture::healthy())])
    {
        let records = fixture.records();
        let redacted: Vec<Record> = records.iter().map(|record| redactor.record(record).into_owned()).collect();
        assert_ne!(records, redacted, "{name}");
        assert_eq!(said(&records), said(&redacted), "{name}");
    }
}

/// Rules and verdicts, and every number of the report.
fn said(records: &[Record]) -> (Vec<String>, Vec<String>) {
    let mut window = Window::default();
    for record in records {
        let Ok(()) = window.record(record);
    }
    let report = diagnose(&window, None);
    let findings = report.findings.iter().map(|finding| format!("{} {:?}", finding.rule, finding.severity));
    let ruled_out = report.ruled_out.iter().map(|rule| format!("not {}", rule.rule));
    let mut numbers = Vec::new();
    collect(&serde_json::to_value(&report).expect("a report is JSON"), &mut numbers);
    (findings.chain(ruled_out).collect(), numbers)
}

fn collect(value: &Value, numbers: &mut Vec<String>) {
    match value {
        Value::Number(number) => numbers.push(number.to_string()),
        Value::Array(values) => values.iter().for_each(|value| collect(value, numbers)),
        Value::Object(fields) => fields.values().for_each(|value| collect(value, numbers)),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}
