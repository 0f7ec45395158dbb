// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine: a clock, a queue of events in order of (time, sequence), and processes. A process is a future that
//! the engine polls when an event wakes it. It lists the actions of a kernel or program thread in their order, and
//! sleeps where that thread sleeps. No host threads, no host clock, no waker: only the next event makes anything
//! happen.

mod queue;

pub(crate) use queue::{Alarm, Due, Queue};

use crate::world::World;
use queue::Next;
use std::cell::{Cell, RefCell, RefMut};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// A wake-up for a process, valid once: a ticket is void as soon as its process has run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket {
    process: u32,
    turn: u32,
}

/// Processes that wait for the same thing, in order of arrival. Mostly there is only one, which needs no memory of
/// its own.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    first: Option<Ticket>,
    #[expect(clippy::box_collection, reason = "every inode has some of these, and mostly nobody waits there")]
    rest: Option<Box<VecDeque<Ticket>>>,
}

impl Waiters {
    pub(crate) fn add(&mut self, ticket: Ticket) {
        match self.first {
            None => self.first = Some(ticket),
            Some(_) => self.rest.get_or_insert_default().push_back(ticket),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Takes all waiting processes out of the queue, to be woken.
    pub(crate) fn take(&mut self) -> Waiters {
        std::mem::take(self)
    }

    /// Takes out the process that has waited longest.
    pub(crate) fn take_first(&mut self) -> Option<Ticket> {
        let second = self.rest.as_mut().and_then(|rest| rest.pop_front());
        std::mem::replace(&mut self.first, second)
    }
}

struct Process {
    future: Option<Pin<Box<dyn Future<Output = ()>>>>,
    turn: u32,
    /// Its name and what it waits for, reported when no process can go on.
    name: String,
    waits: &'static str,
    /// Whether the run may end without it.
    is_kernel: bool,
}

impl Process {
    /// Notes that the process runs again: tickets it gave out are void.
    fn begin_turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
    }
}

/// A handle on the simulated machine, shared by its processes.
pub(crate) type Sim = Rc<Engine>;

/// The simulation engine: the world, its processes and the event being handled.
pub(crate) struct Engine {
    world: RefCell<World>,
    processes: RefCell<Vec<Process>>,
    current: Cell<u32>,
    /// Time up to which a process may go on without yielding.
    horizon: Cell<u64>,
    /// Number of events after which the process yields in any case.
    portion_end: Cell<u64>,
    /// Events handled.
    pub(crate) events: Cell<u64>,
}

/// Events handled before the engine returns to its caller: some hundredths of a second of host time as a rule, and not much
/// more than a second where each event is expensive, so that a run can be ended at any moment.
const PORTION: u64 = 1 << 14;

/// Reason for which a run stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// The requested time is reached.
    Until,
    /// No event is due any more.
    Idle,
    /// A portion of events was handled: the caller may report progress.
    Portion,
    /// The caller asked the run to stop.
    Asked,
}

impl Engine {
    pub(crate) fn new(world: World) -> Sim {
        Rc::new(Engine {
            world: RefCell::new(world),
            processes: RefCell::default(),
            current: Cell::new(0),
            horizon: Cell::new(0),
            portion_end: Cell::new(0),
            events: Cell::new(0),
        })
    }

