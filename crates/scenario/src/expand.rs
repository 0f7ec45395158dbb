// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies written out: every cgroup, mount and task of a scenario with its numbers filled in. Both
//! executors start from these lists, so that copy 7 has the same paths and the same seed in both.

use super::machine::{Cgroup, Machine, Mount, OverlayDirs};
use super::quantity::Time;
use super::real_program::RealProgram;
use super::step::Step;
use super::workload::STALL_OVER;
use super::{Scenario, Task};
use floodline_record::units::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A cgroup to create.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CgroupCopy {
    /// Path below the root of the hierarchy, without a leading slash; empty for the root.
    pub path: String,
    /// Its limits and controllers; default for a parent that the scenario does not name.
    pub spec: Cgroup,
}

/// A filesystem to mount.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MountCopy {
    /// Mount point.
    pub point: String,
    /// What is mounted, paths filled in.
    pub spec: Mount,
}

/// A task to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskCopy {
    /// Name of the task in the scenario.
    pub task: String,
    /// Number of the copy among all copies of the task, from 0.
    pub copy: u32,
    /// Path of its cgroup; empty for the root.
    pub cgroup: String,
    /// When it starts, after the end of all setups.
    pub start: Nanos,
    /// Seed of everything random in it.
    pub seed: u64,
    /// What counts as a stall.
    pub stall_over: Time,
    /// Steps before the clock starts.
    pub setup: Vec<Step>,
    /// The program; empty for a real one.
    pub steps: Vec<Step>,
    /// The real program.
    pub program: Option<RealProgram>,
}

impl TaskCopy {
    /// Name and number, e.g. `writers-3`.
    pub fn label(&self) -> String {
        format!("{}-{}", self.task, self.copy)
    }
}

