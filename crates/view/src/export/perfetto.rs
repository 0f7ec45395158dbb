// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording in the Trace Event format that Perfetto and Chrome open (ui.perfetto.dev): a track for every
//! cgroup, device and task, so that a stall can be looked at beside what caused it. What was added up over an
//! interval is drawn from its beginning, as long as it took; levels are counters. Streaming.

use super::ExportError;
use floodline_record::id::{DevId, Entity, EntityId};
use floodline_record::record::{Event, Record, What};
use floodline_record::sample::Sample;
use floodline_record::traced::Who;
use floodline_record::traced::bytes::Submitted;
use floodline_record::units::Nanos;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

/// A group of tracks; its number is what the format calls a process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Machine = 1,
    Cgroups,
    Devices,
    Waits,
    Tasks,
}

impl Group {
    fn name(self) -> &'static str {
        match self {
            Group::Machine => "machine",
            Group::Cgroups => "cgroups",
            Group::Devices => "devices",
            Group::Waits => "waits for stable storage",
            Group::Tasks => "tasks of the workload",
        }
    }
}

/// A row of a track. A viewer drops slices of one row that overlap in part: what does not fit opens another.
struct Lane {
    tid: usize,
    /// Begin and end of its last slice, nanoseconds.
    last: Option<(u64, u64)>,
}

impl Lane {
    /// After the last slice, or exactly as long, which is drawn below it.
    fn fits(&self, slice: (u64, u64)) -> bool {
        self.last.is_none_or(|last| slice.0 >= last.1 || slice == last)
    }
}

/// Writes a recording as one JSON object.
pub struct PerfettoTrace<W: Write> {
    out: W,
    begun: bool,
    tracks: BTreeMap<(Group, String), Vec<Lane>>,
    /// Groups that are named already.
    groups: BTreeSet<Group>,
    /// How many rows there are.
    lanes: usize,
    cgroups: BTreeMap<u64, String>,
    entities: BTreeMap<EntityId, Entity>,
    disks: BTreeMap<DevId, String>,
}

impl<W: Write> PerfettoTrace<W> {
    /// Begins the object.
    pub fn new(out: W) -> PerfettoTrace<W> {
        PerfettoTrace {
            out,
            begun: false,
            tracks: BTreeMap::new(),
            groups: BTreeSet::new(),
            lanes: 0,
            cgroups: BTreeMap::new(),
            entities: BTreeMap::new(),
            disks: BTreeMap::new(),
        }
    }

    /// Writes what can be drawn of one record.
    ///
    /// # Errors
    ///
    /// Where writing fails.
    pub fn record(&mut self, record: &Record) -> Result<(), ExportError> {
        match record {
            Record::Entity(id, entity) => {
                match entity {
                    Entity::Cgroup { path, ino: Some(ino), .. } => {
                        self.cgroups.insert(*ino, path.to_string());
                    }
                    Entity::Disk { dev, name } => {
                        self.disks.insert(*dev, name.to_string());
                    }
                    _ => {}
                }
                self.entities.insert(*id, entity.clone());
                Ok(())
            }
            Record::Sample(sample) => self.levels(sample),
            Record::Event(event) => self.event(event),
            Record::Facts(_) | Record::Gap(_) => Ok(()),
        }
    }

    /// Ends the object.
    ///
    /// # Errors
    ///
    /// Where writing fails.
    pub fn finish(mut self) -> Result<(), ExportError> {
        if !self.begun {
            self.out.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n")?;
        }
        self.out.write_all(b"\n]}\n")?;
        Ok(self.out.flush()?)
    }

