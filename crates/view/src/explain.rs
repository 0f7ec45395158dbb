// SPDX-License-Identifier: MIT OR Apache-2.0
//! Manual pages of rules for a terminal: the Markdown they are written in (headings, paragraphs, lists,
//! fenced blocks, `code` and *emphasis*) set to a width. What is none of these stays as it is.

use crate::doctor::Options;
use crate::layout::{columns, hanging};
use anstyle::Style;
use floodline_analysis::diagnose::Rule;
use std::fmt::Write;

const BOLD: Style = Style::new().bold();

/// All rules with one line each.
pub fn list(rules: &[Rule], options: Options) -> String {
    let widest = rules.iter().map(|rule| rule.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for rule in rules {
        hanging(&mut out, &format!("{:widest$}  ", rule.name), rule.summary, options.width);
    }
    out.push_str("\nfloodline explain RULE prints the page of a rule.\n");
    out
}

/// The manual page of a rule.
pub fn page(rule: &Rule, options: Options) -> String {
    let mut out = String::new();
    let mut paragraph = String::new();
    let mut fenced = false;
    for line in rule.manual.lines() {
        let is_fence = line.starts_with("```");
        let starts_block = line.is_empty() || line.starts_with('#') || is_fence || line.starts_with("* ");
        if starts_block && !fenced {
            flush(&mut out, &mut paragraph, options);
        }
        if is_fence {
            fenced = !fenced;
        } else if fenced && columns(line) + 4 > options.width {
            hanging(&mut out, "    ", line, options.width);
        } else if fenced {
            let _ = writeln!(out, "    {line}");
        } else if let Some(title) = line.strip_prefix("## ") {
            heading(&mut out, title, options);
        } else if let Some(title) = line.strip_prefix("# ") {
            heading(&mut out, &format!("{title} - {}", rule.summary), options);
        } else if line.is_empty() {
            if !out.is_empty() && !out.ends_with("\n\n") {
                out.push('\n');
            }
        } else {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(line.trim_end());
        }
    }
    flush(&mut out, &mut paragraph, options);
    out
}

fn heading(out: &mut String, title: &str, options: Options) {
    let style = if options.color { BOLD } else { Style::new() };
    for line in crate::layout::wrap(title, options.width) {
        let _ = writeln!(out, "{style}{line}{style:#}");
    }
}

fn flush(out: &mut String, paragraph: &mut String, options: Options) {
    if paragraph.is_empty() {
        return;
    }
    let text = plain(paragraph);
    match text.strip_prefix("* ") {
        Some(item) => hanging(out, "  - ", item, options.width),
        None => hanging(out, "  ", &text, options.width),
    }
    paragraph.clear();
}

/// Without the marks of code and emphasis. A star or underscore with a space beside it is no mark.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut in_code = false;
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let next_is_space = rest.peek().is_none_or(|next| next.is_whitespace());
        let is_mark = c == '*' && !in_code && !(before.is_whitespace() && next_is_space);
        match c {
            '`' => in_code = !in_code,
            _ if is_mark => {}
            _ => out.push(c),
        }
        before = c;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_analysis::diagnose::Verdict;
    use floodline_analysis::diagnose::rules::RULES;

    #[test]
    fn markdown_becomes_a_page() {
        let rule = Rule {
            name: "slow-thing",
            summary: "A thing is slow",
            manual: "# slow-thing\n\nLead.\n\n## What it means\n\nOne `code` and\n*two* 3 * 4.\n\n* item one that is long enough to\n  wrap\n* item two\n\n```text\na  = b\n```\n",
            explains: &[],
            check: |_| Verdict::Clear(String::new()),
        };
        insta::assert_snapshot!(page(&rule, Options { width: 30, ..Options::default() }), @"
        slow-thing - A thing is slow

          Lead.

        What it means

          One code and two 3 * 4.

          - item one that is long
            enough to wrap
          - item two

            a  = b
        ");
    }

    #[test]
    fn every_page_fits_and_keeps_its_words() {
        for rule in RULES {
            let text = page(rule, Options::default());
            assert!(text.lines().all(|line| crate::layout::columns(line) <= 80), "{text}");
            assert!(!text.contains('`'), "{text}");
            assert!(text.contains("What to do") && text.contains("Kernel references"));
        }
    }

    #[test]
    fn the_list_names_every_rule() {
        let text = list(RULES, Options::default());
        assert!(RULES.iter().all(|rule| text.contains(rule.name)));
        assert!(text.lines().all(|line| crate::layout::columns(line) <= 80));
    }
}
