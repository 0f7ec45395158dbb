// SPDX-License-Identifier: MIT OR Apache-2.0
//! This program inside a guest of the lab: as its init it builds the machine, runs the workload and
//! records, each with the part of Floodline that does it elsewhere too; as a worker it runs one task.

use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::observe::{Schedule, observe};
use crate::stderr::tell;
use floodline_host::collect::{Collector, raise_descriptor_limit};
use floodline_host::plan::Plan;
use floodline_host::probe::{Probe, probe};
use floodline_host::root::HostRoot;
use floodline_host::trace::{Budget, Tracer};
use floodline_lab::guest::{Guest, power_off};
use floodline_lab::job::{Errand, Job, Shell, Status};
use floodline_lab::workload::{Directed, Director, Place, Stop, Worker, inherit_orphans, worker as run_worker};
use floodline_record::record::{Event, Record, Sink, What};
use floodline_record::recording::{Encoder, Header};
use floodline_record::units::Nanos;
use std::io::{self, BufReader};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

/// How long tasks may take to end after the workload's end: an fsync may have all of memory to write.
const GRACE: Nanos = Nanos(60 * Nanos::SECOND.0);
/// How long the recorder goes on after the workload: what it left dirty is part of the picture.
const AFTER: Duration = Duration::from_secs(1);

/// Whether this process is the init of a guest.
pub(crate) fn is_here() -> bool {
    Guest::is_here()
}

/// Does the job and switches the machine off.
pub(crate) fn run() -> ! {
    match Guest::boot() {
        Ok(guest) => {
            let result = job(&guest);
            guest.end(result)
        }
        Err(error) => {
            // The ports to the host are not open yet, so the error goes to the console.
            tell(format_args!("floodline: the guest cannot start: {error}"));
            power_off()
        }
    }
}

/// Runs one task of the workload, received on standard input.
pub(crate) fn worker() -> Result<Exit, CliError> {
    inherit_orphans();
    match run_worker(BufReader::new(io::stdin()), io::stdout()) {
        Ok(()) => Ok(Exit::Done),
        Err(error) => Err(CliError::usage(format!("only the lab starts a worker: {error}"))),
    }
}

fn job(guest: &Guest) -> Result<(), String> {
    let place = guest.set_up().map_err(|error| error.to_string())?;
    match &guest.job.errand {
        // Tasks that failed are in the recording, and are judged with it.
        Errand::Run => record(guest, &place).map(|_| ()).map_err(|error| error.to_string()),
        Errand::Shell(shell) => look_around(guest, place, shell),
    }
}

/// How the workload ended, in words where not well.
fn outcome(directed: &Directed) -> Result<(), String> {
    match directed.failures.iter().next() {
        Some((task, failure)) => Err(format!("task {task}: {failure}")),
        None => Ok(()),
    }
}

/// Runs the console session, with the workload beside it if requested. The session ends with the machine.
fn look_around(guest: &Guest, place: Place, shell: &Shell) -> Result<(), String> {
    if shell.with_workload {
        let (job, host) = (guest.job.clone(), guest.host.clone());
        std::thread::spawn(move || {
            let directed = direct(&job, &place, &mut drop);
            let how = outcome(&directed).err().map_or("has ended".to_owned(), |cause| format!("failed: {cause}"));
            host.stage(format!("the workload {how}"));
        });
    }
    let code = guest.shell(shell).map_err(|error| error.to_string())?;
    guest.host.tell(&Status::Exited { code });
    Ok(())
}

/// Runs the workload, a process for each of its tasks.
fn direct(job: &Job, place: &Place, take: &mut dyn FnMut(Event)) -> Directed {
    let stop = Stop::new();
    let hire = |_: &_| {
        let mut command = Command::new("/proc/self/exe");
        command.args(["lab", "worker"]);
        Worker::process(command)
    };
    Director { place, hire: &hire, stop: &stop, grace: GRACE }.run(&job.scenario, &job.variant, take)
}

/// Runs the workload on a thread of its own and records until it has ended.
fn record(guest: &Guest, place: &Place) -> Result<Directed, CliError> {
    let interrupt = Interrupt::watch()?;
    let ask = interrupt.asker()?;
    let (events, told) = mpsc::channel();
    let root = HostRoot::live().map_err(CliError::cannot_observe)?;
    raise_descriptor_limit();
    let probed = probe(&root);
    let mut collector = Collector::new(&root, Plan::everything(&probed.facts)).with_later_overlays(&probed.facts);
    if guest.job.trace {
        // Before the workload's clock starts: an emulated guest may take a good part of a minute.
        guest.host.stage("loading the tracer");
        // An emulated CPU is slow, and what is recorded here is to be whole.
        let tracer = Tracer::start(&root, &probed.facts).with_budget(Budget(f64::INFINITY));
        collector = collector.with_tracer(tracer);
    }
    guest.host.stage("preparing the workload");
    std::thread::scope(|scope| {
        let workload = scope.spawn(move || {
            // The recorder ends after the workload.
            let directed = direct(&guest.job, place, &mut |event| {
                if matches!(event.what, What::WorkloadStarted { .. }) {
                    guest.host.tell(&Status::Started);
                }
                drop(events.send(event));
            });
            std::thread::sleep(AFTER);
            ask.ask();
            directed
        });
        observe_into(guest, collector, probed, &interrupt, &told)?;
        workload.join().map_err(|_| CliError::bug("the workload panicked"))
    })
}

fn observe_into(
    guest: &Guest,
    mut collector: Collector<'_>,
    probed: Probe,
    interrupt: &Interrupt,
    told: &mpsc::Receiver<Event>,
) -> Result<(), CliError> {
    let lost = |error| CliError::cannot_observe(format!("the recording cannot be written: {error}"));
    let mut encoder = Encoder::new(&guest.recording, Header::new(Some(guest.job.every))).map_err(lost)?;
    encoder.record(&Record::Facts(Box::new(probed.facts))).map_err(lost)?;
    for gap in probed.gaps {
        encoder.record(&Record::Gap(gap)).map_err(lost)?;
    }
    let schedule = Schedule { length: None, every: Duration::from_nanos(guest.job.every.0) };
    let look = |records: &mut Vec<Record>| {
        collector.collect(records);
        records.extend(told.try_iter().map(Record::Event));
    };
    let mut is_first = true;
    let take = |record: &Record| {
        encoder.record(record).map_err(lost)?;
        if matches!(record, Record::Sample(_)) && std::mem::take(&mut is_first) {
            guest.host.tell(&Status::Sampled);
        }
        Ok(())
    };
    observe(schedule, interrupt, look, take)?;
    let mut last = Vec::new();
    collector.collect(&mut last);
    last.extend(told.try_iter().map(Record::Event));
    for record in &last {
        encoder.record(record).map_err(lost)?;
    }
    encoder.finish().map(drop).map_err(lost)
}
