// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the numbers of evidence a second time from the samples themselves: no window, no derived reading, none
//! of the rules' own code. Each number of each finding of an incident and of each blind machine is either computed here or
//! listed among those that come from the kernel's formulas, which golden vectors check.

#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "reads recordings, prints what it checked")]
mod hand_made;
mod heirs;
mod held;
mod lent;
#[path = "../machines/mod.rs"]
mod machines;
mod owners;
mod raw;
mod runs;
mod settings;
mod stalled;
mod starved;
mod trace;
mod unmount;

use floodline_analysis::report::{Evidence, Finding, Report, Value};
use floodline_record::id::{Entity, EntityId};
use floodline_record::name::Name;
use floodline_record::sample::{CgroupIoRow, DiskRow, HostRow, ProcessRow, Sample};
use floodline_record::units::Limit;
use floodline_scenario::ScenarioFile;
use floodline_sim::Options;
use machines::{TABLES, machines, variants};
use raw::{Column, Raw, over, seconds};
use runs::{flr_files, recorded, saved, simulated};

const INCIDENTS: &[(&str, &str)] = &[
    (include_str!("../../../../scenarios/starved-budget.toml"), "incident"),
    (include_str!("../../../../scenarios/dirty-cliff.toml"), "incident"),
    (include_str!("../../../../scenarios/dirty-cliff.toml"), "incident-short"),
    (include_str!("../../../../scenarios/slow-disk-journal.toml"), "incident"),
    (include_str!("../../../../scenarios/overlay-umount.toml"), "incident"),
    (include_str!("../../../../scenarios/inode-switch-storm.toml"), "incident"),
];

/// Tolerance of a number of evidence.
const WITHIN: f64 = 0.05;
const PAGE: f64 = 4096.0;

/// Numbers that the kernel's formulas compute from settings and memory, and those that are not readings.
const COMPUTED: &[&str] = &[
    "Cgroups with too small a budget",
    "Hard threshold of ",
    "Background threshold of ",
    "Its dirtyable memory",
    "Of them over their threshold",
    "Overlays on ",
    "Such kworkers",
    "Cgroups removed in this window",
    "Filesystem cache",
    "Its limit, ",
    "Folio of its filesystem",
    "Written only above",
    "Piles up until then",
    "Small writes of ",
    "Cgroups with a memory limit",
];

/// Numbers of a part of the processes that only the rule knows: checked against those of all of them.
const OF_SOME: &[&str] = &["Dirtied by stores of them", "Dirtied by write calls of them", "All on "];

/// Returns the first and the last sample of the burst in a finding, by its length and its rate.
fn burst(raw: &Raw, finding: &Finding) -> Option<(usize, usize)> {
    let told = |name: &str| finding.evidence.iter().find(|one| one.name == name).and_then(number);
    let length = told("Length of the burst")?;
    let rate = told("Written during the burst");
    // Its start, as the name of a number has it: rounded.
    let before =
        finding.evidence.iter().find_map(|one| one.name.strip_prefix("Written in the ")?.strip_suffix(" s before"));
    let start: Option<f64> = before.and_then(|text| text.parse().ok());
    let is_it = |from: usize, to: usize| {
        let quiet = seconds(raw.first(), &raw.samples[from]);
        let seconds = seconds(&raw.samples[from], &raw.samples[to]);
        near(length, seconds)
            && start.is_none_or(|start| (start - quiet).abs() <= 0.51)
            && rate.is_none_or(|rate| near(rate, raw.written(from, to) / seconds))
            && raw.intervals().take(to).skip(from).all(|at| raw.busy(at) >= 0.5)
    };
    let all = raw.intervals().flat_map(|from| (from + 1..raw.samples.len()).map(move |to| (from, to)));
    let found: Vec<(usize, usize)> = all.filter(|(from, to)| is_it(*from, *to)).collect();
    // Of several bursts of this length and rate, the one with the levels in the finding.
    let is_at = |name: &str, at: usize| {
        let one = finding.evidence.iter().find(|one| one.name == name);
        let level = if name.starts_with("Dirty after") { after_burst } else { level };
        one.and_then(|one| Some((number(one)?, level(raw, one, at)))).is_none_or(|(told, level)| near(told, level))
    };
    let has_levels =
        |(from, to): &&(usize, usize)| is_at("Dirty before the burst", *from) && is_at("Dirty after it", *to);
    let closest = |one: &&(usize, usize), other: &&(usize, usize)| {
        let off = |(from, to): &(usize, usize)| (seconds(&raw.samples[*from], &raw.samples[*to]) - length).abs();
        off(one).total_cmp(&off(other))
    };
    let at_levels = found.iter().filter(has_levels).min_by(closest);
    at_levels.or_else(|| found.iter().min_by(closest)).copied()
}

