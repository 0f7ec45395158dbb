// SPDX-License-Identifier: MIT OR Apache-2.0
//! The only way for a test to end without checking anything. A skipped test prints one line on standard error, which
//! the test harness does not capture, and appends the line to the file that `FLOODLINE_SKIPPED` names. `make test`
//! prints that file at its end. `FLOODLINE_REQUIRE_ALL=1` turns every skip into a failure, the switch of a
//! [`Need`] only those of its kind. Only tests depend on this crate.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::panic::Location;
use std::path::Path;

/// What a skipped test needs of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The right to attach BPF programs, and a mounted tracefs.
    Trace,
    /// Virtual machines, kernel packages and a program for the guest.
    Vm,
    /// The measured data that `FLOODLINE_REFERENCE_DATA` names.
    Data,
    /// Root, or a namespace or loop device that only root can make.
    Root,
}

impl Need {
    /// Every kind.
    pub const ALL: [Need; 4] = [Need::Trace, Need::Vm, Need::Data, Need::Root];

    /// Returns the environment variable that turns skips of this kind into failures when it is `1`.
    pub fn switch(self) -> &'static str {
        match self {
            Need::Trace => "FLOODLINE_REQUIRE_TRACE",
            Need::Vm => "FLOODLINE_REQUIRE_VM",
            Need::Data => "FLOODLINE_REQUIRE_DATA",
            Need::Root => "FLOODLINE_REQUIRE_ROOT",
        }
    }

    /// Returns the switch that is set and turns skips of this kind into failures.
    pub fn required_by(self) -> Option<&'static str> {
        let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| value == "1");
        ["FLOODLINE_REQUIRE_ALL", self.switch()].into_iter().find(is_set)
    }
}

/// Reports that the calling test cannot run here. The test returns afterwards.
///
/// # Panics
/// If `FLOODLINE_REQUIRE_ALL` or the switch of this kind is `1`, or the file in `FLOODLINE_SKIPPED` cannot be written.
#[track_caller]
pub fn skip(need: Need, reason: impl Display) {
    let line = line(&reason.to_string());
    if let Some(switch) = need.required_by() {
        panic!("{line}: failed because {switch}=1");
    }
    // Past the harness, which hides what passing tests print.
    let _ = writeln!(io::stderr(), "{line}");
    if let Some(file) = std::env::var_os("FLOODLINE_SKIPPED") {
        append(Path::new(&file), &line).unwrap_or_else(|error| panic!("{}: {error}", Path::new(&file).display()));
    }
}

#[track_caller]
fn line(reason: &str) -> String {
    let thread = std::thread::current();
    let place = Location::caller();
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("skipped: {} ({}:{}): {reason}", thread.name().unwrap_or("a test"), place.file(), place.line())
}

/// Tests of several programs write to the same file: one write per line.
fn append(file: &Path, line: &str) -> io::Result<()> {
    OpenOptions::new().create(true).append(true).open(file)?.write_all(format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use std::process::Command;

    /// Skips when the test below runs it in a process with an environment of its own.
    #[test]
    fn skips_if_asked() {
        if std::env::var_os("FLOODLINE_SKIP_ASKED").is_some() {
            skip(Need::Trace, "two\nlines");
        }
    }

    fn run(environment: &[(&str, &str)]) -> (bool, String) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "tests::skips_if_asked"]).env_clear().env("FLOODLINE_SKIP_ASKED", "1");
        let output = command.envs(environment.iter().copied()).output().unwrap();
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        (output.status.success(), said)
    }

    #[test]
    fn a_skip_is_shown_and_counted_or_fails() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("skipped");
        let (passes, said) = run(&[("FLOODLINE_SKIPPED", file.to_str().unwrap()), ("FLOODLINE_REQUIRE_VM", "1")]);
        let shown = "skipped: tests::skips_if_asked (crates/skip/src/lib.rs:";
        assert!(passes && said.contains(shown) && said.contains("): two lines\n"), "{said}");
        assert!(std::fs::read_to_string(&file).unwrap().starts_with(shown));
        for switch in ["FLOODLINE_REQUIRE_ALL", Need::Trace.switch()] {
            let (passes, said) = run(&[(switch, "1")]);
            assert!(!passes && said.contains(&format!("failed because {switch}=1")), "{said}");
            assert!(run(&[(switch, "0")]).0, "only 1 sets a switch");
        }
    }
}
