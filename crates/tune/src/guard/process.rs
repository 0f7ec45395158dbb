// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guard process. Between a decision and the last value put back it allocates no memory, looks up no path and
//! writes no log: attributes are open, values are bytes, memory is locked. Only after that it writes the journal,
//! which a disk may delay. It prints nothing.

use super::harm::{self, Harm};
use super::keeper::{self, Keeper, Side};
use super::watch;
use super::wire::{self, WORD_MAX};
use crate::host::{Host, boottime};
use crate::journal::{Entry, Journal, Phase as Recorded, Store, Why};
use crate::slot::{Live, Outcome, Slot};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, OFlags, fcntl_getfl, fcntl_setfl, flock};
use rustix::mm::{MlockAllFlags, mlockall};
use std::array;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// First argument of the program when it is a guard: state folder, number of the change and root follow.
pub(super) const ARGUMENT: &str = "--guard-of-a-change";

const SECOND: u64 = 1_000_000_000;
/// Time for the applier to connect.
const APPLIER_MAX: u64 = 15 * SECOND;
/// Time for a confirmation to reach the disk, which a storm may delay.
const HELD_MAX: u64 = 60 * SECOND;
/// A probe that does not answer for this long has failed.
const PROBE_MAX: u64 = 60 * SECOND;
/// Connections at a time.
const CLIENTS: usize = 6;
/// Further descriptors: the listener, the keeper, the probe, the watch.
const OTHERS: usize = 4;
/// Attempts to write an attribute.
const TRIES: usize = 3;

/// State of the change, as the guard sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No applier has connected yet.
    Idle { until: u64 },
    /// The applier writes.
    Writing { applier: usize },
    /// Waiting for a confirmation.
    Waiting,
    /// The clock stands still while a confirmation is written.
    Held { by: usize, until: u64 },
}

/// The reason why the guard ends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    /// The change stays.
    Released,
    /// Everything is put back.
    PutBack(Why),
}

struct Guard {
    journal: Journal,
    lock_path: PathBuf,
    slots: Vec<Live>,
    outcomes: Vec<Outcome>,
    listener: UnixListener,
    clients: [Option<UnixStream>; CLIENTS],
    phase: Phase,
    deadline: u64,
    pressure: Option<File>,
    harm: Harm,
    next_sample: u64,
    probe: Option<OwnedFd>,
    probed_at: u64,
    /// Pipe from the process that detects writers that wait too long.
    watch: Option<OwnedFd>,
    keeper: Option<Keeper>,
}

/// Runs the guard of a change to its end. Arguments are those after [`ARGUMENT`]. Returns the exit code: 0 if the work
/// is done.
pub(super) fn main(arguments: &[OsString]) -> u8 {
    let [state, id, root] = arguments else { return 2 };
    let (Some(id), state, root) = (id.to_str().and_then(|id| id.parse().ok()), Path::new(state), Path::new(root))
    else {
        return 2;
    };
    let _ = rustix::process::setsid();
    match arm(state, id, &Host::below(root)) {
        Ok(Some(guard)) => {
            // What only `arm` needs is not in memory in the copy.
            keeper::detach();
            guard.rehearse();
            // The applier reads until this end closes. After that, no process reads it.
            let _ = silence();
            guard.guard()
        }
        // systemd restarts a guard that was killed after its last entry. Exit code 0 stops the restarts.
        Ok(None) => 0,
        Err(why) => {
            let _ = std::io::stderr().write_all(why.as_bytes());
            1
        }
    }
}

/// Closes the standard error that the applier reads.
fn silence() -> std::io::Result<()> {
    let null = OpenOptions::new().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stderr(&null)?)
}

