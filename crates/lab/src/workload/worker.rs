// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process of one task copy. Hears what to do, prepares, says that it is ready, runs, and tells what
//! it measured. A real program is a child of its worker: it inherits the cgroup, and is told to end.

use super::clock::{later, now, until};
use super::error::{Failure, StepError};
use super::meeting::Meeting;
use super::process::{counters, events, growth, name};
use super::runner::{Prepared, Run, perform, prepare};
use super::stop::Stop;
use super::wire::{Order, Said, Wish, hear, say};
use floodline_record::record::{Event, TaskIo, What};
use floodline_record::units::Nanos;
use floodline_scenario::{RealProgram, TaskCopy};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a real program may take to be ready.
const READY_WAIT: Nanos = Nanos(60 * Nanos::SECOND.0);
/// How long a real program may take to end after it was told to.
const END_WAIT: Nanos = Nanos(10 * Nanos::SECOND.0);

/// Where real programs are looked for.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs one task for a director, which is at the other end of the two streams. Returns when the task is
/// over, or the director gone.
pub fn worker(from: impl BufRead + Send, to: impl Write + Send) -> io::Result<()> {
    let mut from = from;
    let Some(Order::Prepare { task, place }) = hear(&mut from)? else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the first word of a director is a task"));
    };
    // So that whoever looks at processes sees tasks. The kernel keeps 15 bytes.
    if let Ok(name) = CString::new(task.task.as_bytes()) {
        let _ = rustix::thread::set_name(&name);
    }
    let stop = Stop::new();
    let line = Line { to: Mutex::new(Box::new(to)), asks: Mutex::new((0, BTreeMap::new())) };
    let (begin, begun) = channel();
    std::thread::scope(|scope| {
        // Ends with the director's side of the stream, which a director closes once it has heard the end.
        scope.spawn(|| listen(from, begin, &line, &stop));
        let run = Run { task: &task, place: &place, meeting: &line, stop: &stop, since: Nanos(0) };
        let failure = one_task(&run, &line, &begun)?;
        line.say(&Said::Ended { failure: failure.map(|failure| failure.to_string()) })
    })
}

/// When to run.
struct Begin {
    start: Nanos,
    since: Nanos,
}

fn one_task(run: &Run<'_>, line: &Line<'_>, begun: &Receiver<Begin>) -> io::Result<Option<Failure>> {
    let mut prepared = match prepare(run).and_then(|prepared| Ok((prepared, launch(run.task)?))) {
        Ok(prepared) => prepared,
        Err(failure) => return Ok(Some(failure)),
    };
    line.say(&Said::Ready)?;
    let Ok(begin) = begun.recv() else { return Ok(None) };
    if run.stop.sleep_until(begin.start) {
        return Ok(None);
    }
    let pid = prepared.1.as_ref().map_or(std::process::id(), |child| child.0.id());
    let started = What::TaskStarted { task: name(run.task), pid: Some(pid) };
    line.say(&Said::Event(Event { at: now(), what: started }))?;
    let (said, failure) = measured(run, begin.since, pid, prepared.0, prepared.1.as_mut());
    for event in said {
        line.say(&Said::Event(event))?;
    }
    Ok(failure)
}

/// Runs the program and takes the kernel's counters over the time of the figures.
fn measured(
    run: &Run<'_>,
    since: Nanos,
    pid: u32,
    prepared: Prepared<'_>,
    program: Option<&mut RunningProgram>,
) -> (Vec<Event>, Option<Failure>) {
    let ended = Stop::new();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| match now() >= since || !ended.sleep_until(since) {
            true => Some((now(), counters(pid))),
            false => None,
        });
        let (measures, failure) = match program {
            Some(program) => {
                let (measures, _) = perform(prepared, since);
                (measures, program.wait(run.stop).err())
            }
            None => {
                let (measures, ended) = perform(prepared, since);
                (measures, ended.err())
            }
        };
        let (at, last) = (now(), counters(pid));
        ended.ask();
        let mut events = events(run.task, &measures, at);
        if let Ok(Some((since, first))) = first.join() {
            let io: TaskIo = growth(&first, &last);
            events.push(Event { at, what: What::TaskIo { task: name(run.task), since, io } });
        }
        (events, failure)
    })
}

