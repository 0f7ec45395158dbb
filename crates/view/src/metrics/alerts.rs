// SPDX-License-Identifier: MIT OR Apache-2.0
//! Alert rules for Prometheus, printed by the program that exports their metrics. Five: what people notice first, then what
//! was found, then whether Floodline itself can see. Each fires late and ends late, so that it does not flap.

use super::catalogue::name;
use std::fmt::Write;

/// One alert.
struct Alert {
    name: &'static str,
    /// When it fires. Each ends only when a weaker condition has passed: the second one.
    fires: String,
    keeps: String,
    /// Labels that tell one of its alerts from another: only an alert that fires itself is kept.
    of: &'static str,
    /// How long it must hold.
    lasts: &'static str,
    severity: &'static str,
    summary: &'static str,
    description: String,
}

/// The container with the most dirty bytes on the instance that an alert is about.
fn most_dirty() -> String {
    let query = "printf \\\"topk(1, sum by (namespace, pod, container, cgroup) (floodline_cgroup_file_dirty_bytes{instance='%s'}))\\\" $labels.instance";
    format!(
        "Most dirty data: {{{{ range query ({query}) }}}}{{{{ .Labels.namespace }}}} {{{{ .Labels.pod }}}} {{{{ .Labels.container }}}} \
         {{{{ .Labels.cgroup }}}} ({{{{ .Value | humanize1024 }}}}B){{{{ end }}}}."
    )
}

/// What the rules found on the instance that an alert is about.
fn findings() -> String {
    let query = format!("printf \\\"{}{{instance='%s'}}\\\" $labels.instance", name::FINDING_INFO);
    format!(
        "Found: {{{{ range query ({query}) }}}}{{{{ .Labels.rule }}}} ({{{{ .Labels.severity }}}}) \
         {{{{ .Labels.devices }}}}; {{{{ end }}}}"
    )
}

fn alerts() -> Vec<Alert> {
    let waiting = "rate(floodline_host_psi_io_some_seconds_total[5m])";
    let full = "floodline_host_nr_dirty_bytes / floodline_host_nr_dirty_threshold_bytes";
    let critical = format!("{}{{severity=\"critical\"}}", name::FINDING_ACTIVE);
    vec![
        Alert {
            name: "FloodlineTasksWaitForIO",
            fires: format!("{waiting} > 0.4"),
            keeps: format!("{waiting} > 0.2"),
            of: "instance",
            lasts: "5m",
            severity: "warning",
            summary: "Tasks on {{ $labels.instance }} wait for I/O {{ $value | humanizePercentage }} of the time",
            description: format!("{} {} Read on the host: floodline doctor --for 40s.", findings(), most_dirty()),
        },
        Alert {
            name: "FloodlineDirtyNearThreshold",
            fires: format!("{full} > 0.9"),
            keeps: format!("{full} > 0.7"),
            of: "instance",
            lasts: "5m",
            severity: "warning",
            summary: "Dirty data on {{ $labels.instance }} is at {{ $value | humanizePercentage }} of the threshold at which writers are paused",
            description: format!("{} {} Read on the host: floodline doctor --for 40s.", most_dirty(), findings()),
        },
        Alert {
            name: "FloodlineCriticalFinding",
            // A quarter of the last 10 min, and at least 4 scrapes: no single scrape is enough, whatever their interval is.
            fires: format!(
                "max by (instance, rule) (avg_over_time({critical}[10m]) > 0.25 and count_over_time({critical}[10m]) >= 4)"
            ),
            keeps: format!("max by (instance, rule) (max_over_time({critical}[15m])) == 1"),
            of: "instance, rule",
            lasts: "1m",
            severity: "critical",
            summary: "{{ $labels.rule }} holds on {{ $labels.instance }}",
            description: format!("{} {} What it means: floodline explain {{{{ $labels.rule }}}}.", findings(), most_dirty()),
        },
        Alert {
            name: "FloodlineBlind",
            fires: format!("{} > 30 or {} > 120", name::LOOK_AGE, name::RULES_AGE),
            keeps: format!("{} > 10 or {} > 60", name::LOOK_AGE, name::RULES_AGE),
            of: "instance",
            lasts: "2m",
            severity: "warning",
            summary: "The last sample on {{ $labels.instance }} is {{ $value | humanizeDuration }} old",
            description: "A source of readings hangs, or the machine has no CPU time for floodline serve. Silence of its other alerts \
                          means nothing now. Read on the host: floodline doctor --capabilities."
                .to_owned(),
        },
        Alert {
            name: "FloodlineRuleNotChecked",
            fires: format!("max by (instance, rule, cause) ({}{{cause!~\"none|unsupported|not_planned|too_short\"}}) == 1", name::RULE_NOT_CHECKED),
            keeps: format!("max by (instance, rule, cause) (max_over_time({}{{cause!~\"none|unsupported|not_planned|too_short\"}}[15m])) == 1", name::RULE_NOT_CHECKED),
            of: "instance, rule, cause",
            lasts: "1h",
            severity: "info",
            summary: "{{ $labels.rule }} cannot be checked on {{ $labels.instance }}: {{ $labels.cause }}",
            description: "Read on the host what is missing: floodline doctor --capabilities.".to_owned(),
        },
    ]
}

/// The rule file for Prometheus, YAML.
pub fn alerts_yaml() -> String {
    let mut out = String::from(
        "# Printed by: floodline serve --print-alerts. Each alert begins with one condition and ends with a weaker one.\n\
         groups:\n  - name: floodline\n    rules:\n",
    );
    for alert in alerts() {
        let Alert { name, fires, keeps, of, lasts, severity, summary, description } = alert;
        // While it fires, the weaker condition is enough. `ALERTS` is what Prometheus itself exports.
        let firing = format!("and on ({of}) ALERTS{{alertname=\"{name}\", alertstate=\"firing\"}}");
        let _ = write!(
            out,
            "      - alert: {name}\n        expr: |\n          ({fires})\n          or\n          (({keeps}) {firing})\n        \
             for: {lasts}\n        labels:\n          severity: {severity}\n        annotations:\n          \
             summary: \"{summary}\"\n          description: \"{description}\"\n"
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::catalogue::unknown_names;

    #[test]
    fn alerts_name_only_metrics_that_are_exported() {
        let yaml = alerts_yaml();
        assert_eq!(unknown_names(&yaml), Vec::<String>::new());
        assert_eq!(yaml.matches("- alert: ").count(), 5);
        assert!(yaml.find("FloodlineTasksWaitForIO") < yaml.find("FloodlineCriticalFinding"), "symptoms first");
        assert!(unknown_names("floodline_no_such_thing > 1").len() == 1);
    }

    #[test]
    fn every_alert_ends_later_than_it_begins_and_says_what_to_type() {
        for alert in alerts() {
            assert_ne!(alert.fires, alert.keeps, "{}", alert.name);
            assert!(alert.description.contains("floodline "), "{}", alert.name);
        }
    }
}
