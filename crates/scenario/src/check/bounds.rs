// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steps that no executor can carry out although each key is valid: rounds that take no time and go on for ever, and mappings
//! that are larger than the filesystem of their file.

use super::Complaints;
use super::machine::{mount_at, mount_of};
use crate::machine::{Backing, FsType, Layout, Machine};
use crate::step::{MmapStore, Repeat, Step};
use crate::{ByteSize, Device};
use floodline_record::units::Bytes;
use std::collections::BTreeMap;

/// Rounds that may take no time: each makes a line of the recording at the most.
const ROUNDS_MAX: u64 = 10_000;
/// Pages of one burst of stores, 4 GiB: an executor holds the number of each.
const BURST_MAX: u64 = 1 << 20;
/// Overlays and stacks of devices are lower than this, which other checks see to.
const LAYERS_MAX: usize = 16;

/// Refuses a `repeat` that goes on for ever, or for very many rounds, without time passing.
pub(super) fn rounds(repeat: &Repeat, key: &[&str], complaints: &mut Complaints) {
    let is_paced = repeat.every.is_some_and(|every| every.nanos() > 0);
    let is_short = repeat.times.is_some_and(|times| times <= ROUNDS_MAX);
    if is_paced || is_short || repeat.steps.iter().any(|step| takes_time(step, false)) {
        return;
    }
    let rounds = repeat.times.map_or("endless".to_owned(), |times| times.to_string());
    let message = format!("its steps take no time: {rounds} rounds would be over at one moment, or never");
    complaints.hint(key, message, "give it every = \"1s\", or a step that takes time, such as a sleep");
}

/// Whether time passes in a step, in every round of a loop around it. Calls of the kernel take a little time. `in_branch`: whether the step
/// is in a branch that begins within the loop. `sleep_until` counts from the begin of its branch, so it waits in each round.
fn takes_time(step: &Step, in_branch: bool) -> bool {
    let any = |steps: &[Step], in_branch| steps.iter().any(|step| takes_time(step, in_branch));
    match step {
        // A later round waits neither for a task that has ended nor for a time that has passed.
        Step::Note(_) | Step::WaitFor(_) => false,
        Step::SleepUntil(until) => in_branch && until.at.nanos() > 0,
        Step::Sleep(step) | Step::Burn(step) => step.lasting.nanos() > 0,
        Step::Repeat(repeat) => {
            let is_paced = repeat.every.is_some_and(|every| every.nanos() > 0);
            repeat.times != Some(0) && (is_paced && repeat.times != Some(1) || any(&repeat.steps, in_branch))
        }
        Step::Parallel(parallel) => parallel.branches.iter().any(|branch| any(branch, true)),
        _ => true,
    }
}

/// Refuses a mapping that its filesystem cannot hold, and a burst of more pages than an executor holds.
pub(super) fn mapping(machine: &Machine, store: &MmapStore, key: &[&str], complaints: &mut Complaints) {
    if store.pages > BURST_MAX {
        let message = format!("{} pages in one burst; at most {BURST_MAX}", store.pages);
        complaints.hint(key, message, "write fewer pages, and a higher rate");
    }
    if !complaints.spend(machine.mounts.len()) {
        return;
    }
    let Some(room) = room(machine, &store.file, LAYERS_MAX).filter(|room| store.size.bytes() > *room) else { return };
    let (size, room) = (store.size, ByteSize(Bytes(room)));
    let message = format!("a mapping of {size} is larger than the filesystem of {:?}, which has {room}", store.file);
    complaints.hint(key, message, "write a smaller size, or give the device a larger one");
}

/// Bytes that the filesystem of a path has at most; `None` where that is unknown.
fn room(machine: &Machine, path: &str, layers: usize) -> Option<u64> {
    let layers = layers.checked_sub(1)?;
    // A tmpfs takes half of the memory, and so does what is on no mount: the guest's own.
    let of_memory = machine.memory.bytes() / 2;
    let Some(mount) = mount_of(machine, path) else { return Some(of_memory) };
    match (mount.fs_type, &mount.overlay, &mount.device) {
        (FsType::Tmpfs, ..) => Some(of_memory),
        (FsType::Overlay, Some(dirs), _) => room(machine, &dirs.upper, layers),
        (.., Some(device)) => size(machine, machine.devices.get(device)?, layers),
        _ => None,
    }
}

/// Bytes of a device.
fn size(machine: &Machine, device: &Device, layers: usize) -> Option<u64> {
    let layers = layers.checked_sub(1)?;
    let (layout, members) = match &device.backing {
        Backing::Disk | Backing::Loop { .. } => return device.size.map(ByteSize::bytes),
        stacked => stacked.stack()?,
    };
    let sizes = members.iter().map(|member| size(machine, machine.devices.get(member)?, layers));
    let sizes: Vec<u64> = sizes.collect::<Option<_>>()?;
    let (least, count) = (sizes.iter().copied().min()?, u64::try_from(sizes.len()).ok()?);
    Some(match layout {
        Layout::Mirrors => least,
        Layout::Stripes(_) => least.saturating_mul(count),
        Layout::MirroredStripes(_) => least.saturating_mul(count / 2),
        Layout::Linear | Layout::Encrypted(_) => sizes.iter().copied().fold(0, u64::saturating_add),
    })
}

