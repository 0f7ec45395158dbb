// SPDX-License-Identifier: MIT OR Apache-2.0
//! What most hosts of the lists have, written once: version 2 of cgroups, the ratios of an unconfigured kernel, and four
//! seconds before the workload counts. A host that leaves such a key out has the usual value.

/// Keys of a scenario and their usual values.
const USUAL: [(&str, &str); 3] = [
    ("machine.cgroup_mode", r#""v2""#),
    ("machine.sysctl.vm", "{ dirty_ratio = 20, dirty_background_ratio = 10 }"),
    ("workload.settle", r#""4s""#),
];

/// The scenario of a host, one key on a line, with the usual values of the keys that it leaves out.
pub(super) fn with_usual(scenario: &str) -> String {
    let mut text = scenario.trim().to_owned();
    for (key, value) in USUAL {
        let is_it = |line: &str| line.strip_prefix(key).is_some_and(|rest| rest.starts_with([' ', '.']));
        if !scenario.lines().any(is_it) {
            text.push_str(&format!("\n{key} = {value}"));
        }
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_the_usual_value_of_each_key_that_it_leaves_out() {
        let check = |scenario: &str, added: &[&str]| {
            let told = with_usual(scenario);
            let (text, rest) = told.split_at(scenario.trim().len());
            assert_eq!(text, scenario.trim());
            assert_eq!(rest.split_terminator('\n').skip(1).collect::<Vec<_>>(), added, "{scenario}");
        };
        let [mode, vm, settle] = USUAL.map(|(key, value)| format!("{key} = {value}"));
        check("\nmachine.cpus = 2\n", &[&mode, &vm, &settle]);
        check("machine.cgroup_mode = \"v1\"", &[&vm, &settle]);
        check("machine.sysctl.vm.dirty_ratio = 5\nworkload.settle = \"6s\"", &[&mode]);
        check("workload.settled = 1\nmachine.sysctl.vm = { dirty_bytes = 1 }", &[&mode, &settle]);
    }
}
