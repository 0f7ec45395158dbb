// SPDX-License-Identifier: MIT OR Apache-2.0
//! Room below the limits of a cgroup and its ancestors: `min(max, high) - usage`, the least of all.
//! `memory.high` counts as `memory.max` does; protections (`memory.low`, `memory.min`) do not count.

use super::LimitKind;
use super::inputs::{Inputs, PageBound, gap};
use floodline_record::gap::{Gap, Source};
use floodline_record::id::EntityId;
use floodline_record::name::Name;

/// The least room, and whose limit it is below.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Room {
    pub(super) pages: PageBound,
    pub(super) of: EntityId,
    pub(super) path: Name,
    pub(super) limit: LimitKind,
}

/// Paths from a cgroup up to the root of the hierarchy as it was read, the root included: the root of a
/// cgroup namespace is an ordinary cgroup with limits, and a real root has none.
fn ancestors(path: &Name) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(path.as_bytes()), |current| {
        let slash = current.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
        (current.len() > 1).then(|| &current[..slash.max(1)])
    })
}

/// The least room of a cgroup, `None` without any limit, and what of it was not read.
pub(super) fn headroom(inputs: &Inputs, path: &Name) -> (Option<Room>, Vec<Gap>) {
    let mut least: Option<Room> = None;
    let mut missing = Vec::new();
    // A limit that was not read could leave no room at all.
    let mut unread = false;
    for ancestor in ancestors(path) {
        let is_root = ancestor == b"/";
        let shown = || Name::new(ancestor).to_string();
        let Some(&id) = inputs.paths.get(ancestor) else {
            if !is_root {
                unread = true;
                missing.push(gap(inputs.window, Source::MemoryLimits, &shown()));
            }
            continue;
        };
        let Some(limits) = inputs.limits(id) else {
            if !is_root {
                unread = true;
                missing.push(gap(inputs.window, Source::MemoryLimits, &shown()));
            }
            continue;
        };
        let (max, high) = match (limits.memory_max, limits.memory_high) {
            (None, None) if is_root => continue,
            (Some(max), Some(high)) => (max, high),
            (max, high) => {
                unread = true;
                missing.push(gap(inputs.window, Source::MemoryLimits, &shown()));
                (
                    max.unwrap_or(floodline_record::units::Limit::MAX),
                    high.unwrap_or(floodline_record::units::Limit::MAX),
                )
            }
        };
        let (limit, kind) = if high.0 < max.0 { (high, LimitKind::High) } else { (max, LimitKind::Max) };
        let Some(limit) = limit.bytes().map(|bytes| inputs.pages(bytes)) else { continue };
        let pages = match inputs.cgroup(id).and_then(|row| row.memory_current) {
            Some(usage) => PageBound::exactly(limit.saturating_sub(inputs.pages(usage))),
            None => {
                missing.push(gap(inputs.window, Source::MemoryCurrent, &shown()));
                PageBound { low: 0, high: limit }
            }
        };
        least = Some(match least {
            None => Room { pages, of: id, path: Name::new(ancestor), limit: kind },
            Some(least) => {
                let both = PageBound { low: least.pages.low.min(pages.low), high: least.pages.high.min(pages.high) };
                if pages.high < least.pages.high {
                    Room { pages: both, of: id, path: Name::new(ancestor), limit: kind }
                } else {
                    Room { pages: both, ..least }
                }
            }
        });
    }
    if unread && let Some(room) = &mut least {
        room.pages.low = 0;
    }
    (least, missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_end_at_the_root() {
        let check = |path: &str, expect: &[&str]| {
            let got: Vec<String> = ancestors(&Name::from(path)).map(|name| Name::new(name).to_string()).collect();
            assert_eq!(got, expect, "{path}");
        };
        check("/a/b", &["/a/b", "/a", "/"]);
        check("/a", &["/a", "/"]);
        check("/", &["/"]);
        check("", &[""]);
    }
}
