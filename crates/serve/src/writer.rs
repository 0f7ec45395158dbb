// SPDX-License-Identifier: MIT OR Apache-2.0
//! The writer thread: copies the ring in memory to the ring on disk, and keeps incidents. If the disk hangs, this
//! thread hangs, and sampling continues.

use crate::board::{Board, Outcome, RingState};
use crate::control::{Answer, say};
use crate::hook;
use crate::incident::{self, Built};
use crate::ring::disk::DiskRing;
use crate::ring::memory::{Cursor, MemoryRing};
use crate::trigger::Trigger;
use floodline_record::units::Nanos;
use floodline_view::{doctor, incidents};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Bytes that go to the disk in one write.
const PIECE: usize = 256 << 10;

/// Delay of the next attempt after a failed write.
const RETRY: Duration = Duration::from_secs(5);

/// Time that the last started command has to read its incident when the program ends.
const HOOK_WITHIN: Duration = Duration::from_secs(5);

/// A message from the sampling loop.
pub(crate) enum Message {
    /// The ring in memory has grown.
    Grown,
    /// An incident begins, or is complete.
    Incident(Order),
    /// The trigger of an incident fired again.
    Duplicate(String),
    /// The program ends.
    Stop,
}

/// An incident to be written.
pub(crate) struct Order {
    /// Name of its files.
    pub(crate) name: String,
    /// Its trigger.
    pub(crate) trigger: Trigger,
    /// The segments that contain it.
    pub(crate) segments: Vec<Arc<Vec<u8>>>,
    /// Whether the time after the trigger is in them.
    pub(crate) is_complete: bool,
    /// Takes the answer once it is on the disk.
    pub(crate) answer: Answer,
}

/// Reports a message to the operator.
pub(crate) type Tell = Box<dyn Fn(&str) + Send>;

/// State of the writer thread.
pub(crate) struct Writer {
    pub(crate) memory: Arc<Mutex<MemoryRing>>,
    pub(crate) disk: DiskRing,
    pub(crate) board: Arc<Mutex<Board>>,
    /// Set while a [`Message::Grown`] is queued.
    pub(crate) is_told: Arc<AtomicBool>,
    pub(crate) hook: Vec<OsString>,
    pub(crate) every: Nanos,
    pub(crate) tell: Tell,
    pub(crate) state: State,
}

/// Progress of the writer.
#[derive(Default)]
pub(crate) struct State {
    cursor: Cursor,
    /// The segment whose file is open.
    open: Option<u64>,
    /// The segment that has no room.
    abandoned: Option<u64>,
    retry_at: Option<Instant>,
    dropped: u64,
    errors: u64,
    unwritten: Vec<Order>,
    kept: BTreeMap<String, incidents::Incident>,
    /// Closed once the last command has read its incident.
    hook: Option<Receiver<()>>,
}

