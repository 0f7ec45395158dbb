// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs one virtual machine to its end. Starts QEMU, forwards the guest's status lines, and kills QEMU when the
//! guest is done, silent, over its time limit, or when the caller interrupts. QEMU never outlives the run.
//! Everything it writes is below the run's directory and is deleted with it.

mod accel;
mod console;
mod disk;

pub use accel::{Accel, Acceleration};
pub use console::Console;
pub use disk::{Disk, DiskError, Throttle, WriteBucket};

use crate::job::{LINE_MAX, Status, port};
use crate::tool::{self, ToolError};
use floodline_record::facts::UNJOINED_DISKS;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// QEMU for the kernels the lab can boot (x86-64).
pub const QEMU: &str = "qemu-system-x86_64";

/// A virtual machine to run.
#[derive(Debug)]
pub struct Vm {
    /// The kernel's image.
    pub kernel: PathBuf,
    /// The initrd.
    pub initrd: PathBuf,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// CPUs.
    pub cpus: u32,
    /// Disks.
    pub disks: Vec<Disk>,
    /// Hardware virtualisation or emulation.
    pub accel: Accel,
    /// Directory for the console log and the recording.
    pub dir: PathBuf,
    /// Whether QEMU restricts its own system calls (`-sandbox`).
    pub sandbox: bool,
    /// Most bytes the guest may send as status lines.
    pub status_max: u64,
    /// The host's end of the guest's terminal `/dev/hvc0`, if it has one.
    pub terminal: Option<UnixStream>,
}

/// Time limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For the whole run.
    pub total: Duration,
    /// For the next status line. Before the first one, this includes booting.
    pub silence: Duration,
}

/// How a run ended. In every case [`Vm::recording`] holds the samples recorded until then.
#[derive(Debug)]
pub enum Ended {
    /// The guest completed its job and powered off.
    Done,
    /// The guest reported why it cannot continue.
    Failed {
        /// The stage it failed in.
        stage: String,
        /// The cause.
        cause: String,
    },
    /// The guest ended without a last status: a kernel panic, or QEMU died.
    Died {
        /// QEMU's exit status.
        status: ExitStatus,
        /// The last line QEMU itself printed.
        says: String,
    },
    /// The guest sent no status for too long.
    Silent {
        /// The limit that passed.
        patience: Duration,
    },
    /// The run exceeded its total time.
    TooLong {
        /// The limit.
        patience: Duration,
    },
    /// The host's filesystem filled up.
    HostDiskFull {
        /// The run's directory.
        path: PathBuf,
    },
    /// The guest sent more data than any valid run does.
    Flooded {
        /// The stream: console, recording, status lines, or QEMU's messages.
        what: &'static str,
        /// Its limit, bytes.
        limit_bytes: u64,
    },
    /// The caller interrupted the run.
    Interrupted,
}

