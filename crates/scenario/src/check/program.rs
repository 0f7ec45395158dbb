// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong with a real program of a scenario.

use super::{Complaints, wrong_with_path};
use crate::{RealProgram, Scenario};

/// Longest script, bytes: the kernel takes arguments of 128 KiB.
const SCRIPT_MAX: usize = 100 << 10;

pub(super) fn check(scenario: &Scenario, task: &str, program: &RealProgram, complaints: &mut Complaints) {
    let here = ["workload", "tasks", task, "program"];
    let at = |key: &'static str| [&here[..], &[key]].concat();
    match (&program.script, program.command.first()) {
        (Some(_), Some(_)) => complaints.add(&here, "command and script are two ways to say what runs: give one"),
        (None, None) => complaints.hint(&here, "no program to run", "give it a command or a script"),
        (None, Some(name)) if name.is_empty() => complaints.add(&at("command"), "no program to run"),
        (None, Some(_)) if program.all_packages().next().is_none() => {
            complaints.hint(&here, "no package has the program", "write package = \"redis-server\"");
        }
        _ => {}
    }
    for (key, name) in program
        .package
        .iter()
        .map(|name| ("package", name))
        .chain(program.packages.iter().map(|name| ("packages", name)))
    {
        if !is_package(name) {
            complaints.hint(&at(key), format!("{name:?} is not the name of a package"), "write \"redis-server\"");
        }
    }
    if program.script.as_ref().is_some_and(|script| script.trim().is_empty()) {
        complaints.add(&at("script"), "the script is empty");
    }
    if program.script.as_ref().is_some_and(|script| script.len() > SCRIPT_MAX) {
        complaints.add(&at("script"), format!("a script has at most {SCRIPT_MAX} bytes"));
    }
    let texts = program
        .script
        .iter()
        .map(|script| ("script", script))
        .chain(program.command.iter().map(|word| ("command", word)));
    for (key, _) in
        texts.chain(program.env.values().map(|value| ("env", value))).filter(|(_, text)| text.contains('\0'))
    {
        complaints.add(&at(key), "it holds a zero byte");
    }
    for name in program.env.keys().filter(|name| !is_variable(name)) {
        complaints.hint(
            &at("env"),
            format!("{name:?} is not the name of an environment variable"),
            "write letters, digits and underscores",
        );
    }
    if let Some(user) = program.user.as_ref().filter(|user| !is_user(user)) {
        complaints.hint(&at("user"), format!("{user:?} is not the name of a user"), "write \"postgres\"");
    }
    for path in program.files.keys().chain(&program.ready) {
        if let Some(why) = wrong_with_path(path) {
            complaints.add(&here, format!("{path:?} {why}"));
        }
    }
    if program.exit_code.is_some() && program.ready.is_some() {
        complaints.hint(
            &at("ready"),
            "a program with an exit_code starts with the workload, which does not wait for it",
            "leave ready out",
        );
    }
    if program.exit_code.is_none() && scenario.workload.duration.is_none() {
        complaints.lack(
            &["workload", "tasks", task],
            "a real program runs until the workload's duration is over, which is not given",
            "give the workload a duration, or a program that ends by itself its exit_code",
            &["workload", "duration"],
        );
    }
}

/// Whether a text is a name as Debian's policy has them: it is given to apt, which reads more than names.
fn is_package(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (2..=100).contains(&name.len())
        && name.bytes().next().is_some_and(is_letter)
        && name.bytes().last().is_some_and(|byte| is_letter(byte) || byte == b'+')
        && name.bytes().all(|byte| is_letter(byte) || b"+-.".contains(&byte))
}

fn is_variable(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    name.len() <= 100
        && name.bytes().next().is_some_and(is_letter)
        && name.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}

/// Whether a text is the name of a user as `adduser` takes it: it becomes a line of a file.
fn is_user(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    (1..=32).contains(&name.len())
        && name.bytes().next().is_some_and(is_letter)
        && name.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit() || byte == b'-')
}
