// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text of assumed conditions: a list with commas, in which the path of a cgroup may have commas of its own.

use floodline_scenario::{ByteSize, split_setting};

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
