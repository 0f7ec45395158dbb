// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block devices: a queue of a given depth before a device with a bandwidth and a request rate, each way and both
//! together. A cap is a leaky bucket with some credit, like the throttle of a hypervisor. `media.rs` has devices
//! whose reads and writes share one time, `arm.rs` rotating disks. Mirrors /proc/diskstats and the waits of
//! block/blk-mq.c; the submitter decides which requests are merged.

use crate::arena::{BdiId, BlockId, CgId, InodeId};
use crate::arm::Arm;
use crate::blk_throttle::Throttle;
use crate::crypt::Crypt;
use crate::delay::Delay;
use crate::engine::{Sim, Waiters, suspend};
use crate::flush::Flushes;
use crate::found_disk::Moments;
use crate::hypervisor::{Joins, Lane, time_of};
use crate::loop_device::LoopFile;
use crate::media::{Media, Streams};
use crate::process::io_schedule;
use crate::raid1::Mirror;
use crate::stripes::Stack;
use crate::turns::Turns;
use crate::wbt::Wbt;
use crate::world::World;
use crate::write_cache::WriteCache;
use floodline_record::id::DevId;

/// Pages of 4 KiB in one bio (`BIO_MAX_VECS`).
pub(crate) const BIO_PAGES: u64 = 256;

/// Kind of request, for its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Not from the page cache: reads, direct writes, flushes.
    Exempt,
    /// A buffered write of high priority: one that a task waits for (`WB_SYNC_ALL`), or metadata of XFS.
    Urgent,
    /// A buffered write of no special kind.
    Normal,
    /// A buffered write of background or periodic writeback.
    Background,
}

/// Direction of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Read,
    Write,
    Flush,
}

/// Number of ways.
pub(crate) const WAYS: usize = 3;

/// Action on completion of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// Completes a part of one written range, in this cell of [`Ioends`].
    Writeback(u32),
    /// Wakes the process that waits in this cell of [`Completions`](crate::completions::Completions).
    Complete(u32),
    /// Completes the part of one array member, in this cell of [`R1bios`](crate::raid1::R1bios).
    R1bio(u32),
    /// Completes the write of encrypted copies, in this cell of [`CryptWrites`](crate::crypt::CryptWrites).
    Crypt(u32),
    /// Completes the requests that joined in a plug, in this cell of [`Plugs`](crate::plug::Plugs).
    Joined(u32),
    /// Completes the request of a loop device, of this number there.
    Loop(BlockId, u32),
    /// Nothing: no process waits for it.
    Nothing,
}

/// A worker of the block layer that has to be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worker {
    /// Releases requests that limits of cgroups held back.
    Throttle(BlockId),
    /// Does the requests of one cgroup to a loop device.
    Loop(BlockId, CgId),
    /// Encrypts, decrypts and writes for a device of dm-crypt.
    Crypt(BlockId),
    /// Submits the requests that device-mapper delays.
    Delay(BlockId),
}

impl Worker {
    /// Starts the worker's process.
    pub(crate) fn spawn(self, sim: &Sim) {
        match self {
            Worker::Throttle(device) => {
                sim.spawn("blk-throttle", true, crate::blk_throttle::dispatcher(sim.clone(), device));
            }
            Worker::Loop(device, of) => {
                sim.spawn("loop", true, crate::loop_device::worker(sim.clone(), device, of));
            }
            Worker::Delay(device) => sim.spawn("kdelayd", true, crate::delay::worker(sim.clone(), device)),
            Worker::Crypt(device) => {
                let cpus = sim.w().cpus.max(1);
                for _ in 0..cpus {
                    sim.spawn("kcryptd", true, crate::crypt::worker(sim.clone(), device));
                }
                sim.spawn("dmcrypt_write", true, crate::crypt::writer(sim.clone(), device));
            }
        }
    }
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) way: Way,
    /// Place on the device, pages. Only loop devices and rotating disks use it; see [`device_page`].
    pub(crate) at: u64,
    pub(crate) bytes: u64,
    pub(crate) class: Class,
    /// Number of bios merged into it.
    pub(crate) merged: u64,
    /// Whether it is a later part of one bio or call, which was split.
    pub(crate) goes_on: bool,
    pub(crate) cgroup: CgId,
    pub(crate) done: Done,
}

