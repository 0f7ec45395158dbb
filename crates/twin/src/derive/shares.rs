// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shares of the dirty threshold with which a twin begins. The threshold of a bdi shows them in a recording that was made by root.
//! Otherwise a kernel that has run for a while has written before what it writes in the recording.

use super::devices;
use super::machine::{Ground, Place};
use crate::provenance::Notes;
use floodline_record::id::{Entity, is_of_btrfs};
use floodline_record::name::Name;
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use floodline_scenario::{CgroupMode, FsType, Machine, Share};
use floodline_sim::StartShares;
use std::collections::BTreeMap;

/// Time since boot from which on a kernel has written what it usually writes.
const SETTLED: Nanos = Nanos(60 * Nanos::SECOND.0);
/// Parts per million of all.
const FULL: u64 = 1_000_000;
/// Time of writing that a domain has in mind when it is halved every 3 s, seconds, and fewest and most pages of it.
const SECONDS: f64 = 4.5;
const PAGES_MIN: f64 = 16.0;
const PAGES_MAX: f64 = 65_536.0;
/// Bytes of a page of the model.
const PAGE: f64 = 4096.0;

/// Adds the shares to the devices and cgroups of a twin.
pub(super) fn add(window: &Window, ground: &Ground, machine: &mut Machine, notes: &mut Notes) {
    let start = StartShares::of(window);
    if let Some(start) = &start {
        recorded(start, window, ground, machine, notes);
    }
    let is_settled = window.first_at.is_some_and(|first| first.monotonic >= SETTLED);
    // Up to 6.9 the kernel prints no threshold of the wbs of cgroups. Since 6.10, a wb that it does not print does not exist.
    let rest = match &start {
        None => FULL,
        Some(start) if start.has_wbs() => 0,
        Some(start) => start.rest_ppm(),
    };
    if is_settled && rest > 0 {
        assumed(rest, start.is_none(), window, ground, machine, notes);
    }
}

/// Names of the bdi of a place: its device, and that of a btrfs where there is one only.
fn bdi_of(window: &Window, place: &Place) -> Name {
    let is_btrfs = |name: &&Name| is_of_btrfs(name);
    let names = window.entities.values().filter_map(|entity| match entity {
        Entity::Bdi { name } => Some(name),
        _ => None,
    });
    let mut of_btrfs = names.filter(is_btrfs).filter(|_| place.fs_type == FsType::Btrfs);
    match (of_btrfs.next(), of_btrfs.next()) {
        (Some(name), None) => name.clone(),
        _ => Name::new(place.dev.to_string()),
    }
}

/// Adds what the first sample shows.
fn recorded(start: &StartShares, window: &Window, ground: &Ground, machine: &mut Machine, notes: &mut Notes) {
    let of_ino = |wanted: u64| {
        let is_it = |entity: &&Entity| matches!(entity, Entity::Cgroup { ino: Some(ino), .. } if *ino == wanted);
        window.entities.iter().find(|(_, entity)| is_it(entity)).map(|(id, _)| ground.cgroups.path(Some(*id)))
    };
    for place in &ground.places.0 {
        let bdi = bdi_of(window, place);
        let Some(share) = start.of_bdi(&bdi) else { continue };
        let Some(device) = machine.devices.get_mut(&place.device) else { continue };
        device.share = Some(share);
        let key = format!("machine.devices.{}.share", place.device);
        notes.derived(
            key,
            "threshold of the bdi over that of the machine in the first sample, as the fewest pages that explain it, or as the pages written before",
        );
        for (_, ino, share) in start.of_cgroups().filter(|(of, _, share)| **of == bdi && share.pages > 0) {
            let Some(path) = of_ino(ino).filter(|_| machine.cgroup_mode == CgroupMode::V2) else { continue };
            let Some(cgroup) = machine.cgroups.get_mut(path) else { continue };
            cgroup.share.insert(place.device.clone(), share);
            let key = format!("machine.cgroups.\"{path}\".share.{}", place.device);
            notes.derived(key, "threshold of the wb over that of the machine in the first sample; where the memcg's is smaller, what is left, by written pages");
        }
    }
}

/// Size of a page of the host, bytes.
fn page_size(window: &Window) -> f64 {
    window.facts.as_ref().map_or(PAGE, |facts| facts.page_size.max(1) as f64)
}

