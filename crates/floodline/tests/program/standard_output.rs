// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings to standard output: to a pipe with everything else on standard error, never to a terminal.

use crate::harness::{captured, command};
use crate::simulate::{SMALL, scenario};
use floodline_record::recording::Decoder;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use std::process::Stdio;

/// Every command that writes a recording writes it to `-`: what it says besides is on standard error.
fn check(args: &[&str], says: &str) {
    let run = command(args).output().expect("the program starts");
    let stderr = String::from_utf8(run.stderr).expect("text");
    assert_eq!(run.status.code(), Some(0), "{args:?}: {stderr}");
    assert!(stderr.contains(says), "{args:?} without {says:?}: {stderr}");
    let decoder = Decoder::new(&run.stdout[..]).expect("a recording and nothing else");
    assert!(decoder.filter(|record| record.as_ref().is_ok()).count() > 1, "{args:?}");

    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).and_then(|()| unlockpt(&terminal)).expect("it is ours");
    let stdout = ioctl_tiocgptpeer(&terminal, OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("its other side");
    let run = command(args).stdout(stdout).stderr(Stdio::piped()).output().expect("the program starts");
    let stderr = String::from_utf8(run.stderr).expect("text");
    assert_eq!(run.status.code(), Some(2), "{args:?}: {stderr}");
    assert!(stderr.contains("refusing to write binary data to a terminal"), "{args:?}: {stderr}");
    assert!(stderr.contains("hint: name a file, or pipe the output to a program"), "{args:?}: {stderr}");
}

#[test]
fn a_minus_is_standard_output_for_every_command_that_records() {
    let (tree, small) = (captured("6.12"), scenario(SMALL));
    check(&["record", "--root", &tree, "--for", "0s", "-o", "-"], "recorded 1 sample to standard output");
    check(&["doctor", "--root", &tree, "--save", "-"], "one sample");
    check(&["simulate", small.as_str(), "--variant", "remedy", "--save", "-"], "As the scenario expects.");
    let json = ["simulate", small.as_str(), "--variant", "remedy", "--format", "json", "--save", "-"];
    check(&json, "\"recording\":null");
    assert!(!std::path::Path::new("-").exists(), "a file of that name was made");
}