impl Request {
    /// Whether writeback throttling counts it: a write from the page cache, or a flush that a task asks for by itself.
    pub(crate) fn is_throttled(&self) -> bool {
        self.way != Way::Read && self.class != Class::Exempt
    }
}

/// Counters of `/proc/diskstats`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DiskStats {
    pub(crate) ios: [u64; WAYS],
    pub(crate) merged: [u64; WAYS],
    pub(crate) bytes: [u64; WAYS],
    pub(crate) time: [u64; WAYS],
    pub(crate) io_time: u64,
    pub(crate) weighted: u64,
    since: u64,
}

/// A block device.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) name: String,
    pub(crate) dev: DevId,
    pub(crate) bdi: Option<BdiId>,
    pub(crate) size: u64,
    pub(crate) rotational: bool,
    /// Seek model of a rotating disk, if its times are known.
    pub(crate) arm: Option<Arm>,
    /// As the kernel spells it. It only lets reads go before writes that the device does not hold yet.
    pub(crate) scheduler: String,
    pub(crate) depth: u32,
    pub(crate) latency: u64,
    /// Time of a read, if it is known apart.
    pub(crate) read_latency: Option<u64>,
    /// Whether writes complete in a volatile cache (`queue/write_cache`). A stacked device has what its members have.
    pub(crate) is_write_back: bool,
    /// Time to flush its cache, if not that of any request; and bytes per second that leave the cache then, 0 if
    /// they take no time.
    pub(crate) flush_latency: Option<u64>,
    pub(crate) flush_bandwidth: u64,
    /// Bytes in its cache that are not flushed.
    unflushed: u64,
    pub(crate) flushes: Flushes,
    /// Its speed from moment to moment, where a recording tells it.
    pub(crate) moments: Moments,
    /// Nanoseconds that each request in flight adds to the latency of the next one.
    pub(crate) queued_latency: u64,
    /// The write cache that a scenario configures.
    pub(crate) write_cache: Option<WriteCache>,
    pub(crate) read: Lane,
    pub(crate) write: Lane,
    /// Caps of both ways together.
    pub(crate) total: Turns,
    /// Set if a hypervisor joins requests that it finds together.
    pub(crate) joins: Option<Joins>,
    /// Set if reads and writes share the device's time.
    pub(crate) media: Option<Media>,
    /// Speed of one sequential reader, if lower than the device's.
    pub(crate) streams: Option<Streams>,
    /// The members of an array.
    pub(crate) mirrors: Vec<Mirror>,
    /// Layout of the array on its members.
    pub(crate) stack: Option<Stack>,
    /// Set if device-mapper delays its requests.
    pub(crate) delay: Option<Delay>,
    /// Set if dm-crypt encrypts it.
    pub(crate) crypt: Option<Crypt>,
    /// The file of a loop device.
    pub(crate) loop_file: Option<LoopFile>,
    /// Limits of cgroups on it.
    pub(crate) throttle: Throttle,
    pub(crate) wbt: Wbt,
    pub(crate) stats: DiskStats,
    pub(crate) in_flight: u32,
    waiters: Waiters,
    requests: Vec<(Request, u64)>,
    free: Vec<u32>,
    /// Bytes and requests by cgroup number, read and written; none for a cgroup without requests.
    by_cgroup: Vec<Option<[u64; 4]>>,
}

impl Block {
    pub(crate) fn new(name: &str, dev: DevId) -> Block {
        Block {
            name: name.to_owned(),
            dev,
            bdi: None,
            size: 1 << 30,
            rotational: false,
            arm: None,
            scheduler: "none".to_owned(),
            depth: 256,
            latency: 0,
            read_latency: None,
            is_write_back: true,
            flush_latency: None,
            flush_bandwidth: 0,
            unflushed: 0,
            flushes: Flushes::default(),
            moments: Moments::default(),
            queued_latency: 0,
            write_cache: None,
            read: Lane::default(),
            write: Lane::default(),
            total: Turns::default(),
            joins: None,
            media: None,
            streams: None,
            mirrors: Vec::new(),
            stack: None,
            delay: None,
            crypt: None,
            loop_file: None,
            throttle: Throttle::default(),
            wbt: Wbt::off(),
            stats: DiskStats::default(),
            in_flight: 0,
            waiters: Waiters::default(),
            requests: Vec::new(),
            free: Vec::new(),
            by_cgroup: Vec::new(),
        }
    }

