// SPDX-License-Identifier: MIT OR Apache-2.0
//! The curves of a timeline combined into plots, each with its unit and the files it is read from, and the moments to
//! mark in them: where each finding is most visible, traced waits, missing samples.

use super::{Extent, Key, Timeline};
use crate::diagnose::{cgroup, device};
use crate::report::Finding;
use floodline_record::human;
use floodline_record::id::EntityId;
use floodline_record::record::What;
use floodline_record::traced::waits::Operation;
use floodline_record::window::Window;

/// Disks and cgroups with a curve of their own in a plot.
const LINES: usize = 8;
/// Waits of a trace that are marked: the longest.
const WAITS: usize = 10;

/// Unit of the values of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlotUnit {
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// A share of one.
    Share,
    /// Seconds.
    Seconds,
    /// A count.
    Count,
}

impl PlotUnit {
    /// A value for people, e.g. `12.3 MiB/s`.
    pub fn shown(self, value: f64) -> String {
        match self {
            PlotUnit::Bytes => human::bytes(value),
            PlotUnit::BytesPerSecond => human::bytes_per_second(value),
            PlotUnit::Share => human::percent(value),
            PlotUnit::Seconds => human::seconds(value),
            PlotUnit::Count => human::number(value),
        }
    }
}

/// Kind of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A measured quantity.
    Measured,
    /// A limit of the measured quantity.
    Threshold,
}

/// One curve of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its name (escaped).
    pub name: String,
    /// Whether it is measured or a limit.
    pub role: Role,
    /// Number of the stretch, and the readings in it, in order of time.
    pub points: Vec<(usize, Extent)>,
}

/// Curves over one axis of values.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// Short name, unique among the plots.
    pub id: &'static str,
    /// Title.
    pub title: &'static str,
    /// Files and keys it is read from.
    pub source: &'static str,
    /// Unit of the values.
    pub unit: PlotUnit,
    /// The curves.
    pub lines: Vec<Line>,
    /// Omissions, in words; empty without any.
    pub left_out: String,
}

/// A notable moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Seconds since the first sample.
    pub second: f64,
    /// Event at that moment (escaped).
    pub label: String,
}

/// Moment at which the condition of a rule is most visible.
enum Signal {
    /// The largest amount of unwritten data.
    Unwritten,
    /// The longest write at a disk.
    Await,
    /// The longest operation wait in a trace, or else the longest write.
    Wait(&'static [Operation]),
    /// The largest share of the time with a task waiting for I/O.
    Waiting,
}

fn signal(rule: &str) -> Signal {
    use Operation::{Fdatasync, Fsync, Range, Sync, SyncFilesystem};
    match rule {
        "dirty-cliff" | "dirty-data-at-risk" | "contradictory-dirty-settings" => Signal::Unwritten,
        "saturated-device" | "buffered-loop-device" | "dominant-writer" => Signal::Await,
        "fsync-behind-writeback" => Signal::Wait(&[Fsync, Fdatasync, Range]),
        "overlay-umount-flush" => Signal::Wait(&[Sync, SyncFilesystem]),
        _ => Signal::Waiting,
    }
}

impl Timeline {
    /// The plots that have curves.
    pub fn plots(&self, window: &Window) -> Vec<Plot> {
        let measured = |key, name: &str| self.line(key, name, Role::Measured);
        let limit = |key, name: &str| self.line(key, name, Role::Threshold);
        let plot = |id, title, source, unit, lines: Vec<Option<Line>>| Plot {
            id,
            title,
            source,
            unit,
            lines: lines.into_iter().flatten().collect(),
            left_out: String::new(),
        };
        let mut plots = vec![
            plot(
                "dirty",
                "Unwritten data of the machine against its thresholds",
                "/proc/vmstat nr_dirty + nr_writeback, nr_dirty_background_threshold, nr_dirty_threshold",
                PlotUnit::Bytes,
                vec![
                    measured(Key::Unwritten, "dirty and under writeback"),
                    measured(Key::Writeback, "under writeback"),
                    limit(Key::Background, "background threshold: the flusher starts"),
                    limit(Key::Freerun, "freerun ceiling: writers begin to be paused"),
                    limit(Key::Hard, "hard threshold: writers are stopped"),
                ],
            ),
            plot(
                "rates",
                "Data dirtied and written back",
                "/proc/vmstat nr_dirtied, nr_written",
                PlotUnit::BytesPerSecond,
                vec![measured(Key::Dirtied, "dirtied"), measured(Key::Written, "written back")],
            ),
            plot(
                "waiting",
                "Time spent waiting",
                "/proc/pressure/io and memory total, /proc/stat iowait",
                PlotUnit::Share,
                vec![
                    measured(Key::IoSome, "a task waits for I/O"),
                    measured(Key::IoFull, "all tasks wait for I/O"),
                    measured(Key::MemorySome, "a task waits for memory"),
                    measured(Key::Iowait, "iowait"),
                ],
            ),
            plot(
                "blocked",
                "Tasks blocked for I/O",
                "/proc/stat procs_blocked",
                PlotUnit::Count,
                vec![measured(Key::Blocked, "blocked tasks")],
            ),
        ];
        plots.extend(self.of_disks(window));
        plots.extend(self.of_cgroups(window));
        plots.retain(|plot| plot.lines.iter().any(|line| line.role == Role::Measured));
        plots
    }