/// The virtual machine could not be started.
#[derive(Debug, thiserror::Error)]
pub enum QemuError {
    /// The host has too little memory.
    #[error("the guest needs {wanted_mib} MiB of memory; this host has {free_mib} MiB free")]
    NoMemory {
        /// Memory that the guest and QEMU need.
        wanted_mib: u64,
        /// `MemAvailable` of the host.
        free_mib: u64,
    },
    /// The host has too little free space for disks and recording.
    #[error("{path} has {free_mib} MiB free; a run needs at least {wanted_mib} MiB")]
    NoSpace {
        /// The run's directory.
        path: PathBuf,
        /// Space that a run needs.
        wanted_mib: u64,
        /// Space that is free.
        free_mib: u64,
    },
    /// QEMU could not be run.
    #[error(transparent)]
    Tool(#[from] ToolError),
}

/// Kernel parameters. A panic ends the guest. Warnings and worse go to the console. The other parameters save an
/// emulated CPU work that a guest without devices, users and secrets does not need. None of them affects writeback.
const APPEND: &str = "console=ttyS0 panic=-1 loglevel=5 random.trust_cpu=on mitigations=off lsm= audit=0 \
                      cryptomgr.notests tsc=reliable no_timer_check 8250.nr_uarts=1 \
                      i8042.noaux i8042.nokbd i8042.nopnp";

/// Memory of QEMU itself, beside the guest's.
const QEMU_MEMORY_MIB: u64 = 256;
/// Free space needed to start a run: a recording and a little data.
const SPACE_MIN_MIB: u64 = 512;
/// The run is ended when less than this is free, before QEMU gets ENOSPC.
const SPACE_LEFT_MIB: u64 = 64;
/// Most bytes a guest may write to its console and its recording: far more than any run needs.
const CONSOLE_MAX: u64 = 256 << 20;
const RECORDING_MAX: u64 = 16 << 30;
/// Most bytes a guest may send as status lines. A run sends a few hundred bytes a second.
pub(crate) const STATUS_MAX: u64 = 64 << 20;
/// Most bytes of status lines from a shell session, whose lines carry the command's output.
pub(crate) const SHELL_STATUS_MAX: u64 = 16 << 30;
/// Most bytes QEMU may print about a guest.
const LOG_MAX: u64 = 16 << 20;
/// Bytes read from the end of QEMU's log.
const LOG_TAIL: u64 = 64 << 10;
/// Statuses queued for the caller. When the queue is full, the guest waits.
const STATUSES_MAX: usize = 64;
/// Denied to QEMU even if a guest takes it over: obsolete system calls, raising privileges, starting programs,
/// changing priorities.
const SANDBOX: &str = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";
/// How often the interrupt flag is checked.
const TICK: Duration = Duration::from_millis(50);
/// Time for QEMU to exit after the guest powered off.
const POWER_OFF: Duration = Duration::from_secs(10);

impl Vm {
    /// Path of the recording that the guest sends.
    pub fn recording(&self) -> PathBuf {
        self.dir.join("recording.flr")
    }

    /// Path of the guest kernel's console log.
    pub fn console(&self) -> PathBuf {
        self.dir.join("console.log")
    }

    /// Path of QEMU's own messages.
    fn log(&self) -> PathBuf {
        self.dir.join("qemu.log")
    }

    /// Returns an error if this host lacks QEMU, memory or space for the guest.
    pub fn check(&self) -> Result<(), QemuError> {
        if !tool::is_there(QEMU) {
            return Err(ToolError::Missing { tool: QEMU.to_owned(), package: tool::package_of(QEMU) }.into());
        }
        let wanted_mib = (self.memory_bytes >> 20) + QEMU_MEMORY_MIB;
        if let Some(free_mib) = memory_available_mib().filter(|free| *free < wanted_mib) {
            return Err(QemuError::NoMemory { wanted_mib, free_mib });
        }
        match space_free_mib(&self.dir) {
            Some(free_mib) if free_mib < SPACE_MIN_MIB => {
                Err(QemuError::NoSpace { path: self.dir.clone(), wanted_mib: SPACE_MIN_MIB, free_mib })
            }
            _ => Ok(()),
        }
    }

    /// Returns true if the run ended because this QEMU was built without a sandbox.
    pub(crate) fn lacks_sandbox(&self, ended: &Ended) -> bool {
        self.sandbox && matches!(ended, Ended::Died { says, .. } if says.contains("sandbox"))
    }

