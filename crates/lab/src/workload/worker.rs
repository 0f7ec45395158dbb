// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process of one task copy. Receives its task, prepares it, reports that it is ready, runs it, and sends
//! the measures. A real program is a child of its worker and inherits the cgroup.

use super::clock::now;
use super::error::{Failure, StepError};
use super::family;
use super::meeting::Meeting;
use super::process::{counters, growth, name};
use super::program::{self, RunningProgram};
use super::runner::{Prepared, Run, perform, prepare};
use super::stop::Stop;
use super::wire::{Order, Said, Wish, hear, say};
use floodline_record::record::{Event, TaskIo, What};
use floodline_record::units::Nanos;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

/// Runs one task for a director at the other end of the two streams. Returns when the task has ended or the
/// director is gone.
pub fn worker(from: impl BufRead + Send, to: impl Write + Send) -> io::Result<()> {
    let mut from = from;
    let Some(Order::Prepare { task, place }) = hear(&mut from)? else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the first word of a director is a task"));
    };
    // Process lists then show the task's name. The kernel keeps 15 bytes.
    if let Ok(name) = CString::new(task.task.as_bytes()) {
        let _ = rustix::thread::set_name(&name);
    }
    let stop = Stop::new();
    let line = Line { to: Mutex::new(Box::new(to)), asks: Mutex::new((0, BTreeMap::new())) };
    let (begin, begun) = channel();
    std::thread::scope(|scope| {
        // The thread ends when the director closes its side of the stream, which it does after the `Ended` message.
        scope.spawn(|| listen(from, begin, &line, &stop));
        let run = Run { task: &task, place: &place, meeting: &line, stop: &stop, since: Nanos(0) };
        let failure = one_task(&run, &line, &begun)?;
        line.say(&Said::Ended { failure: failure.map(|failure| failure.to_string()) })
    })
}

/// The start of a run.
struct Begin {
    start: Nanos,
    since: Nanos,
}

fn one_task(run: &Run<'_>, line: &Line<'_>, begun: &Receiver<Begin>) -> io::Result<Option<Failure>> {
    let (prepared, mut program) = match prepare(run).and_then(|prepared| Ok((prepared, program::prepare(run.task)?))) {
        Ok(prepared) => prepared,
        Err(failure) => return Ok(Some(failure)),
    };
    line.say(&Said::Ready)?;
    let Ok(begin) = begun.recv() else { return Ok(None) };
    if run.stop.sleep_until(begin.start) {
        return Ok(None);
    }
    // A server runs already. A program that ends by itself starts with the task.
    let began = now();
    if program.is_none()
        && let Some(program_of_task) = &run.task.program
    {
        match program::start(program_of_task) {
            Ok(running) => program = Some(running),
            Err(failure) => return Ok(Some(failure)),
        }
    }
    let pid = program.as_ref().map_or(std::process::id(), RunningProgram::pid);
    let started = What::TaskStarted { task: name(run.task), pid: Some(pid) };
    line.say(&Said::Event(Event { at: began, what: started }))?;
    let (said, failure) = measured(run, began, begin.since, prepared, program.as_mut());
    for event in said {
        line.say(&Said::Event(event))?;
    }
    Ok(failure)
}

/// Runs the program and reads the kernel's counters over the measured time.
fn measured(
    run: &Run<'_>,
    began: Nanos,
    since: Nanos,
    prepared: Prepared<'_>,
    program: Option<&mut RunningProgram>,
) -> (Vec<Event>, Option<Failure>) {
    let ended = Stop::new();
    let is_new = program.as_ref().is_some_and(|program| program.ends_by_itself());
    let root = program.as_ref().map(|program| program.pid());
    let counted = || root.map_or_else(|| counters(std::process::id()), family::counters);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| match () {
            // The counters of a process that did not exist at the start are zero.
            () if is_new && began >= since => Some((began, family::nothing())),
            () if now() >= since || !ended.sleep_until(since) => Some((now(), counted())),
            () => None,
        });
        let (measures, done) = perform(prepared, since);
        let failure = match program {
            Some(program) => program.wait(run.stop).err(),
            None => done.err(),
        };
        let (at, last) = (now(), counted());
        ended.ask();
        let mut events = measures.events(&name(run.task), at);
        if let Ok(Some((since, first))) = first.join() {
            let io: TaskIo = growth(&first, &last);
            events.push(Event { at, what: What::TaskIo { task: name(run.task), since, io } });
        }
        (events, failure)
    })
}

/// Reads orders until the director is gone, which stops the task.
fn listen(mut from: impl BufRead, begin: Sender<Begin>, line: &Line<'_>, stop: &Stop) {
    loop {
        match hear::<Order>(&mut from) {
            Ok(Some(Order::Begin { start, since, stop: end })) => {
                if let Some(end) = end {
                    stop.set_moment(end);
                }
                // If the task has failed already, no thread waits for this.
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

/// The worker's side of the protocol, shared by its threads.
struct Line<'a> {
    to: Mutex<Box<dyn Write + Send + 'a>>,
    /// Number of the next request, and the waiting threads by request number.
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
            // The waiting thread may be gone.
            let _ = waiting.send(());
        }
    }

    /// Ends every wait, because no answer will arrive: drops the senders.
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
