// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where tasks meet. A barrier opens when all threads have come that can still come: those of task copies that have not
//! ended. Of one copy these are the threads that have the barrier in their steps, not how often they have it.

use crate::{Step, TaskCopy};
use std::collections::BTreeMap;

/// All barriers of a workload.
#[derive(Clone, Debug, Default)]
pub struct Barriers {
    /// Threads of each copy that come to a barrier. Copies that ended have none.
    parties: BTreeMap<String, BTreeMap<usize, usize>>,
    /// The copies of the threads that wait, and how often the barrier opened.
    state: BTreeMap<String, (Vec<usize>, u64)>,
}

impl Barriers {
    /// The barriers of these task copies, which are named by their numbers in the list.
    pub fn of(copies: &[TaskCopy]) -> Barriers {
        let mut barriers = Barriers::default();
        for (number, copy) in copies.iter().enumerate() {
            let mut names = Vec::new();
            names_in(&copy.setup, &mut names);
            names_in(&copy.steps, &mut names);
            for name in names {
                let threads = parties(&copy.setup, name).max(parties(&copy.steps, name));
                barriers.parties.entry(name.to_owned()).or_default().insert(number, threads);
            }
        }
        barriers
    }

    /// A thread of a copy has come to a barrier. It waits while [`Barriers::round`] is what is returned.
    pub fn arrive(&mut self, number: usize, name: &str) -> u64 {
        let round = self.round(name);
        self.state.entry(name.to_owned()).or_default().0.push(number);
        self.open(name);
        round
    }

    /// How often a barrier has opened.
    pub fn round(&self, name: &str) -> u64 {
        self.state.get(name).map_or(0, |(_, opened)| *opened)
    }

    /// A copy has ended: no barrier waits for it any more.
    pub fn end(&mut self, number: usize) {
        for copies in self.parties.values_mut() {
            copies.remove(&number);
        }
        for (waiting, _) in self.state.values_mut() {
            waiting.retain(|waits| *waits != number);
        }
        let names: Vec<String> = self.state.keys().cloned().collect();
        names.iter().for_each(|name| self.open(name));
    }

    fn open(&mut self, name: &str) {
        let expected: usize = self.parties.get(name).map_or(0, |copies| copies.values().sum());
        if let Some((waiting, opened)) = self.state.get_mut(name)
            && !waiting.is_empty()
            && waiting.len() >= expected
        {
            waiting.clear();
            *opened += 1;
        }
    }
}

fn names_in<'s>(steps: &'s [Step], names: &mut Vec<&'s str>) {
    for step in steps {
        match step {
            Step::Barrier(barrier) => names.push(&barrier.name),
            Step::Repeat(repeat) => names_in(&repeat.steps, names),
            Step::Parallel(parallel) => parallel.branches.iter().for_each(|branch| names_in(branch, names)),
            _ => {}
        }
    }
}

/// How many threads come to a barrier at the same time.
fn parties(steps: &[Step], name: &str) -> usize {
    let of = |step: &Step| match step {
        Step::Barrier(barrier) => usize::from(barrier.name == name),
        Step::Repeat(repeat) => parties(&repeat.steps, name),
        Step::Parallel(parallel) => parallel.branches.iter().map(|branch| parties(branch, name)).sum(),
        _ => 0,
    };
    steps.iter().map(of).max().unwrap_or(0)
}
