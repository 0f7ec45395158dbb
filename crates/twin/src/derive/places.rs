// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device that each program writes to. A trace tells where its pages became dirty. Without one, a cgroup of its own tells by the I/O
//! of the cgroup. Programs of the root cgroup and of version 1 share their counters: there the bytes that each device wrote tell, and the flushes of a device tell which
//! program makes its writes durable there.

use super::group::Group;
use super::machine::{Ground, Place, Places};
use floodline_record::id::{DevId, Entity};
use floodline_record::window::Window;

/// Place of a group, as an index into the places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub(super) place: usize,
    /// Whether a trace or the I/O of its cgroup tells it.
    pub(super) is_known: bool,
}

/// The place of each group.
pub(super) fn assigned(window: &Window, ground: &Ground, groups: &[Group]) -> Vec<At> {
    let places = &ground.places;
    let known = |group| of_trace(window, places, group).or_else(|| of_cgroup(window, places, group));
    let known: Vec<Option<usize>> = groups.iter().map(known).collect();
    let bytes: Vec<f64> = groups.iter().map(|group| group.total.dirtied()).collect();
    by_bytes(&known, &bytes, &places.0.iter().map(|place| place.written as f64).collect::<Vec<_>>())
}

/// Places by what each device wrote that no group of a known place explains: the largest program first.
fn by_bytes(known: &[Option<usize>], bytes: &[f64], written: &[f64]) -> Vec<At> {
    let mut left = written.to_vec();
    for (place, bytes) in known.iter().zip(bytes) {
        if let Some(left) = place.and_then(|place| left.get_mut(place)) {
            *left -= bytes;
        }
    }
    let mut at: Vec<At> =
        known.iter().map(|place| At { place: place.unwrap_or(0), is_known: place.is_some() }).collect();
    let mut open: Vec<usize> = (0..at.len()).filter(|group| !at[*group].is_known).collect();
    open.sort_by(|a, b| bytes[*b].total_cmp(&bytes[*a]));
    for group in open {
        let most = (0..left.len()).max_by(|a, b| left[*a].total_cmp(&left[*b]).then(b.cmp(a)));
        let Some(most) = most else { continue };
        at[group].place = most;
        left[most] -= bytes[group];
    }
    at
}

/// The place in whose files a trace saw most bytes of a group become dirty.
fn of_trace(window: &Window, places: &Places, group: &Group) -> Option<usize> {
    let facts = window.facts.as_ref();
    let lookup = window.lookup();
    let place = |number: DevId| {
        // Superblocks of btrfs have numbers of their own.
        let mount = facts.and_then(|facts| lookup.mounts_of_number(facts, number).next());
        let dev = mount.and_then(|mount| lookup.number_of_mount(mount)).unwrap_or(number);
        let dev = lookup.whole(window, dev);
        places.0.iter().position(|place| place.dev == dev)
    };
    let mut written: Vec<u64> = vec![0; places.0.len()];
    for (number, bytes) in &group.written_to {
        if let Some(all) = place(*number).and_then(|at| written.get_mut(at)) {
            *all = all.saturating_add(*bytes);
        }
    }
    let most = written.iter().enumerate().max_by_key(|(at, bytes)| (**bytes, std::cmp::Reverse(*at)));
    most.filter(|(_, bytes)| **bytes > 0).map(|(at, _)| at)
}

/// The device with most of the writes of a group's cgroup. The root has the writes of all.
fn of_cgroup(window: &Window, places: &Places, group: &Group) -> Option<usize> {
    if places.0.len() == 1 {
        return Some(0);
    }
    let path = group.cgroup.and_then(|id| window.entities.get(&id));
    if matches!(path, Some(Entity::Cgroup { path, .. }) if path.as_bytes() == b"/") {
        return None;
    }
    let index = |dev| places.0.iter().position(|place| place.dev == dev);
    let sent = window.cgroup_io.iter().filter_map(|(id, span)| {
        let Some(Entity::CgroupIo { cgroup, dev }) = window.entities.get(id) else { return None };
        if Some(*cgroup) != group.cgroup {
            return None;
        }
        Some((span.growth.wbytes?.0, index(window.lookup().whole(window, *dev))?))
    });
    let sent: Vec<(u64, usize)> = sent.collect();
    let place = |at: usize| -> &Place { &places.0[at] };
    // What went to a loop device is written again below.
    let again = |dev| sent.iter().filter(|(_, at)| place(*at).below == Some(dev)).map(|(bytes, _)| *bytes).sum::<u64>();
    let own = sent.iter().map(|(bytes, at)| (bytes.saturating_sub(again(place(*at).dev)), *at));
    let most = own.filter(|(bytes, _)| *bytes > 0).max_by_key(|(bytes, at)| (*bytes, std::cmp::Reverse(*at)));
    most.map(|(_, at)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_tells_where_a_program_writes() {
        let dev = |minor| DevId { major: 254, minor };
        let place = |dev| Place {
            dev,
            device: String::new(),
            point: String::new(),
            fs_type: floodline_scenario::FsType::Ext4,
            mean_read: None,
            flushes: 0,
            writes: 0,
            written: 0,
            below: None,
        };
        let places = Places(vec![place(dev(0)), place(dev(16))]);
        let at = |written: &[(DevId, u64)]| {
            let group = Group { written_to: written.iter().copied().collect(), ..Group::default() };
            of_trace(&Window::default(), &places, &group)
        };
        assert_eq!(at(&[(dev(0), 4096), (dev(16), 8192)]), Some(1));
        assert_eq!(at(&[(dev(0), 4096), (dev(32), 8192)]), Some(0), "the twin lacks that device");
        assert_eq!((at(&[(dev(32), 8192)]), at(&[])), (None, None));
    }

    #[test]
    fn programs_without_a_cgroup_go_where_their_bytes_went() {
        let at = |known: &[Option<usize>], bytes: &[f64], written: &[f64]| -> Vec<usize> {
            by_bytes(known, bytes, written).iter().map(|at| at.place).collect()
        };
        // A copy to a slow stick and a small program on the other disk.
        assert_eq!(at(&[None, None], &[900.0, 20.0], &[700.0, 25.0]), [0, 1]);
        assert_eq!(at(&[None, None], &[20.0, 900.0], &[700.0, 25.0]), [1, 0]);
        // What a cgroup is known to have written there counts.
        assert_eq!(at(&[Some(0), None], &[700.0, 20.0], &[710.0, 25.0]), [0, 1]);
        assert_eq!(at(&[None, None], &[5.0, 4.0], &[700.0, 0.0]), [0, 0]);
    }
}
