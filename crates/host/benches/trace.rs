// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cost of the tracer for a traced task, side by side with no tracer, with an empty program where ours does most, and with
//! bpftrace adding up the same on the same tracepoints. In every round each of them watches the same writes, and ratios
//! are medians of rounds. CPU time of the writing thread, in which the programs run, rather
//! than wall time (so no harness: they measure the wall). Needs a machine that may be traced and a filesystem on a disk
//! below
//! `target`; says why where it has none. `cargo bench -p floodline-host --bench trace [-- ROUNDS [WHAT]]`.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "the figures are the result")]

use floodline_host::plan::{Needs, Plan};
use floodline_host::trace::Tracer;
use floodline_host::{Collector, HostRoot};
use floodline_record::record::Record;
use libbpf_rs::{Link, Object, ObjectBuilder};
use rustix::time::{ClockId, clock_gettime};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const PAGE: u64 = 4 << 10;
const MIB: u64 = 1 << 20;

fn main() {
    // Cargo passes `--bench`, and `--test` when it only wants to see that it runs.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let rounds = std::env::args().find_map(|arg| arg.parse().ok()).unwrap_or(15);
    let root = HostRoot::live().unwrap();
    let machine = Machine { facts: floodline_host::probe(&root).facts, root };
    let tracer = machine.tracer();
    if tracer.parts().count() < 2 {
        println!("nothing can be traced here: {:?}", tracer.gaps());
        return;
    }
    drop(tracer);
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-') && arg.parse::<usize>().is_err());
    let is_wanted = |name: &str| wanted.as_ref().is_none_or(|wanted| name.contains(wanted.as_str()));
    if is_wanted("start-up") {
        machine.starting(rounds);
    }
    for writes in [RANDOM, AGAIN, SEQUENTIAL].into_iter().filter(|writes| is_wanted(writes.name)) {
        machine.compare(writes, folder.path(), rounds);
    }
    if is_wanted("small files") {
        machine.small_files(folder.path());
    }
}

/// Tracer that is attached during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watcher {
    Nobody,
    Empty,
    Floodline,
    Bpftrace,
}

const WATCHERS: [Watcher; 4] = [Watcher::Nobody, Watcher::Empty, Watcher::Floodline, Watcher::Bpftrace];

/// Writes of one kind into a file that is in the page cache and clean.
#[derive(Clone, Copy)]
struct Writes {
    name: &'static str,
    /// Bytes of the file.
    size: u64,
    /// Bytes of one write, and of those that filled the file: folios are no larger.
    block: u64,
    /// From one block to the next, in blocks; without a common divisor with their number.
    stride: u64,
    /// Whether all has been made dirty already when it is measured.
    is_dirty: bool,
    /// At most so much of the CPU time without a tracer.
    target: f64,
}

/// Every write makes a page dirty: nothing a program does can give the tracer more to do for each write.
const RANDOM: Writes = Writes {
    name: "4 KiB random, each makes a page dirty",
    size: 64 * MIB,
    block: PAGE,
    stride: 20_011,
    is_dirty: false,
    target: 1.03,
};
const SEQUENTIAL: Writes =
    Writes { name: "1 MiB sequential", size: 128 * MIB, block: MIB, stride: 1, is_dirty: false, target: 1.01 };
/// A database that overwrites its cache: the same pages again before they were written back.
const AGAIN: Writes = Writes { name: "4 KiB random, dirty already", is_dirty: true, ..RANDOM };

impl Writes {
    fn fill(&self, path: &Path) -> File {
        let _ = fs::remove_file(path);
        let file = File::create(path).unwrap();
        let block = vec![1; self.block as usize];
        for at in (0..self.size).step_by(self.block as usize) {
            file.write_all_at(&block, at).unwrap();
        }
        file.sync_all().unwrap();
        file
    }

    /// Writes every block once; nanoseconds of CPU for one write.
    fn run(&self, file: &File, block: &[u8]) -> f64 {
        let blocks = self.size / self.block;
        let write = || {
            for number in 0..blocks {
                file.write_all_at(block, number * self.stride % blocks * self.block).unwrap();
            }
        };
        if self.is_dirty {
            write();
        }
        let before = thread_ns();
        write();
        let spent = thread_ns() - before;
        file.sync_data().unwrap();
        spent / blocks as f64
    }
}

/// This machine.
struct Machine {
    root: HostRoot,
    facts: floodline_record::facts::HostFacts,
}

impl Machine {
    fn tracer(&self) -> Tracer {
        Tracer::start(&self.root, &self.facts)
    }

