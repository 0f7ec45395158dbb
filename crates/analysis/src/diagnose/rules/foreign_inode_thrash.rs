// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `foreign-inode-thrash`: inodes that move back and forth between cgroups, and cgroups that are throttled for
//! data that another cgroup's flusher has to write. Counted by a tracer; the rule `foreign-inode-writeback` covers the
//! part visible in files. Does not cover moves after a removal (`inode-switch-storm`).
#![doc = include_str!("foreign_inode_thrash.md")]

mod untraced;

use crate::diagnose::derived::Derived;
use crate::diagnose::switches::{self, FLUSHES, FOREIGN, Foreign, Moves, Pair, SWITCHES};
use crate::diagnose::{Rule, Verdict, throttle};
use crate::report::{Brief, Evidence, Finding, Severity};
use floodline_record::gap::Source;
use floodline_record::human;
use floodline_record::name::Name;
use std::collections::{BTreeMap, BTreeSet};

/// It rests on nothing else.
const CONFIRMED: &str = "Every move and every folio was counted where it happened.";

/// The rule and its manual page.
pub const RULE: Rule = Rule {
    name: "foreign-inode-thrash",
    summary: "Two cgroups write the same files, which move between them",
    manual: include_str!("foreign_inode_thrash.md"),
    explains: &[],
    check,
};

/// Moves in each direction that are no accident.
const BACK_AND_FORTH: u64 = 3;
/// Share of the window that a task was paused.
const HURTS_PAUSED: f64 = 0.1;
/// Folios dirtied in others' inodes that are worth a word.
const MANY_FOLIOS: u64 = 1000;
/// Pairs of cgroups with moves that have a row of evidence.
const ROWS: usize = 6;

fn check(derived: &Derived<'_>) -> Verdict {
    if let Some(facts) = derived.window.facts.as_ref()
        && !facts.cgroups.v2_controllers_unread
        && !facts.cgroups.has_unified_writeback()
    {
        return Verdict::Clear("no cgroup writeback here: inodes belong to no cgroup".to_owned());
    }
    let Some(moves) = switches::moves(derived.window) else {
        let found: Vec<Finding> = untraced::finding(derived).into_iter().collect();
        return match found.is_empty() {
            true => derived.not_checked(Source::TraceSwitches, "inode_switch_wbs"),
            false => Verdict::Found(found),
        };
    };
    let foreign = switches::foreign(derived.window);
    if let Some((pair, there, back)) = thrash(&moves) {
        return Verdict::Found(vec![moved(derived, pair, there, back, &foreign)]);
    }
    if let Some(turns) = in_turn(&moves) {
        return Verdict::Found(vec![moved_in_turn(derived, &turns, &foreign)]);
    }
    let paused = |pair: &Pair| {
        let of_it =
            |event: &floodline_record::traced::throttle::Throttled| (event.who.cgroup_ino == pair.other).then_some(());
        let pauses = throttle::by(derived.window, of_it)?.into_iter().next()?.1.total.as_secs_f64();
        let asked = switches::flushes_for(derived.window, pair.other);
        (asked > 0 && pauses >= HURTS_PAUSED * derived.seconds).then_some((pauses, asked))
    };
    // A few stray folios are not what a task is paused for.
    let many = || foreign.iter().filter(|(_, folios)| folios.folios >= MANY_FOLIOS);
    if let Some((pair, folios, (pauses, asked))) = many().find_map(|(pair, it)| Some((pair, it, paused(pair)?))) {
        return Verdict::Found(vec![waits(derived, pair, folios, pauses, asked)]);
    }
    match foreign.first() {
        Some((pair, folios)) if folios.folios >= MANY_FOLIOS => Verdict::Found(vec![dirtied(derived, pair, folios)]),
        Some((_, folios)) => {
            Verdict::Clear(format!("{} in inodes of others", human::plural(folios.folios, "folio", "folios")))
        }
        None => Verdict::Clear("no task dirtied an inode of another cgroup".to_owned()),
    }
}

