// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dirty limits of cgroups before and after a change: the kernel's arithmetic over all cgroups of the recording that have a limit of
//! their own. Plain data; the twin fills it and the view shows it.

use serde::Serialize;

/// A limit before and after a change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// Before the change, bytes; infinite (`null` in JSON) where there is no limit.
    pub now_bytes: f64,
    /// After it, bytes.
    pub then_bytes: f64,
}

/// The limit of one cgroup.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LimitOf {
    /// Name for people (escaped).
    pub cgroup: String,
    /// Its limit.
    #[serde(flatten)]
    pub limit: Limit,
    /// Dirty and writeback pages at the end of the recording, as a share of the limit before the change. Absent where they were not
    /// counted.
    pub used_share: Option<f64>,
}

/// Limits of the cgroups of a recording before and after a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limits {
    /// Number of cgroups with a limit.
    pub cgroups: usize,
    /// The smallest limit of each moment. The two may be of different cgroups.
    pub smallest: Limit,
    /// The median of each moment.
    pub median: Limit,
    /// The cgroups that are nearest to their limits before the change, the nearest first.
    pub starved: Vec<LimitOf>,
}

/// Most cgroups that are named.
const STARVED_MAX: usize = 5;

impl Limits {
    /// The smallest limits of both moments, where there is one now.
    pub fn compared(&self) -> Option<Limit> {
        Some(self.smallest).filter(|limit| limit.now_bytes.is_finite())
    }

    /// Of the limits of all cgroups; `None` without any.
    pub fn of(mut all: Vec<LimitOf>) -> Option<Limits> {
        let sorted = |of: fn(&Limit) -> f64| {
            let mut values: Vec<f64> = all.iter().map(|one| of(&one.limit)).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let (now, then) = (sorted(|one| one.now_bytes), sorted(|one| one.then_bytes));
        let smallest = Limit { now_bytes: *now.first()?, then_bytes: *then.first()? };
        // Of an even number, the smaller of the two in the middle: it is the limit of a cgroup.
        let middle = (now.len() - 1) / 2;
        let median = Limit { now_bytes: now[middle], then_bytes: then[middle] };
        let cgroups = all.len();
        let used = |one: &LimitOf| one.used_share.unwrap_or(0.0);
        all.sort_by(|a, b| {
            let by_size = || a.limit.now_bytes.total_cmp(&b.limit.now_bytes);
            let by_new_size = || a.limit.then_bytes.total_cmp(&b.limit.then_bytes);
            used(b).total_cmp(&used(a)).then_with(by_size).then_with(by_new_size).then_with(|| a.cgroup.cmp(&b.cgroup))
        });
        all.truncate(STARVED_MAX);
        Some(Limits { cgroups, smallest, median, starved: all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cgroups_nearest_to_their_limits_come_first() {
        let of = |name: &str, now_bytes, then_bytes, used_share| LimitOf {
            cgroup: name.to_owned(),
            limit: Limit { now_bytes, then_bytes },
            used_share,
        };
        let all = vec![
            of("a", 40.0, 10.0, None),
            of("b", 10.0, 20.0, Some(0.5)),
            of("c", 30.0, 30.0, Some(0.9)),
            of("d", 20.0, 40.0, None),
        ];
        let limits = Limits::of(all).expect("four cgroups");
        assert_eq!(limits.cgroups, 4);
        assert_eq!(limits.smallest, Limit { now_bytes: 10.0, then_bytes: 10.0 });
        assert_eq!(limits.median, Limit { now_bytes: 20.0, then_bytes: 20.0 });
        let names: Vec<&str> = limits.starved.iter().map(|one| one.cgroup.as_str()).collect();
        assert_eq!(names, ["c", "b", "d", "a"], "without a known use, the smallest limit comes first");
        assert_eq!(Limits::of(Vec::new()), None);
    }
}