    fn event(&mut self, event: &Event) -> Result<(), ExportError> {
        let at = event.at;
        match &event.what {
            What::Throttled(one) => {
                let name = format!("throttled: {}", process(&one.who));
                let more = json!({"pauses": one.pauses, "longest_ms": millis(one.longest_lasted()),
                    "paused_ms": millis(one.lasted()), "domain": one.domain.name(), "device": one.bdi.to_string()});
                let track = self.cgroup(one.who.cgroup_ino);
                self.slice(Group::Cgroups, track, &name, one.since, within(one.since, at, one.lasted()), more)
            }
            What::Flushed(one) => {
                let more = json!({"rounds": one.rounds, "sync_rounds": one.sync_rounds, "pages": one.pages.0,
                    "cgroup": self.cgroup(one.wb_cgroup_ino)});
                let lasted = within(one.since, at, one.busy_ns);
                let name = format!("flusher: {}", one.reason);
                self.slice(Group::Devices, one.bdi.to_string(), &name, one.since, lasted, more)
            }
            What::InodesSwitched(one) => {
                let more = json!({"inodes": one.switched, "queued": one.queued, "to": self.cgroup(one.new_cgroup_ino)});
                let track = self.cgroup(one.old_cgroup_ino);
                let lasted = Nanos(one.last_at.0.saturating_sub(one.first_at.0));
                self.slice(Group::Cgroups, track, "inodes move away", one.first_at, lasted, more)
            }
            What::CgroupRemoved(one) => {
                let track = self.cgroup(one.cgroup_ino);
                self.instant(Group::Cgroups, track, &format!("removed: {}", one.path), at)
            }
            What::SlowSync(one) => {
                let more = json!({"device": one.device, "queued_bytes": one.queued, "own_bytes": one.own.0});
                let begin = Nanos(at.0.saturating_sub(one.lasted.0));
                self.slice(Group::Waits, process(&one.who), one.operation.name(), begin, one.lasted, more)
            }
            What::Submitted(one) => self.queued(at, one),
            What::Dirtied(one) => {
                let file = one.file.as_ref().and_then(|file| file.path.as_ref()).map(ToString::to_string);
                let name = format!("dirtied: {}", file.as_deref().unwrap_or("small files"));
                let more = json!({"bytes": one.bytes.0, "redirtied_bytes": one.redirtied.0, "folios": one.folios,
                    "by": process(&one.who), "device": one.device});
                let track = self.cgroup(one.who.cgroup_ino);
                self.slice(Group::Cgroups, track, &name, one.since, within(one.since, at, Nanos(u64::MAX)), more)
            }
            What::Cancelled(one) => {
                let file = one.file.as_ref().and_then(|file| file.path.as_ref()).map(ToString::to_string);
                let name = format!("dropped: {}", file.as_deref().unwrap_or("small files"));
                let more = json!({"bytes": one.bytes.0, "dirtied_by": process(&one.who), "device": one.device});
                let track = self.cgroup(one.who.cgroup_ino);
                self.slice(Group::Cgroups, track, &name, one.since, within(one.since, at, Nanos(u64::MAX)), more)
            }
            What::Synced(one) => {
                let name = format!("{}: {}", one.operation.name(), process(&one.who));
                let more = json!({"count": one.count, "total_ms": millis(one.total),
                    "longest_ms": millis(one.longest)});
                let track = self.cgroup(one.who.cgroup_ino);
                self.slice(Group::Cgroups, track, &name, one.since, within(one.since, at, one.total), more)
            }
            What::ForeignDirtied(one) => {
                let more = json!({"folios": one.folios, "last_ino": one.last_ino,
                    "owner": self.cgroup(one.wb_cgroup_ino), "device": one.bdi.to_string()});
                let track = self.cgroup(one.page_cgroup_ino);
                let lasted = within(one.since, at, Nanos(u64::MAX));
                self.slice(Group::Cgroups, track, "dirtied in others' inodes", one.since, lasted, more)
            }
            What::ForeignFlushed(one) => {
                let more = json!({"flushes": one.flushes, "device": one.bdi.to_string()});
                let track = self.cgroup(one.cgroup_ino);
                let lasted = within(one.since, at, Nanos(u64::MAX));
                self.slice(Group::Cgroups, track, "others' flushers asked", one.since, lasted, more)
            }
            What::TaskStall { task, operation, lasted } => {
                let track = format!("{}[{}]", task.task, task.copy);
                self.slice(Group::Tasks, track, operation, at, *lasted, json!({}))
            }
            What::WorkloadStarted { scenario, variant } => {
                self.instant(Group::Machine, "workload".into(), &format!("{scenario}, {variant} starts"), at)
            }
            What::WorkloadEnded => self.instant(Group::Machine, "workload".into(), "workload ends", at),
            _ => Ok(()),
        }
    }

