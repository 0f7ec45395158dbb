// SPDX-License-Identifier: MIT OR Apache-2.0
//! The only writer of JSON: one value as one line, in which characters that could command a terminal stand as
//! `\uXXXX`. And the report of `doctor`, whose form is that of [`floodline_analysis::report`]: versioned by its `schema`
//! field, fields are added and never renamed, units are in the names or beside the value.

use floodline_analysis::report::Report;
use floodline_analysis::told::told;
use floodline_record::name::is_plain;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};
use std::io::{self, Write};

/// The report as one line of JSON, ended by a newline. It has one change, that of its plan ([`told`]).
pub fn doctor(report: &Report) -> Result<String, serde_json::Error> {
    line(&told(report))
}

/// A value as one line of JSON, ended by a newline.
pub fn line(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let mut line = Vec::new();
    write(&mut line, value)?;
    line.push(b'\n');
    String::from_utf8(line).map_err(serde::ser::Error::custom)
}

/// Writes a value as JSON without a line break.
pub(crate) fn write(out: impl Write, value: &impl Serialize) -> Result<(), serde_json::Error> {
    value.serialize(&mut Serializer::with_formatter(out, Harmless))
}

/// Compact JSON. What JSON itself need not escape (DEL, C1, bidirectional and invisible characters) is escaped here. A sum of no
/// floating-point numbers is a negative zero in Rust, and is written as zero.
struct Harmless;

impl Formatter for Harmless {
    fn write_f64<W: Write + ?Sized>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        CompactFormatter.write_f64(writer, value + 0.0)
    }

    fn write_string_fragment<W: Write + ?Sized>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| !is_plain(*c)) {
            let (plain, from) = rest.split_at(at);
            writer.write_all(plain.as_bytes())?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = from.get(c.len_utf8()..).unwrap_or_default();
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_analysis::diagnose::diagnose;
    use floodline_testkit::Fixture;
    use floodline_testkit::incidents::{INCIDENTS, dirty_cliff};
    use serde_json::Value;

    fn keys(value: &Value) -> Vec<&str> {
        value.as_object().into_iter().flat_map(|object| object.keys()).map(String::as_str).collect()
    }

    #[test]
    fn a_sum_of_nothing_is_zero() {
        let none: f64 = [0.0_f64; 0].iter().sum();
        assert_eq!(line(&(none, -0.0, -1.5)).unwrap(), "[0.0,0.0,-1.5]\n");
    }

    #[test]
    fn the_form_is_the_published_one() {
        let line = doctor(&diagnose(&dirty_cliff().window(), None)).unwrap();
        let report: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(report["schema"], "floodline.doctor/1");
        assert_eq!(
            keys(&report),
            [
                "findings",
                "gaps",
                "host",
                "not_checked",
                "observation",
                "plan",
                "ruled_out",
                "schema",
                "symptom",
                "unseen",
                "window_s"
            ]
        );
        let finding = &report["findings"][0];
        let expect =
            ["brief", "cause", "confirmed", "devices", "evidence", "plan", "rule", "severity", "summary", "trade_off"];
        assert_eq!(keys(finding), expect);
        assert_eq!(keys(&finding["evidence"][0]), ["name", "source", "threshold", "unit", "value"]);
        assert_eq!(keys(&finding["plan"][0]), ["command", "undo", "value", "when", "write"]);
        assert_eq!(finding["severity"], "critical");
        assert_eq!(keys(&report["ruled_out"][0]), ["reason", "rule"]);
    }

    #[test]
    fn no_finding_has_a_command_that_the_plan_lacks() {
        use floodline_analysis::{plan, report::Severity};
        let window = Fixture::healthy().settings((20, 0, 10, 0)).one_look().window();
        let asks = |changes| floodline_analysis::advise::step::sysctls(&window, changes);
        let mut report = diagnose(&dirty_cliff().window(), None);
        let mut other = report.findings[0].clone();
        report.findings[0].plan = asks(&[("vm.dirty_ratio", 10)]);
        (other.rule, other.severity, other.plan) = ("other", Severity::Warning, asks(&[("vm.dirty_bytes", 1 << 26)]));
        report.findings.push(other);
        report.plan = plan::merge(&report.findings);
        let line = doctor(&report).unwrap();
        assert!(line.contains("sysctl -w vm.dirty_ratio=10") && !line.contains("sysctl -w vm.dirty_bytes="), "{line}");
        let value: Value = serde_json::from_str(&line).unwrap();
        let findings = value["findings"].as_array().unwrap();
        let other = findings.iter().find(|finding| finding["rule"] == "other").unwrap();
        assert_eq!(other["plan"], serde_json::json!([]));
        assert_eq!(other["left_out"][0]["change"], "vm.dirty_bytes=67108864");
        assert_eq!(other["left_out"][0]["why"], "the plan sets vm.dirty_ratio=10 for dirty-cliff");
    }

    #[test]
    fn a_report_without_a_change_has_a_plan_of_null() {
        let line = doctor(&diagnose(&Fixture::healthy().window(), None)).unwrap();
        let report: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(report.get("plan"), Some(&Value::Null));
    }

    #[test]
    fn every_report_is_one_line_and_reads_back() {
        for incident in INCIDENTS {
            for fixture in [(incident.make)(), (incident.make)().one_look()] {
                let line = doctor(&diagnose(&fixture.window(), None)).unwrap();
                assert_eq!(line.matches('\n').count(), 1);
                let report: Value = serde_json::from_str(&line).unwrap();
                assert!(report["host"]["samples"].as_u64() >= Some(1));
            }
        }
    }

    #[test]
    fn names_are_escaped_once_and_readable() {
        let fixture = Fixture::healthy().facts(|facts| facts.hostname = floodline_record::name::Name::new(b"a\x1bb\n"));
        let line = doctor(&diagnose(&fixture.window(), Some(&[]))).unwrap();
        assert!(line.contains(r#""hostname":"a\\x1bb\\x0a""#), "{line}");
    }

    #[test]
    fn what_commands_a_terminal_is_escaped_and_reads_back() {
        let hostile = "a\u{1b}[2J\u{7f}\u{9b}1m\u{202e}é\u{e0041}\"\\";
        let text = line(&serde_json::json!({ hostile: [hostile] })).unwrap();
        assert!(text.trim_end().chars().all(is_plain), "{text:?}");
        assert!(text.contains(r#"a\u001b[2J\u007f\u009b1m\u202eé\udb40\udc41\"\\"#), "{text}");
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value[hostile][0], hostile);
    }
}