    /// Runs the machine. `tell` receives the guest's statuses. The run ends when `is_asked` returns true.
    pub fn run(
        &self,
        patience: Patience,
        mut tell: impl FnMut(&Status),
        is_asked: impl Fn() -> bool,
    ) -> Result<Ended, QemuError> {
        self.check()?;
        let says = self.log();
        let mut command = self.command();
        let stderr = File::create(&says).map_err(|cause| tool::not_run(&command, cause))?;
        command.stdin(self.stdin(&command)?).stdout(Stdio::piped()).stderr(stderr);
        let mut qemu = Running(command.spawn().map_err(|cause| tool::not_run(&command, cause))?);
        let lines = qemu.lines(self.status_max);
        let started = Instant::now();
        let mut heard = started;
        let mut checked = started;
        let mut failed = None;
        loop {
            match lines.recv_timeout(TICK) {
                Ok(Heard::TooMuch) => {
                    return Ok(Ended::Flooded { what: "lines of status", limit_bytes: self.status_max });
                }
                Ok(Heard::Status(Status::Done)) => return Ok(self.end(qemu, Ended::Done)),
                Ok(Heard::Status(Status::Failed { stage, cause })) => failed = Some(Ended::Failed { stage, cause }),
                Ok(Heard::Status(status)) => {
                    heard = Instant::now();
                    tell(&status);
                }
                Err(RecvTimeoutError::Disconnected) if failed.is_none() => {
                    let status = qemu.0.wait().map_err(|cause| tool::not_run(&command, cause))?;
                    return Ok(Ended::Died { status, says: last_line(&says) });
                }
                Err(_) => {}
            }
            if let Some(failed) = failed.take() {
                return Ok(self.end(qemu, failed));
            }
            if is_asked() {
                return Ok(Ended::Interrupted);
            }
            if heard.elapsed() > patience.silence {
                return Ok(Ended::Silent { patience: patience.silence });
            }
            if started.elapsed() > patience.total {
                return Ok(Ended::TooLong { patience: patience.total });
            }
            if checked.elapsed() > Duration::from_secs(1) {
                checked = Instant::now();
                if space_free_mib(&self.dir).is_some_and(|free| free < SPACE_LEFT_MIB) {
                    return Ok(Ended::HostDiskFull { path: self.dir.clone() });
                }
                if let Some(flooded) = self.flooded() {
                    return Ok(flooded);
                }
            }
        }
    }

    /// Returns the stream on which the guest exceeded its limit, if any.
    fn flooded(&self) -> Option<Ended> {
        let files = [
            ("its console", self.console(), CONSOLE_MAX),
            ("its recording", self.recording(), RECORDING_MAX),
            ("messages of QEMU", self.log(), LOG_MAX),
        ];
        let is_over = |path: &Path, limit| std::fs::metadata(path).is_ok_and(|file| file.len() > limit);
        let over = files.into_iter().find(|(_, path, limit)| is_over(path, *limit));
        over.map(|(what, _, limit_bytes)| Ended::Flooded { what, limit_bytes })
    }

    /// Waits up to [`POWER_OFF`] for QEMU to exit, so that the end of the recording reaches the file.
    fn end(&self, mut qemu: Running, ended: Ended) -> Ended {
        let until = Instant::now() + POWER_OFF;
        while matches!(qemu.0.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(TICK);
        }
        ended
    }

    /// QEMU's standard input: the terminal's socket, if there is one. No other descriptor is inherited on purpose.
    fn stdin(&self, command: &Command) -> Result<Stdio, QemuError> {
        let Some(terminal) = &self.terminal else { return Ok(Stdio::null()) };
        let copy = terminal.try_clone().map_err(|cause| tool::not_run(command, cause))?;
        Ok(OwnedFd::from(copy).into())
    }

