// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a whole workload: one worker process per task copy, each in its cgroup. Starts the clock when all
//! workers are prepared, releases barriers, removes cgroups whose tasks have ended, and forwards events in the
//! order in which they arrive. A worker that dies is a failed task, never a hang.

use super::clock::{later, now, until};
use super::error::StepError;
use super::process::name;
use super::stop::Stop;
use super::system::{self, Place};
use super::wire::{Order, Said, Wish, hear, say};
use floodline_record::record::{Event, What};
use floodline_record::text::Text;
use floodline_record::units::Nanos;
use floodline_scenario::program::Barriers;
use floodline_scenario::{Scenario, TaskCopy};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// The director's connection to a worker.
pub struct Worker {
    /// The worker's input: orders.
    pub input: Box<dyn Write + Send>,
    /// The worker's output.
    pub output: Box<dyn BufRead + Send>,
    /// The worker's process, if it has its own.
    pub process: Option<Child>,
}

/// Starts a worker for a task.
pub type Hire<'a> = dyn Fn(&TaskCopy) -> std::io::Result<Worker> + 'a;

/// Runs workloads.
pub struct Director<'a> {
    /// The machine around them.
    pub place: &'a Place,
    /// Starts workers; [`Worker::process`] starts a process.
    pub hire: &'a Hire<'a>,
    /// Ends the workload early.
    pub stop: &'a Stop,
    /// Time that tasks have to end after the end of the workload. A task may have to wait for an fsync.
    pub grace: Nanos,
}

/// The result of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directed {
    /// Start of its clock; `None` if a setup failed.
    pub started: Option<Nanos>,
    /// Failures by task label.
    pub failures: BTreeMap<String, String>,
}

impl Worker {
    /// Starts this program with arguments that make it call [`super::worker()`].
    pub fn process(mut command: Command) -> std::io::Result<Worker> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let gone = || std::io::Error::other("a worker without its streams");
        let input = process.stdin.take().ok_or_else(gone)?;
        let output = process.stdout.take().ok_or_else(gone)?;
        Ok(Worker { input: Box::new(input), output: Box::new(BufReader::new(output)), process: Some(process) })
    }
}

/// An item from a worker's output.
enum Heard {
    Said(Said),
    /// The worker's stream ended.
    Gone(String),
}

/// One task copy and its worker.
struct Member {
    task: TaskCopy,
    input: Option<Box<dyn Write + Send>>,
    process: Option<Child>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Preparing,
    Ready,
    Ended,
}

/// How often the director checks the stop flag and its timers.
const TICK: Duration = Duration::from_millis(50);
/// Time between the last setup and the start, so that every worker has received its order by then.
const LEAD: Nanos = Nanos(50_000_000);

impl Director<'_> {
    /// Runs a scenario's workload to its end. `take` receives the events in the order in which they arrive.
    pub fn run(&self, scenario: &Scenario, variant: &str, take: &mut dyn FnMut(Event)) -> Directed {
        let (tell, told) = channel();
        let copies = scenario.task_copies();
        let mut session = Session {
            director: self,
            members: Vec::new(),
            asks: Vec::new(),
            barriers: Barriers::of(&copies),
            removals: Vec::new(),
            remove_after: removals_of(scenario),
            end_by: None,
            is_stopping: false,
            directed: Directed::default(),
            take,
        };
        for task in copies {
            session.hire(task, &tell);
            // One that cannot be hired stops those before it.
            if session.is_stopping {
                break;
            }
        }
        drop(tell);
        session.until(&told, |session| !session.is_any(State::Preparing));
        if session.directed.failures.is_empty() && !self.stop.is_due() {
            session.begin(scenario, variant);
        } else {
            session.stop_all();
        }
        session.until(&told, |session| !session.is_any(State::Ready) && session.removals.is_empty());
        session.close()
    }
}

/// Returns the cgroups to remove after their last task has ended, each with its delay.
fn removals_of(scenario: &Scenario) -> BTreeMap<String, Nanos> {
    let copies = scenario.cgroup_copies();
    copies.into_iter().filter_map(|copy| Some((copy.path, copy.spec.remove_after?.0))).collect()
}

/// One run of a workload.
struct Session<'a, 'b> {
    director: &'a Director<'a>,
    members: Vec<Member>,
    /// Waiting threads.
    asks: Vec<Ask>,
    barriers: Barriers,
    /// Cgroups to remove, each with its time.
    removals: Vec<(Nanos, String)>,
    /// Cgroups to remove after their last task has ended, each with its delay.
    remove_after: BTreeMap<String, Nanos>,
    /// Time at which workers that still run are killed.
    end_by: Option<Nanos>,
    is_stopping: bool,
    directed: Directed,
    take: &'b mut dyn FnMut(Event),
}

/// A waiting thread.
struct Ask {
    member: usize,
    number: u64,
    wish: Wish,
    /// Number of times its barrier had opened when the thread arrived.
    round: u64,
}

