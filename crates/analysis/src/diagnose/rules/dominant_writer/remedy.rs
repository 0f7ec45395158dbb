// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why one writes most, and what helps: for journald a cure, for others what the choice is.

use super::{AMPLIFIED, Dominant, Path, amplification, at_start};
use crate::advise::step::journald_volatile;
use crate::diagnose::derived::Derived;
use crate::report::{Brief, Step, When};
use floodline_record::human;
use floodline_record::id::Entity;

pub(super) fn journald_remedy(derived: &Derived<'_>, dominant: &Dominant<'_, '_>) -> (String, Vec<Step>, String) {
    let journald = derived.window.facts.as_ref().and_then(|facts| facts.journald.as_ref());
    let in_memory = journald.is_some_and(|journald| journald.persistent == Some(false));
    let of_host = match dominant.writer.cgroup.and_then(|id| derived.window.entities.get(&id)) {
        // The journald of a container is in the container's cgroup.
        Some(Entity::Cgroup { path, .. }) => {
            [&b"/system.slice/systemd-journald.service"[..], b"/"].contains(&path.as_bytes())
        }
        _ => true,
    };
    let cause = "journald rewrites several scattered pages of its files for each message, through mappings, so its \
                 write calls carry almost nothing. The pages wait for their expiry and then go to the disk together.";
    if !of_host {
        return (
            format!("{cause} This journald belongs to a container."),
            Vec::new(),
            "Set Storage=volatile in the container's own journald.conf; its logs are then lost when it stops."
                .to_owned(),
        );
    }
    if in_memory {
        return (
            format!("{cause} Its configuration says that the journal is in memory: was it restarted since?"),
            vec![Step {
                when: When::Now,
                write: "systemd-journald".to_owned(),
                value: "restart".to_owned(),
                undo: "none needed".to_owned(),
                command: "systemctl restart systemd-journald".to_owned(),
            }],
            "Messages of the moment of the restart may be lost.".to_owned(),
        );
    }
    (
        cause.to_owned(),
        vec![journald_volatile()],
        "Logs are lost at a reboot: forward them to another machine first if they matter. The journal stays in \
         memory, by default in up to a tenth of /run."
            .to_owned(),
    )
}

/// What is said of scattered pages instead of a change.
const SCATTERED: &str = "No setting reduces the writes of this program: each scattered page is a request of its own. A \
                         shorter expiry only spreads them.";
/// The same of writes that the flusher does not write: no age or amount holds them.
const SCATTERED_PAST: &str = "No setting of writeback changes these writes: they bypass the page cache or are synced at once, and each is a \
                              request of its own.";
const SCATTERED_HELP: &str = "Move its files to a faster disk or into memory, or let it write fewer pages.";

/// What is said of scattered pages or writes, and what helps.
fn scattered_help(path: Path) -> String {
    match path {
        Path::Past | Path::Synced => {
            format!("{SCATTERED_PAST} Move its files to a faster disk, or let it write less or in larger pieces.")
        }
        _ => format!("{SCATTERED} {SCATTERED_HELP}"),
    }
}

/// The finding in few words, for the first screen.
pub(super) fn brief(who: &str, journald: bool, scattered: bool, path: Path, plan: &[Step]) -> Brief {
    let who = who.to_owned();
    match (journald, plan.is_empty()) {
        (true, false) => Brief {
            because:
                "journald rewrites several scattered pages of its files for each message. Half a minute later they \
                      go to the disk together, as small writes."
                    .to_owned(),
            who,
            expect: "The journal stays in memory. Its writes to the disk stop.".to_owned(),
            costs: "Logs are lost at a reboot. Forward them to another machine first if you need them.".to_owned(),
        },
        (true, true) => Brief {
            because:
                "journald rewrites several scattered pages of its files for each message. This journald runs in a \
                      container."
                    .to_owned(),
            who,
            expect: "Set Storage=volatile in the journald.conf of the container.".to_owned(),
            costs: "Its logs are lost when the container stops.".to_owned(),
        },
        (false, _) if scattered => Brief {
            because:
                "It writes small scattered pages. Each of them is a separate request, and the disk completes few requests \
                 per second."
                    .to_owned(),
            who,
            expect: scattered_help(path),
            costs: String::new(),
        },
        (false, _) => Brief {
            because: "It writes more to this disk than all other programs together.".to_owned(),
            who,
            expect: match path {
                Path::Past => {
                    "No setting makes a program write less, and its writes do not stay in memory: MemoryHigh= has no \
                         effect on them. Let it write less or more slowly, or move its files to another disk."
                }
                Path::Synced => {
                    "No setting makes a program write less, and a sync writes its data before the flusher does. Let it \
                         write less or more slowly, or move its files to another disk."
                }
                Path::Strict => {
                    "No setting makes a program write less, and the strict limit of the disk already bounds its unwritten \
                         data. Let it write less or in larger pieces, or move its files to another disk."
                }
                Path::AtOnce => {
                    "Other tasks wait until all that a sync writes at once is on the disk. Let the program sync each megabyte \
                         as it writes (fdatasync or sync_file_range), write more slowly, or move its files to another disk."
                }
                Path::Flusher => {
                    "No setting makes a program write less. Let it write less or in larger pieces, move its files to \
                          another disk, or set MemoryHigh= for its unit."
                }
                Path::Unbounded => {
                    "No setting makes a program write less, and no cgroup limit makes the kernel write its data earlier on \
                          this host. Let it write less or in larger pieces, or move its files to another disk."
                }
            }
            .to_owned(),
            costs: String::new(),
        },
    }
}