    /// Dirty pages of the machine and of the cgroups that have any.
    fn levels(&mut self, sample: &Sample) -> Result<(), ExportError> {
        let at = sample.time.monotonic;
        let host = &sample.host;
        let machine = [("dirty", host.mem_dirty), ("writeback", host.mem_writeback)];
        for (name, bytes) in machine.into_iter().filter_map(|(name, bytes)| Some((name, bytes?.0))) {
            self.counter(Group::Machine, name, at, bytes)?;
        }
        for (id, row) in sample.cgroups.rows() {
            let Some(Entity::Cgroup { path, .. }) = self.entities.get(id) else { continue };
            let name = format!("dirty {path}");
            // A level that was drawn is drawn down to 0 too.
            if let Some(dirty) = row.file_dirty
                && (dirty.0 > 0 || self.tracks.contains_key(&(Group::Cgroups, name.clone())))
            {
                self.counter(Group::Cgroups, &name, at, dirty.0)?;
            }
        }
        Ok(())
    }

    /// Bytes queued in an interval, drawn on the device as long as it lasted.
    fn queued(&mut self, at: Nanos, one: &Submitted) -> Result<(), ExportError> {
        let disk = self.disks.get(&one.disk).cloned().unwrap_or_else(|| one.disk.to_string());
        let file = one.file.as_ref().and_then(|file| file.path.as_ref()).map(ToString::to_string);
        let class = serde_json::to_value(one.class).map_err(std::io::Error::from)?;
        let name = format!("queued: {}", file.as_deref().or(class.as_str()).unwrap_or("bytes"));
        let more =
            json!({"bytes": one.bytes.0, "bios": one.bios, "cgroup": one.cgroup_ino.map(|ino| self.cgroup(ino))});
        let lasted = Nanos(at.0.saturating_sub(one.since.0));
        self.slice(Group::Devices, format!("{disk} writes"), &name, one.since, lasted, more)
    }

    fn cgroup(&self, ino: u64) -> String {
        let unnamed = || if ino == 1 { "/".to_owned() } else { format!("cgroup {ino}") };
        self.cgroups.get(&ino).cloned().unwrap_or_else(unnamed)
    }

    fn slice(
        &mut self,
        group: Group,
        track: String,
        name: &str,
        begin: Nanos,
        lasted: Nanos,
        more: Value,
    ) -> Result<(), ExportError> {
        let tid = self.lane(group, track, (begin.0, begin.0.saturating_add(lasted.0)))?;
        self.write(&json!({"ph": "X", "pid": group as u32, "tid": tid, "name": name, "ts": micros(begin),
            "dur": micros(lasted), "args": more}))
    }

    fn instant(&mut self, group: Group, track: String, name: &str, at: Nanos) -> Result<(), ExportError> {
        let tid = self.track(group, track)?;
        self.write(&json!({"ph": "i", "s": "t", "pid": group as u32, "tid": tid, "name": name, "ts": micros(at)}))
    }

    fn counter(&mut self, group: Group, name: &str, at: Nanos, bytes: u64) -> Result<(), ExportError> {
        self.track(group, name.to_owned())?;
        self.write(&json!({"ph": "C", "pid": group as u32, "name": name, "ts": micros(at), "args": {"bytes": bytes}}))
    }

    /// The number of a track's first row, which is named when it first comes.
    fn track(&mut self, group: Group, track: String) -> Result<usize, ExportError> {
        match self.tracks.get(&(group, track.clone())).and_then(|lanes| lanes.first()) {
            Some(first) => Ok(first.tid),
            None => self.open(group, track),
        }
    }

    /// The row of a track for a slice from begin to end.
    fn lane(&mut self, group: Group, track: String, slice: (u64, u64)) -> Result<usize, ExportError> {
        let lanes = self.tracks.get_mut(&(group, track.clone()));
        if let Some(lane) = lanes.and_then(|lanes| lanes.iter_mut().find(|lane| lane.fits(slice))) {
            lane.last = Some(slice);
            return Ok(lane.tid);
        }
        let tid = self.open(group, track.clone())?;
        let lanes = self.tracks.get_mut(&(group, track));
        if let Some(lane) = lanes.and_then(|lanes| lanes.last_mut()) {
            lane.last = Some(slice);
        }
        Ok(tid)
    }