impl Session<'_, '_> {
    fn hire(&mut self, task: TaskCopy, tell: &Sender<(usize, Heard)>) {
        let index = self.members.len();
        let mut member = Member { task, input: None, process: None, state: State::Preparing };
        match self.engage(&mut member, index, tell) {
            Ok(()) => self.members.push(member),
            Err(error) => {
                self.members.push(member);
                self.ended(index, Some(error.to_string()));
            }
        }
    }

    fn engage(&self, member: &mut Member, index: usize, tell: &Sender<(usize, Heard)>) -> Result<(), StepError> {
        let place = self.director.place;
        let hired = (self.director.hire)(&member.task);
        let Worker { mut input, output, process } =
            hired.map_err(|error| StepError::call("start", "a worker", error))?;
        if let Some(process) = &process {
            system::move_process(place, &member.task.cgroup, process.id())?;
        }
        member.process = process;
        let order = Order::Prepare { task: Box::new(member.task.clone()), place: place.clone() };
        say(&mut *input, &order).map_err(|error| StepError::call("tell", "a worker", error))?;
        member.input = Some(input);
        let tell = tell.clone();
        std::thread::spawn(move || listen(index, output, &tell));
        Ok(())
    }

    /// Handles messages and timers until `is_done` returns true, or until every worker's stream has ended and no cgroup
    /// waits for removal.
    fn until(&mut self, told: &Receiver<(usize, Heard)>, is_done: impl Fn(&Self) -> bool) {
        while !is_done(self) {
            match told.recv_timeout(TICK) {
                Ok((index, heard)) => self.heard(index, heard),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) if self.removals.is_empty() => return,
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(TICK),
            }
            self.tick();
        }
    }

    fn is_any(&self, state: State) -> bool {
        self.members.iter().any(|member| member.state == state)
    }

    fn heard(&mut self, index: usize, heard: Heard) {
        match heard {
            Heard::Said(Said::Ready) => self.set(index, State::Preparing, State::Ready),
            Heard::Said(Said::Ask { ask, wish }) => {
                let round = match &wish {
                    Wish::Barrier(name) => self.barriers.arrive(index, name),
                    Wish::Task(_) => 0,
                };
                self.asks.push(Ask { member: index, number: ask, wish, round });
                self.answer();
            }
            Heard::Said(Said::Event(event)) => (self.take)(event),
            Heard::Said(Said::Ended { failure }) => self.ended(index, failure),
            Heard::Gone(why) => {
                let is_early = self.members.get(index).is_some_and(|member| member.state != State::Ended);
                if is_early {
                    let member = self.members.get_mut(index);
                    let process = member.and_then(|member| {
                        member.input = None;
                        member.process.as_mut()
                    });
                    let why = process.and_then(how_ended).map_or(why.clone(), |how| format!("{why}, {how}"));
                    self.ended(index, Some(why));
                }
            }
        }
    }

    fn set(&mut self, index: usize, from: State, to: State) {
        if let Some(member) = self.members.get_mut(index)
            && member.state == from
        {
            member.state = to;
        }
    }

    fn ended(&mut self, index: usize, failure: Option<String>) {
        let Some(member) = self.members.get_mut(index) else { return };
        if member.state == State::Ended {
            return;
        }
        let was_preparing = member.state == State::Preparing;
        member.state = State::Ended;
        // Closing its input makes the worker exit.
        member.input = None;
        let (label, cgroup) = (member.task.label(), member.task.cgroup.clone());
        // A task that the director itself stopped has not failed.
        let failure = failure.filter(|_| !self.is_stopping);
        // A task that failed in its setup is recorded too.
        if self.directed.started.is_some() || failure.is_some() {
            let what = What::TaskEnded { task: name(&member.task), failure: failure.as_ref().map(Text::from) };
            (self.take)(Event { at: now(), what });
        }
        let is_failed = failure.is_some();
        self.directed.failures.extend(failure.map(|failure| (label, failure)));
        if is_failed && was_preparing {
            self.stop_all();
        }
        self.asks.retain(|ask| ask.member != index);
        self.barriers.end(index);
        let is_last = self.members.iter().all(|member| member.state == State::Ended || member.task.cgroup != cgroup);
        if let Some(after) = self.remove_after.get(&cgroup).filter(|_| is_last) {
            self.removals.push((later(now(), *after), cgroup));
        }
        self.answer();
    }

    /// Releases the threads whose wait is over.
    fn answer(&mut self) {
        let is_met = |ask: &Ask| match &ask.wish {
            Wish::Barrier(name) => self.barriers.round(name) != ask.round,
            Wish::Task(name) => {
                !self.members.iter().any(|member| member.task.task == *name && member.state != State::Ended)
            }
        };
        let (met, waiting) = std::mem::take(&mut self.asks).into_iter().partition(is_met);
        self.asks = waiting;
        let met: Vec<Ask> = met;
        for ask in met {
            self.tell(ask.member, &Order::Go { ask: ask.number });
        }
    }

    /// Sends an order to a worker. A write error is ignored: the end of the worker's output is detected elsewhere.
    fn tell(&mut self, index: usize, order: &Order) {
        if let Some(input) = self.members.get_mut(index).and_then(|member| member.input.as_mut()) {
            let _ = say(&mut **input, order);
        }
    }

    fn begin(&mut self, scenario: &Scenario, variant: &str) {
        let start = later(now(), LEAD);
        let time = |time: Option<floodline_scenario::Time>| time.map_or(Nanos(0), |time| time.0);
        let since = later(start, time(scenario.workload.settle));
        let stop = scenario.workload.duration.map(|duration| later(start, duration.0));
        self.directed.started = Some(start);
        self.end_by = stop.map(|stop| later(stop, self.director.grace));
        let what = What::WorkloadStarted { scenario: scenario.name.clone().into(), variant: variant.into() };
        (self.take)(Event { at: start, what });
        for index in 0..self.members.len() {
            let begin = self.members.get(index).map_or(start, |member| later(start, member.task.start));
            self.tell(index, &Order::Begin { start: begin, since, stop });
        }
    }

    fn stop_all(&mut self) {
        if std::mem::replace(&mut self.is_stopping, true) {
            return;
        }
        for index in 0..self.members.len() {
            self.tell(index, &Order::Stop);
            if let Some(member) = self.members.get_mut(index) {
                member.input = None;
            }
        }
    }

    fn tick(&mut self) {
        if self.director.stop.is_due() {
            self.stop_all();
            self.end_by.get_or_insert(later(now(), self.director.grace));
        }
        if self.end_by.is_some_and(|end_by| now() >= end_by) {
            for index in 0..self.members.len() {
                let Some(member) = self.members.get_mut(index).filter(|member| member.state != State::Ended) else {
                    continue;
                };
                if let Some(process) = &mut member.process {
                    // A worker that sleeps uninterruptibly dies when it wakes up. The director does not wait for it.
                    let _ = process.kill();
                }
                let grace = self.director.grace.as_secs_f64();
                self.ended(index, Some(format!("it had not ended {grace} s after the workload")));
            }
        }
        let (due, later): (Vec<_>, Vec<_>) = self.removals.drain(..).partition(|(at, _)| now() >= *at);
        self.removals = later;
        for (at, cgroup) in due {
            self.remove(at, cgroup);
        }
    }

    fn remove(&mut self, at: Nanos, cgroup: String) {
        let mut is_empty = true;
        for member in self.members.iter().filter(|member| member.task.cgroup == cgroup) {
            is_empty &= member.process.as_ref().is_none_or(has_exited);
        }
        if !is_empty {
            self.removals.push((at, cgroup));
            return;
        }
        let text = match system::remove_dirs(self.director.place, &cgroup) {
            Ok(()) => format!("cgroup {cgroup} removed"),
            Err(error) => format!("cgroup {cgroup} not removed: {error}"),
        };
        (self.take)(Event { at: now(), what: What::Note { text: text.into() } });
    }

    fn close(mut self) -> Directed {
        for member in &mut self.members {
            member.input = None;
            let Some(process) = &mut member.process else { continue };
            make_exit(process);
        }
        if self.directed.started.is_some() {
            (self.take)(Event { at: now(), what: What::WorkloadEnded });
        }
        self.directed
    }
}

