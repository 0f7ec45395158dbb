// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine at one moment, in the few numbers a person follows: levels of the last sample, and rates since the
//! previous sample. Derived from a short window; values that were not read are `None`.

use crate::diagnose::{device, dirty, writer};
use floodline_record::holes::Holes;
use floodline_record::id::Entity;
use floodline_record::sample::SampleTime;
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use serde::Serialize;
use std::cmp::Reverse;

/// A machine at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moment {
    /// Wall clock, nanoseconds since 1970 UTC.
    pub wall_ns: u64,
    /// Seconds that the rates cover; 0 when there was no sample before.
    pub interval_s: f64,
    /// Dirty pages, bytes.
    pub dirty_bytes: Option<u64>,
    /// Pages under writeback, bytes.
    pub writeback_bytes: Option<u64>,
    /// Background threshold, bytes.
    pub bg_thresh_bytes: Option<u64>,
    /// Hard threshold, bytes.
    pub thresh_bytes: Option<u64>,
    /// Bytes dirtied per second, whole folios.
    pub dirtied_bytes_per_second: Option<f64>,
    /// Bytes written per second by all disks, layers above them not counted again.
    pub device_bytes_per_second: Option<f64>,
    /// Share of CPU time that was idle with a task asleep for I/O.
    pub iowait_share: Option<f64>,
    /// Share of the time in which at least one task waited for I/O.
    pub io_pressure_share: Option<f64>,
    /// Tasks blocked for I/O.
    pub blocked_tasks: Option<u64>,
    /// Samples that were due since the moment before and were not taken.
    pub missing_samples: u64,
    /// Seconds in which a task waited for I/O while no sample was taken, as the kernel counted.
    pub missing_io_pressure_some_s: Option<f64>,
    /// Whether time stood still or ran backwards since the moment before.
    pub is_back_in_time: bool,
    /// By how many seconds the wall clock was set since the moment before; negative where it was set back.
    pub wall_clock_jump_s: Option<f64>,
    /// Disks, in order of first sight.
    pub disks: Vec<DiskMoment>,
    /// Cgroups with dirty pages, most first.
    pub cgroups: Vec<CgroupMoment>,
    /// Processes that dirtied pages since the sample before, most first.
    pub writers: Vec<WriterMoment>,
}

/// A disk at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiskMoment {
    /// Kernel name (escaped).
    pub name: String,
    /// Bytes written per second.
    pub write_bytes_per_second: Option<f64>,
    /// Writes completed per second.
    pub writes_per_second: Option<f64>,
    /// Mean time of a write, queueing included.
    pub write_await_s: Option<f64>,
    /// Share of the time with a request in flight.
    pub utilisation: Option<f64>,
}

/// A cgroup at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CgroupMoment {
    /// Path (escaped).
    pub cgroup: String,
    /// Dirty pages, bytes.
    pub dirty_bytes: u64,
    /// Pages under writeback, bytes.
    pub writeback_bytes: Option<u64>,
}

/// A process at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WriterMoment {
    /// Name and pid (escaped).
    pub process: String,
    /// Bytes dirtied per second.
    pub dirtied_bytes_per_second: f64,
}

impl Moment {
    /// With what is missing since the moment before.
    #[must_use]
    pub fn with(self, holes: &Holes) -> Moment {
        let waited = holes.longest.iter().filter_map(|hole| hole.io_some).reduce(|a, b| Nanos(a.0.saturating_add(b.0)));
        Moment {
            missing_samples: holes.missing,
            missing_io_pressure_some_s: waited.map(Nanos::as_secs_f64),
            is_back_in_time: holes.backwards > 0,
            wall_clock_jump_s: holes.largest_jump.map(|(_, ahead)| ahead as f64 / 1e9),
            ..self
        }
    }

    /// The last sample of a window and the rates since its first; `None` for a window without samples.
    pub fn of(window: &Window) -> Option<Moment> {
        let SampleTime { wall, .. } = window.last_at?;
        let page_size = dirty::page_size(window);
        let pages = |pages: floodline_record::units::Pages| pages.bytes(page_size).0;
        let last = &window.host.last;
        Some(Moment {
            wall_ns: wall.0,
            interval_s: window.seconds(),
            dirty_bytes: dirty::dirty_now(window).map(|bytes| bytes.0),
            writeback_bytes: last.nr_writeback.map(pages),
            bg_thresh_bytes: last.nr_dirty_background_threshold.map(pages),
            thresh_bytes: last.nr_dirty_threshold.map(pages),
            dirtied_bytes_per_second: dirty::dirtying_rate(window),
            missing_samples: 0,
            missing_io_pressure_some_s: None,
            is_back_in_time: false,
            wall_clock_jump_s: None,
            device_bytes_per_second: device::disks_write_rate(window),
            iowait_share: dirty::iowait_share(window),
            io_pressure_share: dirty::io_pressure_some(window),
            blocked_tasks: last.procs_blocked.map(|tasks| tasks.0),
            disks: device::disks(window).iter().map(disk).collect(),
            cgroups: cgroups(window),
            writers: writers(window),
        })
    }
}

