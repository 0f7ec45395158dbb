// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the guard and its clients say to each other: words of one line over a socket in the abstract name space, which
//! needs no file system. Both sides check that the other one has the same user.
#![allow(unsafe_code)]

use crate::journal::sha256;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

/// From the applier: writes are about to start. The guard answers [`READY`].
pub const APPLIER: &[u8] = b"applier\n";
/// Answer: the guard will put everything back if the applier goes away.
pub const READY: &[u8] = b"ready\n";
/// From the applier: every value is written. The guard answers [`WAITING`].
pub const APPLIED: &[u8] = b"applied\n";
/// Answer: the guard waits for a confirmation.
pub const WAITING: &[u8] = b"waiting\n";
/// From the applier: a trial has ended. The guard puts everything back and answers [`RESTORED`].
pub const ENDED: &[u8] = b"ended\n";
/// From the applier: a bound of the plan did not hold after a step. The guard puts everything back and answers [`RESTORED`].
pub const BROKEN: &[u8] = b"broken\n";
/// From the applier: another program changed a value between two steps. The guard leaves that value, puts the others back
/// and answers [`RESTORED`].
pub const CHANGED: &[u8] = b"changed\n";
/// From a confirming process: stop the clock. The guard answers [`HELD`].
pub const CONFIRM: &[u8] = b"confirm\n";
/// Answer: the clock stands still while the journal is written.
pub const HELD: &[u8] = b"held\n";
/// From a confirming process: the journal records that the change stays. The guard answers [`RELEASED`].
pub const RECORDED: &[u8] = b"recorded\n";
/// Answer, the receipt: the guard lets go, and the change stays.
pub const RELEASED: &[u8] = b"released\n";
/// From any client: put everything back now. The guard answers [`RESTORED`].
pub const RESTORE: &[u8] = b"restore\n";
/// Answer: everything was put back. Details are in the journal.
pub const RESTORED: &[u8] = b"restored\n";
/// Answer: this is not possible now.
pub const REFUSED: &[u8] = b"refused\n";

/// Longest word.
pub const WORD_MAX: usize = 16;

fn address(state: &Path, id: u32) -> io::Result<SocketAddr> {
    // Two state folders are two hosts.
    let state = std::fs::canonicalize(state)?;
    let hash = sha256(state.as_os_str().as_encoded_bytes());
    SocketAddr::from_abstract_name(format!("floodline-guard-{}-{id}", hash.get(..16).unwrap_or_default()))
}

/// Takes the address of the guard of a change.
pub fn listen(state: &Path, id: u32) -> io::Result<UnixListener> {
    let listener = UnixListener::bind_addr(&address(state, id)?)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Whether the process at the other end has our user.
pub fn is_ours(stream: &UnixStream) -> bool {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = u32::try_from(size_of::<libc::ucred>()).unwrap_or(0);
    // SAFETY: the kernel writes at most `length` bytes, and `peer` has as many.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            std::ptr::from_mut(&mut peer).cast(),
            &mut length,
        )
    };
    result == 0 && peer.uid == rustix::process::geteuid().as_raw()
}

/// A connection to a guard.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
}

impl Client {
    /// Connects to the guard of a change; fails if there is none.
    pub fn connect(state: &Path, id: u32) -> io::Result<Client> {
        let stream = UnixStream::connect_addr(&address(state, id)?)?;
        if !is_ours(&stream) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(Client { stream })
    }

    /// Says a word and waits for the answer.
    pub fn ask(&mut self, word: &[u8], patience: Duration) -> io::Result<Vec<u8>> {
        self.stream.set_read_timeout(Some(patience))?;
        self.stream.write_all(word)?;
        self.answer()
    }

    /// Reads one answer.
    fn answer(&mut self) -> io::Result<Vec<u8>> {
        let mut word = Vec::new();
        let mut byte = [0];
        while word.last() != Some(&b'\n') {
            if word.len() >= WORD_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.stream.read_exact(&mut byte)?;
            word.push(byte[0]);
        }
        Ok(word)
    }

    /// Whether the guard is still there and has said nothing: it speaks unasked only when it puts things back.
    pub fn is_guarding(&self) -> bool {
        let Ok(()) = self.stream.set_nonblocking(true) else { return false };
        let mut byte = [0];
        let silent = matches!((&self.stream).read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        silent && self.stream.set_nonblocking(false).is_ok()
    }
}