/// Prepares everything that a decision needs; `None` if the change has ended. The error is a message for the user.
fn arm(state: &Path, id: u32, host: &Host) -> Result<Option<Guard>, String> {
    let store = Store::open(state).map_err(|error| error.to_string())?;
    let journal = store.read(id).map_err(|error| error.to_string())?;
    let journal = journal.ok_or_else(|| format!("change {id} has no plan in its journal"))?;
    if journal.planned.boot_id != host.fingerprint().boot_id {
        return Err("the host was started again".to_owned());
    }
    if !journal.phase().is_pending() {
        return Ok(None);
    }
    let open = |slot: &Slot| {
        Live::open(host, slot).map_err(|error| format!("cannot open what {} sets: {error}", slot.new_shown()))
    };
    let slots: Vec<Live> = journal.planned.slots.iter().map(open).collect::<Result<_, _>>()?;
    let phase = match journal.phase() {
        // A value of the change that is in force was written under a guard that died: its applier stops.
        Recorded::Writing if !slots.iter().all(Live::is_old) => Phase::Idle { until: 0 },
        Recorded::Writing => Phase::Idle { until: boottime() + APPLIER_MAX },
        _ => Phase::Waiting,
    };
    let pressure = File::open(host.path("proc/pressure/io")).ok();
    let mut text = [0; 512];
    let baseline = pressure
        .as_ref()
        .and_then(|file| Some(file.read_at(&mut text, 0).ok()?.min(text.len())))
        .and_then(|count| harm::baseline_ppm(text.get(..count)?));
    let listener = wire::listen(state, id).map_err(|error| format!("cannot take the guard's address: {error}"))?;
    let probe = match &journal.planned.probe {
        Some(command) => Some(start_probe(command).map_err(|error| format!("cannot start the probe: {error}"))?),
        None => None,
    };
    let bound_us = (journal.planned.plan.longest_pause_s * 1e6) as u64;
    let deadline = journal.planned.deadline_ns;
    // There is no watch if the host cannot start another process, or if the guard decides at once.
    let decides = if phase == (Phase::Idle { until: 0 }) { 0 } else { deadline };
    let patience = Duration::from_nanos(decides.saturating_sub(boottime()));
    let watch = watch::start(host, bound_us, patience).and_then(answers).ok();
    let outcomes = vec![Outcome::Unchanged; slots.len()];
    Ok(Some(Guard {
        journal,
        lock_path: store.lock_path(),
        slots,
        outcomes,
        listener,
        clients: array::from_fn(|_| None),
        phase,
        deadline,
        pressure,
        harm: Harm::new(baseline.unwrap_or(0)),
        next_sample: boottime() + SECOND,
        probe,
        probed_at: boottime(),
        watch,
        keeper: None,
    }))
}

/// Protects the process from the OOM killer and from page faults. Steps that lack the privilege are skipped.
fn stay_in_memory() {
    if let Ok(mut file) = OpenOptions::new().write(true).open("/proc/self/oom_score_adj") {
        let _ = file.write_all(b"-1000");
    }
    let _ = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT);
}

