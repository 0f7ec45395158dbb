// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happens with each record: the exporter's board, the last minute for the rules, and now and then the rules.

use crate::board::Board;
use crate::clock;
use crate::error::ServeError;
use crate::http::{self, Listener};
use crate::minute::Minute;
use floodline_record::record::Record;
use floodline_record::units::Nanos;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Time from one run of the rules to the next.
const JUDGE_EVERY: Nanos = Nanos(10 * Nanos::SECOND.0);

/// How `serve` works.
#[derive(Debug)]
pub struct Options {
    /// Version of the program.
    pub version: &'static str,
    /// Sockets that scrapers connect to.
    pub listeners: Vec<Listener>,
}

/// See the module.
pub struct Serve {
    board: Arc<Mutex<Board>>,
    minute: Minute,
    judged_at: Option<Nanos>,
}

impl Serve {
    /// Begins to answer scrapers.
    pub fn start(options: Options) -> Result<Serve, ServeError> {
        let board = Arc::new(Mutex::new(Board::new(options.version)));
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
        Ok(Serve { board, minute: Minute::default(), judged_at: None })
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one record.
    pub fn record(&mut self, record: &Record) {
        self.minute.record(record);
        self.board().record(record);
        let Record::Sample(sample) = record else { return };
        let at = sample.time.monotonic;
        let is_due = match self.judged_at {
            None => self.minute.window().seconds() >= 1.0,
            Some(before) => at.0.saturating_sub(before.0) >= JUDGE_EVERY.0,
        };
        let usage = clock::usage();
        self.board().set_usage(usage);
        if is_due {
            let report = self.minute.judge();
            self.judged_at = Some(at);
            self.board().judged(at, &report);
        }
    }
}
