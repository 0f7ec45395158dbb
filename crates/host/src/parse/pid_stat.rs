// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/proc/PID/stat`, of a whole thread group. The name stands in parentheses and may itself hold
//! parentheses, spaces and newlines, so the last closing one ends it. Mirrors fs/proc/array.c
//! (do_task_stat).

use super::stat::TICK_NS;
use super::{Parsed, scan};
use floodline_record::sample::ProcessRow;
use floodline_record::units::Count;

/// Identity of a process in stat, besides its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// Its name, as in `/proc/PID/comm`.
    pub comm: &'a [u8],
    /// Start time since boot, in ticks of user space.
    pub start_ticks: u64,
    /// Whether it is a kernel thread.
    pub kthread: bool,
}

/// `PF_KTHREAD` in the flags of a task.
const PF_KTHREAD: u64 = 0x0020_0000;

/// Fills the fields that come from stat. Returns no identity if the text is not that of a process.
pub fn parse<'a>(text: &'a [u8], row: &mut ProcessRow) -> (Option<Identity<'a>>, Parsed) {
    let mut notes = scan::Notes::default();
    let identity = read(text, row, &mut notes);
    if identity.is_none() {
        notes.flaw("PID (COMM) STATE and numbers");
    }
    (identity, notes.finish())
}

fn read<'a>(text: &'a [u8], row: &mut ProcessRow, notes: &mut scan::Notes) -> Option<Identity<'a>> {
    let text = text.strip_suffix(b"\n")?;
    let open = text.iter().position(|&b| b == b'(')?;
    let close = text.iter().rposition(|&b| b == b')').filter(|&close| close > open)?;
    let comm = text.get(open + 1..close)?;
    // The words after the name, counted from 1 for the whole line: the state is the third.
    let mut words = text.get(close + 1..)?.split(|&b| b == b' ');
    let mut at = 2;
    let mut word = |field: usize| {
        let word = words.nth(field - at);
        at = field + 1;
        word.unwrap_or_default()
    };
    words_in_order(&mut word, row, notes, comm)
}

/// Takes the wanted words, in order of their number.
fn words_in_order<'a>(
    word: &mut impl FnMut(usize) -> &'a [u8],
    row: &mut ProcessRow,
    notes: &mut scan::Notes,
    comm: &'a [u8],
) -> Option<Identity<'a>> {
    match word(3) {
        [state] if state.is_ascii_alphabetic() => row.state = Some(Count(u64::from(*state))),
        _ => notes.flaw("a letter for the state"),
    }
    notes.set(&mut row.ppid, word(4), 1);
    let flags = scan::number(word(9));
    notes.set(&mut row.minflt, word(10), 1);
    notes.set(&mut row.cminflt, word(11), 1);
    notes.set(&mut row.majflt, word(12), 1);
    notes.set(&mut row.utime, word(14), TICK_NS);
    notes.set(&mut row.stime, word(15), TICK_NS);
    let mut children = scan::Sum::None;
    notes.add(&mut children, word(16), TICK_NS);
    notes.add(&mut children, word(17), TICK_NS);
    row.children_time = children.value();
    let start_ticks = scan::number(word(22))?;
    notes.set(&mut row.blkio_delay, word(42), TICK_NS);
    Some(Identity { comm, start_ticks, kthread: flags? & PF_KTHREAD != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::testing;
    use floodline_record::units::Nanos;

    /// 6.18, `head`, with a name put in.
    fn line(comm: &str) -> String {
        format!(
            "9972 ({comm}) D 9969 9969 6355 0 -1 4194304 100 13 7 0 21 34 5 6 20 0 1 0 161981 2998272 383 \
             18446744073709551615 94642487361536 94642487385641 140728484920208 0 0 0 0 0 0 0 0 0 17 0 0 0 \
             56 0 0 94642487401488 94642487403104 94643195826176 140728484924086 140728484924114 \
             140728484924114 140728484925418 0\n"
        )
    }

    fn read(text: &[u8]) -> (ProcessRow, bool) {
        let mut row = ProcessRow::default();
        let (_, parsed) = parse(text, &mut row);
        (row, parsed.is_ok())
    }

    #[test]
    fn the_name_ends_at_the_last_parenthesis() {
        for comm in ["head", "a b", "(sd-pam)", "x) R 1 2 (", ")", "a\nb", "", "\x1b[31m"] {
            let mut row = ProcessRow::default();
            let text = line(comm);
            let (identity, parsed) = parse(text.as_bytes(), &mut row);
            let expect = Identity { comm: comm.as_bytes(), start_ticks: 161_981, kthread: false };
            assert_eq!((identity, parsed), (Some(expect), Ok(())), "{comm:?}");
            let expect = ProcessRow {
                state: Some(Count(u64::from(b'D'))),
                minflt: Some(Count(100)),
                majflt: Some(Count(7)),
                cminflt: Some(Count(13)),
                children_time: Some(Nanos(11 * TICK_NS)),
                ppid: Some(Count(9969)),
                utime: Some(Nanos(21 * TICK_NS)),
                stime: Some(Nanos(34 * TICK_NS)),
                blkio_delay: Some(Nanos(56 * TICK_NS)),
                ..ProcessRow::default()
            };
            assert_eq!(row, expect, "{comm:?}");
        }
    }

    #[test]
    fn kernel_threads_are_told_by_their_flag() {
        let text = b"33 (kworker/u8:1-flush-254:0) I 2 0 0 0 -1 69238880 0 0 0 0 0 41 0 0 20 0 1 0 60 0 0 0\n";
        let mut row = ProcessRow::default();
        let (identity, parsed) = parse(text, &mut row);
        let identity = identity.unwrap();
        assert_eq!((identity.comm, identity.kthread), (&b"kworker/u8:1-flush-254:0"[..], true));
        assert!(parsed.is_err(), "field 42 is missing here");
        assert_eq!((row.stime, row.blkio_delay), (Some(Nanos(41 * TICK_NS)), None));
    }

    #[test]
    fn what_is_not_a_process_has_no_identity() {
        for text in ["", "\n", "1 () S\n", "1 )( S 1 2\n", "1 (a) S 1 2 3 4 5 6", &line("x").replace("161981", "y")] {
            assert_eq!(parse(text.as_bytes(), &mut ProcessRow::default()).0, None, "{text:?}");
        }
    }

    #[test]
    fn any_bytes_are_survived_and_a_cut_never_lies() {
        testing::survives_anything(&line("a b"), read);
        testing::a_cut_never_lies(&line("a b"), read);
    }
}
