// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes: listed in every sample, with the files of each kept open. A kept file of a dead process cannot be read
//! any more, so a reused pid is never taken for its predecessor. The start time identifies a process for good. I/O
//! counters are read in every sample. The costlier times and state are read in turns while a process sleeps, does no
//! I/O, and nothing in its cgroup is blocked.

use super::Round;
use super::cgroups::Cgroups;
use super::gaps::Trouble;
use super::kept::{Kept, Reading};
use crate::parse::{pid_cgroup, pid_io, pid_stat};
use crate::root::{EntryKind, Fault, HostDir, HostFile, HostRoot, SMALL};
use floodline_record::gap::Source;
use floodline_record::id::{Entity, EntityId, Hierarchy};
use floodline_record::name::Name;
use floodline_record::record::Record;
use floodline_record::sample::{ProcessRow, Sample, Table};
use floodline_record::units::Count;

/// CPU time between two samples, nanoseconds, from which on a new name of a kernel worker is recorded at once: its name
/// changes with its work.
const BUSY: u64 = 50_000_000;

/// Turns of single things between two reads of the cgroup of a process: processes hardly ever move.
const MOVES_EVERY: u64 = 6;

#[derive(Debug)]
struct Process {
    pid: u32,
    /// Inode number of its directory: another one means that the directory was made anew.
    ino: u64,
    start_ticks: u64,
    id: EntityId,
    comm: Name,
    kthread: bool,
    cgroup: Option<EntityId>,
    /// Whether it ran or was blocked when its stat was last read, or may do so unseen.
    awake: bool,
    /// Values that were last read.
    last: ProcessRow,
    stat: Kept,
    io: Kept,
}

/// The processes of the last sample, in order of pid.
#[derive(Debug, Default)]
pub(super) struct Processes {
    proc: Option<HostDir>,
    known: Vec<Process>,
    listed: Vec<(u32, u64)>,
}

impl Processes {
    /// Fills the table of processes.
    pub(super) fn read(&mut self, round: &mut Round<'_>, sample: &mut Sample, cgroups: Option<&Cgroups>) {
        let Some(proc) = self.proc.take() else { return };
        let anyone_blocked = sample.host.procs_blocked != Some(Count(0));
        let mut rows = Vec::with_capacity(self.listed.len());
        let mut known = std::mem::take(&mut self.known).into_iter().peekable();
        self.known.reserve(self.listed.len());
        for &(pid, ino) in &self.listed {
            // Both lists are in order of pid: known processes that are skipped have ended.
            while known.next_if(|process| process.pid < pid).is_some() {}
            let process = known.next_if(|process| process.pid == pid);
            let mut reader = Reader { round, proc: &proc, cgroups, anyone_blocked, pid };
            let process = match process {
                Some(process) if process.ino == ino => reader.again(process),
                before => reader.first(ino, before),
            };
            match process {
                Some((process, row)) => {
                    rows.push((process.id, row));
                    self.known.push(process);
                }
                None => round.gaps.add(Source::Processes, "", Trouble::Vanished, None),
            }
        }
        self.proc = Some(proc);
        sample.processes = Table::read(rows);
    }

    /// Lists the processes, and sets aside the descriptors they will need.
    pub(super) fn list(&mut self, round: &mut Round<'_>) {
        if !round.plan.needs.processes {
            return;
        }
        match self.list_pids(round.root) {
            Ok(proc) => self.proc = Some(proc),
            Err(fault) => round.gaps.add(Source::Processes, "", fault, None),
        }
        round.descriptors.set_aside(self.listed.len());
    }

    /// Lists pids in order.
    fn list_pids(&mut self, root: &HostRoot) -> Result<HostDir, Fault> {
        let proc = match self.proc.take() {
            Some(proc) => proc,
            None => root.dir(b"/proc")?,
        };
        self.listed.clear();
        proc.list(|entry| {
            if let (Some(pid), EntryKind::Dir | EntryKind::Unknown) = (pid(entry.name), entry.kind) {
                self.listed.push((pid, entry.ino));
            }
        })?;
        self.listed.sort_unstable();
        self.listed.dedup_by_key(|(pid, _)| *pid);
        Ok(proc)
    }
}

/// Parses a pid.
fn pid(name: &[u8]) -> Option<u32> {
    if name.first().is_none_or(|&b| b == b'0') {
        return None;
    }
    name.iter().try_fold(0_u32, |pid, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 { None } else { pid.checked_mul(10)?.checked_add(u32::from(digit)) }
    })
}

