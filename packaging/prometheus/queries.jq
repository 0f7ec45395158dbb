# SPDX-License-Identifier: MIT OR Apache-2.0
# The queries of a dashboard as recording rules, so that promtool can judge them.
[.panels[].targets[].expr | gsub("\\$instance"; ".*") | gsub("\\$__rate_interval"; "5m")]
| to_entries
| {groups: [{name: "dashboard", rules: map({record: "query\(.key)", expr: .value})}]}
