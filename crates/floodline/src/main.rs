// SPDX-License-Identifier: MIT OR Apache-2.0
//! Floodline: names what makes writes stall or storm on a Linux host, and the one change that helps.
//! This crate is arguments, wiring and exit codes; what it does is in the other five.

mod ascii;
mod asked;
mod commands;
mod console;
mod copies;
mod error;
mod exit;
mod fleet;
mod guest;
mod input;
mod interrupt;
mod live;
mod memory;
mod observe;
mod output;
#[cfg(test)]
mod pages;
mod redaction;
mod stderr;
mod trial;
mod tuning;
mod twins;
mod whole;
mod workers;

use console::{ColorChoice, Console};
use error::CliError;
use exit::Exit;
use floodline_host::apart;
use floodline_record::text::Text;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    if guest::is_here() {
        guest::run();
    }
    let mut arguments = std::env::args_os().skip(1).peekable();
    if arguments.peek().is_some_and(|first| first == apart::ARGUMENT) {
        // Ignore signals here: the parent process handles them, and ends this process too.
        let _signals = interrupt::Interrupt::watch();
        // If memory may not be locked, the parent process reports it for both.
        let _ = floodline_serve::lock_touched_memory();
        return ExitCode::from(apart::main());
    }
    if let Some(first) = arguments.next()
        && let Some(code) = floodline_tune::guard::main(&first, &arguments.collect::<Vec<_>>())
    {
        return ExitCode::from(code);
    }
    interrupt::survive_file_size_limit();
    let result = std::panic::catch_unwind(run);
    let exit = match result {
        Ok(Ok(exit)) => exit,
        Ok(Err(error)) => error.report(),
        Err(_) => error::report_bug(),
    };
    ExitCode::from(exit.code())
}

fn run() -> Result<Exit, CliError> {
    let given: Vec<OsString> = std::env::args_os().collect();
    let matches = match arguments().try_get_matches_from(&given) {
        Ok(matches) => matches,
        Err(answer) => {
            // Clap shows arguments as they are: it is asked once more, about their escaped form.
            let escaped = given.iter().map(|argument| Text::new(argument.to_string_lossy()).to_string());
            return error::of_clap(&arguments().try_get_matches_from(escaped).err().unwrap_or(answer));
        }
    };
    let color = matches.get_one::<ColorChoice>("color").copied().unwrap_or_default();
    let mut console = Console::new(color);
    match matches.subcommand() {
        Some((name, matches)) => match commands::find(name) {
            Some(command) => (command.run)(matches, &mut console),
            None => Err(CliError::bug(format!("command {name} is declared but not listed"))),
        },
        None => Err(CliError::usage("no command given").hint("floodline --help lists the commands")),
    }
}

/// Columns that help has, on wider terminals too.
const WIDTH: usize = 80;

/// Behind the options that are a command's own.
const DISPLAYED_LAST: usize = 900;

/// The whole command line, as clap sees it; completions and the help test read it too.
fn arguments() -> clap::Command {
    let mut root = clap::Command::new("floodline")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Names the cause of write stalls and write storms on this host, and the one change that helps")
        .after_help(exit::HELP)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .propagate_version(true)
        .max_term_width(WIDTH)
        .arg(
            clap::Arg::new("color")
                .long("color")
                .global(true)
                .value_name("WHEN")
                .value_parser(clap::builder::EnumValueParser::<ColorChoice>::new())
                .default_value("auto")
                .display_order(DISPLAYED_LAST)
                .help("When to color the text"),
        );
    for command in commands::COMMANDS {
        root = root.subcommand(judging_durations((command.build)()));
    }
    root
}

/// Has a length of time that begins with a minus judged as one, and not taken for an option that is not known.
fn judging_durations(command: clap::Command) -> clap::Command {
    let is_duration =
        |arg: &clap::Arg| arg.get_value_names().is_some_and(|names| names.iter().any(|name| name == "DURATION"));
    let command = command.mut_args(|arg| if is_duration(&arg) { arg.allow_hyphen_values(true) } else { arg });
    command.mut_subcommands(judging_durations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        arguments().debug_assert();
    }

    /// Lines are broken by clap at the terminal's width: broken here they would be broken twice.
    #[test]
    fn paragraphs_of_help_are_one_line_each() {
        fn check(command: &clap::Command) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let prose =
                help.split("\n\n").filter(|part| !part.starts_with("Example") && !part.starts_with("Exit codes"));
            for paragraph in prose {
                assert!(!paragraph.contains('\n'), "{}: join the lines of {paragraph:?}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&arguments());
    }

    #[test]
    fn help_fits_80_columns() {
        fn check(command: &mut clap::Command) {
            for help in [command.render_help(), command.render_long_help()].map(|help| help.to_string()) {
                let wide: Vec<&str> = help.lines().filter(|line| line.chars().count() > WIDTH).collect();
                assert!(wide.is_empty(), "{}: {wide:#?}", command.get_name());
            }
            // Examples are copied: clap must not break them.
            let last = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let wide = last.lines().find(|line| line.starts_with("  ") && line.chars().count() > WIDTH);
            assert_eq!(wide, None, "{}", command.get_name());
            command.get_subcommands_mut().for_each(check);
        }
        let mut arguments = arguments();
        arguments.build();
        check(&mut arguments);
    }

    #[test]
    fn every_command_and_argument_has_help() {
        for command in arguments().get_subcommands() {
            assert!(command.get_about().is_some(), "command {} needs an `about`", command.get_name());
            for argument in command.get_arguments() {
                assert!(
                    argument.get_help().is_some(),
                    "argument {} of {} needs a help line",
                    argument.get_id(),
                    command.get_name()
                );
            }
        }
    }
}
