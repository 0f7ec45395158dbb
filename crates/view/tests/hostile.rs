// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever strings a recording holds, no output has a character in it that commands a terminal. The payload is in every
//! string of the recording, and every output of this crate that reads recordings is made from it.

use floodline_analysis::budget::{Choice, Sort, budgets, rows};
use floodline_analysis::compare::{Reading, Side, compare};
use floodline_analysis::diagnose::diagnose;
use floodline_analysis::ledger::ledger;
use floodline_analysis::moment::Moment;
use floodline_analysis::timeline::Timeline;
use floodline_record::name::is_plain;
use floodline_record::record::{Record, Sink};
use floodline_record::recording::Decoder;
use floodline_record::window::Window;
use floodline_testkit::hostile::{PAYLOAD, Piece, of_everything, planted};
use floodline_testkit::incidents::INCIDENTS;
use floodline_view::export::{CsvExport, Flattener, JsonLines, ParquetExport, PerfettoTrace, TABLES};
use floodline_view::{budget, compare as comparison, doctor, json, ledger as account, moment, page, top};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

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
        ("compare text".to_owned(), comparison::text(&compared, 200, true)),
        ("compare json".to_owned(), comparison::json(&compared).expect("a result")),
    ];
    let timeline = timeline(records);
    let traced = ledger(&window);
    let host = page::Host {
        label: "a.flr",
        report: &report,
        window: &window,
        timeline: &timeline,
        budgets: &budgets,
        ledger: traced.as_ref(),
    };
    out.push(("page".to_owned(), page::host(&host)));
    out.push(("page of two".to_owned(), page::compared(&host, &host, &compared)));
    for number in '1'..='5' {
        let look = top::Look::new("a".to_owned(), top::Position::default(), &window, &window, Some(report.clone()));
        let mut state = top::State::new(true);
        state.key(top::Key::Char(number), &look);
        let mut buffer = Buffer::empty(Rect::new(0, 0, 200, 120));
        top::draw(&mut buffer, &look, &mut state);
        let line = |y: u16| (0..200).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        out.push((format!("screen {number}"), (0..120).map(line).collect::<Vec<String>>().join("\n")));
    }
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

fn timeline(records: &[Record]) -> Timeline {
    let mut timeline = Timeline::default();
    for record in records {
        let Ok(()) = timeline.record(record);
    }
    timeline
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

/// What a browser would run, in every way that a name could reach it.
const SCRIPT: &str =
    "</script></title></svg><script>alert(1)</script><img src=x onerror=alert(1)>'onload=alert(1) `{{7*7}}<!--";

#[test]
fn no_string_of_a_recording_becomes_a_part_of_a_page() {
    let clean = of_everything();
    let elements = |text: &str| {
        let names = text.split('<').skip(1).map(|rest| {
            rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '/' && c != '!')
                .next()
                .unwrap_or_default()
                .to_owned()
        });
        let mut count = std::collections::BTreeMap::<String, usize>::new();
        names.for_each(|name| *count.entry(name).or_default() += 1);
        count
    };
    let pages = |records: &[Record]| {
        let all = outputs(records).into_iter().filter(|(name, _)| name.starts_with("page"));
        all.map(|(_, text)| text).collect::<Vec<String>>()
    };
    let (bytes, count) = planted(&clean, SCRIPT, |piece| piece != Piece::Header);
    assert!(count > 20, "{count}");
    let read: Vec<Record> =
        Decoder::new(bytes.as_slice()).expect("a result").collect::<Result<_, _>>().expect("a result");
    let mut shown = 0;
    for page in pages(&read) {
        let found = elements(&page);
        assert_eq!(found.get("img"), None);
        assert_eq!(found.get("script"), found.get("/script"));
        assert_eq!(found.get("script"), Some(&4), "data and three scripts");
        assert_eq!((found.get("title"), found.get("/html")), (found.get("/title"), Some(&1)));
        shown += usize::from(page.contains("&#60;script&#62;alert(1)"));
    }
    assert!(shown > 0, "no page shows a planted name: the test looks at nothing");
}

#[test]
fn a_name_with_quotes_stays_within_its_attribute() {
    use floodline_record::units::Bytes;
    use floodline_testkit::Fixture;
    let name = "/a\" onload=\"alert(1)\" x='";
    let fixture = Fixture::healthy().cgroup(name, |_, row| row.file_dirty = Some(Bytes(9 << 20)));
    let page = outputs(&fixture.records()).into_iter().find(|(name, _)| name == "page").expect("a page").1;
    assert!(page.contains("aria-label=\"Unwritten data of each cgroup: /a&#34; onload=&#34;alert(1)&#34; x=&#39;"));
    assert!(!page.contains("\" onload="));
}

#[test]
fn a_page_asks_for_nothing() {
    for (name, text) in outputs(&of_everything()).into_iter().filter(|(name, _)| name.starts_with("page")) {
        assert!(text.contains("content=\"default-src 'none'; script-src 'sha256-"), "{name}");
        for word in ["src=", "<link", "<iframe", "<object", "<embed", "<form", " style=", " onclick="] {
            let outside = text.split("<script>").next().unwrap_or_default();
            assert!(!outside.contains(word), "{name}: {word}");
        }
    }
}

#[test]
fn a_minute_of_fifty_cgroups_is_a_small_page() {
    use floodline_record::units::Bytes;
    use floodline_testkit::{Fixture, mib};
    let mut fixture = Fixture::healthy().seconds(60);
    for number in 0..50 {
        let wave = move |t: f64| (t * (1.0 + f64::from(number) / 7.0)).sin().abs() * 20.0;
        fixture = fixture.cgroup(&format!("/kubepods.slice/pod{number}/app"), move |t, row| {
            row.file_dirty = Some(Bytes(mib(wave(t))));
            row.file_writeback = Some(Bytes(mib(wave(t + 0.3) / 3.0)));
        });
    }
    let page = outputs(&fixture.records()).into_iter().find(|(name, _)| name == "page").expect("a page").1;
    assert!(page.matches("kubepods.slice/pod").count() >= 50);
    assert!(page.len() <= 150_000, "{} bytes", page.len());
}
