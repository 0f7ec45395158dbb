// SPDX-License-Identifier: MIT OR Apache-2.0
//! The socket beside the ring by which `floodline mark` asks for an incident. Only the owner of the ring may connect.

use crate::error::ServeError;
use crate::ring::disk::shown;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// Name of the socket in the folder of the ring.
const SOCKET: &str = "control";

/// Longest request, bytes.
const REQUEST_MAX: u64 = 1024;

/// Time for a request to arrive.
const REQUEST_TIME: Duration = Duration::from_secs(2);

/// Time for an answer, which comes when the sample after the mark is taken and the incident is on the disk.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// One wish for an incident: the operator's words, and where the answer goes.
pub(crate) struct Mark {
    /// The words.
    pub(crate) text: String,
    /// Takes the answer.
    pub(crate) answer: SyncSender<String>,
}

/// Where the answer to a mark goes; `None` where no operator waits for one.
pub(crate) type Answer = Option<SyncSender<String>>;

/// Answers an operator, if one waits.
pub(crate) fn say(answer: Answer, text: String) {
    if let Some(answer) = answer {
        let _ = answer.try_send(text);
    }
}

/// Listens in the folder of a ring that this process holds the lock of.
pub(crate) fn listen(folder: &Path) -> Result<Receiver<Mark>, ServeError> {
    let path = folder.join(SOCKET);
    let failed = |error: std::io::Error| ServeError::new(format!("cannot make the socket {}: {error}", shown(&path)));
    // This process holds the ring's lock, so the socket's last owner is gone.
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).map_err(failed)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    let (marks, receiver) = sync_channel(4);
    let thread = std::thread::Builder::new().name("control".to_owned()).stack_size(128 << 10);
    thread
        .spawn(move || {
            for stream in listener.incoming() {
                match stream {
                    Ok(stream) => drop(answer(stream, &marks)),
                    Err(_) => std::thread::sleep(REQUEST_TIME),
                }
            }
        })
        .map_err(failed)?;
    Ok(receiver)
}

fn answer(stream: UnixStream, marks: &SyncSender<Mark>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(REQUEST_TIME))?;
    stream.set_write_timeout(Some(REQUEST_TIME))?;
    let mut line = String::new();
    BufReader::new((&stream).take(REQUEST_MAX)).read_line(&mut line)?;
    let Some(text) = line.strip_prefix("mark").and_then(|rest| rest.strip_suffix('\n')) else {
        return (&stream).write_all(b"error not a request\n");
    };
    let (answer, answered) = sync_channel(1);
    let said = match marks.try_send(Mark { text: text.trim().to_owned(), answer }) {
        Ok(()) => {
            answered.recv_timeout(ANSWER_TIME).unwrap_or_else(|_| "later it is not on the disk after 30 s".to_owned())
        }
        Err(TrySendError::Full(_)) => "error too many marks at once".to_owned(),
        Err(TrySendError::Disconnected(_)) => "error the recorder ends".to_owned(),
    };
    (&stream).write_all(format!("{said}\n").as_bytes())
}

/// Asks the server of a ring for an incident; answers the incident's name.
pub fn mark(folder: &Path, text: &str) -> Result<String, ServeError> {
    let path = folder.join(SOCKET);
    let failed = |error: std::io::Error| {
        let is_denied = error.kind() == std::io::ErrorKind::PermissionDenied;
        let told = ServeError::new(format!("cannot reach floodline serve at {}: {error}", shown(&path)));
        if is_denied {
            return told.hint(format!("only its user may: sudo floodline mark --ring {}", shown(folder)));
        }
        told.hint("name the folder of its ring: floodline mark --ring DIR")
            .hint(format!("or start it: floodline serve --ring {}", shown(folder)))
    };
    let mut stream = UnixStream::connect(&path).map_err(failed)?;
    stream.set_read_timeout(Some(ANSWER_TIME + REQUEST_TIME)).map_err(failed)?;
    let text: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
    stream.write_all(format!("mark {text}\n").as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    BufReader::new(stream.take(REQUEST_MAX)).read_line(&mut answer).map_err(failed)?;
    match answer.trim_end().split_once(' ') {
        Some(("kept", name)) => Ok(name.to_owned()),
        Some(("later", reason)) => {
            Err(ServeError::new(format!("{reason}: serve keeps it in memory and writes it when the disk takes it")))
        }
        Some((_, reason)) => Err(ServeError::new(format!("no incident was kept: {reason}"))),
        None => Err(ServeError::new("floodline serve ended before it answered")),
    }
}
