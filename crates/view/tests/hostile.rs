// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever strings a recording holds, no output has a character in it that commands a terminal. The payload is in every
//! string of the recording, and every output of this crate that reads recordings is made from it.

use floodline_analysis::budget::{Choice, Sort, budgets, rows};
use floodline_analysis::compare::{Reading, Side, compare};
use floodline_analysis::diagnose::diagnose;
use floodline_analysis::ledger::ledger;
use floodline_analysis::moment::Moment;
use floodline_record::name::is_plain;
use floodline_record::record::Record;
use floodline_record::recording::Decoder;
use floodline_record::window::Window;
use floodline_testkit::hostile::{PAYLOAD, Piece, of_everything, planted};
use floodline_testkit::incidents::INCIDENTS;
use floodline_view::export::{CsvExport, Flattener, JsonLines, ParquetExport, PerfettoTrace, TABLES};
use floodline_view::{budget, compare as comparison, doctor, json, ledger as account, moment};

/// Every output by name.
fn outputs(records: &[Record]) -> Vec<(String, String)> {
    let window = Window::from_records(records);
    let report = diagnose(&window, None);
    let budgets = rows(&window, &budgets(&window), Choice { all: true, sort: Sort::Over });
    let reading = || Side { label: "a.flr".to_owned(), readings: vec![Reading::of(&window)] };
    let compared = compare(&[reading(), reading()]).expect("a result");
    let mut out = vec![
        ("doctor text".to_owned(), doctor::render(&report, doctor::Options::default())),
        (
            "doctor details".to_owned(),
            doctor::render(&report, doctor::Options { details: true, ..doctor::Options::default() }),
        ),
        ("doctor json".to_owned(), json::doctor(&report).expect("a result")),
        ("budget text".to_owned(), budget::text(&budgets, budget::Options { width: 200, color: false, bytes: false })),
        ("budget json".to_owned(), budget::json(&budgets).expect("a result")),
        ("budget csv".to_owned(), budget::csv(&budgets).expect("a result")),
        ("compare text".to_owned(), comparison::text(&compared, 200)),
        ("compare json".to_owned(), comparison::json(&compared).expect("a result")),
    ];
    if let Some(ledger) = ledger(&window) {
        out.push(("ledger text".to_owned(), account::text(&ledger, account::Options { width: 200, rows: 100 })));
        out.push(("ledger json".to_owned(), account::json(&ledger).expect("a result")));
    }
    if let Some(now) = Moment::of(&window) {
        out.push(("replay line".to_owned(), moment::line(&now, 200)));
        out.push(("replay screen".to_owned(), moment::screen(&now, 200)));
        out.push(("replay json".to_owned(), moment::json(&now)));
    }
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("a result");
    let mut bytes = Vec::new();
    let mut lines = JsonLines::new(&mut bytes, None).expect("a result");
    records.iter().for_each(|record| lines.record(record).expect("a result"));
    lines.finish().expect("a result");
    out.push(("export jsonl".to_owned(), text(bytes)));
    let mut bytes = Vec::new();
    let mut trace = PerfettoTrace::new(&mut bytes);
    records.iter().for_each(|record| trace.record(record).expect("a result"));
    trace.finish().expect("a result");
    out.push(("export perfetto".to_owned(), text(bytes)));
    for table in TABLES {
        let mut bytes = Vec::new();
        let mut csv = CsvExport::new(&mut bytes, table).expect("a result");
        let mut flattener = Flattener::default();
        records.iter().for_each(|record| flattener.record(record, Some(table), &mut csv).expect("a result"));
        csv.finish().expect("a result");
        out.push((format!("export csv {table}"), text(bytes)));
        let mut bytes = Vec::new();
        let mut parquet = ParquetExport::new(&mut bytes, table).expect("a result");
        let mut flattener = Flattener::default();
        records.iter().for_each(|record| flattener.record(record, Some(table), &mut parquet).expect("a result"));
        parquet.finish().expect("a result");
        out.push((format!("export parquet {table}"), cells(bytes)));
    }
    out
}

/// The texts in a Parquet file.
fn cells(bytes: Vec<u8>) -> String {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).expect("a result");
    let mut texts = String::new();
    for row in reader.get_row_iter(None).expect("a result") {
        for (_, field) in row.expect("a result").get_column_iter() {
            if let Field::Str(text) = field {
                texts.push_str(text);
            }
        }
    }
    texts
}

fn check(records: &[Record], takes: impl Fn(Piece) -> bool) {
    let (bytes, count) = planted(records, PAYLOAD, takes);
    assert!(count > 0);
    let read: Vec<Record> =
        Decoder::new(bytes.as_slice()).expect("a result").collect::<Result<_, _>>().expect("a result");
    let mut planted = 0;
    for (name, text) in outputs(&read) {
        planted += usize::from(text.contains("\\x1b[2J") || text.contains("\\\\x1b[2J"));
        for line in text.lines() {
            assert!(line.chars().all(is_plain), "{name}: {line:?}");
            assert!(!line.starts_with("FORGED"), "{name}: a string made a line of its own");
        }
    }
    assert!(planted > 0, "no output shows the payload: the test looks at nothing");
}

#[test]
fn no_string_of_a_recording_reaches_an_output_raw() {
    let records = of_everything();
    check(&records, |piece| piece != Piece::Header);
    for only in [Piece::Facts, Piece::Entity, Piece::Event, Piece::Gap] {
        check(&records, |piece| piece == only);
    }
}

#[test]
fn no_string_of_an_incident_reaches_an_output_raw() {
    for incident in INCIDENTS {
        check(&(incident.make)().records(), |piece| piece != Piece::Header);
    }
}

#[test]
fn no_string_of_the_header_reaches_an_output_raw() {
    let (bytes, count) = planted(&of_everything(), PAYLOAD, |piece| piece == Piece::Header);
    assert!(count > 500, "{count}");
    let read: Vec<Record> =
        Decoder::new(bytes.as_slice()).expect("a result").collect::<Result<_, _>>().expect("a result");
    for (name, text) in outputs(&read) {
        assert!(text.chars().all(|c| c == '\n' || is_plain(c)), "{name}");
    }
}
