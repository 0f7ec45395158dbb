// SPDX-License-Identifier: MIT OR Apache-2.0
//! Read errors during sampling, merged into gaps: thousands of unreadable processes are one gap with a count, and the
//! same gap is not repeated every second.

use crate::parse::Flaw;
use crate::root::Fault;
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::id::EntityId;
use floodline_record::record::Record;
use std::collections::BTreeMap;

/// Why something is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trouble {
    /// It was not read.
    Fault(Fault),
    /// It was not understood.
    Flaw(Flaw),
    /// It went away. That is normal, so it is reported once.
    Vanished,
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Trouble {
        Trouble::Fault(fault)
    }
}

impl From<Flaw> for Trouble {
    fn from(flaw: Flaw) -> Trouble {
        Trouble::Flaw(flaw)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    source: Source,
    detail: &'static str,
    trouble: Trouble,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    times: u64,
    entity: Option<EntityId>,
}

/// The gaps of the sample in progress, and those that were reported before.
#[derive(Debug, Default)]
pub(super) struct GapBook {
    seen: BTreeMap<Key, Seen>,
    reported: BTreeMap<Key, u64>,
}

impl GapBook {
    /// Adds one read error. `detail` names the file or field if the source does not.
    pub(super) fn add(
        &mut self,
        source: Source,
        detail: &'static str,
        trouble: impl Into<Trouble>,
        entity: Option<EntityId>,
    ) {
        let key = Key { source, detail, trouble: trouble.into() };
        let seen = self.seen.entry(key).or_insert(Seen { times: 0, entity });
        seen.times += 1;
        // A gap that stands for several entities names none.
        if seen.entity != entity {
            seen.entity = None;
        }
    }

    /// Reports new gaps: a first occurrence, or one that became twice as frequent.
    pub(super) fn report(&mut self, out: &mut Vec<Record>) {
        for (key, seen) in std::mem::take(&mut self.seen) {
            let before = self.reported.get(&key).copied();
            let worth_it = match before {
                None => true,
                Some(before) => key.trouble != Trouble::Vanished && seen.times >= before.saturating_mul(2),
            };
            if worth_it {
                self.reported.insert(key, seen.times);
                let entity = seen.entity.filter(|_| seen.times == 1);
                let detail = (!key.detail.is_empty()).then(|| key.detail.into());
                let cause = cause(key.source, key.detail, key.trouble);
                out.push(Record::Gap(Gap { entity, detail, times: seen.times, ..Gap::new(key.source, cause) }));
            }
        }
    }
}

fn cause(source: Source, detail: &str, trouble: Trouble) -> Cause {
    match trouble {
        // These files exist since a release that the gap names.
        Trouble::Fault(Fault::NOT_FOUND) if source == Source::DebugWbStats => {
            Cause::Unsupported { since: "since 6.10".into() }
        }
        Trouble::Fault(Fault::NOT_FOUND)
            if source == Source::SysBdi && matches!(detail, "min_bytes" | "max_bytes" | "strict_limit") =>
        {
            Cause::Unsupported { since: "since 6.2".into() }
        }
        Trouble::Fault(fault) => fault.cause(source.path().as_bytes()),
        Trouble::Flaw(Flaw(what)) => Cause::Malformed { what: what.into() },
        Trouble::Vanished => Cause::Vanished,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    fn report(book: &mut GapBook) -> Vec<String> {
        let mut out = Vec::new();
        book.report(&mut out);
        out.iter()
            .map(|record| match record {
                Record::Gap(gap) => format!("{gap} {:?}", gap.entity.map(|id| id.0)),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn many_of_a_kind_are_one_gap_and_are_not_repeated() {
        let mut book = GapBook::default();
        let denied = |book: &mut GapBook, times: u32| {
            for id in 0..times {
                book.add(Source::ProcessIo, "", Fault::from(Errno::ACCESS), Some(EntityId(id)));
            }
        };
        denied(&mut book, 100);
        assert_eq!(report(&mut book), ["/proc/PID/io: permission denied (needs CAP_SYS_PTRACE) (×100) None"]);
        denied(&mut book, 101);
        assert_eq!(report(&mut book), [""; 0]);
        denied(&mut book, 200);
        assert_eq!(report(&mut book).len(), 1);
        denied(&mut book, 100);
        assert_eq!(report(&mut book), [""; 0]);
    }

    #[test]
    fn a_single_one_names_its_entity_and_file() {
        let mut book = GapBook::default();
        book.add(Source::MemoryLimits, "memory.max", Flaw("max or a number"), Some(EntityId(7)));
        let gap = "CGROUP/memory.{max,high,min,low} (memory.max): invalid content, expected max or a number Some(7)";
        assert_eq!(report(&mut book), [gap]);
    }

    #[test]
    fn going_away_is_mentioned_once() {
        let mut book = GapBook::default();
        for times in [1, 1000] {
            for _ in 0..times {
                book.add(Source::Processes, "", Trouble::Vanished, None);
            }
            assert_eq!(report(&mut book).len(), usize::from(times == 1));
        }
    }
}
