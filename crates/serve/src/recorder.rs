// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flight recorder's interface to the sampling loop: takes every record and every trigger. Never waits for a disk.

use crate::board::{Board, Outcome};
use crate::control::{self, Answer, Mark, say};
use crate::error::ServeError;
use crate::incident::{self, AROUND};
use crate::ring::disk::DiskRing;
use crate::ring::memory::MemoryRing;
use crate::trigger::{Gate, Kind, Limits, Trigger};
use crate::writer::{Message, Order, State, Tell, Writer};
use floodline_record::record::Record;
use floodline_record::sample::SampleTime;
use floodline_record::units::Nanos;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A disk that hangs must not keep the program from ending.
const END_WITHIN: Duration = Duration::from_secs(10);

/// Options of the flight recorder.
pub struct RingOptions {
    /// Folder of the ring on disk.
    pub folder: PathBuf,
    /// Limit of all its files, bytes.
    pub limit: u64,
    /// Limit of the ring in memory, bytes.
    pub memory: usize,
    /// Time between two samples.
    pub every: Nanos,
    /// When triggers fire.
    pub limits: Limits,
    /// Command to run with each incident; empty for none.
    pub hook: Vec<OsString>,
    /// Reports a message to the operator.
    pub tell: Box<dyn Fn(&str) + Send>,
}

/// The incident whose time after the trigger is being recorded.
struct Open {
    name: String,
    trigger: Trigger,
    until: Nanos,
}

/// The flight recorder.
pub(crate) struct Recorder {
    memory: Arc<Mutex<MemoryRing>>,
    messages: Sender<Message>,
    ended: Receiver<()>,
    marks: Receiver<Mark>,
    is_told: Arc<AtomicBool>,
    gate: Gate,
    names: BTreeSet<String>,
    open: Option<Open>,
    board: Arc<Mutex<Board>>,
}

/// Longest text of an incident, in bytes, after which marks add nothing to it.
const TEXT_MAX: usize = 2000;

impl Recorder {
    pub(crate) fn start(options: RingOptions, board: Arc<Mutex<Board>>) -> Result<Recorder, ServeError> {
        let disk = DiskRing::open(&options.folder, options.limit)?;
        let marks = control::listen(disk.folder())?;
        // A file of the ring is at most a sixteenth of it: that much goes at once.
        let segment = usize::try_from(options.limit / 16).unwrap_or(usize::MAX).min(options.memory / 4);
        let memory = Arc::new(Mutex::new(MemoryRing::new(options.memory, segment, Some(options.every))));
        let names = disk.incident_names().map(str::to_owned).collect();
        let (messages, receiver) = channel();
        let (end, ended) = channel();
        let is_told = Arc::new(AtomicBool::new(false));
        let tell: Tell = options.tell;
        let writer = Writer {
            memory: Arc::clone(&memory),
            disk,
            board: Arc::clone(&board),
            is_told: Arc::clone(&is_told),
            hook: options.hook,
            every: options.every,
            tell,
            state: State::default(),
        };
        let thread = std::thread::Builder::new().name("ring".to_owned()).stack_size(1 << 20);
        let started = thread.spawn(move || {
            writer.run(&receiver);
            // The loop may be gone already.
            let _ = end.send(());
        });
        started.map_err(|error| ServeError::new(format!("cannot start a thread: {error}")))?;
        Ok(Recorder {
            memory,
            messages,
            ended,
            marks,
            is_told,
            gate: Gate::new(options.limits),
            names,
            open: None,
            board,
        })
    }

