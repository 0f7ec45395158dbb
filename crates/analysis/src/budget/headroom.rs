// SPDX-License-Identifier: MIT OR Apache-2.0
//! Room below the limits of a cgroup and its ancestors: `min(max, high) - usage`, the least of all.
//! `memory.high` counts as `memory.max` does; protections (`memory.low`, `memory.min`) do not count.

use super::LimitKind;
use super::inputs::{Inputs, PageBound, gap};
use floodline_record::gap::{Gap, Source};
use floodline_record::id::EntityId;
use floodline_record::name::Name;
use floodline_record::units::Limit;

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

/// Room that the limits of one or more nested cgroups leave.
#[derive(Clone, Debug, Default)]
struct Rooms {
    least: Option<Room>,
    missing: Vec<Gap>,
    /// Whether a limit was not read: it could leave no room at all.
    unread: bool,
}

/// The rooms of all ancestors of the cgroup that was looked at last. Siblings follow each other in order of path, and have
/// the same ones.
#[derive(Debug, Default)]
pub(super) struct Above {
    parent: Option<Name>,
    rooms: Rooms,
}

/// The least room of a cgroup; `None` without any limit. Adds what was not read to `missing`.
pub(super) fn headroom(
    inputs: &Inputs,
    above: &mut Above,
    (path, id): (&Name, EntityId),
    missing: &mut Vec<Gap>,
) -> Option<Room> {
    let mut own = Rooms::default();
    own.add(inputs, path.as_bytes(), Some((path, id)));
    let mut upwards = ancestors(path).skip(1);
    if let Some(parent) = upwards.next() {
        if above.parent.as_ref().is_none_or(|known| known.as_bytes() != parent) {
            let mut rooms = Rooms::default();
            std::iter::once(parent).chain(upwards).for_each(|ancestor| {
                let known = inputs.paths.get_key_value(ancestor).map(|(path, id)| (path, *id));
                rooms.add(inputs, ancestor, known);
            });
            *above = Above { parent: Some(Name::new(parent)), rooms };
        }
        let Rooms { least, missing, unread } = &above.rooms;
        own.missing.extend(missing.iter().cloned());
        own.unread |= unread;
        if let Some(room) = least {
            own.below(room.clone());
        }
    }
    missing.append(&mut own.missing);
    if own.unread
        && let Some(room) = &mut own.least
    {
        room.pages.low = 0;
    }
    own.least
}

impl Rooms {
    /// Adds the limits of one cgroup; `known` if it was read.
    fn add(&mut self, inputs: &Inputs, path: &[u8], known: Option<(&Name, EntityId)>) {
        let is_root = path == b"/";
        let shown = || Name::new(path).to_string();
        let limits = known.and_then(|(path, id)| Some((path, id, inputs.limits(id)?)));
        let Some((path, id, limits)) = limits else {
            if !is_root {
                self.unread = true;
                self.missing.push(gap(inputs.window, Source::MemoryLimits, &shown()));
            }
            return;
        };
        let (max, high) = match (limits.memory_max, limits.memory_high) {
            (None, None) if is_root => return,
            (Some(max), Some(high)) => (max, high),
            (max, high) => {
                self.unread = true;
                self.missing.push(gap(inputs.window, Source::MemoryLimits, &shown()));
                (max.unwrap_or(Limit::MAX), high.unwrap_or(Limit::MAX))
            }
        };
        let (limit, kind) = if high.0 < max.0 { (high, LimitKind::High) } else { (max, LimitKind::Max) };
        let Some(limit) = limit.bytes().map(|bytes| inputs.pages(bytes)) else { return };
        let pages = match inputs.cgroup(id).and_then(|row| row.memory_current) {
            Some(usage) => PageBound::exactly(limit.saturating_sub(inputs.pages(usage))),
            None => {
                self.missing.push(gap(inputs.window, Source::MemoryCurrent, &shown()));
                PageBound { low: 0, high: limit }
            }
        };
        self.below(Room { pages, of: id, path: path.clone(), limit: kind });
    }

    /// Adds the room that an ancestor leaves.
    fn below(&mut self, room: Room) {
        self.least = Some(match self.least.take() {
            None => room,
            Some(least) => {
                let low = least.pages.low.min(room.pages.low);
                let nearest = if room.pages.high < least.pages.high { room } else { least };
                Room { pages: PageBound { low, high: nearest.pages.high }, ..nearest }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::units::Bytes;
    use floodline_testkit::{Dice, Fixture};

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

    #[test]
    fn siblings_have_the_rooms_that_each_of_them_has_alone() {
        let mut dice = Dice(0x5eed_ab0e);
        for _ in 0..40 {
            let mut fixture = Fixture::healthy();
            for number in 0..12 {
                let parts = ["/a", "/b", "/c"];
                let depth = 1 + dice.roll(3);
                let path: String = (0..depth).map(|_| parts[dice.roll(3) as usize]).chain(["/x"]).collect();
                let path = format!("{path}{number}");
                let usage = (dice.roll(5) > 0).then(|| Bytes(dice.roll(64) << 20));
                fixture = fixture.cgroup(&path, move |_, row| row.memory_current = usage);
                for above in ancestors(&Name::from(path.as_str())).map(|above| Name::new(above).to_string()) {
                    let mut limit = || match dice.roll(4) {
                        0 => None,
                        1 => Some(Limit::MAX),
                        _ => Some(Limit(dice.roll(64) << 20)),
                    };
                    let (max, high, is_read) = (limit(), limit(), dice.roll(4) > 0);
                    if is_read && above != "/" {
                        fixture = fixture.cgroup(&above, move |_, row| row.memory_current = usage);
                        fixture = fixture.limits(&above, move |_, row| (row.memory_max, row.memory_high) = (max, high));
                    }
                }
            }
            let window = fixture.window();
            let inputs = Inputs::of(&window);
            assert!(inputs.paths.len() > 12, "{}", inputs.paths.len());
            let mut shared = Above::default();
            for (path, &id) in &inputs.paths {
                let (mut missing, mut alone_missing) = (Vec::new(), Vec::new());
                let room = headroom(&inputs, &mut shared, (path, id), &mut missing);
                let alone = headroom(&inputs, &mut Above::default(), (path, id), &mut alone_missing);
                assert_eq!((room, missing), (alone, alone_missing), "{path}");
            }
        }
    }
}