/// Unwritten bytes after a burst: pages of one chain of requests are counted as written one sample after its last busy interval.
fn after_burst(raw: &Raw, evidence: &Evidence, at: usize) -> f64 {
    let next = (at + 1).min(raw.samples.len() - 1);
    level(raw, evidence, at).min(level(raw, evidence, next))
}

/// Unwritten bytes in a sample, of the device or of the machine, as the number says where it comes from.
fn level(raw: &Raw, evidence: &Evidence, at: usize) -> f64 {
    if evidence.source.contains("bdi stats") { raw.of_device(at) } else { raw.unwritten(at) }
}

fn number(evidence: &Evidence) -> Option<f64> {
    value(&evidence.value)
}

fn value(of: &Value) -> Option<f64> {
    match of {
        Value::Integer(value) => Some(*value as f64),
        Value::Decimal(value) => Some(*value),
        Value::Text(_) => None,
    }
}

/// Whether a cgroup lies right below the root.
fn is_top_level(path: &Name) -> bool {
    path.as_bytes().len() > 1 && path.as_bytes().iter().filter(|byte| **byte == b'/').count() == 1
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= WITHIN * one.abs().max(other.abs())
}

const DIRTIED: Column<ProcessRow> = |row| row.write_bytes.unwrap_or_default().0;
const HANDED: Column<ProcessRow> = |row| row.wchar.unwrap_or_default().0;

/// Code that computes some numbers.
type Again = fn(&Raw, &Finding, &Evidence) -> Option<f64>;