/// The pair with the most moves of which as many as are no accident went back.
fn thrash(moves: &[(Pair, Moves)]) -> Option<(&Pair, u64, u64)> {
    let both = moves.iter().filter_map(|(pair, there)| {
        let reversed = pair.reversed();
        let (_, back) = moves.iter().find(|(other, _)| *other == reversed)?;
        Some((pair, there.switched, back.switched))
    });
    both.filter(|(_, there, back)| (*there).min(*back) >= BACK_AND_FORTH)
        .max_by_key(|(_, there, back)| (*there.min(back), *there))
}

/// The moves of one device among cgroups that each lose inodes and get inodes back: of several cgroups that write a file in turn,
/// an inode comes back after it has been with the others. A move after a removal goes to the parent, and never back. `None` unless two
/// of the cgroups lost inodes and got some as often as is no accident.
fn in_turn(moves: &[(Pair, Moves)]) -> Option<Vec<&(Pair, Moves)>> {
    let mut by_bdi: BTreeMap<&Name, Vec<&(Pair, Moves)>> = BTreeMap::new();
    for one in moves {
        by_bdi.entry(&one.0.bdi).or_default().push(one);
    }
    let is_no_accident = |turns: &Vec<&(Pair, Moves)>| {
        let mut sums: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for (pair, moves) in turns {
            let lost = sums.entry(pair.one).or_default();
            lost.0 = lost.0.saturating_add(moves.switched);
            let got = sums.entry(pair.other).or_default();
            got.1 = got.1.saturating_add(moves.switched);
        }
        sums.values().filter(|(lost, got)| *lost.min(got) >= BACK_AND_FORTH).count() >= 2
    };
    let all = by_bdi.into_values().map(shuttled).filter(is_no_accident);
    all.max_by_key(|turns| total(turns))
}

/// The moves between cgroups that lose inodes and get some, without those on a way that never comes back.
fn shuttled(mut turns: Vec<&(Pair, Moves)>) -> Vec<&(Pair, Moves)> {
    loop {
        let (lose, get): (BTreeSet<u64>, BTreeSet<u64>) = turns.iter().map(|(pair, _)| (pair.one, pair.other)).unzip();
        let before = turns.len();
        turns.retain(|(pair, _)| get.contains(&pair.one) && lose.contains(&pair.other));
        if turns.len() == before {
            return turns;
        }
    }
}

/// Number of all these moves. An inode that moves twice counts twice.
fn total(turns: &[&(Pair, Moves)]) -> u64 {
    turns.iter().map(|(_, moves)| moves.switched).fold(0, u64::saturating_add)
}

fn moved_in_turn(derived: &Derived<'_>, turns: &[&(Pair, Moves)], foreign: &[(Pair, Foreign)]) -> Finding {
    let row = |(pair, moves): &&(Pair, Moves)| {
        let (one, other) = (derived.label_of_ino(pair.one), derived.label_of_ino(pair.other));
        Evidence::count(format!("Inodes moved from {one} to {other}"), moves.switched, SWITCHES)
    };
    let cgroups: BTreeSet<u64> = turns.iter().map(|(pair, _)| pair.one).collect();
    let is_among = |pair: &Pair| cgroups.contains(&pair.one) && cgroups.contains(&pair.other);
    let mut evidence: Vec<Evidence> = turns.iter().take(ROWS).map(row).collect();
    evidence.extend(foreign.iter().find(|(pair, _)| is_among(pair)).map(of_folios));
    let first = turns.first().map(|(pair, _)| (derived.label_of_ino(pair.one), &pair.bdi));
    let (first, bdi) = first.map_or((String::new(), String::new()), |(first, bdi)| (first, bdi.to_string()));
    let others = human::plural((cgroups.len() as u64).saturating_sub(1), "other cgroup", "other cgroups");
    let summary = format!(
        "{first} and {others} write the same files on {bdi}: {} of inodes between them in {}.",
        human::plural(total(turns), "move", "moves"),
        human::seconds(derived.seconds)
    );
    finding(Severity::Warning, summary, evidence)
}

