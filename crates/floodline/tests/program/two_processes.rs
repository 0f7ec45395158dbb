// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline serve` on this machine: one process loads BPF programs, the other parses what containers can write.

use crate::harness::command;
use crate::trace::{may_trace, programs_of};
use floodline_record::gap::Source;
use floodline_record::record::{Record, What};
use floodline_record::recording::Decoder;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Bits of `CapEff` in `/proc/PID/status`.
const SYS_PTRACE: u64 = 1 << 19;
const LOADS_PROGRAMS: u64 = 1 << 21 | 1 << 38 | 1 << 39;

fn status(pid: u32, name: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
}

fn capabilities(pid: u32) -> u64 {
    u64::from_str_radix(&status(pid, "CapEff:").expect("it runs"), 16).expect("a mask")
}

fn children(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn is_there(pid: u32) -> bool {
    status(pid, "State:").is_some_and(|state| !state.starts_with('Z'))
}

fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn serve(ring: &Path, every: &str) -> Child {
    let ring = ring.to_str().expect("UTF-8");
    let args = ["serve", "--listen", "none", "--every", every, "--trace", "on", "--ring", ring];
    command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
}

fn end(mut child: Child) -> i32 {
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM)
        .expect("it runs");
    child.wait().expect("it ends").code().unwrap_or(-1)
}

fn files(ring: &Path) -> impl Iterator<Item = Vec<u8>> {
    let files = std::fs::read_dir(ring).expect("a folder").flatten().map(|entry| entry.path());
    let recordings = files.filter(|path| path.extension().is_some_and(|extension| extension == "flr"));
    recordings.filter_map(|path| std::fs::read(path).ok())
}

fn records(ring: &Path) -> Vec<Record> {
    let decoded = files(ring).filter_map(|file| Decoder::new(&*file).ok()?.collect::<Result<Vec<_>, _>>().ok());
    decoded.flatten().collect()
}

fn is_start(record: &Record) -> bool {
    matches!(record, Record::Event(event) if matches!(event.what, What::TraceStarted { .. }))
}

/// Whether the trace has started. The last record of a recording that goes on may be a part of one.
fn has_started(ring: &Path) -> bool {
    files(ring).any(|file| {
        Decoder::new(&*file).is_ok_and(|records| records.map_while(Result::ok).any(|record| is_start(&record)))
    })
}

#[test]
fn what_parses_cannot_load_and_what_loads_cannot_look_into_processes() {
    if !may_trace() {
        return;
    }
    let ring = tempfile::tempdir().expect("a folder");
    let observer = serve(ring.path(), "200ms");
    wait("a process loads the programs", || children(observer.id()).iter().any(|pid| !programs_of(*pid).is_empty()));
    let loader = *children(observer.id()).first().expect("a child");
    assert!(programs_of(observer.id()).is_empty(), "the observing process holds none");
    assert_eq!(capabilities(observer.id()) & LOADS_PROGRAMS, 0);
    assert_eq!(capabilities(loader) & SYS_PTRACE, 0);
    wait("the trace starts", || has_started(ring.path()));
    // Without the loader everything else goes on.
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(loader.cast_signed()).expect("a process"),
        rustix::process::Signal::KILL,
    )
    .expect("it runs");
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(end(observer), 0);
    let records = records(ring.path());
    assert_eq!(records.iter().filter(|record| is_start(record)).count(), 1);
    let is_lost = |record: &&Record| {
        matches!(record, Record::Gap(gap) if gap.source == Source::TraceBytes
            && gap.cause.to_string().contains("the tracer's process ended"))
    };
    let lost = records.iter().position(|record| is_lost(&record)).expect("the loss is a gap");
    let after = records.iter().skip(lost).filter(|record| matches!(record, Record::Sample(_))).count();
    assert!(after > 2, "{after} samples after the loss");
    assert_eq!(records.iter().filter(is_lost).count(), 1, "it is told once");
}

#[test]
fn the_loader_ends_with_the_process_that_it_serves() {
    if !may_trace() {
        return;
    }
    let ring = tempfile::tempdir().expect("a folder");
    let mut observer = serve(ring.path(), "200ms");
    wait("a process loads the programs", || children(observer.id()).iter().any(|pid| !programs_of(*pid).is_empty()));
    let loader = *children(observer.id()).first().expect("a child");
    observer.kill().expect("it runs");
    observer.wait().expect("it ends");
    wait("the loader ends too", || !is_there(loader));
}
