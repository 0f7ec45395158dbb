// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the program ends when the machine gives it no more: memory, room in a file, a reader.

use crate::harness::{captured, command, floodline, outcome, recording};
use crate::simulate::{SMALL, scenario};
use floodline_testkit::Fixture;
use std::fs::File;
use std::process::{Command, Stdio};

/// The program under limits of a shell.
fn limited(limit: &str, args: &[&str]) -> Command {
    let mut shell = Command::new("/bin/sh");
    let script = format!("{limit} && exec \"$0\" \"$@\"");
    shell.env_clear().args(["-c", &script, env!("CARGO_BIN_EXE_floodline")]).args(args);
    shell
}

#[test]
fn without_memory_it_ends_with_a_code_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("large.toml");
    let mount = |at: u32| format!("\"/m{at}\" = {{ fs = \"ext4\", device = \"d\" }}\n");
    std::fs::write(&path, format!("name = \"x\"\n[machine.mounts]\n{}", (0..20_000).map(mount).collect::<String>()))
        .expect("a file");
    // As much address space as the program needs to start, and what a scenario needs that is nearly too long.
    let run = |kib: u32, args: &[&str]| {
        outcome(limited(&format!("ulimit -v {kib}"), args).output().expect("the shell starts"))
    };
    let least =
        (10..1000).map(|step| step * 4096).find(|kib| run(*kib, &["explain"]).code == 0).expect("enough to start");
    // Room for the stack: where it cannot grow, the kernel sends SIGSEGV.
    for more in [12_288, 16_384, 20_480] {
        let run = run(least + more, &["scenario", "check", path.to_str().expect("UTF-8")]);
        assert_eq!(run.code, 71, "{more}: {run}");
        assert!(run.stderr.starts_with("floodline: out of memory: cannot get "), "{more}: {run}");
    }
}

#[test]
fn a_result_that_meets_a_size_limit_is_a_failed_write() {
    let file = recording(&Fixture::healthy().seconds(30));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("host.jsonl");
    let out = File::create(folder.path().join("out")).expect("a file");
    // Blocks of 512 bytes.
    let to_file = ["export", file.as_str(), "--format", "jsonl", "-o", path.to_str().expect("UTF-8")];
    let to_stdout = ["export", file.as_str(), "--format", "jsonl"];
    let of_file = limited("ulimit -f 4", &to_file).output().expect("the shell starts");
    let of_stdout = limited("ulimit -f 4", &to_stdout)
        .stdout(out)
        .stderr(Stdio::piped())
        .spawn()
        .and_then(|child| child.wait_with_output())
        .expect("the shell starts");
    for run in [outcome(of_file), outcome(of_stdout)] {
        assert_eq!(run.code, 3, "{run}");
        assert!(run.stderr.contains("File too large"), "{run}");
    }
}

#[test]
fn every_command_tells_of_a_full_disk_and_of_no_reader_alike() {
    let (file, small, tree) = (recording(&Fixture::healthy().seconds(4)), scenario(SMALL), captured("6.12"));
    let commands = [
        &["doctor", file.as_str()][..],
        &["doctor", "--root", &tree, "--format", "json"],
        &["replay", file.as_str()],
        &["budget", "--root", &tree],
        &["export", file.as_str(), "--format", "csv", "--table", "host"],
        &["compare", file.as_str(), file.as_str()],
        &["explain"],
        &["completions", "bash"],
        &["scenario", "check", small.as_str()],
        &["simulate", small.as_str(), "--variant", "remedy"],
        &["record", "--root", &tree, "--for", "0s", "-o", "-"],
    ];
    for args in commands {
        let full = File::options().write(true).open("/dev/full").expect("it opens");
        let run = outcome(command(args).stdout(full).output().expect("it runs"));
        assert_eq!(run.code, 3, "{args:?}: {run}");
        assert!(run.stderr.contains("cannot write standard output: No space left on device"), "{args:?}: {run}");

        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let run = outcome(command(args).stdout(writer).output().expect("it runs"));
        assert_eq!(run.code, 0, "{args:?}: {run}");
        assert!(!run.stderr.contains("error") && !run.stderr.contains("bug"), "{args:?}: {run}");
    }
}

#[test]
fn standard_error_that_cannot_be_written_changes_nothing() {
    let tree = captured("6.12");
    let full = || File::options().write(true).open("/dev/full").expect("it opens");
    let run = |args: &[&str]| outcome(command(args).stderr(full()).output().expect("it runs"));
    assert_eq!(run(&["record", "--root", &tree, "--for", "0s", "-o", "/dev/null"]).code, 0);
    assert_eq!(run(&["replay", "/nowhere.flr"]).code, 2);
    assert_eq!(run(&["nonsense"]).code, 2);
}

#[test]
fn the_help_and_the_documentation_say_the_same_codes() {
    let help = floodline(&["--help"]).stdout;
    let mut codes: Vec<String> = Vec::new();
    for line in help.lines().skip_while(|line| *line != "Exit codes:").skip(1).take_while(|line| !line.is_empty()) {
        match (line.strip_prefix("      "), codes.last_mut()) {
            // A meaning goes on below its number.
            (Some(more), Some(last)) => *last = format!("{last} {more}"),
            _ => codes.push(line.to_owned()),
        }
    }
    let docs = include_str!("../../../../docs/exit-codes.md");
    let rows: Vec<&str> = docs.lines().filter_map(|line| line.strip_prefix("| ")).skip(2).collect();
    assert_eq!(rows.len(), codes.len(), "{rows:#?}\n{codes:#?}");
    for (row, code) in rows.iter().zip(codes) {
        let (number, meaning) = code.trim().split_once("  ").expect("a number and its meaning");
        assert!(row.starts_with(&format!("{number} | {}", meaning.trim())), "{row:?} against {code:?}");
    }
}
