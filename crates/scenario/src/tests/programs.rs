// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real programs as tasks: what is filled in, and what is refused.

use super::*;

#[test]
fn a_real_program_has_the_numbers_of_its_copy_and_a_package_that_can_be_one() {
    let text = |package: &str, ready: &str| {
        format!(
            "{HEAD}{MACHINE}[machine.cgroups.\"box{{i}}\"]\ninstances = 2\n[workload]\nduration = \"10s\"\n\
             [workload.tasks.s]\ncgroup = \"box{{i}}\"\nprogram.package = \"{package}\"\n\
             program.command = [\"server\", \"--name=s{{i}}\"]\nprogram.ready = \"{ready}\"\n\
             program.files.\"/etc/s{{i}}.conf\" = \"n={{i}} {{}}\"\n"
        )
    };
    let file = parsed(&text("redis-server", "/run/s{i}.sock"));
    let copies = file.variants["default"].task_copies();
    let program = copies[1].program.as_ref().unwrap();
    assert_eq!(program.command, ["server", "--name=s1"]);
    assert_eq!(program.ready.as_deref(), Some("/run/s1.sock"));
    assert_eq!(program.files["/etc/s1.conf"], "n=1 {}");
    for package in ["", "--help", "a b", "x=1"] {
        let problems = problems(&text(package, "/run/s"));
        assert!(problems.len() == 1 && problems[0].contains("is not the name of a package"), "{problems:?}");
    }
    let problems = problems(&text("bash", "run/s"));
    assert!(problems.len() == 1 && problems[0].contains("\"run/s\" is not an absolute path"), "{problems:?}");
}

#[test]
fn a_client_of_journald_names_facility_and_priority() {
    let text = |keys: &str| {
        with_step(&format!(
            "{{ syslog = {{ socket = \"/run/s\", messages = \"5/s\", message = \"100 B\", count = 3{keys} }} }}"
        ))
    };
    let check = |keys: &str, expect: u8| {
        let file = parsed(&text(keys));
        let again = parsed(&file.variants["default"].to_toml().unwrap());
        let copies = again.variants["default"].task_copies();
        let Step::Syslog(step) = &copies[0].steps[0] else { panic!("{copies:?}") };
        assert_eq!(step.pri(), expect, "{keys}");
    };
    check("", 13);
    check(", priority = \"crit\"", 10);
    check(", facility = \"kern\", priority = \"emerg\"", 0);
    check(", facility = \"local7\", priority = \"debug\"", 191);
    let problems = problems(&text(", priority = \"critical\""));
    assert!(problems.len() == 1 && problems[0].contains("unknown word \"critical\""), "{problems:?}");
}