    fn line(&self, key: Key, name: &str, role: Role) -> Option<Line> {
        let points: Vec<(usize, Extent)> = self.track(key)?.extents().collect();
        Some(Line { name: name.to_owned(), role, points })
    }

    fn of_disks(&self, window: &Window) -> Vec<Plot> {
        let mut disks: Vec<(EntityId, String, f64)> = device::disks(window)
            .iter()
            .filter_map(|disk| {
                let (_, most) = self.peak(Key::DiskWritten(disk.id))?;
                Some((disk.id, disk.name.to_string(), most))
            })
            .collect();
        disks.sort_by(|(_, _, a), (_, _, b)| b.total_cmp(a));
        let left = disks.len().saturating_sub(LINES);
        disks.truncate(LINES);
        let lines = |key: fn(EntityId) -> Key| {
            disks.iter().filter_map(|(id, name, _)| self.line(key(*id), name, Role::Measured)).collect::<Vec<Line>>()
        };
        let left_out = match left {
            0 => String::new(),
            left => format!("{} with slower writes not shown", human::plural(left as u64, "disk", "disks")),
        };
        let plot = |id, title, source, unit, lines| Plot { id, title, source, unit, lines, left_out: left_out.clone() };
        vec![
            plot(
                "disk-written",
                "Written at each disk",
                "/proc/diskstats sectors written",
                PlotUnit::BytesPerSecond,
                lines(Key::DiskWritten),
            ),
            plot(
                "disk-busy",
                "Time with a request in flight at each disk",
                "/proc/diskstats io_ticks",
                PlotUnit::Share,
                lines(Key::DiskBusy),
            ),
            plot(
                "disk-await",
                "Time that a write takes at each disk, queueing included",
                "/proc/diskstats write ticks / writes",
                PlotUnit::Seconds,
                lines(Key::DiskAwait),
            ),
        ]
    }

    fn of_cgroups(&self, window: &Window) -> Vec<Plot> {
        let leaves = self.leaves(window);
        let plot = |id, title, source, unit, key: fn(EntityId) -> Key| {
            let mut ranked: Vec<(EntityId, f64)> =
                leaves.iter().filter_map(|id| Some((*id, self.peak(key(*id))?.1))).collect();
            ranked.retain(|(_, most)| *most > 0.0);
            ranked.sort_by(|(_, a), (_, b)| b.total_cmp(a));
            let left = ranked.len().saturating_sub(LINES);
            let line = |(id, _): &(EntityId, f64)| self.line(key(*id), &cgroup::label(window, *id), Role::Measured);
            let left_out = match left {
                0 => String::new(),
                left => format!("{} with less not shown", human::plural(left as u64, "cgroup", "cgroups")),
            };
            Plot { id, title, source, unit, lines: ranked.iter().take(LINES).filter_map(line).collect(), left_out }
        };
        vec![
            plot(
                "cgroup-dirty",
                "Unwritten data of each cgroup",
                "memory.stat file_dirty + file_writeback",
                PlotUnit::Bytes,
                Key::CgroupUnwritten,
            ),
            plot(
                "cgroup-waiting",
                "Time in which a task of a cgroup waits for I/O",
                "io.pressure some total",
                PlotUnit::Share,
                Key::CgroupIoSome,
            ),
        ]
    }

