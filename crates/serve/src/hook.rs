// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports an incident to the operator's command, as JSON on standard input without a shell in between, and to
//! journald, with searchable fields.

use floodline_view::incidents::Incident;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// A command that takes longer is ended.
const TIME: Duration = Duration::from_secs(60);

/// journald's socket.
const JOURNAL: &str = "/run/systemd/journal/socket";

/// Runs a command with text on its standard input, in a thread of its own: to start it may wait for a disk. The answer
/// receives nothing, and is closed once the command has read the text.
pub(crate) fn run(command: &[OsString], text: String) -> Receiver<()> {
    let (has_read, closed) = channel();
    let Some((program, arguments)) = command.split_first() else { return closed };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null());
    let thread = std::thread::Builder::new().name("hook".to_owned()).stack_size(128 << 10);
    // If the thread cannot be started, the command is not run. The incident is kept all the same.
    let _ = thread.spawn(move || {
        let Ok(mut child) = command.spawn() else { return };
        let input = child.stdin.take();
        let writer = std::thread::Builder::new().stack_size(64 << 10).spawn(move || {
            // A command that reads nothing closes its end.
            let _ = input.map(|mut input| input.write_all(text.as_bytes()));
            drop::<Sender<()>>(has_read);
        });
        wait(&mut child);
        drop(writer);
    });
    closed
}

fn wait(child: &mut Child) {
    let start = Instant::now();
    while child.try_wait().is_ok_and(|status| status.is_none()) {
        if start.elapsed() > TIME {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Tells journald, where it listens. Never waits.
pub(crate) fn journal(incident: &Incident) {
    let Ok(socket) = UnixDatagram::unbound() else { return };
    if socket.set_nonblocking(true).is_ok() {
        // A journal that is full or gone is none of the recorder's troubles.
        let _ = socket.send_to(&entry(incident), JOURNAL);
    }
}

/// An entry in the journal's own form: each value with its length, so that no value can pretend to be a field.
fn entry(incident: &Incident) -> Vec<u8> {
    let severity = incident.severity.map_or("", |severity| severity.name());
    let priority = match severity {
        "critical" => "3",
        "warning" => "4",
        _ => "5",
    };
    let said = incident.cause.as_deref().unwrap_or(&incident.summary);
    let fields = [
        ("MESSAGE", format!("incident {}: {said}", incident.name)),
        ("PRIORITY", priority.to_owned()),
        ("SYSLOG_IDENTIFIER", "floodline".to_owned()),
        ("FLOODLINE_INCIDENT", incident.name.to_string()),
        ("FLOODLINE_TRIGGER", incident.trigger.to_string()),
        ("FLOODLINE_RULE", incident.rule.as_deref().unwrap_or_default().to_owned()),
        ("FLOODLINE_SEVERITY", severity.to_owned()),
    ];
    let mut entry = Vec::new();
    for (name, value) in fields {
        entry.extend_from_slice(name.as_bytes());
        entry.push(b'\n');
        entry.extend_from_slice(&(value.len() as u64).to_le_bytes());
        entry.extend_from_slice(value.as_bytes());
        entry.push(b'\n');
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_reads_the_incident_and_no_shell_does() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a;b $(c)");
        let has_read = run(&["tee".into(), file.clone().into()], "{\"x\":1}\n".to_owned());
        assert!(has_read.recv_timeout(Duration::from_secs(30)).is_err());
        let start = Instant::now();
        while std::fs::read_to_string(&file).ok().as_deref() != Some("{\"x\":1}\n") {
            assert!(start.elapsed() < Duration::from_secs(30));
            std::thread::sleep(Duration::from_millis(10));
        }
        let never = run(&["/does/not/exist".into()], String::new());
        assert_eq!(never.recv_timeout(Duration::from_secs(30)), Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
    }

    #[test]
    fn a_value_cannot_pretend_to_be_a_field() {
        let incident = Incident { summary: "a\nPRIORITY=0".into(), name: "incident-x".into(), ..Incident::default() };
        let entry = entry(&incident);
        assert!(entry.starts_with(b"MESSAGE\n"));
        assert!(!entry.windows(10).any(|bytes| bytes == b"\nPRIORITY="));
    }
}
