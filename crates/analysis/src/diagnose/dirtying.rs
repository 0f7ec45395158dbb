// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dirtied bytes as rules see them: their amount, the part dirtied again, and the process and file with most of them.
//! From the events of a tracer; files of /proc contain bytes per process only.

use crate::ledger::credit::FileKey;
use crate::ledger::names::Names;
use crate::report::Evidence;
use floodline_record::human;
use floodline_record::name::Name;
use floodline_record::record::What;
use floodline_record::traced::File;
use floodline_record::traced::bytes::Dirtied;
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use std::collections::BTreeMap;

/// Source of the numbers, as evidence names it.
pub const SOURCE: &str = "trace of writeback_dirty_folio";

/// Bytes dirtied by some tasks, added up.
#[derive(Debug)]
pub struct Dirtying<'a> {
    names: Names<'a>,
    /// Bytes.
    pub bytes: u64,
    /// The part of these bytes that had been dirtied before.
    pub redirtied: u64,
    processes: BTreeMap<u32, (Name, u64)>,
    files: BTreeMap<FileKey, u64>,
}

impl Dirtying<'_> {
    /// Share of the bytes that had been dirtied before, at most 1.0, which is all; `None` without bytes. A tracer may count a few too
    /// many: see [`floodline_record::traced::bytes::Dirtied::redirtied`].
    pub fn redirtied_share(&self) -> Option<f64> {
        self.counted_share().map(|share| share.min(1.0))
    }

    /// The same in words: "46 %", "nearly all".
    pub fn redirtied_part(&self) -> Option<String> {
        self.counted_share().map(human::part)
    }

    fn counted_share(&self) -> Option<f64> {
        (self.bytes > 0).then(|| self.redirtied as f64 / self.bytes as f64)
    }

    /// The process with most of the bytes: `dd[41] (97 %)`; `None` without bytes.
    pub fn most_by(&self) -> Option<String> {
        let (pid, (comm, bytes)) = self.processes.iter().max_by_key(|(pid, (_, bytes))| (*bytes, **pid))?;
        Some(format!("{comm}[{pid}] ({})", self.share(*bytes)))
    }

    /// The file with most of the bytes, `/srv/image (97 %)`, or the number of files where none has a hundredth of them;
    /// `None` without bytes.
    pub fn most_in(&self) -> Option<String> {
        let (file, bytes) = self.files.iter().max_by_key(|(key, bytes)| (**bytes, **key))?;
        Some(match bytes.saturating_mul(100) < self.bytes {
            true => format!("{} files", self.files.len()),
            false => format!("{} ({})", self.names.file(*file), self.share(*bytes)),
        })
    }

    fn share(&self, bytes: u64) -> String {
        human::percent(bytes as f64 / self.bytes.max(1) as f64)
    }

    /// The amount and the part that had been dirtied before, as evidence about `whose` data.
    pub fn evidence(&self, whose: &str) -> Vec<Evidence> {
        let mut rows = vec![Evidence::bytes(format!("Became dirty, {whose}"), self.bytes, SOURCE)];
        rows.extend(self.redirtied_share().map(|share| Evidence::share("of it had been dirty before", share, SOURCE)));
        rows
    }
}

/// Returns the bytes dirtied by the wanted tasks in the wanted files; `None` when they were not traced. The closure
/// receives the end of the interval they were counted in.
pub fn dirtying<'a>(window: &'a Window, wanted: impl Fn(Nanos, &Dirtied) -> bool) -> Option<Dirtying<'a>> {
    let mut sum = Dirtying {
        names: Names::of(window),
        bytes: 0,
        redirtied: 0,
        processes: BTreeMap::new(),
        files: BTreeMap::new(),
    };
    for event in &window.events {
        let What::Dirtied(dirtied) = &event.what else { continue };
        // A file named once keeps its name, even if named in rows that are not wanted.
        sum.names.learn(dirtied.device, dirtied.file.as_ref());
        if !wanted(event.at, dirtied) {
            continue;
        }
        let bytes = dirtied.bytes.0;
        sum.bytes = sum.bytes.saturating_add(bytes);
        sum.redirtied = sum.redirtied.saturating_add(dirtied.redirtied.0);
        let of_process = sum.processes.entry(dirtied.who.pid).or_insert_with(|| (dirtied.who.comm.clone(), 0));
        of_process.1 = of_process.1.saturating_add(bytes);
        let key = (dirtied.device, dirtied.file.as_ref().map(File::inode));
        let of_file = sum.files.entry(key).or_default();
        *of_file = of_file.saturating_add(bytes);
    }
    window.traced.contains("bytes").then_some(sum)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use floodline_record::id::DevId;
    use floodline_record::traced::Who;
    use floodline_record::units::Bytes;
    use floodline_testkit::Fixture;

    /// Process, its cgroup, inode, its path, bytes and those of them dirtied again, as a tracer records them.
    pub(crate) fn dirtied((pid, cgroup_ino, ino, path, bytes, redirtied): (u32, u64, u64, &str, u64, u64)) -> What {
        What::Dirtied(Dirtied {
            since: Nanos(0),
            who: Who { pid, comm: "dd".into(), cgroup_ino },
            device: DevId { major: 8, minor: 0 },
            file: Some(File { ino, generation: None, path: Some(path.into()) }),
            bytes: Bytes(bytes),
            folios: bytes / 4096,
            redirtied: Bytes(redirtied),
        })
    }

    #[test]
    fn most_of_it_is_told_by_process_and_file() {
        let events = vec![dirtied((41, 7, 100, "/a", 1000, 900)), dirtied((42, 9, 101, "/b", 3000, 0))];
        let window = Fixture::healthy().traced(&["bytes"], events).window();
        let all = dirtying(&window, |_, _| true).unwrap();
        assert_eq!((all.bytes, all.redirtied_share()), (4000, Some(0.225)));
        assert_eq!(all.redirtied_part().as_deref(), Some("22 %"));
        let over = Fixture::healthy().traced(&["bytes"], vec![dirtied((41, 7, 100, "/a", 1000, 1050))]).window();
        let over = dirtying(&over, |_, _| true).unwrap();
        assert_eq!((over.redirtied_share(), over.redirtied_part().as_deref()), (Some(1.0), Some("nearly all")));
        assert_eq!(all.most_by().as_deref(), Some("dd[42] (75 %)"));
        assert!(all.most_in().unwrap().ends_with("/b (75 %)"), "{:?}", all.most_in());
        let many = (0..101).map(|n| dirtied((41, 7, n, "/file", 1000, 0))).collect();
        let many = Fixture::healthy().traced(&["bytes"], many).window();
        assert_eq!(dirtying(&many, |_, _| true).unwrap().most_in().as_deref(), Some("101 files"));
        let of_one = dirtying(&window, |_, dirtied| dirtied.who.cgroup_ino == 7).unwrap();
        assert_eq!((of_one.bytes, of_one.redirtied), (1000, 900));
        let elsewhere = DevId { major: 9, minor: 9 };
        assert_eq!(dirtying(&window, |_, dirtied| dirtied.device == elsewhere).unwrap().most_by(), None);
    }

    #[test]
    fn without_a_tracer_nothing_is_said() {
        assert!(dirtying(&Fixture::healthy().window(), |_, _| true).is_none());
    }
}
