// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a full screen leaves to the details, part by part. Each part has a shortest form of one line, and all shortest
//! forms together take fewer lines than a screen has, so that no report makes the screen longer.

use crate::layout::{columns, wrap};

/// Lines of the longest screen.
pub(super) const LINES: usize = 25;
/// Lines of all parts in their shortest form.
pub(super) const LINES_MIN: usize = 22;

/// A part of the screen that can be shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Verdict,
    YouSee,
    Because,
    Seen,
    Who,
    When,
    Missing,
    Also,
    /// Findings beside the first, with a sentence each; 0 lines leave their names.
    Besides,
    /// Names of the findings beside the first.
    Names,
    /// What helps against the first finding, where the commands are for others.
    Helps,
    Now,
    Later,
    Expect,
    Untried,
    /// How to measure a candidate.
    Measure,
    Costs,
    Undo,
    Keep,
    AtBoot,
    Conflict,
    Note,
    Reading,
    Count,
    Explain,
}

/// What is shortened, and to how many lines, in this order. Commands are shown whole or not at all: a half of one must
/// not be copied. What a change does and what it costs is cut only after everything that the details can hold, because a
/// reader types a command after reading its costs. What to type now goes last, and only after it the way back: a screen
/// never has a change without its undo.
const STEPS: [(Part, usize); 39] = [
    (Part::Besides, 0),
    (Part::Missing, 1),
    (Part::Untried, 2),
    (Part::Seen, 1),
    (Part::Who, 1),
    (Part::AtBoot, 1),
    (Part::Because, 2),
    (Part::Conflict, 2),
    (Part::Note, 2),
    (Part::Helps, 3),
    (Part::Untried, 1),
    (Part::YouSee, 1),
    (Part::Seen, 0),
    (Part::Also, 1),
    (Part::Names, 1),
    (Part::Explain, 0),
    (Part::Who, 0),
    (Part::Later, 1),
    (Part::AtBoot, 0),
    (Part::Because, 1),
    (Part::When, 1),
    (Part::Verdict, 2),
    (Part::Helps, 2),
    (Part::Also, 0),
    (Part::Expect, 2),
    (Part::Costs, 3),
    (Part::Helps, 1),
    (Part::Conflict, 0),
    (Part::Expect, 1),
    (Part::Costs, 1),
    (Part::Note, 1),
    (Part::Reading, 1),
    (Part::Count, 2),
    (Part::Missing, 0),
    (Part::Verdict, 1),
    (Part::Keep, 0),
    (Part::Measure, 0),
    (Part::Now, 0),
    (Part::Undo, 0),
];

/// How many lines each part may take.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    taken: usize,
    /// Whether a sentence is shown whole even where it takes more lines.
    is_whole: bool,
}

impl Limits {
    /// From no limit at all to the shortest form of each part. Sentences are cut only where the screen has no room for whole ones
    /// without leaving out a part of the plan.
    pub(super) fn all() -> impl Iterator<Item = Limits> {
        let parts =
            STEPS.iter().position(|(part, lines)| (*part, *lines) == (Part::Conflict, 0)).unwrap_or(STEPS.len());
        let whole = (0..=parts).map(|taken| Limits { taken, is_whole: true });
        whole.chain((0..=STEPS.len()).map(|taken| Limits { taken, is_whole: false }))
    }

    /// Whether nothing is shortened yet.
    pub(super) fn is_none(self) -> bool {
        self.taken == 0 && self.is_whole
    }

    /// The lines of a paragraph of a part, and whether it was cut, as [`paragraph`] cuts it.
    pub(super) fn paragraph(self, part: Part, text: &str, width: usize) -> (Vec<String>, bool) {
        let most = self.of(part);
        let (lines, is_cut) = paragraph(text, width, most);
        match first_sentence(text, width).filter(|_| is_cut && self.is_whole && most > 0) {
            Some(sentence) if sentence.len() > most => (sentence, true),
            _ => (lines, is_cut),
        }
    }

    /// Lines that a part may take. Commands with none have one line that says where they are.
    pub(super) fn of(self, part: Part) -> usize {
        let steps = STEPS.iter().take(self.taken).rev();
        steps.copied().find(|(step, _)| *step == part).map_or(usize::MAX, |(_, lines)| lines)
    }
}

/// The lines of a paragraph, and whether it was cut: behind the last sentence that fits, else behind the last phrase, else
/// behind the last word. What stands in brackets goes before a sentence does.
pub(super) fn paragraph(text: &str, width: usize, most: usize) -> (Vec<String>, bool) {
    let lines = wrap(text, width);
    if lines.len() <= most {
        return (lines, false);
    }
    let bare = without_brackets(text);
    let whole = sentences(text, width, most).or_else(|| sentences(&bare, width, most));
    let lines = whole.or_else(|| phrases(&bare, width, most)).unwrap_or_else(|| words(&bare, width, most));
    (lines, true)
}

/// As many whole sentences from the start as fit, at least one.
fn sentences(text: &str, width: usize, most: usize) -> Option<Vec<String>> {
    let ends = text.match_indices(". ").filter_map(|(at, _)| text.get(..=at));
    let ends = ends.filter(|sentence| !sentence.ends_with("e.g.") && !sentence.ends_with("i.e."));
    ends.chain([text]).map(|sentence| wrap(sentence, width)).take_while(|lines| lines.len() <= most).last()
}

/// The lines of the first sentence, without what it says in brackets.
fn first_sentence(text: &str, width: usize) -> Option<Vec<String>> {
    let bare = without_brackets(text);
    let least = (1..=wrap(&bare, width).len()).find_map(|most| sentences(&bare, width, most));
    least.filter(|lines| !lines.is_empty())
}

