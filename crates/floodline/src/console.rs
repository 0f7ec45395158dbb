// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a command's result goes: standard output with colour only where wanted, and its width.
//! Everything that is not a result (progress, warnings) goes to standard error; so does the result where
//! standard output is taken by a recording. Text reaches a terminal only from here, screened: names and texts from
//! outside are escaped by their types already, and whatever passed them is escaped here.

use crate::ascii;
use crate::error::CliError;
use crate::stderr::{tell, wants_ascii};
use floodline_record::name::{harmless, is_plain};
use indicatif::{ProgressBar, ProgressStyle};
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// When to color the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorChoice {
    /// If standard output is a terminal and `NO_COLOR` is not set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Output format of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Text for people.
    #[default]
    Text,
    /// JSON for programs; the schema is versioned and stable.
    Json,
}

/// Where results go, and what is known of it.
pub(crate) struct Console {
    wanted: ColorChoice,
    color: anstream::ColorChoice,
    width: u16,
    rows: u16,
    /// Whether standard output is left to a recording.
    is_left: bool,
}

/// Width of the text when standard output is not a terminal.
const WIDTH_DEFAULT: u16 = 80;

/// Commands that take longer than this show progress.
const PROGRESS_AFTER: Duration = Duration::from_secs(2);
/// Time between two lines of progress in a log.
const LINE_EVERY: Duration = Duration::from_secs(10);

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
        let size = rustix::termios::tcgetwinsize(stream).ok();
        let or = |size: Option<u16>, default| size.filter(|size| *size > 0).unwrap_or(default);
        let width = or(size.map(|size| size.ws_col), WIDTH_DEFAULT);
        let rows = or(size.map(|size| size.ws_row), u16::MAX);
        Console { wanted, color, width, rows, is_left: false }
    }

    /// Columns of the terminal, or 80.
    pub(crate) fn width(&self) -> usize {
        usize::from(self.width)
    }

    /// Lines of the terminal above its prompt; as many as there may be if standard output is not a terminal.
    pub(crate) fn rows(&self) -> usize {
        usize::from(self.rows.saturating_sub(1))
    }

    /// Whether text may be coloured.
    pub(crate) fn is_colored(&self) -> bool {
        self.color != anstream::ColorChoice::Never
    }

    /// Prints a result. Colour codes in it are removed where they are not wanted.
    pub(crate) fn print(&mut self, text: &str) -> Result<(), CliError> {
        let (mut out, target): (Box<dyn Write>, &str) = match self.is_left {
            true => (Box::new(io::stderr()), "standard error"),
            false => (Box::new(io::stdout()), "standard output"),
        };
        let text = screened(text, self.is_colored());
        let is_ascii = if self.is_left { wants_ascii(&io::stderr()) } else { wants_ascii(&io::stdout()) };
        let text = if is_ascii { ascii::of(&text) } else { text.as_ref().into() };
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| CliError::write(target, &error))
    }

    /// Tells a person something that is not part of the result.
    pub(crate) fn note(&self, text: &str) {
        tell(format_args!("floodline: {text}"));
    }

    /// Creates a progress line on standard error, for commands that may take long.
    pub(crate) fn progress(&self) -> Progress {
        let (since, terminal) = (Instant::now(), io::stderr().is_terminal());
        Progress { bar: ProgressBar::hidden(), since, terminal, line_after: None }
    }

    /// The same for commands that may take an hour: where standard error is not a terminal, prints a line every 10 s.
    pub(crate) fn progress_in_logs(&self) -> Progress {
        let mut progress = self.progress();
        progress.line_after = Some(LINE_EVERY);
        progress
    }
}

/// Text as it may reach a terminal: lines and tabs stay, codes for colour stay where they are wanted, and every other
/// character that could command a terminal is escaped.
fn screened(text: &str, is_colored: bool) -> Cow<'_, str> {
    if text.chars().all(|c| matches!(c, '\n' | '\t') || is_plain(c)) {
        return Cow::Borrowed(text);
    }
    let mut screened = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let code = if c == '\u{1b}' { color_code(rest) } else { None };
        let taken = match code {
            Some(code) => {
                if is_colored {
                    screened.push_str(code);
                }
                code.len()
            }
            None if c == '\t' => {
                screened.push(c);
                1
            }
            None => {
                screened.push_str(&harmless(rest.get(..c.len_utf8()).unwrap_or_default()));
                c.len_utf8()
            }
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    Cow::Owned(screened)
}

/// The code for a colour or weight (`ESC [ … m`) that the text begins with.
fn color_code(text: &str) -> Option<&str> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let length = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    parameters.get(length..)?.starts_with('m').then(|| text.get(..length + 3)).flatten()
}

/// A progress line. Shown on a terminal, from [`PROGRESS_AFTER`] on, so that short commands print nothing; gone when dropped, so that it
/// never stands in the way of a result. Some commands also print lines to a log ([`Console::progress_in_logs`]).
pub(crate) struct Progress {
    bar: ProgressBar,
    since: Instant,
    terminal: bool,
    /// When the next line goes to a log. `None` without lines.
    line_after: Option<Duration>,
}

impl Progress {
    /// Whether the line is shown: standard error is a terminal.
    pub(crate) fn is_shown(&self) -> bool {
        self.terminal
    }

    /// Whether a line goes to a log now. The next one is due 10 s later.
    fn is_line_due(&mut self, passed: Duration) -> bool {
        let is_due = self.line_after.is_some_and(|after| passed >= after);
        if is_due {
            self.line_after = Some(passed + LINE_EVERY);
        }
        is_due
    }

    /// Says how far the command is. `message` is called only if the line is shown.
    pub(crate) fn tell(&mut self, message: impl FnOnce() -> String) {
        let passed = self.since.elapsed();
        if !self.terminal {
            if self.is_line_due(passed) {
                tell(format_args!("floodline: {}", message()));
            }
            return;
        }
        if passed < PROGRESS_AFTER {
            return;
        }
        if self.bar.is_hidden() {
            self.bar = ProgressBar::new_spinner().with_elapsed(self.since.elapsed());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed}  {msg}") {
                self.bar.set_style(style);
            }
        }
        self.bar.set_message(harmless(&message()).into_owned());
        self.bar.tick();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_gets_a_line_of_progress_every_10_s() {
        let console = Console::new(ColorChoice::Never);
        let due =
            |mut progress: Progress| [9, 10, 11, 19, 21, 30].map(|s| progress.is_line_due(Duration::from_secs(s)));
        assert_eq!(due(console.progress_in_logs()), [false, true, false, false, true, false]);
        assert_eq!(due(console.progress()), [false; 6]);
    }

    #[test]
    fn only_colours_and_lines_pass() {
        let check = |text: &str, colored: &str, plain: &str| {
            assert_eq!(screened(text, true), colored);
            assert_eq!(screened(text, false), plain);
        };
        check("né\n\tµ \\", "né\n\tµ \\", "né\n\tµ \\");
        check("\u{1b}[1;31mred\u{1b}[0m", "\u{1b}[1;31mred\u{1b}[0m", "red");
        check("\u{1b}[2Jx", "\\x1b[2Jx", "\\x1b[2Jx");
        check("\u{1b}]0;title\u{7}", "\\x1b]0;title\\x07", "\\x1b]0;title\\x07");
        check("\u{9b}31m\u{202e}\r", "\\xc2\\x9b31m\\xe2\\x80\\xae\\x0d", "\\xc2\\x9b31m\\xe2\\x80\\xae\\x0d");
        check("\u{1b}", "\\x1b", "\\x1b");
        check("\u{1b}[3", "\\x1b[3", "\\x1b[3");
    }
}
