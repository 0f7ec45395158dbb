// SPDX-License-Identifier: MIT OR Apache-2.0
//! Incidents that the flight recorder kept: the JSON file beside each recording, and the list of them as text.

use crate::export::rfc3339;
use crate::json;
use floodline_analysis::report::{Report, Severity};
use floodline_analysis::told::told;
use floodline_record::human;
use floodline_record::text::Text;
use floodline_record::units::Nanos;
use serde::{Deserialize, Serialize};

/// Version of the JSON form.
pub const SCHEMA: &str = "floodline.incident/1";

/// What triggered an incident and what is kept of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Incident {
    /// [`SCHEMA`].
    pub schema: Text,
    /// Name of its files without their endings.
    pub name: Text,
    /// Name of the host.
    pub host: Text,
    /// `io_pressure`, `rule`, `wait` or `mark`.
    pub trigger: Text,
    /// When, nanoseconds since 1970 UTC.
    pub at_wall_ns: u64,
    /// The rule that began to hold, or else that of the worst finding.
    #[serde(default)]
    pub rule: Option<Text>,
    /// The worst of its findings, where there is one.
    #[serde(default)]
    pub severity: Option<Severity>,
    /// What triggered it, in a sentence.
    pub summary: Text,
    /// The worst finding of the recording in a sentence; absent before the recording is complete.
    #[serde(default)]
    pub cause: Option<Text>,
    /// Seconds recorded before the trigger.
    pub before_s: f64,
    /// Seconds recorded after it.
    pub after_s: f64,
    /// Samples recorded.
    pub samples: u64,
    /// Whether the time after the trigger is in the recording.
    pub complete: bool,
    /// Triggers of the same kind and subject since, which were not kept.
    pub duplicates: u64,
}

/// What a hook reads: the incident, and the report of its recording.
#[derive(Serialize)]
struct WithReport<'a> {
    #[serde(flatten)]
    incident: &'a Incident,
    report: &'a Report,
}

/// An incident as one line of JSON.
pub fn json(incident: &Incident) -> Result<String, serde_json::Error> {
    json::line(incident)
}

/// An incident and the report of its recording as one line of JSON.
pub fn json_with_report(incident: &Incident, report: &Report) -> Result<String, serde_json::Error> {
    json::line(&WithReport { incident, report: &told(report) })
}

/// Reads the JSON form.
pub fn parse(text: &str) -> Result<Incident, serde_json::Error> {
    serde_json::from_str(text)
}

/// The answer of `floodline mark` for people. `file` is the recording.
pub fn kept(file: &str) -> String {
    format!(
        "Marked. The minute before now is kept; the minute after is added when it is over.\n\
         Read it then: floodline doctor {}\n",
        human::quoted(file)
    )
}

/// The answer of `floodline mark` as one line of JSON.
pub fn marked(name: &str) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct Marked<'a> {
        schema: &'static str,
        incident: &'a str,
    }
    json::line(&Marked { schema: "floodline.mark/1", incident: name })
}

/// All incidents as one line of JSON.
pub fn list_json(incidents: &[Incident]) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct List<'a> {
        schema: &'static str,
        incidents: &'a [Incident],
    }
    json::line(&List { schema: "floodline.incidents/1", incidents })
}

/// All incidents, newest first, two or three lines each. `folder` is where they are.
pub fn list(incidents: &[Incident], folder: &str, width: usize) -> String {
    let mut out = String::new();
    for incident in incidents {
        let when = rfc3339(Nanos(incident.at_wall_ns)).unwrap_or_else(|| "at an unknown time".to_owned());
        let severity = incident.severity.map_or("", Severity::name);
        let what = incident.rule.as_deref().unwrap_or(&incident.trigger);
        out.push_str(format!("{when}  {severity:8}  {what}").trim_end());
        out.push('\n');
        for said in [Some(&incident.summary), incident.cause.as_ref()].into_iter().flatten() {
            out.push_str(&crate::paragraph(said, 2, width));
        }
        let state = match (incident.complete, incident.duplicates) {
            (false, _) => ", not complete".to_owned(),
            (true, 0) => String::new(),
            (true, times) => format!(", seen again {}", human::plural(times, "time", "times")),
        };
        let (before, after) = (human::seconds(incident.before_s), human::seconds(incident.after_s));
        out.push_str(&crate::paragraph(
            &format!("{}.flr: {before} before and {after} after{state}", incident.name),
            2,
            width,
        ));
        out.push('\n');
    }
    match incidents.first() {
        None => out.push_str(&format!("no incidents in {folder}\n")),
        Some(newest) => {
            let file = human::quoted(&format!("{folder}/{}.flr", newest.name));
            out.push_str(&format!("Read the newest: floodline doctor {file}\n"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_says_what_happened_and_what_to_type() {
        let incident = Incident {
            schema: SCHEMA.into(),
            name: "incident-2026-01-02T030405Z".into(),
            trigger: "rule".into(),
            at_wall_ns: 1_767_323_045_000_000_000,
            rule: Some("dirty-cliff".into()),
            severity: Some(Severity::Critical),
            summary: "A rule began to hold.".into(),
            cause: Some("298 MiB were flushed at once.".into()),
            before_s: 60.0,
            after_s: 60.0,
            samples: 120,
            complete: true,
            duplicates: 2,
            host: "web".into(),
        };
        assert_eq!(
            list(std::slice::from_ref(&incident), "/var/lib/floodline", 80),
            "2026-01-02T03:04:05.000Z  critical  dirty-cliff\n  A rule began to hold.\n  298 MiB were flushed at once.\n  \
             incident-2026-01-02T030405Z.flr: 60 s before and 60 s after, seen again\n  2 times\n\n\
             Read the newest: floodline doctor\u{20}\
             /var/lib/floodline/incident-2026-01-02T030405Z.flr\n"
        );
        assert_eq!(list(&[], "/x", 80), "no incidents in /x\n");
        assert_eq!(parse(&json(&incident).unwrap()).unwrap(), incident);
        let hostile = json(&Incident { summary: "\u{1b}[2J".into(), ..Incident::default() }).unwrap();
        assert!(hostile.trim_end().chars().all(|c| !c.is_control()), "{hostile}");
    }
}