fn moved(derived: &Derived<'_>, pair: &Pair, there: u64, back: u64, foreign: &[(Pair, Foreign)]) -> Finding {
    let (one, other) = (derived.label_of_ino(pair.one), derived.label_of_ino(pair.other));
    let mut evidence = vec![
        Evidence::count(format!("Inodes moved from {one} to {other}"), there, SWITCHES),
        Evidence::count("and back", back, SWITCHES).against(BACK_AND_FORTH as f64),
    ];
    evidence.extend(foreign.iter().find(|(with, _)| with == pair || *with == pair.reversed()).map(of_folios));
    let summary = format!(
        "{one} and {other} write the same files on {}: {} of inodes between them in {}.",
        pair.bdi,
        human::plural(there.saturating_add(back), "move", "moves"),
        human::seconds(derived.seconds)
    );
    finding(Severity::Warning, summary, evidence)
}

fn waits(derived: &Derived<'_>, pair: &Pair, folios: &Foreign, pauses: f64, asked: u64) -> Finding {
    let (owner, writer) = (derived.label_of_ino(pair.one), derived.label_of_ino(pair.other));
    let evidence = vec![
        Evidence::seconds(format!("Paused in dirty throttling, {writer}"), pauses, throttle::SOURCE)
            .against(HURTS_PAUSED * derived.seconds),
        Evidence::count("Times others' flushers were asked to write for it", asked, FLUSHES),
        of_folios(&(pair.clone(), *folios)),
    ];
    let summary = format!(
        "{writer} was paused for {} while the flusher of {owner} had to write for it: it dirties inodes of {owner}.",
        human::seconds(pauses)
    );
    finding(Severity::Warning, summary, evidence)
}

fn dirtied(derived: &Derived<'_>, pair: &Pair, folios: &Foreign) -> Finding {
    let (owner, writer) = (derived.label_of_ino(pair.one), derived.label_of_ino(pair.other));
    let summary = format!(
        "{writer} dirtied {} in inodes of {owner} on {}: the I/O is counted, and limited, there.",
        human::plural(folios.folios, "folio", "folios"),
        pair.bdi
    );
    finding(Severity::Info, summary, vec![of_folios(&(pair.clone(), *folios)).against(MANY_FOLIOS as f64)])
}

fn of_folios((pair, folios): &(Pair, Foreign)) -> Evidence {
    let name = format!("Folios dirtied in others' inodes on {}, last in inode {}", pair.bdi, folios.last_ino);
    Evidence::count(name, folios.folios, FOREIGN)
}

fn finding(severity: Severity, summary: String, evidence: Vec<Evidence>) -> Finding {
    Finding {
        rule: RULE.name,
        confirmed: Some(CONFIRMED.to_owned()),
        severity,
        summary,
        evidence,
        brief: Brief {
            because:
                "Two cgroups write the same files. The kernel writes a file back for one cgroup at a time and keeps \
                      moving the files between them."
                    .to_owned(),
            expect: "Give each service files of its own, or let one process write for both.".to_owned(),
            ..Brief::default()
        },
        cause: cause(),
        trade_off: what_helps(),
        ..Finding::default()
    }
}

fn cause() -> String {
    "An inode belongs to one cgroup. A cgroup that writes to an inode of another one is throttled by its own charge. The flusher of the \
     other one writes the pages. The kernel moves an inode when 9 of the last 16 slots of its writing were foreign. It moves the inode \
     back when the other one writes again. Each move walks the inode's dirty pages under the locks of both wbs."
        .to_owned()
}

