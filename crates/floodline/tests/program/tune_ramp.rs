// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes with a ramp, on folders that imitate a host: made step by step, and put back as a whole if a step does not hold
//! or the program dies between two steps.

use crate::tune::{Imitated, NEW, kill, old};

/// A plan of two steps.
fn plan(host: &Imitated, watch_s: f64, at_risk: f64) -> String {
    let text = format!(
        r#"{{"schema":"floodline.plan/1","fingerprint":{{"hostname":"db1","kernel":"6.12.0","boot_id":"boot-1",
        "mem_total_bytes":16777216}},"changes":[{{"knob":"vm.dirty_background_bytes","old":"0","new":"67108864"}},
        {{"knob":"vm.dirty_bytes","old":"0","new":"268435456"}}],"rules":[],"evidence":[],"expected":[],
        "arithmetic_only":null,"longest_pause_s":0.2,"endpoint":"stall_seconds_per_hour","boot":[],
        "ramp":{{"why":"Several steps: vm.dirty_bytes changes by a factor of 8.","steps":[
        {{"set":["vm.dirty_background_bytes=134217728","vm.dirty_bytes=536870912"],"watch_s":{watch_s},
          "go_on_if":[{{"figure":"io_some_share","unit":"share","at_most":0.2}},
                      {{"figure":"host.unwritten_peak_bytes","unit":"bytes","at_most":{at_risk}}}]}},
        {{"set":["vm.dirty_background_bytes=67108864","vm.dirty_bytes=268435456"],"watch_s":{watch_s},"go_on_if":[]}}]}}}}"#
    );
    let path = host.path("plan.json");
    std::fs::write(&path, text).expect("a file");
    path.to_str().expect("UTF-8").to_owned()
}

const HALFWAY: [&str; 4] = ["536870912", "0", "134217728", "0"];

#[test]
fn a_change_with_a_ramp_is_made_in_its_steps() {
    let host = Imitated::new();
    let plan = plan(&host, 1.0, 1e7);
    let shown = host.run(&["apply", &plan, "--dry-run"]);
    let at = |text: &str| shown.stdout.find(text).unwrap_or_else(|| panic!("{text}: {shown}"));
    let told = [
        "  Ramp step 1 of 2\n    write 134217728 to /proc/sys/vm/dirty_background_bytes\n",
        "    write 536870912 to /proc/sys/vm/dirty_bytes\n    Watch for",
        "  Ramp step 2 of 2\n    write 67108864 to /proc/sys/vm/dirty_background_bytes\n",
        "    write 268435456 to /proc/sys/vm/dirty_bytes\n    Then floodline confirm keeps the change.\n",
    ];
    assert!(told.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{shown}");
    assert!(shown.stdout.contains("Watch for 1.00 s. Go on if tasks wait for I/O"), "{shown}");
    assert_eq!(host.values(), old());
    let run = host.run(&["apply", &plan, "--yes"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stderr.contains("step 1 of 2: ") && run.stderr.contains("step 2 of 2: "), "{run}");
    assert_eq!(host.values(), NEW);
    let journal = host.read("var/lib/floodline/journal/0001.journal");
    let at = |text: &str| journal.find(&format!("\"set\":\"{text}\"")).expect(text);
    let order = [
        "vm.dirty_background_bytes=134217728",
        "vm.dirty_bytes=536870912",
        "vm.dirty_background_bytes=67108864",
        "vm.dirty_bytes=268435456",
    ];
    assert!(order.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{journal}");
    assert_eq!(host.run(&["rollback"]).code, 0);
    assert_eq!(host.values(), old());
}

#[test]
fn a_step_that_does_not_hold_puts_the_old_values_back() {
    let host = Imitated::new();
    host.write("proc/vmstat", "nr_free_pages 1000\nnr_dirty 512\nnr_writeback 0\nnr_dirty_threshold 200000\nnr_dirty_background_threshold 100000");
    let run = host.run(&["apply", &plan(&host, 1.0, 1e6), "--yes"]);
    assert_eq!(run.code, 4, "{run}");
    assert!(
        run.stderr.contains("after step 1 of 2, 2.00 MiB were at risk within 1.00 s; the plan allows 977 KiB"),
        "{run}"
    );
    assert!(run.stderr.contains("do not repeat the change") && !run.stderr.contains("add --at-once"), "{run}");
    let history = host.run(&["history"]).stdout;
    assert!(history.contains("a bound of the plan did not hold after a step"), "{history}");
    assert_eq!(host.values(), old());
    host.until("the guard ends", || host.guards().is_empty());

    let run = host.run(&["apply", &plan(&host, 1.0, 1e6), "--yes", "--at-once"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(host.values(), NEW);
}

#[test]
fn a_value_that_another_program_changes_between_two_steps_stays_and_the_others_go_back() {
    let host = Imitated::new();
    let plan = plan(&host, 5.0, 1e7);
    let run = std::thread::scope(|scope| {
        let applier = scope.spawn(|| host.run(&["apply", &plan, "--yes"]));
        host.until("the first step is made", || host.values() == HALFWAY);
        // The value is read back once more after it is written.
        std::thread::sleep(std::time::Duration::from_secs(1));
        host.write("proc/sys/vm/dirty_bytes", "444444672");
        applier.join().expect("it ends")
    });
    assert_eq!(run.code, 4, "{run}");
    assert!(run.stderr.contains("vm.dirty_bytes=536870912 became vm.dirty_bytes=444444672"), "{run}");
    assert!(run.stderr.contains("has the value of another program, which is left"), "{run}");
    let before = old();
    assert_eq!(host.values(), ["444444672", "0", before[2], before[3]]);
    assert!(host.run(&["history"]).stdout.contains("another program changed a value between two steps"));
}

#[test]
fn a_ramp_from_another_value_than_the_present_one_is_refused() {
    let host = Imitated::new();
    let path = plan(&host, 1.0, 1e7);
    let text = std::fs::read_to_string(&path).expect("a plan");
    let from = |in_force: &str| {
        let made = text.replace(
            r#"{"knob":"vm.dirty_bytes","old":"0","#,
            &format!(r#"{{"knob":"vm.dirty_bytes","old":"0","in_force":"{in_force}","#),
        );
        std::fs::write(&path, made).expect("a file");
    };
    from("vm.dirty_ratio=99");
    let run = host.run(&["apply", &path, "--dry-run"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("now, the plan was made at vm.dirty_ratio=99"), "{run}");
    assert!(run.stderr.contains("advise") && run.stderr.contains("--at-once"), "{run}");
    assert_eq!(host.run(&["apply", &path, "--dry-run", "--at-once"]).code, 0);
    from(&format!("vm.dirty_ratio={}", old()[1]));
    assert_eq!(host.run(&["apply", &path, "--dry-run"]).code, 0);
}

#[test]
fn a_program_that_dies_between_two_steps_leaves_the_old_values() {
    let host = Imitated::new();
    let plan = plan(&host, 600.0, 1e7);
    let mut applier = host.spawn(&["apply", &plan, "--yes"]);
    host.until("the first step is made", || host.values() == HALFWAY);
    kill(i32::try_from(applier.id()).expect("a process id"));
    let _ = applier.wait();
    host.until("the guard ends", || host.guards().is_empty());
    assert_eq!(host.values(), old());
    assert!(host.run(&["history"]).stdout.contains("put back"), "the journal has it");
}