    /// Bytes and requests of a cgroup, read and written.
    pub(crate) fn of_cgroup(&self, cgroup: CgId) -> Option<&[u64; 4]> {
        self.by_cgroup.get(cgroup.0 as usize)?.as_ref()
    }

    /// Whether all its requests are in use.
    pub(crate) fn is_full(&self) -> bool {
        self.in_flight >= self.depth
    }

    /// Brings the time counters up to a moment.
    pub(crate) fn account(&mut self, now: u64) {
        let passed = now.saturating_sub(self.stats.since);
        if self.in_flight > 0 {
            self.stats.io_time += passed;
            self.stats.weighted += passed * u64::from(self.in_flight);
        }
        self.stats.since = now;
    }

    /// Starts a request. Returns the time of its completion and its number.
    fn start(&mut self, now: u64, request: &Request) -> (u64, u32) {
        let (start, latency) = if request.way == Way::Flush {
            let bytes = std::mem::take(&mut self.unflushed);
            let takes = if self.flush_bandwidth == 0 { 0 } else { time_of(bytes, self.flush_bandwidth) };
            let drained = self.write_cache.as_mut().map_or(now, |cache| cache.flush(now));
            let latency = self.moments.time(now, self.flush_latency.unwrap_or(self.latency), true);
            (drained.max(now.saturating_add(takes)), latency)
        } else {
            let queued = self.queued_latency.saturating_mul(self.in_flight.into());
            let latency = self.read_latency.filter(|_| request.way == Way::Read).unwrap_or(self.latency);
            let latency = self.moments.time(now, latency, false);
            (self.transfer(now, request), latency.saturating_add(queued))
        };
        (start.saturating_add(latency), self.admit(now, request))
    }

    /// Starts a read or a write. Returns the time at which it is transferred.
    fn transfer(&mut self, now: u64, request: &Request) -> u64 {
        let is_idle = self.in_flight == 0;
        let joins = self.joins.as_mut().is_some_and(|joins| joins.is_joined(now, request));
        let lane = if request.way == Way::Read { &mut self.read } else { &mut self.write };
        let mut at = match (&mut self.arm, &mut self.media) {
            (Some(arm), _) => arm.serve(now, request, lane, is_idle),
            (None, Some(media)) => media.serve(now, request.way, lane.time(request.bytes)),
            (None, None) => lane.serve(now, request.bytes, joins),
        };
        if self.total.is_limited() {
            at = at.max(self.total.serve(now, request.way == Way::Write, request.bytes, joins));
        }
        if let (Way::Write, Some(cache)) = (request.way, &mut self.write_cache) {
            at = cache.take(at, request.bytes);
        }
        match (request.way, &mut self.streams) {
            (Way::Read, Some(streams)) => at = at.max(streams.serve(now, request)),
            (Way::Write, _) if self.arm.is_none() => self.unflushed = self.unflushed.saturating_add(request.bytes),
            _ => {}
        }
        at
    }

    /// Whether its limits are those of a hypervisor.
    pub(crate) fn has_credit(&self) -> bool {
        let lanes = [&self.read, &self.write, &self.total.lane];
        self.arm.is_none() && self.media.is_none() && lanes.iter().any(|lane| lane.credit > 0)
    }

    /// Returns a request in flight.
    pub(crate) fn request(&self, slot: u32) -> Request {
        self.requests[slot as usize].0
    }

    /// Counts a request and gives it a number.
    #[inline]
    pub(crate) fn admit(&mut self, now: u64, request: &Request) -> u32 {
        self.account(now);
        self.in_flight += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.requests.push((*request, now));
            u32::try_from(self.requests.len() - 1).unwrap_or(u32::MAX)
        });
        self.requests[slot as usize] = (*request, now);
        if request.way == Way::Read && self.wbt.target > 0 {
            self.wbt.read_issue(now);
        }
        slot
    }
}

/// Place of an inode's page on its device: each page has its own and keeps it.
pub(crate) fn device_page(inode: InodeId, page: u64) -> u64 {
    (u64::from(inode.0) << 28) + page
}

