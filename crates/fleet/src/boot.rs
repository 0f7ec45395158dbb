// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of the next boot: lines of files compared with the values in force. A change that takes a reboot also
//! applies these values, wanted or not.

use crate::change::{Change, PAIRS};
use floodline_analysis::at_boot::line_in_force;
use floodline_record::facts::{HostFacts, SysctlLine};
use floodline_record::sample::HostRow;

/// Effect of a boot on the settings.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Boot {
    /// Settings that differ from those in force once the host has booted, as the change has it.
    pub(crate) settings: Vec<(&'static str, u64)>,
    /// The same for people; `None` where files and kernel agree.
    pub(crate) text: Option<String>,
}

/// Compares the files that are read at boot with the settings in force, and with those of the change.
pub(crate) fn boot(facts: &HostFacts, row: &HostRow, change: &Change) -> Boot {
    let mut boot = Boot::default();
    let mut told = Vec::new();
    for pair in PAIRS {
        let last = line_in_force(&facts.sysctl_lines, pair[0]).and_then(|line| {
            let name = pair.into_iter().find(|name| line.key.as_str() == *name)?;
            Some((name, line.value.trim().parse::<u64>().ok().filter(|value| *value > 0)?, line))
        });
        let Some((name, value, line)) = last else { continue };
        let asked = change.as_if.settings.iter().rev().find(|(name, _)| pair.contains(name));
        let running = in_force(row, pair);
        match asked {
            Some(asked) if *asked != (name, value) => told.push(format!(
                "{} sets {name} = {value} at boot, which undoes {} = {}: change it there",
                place(line),
                asked.0,
                asked.1
            )),
            None if running.is_some_and(|running| running != (name, value)) && change.reboots() => {
                boot.settings.push((name, value));
                let now = running.map(|(name, value)| format!("{name} = {value}")).unwrap_or_default();
                told.push(format!("{} sets {name} = {value} at boot; in force now is {now}", place(line)));
            }
            _ => {}
        }
    }
    boot.text = (!told.is_empty()).then(|| told.join("; "));
    boot
}

fn place(line: &SysctlLine) -> String {
    format!("{} line {}", line.file, line.line)
}

/// The one of a pair that is in force.
fn in_force(row: &HostRow, pair: [&'static str; 2]) -> Option<(&'static str, u64)> {
    let (ratio, bytes) = match pair[0] {
        "vm.dirty_ratio" => (row.dirty_ratio, row.dirty_bytes),
        _ => (row.dirty_background_ratio, row.dirty_background_bytes),
    };
    match bytes.map(|bytes| bytes.0) {
        Some(bytes) if bytes > 0 => Some((pair[1], bytes)),
        _ => ratio.map(|percent| (pair[0], percent.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::units::{Bytes, Percent};

    fn facts(lines: &[(&str, &str)]) -> HostFacts {
        let line = |(at, (key, value)): (usize, &(&str, &str))| SysctlLine {
            file: "/etc/sysctl.d/90.conf".into(),
            line: at as u32 + 1,
            key: (*key).into(),
            value: (*value).into(),
        };
        HostFacts { sysctl_lines: lines.iter().enumerate().map(line).collect(), ..HostFacts::default() }
    }

    fn row() -> HostRow {
        HostRow { dirty_ratio: Some(Percent(10)), dirty_bytes: Some(Bytes(0)), ..HostRow::default() }
    }

    #[test]
    fn a_reboot_brings_the_values_of_files_and_the_last_line_wins() {
        let change = Change::parse::<&str>(&[], Some("6.12"), None, None).unwrap();
        let two = facts(&[("vm.dirty_ratio", "20"), ("vm.dirty_bytes", "104857600")]);
        let found = boot(&two, &row(), &change);
        assert_eq!(found.settings, [("vm.dirty_bytes", 104_857_600)]);
        assert!(found.text.as_deref().is_some_and(|text| text.contains("90.conf line 2") && text.contains("= 10")));
        assert_eq!(boot(&facts(&[("vm.dirty_ratio", "10")]), &row(), &change), Boot::default());
        assert_eq!(boot(&facts(&[("vm.dirty_ratio", "ten")]), &row(), &change), Boot::default());
        // The kernel refuses a page, so the line before it decides.
        let refused = facts(&[("vm.dirty_ratio", "20"), ("vm.dirty_bytes", "4096")]);
        assert_eq!(boot(&refused, &row(), &change).settings, [("vm.dirty_ratio", 20)]);
    }

    #[test]
    fn a_file_that_undoes_the_change_is_named() {
        let change = Change::parse(&["vm.dirty_ratio=5"], None, None, None).unwrap();
        let found = boot(&facts(&[("vm.dirty_bytes", "104857600")]), &row(), &change);
        assert!(found.settings.is_empty());
        assert!(found.text.as_deref().is_some_and(|text| text.contains("undoes vm.dirty_ratio = 5")), "{found:?}");
        assert_eq!(boot(&facts(&[("vm.dirty_ratio", "5")]), &row(), &change), Boot::default());
    }
}