    fn collector(&self, tracer: Option<Tracer>) -> Collector<'_> {
        let collector = Collector::new(&self.root, Plan::for_needs(&self.facts, Needs::ALL));
        match tracer {
            Some(tracer) => collector.with_tracer(tracer),
            None => collector,
        }
    }

    fn starting(&self, rounds: usize) {
        let (mut ours, mut cpu, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds.min(9) {
            let (before, busy) = (Instant::now(), thread_ns());
            let tracer = self.tracer();
            ours.push(before.elapsed().as_secs_f64());
            cpu.push((thread_ns() - busy) / 1e9);
            drop(tracer);
            let before = Instant::now();
            if let Some(bpftrace) = Bpftrace::start() {
                theirs.push(before.elapsed().as_secs_f64());
                drop(bpftrace);
            }
        }
        let (ours, cpu) = (median(&mut ours), median(&mut cpu));
        print!("start-up: floodline {ours:.3} s (at most 0.2), of that {cpu:.3} s of CPU");
        match theirs.is_empty() {
            true => println!(", bpftrace cannot be run here"),
            false => println!(", bpftrace {:.3} s", median(&mut theirs)),
        }
    }

    fn compare(&self, writes: Writes, folder: &Path, rounds: usize) {
        let file = writes.fill(&folder.join("file"));
        let block = vec![2; writes.block as usize];
        let mut spent: [Vec<f64>; WATCHERS.len()] = Default::default();
        for round in 0..rounds {
            for turn in 0..WATCHERS.len() {
                let watcher = (turn + round) % WATCHERS.len();
                if let Some(ns) = self.watched(WATCHERS[watcher], || writes.run(&file, &block)) {
                    spent[watcher].push(ns);
                }
            }
        }
        let ns = median(&mut spent[0].clone());
        println!("{}: {ns:.0} ns of CPU for one write; medians and quartiles of {rounds} rounds", writes.name);
        let [_, empty, ours, theirs] = [0, 1, 2, 3].map(|watcher| Ratio::of(&spent[watcher], &spent[0]));
        if let Some(empty) = empty {
            println!("  an empty program ÷ nobody {empty}");
        }
        let Some(ours) = ours else { return };
        println!("  floodline ÷ nobody {ours} (at most {})", writes.target);
        if let Some(theirs) = theirs {
            let added = (ours.median - 1.0) / (theirs.median - 1.0);
            println!("  bpftrace ÷ nobody {theirs}: floodline adds {added:.2} of that (at most 0.33)");
        }
    }

    /// Runs a workload under a tracer, after one run to warm up. Returns the shortest time of nine runs: the host of a
    /// virtual machine only ever adds time.
    fn watched(&self, watcher: Watcher, run: impl Fn() -> f64) -> Option<f64> {
        let (mut bpftrace, mut empty) = (None, None);
        match watcher {
            Watcher::Bpftrace => bpftrace = Some(Bpftrace::start()?),
            Watcher::Empty => empty = Some(attach_empty()?),
            Watcher::Nobody | Watcher::Floodline => {}
        }
        let mut collector = self.collector((watcher == Watcher::Floodline).then(|| self.tracer()));
        let mut records = Vec::new();
        collector.collect(&mut records);
        run();
        let results = [0; 9].map(|_| {
            collector.collect(&mut records);
            run()
        });
        drop((bpftrace, empty));
        Some(least(&results))
    }

    /// 100,000 files created, written and removed while a recorder takes a sample every second.
    fn small_files(&self, folder: &Path) {
        const FILES: u32 = 100_000;
        let create_and_remove = || {
            let before = thread_ns();
            for number in 0..FILES {
                let path = folder.join(format!("small-{}", number % 1000));
                let file = File::create(&path).unwrap();
                file.write_all_at(&[3; 4096], 0).unwrap();
                if number % 1000 == 999 {
                    (0..1000).for_each(|number| fs::remove_file(folder.join(format!("small-{number}"))).unwrap());
                }
            }
            thread_ns() - before
        };
        println!("{FILES} small files created and removed, a sample every second");
        for (name, tracer) in [("files only", None), ("with tracer", Some(self.tracer()))] {
            let one = self.recorded(tracer, create_and_remove);
            println!(
                "  {name}: workload {:.2} s of CPU, recorder {:.2} % of a core, {} events dropped",
                one.workload_ns / 1e9,
                one.recorder_ns / one.wall_ns * 100.0,
                one.dropped,
            );
        }
    }

    fn recorded(&self, tracer: Option<Tracer>, workload: impl Fn() -> f64 + Sync) -> Recorded {
        let mut collector = self.collector(tracer);
        let mut records = Vec::new();
        collector.collect(&mut records);
        collector.collect(&mut records);
        records.clear();
        let (begin, ended) = (Instant::now(), AtomicBool::new(false));
        let before = thread_ns();
        let workload_ns = std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let spent = workload();
                ended.store(true, Ordering::Relaxed);
                spent
            });
            let mut next = begin + Duration::from_secs(1);
            while !ended.load(Ordering::Relaxed) {
                std::thread::sleep(next.saturating_duration_since(Instant::now()).min(Duration::from_millis(50)));
                if Instant::now() >= next {
                    collector.collect(&mut records);
                    next += Duration::from_secs(1);
                }
            }
            collector.collect(&mut records);
            worker.join().unwrap()
        });
        let recorder_ns = thread_ns() - before;
        let dropped = records.iter().map(|record| match record {
            Record::Gap(gap) if gap.detail.as_deref() == Some("events") => gap.times as f64,
            _ => 0.0,
        });
        Recorded { workload_ns, recorder_ns, wall_ns: begin.elapsed().as_nanos() as f64, dropped: dropped.sum() }
    }
}