fn disk(device: &device::Device<'_>) -> DiskMoment {
    DiskMoment {
        name: device.name.to_string(),
        write_bytes_per_second: device.write_rate(),
        writes_per_second: device.write_iops(),
        write_await_s: device.write_await(),
        utilisation: device.utilisation(),
    }
}

/// Cgroups that hold dirty pages. Counts of a cgroup contain its descendants', so the root and the
/// slices above lead the list unless they are left out: only cgroups without a dirty child are listed.
fn cgroups(window: &Window) -> Vec<CgroupMoment> {
    let holders: Vec<(&[u8], CgroupMoment)> = window
        .cgroups
        .iter()
        .filter(|(_, span)| window.last_at.is_some_and(|last| span.last_at == last.monotonic))
        .filter_map(|(id, span)| {
            let Some(Entity::Cgroup { path, .. }) = window.entities.get(id) else { return None };
            let dirty = span.last.file_dirty?.0;
            let writeback = span.last.file_writeback.map(|bytes| bytes.0);
            let moment = CgroupMoment { cgroup: path.to_string(), dirty_bytes: dirty, writeback_bytes: writeback };
            (dirty > 0 || writeback.is_some_and(|bytes| bytes > 0)).then_some((path.as_bytes(), moment))
        })
        .collect();
    let mut paths: Vec<&[u8]> = holders.iter().map(|(path, _)| *path).collect();
    paths.sort_unstable();
    let has_child = |path: &[u8]| {
        let below: Vec<u8> = if path == b"/" { b"/".to_vec() } else { [path, b"/"].concat() };
        let at = paths.partition_point(|other| *other <= below.as_slice());
        paths.get(at).is_some_and(|other| other.starts_with(&below))
    };
    let mut leaves: Vec<CgroupMoment> =
        holders.iter().filter(|(path, _)| !has_child(path)).map(|(_, moment)| moment.clone()).collect();
    leaves.sort_by(|a, b| b.dirty_bytes.cmp(&a.dirty_bytes).then_with(|| a.cgroup.cmp(&b.cgroup)));
    leaves
}

fn writers(window: &Window) -> Vec<WriterMoment> {
    let seconds = window.seconds();
    if seconds <= 0.0 {
        return Vec::new();
    }
    let rate = |writer: &writer::Writer<'_>| {
        let bytes = writer.dirtied_bytes.filter(|&bytes| bytes > 0)?;
        Some(WriterMoment { process: writer.label(), dirtied_bytes_per_second: bytes as f64 / seconds })
    };
    let mut writers: Vec<WriterMoment> = writer::writers(window).processes.iter().filter_map(rate).collect();
    writers.sort_by_key(|writer| Reverse(writer.dirtied_bytes_per_second as u64));
    writers
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::units::Bytes;
    use floodline_testkit::{Fixture, mib, mib_pages};

    #[test]
    fn levels_are_of_the_last_sample_and_rates_since_the_first() {
        let window = Fixture::healthy()
            .host(|t, row| {
                row.nr_dirty = Some(mib_pages(100.0 * t));
                row.nr_dirtied = Some(mib_pages(1000.0 + 50.0 * t));
            })
            .seconds(1)
            .window();
        let moment = Moment::of(&window).unwrap();
        assert_eq!(moment.dirty_bytes, Some(mib(100.0)));
        assert_eq!(moment.dirtied_bytes_per_second, Some(mib(50.0) as f64));
    }

    #[test]
    fn cgroups_above_a_dirty_one_are_not_listed_again() {
        let dirty = |amount: f64| {
            move |_: f64, row: &mut floodline_record::sample::CgroupRow| row.file_dirty = Some(Bytes(mib(amount)))
        };
        let window = Fixture::healthy()
            .cgroup("/", dirty(30.0))
            .cgroup("/a.slice", dirty(30.0))
            .cgroup("/a.slice/one", dirty(10.0))
            .cgroup("/a.slice/two", dirty(20.0))
            .cgroup("/a.slice-not", dirty(5.0))
            .window();
        let named: Vec<String> = Moment::of(&window).unwrap().cgroups.into_iter().map(|row| row.cgroup).collect();
        assert_eq!(named, ["/a.slice/two", "/a.slice/one", "/a.slice-not"]);
    }

    #[test]
    fn a_window_without_samples_has_no_moment() {
        assert_eq!(Moment::of(&Window::default()), None);
    }

    #[test]
    fn one_look_has_levels_and_no_rates() {
        let moment = Moment::of(&Fixture::healthy().one_look().window()).unwrap();
        assert!(moment.dirty_bytes.is_some());
        assert_eq!((moment.dirtied_bytes_per_second, moment.writers.len()), (None, 0));
    }
}