/// Fills `{letter}` in.
pub fn fill(text: &str, letter: char, number: u64) -> String {
    let mut filled = String::with_capacity(text.len() + 8);
    let mut rest = text;
    // Names are short: this is faster than what searches long texts.
    while let Some(at) = rest.bytes().position(|byte| byte == b'{') {
        let after = &rest[at + 1..];
        filled.push_str(&rest[..at]);
        match after.strip_prefix(letter).and_then(|after| after.strip_prefix('}')) {
            Some(after) => {
                let _ = write!(filled, "{number}");
                rest = after;
            }
            None => {
                filled.push('{');
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    filled
}

/// The number with which `fill(pattern, 'i', number)` is `text`; `None` where there is none, or no `{i}` to fill in.
fn number_of(pattern: &str, text: &str) -> Option<u32> {
    let (before, _) = pattern.split_once("{i}")?;
    let times = pattern.matches("{i}").count();
    // Each `{i}` is as long as the others.
    let filled_in = text.len().checked_sub(pattern.len() - 3 * times)?;
    let digits = text.get(before.len()..before.len() + filled_in / times)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    let mut rest = text;
    for (place, literal) in pattern.split("{i}").enumerate() {
        rest = if place > 0 { rest.strip_prefix(digits)? } else { rest }.strip_prefix(literal)?;
    }
    if is_number && rest.is_empty() { digits.parse().ok() } else { None }
}

impl Machine {
    /// The key of a cgroup that a text names: the key itself, or that of the group of which it names a member, such as
    /// `box0` of `box{i}`.
    pub(super) fn cgroup_key(&self, path: &str) -> Option<&str> {
        let is_member = |key: &&String| number_of(key, path).is_some_and(|i| i < self.copies_of_cgroup(key));
        let exact = self.cgroups.get_key_value(path).map(|(key, _)| key);
        exact.or_else(|| self.cgroups.keys().find(is_member)).map(String::as_str)
    }

    /// The number of the member of a group of cgroups that a text names: 2 of `box2`, where `box{i}` is the group.
    fn member_number(&self, path: &str) -> Option<u32> {
        let key = self.cgroup_key(path).filter(|key| *key != path)?;
        number_of(key, path)
    }

    /// Number of copies of a cgroup: the `instances` of the nearest cgroup on its path that has some.
    pub fn copies_of_cgroup(&self, path: &str) -> u32 {
        let mut prefix = path;
        loop {
            if let Some(instances) = self.cgroups.get(prefix).and_then(|cgroup| cgroup.instances) {
                return instances;
            }
            match prefix.rsplit_once('/') {
                Some((parent, _)) => prefix = parent,
                None => return 1,
            }
        }
    }
}

impl Scenario {
    /// Number of task copies, without writing them out.
    pub fn number_of_tasks(&self) -> u64 {
        let copies = |task: &Task| u64::from(self.copies_for(task)).saturating_mul(task.instances.unwrap_or(1).into());
        self.workload.tasks.values().map(copies).fold(0, u64::saturating_add)
    }

    /// Number of cgroup copies, without writing them out; parents that the scenario does not name are not among them.
    pub fn number_of_cgroups(&self) -> u64 {
        let copies = |path: &String| u64::from(self.machine.copies_of_cgroup(path));
        self.machine.cgroups.keys().map(copies).fold(0, u64::saturating_add)
    }

    /// Every cgroup to create: parents first, then in the order in which the tasks use them. Tasks are in order of name; the
    /// names of their cgroups do not matter.
    pub fn cgroup_copies(&self) -> Vec<CgroupCopy> {
        let mut all: BTreeMap<String, Cgroup> = BTreeMap::new();
        for (path, cgroup) in &self.machine.cgroups {
            for i in 0..self.machine.copies_of_cgroup(path) {
                let path = fill(path.trim_matches('/'), 'i', i.into());
                for (at, _) in path.match_indices('/') {
                    all.entry(path[..at].to_owned()).or_default();
                }
                all.insert(path, Cgroup { instances: None, ..cgroup.clone() });
            }
        }
        let mut copies: Vec<_> = all.into_iter().map(|(path, spec)| CgroupCopy { path, spec }).collect();
        let mut used: BTreeMap<String, usize> = BTreeMap::new();
        for task in self.workload.tasks.values() {
            let path = task.cgroup.as_deref().unwrap_or_default().trim_matches('/');
            for i in 0..self.copies_for(task) {
                let path = fill(path, 'i', i.into());
                let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
                for end in ends {
                    let next = used.len();
                    used.entry(path[..end].to_owned()).or_insert(next);
                }
            }
        }
        let first_use = |path: &str| used.get(path).copied().unwrap_or(usize::MAX);
        copies.sort_by_cached_key(|copy| (copy.path.matches('/').count(), first_use(&copy.path)));
        copies
    }

    /// Every filesystem, in an order in which they can be mounted: an overlay after those that its
    /// directories may be on, and a mount point after the mount it is in.
    pub fn mount_copies(&self) -> Vec<MountCopy> {
        let mut copies = Vec::new();
        for (point, mount) in &self.machine.mounts {
            for i in 0..mount.instances.unwrap_or(1) {
                let fill = |text: &str| fill(text, 'i', i.into());
                let overlay = mount.overlay.as_ref().map(|dirs| OverlayDirs {
                    lower: fill(&dirs.lower),
                    upper: fill(&dirs.upper),
                    work: fill(&dirs.work),
                });
                let spec = Mount { overlay, instances: None, ..mount.clone() };
                copies.push(MountCopy { point: fill(point), spec });
            }
        }
        copies.sort_by_key(|copy| (copy.spec.overlay.is_some(), copy.point.matches('/').count()));
        copies
    }

    /// Every task to run, in order of name and number.
    pub fn task_copies(&self) -> Vec<TaskCopy> {
        let mut copies = Vec::new();
        for (index, (name, task)) in (0_u64..).zip(&self.workload.tasks) {
            let program = task.expand();
            let per_cgroup = task.instances.unwrap_or(1);
            let member = task.cgroup.as_deref().and_then(|cgroup| self.machine.member_number(cgroup));
            for number in 0..self.copies_for(task) {
                let i = member.unwrap_or(number);
                for j in 0..per_cgroup {
                    let copy = number.saturating_mul(per_cgroup).saturating_add(j);
                    let numbered = |steps: &[Step]| numbered(steps, i, j);
                    let stagger = task.stagger.map_or(0, Time::nanos).saturating_mul(copy.into());
                    copies.push(TaskCopy {
                        task: name.clone(),
                        copy,
                        cgroup: fill(task.cgroup.as_deref().unwrap_or_default().trim_matches('/'), 'i', i.into()),
                        start: Nanos(task.start.map_or(0, Time::nanos).saturating_add(stagger)),
                        seed: seed(self.workload.seed, index, copy),
                        stall_over: task.stall_over.unwrap_or(STALL_OVER),
                        setup: numbered(&program.setup),
                        steps: numbered(&program.steps),
                        program: task.program.as_ref().map(|program| {
                            let fill = |text: &String| fill(&fill(text, 'i', i.into()), 'j', j.into());
                            program.numbered(&[("i", i), ("j", j)], fill)
                        }),
                    });
                }
            }
        }
        copies
    }

    /// The same with every preset written out as setup and steps.
    #[must_use]
    pub fn with_presets_written_out(&self) -> Scenario {
        let mut scenario = self.clone();
        for task in scenario.workload.tasks.values_mut() {
            let program = task.expand();
            task.preset = None;
            (task.setup, task.steps) = (program.setup, program.steps);
        }
        scenario
    }

    /// How many cgroups a task runs in.
    pub(super) fn copies_for(&self, task: &Task) -> u32 {
        task.cgroup.as_deref().map_or(1, |cgroup| self.machine.copies_of_cgroup(cgroup))
    }
}

fn numbered(steps: &[Step], i: u32, j: u32) -> Vec<Step> {
    let mut steps = steps.to_vec();
    for step in &mut steps {
        step.each_text(&mut |_, text| {
            // Of many steps, few have a number to fill in.
            if text.contains('{') {
                *text = fill(&fill(text, 'i', i.into()), 'j', j.into());
            }
        });
    }
    steps
}

/// A seed for each task copy: neighbours must not be alike, so the numbers are mixed (splitmix64).
fn seed(base: u64, task: u64, copy: u32) -> u64 {
    let mut mixed = base ^ (task << 32 | u64::from(copy)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