/// Reason for which a queue does not accept a request yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A place among the buffered writes (see `wbt`).
    Wbt,
    /// A free request.
    Request,
    /// The queues of an array's members: the array has no queue of its own.
    Members,
}

/// Submits a request to a device. Returns when the queue has accepted it or a limit of its cgroup holds it back,
/// which may be long before it completes.
pub(crate) async fn submit(sim: &Sim, device: BlockId, request: Request) {
    let entry = sim.w().submit_now(device, &request);
    if let Some(entry) = entry {
        enter(sim, device, &request, entry).await;
    }
}

/// Waits until a queue, or those of an array's members, accept a request.
pub(crate) async fn enter(sim: &Sim, device: BlockId, request: &Request, entry: Entry) {
    match entry {
        Entry::Members => crate::raid1::make_request(sim, device, request).await,
        Entry::Wbt | Entry::Request => enter_queue(sim, device, request, entry).await,
    }
}

/// Waits until the queue of a device that has one accepts a request.
pub(crate) async fn enter_queue(sim: &Sim, device: BlockId, request: &Request, entry: Entry) {
    if entry == Entry::Wbt {
        crate::wbt::wait(sim, device, request.class).await;
    }
    while !sim.w().take_request(device, request) {
        wait_for_request(sim, device).await;
    }
}

/// Waits until a device has a free request.
pub(crate) async fn free_request(sim: &Sim, device: BlockId) {
    while sim.w().blocks[device].is_full() {
        wait_for_request(sim, device).await;
    }
}

async fn wait_for_request(sim: &Sim, device: BlockId) {
    let free = sim.wait("a free request of a device", |world| &mut world.blocks[device].waiters);
    io_schedule(sim, free).await;
}

/// Submits a request to a device and waits for its completion.
pub(crate) async fn submit_and_wait(sim: &Sim, device: BlockId, request: Request, waits: &'static str) {
    // The ticket of this process changes with every sleep, so the request completes into a cell of its own.
    submit_all_and_wait(sim, device, &[request], waits).await;
}

/// Submits requests to a device, each as soon as its queue accepts it, and waits until all complete.
pub(crate) async fn submit_all_and_wait(sim: &Sim, device: BlockId, requests: &[Request], waits: &'static str) {
    let mut slots = Vec::with_capacity(requests.len());
    for request in requests {
        let slot = sim.w().completions.open();
        submit(sim, device, Request { done: Done::Complete(slot), ..*request }).await;
        slots.push(slot);
    }
    for slot in slots {
        completed(sim, slot, waits).await;
    }
    woken(sim).await;
}

/// Waits for a cell of `completions`, and frees it.
pub(crate) async fn completed(sim: &Sim, slot: u32, waits: &'static str) {
    io_schedule(sim, async {
        loop {
            {
                let mut world = sim.w();
                if world.completions.is_done(slot) {
                    world.completions.close(slot);
                    break;
                }
                let ticket = sim.ticket(waits);
                world.completions.wait(slot, ticket);
            }
            suspend().await;
        }
    })
    .await;
}

/// Uses the CPU time that waiting for a request costs.
pub(crate) async fn woken(sim: &Sim) {
    let cost = {
        let mut world = sim.w();
        let cost = world.costs.request;
        world.memory.cpu_system += cost;
        cost
    };
    crate::cpu::run(sim, cost).await;
}

impl World {
    /// Submits a request to a device. Returns what the caller has to wait for, if anything.
    pub(crate) fn submit_now(&mut self, device: BlockId, request: &Request) -> Option<Entry> {
        if request.way == Way::Flush && !self.has_volatile_cache(device) {
            // The kernel completes it at once: it is neither counted nor limited (`submit_bio_noacct`).
            self.request_done(device, request, request.done);
            return None;
        }
        self.account_bio(device, request);
        if self.hold_back(device, request) {
            return None;
        }
        self.enter_now(device, request)
    }

    /// Whether a device, or a member of it, has a volatile cache.
    pub(crate) fn has_volatile_cache(&self, device: BlockId) -> bool {
        let block = &self.blocks[device];
        match block.mirrors.is_empty() {
            true => block.is_write_back,
            false => block.mirrors.iter().any(|mirror| self.has_volatile_cache(mirror.device)),
        }
    }

