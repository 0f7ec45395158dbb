// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a command's result goes: standard output with colour only where wanted, and its width.
//! Everything that is not a result (progress, warnings) goes to standard error.

use crate::error::CliError;
use floodline_core::name::harmless;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorChoice {
    /// When standard output is a terminal and `NO_COLOR` is not set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How a result is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs; the schema is versioned and stable.
    Json,
}

/// Standard output and what is known of it.
pub(crate) struct Console {
    color: anstream::ColorChoice,
    width: u16,
}

/// Width of the text when standard output is no terminal.
const WIDTH_DEFAULT: u16 = 80;

/// Commands that take longer than this show progress.
const PROGRESS_AFTER: Duration = Duration::from_secs(2);

impl Console {
    pub(crate) fn new(color: ColorChoice) -> Console {
        let stdout = io::stdout();
        let color = match color {
            ColorChoice::Auto => anstream::AutoStream::choice(&stdout),
            ColorChoice::Always => anstream::ColorChoice::AlwaysAnsi,
            ColorChoice::Never => anstream::ColorChoice::Never,
        };
        let width = rustix::termios::tcgetwinsize(&stdout).map_or(0, |size| size.ws_col);
        Console { color, width: if width == 0 { WIDTH_DEFAULT } else { width } }
    }

    /// Columns of the terminal, or 80.
    pub(crate) fn width(&self) -> usize {
        usize::from(self.width)
    }

    /// Whether text may be coloured.
    pub(crate) fn is_colored(&self) -> bool {
        self.color != anstream::ColorChoice::Never
    }

    /// Prints a result. Colour codes in it are removed where they are not wanted.
    pub(crate) fn print(&mut self, text: &str) -> Result<(), CliError> {
        let mut out = anstream::AutoStream::new(io::stdout().lock(), self.color);
        out.write_all(text.as_bytes())
            .and_then(|()| out.flush())
            .map_err(|error| CliError::write("standard output", &error))
    }

    /// Tells a person something that is not part of the result.
    pub(crate) fn note(&self, text: &str) {
        anstream::eprintln!("floodline: {}", harmless(text));
    }

    /// A line on standard error that says how far a command is; for commands that may take long.
    pub(crate) fn progress(&self) -> Progress {
        Progress { bar: ProgressBar::hidden(), since: Instant::now(), terminal: io::stderr().is_terminal() }
    }
}

/// A progress line. Shown only on a terminal, from [`PROGRESS_AFTER`] on, so that short commands print
/// nothing; gone when dropped, so that it never stands in the way of a result.
pub(crate) struct Progress {
    bar: ProgressBar,
    since: Instant,
    terminal: bool,
}

impl Progress {
    /// Says how far the command is. `message` is only made when somebody sees it.
    pub(crate) fn tell(&mut self, message: impl FnOnce() -> String) {
        if !self.terminal || self.since.elapsed() < PROGRESS_AFTER {
            return;
        }
        if self.bar.is_hidden() {
            self.bar = ProgressBar::new_spinner().with_elapsed(self.since.elapsed());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed}  {msg}") {
                self.bar.set_style(style);
            }
        }
        self.bar.set_message(message());
        self.bar.tick();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
