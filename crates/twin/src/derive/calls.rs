// SPDX-License-Identifier: MIT OR Apache-2.0
//! Separates bytes that write calls made dirty from those of stores to mappings. Counters of a process have only their sum.

use super::folios;
use super::group::PAGE;
use crate::recorded::Did;

/// Fewest calls of which one under way is no evidence of a mapping.
const MANY_CALLS: f64 = 20.0;
/// Most bytes of a call, on average, that is an answer or a line of a log.
const ANSWER_MAX: f64 = 512.0;

/// Whether a process stores to mappings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stores {
    /// All that became dirty came from its calls.
    None,
    /// What its calls cannot have dirtied came from stores.
    ToMappings,
    /// Its calls are answers of a few bytes: nearly all came from stores.
    BesideAnswers,
}

impl Stores {
    /// Of all intervals of a process.
    pub(super) fn of(list: &[Did]) -> Stores {
        match stores_beside_answers(list) {
            true => Stores::BesideAnswers,
            false if has_mapping(list) => Stores::ToMappings,
            false => Stores::None,
        }
    }

    /// Bytes that calls made dirty in an interval.
    pub(super) fn by_calls(self, did: &Did) -> f64 {
        match self {
            Stores::None => did.dirtied as f64,
            Stores::BesideAnswers if did.faults as f64 * PAGE >= did.dirtied as f64 => {
                by_calls(did).min(did.wchar as f64)
            }
            Stores::ToMappings | Stores::BesideAnswers => by_calls(did),
        }
    }
}

/// Calls dirty at most their bytes and one page each: the rest came through a mapping.
fn by_calls(did: &Did) -> f64 {
    (did.dirtied as f64).min(did.wchar as f64 + did.syscw as f64 * PAGE)
}

/// Whether a process stores to mappings. A call that blocks is counted in one interval and dirties in the next, which
/// looks like a store but is none over the whole recording.
fn has_mapping(list: &[Did]) -> bool {
    let sum = |of: fn(&Did) -> f64| list.iter().map(of).sum::<f64>();
    let most = sum(|did| did.wchar as f64 + did.syscw as f64 * PAGE);
    // A call of direct I/O counts as written when it begins and as passed when it ends: one of many may be under way.
    let calls = sum(|did| did.syscw as f64);
    let under_way = if calls >= MANY_CALLS { sum(|did| did.wchar as f64) / calls } else { 0.0 };
    let excess = sum(|did| did.dirtied as f64) - most - under_way;
    let by_interval = sum(|did| did.dirtied as f64 - by_calls(did));
    excess > 0.25 * by_interval && !folios::are_by_calls(list, by_calls)
}

/// Whether a process stores to mappings and answers in calls of a few bytes, to a pipe or into a log: more became dirty in
/// single intervals than such calls can dirty, and each page of it had a fault. Over the whole recording the calls may
/// outnumber the pages. A call of a few bytes that blocks dirties one page in a later interval, and not many.
fn stores_beside_answers(list: &[Did]) -> bool {
    let sum = |of: fn(&Did) -> u64| list.iter().map(of).fold(0, u64::saturating_add) as f64;
    let beside = |did: &Did| did.dirtied as f64 - by_calls(did);
    let is_beside = |did: &&Did| beside(did) > PAGE;
    let more: f64 = list.iter().filter(is_beside).map(beside).sum();
    let faults: f64 = list.iter().filter(is_beside).map(|did| did.faults as f64).sum();
    more > 0.25 * sum(|did| did.dirtied)
        && faults * PAGE >= more
        && sum(|did| did.wchar) <= ANSWER_MAX * sum(|did| did.syscw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_beside_answers_have_a_fault_for_each_page() {
        let did = |calls: u64, bytes: u64, pages: u64, faults: u64| Did {
            syscw: calls,
            wchar: bytes,
            dirtied: pages * 4096,
            faults,
            ..Did::default()
        };
        // An update stores into four pages of an archive and answers once. Most updates find them dirty.
        let quiet = did(120, 3000, 0, 600);
        let updates = [did(120, 3000, 480, 600), quiet, quiet, quiet, quiet];
        assert!(stores_beside_answers(&updates));
        assert!(!has_mapping(&updates), "the calls outnumber the pages");
        assert_eq!(Stores::of(&updates), Stores::BesideAnswers);
        assert_eq!(Stores::of(&updates).by_calls(&updates[0]), 3000.0);
        assert_eq!(Stores::ToMappings.by_calls(&updates[0]), 3000.0 + 120.0 * PAGE);
        // Large folios of a log that is written in place: no faults.
        assert!(!stores_beside_answers(&[did(120, 3000, 480, 3), quiet]));
        // A call of a mebibyte that blocked.
        assert!(!stores_beside_answers(&[did(1, 1 << 20, 0, 300), did(0, 0, 256, 300)]));
        // Each call dirties a page of its own.
        assert!(!stores_beside_answers(&[did(120, 3000, 120, 600), quiet]));
    }
}
