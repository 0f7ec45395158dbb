// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU time of one warmed-up sample, by the size of the machine. CPU time rather than wall time,
//! as that is what watching costs its host, and it does not depend on what else runs (so no harness:
//! they measure the wall). The trees are made up and in memory: this measures our side and the system
//! calls, not the kernel's work to print its counters. `live` measures both, on this machine.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "the figures are the result")]

#[expect(dead_code, reason = "the tests also take things away")]
#[path = "../tests/machine/tree/mod.rs"]
mod tree;

use floodline_host::collect::{Collector, raise_descriptor_limit};
use floodline_host::plan::{Needs, Plan};
use floodline_host::root::HostRoot;
use floodline_record::facts::HostFacts;
use floodline_record::record::{Record, Sink};
use floodline_record::recording::{Encoder, Header};
use floodline_record::units::Nanos;
use rustix::time::{ClockId, clock_gettime};
use std::path::PathBuf;
use tree::HostTree;

const SAMPLES: usize = 100;

fn main() {
    // Cargo passes `--bench`, and `--test` when it only wants to see that it runs.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    raise_descriptor_limit();
    println!("CPU of one sample in ms: least, median, most of {SAMPLES}");
    // The target: at most 10 ms for 500 cgroups and 2000 processes, linear up to 5000 cgroups.
    for cgroups in [100, 500, 1000, 2000, 5000] {
        let tree = HostTree::sized(cgroups, 2000);
        let root = HostRoot::at(tree.path()).unwrap();
        measure(&format!("{cgroups} cgroups, 2000 processes"), &root, |_| ());
        between("  the same, between two reads of memory.stat", &root);
        let [memory, pressure] = ["memory.stat", "io.pressure"].map(|name| Activity::of(&tree, name));
        measure("  the same, every fifth cgroup active", &root, |number| memory.change(number));
        let stat = std::fs::read_to_string(tree.at("proc/stat")).unwrap();
        tree.write("proc/stat", stat.replace("procs_blocked 0", "procs_blocked 1"));
        measure("  and a task blocked in each of them", &root, |number| {
            memory.change(number);
            pressure.change(number);
        });
    }
    measure("live", &HostRoot::live().unwrap(), |_| ());
    for cgroups in [50, 500, 5000] {
        let tree = HostTree::sized(cgroups, 0);
        let root = HostRoot::at(tree.path()).unwrap();
        snapshot(&format!("snapshot of {cgroups} cgroups"), &root, |_| HostTree::facts());
    }
    snapshot("snapshot, live", &HostRoot::live().unwrap(), |found| found);
}

/// Everything that `floodline snapshot` does: probing, one look with nothing open yet, and the bytes of the file.
fn snapshot(what: &str, root: &HostRoot, taken: impl Fn(HostFacts) -> HostFacts) {
    let mut bytes = 0;
    let mut spent: Vec<f64> = (0..SAMPLES)
        .map(|_| {
            let before = cpu_ms();
            let facts = taken(floodline_host::probe(root).facts);
            let mut collector = Collector::new(root, Plan::for_needs(&facts, Needs::BUDGET));
            let mut out = vec![Record::Facts(Box::new(facts))];
            collector.collect(&mut out);
            let mut encoder = Encoder::new(Vec::new(), Header::new(None)).unwrap();
            out.iter().for_each(|record| encoder.record(record).unwrap());
            bytes = encoder.finish().unwrap().len();
            cpu_ms() - before
        })
        .collect();
    spent.sort_by(f64::total_cmp);
    let at = |index: usize| spent.get(index).copied().unwrap_or(f64::NAN);
    println!("{what:36} {:8.2} {:8.2} {:8.2} {bytes:8} bytes", at(0), at(SAMPLES / 2), at(SAMPLES - 1));
}

/// A file of every fifth cgroup of a tree, the top among them, whose first number grows.
struct Activity {
    files: Vec<(PathBuf, String, String)>,
}

impl Activity {
    fn of(tree: &HostTree, name: &str) -> Activity {
        let mut dirs = vec![tree.at("sys/fs/cgroup")];
        let mut files = Vec::new();
        while let Some(dir) = dirs.pop() {
            let entries = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
            dirs.extend(entries.filter(|path| path.is_dir()));
            let file = dir.join(name);
            let text = std::fs::read_to_string(&file).unwrap();
            let at = text.find("total=").map_or_else(|| text.find(' ').unwrap() + 1, |at| at + "total=".len());
            let (before, after) = text.split_at(at);
            files.push((file, before.to_owned(), after.to_owned()));
        }
        files.sort();
        Activity { files: files.into_iter().step_by(5).collect() }
    }

    fn change(&self, number: usize) {
        for (file, before, after) in &self.files {
            std::fs::write(file, format!("{before}{number}{after}")).unwrap();
        }
    }
}

/// A sample that reads the files for which the kernel adds up counters.
fn measure(what: &str, root: &HostRoot, happens: impl FnMut(usize)) {
    measure_planned(what, root, Plan::for_needs(&HostTree::facts(), Needs::ALL), happens);
}

/// A sample that does not read them.
fn between(what: &str, root: &HostRoot) {
    let plan = Plan::for_needs(&HostTree::facts(), Needs::ALL);
    measure_planned(what, root, Plan { stat_every: Nanos(u64::MAX), ..plan }, |_| ());
}

fn measure_planned(what: &str, root: &HostRoot, plan: Plan, mut happens: impl FnMut(usize)) {
    let mut collector = Collector::new(root, plan);
    let mut out: Vec<Record> = Vec::new();
    let mut spent: Vec<f64> = (0..SAMPLES + 2)
        .map(|number| {
            out.clear();
            happens(number);
            let before = cpu_ms();
            collector.collect(&mut out);
            cpu_ms() - before
        })
        .skip(2)
        .collect();
    spent.sort_by(f64::total_cmp);
    let at = |index: usize| spent.get(index).copied().unwrap_or(f64::NAN);
    println!("{what:36} {:8.2} {:8.2} {:8.2}", at(0), at(SAMPLES / 2), at(SAMPLES - 1));
}

fn cpu_ms() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}
