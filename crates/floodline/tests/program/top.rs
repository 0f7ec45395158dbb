// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline top` in a pseudo-terminal: it takes the screen over, answers keys, and gives the screen back.

use crate::harness::{PATIENCE, floodline, recording};
use floodline_testkit::Fixture;
use floodline_testkit::incidents::dirty_cliff;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

/// What a terminal shows: enough of one to follow the program.
struct Grid {
    cells: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// Bytes of a sequence that has not ended.
    rest: Vec<u8>,
    is_alternate: bool,
}

impl Grid {
    fn write(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let text = match std::str::from_utf8(&self.rest) {
            Ok(text) => text.to_owned(),
            Err(error) => String::from_utf8_lossy(&self.rest[..error.valid_up_to()]).into_owned(),
        };
        let mut rest = text.as_str();
        while let Some(c) = rest.chars().next() {
            if c != '\u{1b}' {
                if let Some(cell) = self.cells.get_mut(self.row).and_then(|row| row.get_mut(self.column)) {
                    *cell = c;
                }
                self.column += 1;
                rest = &rest[c.len_utf8()..];
                continue;
            }
            let Some(end) = rest.find(|c: char| c.is_ascii_alphabetic()) else { break };
            let (sequence, after) = rest.split_at(end + 1);
            if let Some(place) = sequence.strip_prefix("\u{1b}[").and_then(|text| text.strip_suffix('H')) {
                let mut numbers = place.split(';').map(|number| number.parse::<usize>().unwrap_or(1) - 1);
                (self.row, self.column) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
            }
            match sequence {
                "\u{1b}[?1049h" => self.is_alternate = true,
                "\u{1b}[?1049l" => self.is_alternate = false,
                _ => {}
            }
            rest = after;
        }
        let taken = text.len() - rest.len();
        self.rest.drain(..taken);
    }

    fn text(&self) -> String {
        self.cells.iter().map(|row| row.iter().collect::<String>() + "\n").collect()
    }
}

/// The program on a terminal of 80 columns and 24 lines.
struct Session {
    child: Child,
    terminal: File,
    other_end: File,
    grid: Grid,
}

impl Session {
    fn start(args: &[&str]) -> Session {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&terminal).expect("it is ours");
        unlockpt(&terminal).expect("it opens");
        let name = ptsname(&terminal, Vec::new()).expect("it has a name");
        let name = name.to_str().expect("UTF-8").to_owned();
        let other_end = OpenOptions::new().read(true).write(true).open(&name).expect("the other end");
        tcsetwinsize(&other_end, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).expect("a size");
        let end = || Stdio::from(other_end.try_clone().expect("a copy"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_floodline"));
        command.env_clear().env("TERM", "xterm-256color").args(args);
        // A group of its own, so that nothing of the test's terminal reaches it.
        let child = command.process_group(0).stdin(end()).stdout(end()).stderr(end()).spawn().expect("it starts");
        let grid = Grid { cells: vec![vec![' '; 80]; 24], row: 0, column: 0, rest: Vec::new(), is_alternate: false };
        Session { child, terminal: File::from(terminal), other_end, grid }
    }

    /// Reads what the program writes until the screen is as wanted.
    fn until(&mut self, wanted: impl Fn(&Grid) -> bool) {
        let mut bytes = [0; 4096];
        let until = Instant::now() + PATIENCE;
        while !wanted(&self.grid) {
            assert!(Instant::now() < until, "the screen is not as wanted within a minute:\n{}", self.grid.text());
            let mut ready = [PollFd::new(&self.terminal, PollFlags::IN)];
            // Long enough for any machine; a program that is stuck fails the test instead of hanging it.
            let patience = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
            let count = poll(&mut ready, Some(&patience)).expect("a terminal");
            assert!(count > 0, "the screen stays:\n{}", self.grid.text());
            let length = self.terminal.read(&mut bytes).expect("the program writes");
            self.grid.write(&bytes[..length]);
        }
    }

    fn until_shown(&mut self, text: &str) {
        self.until(|grid| grid.text().contains(text));
    }

    fn press(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).expect("keys are taken");
    }

    /// Whether what is typed is shown: the terminal is as it was.
    fn is_restored(&self) -> bool {
        tcgetattr(&self.other_end).expect("a terminal").local_modes.contains(LocalModes::ECHO | LocalModes::ICANON)
    }

    fn end(&mut self) -> ExitStatus {
        self.child.wait().expect("it ends")
    }
}

#[test]
fn a_recording_is_walked_through_and_the_terminal_is_given_back() {
    let file = recording(&dirty_cliff());
    let mut session = Session::start(&["top", file.as_str()]);
    session.until_shown("CRITICAL on ");
    assert!(session.grid.is_alternate && !session.is_restored());
    session.press("3");
    session.until_shown("written/s");
    session.press("\u{1b}[C?");
    session.until_shown("Kernel function: blk_account_io_done()");
    session.press("x");
    session.until(|grid| !grid.text().contains("Kernel function"));
    session.press("t5s\r");
    session.until_shown("recording 5.00 s of");
    session.press("j");
    session.until_shown("recording 6.00 s of");
    session.press("tnoon\r");
    session.until_shown("invalid time");
    session.press("q");
    session.until(|grid| !grid.is_alternate);
    assert_eq!(session.end().code(), Some(0));
    assert!(session.is_restored());
}

#[test]
fn a_long_recording_has_a_screen_before_it_is_read_to_its_end() {
    let bytes = floodline_testkit::hostile::recording(&dirty_cliff().seconds(2000).records());
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("host.flr");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .expect("a pipe");
    let mut session = Session::start(&["top", pipe.to_str().expect("UTF-8")]);
    let mut file = OpenOptions::new().write(true).open(&pipe).expect("the program reads");
    // What is left for later is more than the end of the file.
    let (first, rest) = bytes.split_at(bytes.len() / 10 * 9);
    file.write_all(first).expect("the program reads");
    session.until_shown("Reading: the first ");
    file.write_all(rest).expect("the program reads");
    drop(file);
    session.until(|grid| !grid.text().contains("Reading: the first ") && grid.text().contains("CRITICAL on "));
    session.press("q");
    assert_eq!(session.end().code(), Some(0));
    assert!(session.is_restored());
}

#[test]
fn a_captured_host_is_shown_and_a_signal_gives_the_terminal_back() {
    let root = crate::harness::captured("7.2");
    let mut session = Session::start(&["top", "--root", &root]);
    session.until_shown("1 Verdict");
    let pid = rustix::process::Pid::from_child(&session.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    session.until(|grid| !grid.is_alternate);
    assert_eq!(session.end().code(), Some(0));
    assert!(session.is_restored());
}

#[test]
fn without_a_terminal_it_says_what_to_type() {
    let file = recording(&Fixture::healthy());
    let run = floodline(&["top", file.as_str()]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("floodline doctor"), "{run}");
}