impl Writer {
    /// Runs until [`Message::Stop`].
    pub(crate) fn run(mut self, messages: &Receiver<Message>) {
        loop {
            match messages.recv_timeout(Duration::from_secs(1)) {
                Ok(Message::Grown) | Err(RecvTimeoutError::Timeout) => {
                    self.is_told.store(false, Ordering::Relaxed);
                    self.drain();
                }
                Ok(Message::Incident(order)) => self.incident(order),
                Ok(Message::Duplicate(name)) => self.duplicate(&name),
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    self.state.retry_at = None;
                    self.drain();
                    self.disk.end();
                    if let Some(hook) = &self.state.hook {
                        let _ = hook.recv_timeout(HOOK_WITHIN);
                    }
                    return;
                }
            }
            self.report();
        }
    }

    fn may_try(&mut self) -> bool {
        let may = self.state.retry_at.is_none_or(|at| Instant::now() >= at);
        if may {
            self.state.retry_at = None;
        }
        may
    }

    fn failed(&mut self, error: &io::Error) {
        self.state.errors += 1;
        self.state.retry_at = Some(Instant::now() + RETRY);
        if self.state.errors.is_power_of_two() {
            let times = self.state.errors;
            (self.tell)(&format!("cannot write the ring: {error} (failure {times}); samples stay in memory"));
        }
    }

    /// Writes all new data of the ring in memory to the disk.
    fn drain(&mut self) {
        if !self.may_try() {
            return;
        }
        for order in std::mem::take(&mut self.state.unwritten) {
            self.incident(order);
        }
        let mut bytes = Vec::with_capacity(PIECE);
        while self.state.retry_at.is_none() {
            bytes.clear();
            let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(piece) = memory.read(self.state.cursor, PIECE, &mut bytes) else { break };
            drop(memory);
            if let Err(error) = self.append(piece.at, &bytes) {
                self.failed(&error);
                return;
            }
            self.state.cursor = Cursor { offset: piece.at.offset + piece.length, ..piece.at };
            if piece.is_end {
                self.state.cursor = Cursor { number: piece.at.number + 1, offset: 0 };
                self.state.open = None;
                self.disk.end();
                if let Err(error) = self.disk.thin() {
                    self.failed(&error);
                }
            }
            self.memory.lock().unwrap_or_else(PoisonError::into_inner).was_read(self.state.cursor);
        }
    }

    fn append(&mut self, at: Cursor, bytes: &[u8]) -> io::Result<()> {
        if self.state.abandoned == Some(at.number) {
            self.state.dropped += bytes.len() as u64;
            return Ok(());
        }
        if self.state.open != Some(at.number) {
            self.disk.begin()?;
            self.state.open = Some(at.number);
        }
        if !bytes.is_empty() && !self.disk.append(bytes)? {
            // The records that follow in this segment depend on those that are missing now.
            self.state.abandoned = Some(at.number);
            self.state.dropped += bytes.len() as u64;
        }
        Ok(())
    }

    fn count(&self, outcome: Outcome) {
        self.board.lock().unwrap_or_else(PoisonError::into_inner).count_incident(outcome);
    }

    fn incident(&mut self, order: Order) {
        let built = match incident::build(&order.name, &order.trigger, &order.segments, self.every, order.is_complete) {
            Ok(built) => built,
            Err(error) => {
                (self.tell)(&format!("cannot make {}: {error}", order.name));
                say(order.answer, format!("refused {error}"));
                return self.count(Outcome::Failed);
            }
        };
        match self.keep(&order, built) {
            Ok(true) => say(order.answer, format!("kept {}", order.name)),
            Ok(false) => {
                (self.tell)(&format!("{} does not fit into the ring: give it more with --ring-size", order.name));
                say(order.answer, "refused it does not fit into the ring: give it more with --ring-size".to_owned());
                self.count(Outcome::Failed);
            }
            Err(error) => {
                self.failed(&error);
                say(order.answer, format!("later the incident could not be written ({error})"));
                self.state.unwritten.push(Order { answer: None, ..order });
            }
        }
    }

    fn keep(&mut self, order: &Order, built: Built) -> io::Result<bool> {
        let Built { bytes, report, mut incident } = built;
        if !self.disk.keep(&format!("{}.flr", order.name), &bytes)? {
            return Ok(false);
        }
        incident.duplicates = self.state.kept.get(&order.name).map_or(0, |known| known.duplicates);
        let line = incidents::json(&incident).map_err(io::Error::other)?;
        self.disk.keep(&format!("{}.json", order.name), line.as_bytes())?;
        if order.is_complete {
            let options = doctor::Options { details: true, ..doctor::Options::default() };
            let text = doctor::render(&report, options);
            self.disk.keep(&format!("{}.txt", order.name), text.as_bytes())?;
            let cause = incident.cause.as_deref().unwrap_or("no finding");
            (self.tell)(&format!("kept {} ({}): {cause}", order.name, incident.summary));
            hook::journal(&incident);
            if !self.hook.is_empty() {
                let text = incidents::json_with_report(&incident, &report).map_err(io::Error::other)?;
                self.state.hook = Some(hook::run(&self.hook, text));
            }
        }
        self.state.kept.insert(order.name.clone(), incident);
        Ok(true)
    }

    fn duplicate(&mut self, name: &str) {
        let Some(incident) = self.state.kept.get_mut(name) else { return };
        incident.duplicates += 1;
        let kept = incidents::json(incident).map_err(io::Error::other);
        if let Err(error) = kept.and_then(|line| self.disk.keep(&format!("{name}.json"), line.as_bytes())) {
            self.failed(&error);
        }
    }

    fn report(&mut self) {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let (behind, lost) = (memory.behind(self.state.cursor), memory.lost());
        drop(memory);
        let oldest = self.disk.oldest().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let state = RingState {
            bytes: self.disk.bytes(),
            limit: self.disk.limit(),
            behind,
            dropped: self.state.dropped + lost,
            errors: self.state.errors,
            oldest_wall: oldest.map(|since| Nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))),
        };
        self.board.lock().unwrap_or_else(PoisonError::into_inner).set_ring(state);
    }
}