struct Recorded {
    workload_ns: f64,
    recorder_ns: f64,
    wall_ns: f64,
    dropped: f64,
}

/// What one watcher's rounds took over those of another. Within a round the machine is the same for both.
struct Ratio {
    lower_quartile: f64,
    median: f64,
    upper_quartile: f64,
    /// Of each one's calmest round.
    calmest: f64,
}

impl Ratio {
    fn of(some: &[f64], others: &[f64]) -> Option<Ratio> {
        let mut ratios: Vec<f64> = some.iter().zip(others).map(|(one, other)| one / other).collect();
        ratios.sort_by(f64::total_cmp);
        let at = |quarters: usize| ratios.get(ratios.len() * quarters / 4).copied();
        let calmest = least(some) / least(others);
        Some(Ratio { lower_quartile: at(1)?, median: at(2)?, upper_quartile: at(3)?, calmest })
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Ratio { lower_quartile, median, upper_quartile, calmest } = self;
        write!(f, "{median:.3} [{lower_quartile:.3}, {upper_quartile:.3}], calmest {calmest:.3}")
    }
}

/// A program that does nothing where folios become dirty, until it is dropped; `None` where that has another name.
fn attach_empty() -> Option<(Object, Link)> {
    let object = ObjectBuilder::default().open_memory(EMPTY).ok()?.load().ok()?;
    let link = object.progs_mut().next()?.attach().ok()?;
    Some((object, link))
}

const EMPTY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/empty.bpf.o"));

/// Ended when dropped.
struct Bpftrace(Child);

/// What the tracer adds up, as far as the language can say it: sizes of folios and what was dirty before, it
/// cannot.
const PROGRAM: &str = r#"
BEGIN { printf("ready\n"); }
tracepoint:writeback:writeback_dirty_folio {
    @dirtied[pid, cgroup, args->ino] = sum(4096); @comm[pid] = comm;
}
tracepoint:block:block_bio_queue { @queued[args->dev, cgroup, comm] = sum(args->nr_sector * 512); }
tracepoint:writeback:balance_dirty_pages {
    @paused[tid, args->cgroup_ino] = sum(args->pause); @longest[tid] = max(args->pause);
}
tracepoint:writeback:writeback_start { @started[tid] = nsecs; @allowed[tid] = args->nr_pages; }
tracepoint:writeback:writeback_written /@started[tid]/ {
    @busy[args->reason] = sum(nsecs - @started[tid]); @pages[args->reason] = sum(@allowed[tid] - args->nr_pages);
    delete(@started[tid]); delete(@allowed[tid]);
}
tracepoint:syscalls:sys_enter_fsync, tracepoint:syscalls:sys_enter_fdatasync { @waits[tid] = nsecs; }
tracepoint:syscalls:sys_exit_fsync, tracepoint:syscalls:sys_exit_fdatasync /@waits[tid]/ {
    @waited[pid] = sum(nsecs - @waits[tid]); delete(@waits[tid]);
}
"#;

impl Bpftrace {
    /// Starts bpftrace and waits until it reports that it is attached. Returns `None` if it cannot be run. It needs
    /// tracefs: the mount is in a namespace of its own.
    fn start() -> Option<Bpftrace> {
        const IN_ITS_OWN: &str = "mount -t tracefs tracefs /sys/kernel/tracing; \
            mount -t debugfs debugfs /sys/kernel/debug; exec bpftrace -e \"$1\"";
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", IN_ITS_OWN, "bpftrace", PROGRAM]);
        let command = command.env("BPFTRACE_MAP_KEYS_MAX", "16384");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let lines = BufReader::new(child.stdout.take()?).lines();
        let is_ready = lines.map_while(Result::ok).any(|line| line == "ready");
        let bpftrace = Bpftrace(child);
        is_ready.then_some(bpftrace)
    }
}

impl Drop for Bpftrace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn thread_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