/// Reads the files of one process.
struct Reader<'a, 'round> {
    round: &'a mut Round<'round>,
    proc: &'a HostDir,
    cgroups: Option<&'a Cgroups>,
    /// Whether any task of the machine waits for I/O, or that is not known.
    anyone_blocked: bool,
    pid: u32,
}

/// Opens the directory of a process.
fn directory(proc: &HostDir, pid: u32) -> Result<HostDir, Fault> {
    proc.open_dir(pid.to_string().as_bytes())
}

/// Opens a file of a process by its path.
fn open(proc: &HostDir, pid: u32, name: &[u8]) -> Result<HostFile, Fault> {
    directory(proc, pid)?.open_file(name)
}

impl Reader<'_, '_> {
    /// Returns whether it is the turn of this process for the files that are read now and then.
    fn is_due(&self) -> bool {
        self.round.is_due(u64::from(self.pid))
    }

    /// Returns whether a process may be blocked: a task of the machine is, and its cgroup is not known to be calm.
    fn may_wait(&self, process: &Process) -> bool {
        let calm = |cgroup| self.cgroups.is_some_and(|cgroups| cgroups.is_calm(cgroup));
        self.anyone_blocked && !process.cgroup.is_some_and(calm)
    }

    /// Reads a process of the last sample. Returns `None` if it ended.
    fn again(&mut self, mut process: Process) -> Option<(Process, ProcessRow)> {
        let mut row = ProcessRow::default();
        let (proc, pid) = (self.proc, self.pid);
        let io = self.io(&mut process.io, process.id, &mut row, || open(proc, pid, b"io"));
        if io.is_err_and(|fault| fault.is_gone() && fault != Fault::NOT_FOUND) {
            // Its pid may be in use again already.
            return self.first(process.ino, Some(process));
        }
        let due = self.is_due();
        let active = io.is_err() || does_io(&process.last, &row);
        if due || active || process.awake || self.may_wait(&process) {
            let reading = Reading::small(self.round.descriptors.not_set_aside(), due);
            match process.stat.read(reading, self.round.buffer, || open(proc, pid, b"stat")) {
                Ok(()) => {}
                Err(fault) if fault.is_gone() => return self.first(process.ino, Some(process)),
                Err(fault) => {
                    self.round.gaps.add(Source::ProcessStat, "", fault, Some(process.id));
                    return Some((process, row));
                }
            }
            let (identity, parsed) = pid_stat::parse(self.round.buffer, &mut row);
            if identity.is_some_and(|identity| identity.start_ticks != process.start_ticks) {
                return self.first(process.ino, Some(process));
            }
            process.awake = is_awake(&process.last, &row) || process.is_worker();
            let comm = identity.map(|identity| identity.comm).filter(|comm| *comm != process.comm.as_bytes());
            if let Some(comm) = comm
                && (!process.kthread || due || is_busy(&process.last, &row))
            {
                process.comm = Name::new(comm);
                self.round.out.push(Record::Entity(process.id, process.entity()));
            }
            self.round.check(Source::ProcessStat, "", Some(process.id), parsed);
        }
        if self.round.is_due_of(u64::from(pid), MOVES_EVERY) && !process.kthread {
            let cgroup = self.cgroup(open(proc, pid, b"cgroup"));
            if cgroup.is_some() && cgroup != process.cgroup {
                process.cgroup = cgroup;
                self.round.out.push(Record::Entity(process.id, process.entity()));
            }
        }
        process.remember(&row);
        Some((process, row))
    }

    /// Reads a new process, or one whose directory was made anew. Returns `None` if it is gone.
    fn first(&mut self, ino: u64, before: Option<Process>) -> Option<(Process, ProcessRow)> {
        let mut row = ProcessRow::default();
        let reading = Reading::small(self.round.descriptors.not_set_aside(), true);
        let (mut stat, mut io) = (Kept::default(), Kept::default());
        let dir = directory(self.proc, self.pid);
        let read = dir.and_then(|dir| {
            stat.read(reading, self.round.buffer, || dir.open_file(b"stat"))?;
            Ok(dir)
        });
        let dir = match read {
            Ok(dir) => dir,
            Err(fault) => {
                if !fault.is_gone() {
                    self.round.gaps.add(Source::ProcessStat, "", fault, None);
                }
                return None;
            }
        };
        let (identity, parsed) = pid_stat::parse(self.round.buffer, &mut row);
        let identity = identity.map(|identity| (identity.start_ticks, identity.kthread, Name::new(identity.comm)));
        self.round.check(Source::ProcessStat, "", None, parsed);
        let (start_ticks, kthread, comm) = identity?;
        let before = before.filter(|before| before.start_ticks == start_ticks);
        let cgroup = self.cgroup(dir.open_file(b"cgroup"));
        let pid = self.pid;
        let known = before.as_ref().map(|before| before.id);
        let id = known.unwrap_or_else(|| {
            let entity = Entity::Process { pid, start_ticks, comm: comm.clone(), cgroup, kthread };
            self.round.describe(entity)
        });
        // If it ended between two reads, the next sample will not list it.
        let _ = self.io(&mut io, id, &mut row, || dir.open_file(b"io"));
        let (awake, last) = (true, row.clone());
        Some((Process { pid, ino, start_ticks, id, comm, kthread, cgroup, awake, last, stat, io }, row))
    }