/// Dirtied bytes per application byte from which the factor means nothing: there were hardly any write calls.
const MOSTLY_STORED: f64 = 1000.0;

pub(super) fn other_remedy(
    who: &str,
    dominant: &Dominant<'_, '_>,
    scattered: bool,
    path: Path,
) -> (String, Vec<Step>, String) {
    let cause = match amplification(dominant) {
        _ if dominant.is_children() => format!(
            "When a process waits for a child that ended, the kernel adds the child's I/O counters to its own. {}[{}] \
             {}. So its children have likely written most of this. A shorter --every or a trace shows which programs \
             they were. Counters of cgroups do not have this problem.",
            dominant.writer.comm,
            dominant.writer.pid,
            match dominant.writer.inherited.and_then(|inherited| inherited.cpu_s) {
                Some(_) => "did less than the children it waited for",
                None => "had too little CPU time to write this itself",
            }
        ),
        _ if path == Path::Past => format!(
            "The writes of {who} do not wait for the flusher: it writes past the page cache (direct I/O) or syncs what it \
             wrote."
        ),
        _ if path == Path::Synced => format!(
            "The writes of {who} do not wait for the flusher: it syncs what it wrote, or another program's sync or unmount \
             writes it."
        ),
        Some(factor) if factor >= MOSTLY_STORED => format!(
            "{} hands nearly nothing to write calls: it stores through mappings, or in ways that these calls do not count \
             (io_uring, asynchronous I/O).",
            at_start(who)
        ),
        Some(factor) if factor >= AMPLIFIED => format!(
            "{} dirties {} bytes for each byte it hands to write calls: it stores through mappings, or it rewrites \
             pages after they were written.",
            at_start(who),
            human::number(factor)
        ),
        _ => format!("{} writes more to this disk than all other programs together.", at_start(who)),
    };
    if scattered {
        return (cause, Vec::new(), scattered_help(path));
    }
    let less = match path {
        Path::Past => {
            "Let it write less or more slowly, or move its files to another device. MemoryHigh= of its unit has no \
                 effect: its writes do not stay in memory."
        }
        Path::Synced => {
            "Let it write less or more slowly, or move its files to another device. A sync writes its data before the \
                 flusher does."
        }
        Path::Strict => {
            "The strict limit of the device already bounds its unwritten data. Let it write less or in larger pieces, or \
                 move its files to another device."
        }
        Path::AtOnce => {
            "A sync writes at once what it wrote in the seconds before. Let it sync each megabyte as it writes (fdatasync \
                 or sync_file_range), write more slowly, or move its files to another device."
        }
        Path::Flusher => {
            "Let it write less or in larger pieces, move its files to another device, or bound its unwritten data \
                  with MemoryHigh= of its unit."
        }
        Path::Unbounded => {
            "Let it write less or in larger pieces, or move its files to another device. No limit of a cgroup makes \
                  the kernel write its data earlier on this host."
        }
    };
    let advice = format!(
        "No setting reduces the writes of this program. {less} A hard io.max is not advised: a capped writer that holds \
         the filesystem's journal stops all other writers."
    );
    (cause, Vec::new(), advice)
}