    /// Submits a request that no limit holds back before the queue. Returns what the caller has to wait for, if
    /// anything.
    pub(crate) fn enter_now(&mut self, device: BlockId, request: &Request) -> Option<Entry> {
        if self.encrypts(device, request.way) {
            self.crypt_write(device, request);
            return None;
        }
        if !self.blocks[device].mirrors.is_empty() {
            return Some(Entry::Members);
        }
        if self.holds(device, request) {
            return None;
        }
        self.enter_disk(device, request)
    }

    /// Submits a request to the queue of a disk. Returns what the caller has to wait for, if anything.
    pub(crate) fn enter_disk(&mut self, device: BlockId, request: &Request) -> Option<Entry> {
        if !self.wbt_admits(device, request) {
            return Some(Entry::Wbt);
        }
        (!self.take_request(device, request)).then_some(Entry::Request)
    }

    /// Puts a request into the queue of a device. Returns false if all its requests are in use.
    fn take_request(&mut self, device: BlockId, request: &Request) -> bool {
        if request.way == Way::Flush {
            self.flush_insert(device, request);
            return true;
        }
        if self.blocks[device].is_full() {
            return false;
        }
        self.issue(device, request);
        true
    }

    /// Hands a request to a device.
    pub(crate) fn issue(&mut self, device: BlockId, request: &Request) {
        let now = self.now;
        let block = &mut self.blocks[device];
        if block.loop_file.is_some() {
            let slot = block.admit(now, request);
            self.loop_queue(device, request, slot);
            return;
        }
        let (at, slot) = block.start(now, request);
        self.queue.push_completion(at, device, request.way, slot);
    }

    /// Counts a bio in `io.stat`, at submission. A flush is a write without bytes.
    #[inline]
    pub(crate) fn account_bio(&mut self, device: BlockId, request: &Request) {
        let at = usize::from(request.way != Way::Read);
        let (rows, number) = (&mut self.blocks[device].by_cgroup, request.cgroup.0 as usize);
        if rows.len() <= number {
            rows.resize(number + 1, None);
        }
        let row = rows[number].get_or_insert_default();
        row[at] += request.bytes;
        row[2 + at] += 1;
    }

    /// Completes a request of a device.
    pub(crate) fn io_done(&mut self, device: BlockId, slot: u32) {
        let now = self.now;
        let block = &mut self.blocks[device];
        block.account(now);
        let (request, since) = block.requests[slot as usize];
        if request.way == Way::Write {
            if let Some(media) = &mut block.media {
                media.written();
            }
            if let Some(arm) = &mut block.arm {
                arm.written();
            }
        }
        block.free.push(slot);
        block.in_flight -= 1;
        let way = request.way as usize;
        block.stats.ios[way] += 1;
        block.stats.merged[way] += request.merged;
        block.stats.bytes[way] += request.bytes;
        block.stats.time[way] += now - since;
        let next = block.waiters.take_first();
        if let Some(ticket) = next {
            self.wake(ticket);
        }
        if self.settings.laptop_mode > 0 {
            self.laptop_io_completion(device);
        }
        let mut served = Vec::new();
        if request.way == Way::Flush {
            served = self.flush_end(device);
        }
        if served.is_empty() {
            // No flush, or that of an array, which its members share.
            self.wbt_done(device, &request, since);
            return self.request_done(device, &request, request.done);
        }
        for request in served {
            self.wbt_done(device, &request, since);
            self.request_done(device, &request, request.done);
        }
    }

    /// Wakes the tasks that wait for a completed request.
    fn request_done(&mut self, device: BlockId, request: &Request, done: Done) {
        match done {
            Done::Writeback(ioend) => self.ioend_done(ioend),
            Done::Complete(slot) => {
                let waiting = self.completions.complete(slot);
                self.wake_all(waiting);
            }
            Done::R1bio(cell) => self.r1bio_done(device, request, cell),
            Done::Crypt(cell) => self.crypt_written(cell),
            Done::Loop(above, slot) => self.io_done(above, slot),
            Done::Joined(cell) => {
                for done in self.plugs.completed(cell) {
                    self.request_done(device, request, done);
                }
            }
            Done::Nothing => {}
        }
    }
}
