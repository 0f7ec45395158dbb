// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a whole workload: one worker process per task copy, each in its cgroup; starts the clock when all
//! are prepared, lets them meet, removes cgroups that are left, and hands on events in the order in which
//! they are told. A worker that dies is a failed task, never a hang.

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

/// A worker's side of the conversation.
pub struct Worker {
    /// What it hears.
    pub input: Box<dyn Write + Send>,
    /// What it says.
    pub output: Box<dyn BufRead + Send>,
    /// Its process, where it has its own.
    pub process: Option<Child>,
}

/// How the director gets a worker for a task.
pub type Hire<'a> = dyn Fn(&TaskCopy) -> std::io::Result<Worker> + 'a;

/// Runs workloads.
pub struct Director<'a> {
    /// The machine around them.
    pub place: &'a Place,
    /// How it gets workers; [`Worker::process`] for processes.
    pub hire: &'a Hire<'a>,
    /// Ends everything early.
    pub stop: &'a Stop,
    /// How long tasks may take to come to their end after the workload's; an fsync may have to be waited for.
    pub grace: Nanos,
}

/// How a workload went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directed {
    /// When its clock started; `None` when a setup failed.
    pub started: Option<Nanos>,
    /// Failures by task label.
    pub failures: BTreeMap<String, String>,
}

impl Worker {
    /// This program again, with arguments that make it call [`super::worker()`].
    pub fn process(mut command: Command) -> std::io::Result<Worker> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let gone = || std::io::Error::other("a worker without its streams");
        let input = process.stdin.take().ok_or_else(gone)?;
        let output = process.stdout.take().ok_or_else(gone)?;
        Ok(Worker { input: Box::new(input), output: Box::new(BufReader::new(output)), process: Some(process) })
    }
}

/// What the director hears.
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

/// How often the director looks at the stop and at its timers.
const TICK: Duration = Duration::from_millis(50);
/// Between the last setup and the start: every worker has heard of it by then.
const LEAD: Nanos = Nanos(50_000_000);

impl Director<'_> {
    /// Runs a scenario's workload to its end. `take` gets the events as they are told.
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

/// Which cgroups are removed once their last task has ended, and how long after.
fn removals_of(scenario: &Scenario) -> BTreeMap<String, Nanos> {
    let copies = scenario.cgroup_copies();
    copies.into_iter().filter_map(|copy| Some((copy.path, copy.spec.remove_after?.0))).collect()
}

/// One run of a workload.
struct Session<'a, 'b> {
    director: &'a Director<'a>,
    members: Vec<Member>,
    /// Threads that wait.
    asks: Vec<Ask>,
    barriers: Barriers,
    /// Cgroups to remove, and when.
    removals: Vec<(Nanos, String)>,
    /// From the end of which cgroups on they are to be removed, and how much later.
    remove_after: BTreeMap<String, Nanos>,
    /// When whoever has not ended is killed.
    end_by: Option<Nanos>,
    is_stopping: bool,
    directed: Directed,
    take: &'b mut dyn FnMut(Event),
}

/// A thread that waits.
struct Ask {
    member: usize,
    number: u64,
    wish: Wish,
    /// How often its barrier had opened when it came.
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

    /// Hears workers and looks at timers until something holds, or nobody is left to hear.
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
        // A worker that hears nothing more goes home.
        member.input = None;
        let (label, cgroup) = (member.task.label(), member.task.cgroup.clone());
        // Whoever was interrupted by our own stopping has not failed by itself.
        let failure = failure.filter(|_| !self.is_stopping);
        // A task that failed in its setup is part of the recording too.
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

    /// Answers the threads that need not wait any longer.
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

    /// Tells a worker; one that does not hear is noticed by its silence.
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
                    // One that sleeps in the kernel dies when it wakes up; nobody waits for it.
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

/// Whether a worker has exited. It is left unreaped: a parent that reaps a child takes over its I/O counters
/// (`wait_task_zombie()`), and whoever reads this process's would count everything twice. The kernel
/// reaps when the director's process ends.
fn has_exited(process: &Child) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    !matches!(waitid(process_id(process), options), Ok(None))
}

/// Gives a worker that hears nothing more a second to go, then makes it.
fn make_exit(process: &mut Child) {
    let asked = now();
    while !has_exited(process) && until(asked, now()) < Nanos::SECOND {
        std::thread::sleep(Duration::from_millis(1));
    }
    if !has_exited(process) {
        let _ = process.kill();
    }
}

/// Waits for the end of a worker that said its last, and says how it ended.
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

/// Hands on what one worker says until it is gone.
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
