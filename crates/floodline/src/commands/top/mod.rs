// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline top [FILE]`: a live host or a recording on the screen of a terminal. The loop is here; what is shown is
//! `floodline_view::top`, what it is shown of is [`history`].

mod history;
mod terminal;

use super::Run;
use crate::console::Console;
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::{Input as Recording, no_sample};
use crate::interrupt::Interrupt;
use crate::live::{EVERY, Host, StatReads, Tracing};
use crate::observe::{Schedule, parse_duration, parse_interval};
use floodline_analysis::diagnose::stretches::Stretches;
use floodline_analysis::timeline::Timeline;
use floodline_host::Needs;
use floodline_record::record::{Record, Sink};
use floodline_record::window::Window;
use floodline_view::top::{Action, Key, Look, State, draw};
use history::History;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use terminal::{Input, Screen};

/// Longest wait for a key: a signal that asks to end is seen within it.
const PATIENCE: Duration = Duration::from_millis(500);

/// Rows of a recording after which its first screen is drawn: some hundredths of a second of reading.
const FIRST_ROWS: usize = 10_000;
/// Most rows that are read between two screens of a recording that is being read.
const NEXT_ROWS: usize = 250_000;

/// Watch a host, or walk through a recording, on the screen
#[derive(clap::Parser)]
#[command(
    name = "top",
    after_help = "Screens: 1 verdict, 2 cgroups and budgets, 3 devices and wbs, 4 waiting tasks, 5 writers and files. \
        Press h for the keys, ? for the source file and kernel function of a number, q to quit.\n\n\
        Examples:\n  \
        floodline top\n  \
        floodline top --trace on\n  \
        floodline top host.flr"
)]
pub(crate) struct Top {
    /// Recording to walk through instead of watching this host
    #[arg(conflicts_with_all = ["root", "every", "stat_every", "trace", "trace_budget"])]
    file: Option<PathBuf>,
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_interval, help = EVERY)]
    every: Duration,
    #[command(flatten)]
    reads: StatReads,
    #[command(flatten)]
    tracing: Tracing,
    /// Read a captured tree instead of this machine
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

impl Run for Top {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
            return Err(CliError::usage("top needs a terminal for its screen and its keys")
                .hint("for text without a terminal: floodline doctor, or floodline replay FILE"));
        }
        let interrupt = Interrupt::watch()?;
        let state = State::new(console.is_colored());
        match &self.file {
            Some(file) => {
                let mut early = Early { screen: None, state, due: FIRST_ROWS };
                let Some((history, at)) = read(file, &interrupt, &mut early)? else { return Ok(Exit::Done) };
                let Early { screen, mut state, .. } = early;
                state.say(String::new());
                let mut screen = screen.map_or_else(Screen::open, Ok)?;
                Session { screen: &mut screen, history, state, at, is_following: false }.run(&interrupt, None)?;
            }
            None => self.watch(state, &interrupt)?,
        }
        Ok(Exit::Done)
    }
}

/// The screen of a recording that is still being read: reading a long one takes longer than a person wants to wait.
struct Early {
    screen: Option<Screen>,
    state: State,
    /// Rows after which it is drawn next.
    due: usize,
}

impl Early {
    /// Draws the newest of the samples that were read, where it is time. Returns false once a key asks to quit.
    fn show(&mut self, history: &mut History) -> Result<bool, CliError> {
        if history.rows_read() < self.due || history.len() < 2 {
            return Ok(true);
        }
        self.due = history.rows_read().saturating_mul(4).min(history.rows_read() + NEXT_ROWS);
        let mut screen = self.screen.take().map_or_else(Screen::open, Ok)?;
        while let Some(input) = screen.input(Duration::ZERO)? {
            match input {
                Input::End | Input::Key(Key::Char('q')) => return Ok(false),
                Input::Resized | Input::Key(_) | Input::Nothing => {}
            }
        }
        let look = history.look(usize::MAX);
        let read = look.position.of_seconds;
        self.state.say(format!("Reading: the first {read:.0} s are here. The worst finding follows. q quits."));
        let state = &mut self.state;
        screen.draw(|buffer| draw(buffer, &look, state))?;
        self.screen = Some(screen);
        Ok(true)
    }
}