    /// The QEMU command line.
    pub(crate) fn command(&self) -> Command {
        let mut command = tool::bound(QEMU);
        let dir = option_value(&self.dir);
        command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        if self.sandbox {
            command.args(["-sandbox", SANDBOX]);
        }
        command.args(self.accel.arguments());
        command.args(["-smp", &self.cpus.to_string(), "-m", &format!("{}M", self.memory_bytes.div_ceil(1 << 20))]);
        command.arg("-kernel").arg(&self.kernel).arg("-initrd").arg(&self.initrd);
        command.args(["-append", &format!("{APPEND} {UNJOINED_DISKS}")]);
        command.args(["-chardev", &format!("file,id=console,path={dir}/console.log"), "-serial", "chardev:console"]);
        command.args(["-device", "virtio-serial-pci"]);
        if self.terminal.is_some() {
            command.args(["-chardev", "socket,id=terminal,fd=0", "-device", "virtconsole,chardev=terminal"]);
        }
        for (id, chardev, name) in [
            ("recording", format!("file,id=recording,path={dir}/recording.flr"), port::RECORDING),
            // Not a stdio chardev: that closes the port when standard input ends.
            ("status", "file,id=status,path=/proc/self/fd/1".to_owned(), port::STATUS),
        ] {
            command.args(["-chardev", &chardev]);
            command.args(["-device", &format!("virtserialport,chardev={id},name={name}")]);
        }
        for (number, disk) in self.disks.iter().enumerate() {
            command.args(disk.arguments(number));
        }
        command
    }
}

/// Escapes a path for use in a QEMU option, where a comma separates values.
fn option_value(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
}

/// A QEMU process. Dropping it kills the process.
struct Running(Child);

impl Running {
    /// Starts a thread that reads the guest's statuses until the stream ends or exceeds `limit` bytes.
    fn lines(&mut self, limit: u64) -> Receiver<Heard> {
        let (sender, receiver) = mpsc::sync_channel(STATUSES_MAX);
        if let Some(stdout) = self.0.stdout.take() {
            // The thread ends when the receiver is dropped or the pipe closes.
            std::thread::spawn(move || hear(stdout, limit, |heard| sender.send(heard).is_ok()));
        }
        receiver
    }
}

/// An item read from the status port.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    /// A status.
    Status(Status),
    /// The guest sent more bytes than allowed. This is the last item.
    TooMuch,
}

/// Passes each status to `take` until `take` returns false or the limit is reached. Invalid lines count against the
/// limit.
fn hear(from: impl Read, limit: u64, mut take: impl FnMut(Heard) -> bool) {
    // One byte more than allowed: a guest that sends exactly the limit has not sent too much.
    let mut from = BufReader::new(from.take(limit.saturating_add(1)));
    let mut is_wanted = true;
    // A read error is handled like the end of the pipe.
    let _ = each_line(&mut from, |line| {
        is_wanted = Status::from_line(line).is_none_or(|status| take(Heard::Status(status)));
        is_wanted
    });
    if is_wanted && from.get_ref().limit() == 0 {
        take(Heard::TooMuch);
    }
}

/// Passes each line to `take` until `take` returns false. A line of `LINE_MAX` bytes or more is skipped, not buffered.
fn each_line(mut from: impl BufRead, mut take: impl FnMut(&str) -> bool) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = (&mut from).take(LINE_MAX as u64).read_until(b'\n', &mut line)?;
        if length == 0 {
            return Ok(());
        }
        if length == LINE_MAX && !line.ends_with(b"\n") {
            from.skip_until(b'\n')?;
        } else if !take(&String::from_utf8_lossy(&line)) {
            return Ok(());
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only if QEMU has exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn last_line(path: &Path) -> String {
    let text = tail(path, LOG_TAIL).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it said nothing");
    tool::printable(line, 300)
}

/// Returns the last bytes of a file, at most `bytes`.
fn tail(path: &Path, bytes: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let start = file.metadata()?.len().saturating_sub(bytes);
    file.seek(SeekFrom::Start(start))?;
    let mut end = Vec::new();
    file.take(bytes).read_to_end(&mut end)?;
    Ok(end)
}

fn memory_available_mib() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib >> 10)
}