/// Starts a shell that runs the probe repeatedly and writes 1 or 0 for each run. The guard itself runs no program.
fn start_probe(command: &str) -> std::io::Result<OwnedFd> {
    let script = "while sleep 5; do if sh -c \"$0\" >/dev/null 2>&1; then echo 1; else echo 0; fi; done";
    let child = Command::new("sh")
        .args(["-c", script, command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    answers(OwnedFd::from(child?.stdout.ok_or(std::io::ErrorKind::BrokenPipe)?))
}

/// Makes reads from a pipe non-blocking.
fn answers(pipe: OwnedFd) -> std::io::Result<OwnedFd> {
    fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
    Ok(pipe)
}

impl Guard {
    /// Runs the code of a decision, so that its pages are in memory. Skipped on a host that forbids files in memory.
    fn rehearse(&self) {
        let _ = Live::rehearse();
        for slot in &self.slots {
            let _ = slot.values();
        }
    }

    /// Guards until the change is confirmed or put back, beside a keeper that takes over if this process dies.
    fn guard(mut self) -> u8 {
        self.renew_keeper();
        stay_in_memory();
        if let End::PutBack(why) = self.wait() {
            self.put_back(why);
        }
        if let Some(keeper) = self.keeper.take() {
            keeper.dismiss();
        }
        0
    }

    /// Forks a keeper. In the keeper, this returns after the guard has died, and the keeper is the guard.
    fn renew_keeper(&mut self) {
        self.keeper = None;
        loop {
            match keeper::fork() {
                Ok(Side::Guard(keeper)) => {
                    self.keeper = Some(keeper);
                    return;
                }
                Ok(Side::Keeper(watch)) => {
                    self.clients = array::from_fn(|_| None);
                    stay_in_memory();
                    if watch.ends_with_dismissal() || !self.take_over() {
                        std::process::exit(0);
                    }
                }
                // fork failed: the guard continues without a keeper.
                Err(_) => return,
            }
        }
    }

    /// Continues after a guard died. Returns false if there is nothing left to do.
    fn take_over(&mut self) -> bool {
        let _ = self.journal.refresh();
        self.next_sample = boottime() + SECOND;
        self.probed_at = boottime();
        match self.journal.phase() {
            // The applier has lost its guard and stops. It has received no confirmation.
            Recorded::Writing => self.phase = Phase::Idle { until: 0 },
            Recorded::Waiting => self.phase = Phase::Waiting,
            _ => return false,
        }
        true
    }

    /// Waits until there is a reason to end the guard.
    fn wait(&mut self) -> End {
        loop {
            let now = boottime();
            if let Some(end) = self.judge(now) {
                return end;
            }
            let until = self.until().max(now) - now;
            let timeout = Timespec {
                tv_sec: i64::try_from(until / SECOND).unwrap_or(1),
                tv_nsec: i64::try_from(until % SECOND).unwrap_or(0),
            };
            let (mut has_caller, mut has_died, mut has_probed, mut has_seen) = (false, false, false, false);
            let mut spoke = [false; CLIENTS];
            {
                let nothing = PollFlags::empty();
                let mut fds: [PollFd<'_>; CLIENTS + OTHERS] = array::from_fn(|at| match at {
                    0 => PollFd::new(&self.listener, PollFlags::IN),
                    1 => match &self.keeper {
                        Some(keeper) => PollFd::new(&keeper.life, PollFlags::IN),
                        None => PollFd::new(&self.listener, nothing),
                    },
                    2 | 3 => match if at == 2 { &self.probe } else { &self.watch } {
                        Some(pipe) => PollFd::new(pipe, PollFlags::IN),
                        None => PollFd::new(&self.listener, nothing),
                    },
                    _ => match self.clients.get(at - OTHERS).and_then(Option::as_ref) {
                        Some(client) => PollFd::from_borrowed_fd(client.as_fd(), PollFlags::IN),
                        None => PollFd::new(&self.listener, nothing),
                    },
                });
                if poll(&mut fds, Some(&timeout)).is_ok() {
                    let is_up = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
                    (has_caller, has_died, has_probed, has_seen) = (is_up(0), is_up(1), is_up(2), is_up(3));
                    spoke = array::from_fn(|at| is_up(at + OTHERS));
                }
            }
            if has_died && self.keeper.is_some() {
                // Reaps the keeper and forks another.
                while rustix::process::wait(rustix::process::WaitOptions::NOHANG).ok().flatten().is_some() {}
                self.renew_keeper();
            }
            if has_probed && self.probe_failed() {
                return End::PutBack(Why::Probe);
            }
            if has_seen && self.has_waited() && !matches!(self.phase, Phase::Held { .. }) && self.is_in_force() {
                return End::PutBack(Why::LongPause);
            }
            for (at, spoke) in spoke.into_iter().enumerate() {
                if spoke && let Some(end) = self.hear(at) {
                    return end;
                }
            }
            if has_caller {
                self.accept();
            }
        }
    }

    /// Time of the next decision.
    fn until(&self) -> u64 {
        let mut until = self.next_sample;
        match self.phase {
            Phase::Idle { until: end } => until = until.min(end),
            Phase::Writing { .. } => {}
            Phase::Waiting => until = until.min(self.deadline),
            Phase::Held { until: end, .. } => until = until.min(end),
        }
        until
    }

    /// Decides by the time and by the state of the host.
    fn judge(&mut self, now: u64) -> Option<End> {
        match self.phase {
            Phase::Idle { until } if now >= until => return Some(End::PutBack(Why::ApplierGone)),
            Phase::Waiting if now >= self.deadline => return Some(End::PutBack(Why::Deadline)),
            Phase::Held { until, .. } if now >= until => return Some(self.cut()),
            Phase::Writing { .. } if now >= self.deadline => return Some(End::PutBack(Why::Deadline)),
            _ => {}
        }
        if now >= self.next_sample {
            self.next_sample = now + SECOND;
            let mut text = [0; 512];
            let total = self.pressure.as_ref().and_then(|file| {
                let count = file.read_at(&mut text, 0).ok()?;
                harm::full_total(text.get(..count)?)
            });
            let suffers = total.is_some_and(|total| self.harm.sample(now / 1000, total));
            let is_held = matches!(self.phase, Phase::Held { .. });
            if suffers && !is_held && self.is_in_force() {
                return Some(End::PutBack(Why::Pressure));
            }
            if self.probe.is_some() && now > self.probed_at + PROBE_MAX && !is_held {
                return Some(End::PutBack(Why::Probe));
            }
        }
        None
    }

    /// Returns true if any value differs from its old one. If none does, the change cannot be the cause of harm.
    fn is_in_force(&self) -> bool {
        !self.slots.iter().all(Live::is_old)
    }

    /// Handles a confirmation that did not complete: the journal decides.
    fn cut(&mut self) -> End {
        let _ = self.journal.refresh();
        if self.journal.phase().is_confirmed() { End::Released } else { End::PutBack(Why::ConfirmationCut) }
    }

    fn probe_failed(&mut self) -> bool {
        let mut answers = [0; 16];
        let read = self.probe.as_ref().and_then(|probe| rustix::io::read(probe, &mut answers).ok());
        self.probed_at = boottime();
        match read {
            // The shell that runs the probe died.
            Some(0) => true,
            Some(count) => answers.get(..count).unwrap_or_default().contains(&b'0'),
            None => false,
        }
    }

    /// Returns true if the watch has reported a writer that waits too long.
    fn has_waited(&mut self) -> bool {
        let mut answers = [0; 16];
        match self.watch.as_ref().map(|watch| rustix::io::read(watch, &mut answers)) {
            // The watch died. Pressure and probe remain.
            Some(Ok(0)) => {
                self.watch = None;
                false
            }
            Some(Ok(count)) => answers.get(..count).unwrap_or_default().contains(&watch::TOO_LONG),
            _ => false,
        }
    }

    fn accept(&mut self) {
        let Ok((client, _)) = self.listener.accept() else { return };
        let Some(free) = self.clients.iter_mut().find(|client| client.is_none()) else { return };
        if wire::is_ours(&client) && client.set_nonblocking(true).is_ok() {
            *free = Some(client);
        }
    }

    /// Reads a client's message or the end of its connection.
    fn hear(&mut self, at: usize) -> Option<End> {
        let mut word = [0; WORD_MAX];
        let client = self.clients.get(at)?.as_ref()?;
        let count = match (&*client).read(&mut word) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return None,
            Ok(count) => count,
            Err(_) => 0,
        };
        if count == 0 {
            if let Some(client) = self.clients.get_mut(at) {
                *client = None;
            }
            return match self.phase {
                Phase::Writing { applier } if applier == at => Some(End::PutBack(Why::ApplierGone)),
                Phase::Held { by, .. } if by == at => {
                    let end = self.cut();
                    // The clock runs again, and there is time left for another confirmation.
                    if end != End::Released && boottime() < self.deadline {
                        self.phase = Phase::Waiting;
                        return None;
                    }
                    Some(end)
                }
                _ => None,
            };
        }
        let word = word.get(..count).unwrap_or_default();
        match (self.phase, word) {
            (Phase::Idle { .. }, wire::APPLIER) => {
                self.phase = Phase::Writing { applier: at };
                self.answer(at, wire::READY);
            }
            (Phase::Writing { applier }, wire::APPLIED) if applier == at => {
                self.phase = Phase::Waiting;
                self.answer(at, wire::WAITING);
            }
            (Phase::Writing { applier }, wire::ENDED) if applier == at => return Some(End::PutBack(Why::TrialEnded)),
            (Phase::Writing { applier }, wire::BROKEN) if applier == at => return Some(End::PutBack(Why::BoundBroken)),
            (Phase::Writing { applier }, wire::CHANGED) if applier == at => {
                return Some(End::PutBack(Why::ValueChanged));
            }
            (Phase::Waiting, wire::CONFIRM) => {
                self.phase = Phase::Held { by: at, until: boottime() + HELD_MAX };
                self.answer(at, wire::HELD);
            }
            (Phase::Held { by, .. }, wire::RECORDED) if by == at => {
                self.answer(at, wire::RELEASED);
                return Some(End::Released);
            }
            (Phase::Held { .. }, wire::RESTORE) => self.answer(at, wire::REFUSED),
            (Phase::Writing { applier }, wire::RESTORE) => {
                return Some(End::PutBack(if applier == at { Why::WriteFailed } else { Why::Asked }));
            }
            (_, wire::RESTORE) => return Some(End::PutBack(Why::Asked)),
            _ => self.answer(at, wire::REFUSED),
        }
        None
    }

    fn answer(&self, at: usize, word: &[u8]) {
        if let Some(mut client) = self.clients.get(at).and_then(Option::as_ref) {
            // A client that does not read loses its answer.
            let _ = client.write_all(word);
        }
    }

    /// Restores all values, then answers the clients, then writes the journal.
    fn put_back(&mut self, why: Why) {
        let decided = boottime();
        self.restore();
        let took_ns = boottime() - decided;
        for at in 0..CLIENTS {
            self.answer(at, wire::RESTORED);
        }
        // These four come from the applier, which writes no more.
        if !matches!(why, Why::WriteFailed | Why::BoundBroken | Why::ValueChanged | Why::TrialEnded)
            && !matches!(self.phase, Phase::Waiting | Phase::Held { .. })
        {
            // The applier may be in the middle of a write. Its last write is put back after it has exited.
            self.outlive_the_applier();
        }
        let _ = self.journal.append(Entry::PutBack { why, outcomes: self.outcomes.clone(), took_ns: Some(took_ns) });
    }

    /// The decision ends here. Values go back in the opposite order of the writes.
    fn restore(&mut self) {
        for _ in 0..TRIES {
            for (slot, outcome) in self.slots.iter().zip(self.outcomes.iter_mut()).rev() {
                let now = slot.put_back();
                // A second pass over a slot that was put back finds it unchanged.
                if !matches!((now, *outcome), (Outcome::Unchanged, Outcome::PutBack)) {
                    *outcome = now;
                }
            }
            if self.outcomes.iter().all(|outcome| outcome.is_undone()) {
                return;
            }
        }
    }

    /// Waits until no process holds the appliers' lock, and restores again.
    fn outlive_the_applier(&mut self) {
        let Ok(lock) = OpenOptions::new().read(true).write(true).open(&self.lock_path) else { return };
        let until = boottime() + 60 * SECOND;
        while flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() && boottime() < until {
            self.restore();
            std::thread::sleep(Duration::from_millis(5));
        }
        self.restore();
    }
}
