// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ring on disk: a folder of recordings, newest at full rate, older ones thinned to a sample every 10 and every 60
//! seconds, and incidents. All files together never exceed the limit, the one being written included; incidents take at
//! most half of it. Files: `ring-NUMBER-RUN-STEP.flr`, `incident-TIME.{flr,json,txt}`.

use super::thin::Joined;
use crate::error::ServeError;
use floodline_record::units::Nanos;
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Seconds between two samples of each level; the first has all of them.
const STEPS: [u64; 3] = [0, 10, 60];

/// How many files of a level become one of the next.
const JOINED: usize = 8;

/// Share of the limit, in percent, above which a level is thinned.
const SHARES: [u64; 2] = [50, 25];

/// Smallest limit, bytes: below it not even a minute fits.
pub const LIMIT_MIN: u64 = 1 << 20;

/// One recording of the ring.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    number: u64,
    /// Number of the program's run that wrote it. Entity ids are consistent within one run.
    run: u64,
    level: usize,
    bytes: u64,
}

impl Part {
    fn name(&self) -> String {
        format!("ring-{:010}-{:06}-{}.flr", self.number, self.run, STEPS.get(self.level).copied().unwrap_or(0))
    }

    fn parse(name: &str, bytes: u64) -> Option<Part> {
        let mut fields = name.strip_prefix("ring-")?.strip_suffix(".flr")?.split('-');
        let (number, run, step) = (fields.next()?, fields.next()?, fields.next()?.parse::<u64>().ok()?);
        let level = STEPS.iter().position(|known| *known == step)?;
        let part = Part { number: number.parse().ok()?, run: run.parse().ok()?, level, bytes };
        (part.name() == name).then_some(part)
    }
}

/// The ring on disk.
#[derive(Debug)]
pub(crate) struct DiskRing {
    folder: PathBuf,
    limit: u64,
    run: u64,
    next: u64,
    parts: Vec<Part>,
    /// Files of incidents by name.
    incidents: BTreeMap<String, u64>,
    active: Option<(File, Part)>,
    /// Held during the life of the ring.
    _lock: File,
}