/// Divides a part of all pages, in parts per million, by what was written in the recording: among cgroups, and among the devices
/// themselves if nothing of them is known. No more pages than the machine has written back.
fn assumed(rest: u64, has_devices: bool, window: &Window, ground: &Ground, machine: &mut Machine, notes: &mut Notes) {
    let mut wrote: BTreeMap<(String, String), f64> = BTreeMap::new();
    let is_unified = machine.cgroup_mode == CgroupMode::V2;
    let is_leaf = |path: &str| {
        !machine.cgroups.keys().any(|other| other.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')))
    };
    // The I/O of cgroups contains that of direct I/O, which completes no page.
    let below_direct = devices::below_direct(window);
    for place in &ground.places.0 {
        let mut left = place.written as f64;
        let shows_pages = is_unified && !below_direct.contains(&place.dev);
        for (id, span) in window.cgroup_io.iter().filter(|_| shows_pages) {
            let Some(Entity::CgroupIo { cgroup, dev }) = window.entities.get(id) else { continue };
            let path = ground.cgroups.path(Some(*cgroup));
            if *dev != place.dev || !machine.cgroups.contains_key(path) || !is_leaf(path) {
                continue;
            }
            let bytes = span.growth.wbytes.map_or(0.0, |bytes| bytes.0 as f64);
            *wrote.entry((place.device.clone(), path.to_owned())).or_default() += bytes;
            left -= bytes;
        }
        if has_devices {
            wrote.insert((place.device.clone(), String::new()), left.max(0.0));
        }
    }
    let all: f64 = wrote.values().sum();
    let completed = window.host.growth.nr_written.map(|pages| pages.0 as f64 * page_size(window));
    let pages = completed.map_or(all, |completed| completed.min(all));
    if all <= 0.0 || pages <= 0.0 {
        return;
    }
    let of = (pages / PAGE / window.seconds().max(1.0) * SECONDS).clamp(PAGES_MIN, PAGES_MAX).round();
    for ((device, path), bytes) in wrote {
        let share = Share { pages: (of * bytes / all * rest as f64 / FULL as f64) as u32, of: of as u32 };
        let why = "no threshold of its wb in the recording: its part of the pages written before is taken for that of the recording";
        if path.is_empty() {
            let Some(of) = machine.devices.get_mut(&device) else { continue };
            of.share = Some(share);
            notes.assumed(format!("machine.devices.{device}.share"), why);
        } else if share.pages > 0 {
            let Some(of) = machine.cgroups.get_mut(&path) else { continue };
            notes.assumed(format!("machine.cgroups.\"{path}\".share.{device}"), why);
            of.share.insert(device, share);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::provenance::Origin;
    use crate::{Options, Recorded, Twin};
    use floodline_record::facts::Stack;
    use floodline_record::gap::{Cause, Source};
    use floodline_record::units::{Bytes, Count, Pages};
    use floodline_testkit::{Fixture, grows};

    const PAGES: u64 = 100_000;

    /// A host whose disk writes 4 MB/s and has a part of 100,000 pages.
    fn host(kernel: &str, pages: u64) -> Fixture {
        Fixture::healthy()
            .kernel(kernel)
            .seconds(20)
            .host(|t, row| {
                (row.nr_dirty_threshold, row.nr_written) = (Some(Pages(PAGES)), grows(t, 0, 1_000.0));
            })
            .disk("sda", |t, row| {
                (row.written, row.writes) = (grows(t, 0, 4e6), grows::<Count>(t, 0, 100.0));
            })
            .bdi("8:0", move |_, row| row.dirty_thresh = Some(Bytes(4096 * pages)))
    }

    /// The shares of devices and cgroups, each with its origin.
    fn shares(host: Fixture) -> Vec<(String, String, Origin)> {
        let twin: Twin = crate::of(&Recorded::from_records(&host.records()), &Options::default()).expect("a twin");
        let machine = &twin.scenario.machine;
        let device = |(name, device): (&String, &floodline_scenario::Device)| {
            Some((format!("machine.devices.{name}.share"), device.share?.to_string()))
        };
        let mut all: Vec<(String, String)> = machine.devices.iter().filter_map(device).collect();
        for (path, cgroup) in &machine.cgroups {
            let of = |(name, share): (&String, &floodline_scenario::Share)| {
                (format!("machine.cgroups.\"{path}\".share.{name}"), share.to_string())
            };
            all.extend(cgroup.share.iter().map(of));
        }
        let origin = |key: &str| twin.provenance.iter().find(|one| one.key == key).expect("it has an origin").origin;
        all.into_iter().map(|(key, share)| (key.clone(), share, origin(&key))).collect()
    }

    #[test]
    fn a_twin_begins_with_the_share_that_the_first_sample_shows() {
        let of = |kernel, pages| shares(host(kernel, pages));
        let expect = |share: &str| vec![("machine.devices.sda.share".to_owned(), share.to_owned(), Origin::Derived)];
        assert_eq!(of("6.1.0", 75_000), expect("3/4"));
        assert_eq!(of("6.12.0", 0), expect("0/1"));
        assert_eq!(
            of("6.12.0", PAGES),
            expect("230/230"),
            "the disk has written as many pages in 6 s, from the boot to the first sample"
        );
    }

    #[test]
    fn what_no_threshold_shows_is_taken_for_what_is_written() {
        let hidden = |host: Fixture| {
            let refused = || Cause::PermissionDenied { need: "root".into() };
            host.without(Source::DebugBdiStats, refused()).without(Source::DebugWbStats, refused())
        };
        let nginx = |host: Fixture| {
            host.cgroup_io("/system.slice/nginx.service", "sda", |t, row| row.wbytes = grows(t, 0, 1e6))
        };
        let of = |host: Fixture| {
            shares(host)
                .into_iter()
                .map(|(key, share, origin)| {
                    let (pages, of) = share.split_once('/').expect("pages of pages");
                    let part = pages.parse::<f64>().expect("pages") / of.parse::<f64>().expect("pages");
                    (key, (part * 100.0).round(), origin)
                })
                .collect::<Vec<_>>()
        };
        let disk = |part: f64, origin| ("machine.devices.sda.share".to_owned(), part, origin);
        let cgroup =
            |part: f64| ("machine.cgroups.\"system.slice/nginx.service\".share.sda".to_owned(), part, Origin::Assumed);
        assert_eq!(of(hidden(host("6.12.0", PAGES))), [disk(100.0, Origin::Assumed)]);
        assert_eq!(of(hidden(nginx(host("6.12.0", PAGES)))), [disk(75.0, Origin::Assumed), cgroup(25.0)]);
        // Up to 6.9 the threshold of the root wb is known, and the cgroups have the rest.
        assert_eq!(of(nginx(host("6.1.0", 60_000))), [disk(60.0, Origin::Derived), cgroup(40.0)]);
        // Since 6.10 a cgroup that has no wb at the start has written nothing before.
        let root =
            |pages: u64| host("6.12.0", pages).wb("8:0", 1, move |_, row| row.dirty_thresh = Some(Bytes(4096 * pages)));
        assert_eq!(of(nginx(root(0))), [disk(0.0, Origin::Derived)]);
        assert_eq!(of(nginx(root(60_000))), [disk(60.0, Origin::Derived)]);
    }

    #[test]
    fn direct_io_writes_no_pages() {
        let nginx = |host: Fixture| {
            host.cgroup_io("/system.slice/nginx.service", "sda", |t, row| row.wbytes = grows(t, 0, 1e6))
        };
        let of = |host: Fixture| shares(host).into_iter().map(|(_, share, _)| share).collect::<Vec<_>>();
        // 1000 pages per second are written in 4.5 s, or the fewer ones that the machine writes back.
        let pages = |per_second: f64| {
            of(nginx(host("6.1.0", 60_000)).host(move |t, row| row.nr_written = grows(t, 0, per_second)))
        };
        assert_eq!(
            [pages(1e6), pages(100.0), pages(0.0)],
            [
                ["3/5", "439/1099"].map(str::to_owned).to_vec(),
                ["3/5", "180/450"].map(str::to_owned).to_vec(),
                vec!["3/5".to_owned()]
            ]
        );
        let with_loop = |is_direct: bool, speed: f64| {
            let host = nginx(host("6.1.0", 60_000)).disk("loop0", move |t, row| row.written = grows(t, 0, speed));
            let host = host.bdi("7:0", |_, row| row.dirty_thresh = Some(Bytes(0))).facts(|facts| {
                for device in &mut facts.devices {
                    if let Stack::Loop { dio, .. } = &mut device.stack {
                        *dio = Some(is_direct);
                    }
                }
            });
            of(host).len()
        };
        assert_eq!([with_loop(false, 1e6), with_loop(true, 0.0), with_loop(true, 1e6)], [2, 2, 1]);
    }
}