/// Hears the director until it is gone, which stops the task.
fn listen(mut from: impl BufRead, begin: Sender<Begin>, line: &Line<'_>, stop: &Stop) {
    loop {
        match hear::<Order>(&mut from) {
            Ok(Some(Order::Begin { start, since, stop: end })) => {
                if let Some(end) = end {
                    stop.set_moment(end);
                }
                // The task may have failed already, and nobody waits.
                let _ = begin.send(Begin { start, since });
            }
            Ok(Some(Order::Go { ask })) => line.answer(ask),
            Ok(Some(Order::Stop)) => {
                stop.ask();
                line.abandon();
            }
            Ok(Some(Order::Prepare { .. })) => {}
            Ok(None) | Err(_) => break,
        }
    }
    stop.ask();
    line.abandon();
}

/// The worker's end of the conversation, shared by its threads.
struct Line<'a> {
    to: Mutex<Box<dyn Write + Send + 'a>>,
    /// Number of the next question, and who waits for an answer.
    asks: Mutex<(u64, BTreeMap<u64, Sender<()>>)>,
}

impl Line<'_> {
    fn say(&self, what: &Said) -> io::Result<()> {
        say(&mut **self.to.lock().unwrap_or_else(PoisonError::into_inner), what)
    }

    fn ask(&self, wish: Wish) -> Result<(), StepError> {
        let (answer, answered) = channel();
        let ask = {
            let mut asks = self.asks.lock().unwrap_or_else(PoisonError::into_inner);
            asks.0 += 1;
            let ask = asks.0;
            asks.1.insert(ask, answer);
            ask
        };
        self.say(&Said::Ask { ask, wish }).map_err(|_| StepError::Abandoned)?;
        answered.recv().map_err(|_| StepError::Abandoned)
    }

    fn answer(&self, ask: u64) {
        let waiting = self.asks.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&ask);
        if let Some(waiting) = waiting {
            // Whoever waited may be gone.
            let _ = waiting.send(());
        }
    }

    /// Nobody will answer any more: dropping the senders ends every wait.
    fn abandon(&self) {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner).1.clear();
    }
}

impl Meeting for Line<'_> {
    fn barrier(&self, name: &str) -> Result<(), StepError> {
        self.ask(Wish::Barrier(name.to_owned()))
    }

    fn wait_for(&self, task: &str) -> Result<(), StepError> {
        self.ask(Wish::Task(task.to_owned()))
    }

    fn note(&self, text: &str) -> Result<(), StepError> {
        let note = Event { at: now(), what: What::Note { text: text.into() } };
        self.say(&Said::Event(note)).map_err(|_| StepError::Abandoned)
    }
}

/// A real program, ended when dropped.
struct RunningProgram(Child, String);

fn launch(task: &TaskCopy) -> Result<Option<RunningProgram>, Failure> {
    let Some(program) = &task.program else { return Ok(None) };
    start(program).map(Some).map_err(|error| Failure { step: "program".to_owned(), error })
}

fn start(program: &RealProgram) -> Result<RunningProgram, StepError> {
    for (path, text) in &program.files {
        super::files::parents(path)?;
        std::fs::write(path, text).map_err(|error| StepError::call("write", path, error))?;
    }
    let Some((name, arguments)) = program.command.split_first() else {
        return Err(StepError::Senseless("no program to run".to_owned()));
    };
    let child = Command::new(name)
        .args(arguments)
        .env("PATH", PATH)
        .envs(&program.env)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| StepError::call("exec", name, error))?;
    let mut running = RunningProgram(child, name.clone());
    let deadline = later(now(), READY_WAIT);
    while program.ready.as_ref().is_some_and(|path| !Path::new(path).exists()) {
        running.still_runs()?;
        if now() >= deadline {
            return Err(StepError::Senseless(format!("{name} was not ready within {} s", READY_WAIT.as_secs_f64())));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(running)
}

impl RunningProgram {
    fn still_runs(&mut self) -> Result<(), StepError> {
        match self.0.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(StepError::Senseless(format!("{} ended by itself: {status}", self.1))),
            Err(error) => Err(StepError::call("wait", &self.1, error)),
        }
    }

    /// Waits until it is time; a program that ends before that has failed.
    fn wait(&mut self, stop: &Stop) -> Result<(), Failure> {
        while !stop.sleep_until(later(now(), Nanos::from_millis(100))) {
            self.still_runs().map_err(|error| Failure { step: "program".to_owned(), error })?;
        }
        Ok(())
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let pid = i32::try_from(self.0.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let asked = now();
        while matches!(self.0.try_wait(), Ok(None)) {
            if until(asked, now()) >= END_WAIT {
                let _ = self.0.kill();
                let _ = self.0.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
