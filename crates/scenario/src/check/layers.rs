// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each device and each mount stands on: a loop device on the filesystem of its file, an overlay on the filesystems of
//! its directories, every filesystem on its device and on the filesystem that holds its mount point. One graph of all of
//! them: a cycle in it has no order in which it can be built, and no end when a path is resolved.

use super::Complaints;
use super::machine::is_below;
use crate::machine::{Backing, FsType, Machine};
use std::collections::{BTreeMap, BTreeSet};

/// Overlays one above the other: `FILESYSTEM_MAX_STACK_DEPTH` of the kernel.
const OVERLAYS_MAX: usize = 2;
/// Loop devices one above the other. The kernel has no limit: this is more than any host has, and each is a layer that
/// every write passes through.
const LOOPS_MAX: usize = 8;

/// A device or a mount, by its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Layer<'a> {
    Device(&'a str),
    Mount(&'a str),
}

impl<'a> Layer<'a> {
    fn name(self) -> &'a str {
        match self {
            Layer::Device(name) | Layer::Mount(name) => name,
        }
    }

    fn key(self) -> [&'a str; 3] {
        match self {
            Layer::Device(name) => ["machine", "devices", name],
            Layer::Mount(point) => ["machine", "mounts", point],
        }
    }
}

/// Number of overlays and of loop devices from a layer down to the disks, itself included.
#[derive(Clone, Copy, Debug, Default)]
struct Depth {
    overlays: usize,
    loops: usize,
}

/// A layer on the way down, and the layers below it that are still to be visited.
struct Open<'a> {
    layer: Layer<'a>,
    left: Vec<Layer<'a>>,
    depth: Depth,
}

/// Refuses what stands on itself, and stacks higher than the kernel or the model takes.
pub(super) fn check(machine: &Machine, complaints: &mut Complaints) {
    let points = Points::of(machine);
    let loops = machine.devices.iter().filter(|(_, device)| matches!(device.backing, Backing::Loop { .. }));
    let overlays = machine.mounts.iter().filter(|(_, mount)| mount.overlay.is_some());
    // Every cycle has one of them: members of devices are checked on their own.
    let starts = loops.map(|(name, _)| Layer::Device(name)).chain(overlays.map(|(point, _)| Layer::Mount(point)));
    let mut done: BTreeMap<Layer<'_>, Depth> = BTreeMap::new();
    for start in starts {
        if !done.contains_key(&start) && !descend(machine, &points, start, &mut done, complaints) {
            return;
        }
    }
}

/// Visits everything below a layer, without recursion: a file decides how deep it goes. Returns `false` when the comparisons
/// are used up.
fn descend<'a>(
    machine: &'a Machine,
    points: &Points<'a>,
    start: Layer<'a>,
    done: &mut BTreeMap<Layer<'a>, Depth>,
    complaints: &mut Complaints,
) -> bool {
    let mut way: Vec<Open<'a>> = Vec::new();
    let mut on_the_way: BTreeSet<Layer<'a>> = BTreeSet::new();
    let mut next = Some(start);
    loop {
        if let Some(layer) = next.take() {
            let Some(left) = below(machine, points, layer, complaints) else { return false };
            on_the_way.insert(layer);
            way.push(Open { layer, left, depth: Depth::default() });
        }
        let Some(open) = way.last_mut() else { return true };
        match open.left.pop() {
            Some(layer) if on_the_way.contains(&layer) => {
                let from = way.iter().position(|open| open.layer == layer).unwrap_or(0);
                let circle = way.iter().skip(from).map(|open| open.layer.name()).chain([layer.name()]);
                let circle = circle.collect::<Vec<_>>().join(" on ");
                complaints.hint(
                    &layer.key(),
                    format!("it stands on itself: {circle}"),
                    "put one of them on a filesystem of a disk",
                );
            }
            Some(layer) => match done.get(&layer) {
                Some(depth) => open.depth = open.depth.max(*depth),
                None => next = Some(layer),
            },
            None => {
                let Some(Open { layer, depth, .. }) = way.pop() else { return true };
                let depth = depth.with(machine, layer);
                too_deep(layer, depth, complaints);
                on_the_way.remove(&layer);
                done.insert(layer, depth);
                if let Some(above) = way.last_mut() {
                    above.depth = above.depth.max(depth);
                }
            }
        }
    }
}

/// Complains about the first layer above the limit; what is above that one is not repeated.
fn too_deep(layer: Layer<'_>, depth: Depth, complaints: &mut Complaints) {
    match layer {
        Layer::Mount(_) if depth.overlays == OVERLAYS_MAX + 1 => {
            let message = format!("the kernel refuses more than {OVERLAYS_MAX} overlays one above the other (EINVAL)");
            complaints.hint(&layer.key(), message, "put its directories on another filesystem");
        }
        Layer::Device(_) if depth.loops == LOOPS_MAX + 1 => {
            let message = format!("more than {LOOPS_MAX} loop devices one above the other are not supported");
            complaints.hint(&layer.key(), message, "put its file on a filesystem of a disk");
        }
        _ => {}
    }
}

