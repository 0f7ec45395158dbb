// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line as a person meets it: help, errors, exit codes. One snapshot holds standard
//! output, standard error and the exit code.

use crate::harness::{command, floodline, outcome};
use std::fs::File;

#[test]
fn no_arguments_print_help_and_fail_as_usage() {
    let run = floodline(&[]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("Usage: floodline"), "{}", run.stderr);
}

#[test]
fn help_succeeds_and_names_the_exit_codes() {
    let run = floodline(&["--help"]);
    assert_eq!(run.code, 0);
    assert!(run.stdout.contains("Exit codes:"), "{}", run.stdout);
}

#[test]
fn help_that_cannot_be_printed_fails() {
    let full = File::options().write(true).open("/dev/full").expect("it opens");
    let run = outcome(command(&["--help"]).stdout(full).output().expect("it runs"));
    assert_eq!(run.code, 3);
    assert!(run.stderr.contains("cannot write standard output: No space left on device"), "{run}");
}

#[test]
fn a_negative_length_of_time_is_judged_as_one() {
    for args in [["record", "--for", "-1s"], ["lab", "shell", "--timeout=-1s"], ["simulate", "--every", "-500ms"]] {
        let run = floodline(&args);
        assert_eq!(run.code, 2);
        assert!(run.stderr.contains("invalid duration \"-"), "{run}");
    }
}

#[test]
fn a_typo_is_answered_with_the_command_that_was_meant() {
    let run = floodline(&["completion"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("completions"), "{}", run.stderr);
}

#[test]
fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = floodline(&["completions", shell]);
        assert_eq!(run.code, 0, "{shell}");
        assert!(run.stdout.contains("floodline"), "{shell}");
    }
}