impl Machine {
    /// Returns the mount points whose filesystem is smaller than the images of the loop devices on it. Each comes with the room
    /// of the filesystem and the size of its images, in bytes.
    pub fn outgrown(&self) -> Vec<(&str, u64, u64)> {
        let mut images: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for device in self.devices.values() {
            let (Backing::Loop { file, .. }, Some(size)) = (&device.backing, device.size) else { continue };
            let Some((point, _)) = mount_at(self, file) else { continue };
            let Some(room) = room(self, file, LAYERS_MAX) else { continue };
            let (_, taken) = images.entry(point).or_insert((room, 0));
            *taken = taken.saturating_add(size.bytes());
        }
        let too_large = images.into_iter().filter(|(_, (room, taken))| taken > room);
        too_large.map(|(point, (room, taken))| (point, room, taken)).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::ScenarioFile;

    const MACHINE: &str = "name = \"s\"\nsummary = \"s\"\n[machine]\nmemory = \"1 GiB\"\n\
        devices.a.size = \"4 GiB\"\ndevices.b.size = \"3 GiB\"\ndevices.c.size = \"2 GiB\"\n\
        devices.r = { backing = { raid1 = { members = [\"b\", \"c\"] } } }\n\
        mounts.\"/data\" = { type = \"ext4\", device = \"a\" }\nmounts.\"/mirror\" = { type = \"ext4\", device = \"r\" }\n\
        mounts.\"/memory\" = { type = \"tmpfs\" }\n\
        [machine.mounts.\"/over\"]\ntype = \"overlay\"\n\
        overlay = { lower = \"/data/l\", upper = \"/mirror/u\", work = \"/mirror/w\" }\n";

    /// The complaint about one step; empty where it is good.
    fn wrong(step: &str) -> String {
        let text = format!("{MACHINE}[workload]\nduration = \"9s\"\n[workload.tasks.t]\nsteps = [{step}]\n");
        let problems = ScenarioFile::parse(&text).map_or_else(|error| error.problems, |_| Vec::new());
        problems.iter().map(|problem| format!("{}: {}\n", problem.key, problem.message)).collect()
    }

    #[test]
    fn rounds_that_take_no_time_are_refused() {
        let note = "{ note = { text = \"x\" } }";
        let (until, none) = ("{ sleep_until = { at = \"1s\" } }", "{ sleep_until = { at = \"0s\" } }");
        let refused = [
            format!("{{ repeat = {{ steps = [{note}] }} }}"),
            format!(
                "{{ repeat = {{ every = \"1s\", steps = [{{ repeat = {{ for = \"1s\", steps = [{note}] }} }}] }} }}"
            ),
            format!("{{ repeat = {{ times = 1_000_000_000_000, steps = [{note}] }} }}"),
            format!("{{ repeat = {{ for = \"2s\", steps = [{note}, {{ sleep = {{ for = \"0s\" }} }}] }} }}"),
            format!("{{ repeat = {{ steps = [{note}, {{ sleep_until = {{ at = \"5s\" }} }}] }} }}"),
            format!("{{ repeat = {{ steps = [{{ repeat = {{ times = 3, steps = [{note}] }} }}] }} }}"),
            format!("{{ repeat = {{ steps = [{{ parallel = {{ branches = [[{note}], [{note}]] }} }}] }} }}"),
            format!("{{ repeat = {{ steps = [{note}, {{ repeat = {{ times = 0, steps = [\"sync\"] }} }}] }} }}"),
            // Within a branch, only the first round waits. A time of nothing waits in none.
            format!("{{ parallel = {{ branches = [[{{ repeat = {{ steps = [{until}] }} }}]] }} }}"),
            format!("{{ repeat = {{ steps = [{{ parallel = {{ branches = [[{none}], [{note}]] }} }}] }} }}"),
        ];
        for step in refused {
            assert!(wrong(&step).contains("repeat: its steps take no time: "), "{step}: {}", wrong(&step));
        }
        let good = [
            format!("{{ repeat = {{ times = 9, steps = [{note}] }} }}"),
            format!("{{ repeat = {{ every = \"1s\", steps = [{note}] }} }}"),
            format!("{{ repeat = {{ steps = [{note}, {{ sleep = {{ for = \"1s\" }} }}] }} }}"),
            format!("{{ repeat = {{ steps = [{{ repeat = {{ times = 2, every = \"1s\", steps = [{note}] }} }}] }} }}"),
            format!("{{ repeat = {{ steps = [{{ parallel = {{ branches = [[{note}], [\"sync\"]] }} }}] }} }}"),
            format!("{{ repeat = {{ steps = [{{ parallel = {{ branches = [[{until}], [{note}]] }} }}] }} }}"),
        ];
        for step in good {
            assert_eq!(wrong(&step), "", "{step}");
        }
    }

    #[test]
    fn a_mapping_fits_its_filesystem() {
        let check = |file: &str, size: &str, room: &str| {
            let step = format!("{{ mmap_store = {{ file = \"{file}\", size = \"{size}\", rate = \"1/s\" }} }}");
            let wrong = wrong(&step);
            match room {
                "" => assert_eq!(wrong, "", "{file} {size}"),
                room => assert!(
                    wrong.contains(&format!("mapping of {size} is larger than the filesystem of "))
                        && wrong.contains(&format!("which has {room}\n")),
                    "{file} {size}: {wrong}"
                ),
            }
        };
        check("/data/m", "4 GiB", "");
        check("/data/m", "900 TiB", "4 GiB");
        check("/mirror/m", "2 GiB", "");
        check("/mirror/m", "3 GiB", "2 GiB");
        check("/over/m", "3 GiB", "2 GiB");
        check("/memory/m", "512 MiB", "");
        check("/memory/m", "1 GiB", "512 MiB");
        check("/tmp/m", "1 GiB", "512 MiB");
        let burst = wrong("{ mmap_store = { file = \"/data/m\", size = \"4 GiB\", pages = 2_000_000 } }");
        assert!(burst.contains("2000000 pages in one burst; at most 1048576"), "{burst}");
    }
}
