// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text of assumed conditions: a list with commas, in which the path of a cgroup may have commas of its own.

use super::as_if::{AsIf, cgroup_named};
use floodline_record::window::Window;
use floodline_scenario::{ByteSize, split_setting};

impl AsIf {
    /// Whether each condition holds already.
    pub fn is_in_force(&self, window: &Window) -> bool {
        let Some(facts) = &window.facts else { return false };
        let host = &window.host.last;
        let same_hierarchy = self.unified.is_none_or(|unified| {
            !facts.cgroups.v2_controllers_unread && facts.cgroups.has_unified_writeback() == unified
        });
        let same_kernel = self.kernel.is_none_or(|kernel| facts.kernel == Some(kernel.on(facts.kernel)));
        let memory = facts.mem_total.or(host.mem_total).map(|bytes| bytes.0);
        let same_memory = self.memory.is_none_or(|bytes| memory == Some(bytes));
        let same_settings = self.settings.iter().all(|&(name, value)| {
            let now = match name {
                "vm.dirty_ratio" => host.dirty_ratio.map(|percent| percent.0),
                "vm.dirty_bytes" => host.dirty_bytes.map(|bytes| bytes.0),
                "vm.dirty_background_ratio" => host.dirty_background_ratio.map(|percent| percent.0),
                _ => host.dirty_background_bytes.map(|bytes| bytes.0),
            };
            now == Some(value)
        });
        let same_limits = self.limits.iter().all(|(path, file, bytes)| {
            let row = cgroup_named(window, path).ok().and_then(|id| window.cgroup_limits.get(&id));
            let now =
                row.and_then(|span| if *file == "memory.max" { span.last.memory_max } else { span.last.memory_high });
            now.is_some_and(|now| now.bytes().map(|bytes| bytes.0) == *bytes)
        });
        same_hierarchy && same_kernel && same_memory && same_settings && same_limits
    }
}

/// Splits a list at its commas, but not at those in the path of a cgroup.
pub(super) fn conditions(text: &str) -> Vec<String> {
    let mut conditions = Vec::new();
    let mut parts = text.split(',');
    while let Some(part) = parts.next() {
        let mut whole = part.to_owned();
        let mut rest = parts.clone();
        // A path that goes on behind a comma: the name of its limit follows there.
        while part.trim_start().starts_with("cgroup/") && !names_limit(&whole) {
            let Some(next) = rest.next() else { break };
            whole = format!("{whole},{next}");
        }
        if whole.len() > part.len() && names_limit(&whole) {
            parts = rest;
        } else {
            whole = part.to_owned();
        }
        conditions.push(whole.trim().to_owned());
    }
    conditions.retain(|part| !part.is_empty());
    conditions
}

/// Whether a condition names a file of a cgroup and its value.
fn names_limit(condition: &str) -> bool {
    let key = split_setting(condition).map(|(key, _)| key.trim());
    key.is_some_and(|key| key.ends_with("/memory.max") || key.ends_with("/memory.high"))
}

/// Bytes or a plain number, as settings have them.
pub(super) fn size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.chars().last()? {
        'K' | 'k' => (&text[..text.len() - 1], 10),
        'M' | 'm' => (&text[..text.len() - 1], 20),
        'G' | 'g' => (&text[..text.len() - 1], 30),
        'T' | 't' => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let short = digits.trim().parse::<u64>().ok().map(|number| number.checked_mul(1 << shift));
    short.unwrap_or_else(|| text.parse().ok().map(ByteSize::bytes))
}