/// What a phrase may begin with, beside a comma or semicolon before it.
const PHRASES: [&str; 10] =
    [", ", "; ", " and ", " because ", " before ", " in ", " so that ", " when ", " where ", " while "];

/// As many whole phrases from the start as fit, with a mark that the sentence goes on. `None` if they leave more than half of the
/// room empty: then words say more.
fn phrases(text: &str, width: usize, most: usize) -> Option<Vec<String>> {
    let mut ends: Vec<usize> = PHRASES.iter().flat_map(|lead| text.match_indices(lead)).map(|(at, _)| at).collect();
    ends.sort_unstable();
    let parts = ends.into_iter().filter_map(|end| text.get(..end)).filter(|part| columns(part) * 2 > width * most);
    let lines = parts.map(|part| wrap(&format!("{} …", part.trim_end_matches([',', ';'])), width));
    lines.take_while(|lines| lines.len() <= most).last()
}

/// As many words from the start as fit, with a mark that the sentence goes on.
fn words(text: &str, width: usize, most: usize) -> Vec<String> {
    let mut lines = wrap(text, width);
    lines.truncate(most);
    if let Some(last) = lines.last_mut() {
        while columns(last) + 2 > width {
            match last.trim_end().rfind(' ') {
                Some(space) => last.truncate(space),
                None if last.pop().is_none() => break,
                None => {}
            }
        }
        *last = format!("{} …", last.trim_end());
    }
    lines
}

/// A text without what it says in brackets.
pub(super) fn without_brackets(text: &str) -> String {
    let mut bare = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(" (") {
        bare.push_str(before);
        let mut depth = 1_usize;
        let end = after.char_indices().find(|(_, c)| {
            depth = match c {
                '(' => depth + 1,
                ')' => depth - 1,
                _ => depth,
            };
            depth == 0
        });
        // A bracket that stays open is no bracket.
        let Some((end, _)) = end else { return bare + " (" + after };
        rest = &after[end + 1..];
    }
    bare + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_ends_behind_a_sentence_or_says_that_it_goes_on() {
        let cut = |text, most| {
            let (lines, was_cut) = paragraph(text, 12, most);
            assert!(lines.iter().all(|line| columns(line) <= 12), "{lines:?}");
            (lines.join("/"), was_cut)
        };
        assert_eq!(cut("One. Two.", 1), ("One. Two.".to_owned(), false));
        assert_eq!(cut("One two. Three four five.", 1), ("One two.".to_owned(), true));
        assert_eq!(cut("One two. Three four. Five six.", 2), ("One two./Three four.".to_owned(), true));
        assert_eq!(cut("One two three four five six", 2), ("One two/three four …".to_owned(), true));
        assert_eq!(cut("/a/very/long/path/of/a/cgroup", 1), ("/a/very/ …".to_owned(), true));
        assert!(cut("日本語日本語日本語", 1).1);
        assert_eq!(cut("Files, e.g. of a log, wait.", 1), ("Files, …".to_owned(), true));
        assert_eq!(cut("It is vda. vdb is idle.", 1), ("It is vda.".to_owned(), true));
        assert_eq!(cut("any text of two lines", 0), (String::new(), true));
    }

    #[test]
    fn brackets_go_first_and_a_sentence_is_cut_behind_a_phrase() {
        let cut = |text, width, most| paragraph(text, width, most).0.join("/");
        let seen =
            "During the stall, tasks wait for I/O 80 % of the time (CPU iowait 5 to 80 %). Meanwhile, vda is 9 % busy.";
        assert_eq!(cut(seen, 67, 1), "During the stall, tasks wait for I/O 80 % of the time.");
        assert_eq!(cut(seen, 78, 1), "During the stall, tasks wait for I/O 80 % of the time (CPU iowait 5 to 80 %).");
        let hook = "Run sync -f /data before the unmount, in the hook that removes containers.";
        assert_eq!(cut(hook, 67, 1), "Run sync -f /data before the unmount …");
        let rows = "Predicted: longest fsync 3.00 s → about 30 ms; maybe peak data at risk 30 MiB → about 70 MiB.";
        assert_eq!(cut(rows, 67, 1), "Predicted: longest fsync 3.00 s → about 30 ms …");
        assert_eq!(cut("One, two three four five six seven", 24, 1), "One, two three four …", "a short phrase");
        assert_eq!(cut("one (info), two (a (b) c), three (info)", 14, 1), "one, two …");
        assert_eq!(without_brackets("open (to the end"), "open (to the end");
    }

    #[test]
    fn a_sentence_is_cut_only_after_all_that_need_not_be_there() {
        let first = |is_whole: bool| {
            let mut all = Limits::all();
            let limits = all.find(|limits| limits.is_whole == is_whole && limits.of(Part::Seen) == 1);
            let text = "Predicted: longest fsync 3.00 s → about 30 ms; maybe peak data at risk 30 MiB → about 70 MiB.";
            limits.expect("a limit").paragraph(Part::Seen, text, 67).0.join("/")
        };
        assert_eq!(
            first(true),
            "Predicted: longest fsync 3.00 s → about 30 ms; maybe peak data at/risk 30 MiB → about 70 MiB."
        );
        assert_eq!(first(false), "Predicted: longest fsync 3.00 s → about 30 ms …");
        let is_whole: Vec<bool> = Limits::all().map(|limits| limits.is_whole).collect();
        assert!(is_whole.is_sorted_by(|one, next| one >= next), "whole ones first");
    }

    #[test]
    fn each_part_only_gets_shorter() {
        for (at, (part, lines)) in STEPS.iter().enumerate() {
            assert!(Limits { taken: at, is_whole: false }.of(*part) > *lines, "step {at}: {part:?}");
        }
    }
}