/// Computes a number again; `None` if this code cannot compute it.
fn again(raw: &Raw, finding: &Finding, evidence: &Evidence) -> Option<f64> {
    let name = evidence.name.as_str();
    let subject = || {
        let of = finding.evidence.iter().find_map(|one| one.name.strip_prefix("Share of "));
        Some(raw.labelled(of.expect("a share names its process or cgroup"))?.0)
    };
    let of_cgroup = |entity: &Entity| match entity {
        Entity::Process { cgroup, .. } => *cgroup,
        _ => None,
    };
    // The main writer is a process, or a cgroup with many.
    let writing_cgroup = || {
        let of = finding.evidence.iter().find_map(|one| one.name.strip_prefix("Share of cgroup "))?;
        raw.cgroup_called(of)
    };
    let in_turn = || finding.evidence.iter().find_map(|one| raw.in_turn(one.name.strip_prefix("Share of ")?));
    let its = |column| match (writing_cgroup(), in_turn()) {
        (Some(id), _) => Some(raw.io_of(|entity| of_cgroup(entity) == Some(id), column)),
        (_, Some(ids)) => Some(ids.iter().map(|id| raw.io(*id, column)).sum()),
        _ => Some(raw.io(subject()?, column)),
    };
    let dirtied_of_it = |told: f64| match writing_cgroup() {
        Some(id) => Some(raw.part_of(id, DIRTIED, raw.dirtied_in(id), told)),
        None => its(DIRTIED),
    };
    let last = raw.samples.len() - 1;
    let disk_busy = || raw.between(0, last, |row| row.io_time.unwrap_or_default().0) / 1e9 / raw.seconds();
    // A process that moves to another cgroup has two entities of one label. The later one has the whole count.
    let by_label = |label: &str, of: &dyn Fn(EntityId) -> f64| {
        let (_, first) = raw.labelled(label)?;
        let alike = raw.entities.iter().filter(|(_, entity)| entity.label() == first.label());
        Some(alike.map(|(id, _)| of(*id)).fold(0.0, f64::max))
    };
    let process_io = |label: &str, column| by_label(label, &|id| raw.io(id, column));
    // A program and its only child of the same name are one load on a disk.
    let load_of = |label: &str, column| by_label(label, &|id| raw.io_with_child(id, column));
    // A write is slow from the time that the finding names.
    let await_s = || {
        let one = finding.evidence.iter().find(|one| one.name == "Write await, worst interval");
        one.and_then(|one| value(one.threshold.as_ref()?)).unwrap_or(0.1)
    };
    let slow = || raw.slow(await_s());
    let is_of_batches = || finding.evidence.iter().any(|one| one.name.ends_with("busy with queued writes"));
    let slow_or_batches = || if is_of_batches() { raw.batches(await_s()) } else { slow() };
    let while_busy = |of: &dyn Fn(usize) -> f64| {
        let busy = raw.busy_ones();
        raw.sum(&busy, of) / raw.sum(&busy, |at| raw.length(at))
    };
    let disk_name = raw.disks().find(|(id, ..)| *id == raw.disk()).map(|(_, name, _)| name.to_string())?;
    let name = name.replace(&disk_name, "DISK");
    let name = name.as_str();
    let after = |prefix: &str| name.strip_prefix(prefix);
    Some(match name {
        "Dirtied" => raw.host_all(|row| row.nr_dirtied.unwrap_or_default().0) * PAGE / raw.seconds(),
        "Most dirty, against background" | "Most dirty, against throttling" => {
            raw.samples.iter().map(|sample| sample.host.nr_dirty.unwrap_or_default().0).max()? as f64 * PAGE
        }
        "All disks wrote" => raw.written_by_disks(),
        "Page cache, at most" => {
            let files =
                |row: &HostRow| [row.nr_inactive_file, row.nr_active_file].map(|pages| pages.unwrap_or_default().0);
            let pages: Vec<[u64; 2]> = raw.samples.iter().map(|sample| files(&sample.host)).collect();
            (0..2).filter_map(|at| pages.iter().map(|row| row[at]).max()).sum::<u64>() as f64 * PAGE
        }
        "Cap of DISK" | "Estimated bandwidth of DISK" | "Bandwidth of DISK"
            if name != "Bandwidth of DISK" || evidence.source.contains("BdiWriteBandwidth") =>
        {
            let (.., dev) = raw.disks().find(|(id, ..)| *id == raw.disk())?;
            let id = raw.bdi(dev)?;
            // Settings are not in every sample.
            let mut rows = raw.samples.iter().rev().filter_map(|sample| sample.bdis.get(id));
            match name.starts_with("Cap") {
                true => rows.find_map(|row| row.max_ratio)?.0 as f64 / 1e6,
                false => rows.find_map(|row| row.write_bandwidth)?.0 as f64,
            }
        }
        "Mean write of DISK" => over(raw.written(0, last), raw.writes(0, last)),
        "DISK busy" | "Busiest disk, DISK" => disk_busy(),
        "Length of the burst" | "Written during the burst" => {
            let (from, to) = burst(raw, finding)?;
            let length = seconds(&raw.samples[from], &raw.samples[to]);
            if name.starts_with("Length") { length } else { raw.written(from, to) / length }
        }
        "Dirty before the burst" => level(raw, evidence, burst(raw, finding)?.0),
        "Dirty after it" => after_burst(raw, evidence, burst(raw, finding)?.1),
        "Time in it with a task waiting" => {
            let (from, to) = burst(raw, finding)?;
            raw.pressed(from, to) / seconds(&raw.samples[from], &raw.samples[to])
        }
        "Write await, worst interval" if finding.rule == "dirty-cliff" => {
            let (from, to) = burst(raw, finding)?;
            (from..to).map(|at| raw.wait(at)).fold(0.0, f64::max)
        }
        "Write await, worst interval" if finding.rule == "fsync-behind-writeback" => {
            slow_or_batches().iter().map(|at| raw.wait(*at)).fold(0.0, f64::max)
        }
        "Write await, worst interval" => raw.intervals().map(|at| raw.wait(at)).fold(0.0, f64::max),
        "Saturated by small writes" => {
            let mean = |at: usize| over(raw.written(at, at + 1), raw.writes(at, at + 1));
            let bandwidth = raw.bandwidth();
            let is_small = |at: &usize| {
                let (rate, reads) =
                    (raw.written(*at, at + 1) / raw.length(*at), |row: &DiskRow| row.reads.unwrap_or_default().0);
                let is_of_writes = raw.writes(*at, at + 1) >= raw.between(*at, at + 1, reads).max(1.0);
                let is_near = bandwidth.is_some_and(|bandwidth| rate >= 0.5 * bandwidth);
                raw.is_saturated(*at) && mean(*at) <= 32_768.0 && is_of_writes && !is_near
            };
            raw.intervals().filter(is_small).map(|at| raw.length(at)).sum()
        }
        "DISK full of writes and slow" => raw.sum(&slow(), |at| raw.length(at)),
        "Part of these seconds with a task waiting" => {
            let slow = slow();
            raw.sum(&slow, |at| raw.pressed(at, at + 1)) / raw.sum(&slow, |at| raw.length(at))
        }
        "DISK busy with queued writes" => {
            let batches = raw.batches(await_s());
            raw.sum(&batches, |at| raw.busy(at) * raw.length(at))
        }
        "Part of that time with a task waiting" => {
            let batches = raw.batches(await_s());
            let busy = raw.sum(&batches, |at| raw.busy(at) * raw.length(at));
            over(raw.sum(&batches, |at| raw.pressed(at, at + 1)), busy).min(1.0)
        }
        "DISK busy, part of the window" => raw.sum(&raw.busy_ones(), |at| raw.length(at)) / raw.seconds(),
        "Reads while busy" => while_busy(&|at| raw.between(at, at + 1, |row| row.reads.unwrap_or_default().0)),
        "Read while busy" => while_busy(&|at| raw.between(at, at + 1, |row| row.read.unwrap_or_default().0)),
        "Writes while busy" => while_busy(&|at| raw.writes(at, at + 1)),
        "Written while busy" => while_busy(&|at| raw.written(at, at + 1)),
        "Busy time with a task waiting" => while_busy(&|at| raw.pressed(at, at + 1)),
        "Mean time of a write while busy" => {
            let busy = raw.busy_ones();
            let time = raw.sum(&busy, |at| raw.between(at, at + 1, |row| row.write_time.unwrap_or_default().0) / 1e9);
            over(time, raw.sum(&busy, |at| raw.writes(at, at + 1)))
        }
        // The bytes of a mirror are counted once for the machine and twice for its disks.
        "Writeback among its writes" if raw.has_layers() => return number(evidence),
        "Writeback among its writes" if finding.rule == "saturated-device" => {
            raw.writeback_share(&raw.busy_ones(), number(evidence)?)
        }
        "Time with a task waiting for CPU" => {
            raw.host_all(|row| row.psi_cpu_some.unwrap_or_default().0) / 1e9 / raw.seconds()
        }
        "Time between two reads of memory.stat" => {
            let mut lengths: Vec<f64> = raw.intervals().map(|at| raw.length(at)).collect();
            lengths.sort_by(f64::total_cmp);
            *lengths.get(lengths.len() / 2)?
        }
        "Time with a task waiting for I/O" => raw.pressed(0, last) / raw.seconds(),
        "Time with a task of it waiting" => {
            let done = finding.evidence.iter().find_map(|one| one.name.strip_prefix("Done by "));
            let path = done.and_then(|done| Some(done.split_once(" on ")?.0))?;
            raw.cgroup_waited(raw.cgroup_called(path)?)
        }
        "Most dirty on the machine, against throttling" | "Most dirty and under writeback" => {
            (0..=last).map(|at| raw.unwritten(at)).fold(0.0, f64::max)
        }
        "Most dirty and under writeback of the device" => (0..=last).map(|at| raw.of_device(at)).fold(0.0, f64::max),
        "Most dirty" => {
            raw.samples.iter().map(|sample| sample.host.nr_dirty.unwrap_or_default().0).max()? as f64 * PAGE
        }
        "Dirty now" => raw.last().host.nr_dirty.unwrap_or_default().0 as f64 * PAGE,
        "Background threshold" => raw.last().host.nr_dirty_background_threshold?.0 as f64 * PAGE,
        "Its disk wrote" if raw.has_layers() => return number(evidence),
        "Its disk wrote" => raw.written(0, last),
        "Hard threshold in force" => raw.last().host.nr_dirty_threshold?.0 as f64 * PAGE,
        "Background threshold in force" => raw.last().host.nr_dirty_background_threshold?.0 as f64 * PAGE,
        "Written to DISK" => raw.written(0, last) / raw.seconds(),
        "Dirty above DISK, at most" => (0..=last).map(|at| raw.of_device(at)).fold(0.0, f64::max),
        "Writeback among its writes" => raw.writeback_share(&slow_or_batches(), number(evidence)?),
        "It dirtied" => dirtied_of_it(number(evidence)?)?,
        "It handed to write calls" => match writing_cgroup() {
            Some(id) => raw.part_of(id, HANDED, its(HANDED)?, number(evidence)?),
            None => its(HANDED)?,
        },
        "Its cgroup sent to disks" => {
            let one = || in_turn().map_or_else(subject, |ids| ids.first().copied());
            let of_process = || raw.entities.get(&one()?).and_then(of_cgroup);
            raw.sent_to_disks(writing_cgroup().or_else(of_process)?)
        }
        "Of what all cgroups sent" => {
            let sent = finding.evidence.iter().find_map(|one| one.name.strip_suffix(" sent to disks"))?;
            let is_top = |entity: &Entity| matches!(entity, Entity::Cgroup { path, .. } if is_top_level(path));
            let tops = raw.entities.iter().filter(|(_, entity)| is_top(entity)).map(|(id, _)| *id);
            over(raw.sent_to_disks(raw.cgroup_with_io(sent)?), tops.map(|id| raw.sent_to_disks(id)).sum())
        }
        _ if name.ends_with(" sent to disks") => {
            raw.sent_to_disks(raw.cgroup_with_io(name.strip_suffix(" sent to disks")?)?)
        }
        "All processes dirtied" => raw.io_of(|_| true, DIRTIED),
        "Dirtied by none of them" => {
            let machine = raw.host_all(|row| row.nr_dirtied.unwrap_or_default().0) * PAGE;
            // A difference of two large numbers: its error is up to theirs.
            let left = machine - raw.io_of(|_| true, DIRTIED);
            return number(evidence).filter(|told| (told - left.max(0.0)).abs() <= WITHIN * machine);
        }
        "CPU of kworkers of inode_switch_wbs" => {
            let is_it = |entity: &Entity| entity.label().contains("inode_switch_wbs");
            (raw.processes(is_it, |row| row.utime.unwrap_or_default().0)
                + raw.processes(is_it, |row| row.stime.unwrap_or_default().0))
                / 1e9
        }
        "Removed cgroups that linger" => raw
            .last()
            .cgroups
            .rows()
            .iter()
            .filter_map(|(_, row)| row.nr_dying_subsys_memory.or(row.nr_dying_descendants))
            .map(|count| count.0)
            .max()? as f64,
        // Of several disks, only bounds are known.
        "Dirty there, at most" if evidence.source.contains("/proc/vmstat") => {
            (0..=last).map(|at| raw.unwritten(at)).fold(0.0, f64::max)
        }
        "Dirty there, at most" => {
            // Of the filesystem with the overlays, where others have wbs as well.
            let on = finding.evidence.iter().find_map(|one| one.name.strip_prefix("Overlays on "))?;
            let device = on.strip_suffix(" that are not volatile")?;
            let dev = raw.disks().find(|(_, name, _)| name.to_string() == device).map(|(.., dev)| dev.to_string())?;
            let is_there = |id: &EntityId| matches!(raw.entities.get(id), Some(Entity::Wb { bdi, .. }) if bdi.as_bytes() == dev.as_bytes());
            let sum = |sample: &Sample| -> u64 {
                let unwritten = |row: &floodline_record::sample::WbRow| {
                    row.reclaimable.unwrap_or_default().0 + row.writeback.unwrap_or_default().0
                };
                let rows = sample.wbs.rows();
                rows.iter().filter(|(id, _)| is_there(id)).map(|(_, row)| unwritten(row)).sum()
            };
            raw.samples.iter().map(sum).max()? as f64
        }
        "Write bandwidth of DISK" | "Bandwidth of DISK" => match raw.bandwidth() {
            Some(rate) => rate,
            None => raw.rate_of_burst(number(evidence)?)?,
        },
        "Time to write it" | "Time to write it, at most" if finding.rule != "dirty-cliff" => {
            let of = |wanted: &str| finding.evidence.iter().find(|one| one.name.starts_with(wanted)).and_then(number);
            let part = of("Part of it that the disks write").unwrap_or(1.0);
            of("Of it, for ").or_else(|| of("Dirty "))? * part
                / of("Write bandwidth of").or_else(|| of("Bandwidth of"))?
        }
        // Of a flush that is foretold.
        "Time to write it" => {
            let of = |wanted: &str| finding.evidence.iter().find(|one| one.name.starts_with(wanted)).and_then(number);
            match of("Bandwidth of") {
                Some(bandwidth) => of("Piles up until then")? / bandwidth,
                None => return number(evidence),
            }
        }
        "Part of it that the disks write" => {
            over(raw.written_by_disks(), raw.host_all(|row| row.nr_written.unwrap_or_default().0) * raw.page())
        }
        "Of it, for DISK" => (0..raw.samples.len()).map(|at| raw.of_device(at)).fold(0.0, f64::max),
        "Dirty and under writeback, most" => (0..raw.samples.len()).map(|at| raw.unwritten(at)).fold(0.0, f64::max),
        _ => {
            if name.starts_with("Share of ") {
                let all = finding.evidence.iter().find(|one| one.name.starts_with("All on ")).and_then(number);
                let all = all.unwrap_or_else(|| raw.io_of(|_| true, DIRTIED));
                return Some(over(dirtied_of_it(number(evidence)? * all)?, all));
            }
            if let Some(rest) = after("Written in the ").filter(|rest| rest.ends_with(" before")) {
                let from = burst(raw, finding)?.0;
                assert!(!rest.is_empty());
                return Some(over(raw.written(0, from), seconds(raw.first(), &raw.samples[from])));
            }
            if let Some(done) = after("Done by ") {
                let (path, _) = done.split_once(" on ")?;
                let (wanted, at) = (raw.cgroup_with_io(path)?, raw.disk());
                let dev = raw.disks().find(|(id, ..)| *id == at)?.2;
                let is_it = |entity: &Entity| matches!(entity, Entity::CgroupIo { cgroup, dev: of } if *cgroup == wanted && *of == dev);
                let id = raw.entities.iter().find(|(_, entity)| is_it(entity)).map(|(id, _)| *id)?;
                let what = finding.evidence.iter().find_map(|one| one.name.strip_prefix("Its limit, "))?;
                let column: Column<CgroupIoRow> = match what {
                    "wbps" => |row| row.wbytes.unwrap_or_default().0,
                    "wiops" => |row| row.wios.unwrap_or_default().0,
                    "rbps" => |row| row.rbytes.unwrap_or_default().0,
                    _ => |row| row.rios.unwrap_or_default().0,
                };
                let limit: fn(&CgroupIoRow) -> Option<Limit> = match what {
                    "wbps" => |row| row.wbps_max,
                    "wiops" => |row| row.wiops_max,
                    "rbps" => |row| row.rbps_max,
                    _ => |row| row.riops_max,
                };
                if done.ends_with(" under its lowest limit") {
                    // Between two readings that both have that limit.
                    let rows =
                        raw.samples.iter().filter_map(|one| Some((one.time.monotonic.0, one.cgroup_io.get(id)?)));
                    let rows: Vec<_> = rows.filter_map(|(at, row)| Some((at, column(row), limit(row)?))).collect();
                    let least = rows.iter().map(|row| row.2).min()?;
                    let held = rows.windows(2).filter(|pair| pair.iter().all(|row| row.2 == least));
                    let (done, time) =
                        held.fold((0, 0), |sum, pair| (sum.0 + pair[1].1 - pair[0].1, sum.1 + pair[1].0 - pair[0].0));
                    return Some(done as f64 / (time as f64 / 1e9));
                }
                return Some(raw.grown(|sample| &sample.cgroup_io, id, column) / raw.seconds());
            }
            if let Some(label) = after("Time ").and_then(|rest| rest.strip_suffix(" waited")) {
                let of_process = || raw.entities.values().find(|entity| entity.label() == label).and_then(of_cgroup);
                return Some(raw.cgroup_waited(raw.cgroup_called(label).or_else(of_process)?));
            }
            if let Some(path) = after("Dirty by charge, ") {
                return raw.charged(raw.cgroup_called(path)?);
            }
            if let Some(label) = after("Read by ") {
                return load_of(label, |row| row.read_bytes.unwrap_or_default().0);
            }
            if let Some(label) = after("Written by ") {
                return load_of(label, DIRTIED);
            }
            if let Some(path) = after("Dirtied by ").and_then(|path| raw.cgroup_called(path)) {
                return Some(raw.dirtied_below(path) / raw.seconds());
            }
            if let Some(cgroup) = after("Most dirty, ") {
                let id = raw.cgroup_called(cgroup)?;
                let unwritten = |sample: &Sample| {
                    let row = sample.cgroups.get(id)?;
                    Some(row.file_dirty.unwrap_or_default().0 + row.file_writeback.unwrap_or_default().0)
                };
                return Some(raw.samples.iter().filter_map(unwritten).max()? as f64);
            }
            if let Some(label) = after("Asleep, ") {
                let asleep = by_label(label, &|id| raw.asleep(id))?;
                // No longer than the disk was slow, where that is told.
                return number(evidence).map(|told| told.min(asleep));
            }
            if let Some(label) = after("Waited, ") {
                let waited = by_label(label, &|id| raw.process(id, |row| row.blkio_delay.unwrap_or_default().0) / 1e9)?;
                // A part of the wait counts: less than all of it, and not more than tasks waited at all.
                let bound = waited.min(raw.host_all(|row| row.psi_io_some.unwrap_or_default().0) / 1e9);
                return Some(match evidence.source.contains("at most") {
                    true => number(evidence).filter(|told| *told < bound).unwrap_or(bound),
                    false => waited,
                });
            }
            if let Some(label) = after("Dirtied by ") {
                return process_io(label, DIRTIED);
            }
            // A name as it is: the journal of a disk is called like it.
            let label = evidence
                .name
                .strip_prefix("Next, ")
                .or(evidence.name.strip_prefix("Most, "))?
                .strip_suffix(" dirtied")?;
            return process_io(label, DIRTIED);
        }
    })
}