impl DiskRing {
    /// Opens a folder, which it makes where there is none, for this process alone. What an earlier run left is kept.
    pub(crate) fn open(folder: &Path, limit: u64) -> Result<DiskRing, ServeError> {
        if limit < LIMIT_MIN {
            return Err(ServeError::new("ring too small: the minimum is 1M")
                .usage()
                .hint("--ring-size 50M is the default"));
        }
        let failed = |what: &str, error: &io::Error| {
            ServeError::new(format!("cannot {what} the ring {}: {error}", shown(folder)))
                .hint("choose a writable folder: floodline serve --ring DIR")
        };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| failed("make", &error))?;
        let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(folder.join("lock"));
        let lock = lock.map_err(|error| failed("write to", &error))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive) == Err(rustix::io::Errno::WOULDBLOCK) {
            return Err(ServeError::new(format!("another floodline serve is writing to the ring {}", shown(folder)))
                .hint("give each its own folder: floodline serve --ring DIR"));
        }
        let mut ring = DiskRing {
            folder: folder.to_owned(),
            limit,
            run: 0,
            next: 0,
            parts: Vec::new(),
            incidents: BTreeMap::new(),
            active: None,
            _lock: lock,
        };
        ring.scan().map_err(|error| failed("read", &error))?;
        ring.make_room(0);
        ring.keep_incidents_within_half(0);
        Ok(ring)
    }

    fn scan(&mut self) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let Some(bytes) = entry.metadata().ok().filter(fs::Metadata::is_file).map(|file| file.len()) else {
                continue;
            };
            if name.ends_with(".tmp") && (name.starts_with("ring-") || name.starts_with("incident-")) {
                // Left by a run that was killed. Its source files are still there.
                let _ = fs::remove_file(entry.path());
            } else if let Some(part) = Part::parse(&name, bytes) {
                self.next = self.next.max(part.number + 1);
                self.run = self.run.max(part.run + 1);
                self.parts.push(part);
            } else if name.starts_with("incident-") {
                self.incidents.insert(name, bytes);
            }
        }
        self.parts.sort();
        Ok(())
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        let parts: u64 = self.parts.iter().map(|part| part.bytes).sum();
        parts + self.incident_bytes() + self.active.as_ref().map_or(0, |(_, part)| part.bytes)
    }

    /// Limit of these.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    fn incident_bytes(&self) -> u64 {
        self.incidents.values().sum()
    }

    /// Begins a file for a segment.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        self.end();
        let part = Part { number: self.next, run: self.run, level: 0, bytes: 0 };
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.folder.join(part.name()));
        self.next += 1;
        self.active = Some((file?, part));
        Ok(())
    }

    /// Appends to the current file. Returns false if there is no room even without all older files.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<bool> {
        if !self.make_room(bytes.len() as u64) {
            return Ok(false);
        }
        let Some((file, part)) = &mut self.active else { return Ok(false) };
        match file.write_all(bytes) {
            Ok(()) => {
                part.bytes += bytes.len() as u64;
                Ok(true)
            }
            Err(error) => {
                // A full disk takes a part of it: cut that off, so that the file ends with a whole frame.
                let whole = part.bytes;
                if file.set_len(whole).is_err() {
                    part.bytes = file.metadata().map_or(whole, |file| file.len());
                }
                Err(error)
            }
        }
    }

    /// Ends the file that was begun.
    pub(crate) fn end(&mut self) {
        if let Some((_, part)) = self.active.take() {
            match part.bytes {
                0 => self.remove(&part.name()),
                _ => self.parts.push(part),
            }
        }
    }

    fn remove(&self, name: &str) {
        // A file that cannot be removed is counted again when the folder is opened again.
        let _ = fs::remove_file(self.folder.join(name));
    }

    /// Deletes the oldest recordings until `more` bytes fit. Incidents are kept.
    fn make_room(&mut self, more: u64) -> bool {
        while self.bytes().saturating_add(more) > self.limit {
            let oldest = self.parts.iter().enumerate().min_by_key(|(_, part)| (part.number, part.run));
            let Some(at) = oldest.map(|(at, _)| at) else { return false };
            let part = self.parts.remove(at);
            self.remove(&part.name());
        }
        true
    }

    /// Deletes the oldest incidents until they and `more` bytes are at most half of the limit.
    fn keep_incidents_within_half(&mut self, more: u64) {
        while self.incident_bytes().saturating_add(more) > self.limit / 2
            && let Some(stem) = self.incidents.keys().next().map(|name| stem(name).to_owned())
        {
            let of_it: Vec<String> = self.incidents.keys().filter(|name| self::stem(name) == stem).cloned().collect();
            for name in of_it {
                self.remove(&name);
                self.incidents.remove(&name);
            }
        }
    }

    /// Thins what is older than its share of the limit allows: one step, so that a caller can go on with other things.
    pub(crate) fn thin(&mut self) -> io::Result<()> {
        for (level, share) in SHARES.iter().enumerate() {
            let of_level: Vec<Part> = self.parts.iter().filter(|part| part.level == level).cloned().collect();
            let bytes: u64 = of_level.iter().map(|part| part.bytes).sum();
            let Some(run) = of_level.first().map(|part| part.run) else { continue };
            let group: Vec<Part> = of_level.iter().take_while(|part| part.run == run).take(JOINED).cloned().collect();
            let is_whole = group.len() == JOINED || of_level.iter().any(|part| part.run != run);
            // Small rings are thinned too: what is older than that many files.
            let is_due = bytes > self.limit / 100 * share || of_level.len() >= 4 * JOINED;
            if is_due && is_whole {
                return self.join(&group, level + 1);
            }
        }
        Ok(())
    }

    fn join(&mut self, group: &[Part], level: usize) -> io::Result<()> {
        let Some(first) = group.first() else { return Ok(()) };
        let step = Nanos(STEPS.get(level).copied().unwrap_or(60) * Nanos::SECOND.0);
        let joined = || -> Result<Option<Vec<u8>>, Box<dyn std::error::Error>> {
            let mut joined = Joined::new(Some(step))?;
            for part in group {
                let file = BufReader::new(File::open(self.folder.join(part.name()))?);
                joined.add(file, (Nanos(0), Nanos(u64::MAX)), step, |_| {})?;
            }
            Ok(if joined.samples() > 0 { Some(joined.finish()?) } else { None })
        };
        let bytes =
            joined().ok().flatten().filter(|bytes| (bytes.len() as u64) < group.iter().map(|part| part.bytes).sum());
        let part = Part { level, bytes: bytes.as_ref().map_or(0, |bytes| bytes.len() as u64), ..first.clone() };
        // Both are on the disk for a moment: that must fit too.
        if let Some(bytes) = bytes.filter(|_| self.bytes().saturating_add(part.bytes) <= self.limit) {
            self.write_whole(&part.name(), &bytes)?;
            self.parts.push(part);
        }
        for part in group {
            self.remove(&part.name());
        }
        self.parts.retain(|part| !group.contains(part));
        self.parts.sort();
        Ok(())
    }

    /// Writes a file that is there whole or not at all, also after a loss of power.
    fn write_whole(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let temporary = self.folder.join(format!("{name}.tmp"));
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&temporary, self.folder.join(name))?;
            File::open(&self.folder)?.sync_all()
        };
        write().inspect_err(|_| {
            let _ = fs::remove_file(&temporary);
        })
    }

    /// Keeps a file of an incident, in place of an earlier one of that name. Answers false where it does not fit.
    pub(crate) fn keep(&mut self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        let length = bytes.len() as u64;
        if length > self.limit / 2 {
            return Ok(false);
        }
        // The replaced file stays until the new one is on the disk.
        self.keep_incidents_within_half(length);
        if !self.make_room(length) {
            return Ok(false);
        }
        self.write_whole(name, bytes)?;
        self.incidents.insert(name.to_owned(), length);
        Ok(true)
    }

    /// Names of the incidents, without endings.
    pub(crate) fn incident_names(&self) -> impl Iterator<Item = &str> {
        self.incidents.keys().map(|name| stem(name))
    }

    /// Returns its folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Wall clock of the oldest file, by when it was last written.
    pub(crate) fn oldest(&self) -> Option<std::time::SystemTime> {
        let first =
            self.parts.iter().map(Part::name).chain(self.active.as_ref().map(|(_, part)| part.name())).next()?;
        fs::metadata(self.folder.join(first)).ok()?.modified().ok()
    }
}

/// Name of an incident without the ending of one of its files.
fn stem(name: &str) -> &str {
    name.split_once('.').map_or(name, |(stem, _)| stem)
}

/// A path as it may be shown.
pub(crate) fn shown(path: &Path) -> floodline_record::name::Name {
    use std::os::unix::ffi::OsStrExt;
    floodline_record::name::Name::new(path.as_os_str().as_bytes())
}

#[cfg(test)]
mod tests;
