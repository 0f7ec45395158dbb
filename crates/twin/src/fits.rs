// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a cgroup of the recording fits into a new memory limit. Page cache gives way. What else it holds does not, and
//! the kernel kills processes of a cgroup that cannot get below its limit: no figure of such a host is worth a prediction.

use crate::changed::{NotChanged, Refusal};
use floodline_analysis::prediction::Setting;
use floodline_record::human;
use floodline_record::id::Entity;
use floodline_record::sample::CgroupRow;
use floodline_record::window::{Span, Window};
use floodline_scenario::SizeLimit;

/// Part of the memory without page cache that stays.
const STAYS: f64 = 0.8;

/// A limit that no process fits in: its page tables and stacks alone take more.
const LEAST: u64 = 1 << 20;
/// What a kernel takes for itself and keeps free, beside a part of all memory for the table of pages.
const RESERVE: u64 = 24 << 20;
const TABLE_PART: u64 = 64;

/// The most bytes that a machine had in use beside what the kernel could reclaim, where so much memory cannot hold them.
pub fn lacks_memory(memory: u64, window: &Window) -> Option<u64> {
    let rows = window.host_series.iter().map(|(_, row)| row).chain(std::iter::once(&window.host.last));
    let used = rows.filter_map(|row| Some(row.mem_total?.0.saturating_sub(row.mem_available?.0))).max();
    used.filter(|used| memory < used.saturating_add(memory / TABLE_PART).saturating_add(RESERVE))
}

/// Refuses less memory than a machine had in use beside its page cache.
pub(crate) fn fits_machine(memory: u64, setting: &Setting, window: &Window) -> Result<(), NotChanged> {
    let Some(used) = lacks_memory(memory, window) else { return Ok(()) };
    let used = human::bytes(used as f64);
    Err(NotChanged::new(
        format!(
            "{}={}: {used} were in use beside the page cache, so the kernel would swap or kill processes",
            setting.key, setting.value
        ),
        format!("choose clearly more than {used}"),
    )
    .telling(Refusal::MemoryTooSmall))
}

/// Refuses a limit below the memory of a cgroup that is not page cache.
pub(crate) fn fits(path: &str, limit: Option<SizeLimit>, setting: &Setting, window: &Window) -> Result<(), NotChanged> {
    let Some(SizeLimit::Size(limit)) = limit else { return Ok(()) };
    if limit.bytes() < LEAST {
        return Err(NotChanged::new(
            format!(
                "{}={}: no process fits in it, so the kernel would kill those of cgroup {path}",
                setting.key, setting.value
            ),
            "choose a limit above what its processes hold beside the page cache",
        )
        .telling(Refusal::MemoryTooSmall));
    }
    let Some(held) = held(path, window) else { return Ok(()) };
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
    )
    .telling(Refusal::MemoryTooSmall))
}

/// The most that a heap takes of a limit, bytes: the tasks of the model need room as well.
pub(crate) fn heap_within(limit: u64) -> u64 {
    limit / 10 * 9
}

/// Bytes that a cgroup held without its page cache; `None` where they were not read.
fn held(path: &str, window: &Window) -> Option<u64> {
    let bare = path.trim_matches('/').as_bytes();
    let is_it = |entity: &Entity| matches!(entity, Entity::Cgroup { path, .. } if path.as_bytes().trim_ascii().strip_prefix(b"/") == Some(bare));
    let rows = window.cgroups.iter().filter(|(id, _)| window.entities.get(id).is_some_and(is_it));
    rows.filter_map(|(_, span)| beside_cache(span)).max()
}

/// Bytes that a cgroup held without its page cache, the larger of its first and last reading: it is small when it begins and when
/// it ends. `None` where they were not read.
pub(crate) fn beside_cache(span: &Span<CgroupRow>) -> Option<u64> {
    let of = |row: &CgroupRow| {
        let cached = row.inactive_file?.0.saturating_add(row.active_file?.0);
        Some(row.memory_current?.0.saturating_sub(cached))
    };
    [of(&span.first), of(&span.last)].into_iter().flatten().max()
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
        // Its processes end with the recording.
        let mut ended = window.clone();
        for span in ended.cgroups.values_mut() {
            span.last.memory_current = Some(Bytes(200 * MIB));
        }
        let setting = Setting::new("cgroup/app/memory.max", "79M");
        assert!(fits("/app", Some("79 MiB".parse().unwrap()), &setting, &ended).is_err());
        let check = |value: &str, is_good: bool| {
            let setting = Setting::new("cgroup/app/memory.max", value);
            let told = fits("/app", Some(value.parse().unwrap()), &setting, &window);
            assert_eq!(told.is_ok(), is_good, "{value}: {told:?}");
            if let Err(why) = told {
                assert!(why.to_string().contains("100 MiB") && why.hint.contains("above 100 MiB"), "{why}");
            }
        };
        check("79 MiB", false);
        check("80 MiB", true);
        check("100 MiB", true);
        check("max", true);
    }

    #[test]
    fn a_limit_in_which_no_process_fits_is_refused_whatever_was_read() {
        let window = Fixture::healthy().window();
        for value in ["0 B", "1 B", "64 KiB"] {
            let setting = Setting::new("cgroup/none/memory.max", value);
            let told = fits("/none", Some(value.parse().unwrap()), &setting, &window).unwrap_err();
            assert!(told.to_string().contains("would kill"), "{told}");
        }
    }

    #[test]
    fn less_memory_than_a_machine_uses_beside_its_cache_is_refused() {
        const MIB: u64 = 1 << 20;
        let mut window = Fixture::healthy().window();
        window.host_series.clear();
        (window.host.last.mem_total, window.host.last.mem_available) = (Some(Bytes(480 * MIB)), Some(Bytes(373 * MIB)));
        let check = |bytes: u64| fits_machine(bytes, &Setting::new("memory", bytes), &window);
        assert!(check(128 * MIB).unwrap_err().to_string().contains("107 MiB were in use"));
        assert!(check(256 * MIB).is_ok());
        window.host.last.mem_available = None;
        assert!(fits_machine(MIB, &Setting::new("memory", MIB), &window).is_ok(), "not read");
    }
}