/// A recording, and the sample at which its worst finding shows most; the last one where it has none. `None` where a key
/// asked to quit.
fn read(file: &Path, interrupt: &Interrupt, early: &mut Early) -> Result<Option<(History, usize)>, CliError> {
    let (mut history, mut timeline, mut window) = (History::new(false), Timeline::default(), Window::default());
    let mut stretches = Stretches::new(Vec::new());
    let mut recording = Recording::open(file)?;
    let mut is_wanted = true;
    recording.visit(|record| {
        let (Ok(()), Ok(())) = (timeline.record(&record), stretches.record(&record));
        // Marks need to know what ids stand for, and no reading.
        if !matches!(record, Record::Sample(_) | Record::Event(_)) {
            let Ok(()) = window.record(&record);
        }
        history.take(record);
        is_wanted = early.show(&mut history)? && !interrupt.is_asked();
        Ok(is_wanted)
    })?;
    if !is_wanted {
        return Ok(None);
    }
    if !recording.is_whole() {
        // The other screen is the place for text that stays.
        early.screen = None;
        recording.tell_what_is_missing();
    }
    if history.len() == 0 {
        return Err(no_sample(file));
    }
    let report = stretches.finish();
    let mark = report.findings.first().and_then(|worst| timeline.mark_of(&window, worst));
    let at = mark.map_or(usize::MAX, |mark| history.at_second(mark.second));
    history.judge(report);
    Ok(Some((history, at)))
}

impl Top {
    fn watch(&self, state: State, interrupt: &Interrupt) -> Result<(), CliError> {
        let mut host = Host::open(self.root.as_deref())?;
        let schedule = Schedule { length: None, every: self.every };
        let tracer = host.tracer(self.tracing, schedule)?;
        let looks = host.looks(Needs::ALL, self.reads, tracer);
        let history = History::new(true);
        // A captured tree stands still.
        let every = if self.root.is_some() { Duration::MAX } else { self.every };
        let mut screen = Screen::open()?;
        let session = Session { screen: &mut screen, history, state, at: 0, is_following: true };
        session.run(interrupt, Some(Source { looks: Box::new(looks), every }))
    }
}

/// Appends the records of one sample.
type Looks<'a> = Box<dyn FnMut(&mut Vec<Record>) + 'a>;

/// Where samples of a live host come from.
struct Source<'a> {
    looks: Looks<'a>,
    every: Duration,
}

/// One run of the screen.
struct Session<'a> {
    screen: &'a mut Screen,
    history: History,
    state: State,
    /// Number of the sample shown.
    at: usize,
    /// Whether the newest sample is shown.
    is_following: bool,
}