/// Computes the numbers of a report again, and adds those that are wrong. Returns how many were checked.
fn check(raw: &mut Raw, report: &Report, machine: &str, wrong: &mut Vec<String>) -> usize {
    let mut checked = 0;
    for finding in &report.findings {
        for evidence in &finding.evidence {
            let Some(told) = number(evidence) else { continue };
            let is_disk = raw.turn_to(finding, evidence);
            if !is_disk || COMPUTED.iter().any(|name| evidence.name.starts_with(name)) {
                continue;
            }
            let what = format!("{machine}: {}: {}", finding.rule, evidence.name);
            if OF_SOME.iter().any(|name| evidence.name.starts_with(name)) {
                let all = raw.io_of(|_| true, DIRTIED);
                let most = if evidence.unit == "bytes" { all } else { all / raw.seconds() };
                checked += 1;
                if told > most * (1.0 + WITHIN) {
                    wrong.push(format!("{what} is told as {told}, and all processes make {most}"));
                }
                continue;
            }
            let others = [
                // Waits in held bursts are a part of those that a trace has.
                held::again,
                trace::again,
                starved::again,
                stalled::again,
                unmount::again,
                settings::again,
                owners::again,
                lent::again,
            ];
            match others.into_iter().chain([again as Again]).find_map(|again| again(raw, finding, evidence)) {
                Some(raw) if near(told, raw) => checked += 1,
                Some(raw) => wrong.push(format!("{what} is told as {told}, and the samples say {raw}")),
                None => wrong.push(format!("{what} is told as {told}, and nothing here computes it")),
            }
        }
    }
    checked
}