impl Depth {
    fn max(self, other: Depth) -> Depth {
        Depth { overlays: self.overlays.max(other.overlays), loops: self.loops.max(other.loops) }
    }

    /// The depth with one layer more. A filesystem on a block device begins a new stack of overlays.
    fn with(self, machine: &Machine, layer: Layer<'_>) -> Depth {
        match layer {
            Layer::Device(name) => {
                let is_loop = |device: &crate::Device| matches!(device.backing, Backing::Loop { .. });
                let is_loop = machine.devices.get(name).is_some_and(is_loop);
                Depth { overlays: 0, loops: self.loops + usize::from(is_loop) }
            }
            Layer::Mount(point) => match machine.mounts.get(point).map(|mount| mount.fs_type) {
                Some(FsType::Overlay) => Depth { overlays: self.overlays + 1, ..self },
                _ => Depth { overlays: 0, ..self },
            },
        }
    }
}

/// Layers that one stands on; `None` when the comparisons are used up.
fn below<'a>(
    machine: &'a Machine,
    points: &Points<'a>,
    layer: Layer<'a>,
    complaints: &mut Complaints,
) -> Option<Vec<Layer<'a>>> {
    let mut found = Vec::new();
    let mut paths: Vec<&str> = Vec::new();
    match layer {
        Layer::Device(name) => match machine.devices.get(name).map(|device| &device.backing) {
            Some(Backing::Loop { file, .. }) => paths.push(file),
            Some(backing) => {
                let members = backing.stack().map(|(_, members)| members).unwrap_or_default();
                found.extend(members.iter().map(|member| Layer::Device(member)));
            }
            None => {}
        },
        Layer::Mount(point) => {
            let mount = machine.mounts.get(point)?;
            found.extend(mount.device.iter().map(|device| Layer::Device(device)));
            let dirs = mount.overlay.iter().flat_map(|dirs| [&dirs.lower, &dirs.upper, &dirs.work]);
            paths.extend(dirs.map(String::as_str));
            paths.extend(point.rsplit_once('/').map(|(parent, _)| parent).filter(|parent| !parent.is_empty()));
        }
    }
    for path in paths {
        if !complaints.spend(points.cost(path)) {
            return None;
        }
        found.extend(points.holding(path).map(Layer::Mount));
    }
    found.sort_unstable();
    found.dedup();
    Some(found)
}

/// Mount points, for the question which of them holds a path.
struct Points<'a> {
    machine: &'a Machine,
    /// Those of several mounts: a path is compared with each of them.
    numbered: Vec<&'a str>,
}

impl<'a> Points<'a> {
    fn of(machine: &'a Machine) -> Points<'a> {
        let numbered = machine.mounts.keys().map(String::as_str).filter(|point| point.contains('{')).collect();
        Points { machine, numbered }
    }

    /// Comparisons that a path takes.
    fn cost(&self, path: &str) -> usize {
        let parts = path.matches('/').count() + 1;
        if path.contains('{') { self.machine.mounts.len() } else { self.numbered.len() + parts }
    }

    /// The mount that a path is on: that of the longest mount point, copies taken as one.
    fn holding(&self, path: &str) -> Option<&'a str> {
        let mounts = &self.machine.mounts;
        if path.contains('{') {
            let points = mounts.keys().map(String::as_str).filter(|point| is_below(point, path));
            return points.max_by_key(|point| point.len());
        }
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        let exact = ends.filter_map(|end| mounts.get_key_value(path.get(..end)?)).map(|(point, _)| point.as_str());
        let numbered = self.numbered.iter().copied().filter(|point| is_below(point, path));
        exact.chain(numbered).max_by_key(|point| point.len())
    }
}

#[cfg(test)]
mod tests {
    use crate::ScenarioFile;

    const HEAD: &str = "name = \"s\"\nsummary = \"s\"\n[machine]\nmemory = \"1 GiB\"\n[machine.devices.disk]\n\
                        size = \"4 GiB\"\n[machine.mounts.\"/data\"]\ntype = \"ext4\"\ndevice = \"disk\"\n";
    const TASK: &str = "[workload]\nduration = \"1s\"\n[workload.tasks.t]\nsteps = [\"sync\"]\n";

    fn overlay(point: &str, copies: &str, [lower, upper, work]: [&str; 3]) -> String {
        format!(
            "[machine.mounts.\"{point}\"]\ntype = \"overlay\"\n{copies}\n\
             overlay = {{ lower = \"{lower}\", upper = \"{upper}\", work = \"{work}\" }}\n"
        )
    }

