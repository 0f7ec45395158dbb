// SPDX-License-Identifier: MIT OR Apache-2.0
//! The capability report for a terminal and as one line of JSON: what is missing first, with what cannot
//! be said without it.

use crate::layout::hanging;
use floodline_record::capability::{Capabilities, Capability, State};
use std::fmt::Write;

/// For people.
pub fn render(report: &Capabilities, width: usize) -> String {
    let mut out = String::new();
    let kernel = if report.kernel_release.is_empty() { "unknown kernel" } else { &report.kernel_release };
    let _ = writeln!(out, "Sources on {kernel}");
    list(&mut out, &report.sources, width);
    out.push('\n');
    hanging(&mut out, "", "What this kernel offers to a tracer", width);
    list(&mut out, &report.tracing, width);
    out
}

fn list(out: &mut String, capabilities: &[Capability], width: usize) {
    for (state, word) in [(State::Missing, "missing"), (State::Partial, "partial")] {
        for one in capabilities.iter().filter(|one| one.state == state) {
            hanging(out, &format!("  {word}  "), &one.name, width);
            for reason in &one.reasons {
                hanging(out, "           ", reason, width);
            }
            hanging(out, "           ", &format!("lost: {}", one.lost_without), width);
        }
    }
    for (state, word) in
        [(State::NotUsed, "not used, because another source has the same"), (State::Available, "complete")]
    {
        let names: Vec<&str> =
            capabilities.iter().filter(|one| one.state == state).map(|one| one.name.as_str()).collect();
        if !names.is_empty() {
            hanging(out, "  ", &format!("{word}: {}", names.join(", ")), width);
        }
    }
}

/// One line of JSON, ended by a newline.
pub fn json(report: &Capabilities) -> Result<String, serde_json::Error> {
    crate::json::line(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::capability::{SCHEMA, of_sources};
    use floodline_record::gap::{Cause, Gap, Source};

    fn report() -> Capabilities {
        let gap = Gap::new(Source::DebugWbStats, Cause::NotMounted { fs_type: "debugfs".into() });
        Capabilities {
            schema: SCHEMA,
            kernel_release: "6.12.43".into(),
            sources: of_sources(&[gap], &[Source::CgroupV1Blkio]),
            tracing: Vec::new(),
        }
    }

    #[test]
    fn what_is_missing_stands_first_with_its_reason_and_price() {
        let text = render(&report(), 80);
        let start = "Sources on 6.12.43\n  missing  /sys/kernel/debug/bdi/NAME/wb_stats\n           \
                     debugfs is not mounted\n           lost: the kernel's own threshold per cgroup and device\n  \
                     not used, because another source has the same: /sys/fs/cgroup/blkio\n  complete: ";
        assert!(text.starts_with(start), "{text}");
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    }

    #[test]
    fn the_json_form_is_the_published_one() {
        let value: serde_json::Value = serde_json::from_str(&json(&report()).unwrap()).unwrap();
        assert_eq!(value["schema"], "floodline.capabilities/1");
        assert_eq!(value["sources"].as_array().unwrap().len(), Source::ALL.len());
        let states: Vec<_> = value["sources"].as_array().unwrap().iter().map(|one| one["state"].as_str()).collect();
        assert!(states.contains(&Some("missing")) && states.contains(&Some("not_used")));
    }
}
