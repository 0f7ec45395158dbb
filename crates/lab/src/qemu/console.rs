// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses a guest kernel's console: panics, OOM kills, hung tasks, warnings. The text is untrusted and is
//! shown without control characters.

use crate::tool::printable;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// The relevant lines of a console.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Console {
    /// Why the kernel panicked.
    pub panic: Option<String>,
    /// Tasks killed by the OOM killer, in order.
    pub oom_kills: Vec<String>,
    /// Tasks that the kernel reported as hung.
    pub hung_tasks: Vec<String>,
    /// Warnings of the kernel about itself.
    pub warnings: Vec<String>,
    /// The last lines.
    pub tail: Vec<String>,
}

/// Lines kept of the end, and of each kind.
const LINES_MAX: usize = 20;

impl Console {
    /// Reads a console's file. A missing file counts as empty. The middle of a very long file is skipped.
    pub fn read(path: &Path) -> Console {
        Console::parse(&String::from_utf8_lossy(&ends(path).unwrap_or_default()))
    }

    /// Reads a console's text.
    pub fn parse(text: &str) -> Console {
        let mut console = Console::default();
        for line in text.lines() {
            let line = printable(line, 500);
            if line.trim().is_empty() {
                continue;
            }
            if let Some((_, why)) = line.split_once("Kernel panic - not syncing: ") {
                console.panic.get_or_insert_with(|| why.to_owned());
            }
            for (mark, list) in [
                ("Killed process ", &mut console.oom_kills),
                ("INFO: task ", &mut console.hung_tasks),
                ("WARNING: ", &mut console.warnings),
            ] {
                if let Some((_, what)) = line.split_once(mark).filter(|_| list.len() < LINES_MAX) {
                    list.push(what.to_owned());
                }
            }
            if console.tail.len() == LINES_MAX {
                console.tail.remove(0);
            }
            console.tail.push(line);
        }
        console
    }
}

/// Bytes read of the start of a console, and of its end.
const READ_MAX: u64 = 4 << 20;

/// Start and end of a file.
fn ends(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    (&file).take(READ_MAX).read_to_end(&mut bytes)?;
    let left = file.metadata()?.len().saturating_sub(READ_MAX);
    if left > READ_MAX {
        bytes.extend_from_slice(b"\n[...]\n");
        file.seek(SeekFrom::End(-i64::try_from(READ_MAX).unwrap_or(0)))?;
    }
    file.take(READ_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_kills_and_hangs_are_found() {
        let text = "\
[    1.0] Linux version 6.12.117\r
[    9.1] Memory cgroup out of memory: Killed process 212 (writer) total-vm:5000kB, anon-rss:900kB\r
[   99.2] INFO: task umount:300 blocked for more than 60 seconds.\r
\r
[  100.3] Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b\r
[  100.4] ---[ end Kernel panic - not syncing: Attempted to kill init! ]---\x1b[0m\r
";
        let console = Console::parse(text);
        assert_eq!(console.panic.as_deref(), Some("Attempted to kill init! exitcode=0x0000000b"));
        assert_eq!(console.oom_kills, ["212 (writer) total-vm:5000kB, anon-rss:900kB"]);
        assert_eq!(console.hung_tasks, ["umount:300 blocked for more than 60 seconds."]);
        assert_eq!(console.tail.len(), 5);
        assert!(console.tail.iter().all(|line| !line.contains(char::is_control)));
    }

    #[test]
    fn of_a_flooded_console_start_and_end_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("console.log");
        let flood = "x".repeat(3 * usize::try_from(READ_MAX).unwrap());
        std::fs::write(&path, format!("INFO: task a:1 hangs\n{flood}\nKernel panic - not syncing: late\n")).unwrap();
        let console = Console::read(&path);
        assert_eq!((console.hung_tasks.len(), console.panic.as_deref()), (1, Some("late")));
        assert!(ends(&path).unwrap().len() < 9 << 20);
        std::fs::write(&path, "Kernel panic - not syncing: short").unwrap();
        assert_eq!(Console::read(&path).panic.as_deref(), Some("short"));
    }

    #[test]
    fn any_text_is_a_console() {
        bolero::check!().for_each(|bytes: &[u8]| {
            let console = Console::parse(&String::from_utf8_lossy(bytes));
            assert!(console.tail.len() <= LINES_MAX);
        });
    }
}
