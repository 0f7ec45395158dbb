// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes: listed in every sample, with the files of each kept open. A kept file of a dead process
//! cannot be read any more, so a pid that is used again is never taken for its predecessor; the start
//! time names a process once and for all.

use super::Round;
use super::cgroups::Cgroups;
use super::gaps::Trouble;
use super::kept::{Kept, Reading};
use crate::parse::{pid_cgroup, pid_io, pid_stat};
use crate::root::{EntryKind, Fault, HostDir, HostFile, SMALL};
use floodline_core::gap::Source;
use floodline_core::id::{Entity, EntityId, Hierarchy};
use floodline_core::name::Name;
use floodline_core::sample::{ProcessRow, Sample, Table};
use floodline_core::units::Nanos;

/// CPU time between two samples from which on a kernel worker is worth a new name at once: its name
/// says what it is working on, and changes all the time.
const BUSY: u64 = 50_000_000;

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
    stime: Option<Nanos>,
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
        if !round.plan.needs.processes {
            return;
        }
        let proc = match self.list(round) {
            Ok(proc) => proc,
            Err(fault) => return round.gaps.add(Source::Processes, "", fault, None),
        };
        let mut rows = Vec::with_capacity(self.listed.len());
        let mut known = std::mem::take(&mut self.known).into_iter().peekable();
        self.known.reserve(self.listed.len());
        for &(pid, ino) in &self.listed {
            // Both lists are in order of pid; the known ones passed over have ended.
            while known.next_if(|process| process.pid < pid).is_some() {}
            let process = known.next_if(|process| process.pid == pid);
            let mut reader = Reader { round, proc: &proc, cgroups, pid };
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

    /// Lists pids in order.
    fn list(&mut self, round: &Round<'_>) -> Result<HostDir, Fault> {
        let proc = match self.proc.take() {
            Some(proc) => proc,
            None => round.root.dir(b"/proc")?,
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

/// A pid, if a name is one.
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
    pid: u32,
}

/// The directory of a process.
fn directory(proc: &HostDir, pid: u32) -> Result<HostDir, Fault> {
    proc.open_dir(pid.to_string().as_bytes())
}

/// A file of a process whose directory is not at hand.
fn open(proc: &HostDir, pid: u32, name: &[u8]) -> Result<HostFile, Fault> {
    directory(proc, pid)?.open_file(name)
}

impl Reader<'_, '_> {
    /// Whether it is the turn of this process for what is read now and then.
    fn is_due(&self) -> bool {
        self.round.is_due(u64::from(self.pid))
    }

    /// A process of the last sample. Nothing when it ended.
    fn again(&mut self, mut process: Process) -> Option<(Process, ProcessRow)> {
        let mut row = ProcessRow::default();
        let reading = Reading::small(self.round.descriptors, self.is_due());
        let read = process.stat.read(reading, self.round.buffer, || open(self.proc, self.pid, b"stat"));
        if read.is_err_and(Fault::is_gone) {
            // Its pid may be in use again already.
            return self.first(process.ino, None);
        }
        if let Err(fault) = read {
            self.round.gaps.add(Source::ProcessStat, "", fault, Some(process.id));
            return Some((process, row));
        }
        let (identity, parsed) = pid_stat::parse(self.round.buffer, &mut row);
        if identity.is_some_and(|identity| identity.start_ticks != process.start_ticks) {
            return self.first(process.ino, None);
        }
        let busy = row.stime.zip(process.stime).is_some_and(|(now, then)| now.0.saturating_sub(then.0) >= BUSY);
        let rename = identity.filter(|identity| identity.comm != process.comm.as_bytes());
        let mut changed = false;
        if let Some(identity) = rename
            && (!identity.kthread || busy || self.round.is_due(u64::from(self.pid)))
        {
            process.comm = Name::new(identity.comm);
            changed = true;
        }
        process.stime = row.stime;
        self.round.check(Source::ProcessStat, "", Some(process.id), parsed);
        let (proc, pid) = (self.proc, self.pid);
        self.io(&mut process.io, process.id, &mut row, || open(proc, pid, b"io"));
        if self.is_due() && !process.kthread {
            let cgroup = self.cgroup(open(proc, pid, b"cgroup"));
            changed |= cgroup.is_some() && cgroup != process.cgroup;
            process.cgroup = cgroup.or(process.cgroup);
        }
        if changed {
            self.round.out.push(floodline_core::record::Record::Entity(process.id, process.entity()));
        }
        Some((process, row))
    }

    /// A process not seen before, or one whose directory was made anew. Nothing when it is gone.
    fn first(&mut self, ino: u64, before: Option<Process>) -> Option<(Process, ProcessRow)> {
        let mut row = ProcessRow::default();
        let reading = Reading::small(self.round.descriptors, true);
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
        self.io(&mut io, id, &mut row, || dir.open_file(b"io"));
        let stime = row.stime;
        Some((Process { pid, ino, start_ticks, id, comm, kthread, cgroup, stime, stat, io }, row))
    }

    fn io(
        &mut self,
        io: &mut Kept,
        id: EntityId,
        row: &mut ProcessRow,
        open: impl FnOnce() -> Result<HostFile, Fault>,
    ) {
        let reading = Reading::small(self.round.descriptors, self.is_due());
        match io.read(reading, self.round.buffer, open) {
            Ok(()) => {
                let parsed = pid_io::parse(self.round.buffer, row);
                self.round.check(Source::ProcessIo, "", Some(id), parsed);
            }
            Err(fault) => self.round.gaps.add(Source::ProcessIo, "", fault, Some(id)),
        }
    }

    /// Its cgroup, where that is known.
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

impl Process {
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
