// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of a task in flight at once: each is a thread that reads or writes and ends, like the threads of QEMU
//! (`aio=threads`) and the I/O workers of databases.

use super::{Failed, Hand};
use crate::block::Way;
use crate::engine::{Ticket, suspend};
use crate::process::{Sleeper, may_block};
use crate::sync;
use crate::syscalls::{self, Readahead};
use floodline_scenario::program::Slot;
use std::cell::RefCell;
use std::rc::Rc;

/// A completed request.
#[derive(Debug)]
struct Done {
    name: &'static str,
    began: u64,
    ended: u64,
    bytes: u64,
    failed: Option<String>,
}

/// Requests of one thread of a task.
#[derive(Debug, Default)]
pub(super) struct Flights {
    under_way: u64,
    done: Vec<Done>,
    /// The thread, while it waits for one of them.
    waiting: Option<Ticket>,
}

impl Hand<'_> {
    /// Starts a request as soon as fewer than `depth` are in flight.
    pub(super) async fn submit(
        &mut self,
        slot: Slot,
        is_write: bool,
        (offset, length): (u64, u64),
        depth: u64,
    ) -> Result<(), Failed> {
        self.until_under_way(depth.saturating_sub(1)).await?;
        let open = self.at(slot)?;
        let (inode, is_direct, is_dsync, path) = (open.file.inode, open.is_direct, open.is_dsync, open.path.clone());
        // A read ends at the end of the file.
        let there = self.sim.w().inodes[inode].size.saturating_sub(offset);
        let length = if is_write { length } else { length.min(there) };
        self.flights.borrow_mut().under_way += 1;
        let (sim, pid, flights) = (self.sim.clone(), self.pid, self.flights.clone());
        self.sim.spawn("a request of a task", false, async move {
            sim.w().sleeps_as(sim.current_process(), Sleeper::Task(pid));
            let began = sim.now();
            let name = if is_write { "write" } else { "read" };
            let way = if is_write { Way::Write } else { Way::Read };
            let done = match (is_direct, is_write) {
                (true, _) => syscalls::direct(&sim, pid, inode, offset, length, way).await.map_err(str::to_owned),
                (false, true) => {
                    let wrote = syscalls::write(&sim, pid, inode, Some(offset), length).await;
                    wrote.map(|_| ()).map_err(|why| why.to_string())
                }
                (false, false) => {
                    let mut ahead = Readahead::default();
                    let got = syscalls::read(&sim, pid, inode, &mut ahead, offset, length).await;
                    ahead.leave(&mut sim.w(), inode);
                    got.map(|_| ()).map_err(|_| syscalls::OUT_OF_MEMORY.to_owned())
                }
            };
            if is_write && is_dsync && done.is_ok() {
                may_block(&sim, pid, sync::write_sync(&sim, inode, offset, length)).await;
            }
            let failed = done.err().map(|why| format!("{name} {path}: {why}"));
            let mut world = sim.w();
            let mut flights = flights.borrow_mut();
            flights.under_way -= 1;
            flights.done.push(Done { name, began, ended: world.now, bytes: length, failed });
            if let Some(ticket) = flights.waiting.take() {
                world.wake(ticket);
            }
        });
        Ok(())
    }

    /// Waits until at most `most` requests are in flight, and measures those that completed.
    pub(super) async fn until_under_way(&mut self, most: u64) -> Result<(), Failed> {
        loop {
            let done = std::mem::take(&mut self.flights.borrow_mut().done);
            for Done { name, began, ended, bytes, failed } in done {
                if let Some(why) = failed {
                    return Err(why.into());
                }
                self.measures.took(name, began, ended, bytes);
            }
            {
                let mut flights = self.flights.borrow_mut();
                if flights.under_way <= most {
                    return Ok(());
                }
                flights.waiting = Some(self.sim.ticket("requests under way"));
            }
            suspend().await;
        }
    }
}

/// Creates the state of a thread without requests in flight.
pub(super) fn none() -> Rc<RefCell<Flights>> {
    Rc::default()
}