    /// Whether an incident's time after the trigger is being recorded.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    fn send(&self, message: Message) {
        // The writer ends with the program only.
        let _ = self.messages.send(message);
    }

    /// Takes one record.
    pub(crate) fn record(&mut self, record: &Record) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        // A segment that could not be encoded is lost; the next one begins with the next sample.
        let _ = memory.record(record);
        drop(memory);
        if matches!(record, Record::Sample(_)) && !self.is_told.swap(true, Ordering::Relaxed) {
            self.send(Message::Grown);
        }
    }

    /// Takes the triggers of a sample and the marks since the sample before.
    pub(crate) fn triggered(&mut self, triggers: Vec<Trigger>, now: SampleTime) {
        for trigger in triggers {
            self.trigger(trigger, None);
        }
        while let Ok(mark) = self.marks.try_recv() {
            let text = if mark.text.is_empty() { "Asked for with floodline mark.".to_owned() } else { mark.text };
            let (kind, subject) = (Kind::Mark, String::new());
            self.trigger(Trigger { kind, at: now, subject, rule: None, severity: None, text }, Some(mark.answer));
        }
        if self.open.as_ref().is_some_and(|open| now.monotonic >= open.until) {
            self.complete();
        }
    }

    /// Decides about a trigger. `answer` takes the answer for `floodline mark`: at once, or from the writer once the incident is
    /// on the disk.
    fn trigger(&mut self, trigger: Trigger, answer: Answer) {
        if let Some(open) = &mut self.open {
            let name = open.name.clone();
            let said = match trigger.kind {
                // A mark's text is kept even in the minute after another trigger.
                Kind::Mark if open.trigger.text.len() + trigger.text.len() <= TEXT_MAX => {
                    open.trigger.text = format!("{} Marked: {}", open.trigger.text, trigger.text);
                    Some(open.trigger.clone())
                }
                Kind::Mark => None,
                _ => {
                    self.send(Message::Duplicate(name.clone()));
                    None
                }
            };
            self.count(Outcome::Duplicate);
            match said {
                Some(said) => self.order(&name, &said, false, answer),
                None => say(answer, format!("kept {name}")),
            }
            return;
        }
        let name = self.free_name(trigger.at);
        let outcome = self.gate.decide(&trigger, &name);
        self.count(outcome);
        match outcome {
            Outcome::Kept => {
                let until = Nanos(trigger.at.monotonic.0.saturating_add(AROUND.0));
                self.names.insert(name.clone());
                self.order(&name, &trigger, false, answer);
                self.open = Some(Open { name, trigger, until });
            }
            Outcome::Duplicate => {
                if let Some(known) = self.gate.known(&trigger) {
                    self.send(Message::Duplicate(known.to_owned()));
                }
                say(answer, "refused the same was kept a short time ago".to_owned());
            }
            Outcome::Limited | Outcome::Failed => {
                say(answer, "refused the limit of incidents a day is reached".to_owned());
            }
        }
    }

    fn count(&self, outcome: Outcome) {
        self.board.lock().unwrap_or_else(PoisonError::into_inner).count_incident(outcome);
    }

    fn free_name(&self, at: SampleTime) -> String {
        let wanted = incident::name(at);
        let others = (2..).map(|number| format!("{wanted}-{number}"));
        std::iter::once(wanted.clone()).chain(others).find(|name| !self.names.contains(name)).unwrap_or_default()
    }

    fn order(&self, name: &str, trigger: &Trigger, is_complete: bool, answer: Answer) {
        let from = Nanos(trigger.at.monotonic.0.saturating_sub(AROUND.0));
        let segments = self.memory.lock().unwrap_or_else(PoisonError::into_inner).since(from);
        self.send(Message::Incident(Order {
            name: name.to_owned(),
            trigger: trigger.clone(),
            segments,
            is_complete,
            answer,
        }));
    }

    fn complete(&mut self) {
        if let Some(Open { name, trigger, .. }) = self.open.take() {
            self.order(&name, &trigger, true, None);
        }
    }

    /// Writes the remaining data and ends.
    pub(crate) fn finish(mut self) {
        self.complete();
        let _ = self.memory.lock().unwrap_or_else(PoisonError::into_inner).close();
        self.send(Message::Stop);
        let _ = self.ended.recv_timeout(END_WITHIN);
    }
}
