// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Grafana dashboard, printed by the program that exports its metrics. The data source is a template variable, which
//! works both when a file is provisioned and when it is imported by hand.

use super::catalogue::name;
use crate::json;
use serde_json::{Value, json};

/// One graph: title, unit of Grafana, and queries with their legends.
type Panel = (&'static str, &'static str, Vec<(String, &'static str)>);

const BY_CONTAINER: &str = "{{namespace}} {{pod}} {{container}} {{cgroup}}";

fn panels() -> Vec<Panel> {
    let host = |expression: &str| expression.replace("{}", "{instance=~\"$instance\"}");
    let query = |expression: &str, legend: &'static str| (host(expression), legend);
    vec![
        (
            "Findings",
            "short",
            vec![query(
                &format!("max by (instance, rule, severity) ({}{{}}) > 0", name::FINDING_ACTIVE),
                "{{rule}} ({{severity}})",
            )],
        ),
        (
            "Tasks waiting for I/O",
            "percentunit",
            vec![
                query("rate(floodline_host_psi_io_some_seconds_total{}[$__rate_interval])", "some"),
                query("rate(floodline_host_psi_io_full_seconds_total{}[$__rate_interval])", "all"),
            ],
        ),
        (
            "Dirty data against its thresholds",
            "bytes",
            vec![
                query("floodline_host_nr_dirty_bytes{}", "dirty"),
                query("floodline_host_nr_writeback_bytes{}", "under writeback"),
                query("floodline_host_nr_dirty_background_threshold_bytes{}", "background threshold"),
                query("floodline_host_nr_dirty_threshold_bytes{}", "hard threshold"),
            ],
        ),
        (
            "Dirtied and written back",
            "Bps",
            vec![
                query("rate(floodline_host_nr_dirtied_bytes_total{}[$__rate_interval])", "dirtied"),
                query("rate(floodline_host_nr_written_bytes_total{}[$__rate_interval])", "written back"),
            ],
        ),
        (
            "Dirty data by container",
            "bytes",
            vec![query(
                "topk(10, floodline_cgroup_file_dirty_bytes{} + floodline_cgroup_file_writeback_bytes{})",
                BY_CONTAINER,
            )],
        ),
        (
            "Time lost to I/O by container",
            "percentunit",
            vec![query("topk(10, rate(floodline_cgroup_io_some_seconds_total{}[$__rate_interval]))", BY_CONTAINER)],
        ),
        (
            "Busy time of disks",
            "percentunit",
            vec![query("rate(floodline_disk_io_time_seconds_total{}[$__rate_interval])", "{{device}}")],
        ),
        (
            "Written to disks",
            "Bps",
            vec![query("rate(floodline_disk_written_bytes_total{}[$__rate_interval])", "{{device}}")],
        ),
        (
            "Mean time of a write",
            "s",
            vec![query(
                "rate(floodline_disk_write_time_seconds_total{}[$__rate_interval]) / rate(floodline_disk_writes_total{}[$__rate_interval])",
                "{{device}}",
            )],
        ),
        (
            "Waits for stable storage while traced, 99 %",
            "s",
            vec![query(
                "histogram_quantile(0.99, sum by (le, operation) (rate(floodline_wait_seconds_bucket{}[$__rate_interval])))",
                "{{operation}}",
            )],
        ),
        (
            "Rules that cannot be checked",
            "short",
            vec![query(&format!("{}{{}} > 0", name::RULE_NOT_CHECKED), "{{rule}}: {{cause}}")],
        ),
        (
            "Floodline itself",
            "s",
            vec![
                query(&format!("{}{{}}", name::LOOK_AGE), "age of the last sample"),
                query(&format!("{}{{}}", name::LOOK_GAP_MAX), "longest time between two samples, 10 min"),
                query(
                    &format!("rate({}{{job=~\".*floodline.*\"}}[$__rate_interval])", name::CPU)
                        .replace("{job", "{instance=~\"$instance\", job"),
                    "CPU, cores",
                ),
            ],
        ),
    ]
}

/// The dashboard as one line of JSON.
pub fn dashboard_json() -> Result<String, serde_json::Error> {
    let source = json!({ "type": "prometheus", "uid": "${datasource}" });
    let panel = |(at, (title, unit, queries)): (usize, Panel)| {
        let targets = queries.iter().enumerate().map(|(number, (expression, legend))| {
            let reference = char::from(b'A' + u8::try_from(number).unwrap_or(0)).to_string();
            json!({ "datasource": source, "expr": expression, "legendFormat": legend, "refId": reference })
        });
        json!({
            "id": at + 1,
            "type": "timeseries",
            "title": title,
            "datasource": source,
            "gridPos": { "h": 8, "w": 12, "x": at % 2 * 12, "y": at / 2 * 8 },
            "fieldConfig": { "defaults": { "unit": unit, "min": 0, "custom": { "fillOpacity": 10, "spanNulls": false } }, "overrides": [] },
            "options": {
                "legend": { "displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": [] },
                "tooltip": { "mode": "multi", "sort": "desc" },
            },
            "targets": targets.collect::<Vec<Value>>(),
        })
    };
    let variables = json!([
        { "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "hide": 0 },
        {
            "name": "instance", "label": "Host", "type": "query", "datasource": source, "refresh": 2, "sort": 1, "multi": true,
            "includeAll": true, "current": { "text": "All", "value": "$__all" },
            "query": { "query": format!("label_values({}, instance)", name::LOOKS), "refId": "instances" },
        },
    ]);
    json::line(&json!({
        "uid": "floodline",
        "title": "Floodline: writeback",
        "tags": ["floodline", "storage"],
        "schemaVersion": 39,
        "version": 1,
        "editable": true,
        "refresh": "30s",
        "time": { "from": "now-1h", "to": "now" },
        "templating": { "list": variables },
        "annotations": { "list": [] },
        "panels": panels().into_iter().enumerate().map(panel).collect::<Vec<Value>>(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::catalogue::unknown_names;

    #[test]
    fn panels_name_only_metrics_that_are_exported() {
        let text = dashboard_json().unwrap();
        assert_eq!(unknown_names(&text), Vec::<String>::new());
        assert!(!text.contains("{}") || !text.contains("_bytes{}"), "every query is of the chosen host");
    }

    #[test]
    fn it_can_be_provisioned_without_edits() {
        let dashboard: Value = serde_json::from_str(&dashboard_json().unwrap()).unwrap();
        assert!(dashboard.get("__inputs").is_none(), "file provisioning does not resolve inputs");
        assert_eq!(dashboard["templating"]["list"][0]["type"], "datasource");
        let panels = dashboard["panels"].as_array().unwrap();
        assert!(panels.len() >= 10);
        for (number, panel) in panels.iter().enumerate() {
            assert_eq!(panel["id"], number + 1);
            assert_eq!(panel["datasource"]["uid"], "${datasource}");
            for target in panel["targets"].as_array().unwrap() {
                let query = target["expr"].as_str().unwrap();
                assert!(query.contains("instance=~\"$instance\""), "{query}");
                assert_eq!(query.matches('(').count(), query.matches(')').count(), "{query}");
            }
        }
    }

    /// What Grafana refuses or draws wrong: panels over each other, names used twice, unknown variables and units.
    #[test]
    fn panels_lie_beside_each_other_and_name_what_exists() {
        let text = dashboard_json().unwrap();
        let dashboard: Value = serde_json::from_str(&text).unwrap();
        let of = |value: &Value, key: &str| value["gridPos"][key].as_u64().unwrap();
        let panels = dashboard["panels"].as_array().unwrap();
        for (number, panel) in panels.iter().enumerate() {
            assert!(of(panel, "x") + of(panel, "w") <= 24, "a row has 24 columns");
            for other in &panels[..number] {
                let is_apart = |at: &str, length: &str| {
                    of(panel, at) + of(panel, length) <= of(other, at)
                        || of(other, at) + of(other, length) <= of(panel, at)
                };
                assert!(is_apart("x", "w") || is_apart("y", "h"), "{} covers {}", panel["title"], other["title"]);
                assert_ne!(panel["title"], other["title"]);
            }
            let unit = panel["fieldConfig"]["defaults"]["unit"].as_str().unwrap();
            assert!(["short", "percentunit", "bytes", "Bps", "s"].contains(&unit), "{unit}");
            let references: Vec<&str> =
                panel["targets"].as_array().unwrap().iter().map(|target| target["refId"].as_str().unwrap()).collect();
            let expect = ["A", "B", "C", "D", "E", "F"];
            assert_eq!(Some(references.as_slice()), expect.get(..references.len()), "{}", panel["title"]);
        }
        let variables: Vec<&str> = dashboard["templating"]["list"]
            .as_array()
            .unwrap()
            .iter()
            .map(|variable| variable["name"].as_str().unwrap())
            .collect();
        for used in text.split('$').skip(1) {
            let name: String = used
                .trim_start_matches('{')
                .chars()
                .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
                .collect();
            let is_builtin = ["__rate_interval", "__all"].contains(&name.as_str());
            assert!(is_builtin || variables.contains(&name.as_str()), "${name}");
        }
        assert_eq!((variables, &dashboard["schemaVersion"]), (vec!["datasource", "instance"], &Value::from(39)));
    }
}
