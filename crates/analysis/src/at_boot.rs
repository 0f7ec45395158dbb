// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which line of the files of `sysctl.d` decides a setting after boot. The kernel refuses a value out of range, and a member of a
//! bytes/ratio pair zeroes the other one.

use crate::advise::knob::knob;
use crate::plan::is_one_setting;
use floodline_record::facts::SysctlLine;

/// The member of a pair of which a write of the value that it has does nothing. A write of `vm.dirty_background_ratio` always zeroes the
/// bytes.
const NOTHING_IF_SAME: &str = "vm.dirty_ratio";

/// Returns the line that leaves a setting in force, or the other member of its pair. `lines` are in the order in which they are applied.
pub fn line_in_force<'a>(lines: &'a [SysctlLine], name: &str) -> Option<&'a SysctlLine> {
    let mut last: Option<&SysctlLine> = None;
    for line in lines.iter().filter(|line| is_one_setting(&line.key, name)) {
        let value = line.value.trim().parse::<u64>().ok();
        let is_taken =
            knob(&line.key).is_none_or(|knob| value.is_some_and(|value| (knob.min..=knob.max).contains(&value)));
        // The other member has zeroed it.
        let has_it =
            value == Some(0) && line.key.as_str() == NOTHING_IF_SAME && last.is_some_and(|last| last.key != line.key);
        if is_taken && !has_it {
            last = Some(line);
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line that decides `vm.dirty_bytes`, or the background where lines are about that one.
    fn check(lines: &[(&str, &str)], name: &str, decides: Option<u32>) {
        let line = |(line, (key, value)): (u32, &(&str, &str))| SysctlLine {
            file: "/etc/sysctl.d/1.conf".into(),
            line,
            key: (*key).into(),
            value: (*value).into(),
        };
        let lines: Vec<SysctlLine> = (1..).zip(lines).map(line).collect();
        assert_eq!(line_in_force(&lines, name).map(|line| line.line), decides, "{lines:?}");
    }

    #[test]
    fn the_line_that_leaves_a_member_of_a_pair_in_force_decides() {
        let (bytes, ratio) = ("vm.dirty_bytes", "vm.dirty_ratio");
        check(&[(bytes, "33554432"), (ratio, "20")], bytes, Some(2));
        check(&[(ratio, "20"), (bytes, "33554432")], ratio, Some(2));
        check(&[(ratio, "20"), (bytes, "0")], bytes, Some(1));
        check(&[(ratio, "20"), (bytes, "4096")], bytes, Some(1));
        check(&[(bytes, "33554432"), (ratio, "0")], ratio, Some(1));
        check(&[(ratio, "20"), (ratio, "0")], ratio, Some(2));
        check(&[(ratio, "101"), (ratio, "many")], ratio, None);
        let (bytes, ratio) = ("vm.dirty_background_bytes", "vm.dirty_background_ratio");
        check(&[(bytes, "33554432"), (ratio, "0")], bytes, Some(2));
        check(&[("vm.dirty_expire_centisecs", "500"), ("vm.laptop_mode", "5")], "vm.laptop_mode", Some(2));
    }
}