    /// Cgroups that had unwritten data, without those that have such cgroups below them: counts of a cgroup include its
    /// descendants.
    fn leaves(&self, window: &Window) -> Vec<EntityId> {
        let holders: Vec<(&[u8], EntityId)> = self
            .cgroups
            .keys()
            .filter(|id| self.peak(Key::CgroupUnwritten(**id)).is_some_and(|(_, most)| most > 0.0))
            .filter_map(|id| Some((cgroup::path(window, *id)?.as_bytes(), *id)))
            .collect();
        let mut paths: Vec<&[u8]> = holders.iter().map(|(path, _)| *path).collect();
        paths.sort_unstable();
        let has_child = |path: &[u8]| {
            let below: Vec<u8> = if path == b"/" { b"/".to_vec() } else { [path, b"/"].concat() };
            let at = paths.partition_point(|other| *other <= below.as_slice());
            paths.get(at).is_some_and(|other| other.starts_with(&below))
        };
        holders.into_iter().filter(|(path, _)| !has_child(path)).map(|(_, id)| id).collect()
    }

    /// The most unwritten data of a cgroup and its curve, by its escaped path; `None` where it never had any.
    pub fn cgroup_curves(&self, window: &Window) -> std::collections::BTreeMap<String, Line> {
        let curve = |id: &EntityId| {
            let key = Key::CgroupUnwritten(*id);
            self.peak(key).filter(|(_, most)| *most > 0.0)?;
            let path = cgroup::path(window, *id)?.to_string();
            Some((path.clone(), self.line(key, &path, Role::Measured)?))
        };
        self.cgroups.keys().filter_map(curve).collect()
    }

    /// The moment at which a finding is most visible; `None` if it is visible in no curve.
    pub fn mark_of(&self, window: &Window, finding: &Finding) -> Option<Mark> {
        match signal(finding.rule) {
            Signal::Unwritten => self.unwritten(),
            Signal::Await => self.slowest(window, &finding.devices).or_else(|| self.waiting()),
            Signal::Wait(operations) => self
                .longest_wait(operations)
                .or_else(|| self.slowest(window, &finding.devices))
                .or_else(|| self.waiting()),
            Signal::Waiting => self.waiting().or_else(|| self.unwritten()),
        }
    }

    fn unwritten(&self) -> Option<Mark> {
        let (second, most) = self.peak(Key::Unwritten).filter(|(_, most)| *most > 0.0)?;
        Some(Mark { second, label: format!("most unwritten data, {}", human::bytes(most)) })
    }

    fn waiting(&self) -> Option<Mark> {
        let (second, most) = self.peak(Key::IoSome).filter(|(_, most)| *most > 0.0)?;
        Some(Mark { second, label: format!("a task waits for I/O {} of the time", human::percent(most)) })
    }

    fn slowest(&self, window: &Window, names: &[String]) -> Option<Mark> {
        let disks = device::disks(window);
        let named = disks.iter().filter(|disk| names.is_empty() || names.contains(&disk.name.to_string()));
        let slowest = named.filter_map(|disk| Some((disk, self.peak(Key::DiskAwait(disk.id))?)));
        let (disk, (second, most)) = slowest.max_by(|(_, (_, a)), (_, (_, b))| a.total_cmp(b))?;
        Some(Mark { second, label: format!("a write to {} takes {}", disk.name, human::seconds(most)) })
    }

    fn longest_wait(&self, operations: &[Operation]) -> Option<Mark> {
        let waits = self.events.iter().filter_map(|event| match &event.what {
            What::SlowSync(slow) if operations.contains(&slow.operation) => Some((event.at, slow)),
            _ => None,
        });
        let (at, slow) = waits.max_by_key(|(_, slow)| slow.lasted)?;
        let lasted = slow.lasted.as_secs_f64();
        let label = format!("{}[{}] begins to wait {}", slow.who.comm, slow.who.pid, human::seconds(lasted));
        Some(Mark { second: (self.second_of(at) - lasted).max(0.0), label })
    }