impl Session<'_> {
    /// Draws after a sample, a key or a change of size, and otherwise waits.
    fn run(mut self, interrupt: &Interrupt, mut source: Option<Source<'_>>) -> Result<(), CliError> {
        let mut due = Instant::now();
        let mut look = Look::default();
        let mut is_first = true;
        loop {
            if let Some(source) = source.as_mut().filter(|_| Instant::now() >= due) {
                let mut records = Vec::new();
                (source.looks)(&mut records);
                records.into_iter().for_each(|record| self.history.take(record));
                let now = Instant::now();
                // A sample that takes longer than the interval costs the next ones.
                while due <= now {
                    due = due.checked_add(source.every).unwrap_or(now + Duration::from_secs(1 << 30));
                }
                if self.is_following {
                    look = self.look(usize::MAX)?;
                }
            } else if is_first {
                look = self.look(self.at)?;
            }
            is_first = false;
            let wait = match &source {
                Some(_) => due.saturating_duration_since(Instant::now()).min(PATIENCE),
                None => PATIENCE,
            };
            let input = self.screen.input(wait)?;
            if interrupt.is_asked() {
                return Ok(());
            }
            match input {
                None | Some(Input::Nothing) => {}
                Some(Input::End) => return Ok(()),
                Some(Input::Resized) => self.draw(&look)?,
                Some(Input::Key(key)) => match self.state.key(key, &look) {
                    Action::Quit => return Ok(()),
                    Action::Draw => self.draw(&look)?,
                    Action::Step(by) => look = self.step(by)?,
                    Action::GoTo(text) => look = self.go_to(&text)?,
                    Action::Pause => look = self.pause(source.is_some())?,
                },
            }
        }
    }

    fn draw(&mut self, look: &Look) -> Result<(), CliError> {
        let state = &mut self.state;
        self.screen.draw(|buffer| draw(buffer, look, state))
    }

    /// Shows a sample.
    fn look(&mut self, at: usize) -> Result<Look, CliError> {
        self.at = at.min(self.history.len().saturating_sub(1));
        let look = self.history.look(self.at);
        self.draw(&look)?;
        Ok(look)
    }

    fn step(&mut self, by: i64) -> Result<Look, CliError> {
        let by = isize::try_from(by).unwrap_or(0);
        self.hold();
        self.look(self.at.saturating_add_signed(by))
    }

    /// A live host is held still where one walks through its past.
    fn hold(&mut self) {
        (self.state.is_paused, self.is_following) = (self.is_following || self.state.is_paused, false);
    }

    fn pause(&mut self, is_live: bool) -> Result<Look, CliError> {
        if !is_live {
            self.state.say("A recording stands still: j and k walk through it.".to_owned());
            return self.look(self.at);
        }
        self.state.is_paused = !self.state.is_paused;
        self.is_following = !self.state.is_paused;
        self.look(if self.is_following { usize::MAX } else { self.at })
    }

    fn go_to(&mut self, text: &str) -> Result<Look, CliError> {
        match place(&self.history, text) {
            Some(at) => {
                self.hold();
                self.look(at)
            }
            None => {
                self.state.say(format!("invalid time {text:?}: expected 42s, 1m30s, 03:12:04 or 2026-11-21T04:00:00Z"));
                self.look(self.at)
            }
        }
    }
}

/// The sample of a time that a person typed: a duration since the first one, a time of the day, or a date and time.
fn place(history: &History, text: &str) -> Option<usize> {
    const DAY: u64 = 86_400_000_000_000;
    if let Ok(stamp) = text.parse::<jiff::Timestamp>() {
        return u64::try_from(stamp.as_nanosecond()).ok().map(|wall| history.at_wall(wall));
    }
    if let Ok(time) = text.parse::<jiff::civil::Time>() {
        let second = |part: i8, factor: u64| u64::try_from(part).unwrap_or(0) * factor;
        let of_day = (second(time.hour(), 3600) + second(time.minute(), 60) + second(time.second(), 1)) * 1_000_000_000;
        let first = history.first_wall();
        // The next such time at or after the beginning.
        let ahead = (of_day + DAY - first % DAY) % DAY;
        return Some(history.at_wall(first.saturating_add(ahead).saturating_add(999_999_999)));
    }
    if let Ok(seconds) = text.parse::<f64>() {
        return (seconds.is_finite() && seconds >= 0.0).then(|| history.at_second(seconds));
    }
    parse_duration(text).ok().map(|since| history.at_second(since.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_testkit::Fixture;

    #[test]
    fn times_are_typed_as_people_write_them() {
        let mut history = History::new(false);
        Fixture::healthy().seconds(120).records().into_iter().for_each(|record| history.take(record));
        let check = |text: &str, at: Option<usize>| assert_eq!(place(&history, text), at, "{text}");
        check("42s", Some(42));
        check("1m30s", Some(90));
        check("7", Some(7));
        // The fixture begins at 04:00:00 UTC.
        check("04:01:10", Some(70));
        check("1970-01-01T00:00:00Z", Some(0));
        check("noon", None);
        check("-3", None);
    }
}