    /// Another row of a track, named.
    fn open(&mut self, group: Group, track: String) -> Result<usize, ExportError> {
        if self.groups.insert(group) {
            let name = json!({"name": group.name()});
            self.write(&json!({"ph": "M", "name": "process_name", "pid": group as u32, "args": name}))?;
        }
        self.lanes += 1;
        let tid = self.lanes;
        let name = json!({"name": track});
        self.write(&json!({"ph": "M", "name": "thread_name", "pid": group as u32, "tid": tid, "args": name}))?;
        self.tracks.entry((group, track)).or_default().push(Lane { tid, last: None });
        Ok(tid)
    }

    fn write(&mut self, value: &Value) -> Result<(), ExportError> {
        let before: &[u8] = match std::mem::replace(&mut self.begun, true) {
            true => b",\n",
            false => b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n",
        };
        self.out.write_all(before)?;
        Ok(crate::json::write(&mut self.out, value).map_err(std::io::Error::from)?)
    }
}

fn process(who: &Who) -> String {
    format!("{}[{}]", who.comm, who.pid)
}

/// The format counts in microseconds.
fn micros(time: Nanos) -> f64 {
    time.0 as f64 / 1e3
}

fn millis(time: Nanos) -> f64 {
    time.0 as f64 / 1e6
}

/// A sum of several tasks or rounds may be longer than the interval it is of; a slice is not.
fn within(since: Nanos, until: Nanos, lasted: Nanos) -> Nanos {
    Nanos(lasted.0.min(until.0.saturating_sub(since.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::traced::waits::{Operation, SlowSync};
    use floodline_record::units::Bytes;

    fn trace(records: &[Record]) -> Value {
        let mut text = Vec::new();
        let mut trace = PerfettoTrace::new(&mut text);
        for record in records {
            trace.record(record).unwrap();
        }
        trace.finish().unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    fn slow(pid: u32, at: u64, lasted: u64) -> Record {
        let what = What::SlowSync(SlowSync {
            who: Who { pid, comm: "redis".into(), cgroup_ino: 7 },
            tid: None,
            operation: Operation::Fdatasync,
            lasted: Nanos(lasted),
            device: None,
            file: None,
            queued: None,
            own: Bytes(5),
        });
        Record::Event(Event { at: Nanos(at), what })
    }

    #[test]
    fn nothing_is_an_object_too() {
        assert_eq!(trace(&[])["traceEvents"], json!([]));
    }

    #[test]
    fn a_wait_is_drawn_from_its_beginning_on_a_track_that_is_named_once() {
        let drawn = trace(&[slow(41, 9_000, 2_000), slow(41, 12_000, 500)]);
        let events = drawn["traceEvents"].as_array().unwrap();
        let of = |ph: &str| events.iter().filter(|event| event["ph"] == ph).collect::<Vec<_>>();
        assert_eq!(
            of("M").iter().map(|event| event["args"]["name"].as_str().unwrap()).collect::<Vec<_>>(),
            ["waits for stable storage", "redis[41]"]
        );
        let slices = of("X");
        assert_eq!(
            (&slices[0]["name"], &slices[0]["ts"], &slices[0]["dur"]),
            (&json!("fdatasync"), &json!(7.0), &json!(2.0))
        );
        assert_eq!(slices[0]["tid"], slices[1]["tid"]);
    }

    #[test]
    fn slices_that_overlap_in_part_are_in_rows_of_their_own() {
        let drawn = trace(&[slow(41, 9_000, 4_000), slow(41, 12_000, 5_000), slow(41, 13_000, 500)]);
        let slices = drawn["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
        let rows: Vec<_> = slices.map(|slice| slice["tid"].as_u64().unwrap()).collect();
        assert_eq!(rows, [1, 2, 1]);
    }

    #[test]
    fn the_levels_of_a_machine_are_counters() {
        let records = floodline_testkit::Fixture::healthy().seconds(2).records();
        let drawn = trace(&records);
        let counters = drawn["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "C");
        assert_eq!(counters.filter(|event| event["name"] == "dirty").count(), 3);
    }
}
