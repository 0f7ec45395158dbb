// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which candidates are tried: as many as there is room for, and settings near the best ones.

use floodline_analysis::prediction::Setting;

/// As many of some candidates as there is room for, from all parts of the list.
pub(super) fn evenly(all: Vec<Vec<Setting>>, room: usize) -> Vec<Vec<Setting>> {
    let (count, room) = (all.len(), room.min(all.len()));
    // The first candidate of each of `room` equal parts.
    let part = |at: usize| at * room / count.max(1);
    let is_first = |at: usize| room > 0 && (at == 0 || part(at) != part(at - 1));
    all.into_iter().enumerate().filter(|(at, _)| is_first(*at)).map(|(_, one)| one).collect()
}

/// Settings near others: each number a half, three quarters, one and a half times and twice as large.
pub(super) fn around(best: &[Setting]) -> Vec<Vec<Setting>> {
    let mut near = Vec::new();
    for (at, setting) in best.iter().enumerate() {
        let Ok(value) = setting.value.parse::<u64>() else { continue };
        for (times, by) in [(1, 2), (3, 4), (3, 2), (2, 1)] {
            let Some(changed) = value.checked_mul(times).map(|value| value / by).filter(|value| *value > 0) else {
                continue;
            };
            // Rounded to whole MiB for readability.
            let changed = if changed > 4 << 20 { changed >> 20 << 20 } else { changed };
            let mut settings = best.to_vec();
            settings[at].value = changed.to_string();
            near.push(settings);
        }
    }
    near
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_chosen_from_all_parts_of_the_grid() {
        let all = |count: u64| (0..count).map(|at| vec![Setting::new("vm.dirty_bytes", at)]).collect::<Vec<_>>();
        let chosen = |count, room| {
            evenly(all(count), room).iter().filter_map(|one| one[0].value.parse::<u64>().ok()).collect::<Vec<_>>()
        };
        assert_eq!(chosen(3, 10), [0, 1, 2]);
        assert_eq!(chosen(6, 3), [0, 2, 4]);
        assert_eq!(chosen(159, 150).len(), 150);
        assert!(chosen(159, 150).contains(&158));
        assert_eq!(chosen(5, 0), [0; 0]);
        assert_eq!(chosen(0, 5), [0; 0]);
    }
}
