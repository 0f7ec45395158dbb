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
