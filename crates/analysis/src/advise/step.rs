// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steps of a plan: the values to write, their undo, and the same as one shell command. Undoing a member of a
//! bytes/ratio pair restores the pair: the member that was in force is written back, which zeroes the other. Commands
//! are for a root shell; values are numbers and fixed words, never text from the host.

use super::knob::{Knob, knob};
use crate::plan::{JOURNALD_DROP_IN, SYSCTL_DROP_IN, removal};
use crate::report::{Step, When};
use floodline_record::window::Window;

/// Writes sysctls now, then a drop-in that keeps them. Knobs that already have their value are left
/// out; names that are no knobs are ignored.
pub fn sysctls(window: &Window, changes: &[(&str, u64)]) -> Vec<Step> {
    let changes: Vec<(&Knob, u64)> = changes
        .iter()
        .filter_map(|(name, value)| knob(name).map(|knob| (knob, knob.clamp(*value))))
        .filter(|(knob, value)| knob.present(window) != Some(*value))
        .collect();
    let mut steps: Vec<Step> = changes.iter().map(|(knob, value)| sysctl(window, knob, *value)).collect();
    if !changes.is_empty() {
        let lines: Vec<String> = changes.iter().map(|(knob, value)| format!("{} = {value}", knob.name)).collect();
        let removal = |(knob, value): &(&Knob, u64)| removal(&format!("{}={value}", knob.name));
        let removals: Vec<String> = changes.iter().map(removal).collect();
        let quoted: Vec<String> = lines.iter().map(|line| format!("'{line}'")).collect();
        steps.push(Step {
            when: When::Keep,
            write: SYSCTL_DROP_IN.to_owned(),
            value: lines.join("\n"),
            // The file may hold lines of an earlier plan.
            undo: format!("sed -i {} {SYSCTL_DROP_IN}", removals.join(" ")),
            command: format!("printf '%s\\n' {} >> {SYSCTL_DROP_IN}", quoted.join(" ")),
        });
    }
    steps
}

fn sysctl(window: &Window, knob: &Knob, value: u64) -> Step {
    Step {
        when: When::Now,
        write: knob.path.to_owned(),
        value: value.to_string(),
        undo: undo(window, knob),
        command: format!("sysctl -w {}={value}", knob.name),
    }
}

fn undo(window: &Window, knob: &Knob) -> String {
    let partner = knob.pair.and_then(super::knob::knob);
    let partner_value = partner.and_then(|partner| partner.present(window));
    match (knob.present(window), partner, partner_value) {
        // The other member was in force: writing it back zeroes this one.
        (Some(0), Some(partner), Some(value)) if value > 0 => format!("sysctl -w {}={value}", partner.name),
        // Neither was: 0 % can be restored only by a change, as writing the value it has does nothing.
        (Some(0), Some(partner), _) => {
            let ratio = if knob.name.ends_with("_ratio") { knob.name } else { partner.name };
            format!("sysctl -w {ratio}=1 && sysctl -w {ratio}=0")
        }
        (Some(value), _, _) => format!("sysctl -w {}={value}", knob.name),
        (None, _, _) => match partner {
            Some(partner) => format!("note the old values first: sysctl {} {}", knob.name, partner.name),
            None => format!("note the old value first: sysctl {}", knob.name),
        },
    }
}

/// Writes a word to a file of a device or bdi below `folder` in sysfs. `None` for a name that no kernel gives one: it
/// would not be safe in a command.
pub fn device_setting(folder: &str, name: &str, file: &str, old: &str, new: &str) -> Option<Step> {
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":-_.".contains(&byte)) {
        return None;
    }
    let path = format!("{folder}/{name}/{file}");
    Some(Step {
        when: When::Now,
        value: new.to_owned(),
        undo: format!("echo {old} > {path}"),
        command: format!("echo {new} > {path}"),
        write: path,
    })
}

/// Makes the kernel hold a bdi to its share only while the machine is over its freerun ceiling.
pub fn no_strict_limit(bdi: &str) -> Option<Step> {
    device_setting("/sys/class/bdi", bdi, "strict_limit", "1", "0")
}

/// Keeps the journal in memory from now on.
pub fn journald_volatile() -> Step {
    Step {
        when: When::Now,
        write: JOURNALD_DROP_IN.to_owned(),
        value: "[Journal]\nStorage=volatile".to_owned(),
        undo: format!("rm {JOURNALD_DROP_IN} && systemctl restart systemd-journald"),
        command: format!(
            "mkdir -p /etc/systemd/journald.conf.d && printf '%s\\n' '[Journal]' 'Storage=volatile' > \
             {JOURNALD_DROP_IN} && systemctl restart systemd-journald"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_testkit::Fixture;

    fn check(settings: (u64, u64, u64, u64), change: (&str, u64), command: &str, undo: &str) {
        let window = Fixture::healthy().settings(settings).one_look().window();
        let steps = sysctls(&window, &[change]);
        let shown = steps.first().map(|step| (step.command.as_str(), step.undo.as_str()));
        assert_eq!(shown, Some((command, undo)));
    }

    #[test]
    fn undoing_a_member_of_a_pair_restores_the_pair() {
        let set = "sysctl -w vm.dirty_background_bytes=33554432";
        check((20, 0, 10, 0), ("vm.dirty_background_bytes", 33_554_432), set, "sysctl -w vm.dirty_background_ratio=10");
        check(
            (0, 104_857_600, 0, 52_428_800),
            ("vm.dirty_ratio", 10),
            "sysctl -w vm.dirty_ratio=10",
            "sysctl -w vm.dirty_bytes=104857600",
        );
        check(
            (20, 0, 0, 1 << 20),
            ("vm.dirty_background_bytes", 33_554_432),
            set,
            "sysctl -w vm.dirty_background_bytes=1048576",
        );
        check(
            (20, 0, 0, 0),
            ("vm.dirty_background_bytes", 33_554_432),
            set,
            "sysctl -w vm.dirty_background_ratio=1 && sysctl -w vm.dirty_background_ratio=0",
        );
    }

    #[test]
    fn what_already_has_its_value_is_left_out() {
        let window = Fixture::healthy().one_look().window();
        assert_eq!(sysctls(&window, &[("vm.dirty_ratio", 20)]), Vec::new());
        let steps = sysctls(&window, &[("vm.dirty_ratio", 20), ("vm.dirty_expire_centisecs", 300)]);
        assert_eq!(steps.len(), 2, "{steps:?}");
    }

    #[test]
    fn an_unknown_old_value_is_not_made_up() {
        let window = Fixture::healthy().host(|_, row| row.laptop_mode = None).one_look().window();
        let steps = sysctls(&window, &[("vm.laptop_mode", 0)]);
        assert_eq!(
            steps.first().map(|step| step.undo.as_str()),
            Some("note the old value first: sysctl vm.laptop_mode")
        );
    }

    #[test]
    fn the_drop_in_repeats_every_change() {
        let window = Fixture::healthy().one_look().window();
        let steps = sysctls(&window, &[("vm.dirty_expire_centisecs", 300), ("vm.dirty_writeback_centisecs", 100)]);
        insta::assert_snapshot!(steps[2].command, @"printf '%s\\n' 'vm.dirty_expire_centisecs = 300' 'vm.dirty_writeback_centisecs = 100' >> /etc/sysctl.d/99-zz-floodline.conf");
    }
}