    /// Events of the recording besides the curves: a workload, missing samples, long waits; in order of time.
    pub fn marks(&self) -> Vec<Mark> {
        let mut waits: Vec<(u64, Mark)> = Vec::new();
        let mut marks = Vec::new();
        for event in &self.events {
            let second = self.second_of(event.at).max(0.0);
            match &event.what {
                What::WorkloadStarted { scenario, variant } => {
                    marks.push(Mark { second, label: format!("workload {scenario}, {variant} starts") });
                }
                What::WorkloadEnded => marks.push(Mark { second, label: "workload ends".to_owned() }),
                What::Note { text } => marks.push(Mark { second, label: text.to_string() }),
                What::Missed { samples } => {
                    let label = human::plural(*samples, "sample is missing", "samples are missing");
                    marks.push(Mark { second, label });
                }
                What::TaskStall { task, operation, lasted } => {
                    let label = format!("{operation} of {} takes {}", task.task, human::seconds(lasted.as_secs_f64()));
                    waits.push((lasted.0, Mark { second, label }));
                }
                What::SlowSync(slow) => {
                    let lasted = slow.lasted.as_secs_f64();
                    let took = human::seconds(lasted);
                    let label =
                        format!("{} of {}[{}] takes {took}", slow.operation.name(), slow.who.comm, slow.who.pid);
                    waits.push((slow.lasted.0, Mark { second: (second - lasted).max(0.0), label }));
                }
                _ => {}
            }
        }
        waits.sort_by_key(|(lasted, _)| std::cmp::Reverse(*lasted));
        marks.extend(waits.into_iter().take(WAITS).map(|(_, mark)| mark));
        marks.sort_by(|a, b| a.second.total_cmp(&b.second));
        marks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::diagnose;
    use floodline_record::record::Sink;
    use floodline_testkit::Fixture;
    use floodline_testkit::incidents::{INCIDENTS, dirty_cliff};

    fn timeline(fixture: &Fixture) -> Timeline {
        let mut timeline = Timeline::default();
        for record in fixture.records() {
            let Ok(()) = timeline.record(&record);
        }
        timeline
    }

    #[test]
    fn the_plot_of_the_machine_has_its_thresholds() {
        let fixture = dirty_cliff();
        let plots = timeline(&fixture).plots(&fixture.window());
        let dirty = plots.iter().find(|plot| plot.id == "dirty").expect("a plot");
        assert_eq!(dirty.lines.iter().filter(|line| line.role == Role::Threshold).count(), 3);
        assert!(plots.iter().any(|plot| plot.id == "disk-await"));
        let mut ids: Vec<&str> = plots.iter().map(|plot| plot.id).collect();
        ids.dedup();
        assert_eq!(ids.len(), plots.len());
    }

    #[test]
    fn each_finding_of_an_incident_has_a_second_within_the_recording() {
        for incident in INCIDENTS {
            let fixture = (incident.make)();
            let (window, timeline) = (fixture.window(), timeline(&fixture));
            for finding in diagnose(&window, None).findings {
                let mark = timeline.mark_of(&window, &finding);
                let inside = mark.as_ref().is_none_or(|mark| (0.0..=window.seconds()).contains(&mark.second));
                assert!(inside, "{}: {mark:?}", incident.name);
                assert!(mark.is_some(), "{}: {} has no mark", incident.name, finding.rule);
            }
        }
    }

    #[test]
    fn every_rule_that_has_a_signal_of_its_own_is_in_the_catalogue() {
        for name in ["dirty-cliff", "dominant-writer", "dirty-data-at-risk", "contradictory-dirty-settings"]
            .into_iter()
            .chain(["saturated-device", "buffered-loop-device", "fsync-behind-writeback", "overlay-umount-flush"])
        {
            assert!(crate::diagnose::rule(name).is_some(), "{name}");
        }
    }
}
