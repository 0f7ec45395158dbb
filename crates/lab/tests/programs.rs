// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real programs as tasks, on this machine: scripts that end, their exit codes and last words, what their children write.
//! Workers are threads of this process. Packages and users are those of a guest and are tested there.

use floodline_lab::workload::{Directed, Director, Place, Stop, Worker, worker};
use floodline_record::record::{Event, What};
use floodline_record::units::Nanos;
use floodline_scenario::{Scenario, ScenarioFile, figures};
use std::io::BufReader;
use std::os::unix::net::UnixStream;
use tempfile::TempDir;

/// A scenario of which one task is a program, `DIR` being a temporary directory on a disk.
fn scenario(dir: &TempDir, workload: &str, program: &str) -> Scenario {
    let text = format!(
        "name = \"test\"\nsummary = \"a test\"\n[machine]\nmemory = \"1 GiB\"\n[workload]\n{workload}\n\
         [workload.tasks.t.program]\n{program}\n"
    );
    let text = text.replace("DIR", dir.path().to_str().expect("UTF-8"));
    let file = ScenarioFile::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    file.variants["default"].clone()
}

fn folder() -> TempDir {
    // Memory counts no bytes as dirtied; the build directory is on a disk.
    tempfile::Builder::new().prefix("programs").tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory")
}

fn direct(scenario: &Scenario) -> (Directed, Vec<Event>) {
    let hire = |_: &_| {
        let (ours, theirs) = UnixStream::pair()?;
        let their_output = theirs.try_clone()?;
        std::thread::spawn(move || worker(BufReader::new(theirs), their_output));
        let (input, output) = (Box::new(ours.try_clone()?), Box::new(BufReader::new(ours)));
        Ok(Worker { input, output, process: None })
    };
    let (place, stop) = (Place::default(), Stop::new());
    let director = Director { place: &place, hire: &hire, stop: &stop, grace: Nanos(5 * Nanos::SECOND.0) };
    let mut events = Vec::new();
    let directed = director.run(scenario, "default", &mut |event| events.push(event));
    (directed, events)
}

fn failure(workload: &str, program: &str) -> Option<String> {
    let (directed, _) = direct(&scenario(&folder(), workload, program));
    directed.failures.into_values().next()
}

#[test]
fn a_script_that_ends_as_expected_is_the_end_of_its_task() {
    let dir = folder();
    let script = "echo $i $j ${GREETING} > DIR/said; exit 7";
    let program = &format!("script = '{script}'\nexit_code = 7\nenv.GREETING = 'hello'");
    let (directed, events) = direct(&scenario(&dir, "", program));
    assert_eq!(directed.failures.into_values().next(), None);
    assert_eq!(std::fs::read_to_string(dir.path().join("said")).expect("it ran"), "0 0 hello\n");
    let found = figures(&events);
    assert!((0.0..5.0).contains(&found["t.finished_seconds"].value), "{found:?}");
    let started = events.iter().find(|event| matches!(event.what, What::TaskStarted { .. })).expect("it started");
    assert!(directed.started.is_some_and(|start| started.at >= start), "it began with the workload");
}

#[test]
fn another_end_than_the_expected_is_a_failure_with_its_last_words() {
    let check = |program: &str, says: &str| {
        let failure = failure("duration = \"1s\"", program).unwrap_or_else(|| panic!("no failure: {program}"));
        assert!(failure.contains(says), "{failure}");
    };
    check(
        "script = 'echo one; echo two >&2; false; echo three'\nexit_code = 0",
        "dash ended by itself with exit code 1, expected 0; its last words: one; two",
    );
    check("script = 'kill -9 $$'\nexit_code = 9", "dash was killed by signal 9, expected 9; it printed nothing");
    check("script = 'sleep 60'\nexit_code = 0", "dash still ran when the workload was over");
    check("script = 'exit 0'", "dash ended by itself with exit code 0; it printed nothing");
    check("package = \"none\"\ncommand = [\"no-such-program\"]\nexit_code = 0", "exec no-such-program: No such file");
    check("script = 'exit 0'\nexit_code = 0\nuser = \"no-such-user\"", "/etc/passwd has no user no-such-user");
}

#[test]
fn bytes_of_children_count_for_their_program_whether_they_have_ended_or_not() {
    let dir = folder();
    // 3 MiB by a child that was reaped, 2 MiB by a grandchild, 5 MiB by a child that still runs. A server counts from the
    // start of the clock, which is soon after its own.
    let script = "sleep 1\n\
                  dd if=/dev/zero of=DIR/a bs=1M count=3 status=none\n\
                  dash -c 'dd if=/dev/zero of=DIR/b bs=1M count=2 status=none'\n\
                  dd if=/dev/zero bs=1M count=5 status=none | { cat > DIR/c; exec sleep 60; }";
    let program = format!("script = \"\"\"\n{script}\n\"\"\"");
    let (directed, events) = direct(&scenario(&dir, "duration = \"4s\"", &program));
    assert_eq!(directed.failures.into_values().next(), None);
    let dirtied = events.iter().find_map(|event| match &event.what {
        What::TaskIo { io, .. } => io.write_bytes,
        _ => None,
    });
    assert_eq!(dirtied.expect("counted") >> 20, 10, "{dirtied:?}");
}