fn what_helps() -> String {
    "Let one cgroup write a file: a file for each service, or one process that writes for both. The file is found with find MOUNT \
     -xdev -inum INODE."
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::check_rule;
    use floodline_record::gap::Cause;
    use floodline_record::id::Hierarchy;
    use floodline_record::record::What;
    use floodline_record::traced::switches::{ForeignDirtied, ForeignFlushed, InodesSwitched};
    use floodline_record::traced::throttle::Domain;
    use floodline_record::units::Nanos;
    use floodline_testkit::Fixture;

    fn switched(from: u64, to: u64, switched: u64) -> What {
        What::InodesSwitched(Box::new(InodesSwitched {
            since: Nanos(0),
            bdi: "8:0".into(),
            old_cgroup_ino: from,
            new_cgroup_ino: to,
            switched,
            queued: None,
            first_at: Nanos(1),
            last_at: Nanos(2),
        }))
    }

    fn foreign(owner: u64, writer: u64, folios: u64) -> What {
        What::ForeignDirtied(Box::new(ForeignDirtied {
            since: Nanos(0),
            bdi: "8:0".into(),
            wb_cgroup_ino: owner,
            page_cgroup_ino: writer,
            folios,
            last_ino: 131,
        }))
    }

    fn traced(events: Vec<What>) -> Fixture {
        Fixture::healthy().traced(&["throttle", "switches"], events)
    }

    #[test]
    fn inodes_that_move_both_ways_are_found_and_those_that_move_once_are_not() {
        let both = vec![switched(7, 9, 41), switched(9, 7, 37), foreign(7, 9, 1009)];
        let expect = "warning: cgroup 7 and cgroup 9 write the same files on 8:0: 78 moves of inodes between them";
        check_rule(&RULE, &traced(both), expect);
        check_rule(&RULE, &traced(vec![switched(7, 9, 20_000)]), "clear: no task dirtied an inode of another");
        check_rule(
            &RULE,
            &traced(vec![switched(7, 9, 41), switched(9, 7, 2)]),
            "clear: no task dirtied an inode of another",
        );
    }

    #[test]
    fn inodes_that_go_round_among_several_cgroups_are_found() {
        let turns = vec![switched(7, 9, 4), switched(9, 11, 4), switched(11, 7, 3), foreign(7, 9, 1009)];
        let expect =
            "warning: cgroup 7 and 2 other cgroups write the same files on 8:0: 11 moves of inodes between them";
        check_rule(&RULE, &traced(turns), expect);
        // After removals, inodes go to the parent, and on to its parent.
        let removed = vec![switched(7, 9, 20_000), switched(9, 11, 20_000), switched(11, 1, 20_000)];
        check_rule(&RULE, &traced(removed), "clear: no task dirtied an inode of another");
        let few = vec![switched(7, 9, 3), switched(9, 11, 1), switched(11, 7, 1)];
        check_rule(&RULE, &traced(few), "clear: no task dirtied an inode of another");
    }

    #[test]
    fn a_writer_that_waits_for_anothers_flusher_is_found() {
        let flushed = || {
            What::ForeignFlushed(Box::new(ForeignFlushed {
                since: Nanos(0),
                bdi: "8:0".into(),
                cgroup_ino: 9,
                frn_memcg_id: 3,
                flushes: 13,
            }))
        };
        let paused = |ms| throttle::tests::throttled((9, "8:0", Domain::Memcg, 7, ms, 200));
        let expect = "warning: cgroup 9 was paused for 3.00 s while the flusher of cgroup 7 had to write for it";
        check_rule(&RULE, &traced(vec![foreign(7, 9, 1009), flushed(), paused(3000)]), expect);
        check_rule(&RULE, &traced(vec![foreign(7, 9, 11), flushed(), paused(300)]), "clear: 11 folios");
        check_rule(&RULE, &traced(vec![foreign(7, 9, 11), paused(3000)]), "clear: 11 folios");
        check_rule(&RULE, &traced(vec![foreign(7, 9, 2), flushed(), paused(3000)]), "clear: 2 folios");
    }

    #[test]
    fn foreign_writing_alone_is_worth_a_word() {
        check_rule(
            &RULE,
            &traced(vec![foreign(7, 9, 1009)]),
            "info: cgroup 9 dirtied 1009 folios in inodes of cgroup 7",
        );
    }

    #[test]
    fn without_a_tracer_it_is_not_checked() {
        let expect = "not checked: trace of writeback/inode_switch_wbs (inode_switch_wbs): not in the recording";
        check_rule(&RULE, &Fixture::healthy(), expect);
        let refused =
            Fixture::healthy().without(Source::TraceSwitches, Cause::NotMounted { fs_type: "tracefs".into() });
        check_rule(&RULE, &refused, "not checked: trace of writeback/inode_switch_wbs: tracefs is not mounted");
        check_rule(&RULE, &Fixture::healthy().hierarchy(Hierarchy::V1Memory), "clear: no cgroup writeback here");
    }
}
