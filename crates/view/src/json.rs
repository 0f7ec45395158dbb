// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report as one line of JSON. The form is that of [`floodline_analysis::report`]: versioned by its
//! `schema` field, fields are added and never renamed, units are in the names or beside the value.

use floodline_analysis::report::Report;

/// One line of JSON, ended by a newline.
pub fn doctor(report: &Report) -> Result<String, serde_json::Error> {
    let mut line = serde_json::to_string(report)?;
    line.push('\n');
    Ok(line)
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
    fn the_form_is_the_published_one() {
        let line = doctor(&diagnose(&dirty_cliff().window(), None)).unwrap();
        let report: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(report["schema"], "floodline.doctor/1");
        assert_eq!(keys(&report), ["findings", "gaps", "host", "not_checked", "ruled_out", "schema", "window_s"]);
        let finding = &report["findings"][0];
        let expect = ["cause", "confirmed", "evidence", "plan", "rule", "severity", "summary", "trade_off"];
        assert_eq!(keys(finding), expect);
        assert_eq!(keys(&finding["evidence"][0]), ["name", "source", "threshold", "unit", "value"]);
        assert_eq!(keys(&finding["plan"][0]), ["command", "undo", "value", "write"]);
        assert_eq!(finding["severity"], "critical");
        assert_eq!(keys(&report["ruled_out"][0]), ["reason", "rule"]);
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
}