fn space_free_mib(path: &Path) -> Option<u64> {
    let statvfs = rustix::fs::statvfs(path).ok()?;
    Some(statvfs.f_bavail.saturating_mul(statvfs.f_frsize) >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vm(dir: &Path, memory_bytes: u64) -> Vm {
        Vm {
            kernel: "vmlinuz".into(),
            initrd: "image".into(),
            memory_bytes,
            cpus: 2,
            disks: Vec::new(),
            accel: Accel::Tcg,
            dir: dir.to_owned(),
            sandbox: true,
            status_max: STATUS_MAX,
            terminal: None,
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_dropped_and_the_next_is_read() {
        let long = "x".repeat(3 * LINE_MAX);
        let fits = "y".repeat(LINE_MAX - 1);
        let text = format!("one\n{long}\n{fits}\ntwo\nlast");
        let mut lines = Vec::new();
        each_line(text.as_bytes(), |line| {
            lines.push(line.trim_end().to_owned());
            true
        })
        .unwrap();
        assert_eq!(lines, ["one", fits.as_str(), "two", "last"]);
        let mut lines = 0;
        each_line(text.as_bytes(), |_| {
            lines += 1;
            false
        })
        .unwrap();
        assert_eq!(lines, 1);
        // Without an end, and with any bytes.
        each_line([0xff_u8, b'\n', 0].repeat(LINE_MAX).as_slice(), |line| line.len() <= 4).unwrap();
    }

    #[test]
    fn a_guest_sends_no_more_status_than_it_may() {
        let hear_all = |text: &str, limit: u64| {
            let mut heard = Vec::new();
            hear(text.as_bytes(), limit, |one| {
                heard.push(one);
                true
            });
            heard
        };
        let line = Status::Sampled.to_line();
        let (text, length) = (line.repeat(3), 3 * line.len() as u64);
        let whole = hear_all(&text, length);
        assert_eq!(whole, [const { Heard::Status(Status::Sampled) }; 3]);
        // The line that goes beyond is cut, or is the last.
        assert_eq!(
            hear_all(&text, length - 3),
            [Heard::Status(Status::Sampled), Heard::Status(Status::Sampled), Heard::TooMuch]
        );
        // Lines that are no status count as well.
        assert_eq!(hear_all(&"x\n".repeat(100), 150), [Heard::TooMuch]);
        // An endless stream ends, and after an end that was wished for nothing follows.
        let mut count = 0;
        hear(io::repeat(b'\n'), 1 << 20, |one| {
            count += 1;
            one == Heard::TooMuch
        });
        assert_eq!(count, 1);
        hear(text.as_bytes(), 1, |one| one != Heard::Status(Status::Sampled));
    }

    #[test]
    fn of_what_qemu_printed_the_end_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("qemu.log");
        std::fs::write(&path, format!("{}\nlast\n", "x".repeat(1 << 20))).unwrap();
        assert_eq!((last_line(&path).as_str(), tail(&path, LOG_TAIL).unwrap().len()), ("last", 64 << 10));
    }

    #[test]
    fn qemu_is_held_to_what_it_needs() {
        let arguments = |sandbox: bool| {
            let command = Vm { sandbox, ..vm("/run".as_ref(), 1 << 30) }.command();
            command.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        let asked = "-sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";
        assert!(arguments(true).contains(asked) && !arguments(false).contains("-sandbox"));
    }

    #[test]
    fn a_guest_that_floods_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let vm = vm(dir.path(), 1 << 30);
        assert!(vm.flooded().is_none());
        let file = File::create(vm.console()).unwrap();
        file.set_len(CONSOLE_MAX).unwrap();
        assert!(vm.flooded().is_none());
        file.set_len(CONSOLE_MAX + 1).unwrap();
        assert!(matches!(vm.flooded(), Some(Ended::Flooded { what: "its console", .. })));
        file.set_len(0).unwrap();
        File::create(vm.log()).unwrap().set_len(LOG_MAX + 1).unwrap();
        assert!(matches!(vm.flooded(), Some(Ended::Flooded { what: "messages of QEMU", .. })));
    }

    #[test]
    fn a_guest_larger_than_the_host_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let error = vm(dir.path(), 1 << 50).check().unwrap_err().to_string();
        assert!(error.starts_with("the guest needs 1073742080 MiB of memory; this host has "), "{error}");
    }
}
