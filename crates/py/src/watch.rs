// SPDX-License-Identifier: MIT OR Apache-2.0
//! A long call: work on a thread of its own without the GIL, while the caller's thread looks after signals and reports
//! progress. A panic of the work is an error.

use crate::failure::Failure;
use floodline_twin::trial::{Runner, Spent};
use pyo3::prelude::*;
use rustix::time::{ClockId, clock_gettime};
use std::any::Any;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Time between two looks at signals.
const LOOK: Duration = Duration::from_millis(50);
/// Stack of the work's thread, bytes: that of a main thread.
const STACK: usize = 8 << 20;

/// What the work and its caller say to each other.
#[derive(Debug, Default)]
pub(crate) struct Control {
    stop: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
}

impl Control {
    /// Whether the work is to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Fails once the work is to end.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.is_stopped() { Err(Failure::stopped()) } else { Ok(()) }
    }

    /// Says how far the work is.
    pub(crate) fn tell(&self, done: u64, total: u64) {
        self.total.store(total, Ordering::Relaxed);
        // Of two threads that say it at once the one that is further counts.
        self.done.fetch_max(done, Ordering::Relaxed);
    }

    fn told(&self) -> (u64, u64) {
        let (done, total) = (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
        (done.min(total), total)
    }
}

/// Runs work without the GIL. A signal or an exception of `progress` ends it and is raised.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Control) -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let control = Control::default();
    let mut last = (0, 0);
    let mut report = |py: Python<'_>| -> PyResult<()> {
        py.check_signals()?;
        let now = control.told();
        if let Some(progress) = progress.as_ref().filter(|_| now != last) {
            last = now;
            progress.call1(py, now)?;
        }
        Ok(())
    };
    let result: PyResult<T> = py.detach(|| {
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            let control = &control;
            let started = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, move || {
                // A receiver that is gone does not wait for the result.
                let _ = sender.send(caught(|| work(control)));
            });
            started.map_err(|error| Failure::new(format!("cannot start a thread: {error}")))?;
            loop {
                match receiver.recv_timeout(LOOK) {
                    Ok(result) => return Ok(result?),
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        if let Err(error) = Python::attach(&mut report) {
                            control.stop.store(true, Ordering::Relaxed);
                            return Err(error);
                        }
                    }
                    Err(mpsc::RecvTimeoutError::Disconnected) => return Err(Failure::bug("no result").into()),
                }
            }
        })
    });
    let result = result?;
    report(py)?;
    Ok(result)
}

/// Runs short work without the GIL.
pub(crate) fn guarded<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Failure> + Send) -> PyResult<T> {
    Ok(py.detach(|| caught(work))?)
}

/// Turns a panic into an error.
fn caught<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Failure::bug(message(&*panic))))
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a message")
}

/// Threads that simulate.
pub(crate) fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// The clocks of this process.
pub(crate) fn spent() -> Spent {
    let read = |clock| {
        let time = clock_gettime(clock);
        Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
    };
    Spent { time: read(ClockId::Monotonic), cpu: read(ClockId::ProcessCPUTime) }
}

/// Runs trials on as many threads as there are CPUs and counts them.
pub(crate) struct Threads<'a> {
    pub(crate) control: &'a Control,
    /// Trials of earlier rounds.
    pub(crate) before: u64,
}

impl Runner for Threads<'_> {
    fn each<T: Sync, R: Send>(&mut self, items: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
        let jobs = workers().min(items.len());
        let results = on_threads(jobs, items, self.control, self.before, run);
        self.before += items.len() as u64;
        // A trial that panicked has no result: the panic goes on here and becomes an error.
        results
    }
}

/// Runs each item once on that number of threads. Results are in the order of the items.
pub(crate) fn on_threads<T: Sync, R: Send>(
    jobs: usize,
    items: &[T],
    control: &Control,
    before: u64,
    run: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = AtomicU64::new(before);
    let total = before + items.len() as u64;
    control.tell(before, total);
    let worker = || {
        let mut results = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { break results };
            results.push((at, run(item)));
            control.tell(done.fetch_add(1, Ordering::Relaxed) + 1, total);
        }
    };
    let mut results: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(worker)).collect();
        let joined = workers.into_iter().map(|worker| match worker.join() {
            Ok(results) => results,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.flatten().collect()
    });
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Panics, for the test that a panic is an error.
#[pyfunction]
pub(crate) fn _panic(py: Python<'_>) -> PyResult<()> {
    watched(py, None, |_| {
        std::panic::resume_unwind(Box::new("on purpose"));
    })
}
