// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a command's result goes: standard output with colour only where wanted, and its width.
//! Everything that is not a result (progress, warnings) goes to standard error; so does the result where
//! standard output is taken by a recording.

use crate::error::CliError;
use floodline_record::name::harmless;
use indicatif::{ProgressBar, ProgressStyle};
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
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

/// Where results go, and what is known of it.
pub(crate) struct Console {
    wanted: ColorChoice,
    color: anstream::ColorChoice,
    width: u16,
    /// Whether standard output is left to a recording.
    is_left: bool,
}

/// Width of the text when standard output is no terminal.
const WIDTH_DEFAULT: u16 = 80;

/// Commands that take longer than this show progress.
const PROGRESS_AFTER: Duration = Duration::from_secs(2);

/// Writes a line to standard error. Where that is closed or full, the line is lost and the command goes on.
pub(crate) fn tell(line: fmt::Arguments<'_>) {
    let _ = writeln!(anstream::stderr(), "{line}");
}

impl Console {
    pub(crate) fn new(wanted: ColorChoice) -> Console {
        Console::on(&io::stdout(), wanted)
    }

    /// From now on results go to standard error: a recording goes to standard output.
    pub(crate) fn leave_standard_output(&mut self) {
        *self = Console { is_left: true, ..Console::on(&io::stderr(), self.wanted) };
    }

    fn on(stream: &(impl anstream::stream::RawStream + AsFd), wanted: ColorChoice) -> Console {
        let color = match wanted {
            ColorChoice::Auto => anstream::AutoStream::choice(stream),
            ColorChoice::Always => anstream::ColorChoice::AlwaysAnsi,
            ColorChoice::Never => anstream::ColorChoice::Never,
        };
        let width = rustix::termios::tcgetwinsize(stream).map_or(0, |size| size.ws_col);
        Console { wanted, color, width: if width == 0 { WIDTH_DEFAULT } else { width }, is_left: false }
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
        let (out, target): (Box<dyn Write>, &str) = match self.is_left {
            true => (Box::new(io::stderr()), "standard error"),
            false => (Box::new(io::stdout()), "standard output"),
        };
        let mut out = anstream::AutoStream::new(out, self.color);
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| CliError::write(target, &error))
    }

    /// Tells a person something that is not part of the result.
    pub(crate) fn note(&self, text: &str) {
        tell(format_args!("floodline: {}", harmless(text)));
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