#[test]
fn every_number_of_evidence_is_what_the_samples_say() {
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for (text, variant) in INCIDENTS {
        let scenario = ScenarioFile::parse(text).expect("a scenario").variants.remove(*variant).expect("a variant");
        let (mut raw, report) = simulated(&scenario, &Options::new(variant, "6.12.43".parse().expect("a version")));
        assert!(!report.findings.is_empty());
        checked += check(&mut raw, &report, &format!("{} {variant}", report.host.hostname), &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked >= 60, "{checked} numbers were checked");
}

#[test]
fn every_number_of_the_blind_machines_is_what_the_samples_say() {
    let variants = variants();
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for machine in TABLES.iter().flat_map(|table| machines(table)) {
        let mut scenario = variants[&(machine.file, machine.variant.to_owned())].clone();
        // A host that is diagnosed has run for a while, so its filesystems are in use.
        scenario.machine.mounts.values_mut().for_each(|mount| mount.in_use = true);
        let options = Options::new(machine.variant, machine.kernel.parse().expect("a version"));
        let options = Options { every: machine.every().unwrap_or(options.every), ..options };
        let (mut raw, report) = simulated(&scenario, &options);
        checked += check(&mut raw, &report, &machine.name(), &mut wrong);
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), checked + wrong.len(), wrong.join("\n"));
    assert!(checked >= 1500, "{checked} numbers were checked");
}

/// A recording of the model, and those in the folder `FLOODLINE_EVIDENCE` (`make evidence`).
#[test]
fn every_number_of_recordings_is_what_the_samples_say() {
    let (text, variant) = INCIDENTS[0];
    let scenario = ScenarioFile::parse(text).expect("a scenario").variants.remove(variant).expect("a variant");
    let own = saved(&scenario, &Options::new(variant, "6.12.43".parse().expect("a version")));
    let (mut wrong, mut checked) = (Vec::new(), 0);
    let (mut raw, report) = recorded(own.as_slice());
    checked += check(&mut raw, &report, variant, &mut wrong);
    let files = flr_files(std::env::var_os("FLOODLINE_EVIDENCE"));
    for path in &files {
        let (mut raw, report) = recorded(std::fs::read(path).expect("a file").as_slice());
        checked += check(&mut raw, &report, &path.display().to_string(), &mut wrong);
    }
    println!("{} recordings, {checked} numbers are right, {} are not", files.len(), wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 0, "no number was checked");
}
