// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happens with each record: the exporter's board, the last minute for the rules, the rules now and then, the flight
//! recorder and its triggers.

use crate::board::Board;
use crate::clock;
use crate::error::ServeError;
use crate::http::{self, Listener};
use crate::minute::Minute;
use crate::pressure::Monitor;
use crate::recorder::{Recorder, RingOptions};
use crate::trigger::Detect;
use floodline_record::record::Record;
use floodline_record::sample::{Sample, SampleTime};
use floodline_record::units::Nanos;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Time from one run of the rules to the next.
const JUDGE_EVERY: Nanos = Nanos(10 * Nanos::SECOND.0);

/// A shorter time is not taken for a suspended machine.
const SUSPENDED_MIN: Nanos = Nanos(Nanos::SECOND.0 / 10);

/// How `serve` works.
pub struct Options {
    /// Version of the program.
    pub version: &'static str,
    /// Sockets that scrapers connect to.
    pub listeners: Vec<Listener>,
    /// The flight recorder, where there is one.
    pub ring: Option<RingOptions>,
    /// Whether the machine observed is the one this runs on: only then its kernel can report pressure.
    pub is_live: bool,
}

/// The flight recorder and what triggers it.
struct Flight {
    recorder: Recorder,
    detect: Detect,
    monitor: Option<Monitor>,
}

/// See the module.
pub struct Serve {
    board: Arc<Mutex<Board>>,
    minute: Minute,
    judged_at: Option<Nanos>,
    flight: Option<Flight>,
    /// Time that the machine had been suspended at the last sample.
    suspended: Nanos,
}

impl Serve {
    /// Begins to answer scrapers, and opens the ring.
    pub fn start(options: Options) -> Result<Serve, ServeError> {
        let board = Arc::new(Mutex::new(Board::new(options.version)));
        let flight = match options.ring {
            Some(ring) => {
                let limits = ring.limits;
                let monitor = if options.is_live { Monitor::start(limits.io_pressure) } else { None };
                let recorder = Recorder::start(ring, Arc::clone(&board))?;
                Some(Flight { recorder, detect: Detect::new(limits), monitor })
            }
            None => None,
        };
        let listeners = options.listeners;
        for listener in &listeners {
            listener.set_nonblocking().map_err(|error| ServeError::new(format!("cannot use the socket: {error}")))?;
        }
        if !listeners.is_empty() {
            let board = Arc::clone(&board);
            let thread = std::thread::Builder::new().name("scrapes".to_owned()).stack_size(256 << 10);
            let started = thread.spawn(move || http::serve(&listeners, &board));
            started.map_err(|error| ServeError::new(format!("cannot start a thread: {error}")))?;
        }
        Ok(Serve { board, minute: Minute::default(), judged_at: None, flight, suspended: clock::suspended() })
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the kernel should be traced now: the time after a trigger is being recorded.
    pub fn wants_trace(&self) -> bool {
        self.flight.as_ref().is_some_and(|flight| flight.recorder.is_open())
    }

    /// The tracer was detached.
    pub fn trace_ended(&self) {
        self.board().trace_ended();
    }

    /// Takes one record.
    pub fn record(&mut self, record: &Record) {
        if let Record::Sample(_) = record {
            self.wake();
        }
        self.minute.record(record);
        self.board().record(record);
        if let Some(flight) = &mut self.flight {
            flight.recorder.record(record);
            flight.detect.record(record, SampleTime { monotonic: Nanos(0), ..clock::now() });
        }
        if let Record::Sample(sample) = record {
            self.sample(sample);
        }
    }

    /// Notices that the machine was suspended before the sample that follows.
    fn wake(&mut self) {
        let now = clock::suspended();
        let length = Nanos(now.0.saturating_sub(self.suspended.0));
        self.suspended = now;
        // The two clocks are not read at the same moment.
        if length >= SUSPENDED_MIN {
            self.board().suspended(length);
            if let Some(flight) = &mut self.flight {
                flight.detect.suspended(length);
            }
        }
    }

    fn sample(&mut self, sample: &Sample) {
        let at = sample.time;
        let is_due = match self.judged_at {
            None => self.minute.window().samples > 1,
            Some(before) => at.monotonic.0.saturating_sub(before.0) >= JUDGE_EVERY.0,
        };
        let usage = clock::usage();
        self.board().set_usage(usage);
        let report = is_due.then(|| self.minute.judge());
        if let Some(report) = &report {
            self.judged_at = Some(at.monotonic);
            self.board().judged(at.monotonic, report);
        }
        let Some(Flight { recorder, detect, monitor }) = &mut self.flight else { return };
        let mut triggers = detect.sample(sample, self.minute.window(), monitor.is_some());
        if monitor.as_ref().is_some_and(Monitor::has_fired) && detect.agrees() {
            triggers.push(detect.pressed(at));
        }
        triggers.extend(report.iter().flat_map(|report| detect.judged(at, report)));
        recorder.triggered(triggers, at);
    }

    /// Writes what is in memory and ends.
    pub fn finish(self) {
        if let Some(flight) = self.flight {
            flight.recorder.finish();
        }
    }
}