    fn image(name: &str, file: &str, point: &str) -> String {
        format!(
            "[machine.devices.{name}]\nsize = \"1 GiB\"\nbacking = {{ loop = {{ file = \"{file}\" }} }}\n\
             [machine.mounts.\"{point}\"]\ntype = \"ext4\"\ndevice = \"{name}\"\n"
        )
    }

    /// What is wrong with a machine, without places.
    fn wrong(pieces: &[String]) -> Vec<String> {
        let text = format!("{HEAD}{}{TASK}", pieces.concat());
        let problems = ScenarioFile::parse(&text).map_or_else(|error| error.problems, |_| Vec::new());
        problems.into_iter().map(|problem| format!("{}: {}", problem.key, problem.message)).collect()
    }

    #[test]
    fn what_stands_on_itself_is_refused() {
        let check = |pieces: &[String], expect: &str| {
            let wrong = wrong(pieces);
            assert!(wrong.first().is_some_and(|first| first.contains(expect)), "{expect}: {wrong:?}");
        };
        check(
            &[overlay("/a", "", ["/b/l", "/b/u", "/b/w"]), overlay("/b", "", ["/a/l", "/a/u", "/a/w"])],
            "machine.mounts.\"/a\": it stands on itself: /a on /b on /a",
        );
        check(&[overlay("/a", "", ["/data/l", "/data/u", "/a/w"])], "it stands on itself: /a on /a");
        check(&[overlay("/a", "", ["/a/b/l", "/data/u", "/data/w"])], "it stands on itself: /a on /a");
        check(
            &[image("one", "/two/image", "/one"), image("two", "/one/image", "/two")],
            "machine.devices.one: it stands on itself: one on /two on two on /one on one",
        );
        check(
            &[image("one", "/over/image", "/one"), overlay("/over", "", ["/one/l", "/one/u", "/one/w"])],
            "it stands on itself: one on /over on /one on one",
        );
        // The filesystem of the file is mounted below the image.
        check(
            &[image("one", "/one/two/image", "/one"), "[machine.mounts.\"/one/two\"]\ntype = \"tmpfs\"\n".to_owned()],
            "it stands on itself: one on /one/two on /one on one",
        );
        // One copy on another.
        check(
            &[overlay("/a{i}", "instances = 3", ["/a0/l", "/data/u{i}", "/data/w{i}"])],
            "it stands on itself: /a{i} on /a{i}",
        );
    }

    #[test]
    fn layers_that_can_be_built_are_good() {
        let good: [&[String]; 6] = [
            &[
                overlay("/a", "", ["/data/l", "/data/u", "/data/w"]),
                overlay("/b", "", ["/a/l", "/data/u2", "/data/w2"]),
            ],
            &[overlay("/data/merged", "", ["/data/l", "/data/u", "/data/w"])],
            &[overlay("/data/m{i}", "instances = 9", ["/data/l", "/data/u{i}", "/data/w{i}"])],
            &[image("one", "/data/image", "/data/one"), image("two", "/data/one/image", "/data/one/two")],
            &[image("one", "/data/image", "/one"), overlay("/over", "", ["/one/l", "/one/u", "/one/w"])],
            &[overlay("/a", "", ["/tmp/l", "/data/u", "/data/w"])],
        ];
        for pieces in good {
            assert_eq!(wrong(pieces), Vec::<String>::new(), "{pieces:?}");
        }
    }

    #[test]
    fn stacks_have_a_height() {
        let on = |n: usize| {
            overlay(
                &format!("/o{n}"),
                "",
                ["l", "u", "w"].map(|dir| -> &'static str {
                    Box::leak(
                        format!("/{}/{dir}", if n == 0 { "data".to_owned() } else { format!("o{}", n - 1) }).into(),
                    )
                }),
            )
        };
        assert_eq!(wrong(&[on(0), on(1)]), Vec::<String>::new());
        let three = wrong(&[on(0), on(1), on(2), on(3)]);
        let expect = "machine.mounts.\"/o2\": the kernel refuses more than 2 overlays one above the other (EINVAL)";
        assert_eq!(three, [expect]);
        let below = |n: usize| if n == 0 { "/data/image".to_owned() } else { format!("/m{}/image", n - 1) };
        let images = |count: usize| -> Vec<String> {
            (0..count).map(|n| image(&format!("l{n}"), &below(n), &format!("/m{n}"))).collect()
        };
        assert_eq!(wrong(&images(8)), Vec::<String>::new());
        let deep = wrong(&images(400));
        let expect = "machine.devices.l8: more than 8 loop devices one above the other are not supported";
        assert_eq!(deep, [expect]);
    }
}
