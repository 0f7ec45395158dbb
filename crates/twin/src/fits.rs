// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a cgroup of the recording fits into a new memory limit. Page cache gives way. What else it holds does not, and
//! the kernel kills processes of a cgroup that cannot get below its limit: no figure of such a host is worth a prediction.

use crate::changed::NotChanged;
use floodline_analysis::prediction::Setting;
use floodline_record::human;
use floodline_record::id::Entity;
use floodline_record::window::Window;
use floodline_scenario::SizeLimit;

/// Part of the memory without page cache that stays.
const STAYS: f64 = 0.8;

/// Refuses a limit below the memory of a cgroup that is not page cache.
pub(crate) fn fits(path: &str, limit: Option<SizeLimit>, setting: &Setting, window: &Window) -> Result<(), NotChanged> {
    let (Some(held), Some(SizeLimit::Size(limit))) = (held(path, window), limit) else { return Ok(()) };
    // Part of it is slabs, of which some give way too.
    if limit.bytes() as f64 >= STAYS * held as f64 {
        return Ok(());
    }
    let held = human::bytes(held as f64);
    Err(NotChanged::new(
        format!(
            "{}={}: cgroup {path} holds {held} that are not page cache, so the kernel would swap or kill its processes",
            setting.key, setting.value
        ),
        format!("choose a limit above {held}"),
    ))
}

/// Bytes that a cgroup held at the end without its page cache; `None` where they were not read.
fn held(path: &str, window: &Window) -> Option<u64> {
    let bare = path.trim_matches('/').as_bytes();
    let is_it = |entity: &Entity| matches!(entity, Entity::Cgroup { path, .. } if path.as_bytes().trim_ascii().strip_prefix(b"/") == Some(bare));
    let rows = window.cgroups.iter().filter(|(id, _)| window.entities.get(id).is_some_and(is_it));
    let held = rows.filter_map(|(_, span)| {
        let row = &span.last;
        let cached = row.inactive_file?.0.saturating_add(row.active_file?.0);
        Some(row.memory_current?.0.saturating_sub(cached))
    });
    held.max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::units::Bytes;
    use floodline_testkit::Fixture;

    #[test]
    fn a_limit_below_what_cannot_be_reclaimed_is_refused() {
        const MIB: u64 = 1 << 20;
        let window = Fixture::healthy().cgroup("/app", |_, row| {
            row.memory_current = Some(Bytes(300 * MIB));
            (row.inactive_file, row.active_file) = (Some(Bytes(150 * MIB)), Some(Bytes(50 * MIB)));
        });
        let window = window.window();
        let check = |value: &str, is_good: bool| {
            let setting = Setting::new("cgroup/app/memory.max", value);
            let told = fits("/app", Some(value.parse().unwrap()), &setting, &window);
            assert_eq!(told.is_ok(), is_good, "{value}: {told:?}");
            if let Err(why) = told {
                assert!(why.to_string().contains("100 MiB") && why.hint.contains("above 100 MiB"), "{why}");
            }
        };
        check("79 MiB", false);
        check("0 B", false);
        check("100 MiB", true);
        check("max", true);
    }
}