    fn io(
        &mut self,
        io: &mut Kept,
        id: EntityId,
        row: &mut ProcessRow,
        open: impl FnOnce() -> Result<HostFile, Fault>,
    ) -> Result<(), Fault> {
        let reading = Reading::small(self.round.descriptors, self.is_due());
        let read = io.read(reading, self.round.buffer, open);
        match read {
            Ok(()) => {
                let parsed = pid_io::parse(self.round.buffer, row);
                self.round.check(Source::ProcessIo, "", Some(id), parsed);
            }
            Err(fault) if fault.is_gone() && fault != Fault::NOT_FOUND => {}
            Err(fault) => self.round.gaps.add(Source::ProcessIo, "", fault, Some(id)),
        }
        read
    }

    /// Returns the cgroup of the process, if known.
    fn cgroup(&mut self, file: Result<HostFile, Fault>) -> Option<EntityId> {
        let cgroups = self.cgroups?;
        if let Err(fault) = file.and_then(|file| file.read_piece(self.round.buffer, SMALL)) {
            if !fault.is_gone() || fault == Fault::NOT_FOUND {
                self.round.gaps.add(Source::ProcessCgroup, "", fault, None);
            }
            return None;
        }
        let path = match cgroups.hierarchy() {
            Hierarchy::V2 => pid_cgroup::unified(self.round.buffer),
            Hierarchy::V1Memory | Hierarchy::V1Blkio => pid_cgroup::v1(self.round.buffer, b"memory"),
        };
        match path {
            Ok(path) => cgroups.entity_at(path?),
            Err(flaw) => {
                self.round.gaps.add(Source::ProcessCgroup, "", flaw, None);
                None
            }
        }
    }
}

/// Returns whether a process called read or write, or dirtied a page, between two samples.
fn does_io(last: &ProcessRow, now: &ProcessRow) -> bool {
    let counters = |row: &ProcessRow| {
        (row.syscr, row.syscw, row.rchar, row.wchar, row.read_bytes, row.write_bytes, row.cancelled_write_bytes)
    };
    counters(last) != counters(now)
}

/// Returns whether a process runs, is blocked, or ran between two reads. `S` and `I` are the sleeping states.
fn is_awake(last: &ProcessRow, now: &ProcessRow) -> bool {
    let sleeps = [b'S', b'I'].map(|state| Some(Count(u64::from(state)))).contains(&now.state);
    !sleeps || (last.utime, last.stime) != (now.utime, now.stime)
}

/// Returns whether a process spent much time in the kernel between two reads.
fn is_busy(last: &ProcessRow, now: &ProcessRow) -> bool {
    now.stime.zip(last.stime).is_some_and(|(now, last)| now.0.saturating_sub(last.0) >= BUSY)
}

impl Process {
    /// Returns whether it is a kernel worker: its I/O is not counted, so its CPU time is read in every sample.
    fn is_worker(&self) -> bool {
        self.kthread && self.comm.as_bytes().starts_with(b"kworker/")
    }

    /// Keeps the values of this sample, and the previous ones of files that were not read.
    fn remember(&mut self, row: &ProcessRow) {
        let stat = if row.state.is_some() { row.clone() } else { std::mem::take(&mut self.last) };
        let ProcessRow { rchar, wchar, syscr, syscw, read_bytes, write_bytes, cancelled_write_bytes, .. } = *row;
        self.last = ProcessRow { rchar, wchar, syscr, syscw, read_bytes, write_bytes, cancelled_write_bytes, ..stat };
    }

    fn entity(&self) -> Entity {
        Entity::Process {
            pid: self.pid,
            start_ticks: self.start_ticks,
            comm: self.comm.clone(),
            cgroup: self.cgroup,
            kthread: self.kthread,
        }
    }
}
