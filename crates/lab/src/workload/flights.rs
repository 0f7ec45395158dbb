// SPDX-License-Identifier: MIT OR Apache-2.0
//! Concurrent requests of a task. Each thread reads or writes one block after the other, like the threads of QEMU
//! (`aio=threads`) and the I/O workers of databases. The task's own thread hands out the blocks and measures.

use super::clock::{now, until};
use super::error::StepError;
use super::io::Block;
use super::runner::Hand;
use floodline_record::units::Nanos;
use floodline_scenario::Random;
use floodline_scenario::program::Slot;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};

/// Stack size of a thread that only reads and writes, bytes.
const STACK: usize = 128 << 10;

/// A request for a thread.
struct Job {
    file: Arc<File>,
    path: String,
    is_write: bool,
    offset: u64,
    length: u64,
}

/// A completed request.
struct Done {
    name: &'static str,
    at: Nanos,
    lasted: Nanos,
    result: Result<u64, StepError>,
}

/// The threads and their requests.
pub(super) struct Flights {
    /// `None` once the threads have to end.
    jobs: Option<Sender<Job>>,
    queue: Arc<Mutex<Receiver<Job>>>,
    reports: Sender<Done>,
    done: Receiver<Done>,
    threads: Vec<JoinHandle<()>>,
    under_way: u64,
}

impl Default for Flights {
    fn default() -> Flights {
        let (jobs, queue) = channel();
        let (reports, done) = channel();
        let queue = Arc::new(Mutex::new(queue));
        Flights { jobs: Some(jobs), queue, reports, done, threads: Vec::new(), under_way: 0 }
    }
}

impl Drop for Flights {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing more to report, so its error is ignored.
            let _ = thread.join();
        }
    }
}

/// Performs jobs until the channel closes.
fn work(queue: &Mutex<Receiver<Job>>, reports: &Sender<Done>, seed: u64) {
    let (mut block, mut content) = (Block::default(), Random::new(seed));
    loop {
        // The lock is held while waiting: one thread waits for the job, the others for the lock.
        let job = match queue.lock() {
            Ok(queue) => queue.recv(),
            Err(_) => return,
        };
        let Ok(job) = job else { return };
        if reports.send(job.or_lost(|| job.perform(&mut block, &mut content))).is_err() {
            return;
        }
    }
}

impl Job {
    fn name(&self) -> &'static str {
        if self.is_write { "write" } else { "read" }
    }

    /// Returns the result of `perform`. A panic becomes an error, because the task waits for one report of each job.
    fn or_lost(&self, perform: impl FnOnce() -> Done) -> Done {
        let done = catch_unwind(AssertUnwindSafe(perform));
        done.unwrap_or_else(|_| Done { name: self.name(), at: now(), lasted: Nanos(0), result: Err(lost()) })
    }

    fn perform(&self, block: &mut Block, content: &mut Random) -> Done {
        let name = self.name();
        let buffer = if self.is_write { block.fresh(self.length, content) } else { block.first(self.length) };
        let at = now();
        let result = buffer.and_then(|buffer| {
            let done: io::Result<u64> = match self.is_write {
                true => self.file.write_all_at(buffer, self.offset).map(|()| self.length),
                false => self.file.read_at(buffer, self.offset).map(|got| got as u64),
            };
            done.map_err(|error| StepError::call(name, &self.path, error))
        });
        Done { name, at, lasted: until(at, now()), result }
    }
}

impl Hand<'_> {
    /// Starts a request as soon as fewer than `depth` are under way.
    pub(super) fn submit(
        &mut self,
        slot: Slot,
        is_write: bool,
        (offset, length): (u64, u64),
        depth: u64,
    ) -> Result<(), StepError> {
        self.until_under_way(depth.saturating_sub(1))?;
        let open = self.files.at(slot)?;
        let job = Job { file: open.file.clone(), path: open.path.clone(), is_write, offset, length };
        let flights = &mut self.flights;
        flights.under_way += 1;
        if (flights.threads.len() as u64) < flights.under_way {
            let (queue, reports, seed) = (flights.queue.clone(), flights.reports.clone(), self.content.number());
            let thread = Builder::new().stack_size(STACK).spawn(move || work(&queue, &reports, seed));
            flights.threads.push(thread.map_err(|error| StepError::call("clone", &job.path, error))?);
        }
        let sent = flights.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        if sent { Ok(()) } else { Err(lost()) }
    }

    /// Waits until at most `most` requests are under way, and measures the completed ones.
    pub(super) fn until_under_way(&mut self, most: u64) -> Result<(), StepError> {
        while self.flights.under_way > most {
            let Done { name, at, lasted, result } = self.flights.done.recv().map_err(|_| lost())?;
            self.flights.under_way -= 1;
            self.measures.took(name, at, lasted, result?);
        }
        Ok(())
    }
}

fn lost() -> StepError {
    StepError::Senseless("a request thread ended unexpectedly".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_panics_is_reported() {
        let file = Arc::new(File::open("/dev/zero").expect("every machine has it"));
        let job = Job { file, path: "/dev/zero".to_owned(), is_write: false, offset: 0, length: 512 };
        let done = job.or_lost(|| panic!("as a bug would"));
        let why = done.result.expect_err("it did not read").to_string();
        assert_eq!((done.name, why.as_str()), ("read", "a request thread ended unexpectedly"));
        let read = job.or_lost(|| job.perform(&mut Block::default(), &mut Random::new(1)));
        assert_eq!(read.result.expect("/dev/zero can be read"), 512);
    }
}
