// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line as a person meets it: help, errors, exit codes. One snapshot holds standard
//! output, standard error and the exit code.

use crate::harness::floodline;

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
