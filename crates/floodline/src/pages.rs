// SPDX-License-Identifier: MIT OR Apache-2.0
//! Manual pages for packages: one per command from the same arguments that the program has, and one per rule from its
//! manual. Made by a test, so that the program does not carry what makes them: `make pages` sets `FLOODLINE_WRITE_PAGES`.

use crate::arguments;
use floodline_analysis::diagnose::Rule;
use floodline_analysis::diagnose::rules::RULES;
use std::path::Path;

/// Every page: its file name and its text.
fn pages() -> Vec<(String, String)> {
    let mut pages = Vec::new();
    let mut root = arguments();
    root.build();
    of_command(&root, "floodline", &mut pages);
    pages.extend(RULES.iter().map(|rule| (format!("floodline-{}.7", rule.name), of_rule(rule))));
    pages
}

fn of_command(command: &clap::Command, name: &str, pages: &mut Vec<(String, String)>) {
    // Clap keeps names of programs that live as long as the program.
    let lasting: &'static str = Box::leak(name.to_owned().into_boxed_str());
    let named = command.clone().name(lasting).bin_name(name.replace('-', " "));
    let mut page = Vec::new();
    clap_mangen::Man::new(named).manual("Floodline").render(&mut page).expect("a page");
    pages.push((format!("{name}.1"), String::from_utf8(page).expect("UTF-8")));
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        of_command(below, &format!("{name}-{}", below.get_name()), pages);
    }
}

/// A rule's manual, Markdown, as roff.
fn of_rule(rule: &Rule) -> String {
    let mut out = format!(".TH floodline-{} 7 \"\" \"\" Floodline\n.SH NAME\n", rule.name);
    out.push_str(&escaped(&format!("floodline-{} - {}", rule.name, rule.summary)));
    out.push('\n');
    let mut is_fenced = false;
    for line in rule.manual.lines() {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
            out.push_str(if is_fenced { ".PP\n.nf\n" } else { ".fi\n" });
        } else if is_fenced {
            out.push_str(&format!("{}\n", escaped(line)));
        } else if let Some(title) = line.strip_prefix("## ") {
            out.push_str(&format!(".SH {}\n", escaped(title).to_uppercase()));
        } else if line.starts_with("# ") {
            out.push_str(".SH DESCRIPTION\n");
        } else if let Some(item) = line.strip_prefix("* ") {
            out.push_str(&format!(".IP \\(bu 2\n{}\n", escaped(&plain(item))));
        } else if line.is_empty() {
            out.push_str(".PP\n");
        } else {
            out.push_str(&format!("{}\n", escaped(&plain(line.trim_start()))));
        }
    }
    out
}

/// Text without the marks of Markdown.
fn plain(text: &str) -> String {
    text.replace('`', "")
}

/// Text that roff takes as text.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[test]
fn every_command_and_rule_has_a_page() {
    let pages = pages();
    let text = |name: &str| &pages.iter().find(|(page, _)| page == name).unwrap_or_else(|| panic!("no page {name}")).1;
    for command in crate::commands::COMMANDS {
        let command = (command.build)();
        let about = command.get_about().expect("a command says what it does").to_string();
        let page = text(&format!("floodline-{}.1", command.get_name())).replace('\\', "").replace("*(Aq", "'");
        assert!(page.contains(about.split('.').next().unwrap_or(&about)), "{about}\n{page}");
    }
    for rule in RULES {
        let page = text(&format!("floodline-{}.7", rule.name));
        assert!(page.contains(".SH WHAT IT MEANS") && page.contains(".SH WHAT TO DO"), "{page}");
        assert!(!page.contains('`'), "{page}");
    }
    if let Some(folder) = std::env::var_os("FLOODLINE_WRITE_PAGES") {
        for (name, text) in &pages {
            std::fs::write(Path::new(&folder).join(name), text).expect("a page is written");
        }
    }
}
