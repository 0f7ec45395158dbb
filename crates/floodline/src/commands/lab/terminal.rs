// SPDX-License-Identifier: MIT OR Apache-2.0
//! This terminal as that of a guest: every key goes there, but for an escape, and what comes back is shown
//! as it is. However it ends, the terminal is as it was before.

use crate::error::CliError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// How long the keyboard is watched before its end is looked for again.
const WATCH: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// Bytes read at once.
const CHUNK: usize = 16 << 10;

/// This terminal, handed over until this is dropped.
pub(super) struct Handed {
    before: Termios,
    wire: UnixStream,
    is_over: Arc<AtomicBool>,
    screen: Option<JoinHandle<()>>,
}

impl Handed {
    /// Hands it over to whom the stream leads to. `is_left` is set by the escape.
    pub(super) fn over(wire: &UnixStream, is_left: &Arc<AtomicBool>) -> Result<Handed, CliError> {
        let failed = |error: io::Error| CliError::lab_unavailable(format!("the terminal cannot be used: {error}"));
        let copy = || wire.try_clone().map_err(failed);
        let (keys, lines, wire) = (copy()?, copy()?, copy()?);
        let before = tcgetattr(io::stdin()).map_err(|errno| failed(errno.into()))?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Drain, &raw).map_err(|errno| failed(errno.into()))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, left) = (is_over.clone(), is_left.clone());
        std::thread::spawn(move || keyboard(keys, &over, &left));
        let screen = Some(std::thread::spawn(move || screen(lines)));
        Ok(Handed { before, wire, is_over, screen })
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // What is on its way is shown still, then the stream ends on this side too.
        let _ = self.wire.shutdown(Shutdown::Write);
        if let Some(screen) = self.screen.take() {
            let _ = screen.join();
        }
        // The terminal may be gone, so errors are ignored.
        let _ = io::stdout().write_all(CALM).and_then(|()| io::stdout().flush());
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.before);
    }
}

/// Sends what is typed.
fn keyboard(mut to: UnixStream, is_over: &AtomicBool, is_left: &AtomicBool) {
    let mut escape = Escape::default();
    let mut buffer = vec![0; CHUNK];
    while !is_over.load(Ordering::Relaxed) {
        let stdin = io::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut fds, Some(&WATCH)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => return is_left.store(true, Ordering::Relaxed),
        }
        // Not through the buffer of the standard library: what it holds, poll does not see.
        let Ok(length @ 1..) = rustix::io::read(&stdin, &mut buffer) else {
            return is_left.store(true, Ordering::Relaxed);
        };
        let typed = escape.take(buffer.get(..length).unwrap_or_default());
        if to.write_all(&typed.keys).is_err() {
            return;
        }
        if typed.wants_help {
            // Where it cannot be shown, the same is in the manual.
            let _ = io::stdout().write_all(HELP).and_then(|()| io::stdout().flush());
        }
        if typed.wants_out {
            return is_left.store(true, Ordering::Relaxed);
        }
    }
}

/// Shows what comes back, to its end.
fn screen(mut from: UnixStream) {
    let mut buffer = vec![0; CHUNK];
    let mut out = io::stdout();
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if out.write_all(buffer.get(..length).unwrap_or_default()).and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

/// Ctrl-A, the key that begins an escape.
const ESCAPE: u8 = 1;
const HELP: &[u8] = b"\r\nCtrl-A X  ends the guest\r\nCtrl-A A  sends Ctrl-A\r\nCtrl-A H  shows this help\r\n";

/// What a program that was cut off would have said to the terminal: plain pasting, cursor, colours.
const CALM: &[u8] = b"\x1b[?2004l\x1b[?25h\x1b[0m\r\n";

/// Finds escapes in what is typed.
#[derive(Debug, Default)]
struct Escape {
    is_begun: bool,
}

/// What was typed, in parts.
#[derive(Debug, Default, PartialEq, Eq)]
struct Typed {
    keys: Vec<u8>,
    wants_help: bool,
    wants_out: bool,
}

impl Escape {
    fn take(&mut self, bytes: &[u8]) -> Typed {
        let mut typed = Typed::default();
        for byte in bytes {
            match (std::mem::take(&mut self.is_begun), byte) {
                (false, &ESCAPE) => self.is_begun = true,
                (false, key) => typed.keys.push(*key),
                (true, b'x' | b'X') => {
                    typed.wants_out = true;
                    return typed;
                }
                (true, b'a' | b'A' | &ESCAPE) => typed.keys.push(ESCAPE),
                (true, b'h' | b'H' | b'?') => typed.wants_help = true,
                // Nothing of ours: it goes through whole.
                (true, key) => typed.keys.extend([ESCAPE, *key]),
            }
        }
        typed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&[u8]], keys: &[u8], wants_help: bool, wants_out: bool) {
        let mut escape = Escape::default();
        let mut all = Typed::default();
        for piece in pieces {
            let typed = escape.take(piece);
            all.keys.extend(typed.keys);
            all.wants_help |= typed.wants_help;
            all.wants_out |= typed.wants_out;
        }
        assert_eq!(all, Typed { keys: keys.to_vec(), wants_help, wants_out }, "{pieces:?}");
    }

    #[test]
    fn keys_go_through_and_escapes_are_found_wherever_they_are_cut() {
        check(&[b"ls\r\x03"], b"ls\r\x03", false, false);
        check(&[b"ls\x01xrm"], b"ls", false, true);
        check(&[b"ls\x01", b"X"], b"ls", false, true);
        check(&[b"\x01a\x01\x01"], b"\x01\x01", false, false);
        check(&[b"\x01", b"h", b"x"], b"x", true, false);
        check(&[b"\x01k"], b"\x01k", false, false);
    }
}