/// Returns true if a worker has exited. The worker is not reaped: a parent that reaps a child takes over its I/O
/// counters (`wait_task_zombie()`), so a reader of this process's counters would count the child's I/O twice. The
/// kernel reaps the workers when the director's process ends.
fn has_exited(process: &Child) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    !matches!(waitid(process_id(process), options), Ok(None))
}

/// Waits one second for a worker to exit after its input was closed, then kills it.
fn make_exit(process: &mut Child) {
    let asked = now();
    while !has_exited(process) && until(asked, now()) < Nanos::SECOND {
        std::thread::sleep(Duration::from_millis(1));
    }
    if !has_exited(process) {
        let _ = process.kill();
    }
}

/// Waits for a worker whose output has ended to exit, and returns how it ended.
fn how_ended(process: &mut Child) -> Option<String> {
    make_exit(process);
    let status = waitid(process_id(process), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).ok()??;
    match (status.terminating_signal(), status.exit_status()) {
        (Some(signal), _) => Some(format!("killed by signal {signal}")),
        (None, code) => code.map(|code| format!("its process ended with status {code}")),
    }
}

fn process_id(process: &Child) -> WaitId<'static> {
    WaitId::Pid(Pid::from_child(process))
}

/// Forwards one worker's messages until its stream ends.
fn listen(index: usize, mut output: Box<dyn BufRead + Send>, tell: &Sender<(usize, Heard)>) {
    loop {
        let heard = match hear(&mut *output) {
            Ok(Some(said)) => Heard::Said(said),
            Ok(None) => Heard::Gone("its worker is gone".to_owned()),
            Err(error) => Heard::Gone(format!("its worker talks nonsense: {error}")),
        };
        let is_last = matches!(heard, Heard::Gone(_));
        if tell.send((index, heard)).is_err() || is_last {
            return;
        }
    }
}