    /// Borrows the state of the machine. The borrow must end before the next await.
    #[inline]
    pub(crate) fn w(&self) -> RefMut<'_, World> {
        self.world.borrow_mut()
    }

    pub(crate) fn now(&self) -> u64 {
        self.world.borrow().now
    }

    /// Starts a process at the present moment.
    pub(crate) fn spawn(&self, name: &str, is_kernel: bool, future: impl Future<Output = ()> + 'static) {
        self.start(&mut self.w(), name, is_kernel, future);
    }

    /// Starts a process of the kernel while the world is held.
    pub(crate) fn spawn_in(&self, world: &mut World, name: &str, future: impl Future<Output = ()> + 'static) {
        self.start(world, name, true, future);
    }

    fn start(&self, world: &mut World, name: &str, is_kernel: bool, future: impl Future<Output = ()> + 'static) {
        let mut processes = self.processes.borrow_mut();
        let process = u32::try_from(processes.len()).unwrap_or(u32::MAX);
        let future: Pin<Box<dyn Future<Output = ()>>> = Box::pin(future);
        processes.push(Process { future: Some(future), turn: 0, name: name.to_owned(), waits: "", is_kernel });
        let now = world.now;
        world.queue.push_now(now, Due::Wake(Ticket { process, turn: 0 }));
    }

    /// Number of the running process.
    pub(crate) fn current_process(&self) -> u32 {
        self.current.get()
    }

    /// Returns a ticket for the running process.
    pub(crate) fn ticket(&self, waits: &'static str) -> Ticket {
        let process = self.current.get();
        let turn = match self.processes.borrow_mut().get_mut(process as usize) {
            Some(running) => {
                running.waits = waits;
                running.turn
            }
            None => 0,
        };
        Ticket { process, turn }
    }

    /// Sleeps until the given time. Ignores other wake-ups until then.
    pub(crate) fn sleep_until(&self, at: u64, waits: &'static str) -> Sleep<'_> {
        Sleep { engine: self, at, waits }
    }

    /// Lets time pass for the running process without yielding, as long as no other process is due. Device
    /// completions due meanwhile are handled here, in the same order as without this shortcut. Returns false if
    /// another process is due first; a wake-up at `at` is then in the queue.
    pub(crate) fn skip_to(&self, world: &mut World, at: u64, waits: &'static str) -> bool {
        let sequence = world.queue.reserve();
        let may_go_on = at <= self.horizon.get() && self.events.get() < self.portion_end.get();
        if may_go_on && self.reach(world, at, sequence) {
            world.now = at;
            self.events.set(self.events.get() + 1);
            self.processes.borrow_mut()[self.current.get() as usize].begin_turn();
            return true;
        }
        let ticket = self.ticket(waits);
        world.queue.push_reserved(at, sequence, Due::Wake(ticket));
        false
    }

    /// Processes events due before `at` that wake no process. Returns false if one would wake or start a process first.
    fn reach(&self, world: &mut World, at: u64, sequence: u64) -> bool {
        while world.new_wbs.is_empty() && world.new_workers.is_empty() {
            let next = world.queue.next().filter(|next| next.is_before(at, sequence));
            let Some(next) = next else { return true };
            let wakes = match world.queue.due(next) {
                Some(Due::Wake(ticket)) => self.is_valid(ticket),
                Some(Due::Alarm(wb)) => world.wbs[wb].alarm.is_wanted(next.at, next.sequence),
                Some(Due::IoDone(..) | Due::WbtWindow(_) | Due::Bandwidth(_) | Due::LaptopMode(_)) | None => false,
            };
            if wakes {
                return false;
            }
            self.handle_next(world, next);
        }
        false
    }

    /// Whether a ticket still wakes its process.
    fn is_valid(&self, ticket: Ticket) -> bool {
        self.processes.borrow().get(ticket.process as usize).is_some_and(|process| process.turn == ticket.turn)
    }

    /// Advances the clock to the next event and applies that event. Returns the ticket of the process to poll, if any.
    fn handle_next(&self, world: &mut World, next: Next) -> Option<Ticket> {
        let Next { at, sequence, .. } = next;
        let due = world.queue.pop(next)?;
        debug_assert!(at >= world.now, "time goes backwards");
        world.now = world.now.max(at);
        self.events.set(self.events.get() + 1);
        match due {
            Due::Wake(ticket) => return Some(ticket),
            Due::IoDone(device, request) => {
                world.is_interrupt = true;
                world.io_done(device, request);
                world.is_interrupt = false;
            }
            Due::WbtWindow(device) => world.wbt_window(device),
            Due::Bandwidth(wb) => {
                world.wbs[wb].bw_due = false;
                world.wb_update_bandwidth(wb);
            }
            Due::Alarm(wb) => {
                let w = &mut world.wbs[wb];
                if world.queue.alarm_came(&mut w.alarm, at, sequence, due) {
                    return w.flusher;
                }
            }
            Due::LaptopMode(bdi) => {
                let timer = &mut world.bdis[bdi].laptop_mode_wb_timer;
                if world.queue.alarm_came(timer, at, sequence, due) {
                    world.laptop_mode_timer(bdi);
                }
            }
        }
        None
    }

    /// Sleeps for some time.
    pub(crate) fn pass(&self, nanos: u64, waits: &'static str) -> Sleep<'_> {
        self.sleep_until(self.now().saturating_add(nanos), waits)
    }

    /// Waits in a queue until another process or an event wakes the caller.
    pub(crate) async fn wait(&self, waits: &'static str, queue: impl FnOnce(&mut World) -> &mut Waiters) {
        let ticket = self.ticket(waits);
        queue(&mut self.w()).add(ticket);
        suspend().await;
    }

    /// Time of the next event.
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.w().queue.next().map(|next| next.at)
    }

    /// Handles exactly one event.
    pub(crate) fn run_one(self: &Rc<Self>) {
        self.horizon.set(0);
        self.run(u64::MAX, 1);
    }

    /// Runs until a time, until no event is due, or for a portion of events.
    pub(crate) fn run_until(self: &Rc<Self>, until: u64) -> Stopped {
        self.horizon.set(until);
        self.run(until, PORTION)
    }

    fn run(self: &Rc<Self>, until: u64, most: u64) -> Stopped {
        self.portion_end.set(self.events.get().saturating_add(most));
        let mut world = self.w();
        while self.events.get() < self.portion_end.get() {
            let Some(next) = world.queue.next() else { return Stopped::Idle };
            if next.at > until {
                world.now = until;
                return Stopped::Until;
            }
            if let Some(ticket) = self.handle_next(&mut world, next) {
                drop(world);
                self.poll(ticket);
                world = self.w();
            }
            if !(world.new_wbs.is_empty() && world.new_workers.is_empty()) {
                drop(world);
                self.start_workers();
                world = self.w();
            }
        }
        Stopped::Portion
    }

    /// Starts the kernel threads that the last event requested.
    fn start_workers(self: &Rc<Self>) {
        let (wbs, workers) = {
            let mut world = self.w();
            (std::mem::take(&mut world.new_wbs), std::mem::take(&mut world.new_workers))
        };
        for wb in wbs {
            self.spawn("flusher", true, crate::flusher::flusher(self.clone(), wb));
        }
        for worker in workers {
            worker.spawn(self);
        }
    }

    fn poll(&self, ticket: Ticket) {
        let number = ticket.process as usize;
        let future = {
            let mut processes = self.processes.borrow_mut();
            let Some(process) = processes.get_mut(number).filter(|process| process.turn == ticket.turn) else { return };
            process.begin_turn();
            process.future.take()
        };
        let Some(mut future) = future else { return };
        self.current.set(ticket.process);
        if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            self.processes.borrow_mut()[number].future = Some(future);
        }
    }

    /// Programs that have not ended, each with the reason it waits for.
    pub(crate) fn waiting(&self) -> Vec<(String, &'static str)> {
        let processes = self.processes.borrow();
        let live = processes.iter().filter(|process| process.future.is_some() && !process.is_kernel);
        live.map(|process| (process.name.clone(), process.waits)).collect()
    }

    /// Whether a program waits for one of the given reasons.
    pub(crate) fn is_waiting_for(&self, any: &[&str]) -> bool {
        let processes = self.processes.borrow();
        let mut live = processes.iter().filter(|process| process.future.is_some() && !process.is_kernel);
        live.any(|process| any.contains(&process.waits))
    }

    /// Ends every process. Processes and engine refer to each other and would otherwise never be freed.
    pub(crate) fn end(&self) {
        let processes = std::mem::take(&mut *self.processes.borrow_mut());
        drop(processes);
    }
}

/// Future of [`Engine::sleep_until`]. Written by hand, like the other futures awaited at every event: an `async fn`
/// chain is entered anew from the top at every wake-up.
pub(crate) struct Sleep<'a> {
    engine: &'a Engine,
    at: u64,
    waits: &'static str,
}

impl Future for Sleep<'_> {
    type Output = ();
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let mut world = self.engine.w();
        let is_over = world.now >= self.at || self.engine.skip_to(&mut world, self.at, self.waits);
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Yields once to the engine.
pub(crate) fn suspend() -> Suspend {
    Suspend(false)
}

/// Future of [`suspend`].
pub(crate) struct Suspend(bool);

impl Future for Suspend {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0 {
            return Poll::Ready(());
        }
        self.0 = true;
        Poll::Pending
    }
}
