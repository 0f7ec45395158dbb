// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps of a task: what a program does to files, memory and cgroups, one verb each. A task runs its
//! steps in order on one thread, keeps its files open between them, and remembers where it was in each.
//!
//! Paths may hold `{i}` (number of the cgroup's copy), `{j}` (number of the task's copy within its cgroup),
//! `{n}` (number of the file or mount, where a step has several) and `{d}` (`n ÷ files_per_dir`); all from 0.
//! A step that names no end (`total`, `count`, `for`) goes on until the workload's `duration` is over.

mod transfer;

pub use transfer::{CreateFiles, MmapStore, Order, Read, SyncCall, SyncEvery, Write};

use super::machine::{Cgroup, is_default};
use super::quantity::{ByteSize, Time};
use super::service::{RedisSet, Sql, Syslog};
use super::sysctl::Sysctls;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thing a task does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Writes blocks to a file, creating it where it is missing.
    Write(Write),
    /// Reads blocks of one or more files.
    Read(Read),
    /// Stores into a shared mapping of one or more files.
    MmapStore(MmapStore),
    /// fsync of an open or existing file or directory.
    Fsync(OnFile),
    /// fdatasync of an open or existing file.
    Fdatasync(OnFile),
    /// msync(MS_SYNC) of the task's mapping of a file.
    Msync(OnFile),
    /// syncfs of the filesystem that holds a path.
    Syncfs(OnPath),
    /// sync.
    Sync,
    /// Creates files: creat, write, fsync where asked, close.
    CreateFiles(CreateFiles),
    /// Unlinks files.
    Unlink(Files),
    /// Renames a file over another.
    Rename(Rename),
    /// Sets the length of a file.
    Truncate(Truncate),
    /// fallocate: gives a file its blocks before it is written, and the length.
    Fallocate(Fallocate),
    /// sync_file_range(SYNC_FILE_RANGE_WRITE) of a whole file: starts writing what is dirty, waits for nothing and makes
    /// nothing durable.
    SyncFileRange(OnFile),
    /// Creates a directory and its parents.
    Mkdir(OnPath),
    /// Removes an empty directory.
    Rmdir(OnPath),
    /// Closes a file that the task has open, its mapping included.
    Close(OnFile),
    /// Mounts filesystems of the machine that are not mounted at start.
    Mount(Mounting),
    /// Unmounts filesystems.
    Umount(Mounting),
    /// Burns CPU time.
    Burn(Lasting),
    /// Sleeps.
    Sleep(Lasting),
    /// Sleeps until a time, counted from the start of the task's steps. A task that is late goes on at once.
    SleepUntil(Until),
    /// Sets how much anonymous memory the task holds, touching what is new and freeing what is too much.
    Anon(Anon),
    /// Drops clean caches of the machine (`drop_caches` 3).
    DropCaches,
    /// Waits until every copy of another task has ended.
    WaitFor(WaitFor),
    /// Waits until every task copy that has a barrier of this name has come to it.
    Barrier(Barrier),
    /// Does steps again and again.
    Repeat(Repeat),
    /// Does several programs at once, each on its own thread, and waits for all.
    Parallel(Parallel),
    /// Creates a cgroup of the machine again after it was removed.
    CreateCgroup(OnCgroup),
    /// Removes a cgroup that has no tasks left.
    RemoveCgroup(OnCgroup),
    /// Moves the task to another cgroup.
    MoveTo(OnCgroup),
    /// Changes limits of a cgroup.
    SetLimits(SetLimits),
    /// Changes settings of the machine.
    SetSysctl(Sysctls),
    /// Sends messages to a syslog socket, as programs do that log to journald.
    Syslog(Syslog),
    /// Sets keys of a Redis and waits for each answer.
    RedisSet(RedisSet),
    /// Sends a statement to a MariaDB and waits for each answer.
    Sql(Sql),
    /// Puts a remark into the recording.
    Note(Note),
    /// Ends the task.
    Exit,
}

impl Step {
    /// All verbs.
    pub const VERBS: [&'static str; 38] = [
        "write",
        "read",
        "mmap_store",
        "fsync",
        "fdatasync",
        "msync",
        "syncfs",
        "sync",
        "create_files",
        "unlink",
        "rename",
        "truncate",
        "fallocate",
        "sync_file_range",
        "mkdir",
        "rmdir",
        "close",
        "mount",
        "umount",
        "burn",
        "sleep",
        "sleep_until",
        "anon",
        "drop_caches",
        "wait_for",
        "barrier",
        "repeat",
        "parallel",
        "create_cgroup",
        "remove_cgroup",
        "move_to",
        "set_limits",
        "set_sysctl",
        "syslog",
        "redis_set",
        "sql",
        "note",
        "exit",
    ];

    /// The verb, as the file has it.
    pub fn verb(&self) -> &'static str {
        match self {
            Step::Write(_) => "write",
            Step::Read(_) => "read",
            Step::MmapStore(_) => "mmap_store",
            Step::Fsync(_) => "fsync",
            Step::Fdatasync(_) => "fdatasync",
            Step::Msync(_) => "msync",
            Step::Syncfs(_) => "syncfs",
            Step::Sync => "sync",
            Step::CreateFiles(_) => "create_files",
            Step::Unlink(_) => "unlink",
            Step::Rename(_) => "rename",
            Step::Truncate(_) => "truncate",
            Step::Fallocate(_) => "fallocate",
            Step::SyncFileRange(_) => "sync_file_range",
            Step::Mkdir(_) => "mkdir",
            Step::Rmdir(_) => "rmdir",
            Step::Close(_) => "close",
            Step::Mount(_) => "mount",
            Step::Umount(_) => "umount",
            Step::Burn(_) => "burn",
            Step::Sleep(_) => "sleep",
            Step::SleepUntil(_) => "sleep_until",
            Step::Anon(_) => "anon",
            Step::DropCaches => "drop_caches",
            Step::WaitFor(_) => "wait_for",
            Step::Barrier(_) => "barrier",
            Step::Repeat(_) => "repeat",
            Step::Parallel(_) => "parallel",
            Step::CreateCgroup(_) => "create_cgroup",
            Step::RemoveCgroup(_) => "remove_cgroup",
            Step::MoveTo(_) => "move_to",
            Step::SetLimits(_) => "set_limits",
            Step::SetSysctl(_) => "set_sysctl",
            Step::Syslog(_) => "syslog",
            Step::RedisSet(_) => "redis_set",
            Step::Sql(_) => "sql",
            Step::Note(_) => "note",
            Step::Exit => "exit",
        }
    }

    /// The step as an operation of its own; `None` where the program makes other operations of it.
    pub(super) fn single(&self) -> Option<Single<'_>> {
        Some(match self {
            Step::Syncfs(on) => Single::Syncfs(on),
            Step::Sync => Single::Sync,
            Step::Rename(rename) => Single::Rename(rename),
            Step::Mkdir(on) => Single::Mkdir(on),
            Step::Rmdir(on) => Single::Rmdir(on),
            Step::Burn(burn) => Single::Burn(burn),
            Step::Anon(anon) => Single::Anon(anon),
            Step::DropCaches => Single::DropCaches,
            Step::WaitFor(wait) => Single::WaitFor(wait),
            Step::Barrier(barrier) => Single::Barrier(barrier),
            Step::CreateCgroup(on) => Single::CreateCgroup(on),
            Step::RemoveCgroup(on) => Single::RemoveCgroup(on),
            Step::MoveTo(on) => Single::MoveTo(on),
            Step::SetLimits(set) => Single::SetLimits(set),
            Step::SetSysctl(settings) => Single::SetSysctl(settings),
            Step::Note(note) => Single::Note(note),
            Step::Write(_)
            | Step::Read(_)
            | Step::MmapStore(_)
            | Step::Fsync(_)
            | Step::Fdatasync(_)
            | Step::Msync(_)
            | Step::CreateFiles(_)
            | Step::Unlink(_)
            | Step::Truncate(_)
            | Step::Fallocate(_)
            | Step::SyncFileRange(_)
            | Step::Close(_)
            | Step::Mount(_)
            | Step::Umount(_)
            | Step::Sleep(_)
            | Step::SleepUntil(_)
            | Step::Repeat(_)
            | Step::Parallel(_)
            | Step::Syslog(_)
            | Step::RedisSet(_)
            | Step::Sql(_)
            | Step::Exit => return None,
        })
    }

    /// Hands every text of the step that names something to a function, steps within it included.
    pub(super) fn each_text(&mut self, f: &mut dyn FnMut(Role, &mut String)) {
        match self {
            Step::Write(step) => f(Role::Path, &mut step.file),
            Step::Read(step) => f(Role::Path, &mut step.file),
            Step::MmapStore(step) => f(Role::Path, &mut step.file),
            Step::Fsync(step) | Step::Fdatasync(step) | Step::Msync(step) | Step::Close(step) => {
                f(Role::Path, &mut step.file);
            }
            Step::Syncfs(step) | Step::Mkdir(step) | Step::Rmdir(step) => f(Role::Path, &mut step.path),
            Step::CreateFiles(step) => f(Role::Path, &mut step.file),
            Step::Unlink(step) => f(Role::Path, &mut step.file),
            Step::Rename(step) => {
                f(Role::Path, &mut step.from);
                f(Role::Path, &mut step.to);
            }
            Step::Truncate(step) => f(Role::Path, &mut step.file),
            Step::Fallocate(step) => f(Role::Path, &mut step.file),
            Step::SyncFileRange(step) => f(Role::Path, &mut step.file),
            Step::Syslog(step) => f(Role::Path, &mut step.socket),
            Step::RedisSet(step) => f(Role::Path, &mut step.socket),
            Step::Sql(step) => f(Role::Path, &mut step.socket),
            Step::Mount(step) | Step::Umount(step) => f(Role::Point, &mut step.point),
            Step::WaitFor(step) => f(Role::Task, &mut step.task),
            Step::Repeat(step) => step.steps.iter_mut().for_each(|step| step.each_text(f)),
            Step::Parallel(step) => step.branches.iter_mut().flatten().for_each(|step| step.each_text(f)),
            Step::CreateCgroup(step) | Step::RemoveCgroup(step) | Step::MoveTo(step) => {
                f(Role::Cgroup, &mut step.cgroup);
            }
            Step::SetLimits(step) => f(Role::Cgroup, &mut step.cgroup),
            Step::Sync
            | Step::Burn(_)
            | Step::Sleep(_)
            | Step::SleepUntil(_)
            | Step::Anon(_)
            | Step::DropCaches
            | Step::Barrier(_)
            | Step::SetSysctl(_)
            | Step::Note(_)
            | Step::Exit => {}
        }
    }
}

/// A step that is one operation: an executor performs it as a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Single<'s> {
    Syncfs(&'s OnPath),
    Sync,
    Rename(&'s Rename),
    Mkdir(&'s OnPath),
    Rmdir(&'s OnPath),
    Burn(&'s Lasting),
    Anon(&'s Anon),
    DropCaches,
    WaitFor(&'s WaitFor),
    Barrier(&'s Barrier),
    CreateCgroup(&'s OnCgroup),
    RemoveCgroup(&'s OnCgroup),
    MoveTo(&'s OnCgroup),
    SetLimits(&'s SetLimits),
    SetSysctl(&'s Sysctls),
    Note(&'s Note),
}

/// What a text within a step names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A file or directory.
    Path,
    /// A mount point.
    Point,
    /// A cgroup.
    Cgroup,
    /// A task.
    Task,
}

/// A step on one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnFile {
    /// The file.
    pub file: String,
}

/// A step on one path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnPath {
    /// The path.
    pub path: String,
}

/// A set of files by pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// The file; `{n}` is its number. Files that the task created are removed oldest first, each once; those of other tasks
    /// from number 0.
    pub file: String,
    /// How many.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub files: u64,
    /// Files per directory, for `{d}` in the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_per_dir: Option<u64>,
}

/// Renames a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rename {
    /// The file.
    pub from: String,
    /// Its new name.
    pub to: String,
}

/// Sets the length of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Truncate {
    /// The file.
    pub file: String,
    /// Its new length; 0 where missing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub size: ByteSize,
}

/// Gives a file its blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fallocate {
    /// The file.
    pub file: String,
    /// From its start to here.
    pub size: ByteSize,
}

/// Mounts or unmounts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mounting {
    /// The mount point as the machine has it; `{n}` is its number.
    pub point: String,
    /// How many.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u64,
    /// All at the same moment, each on its own thread, instead of one after the other.
    #[serde(default, skip_serializing_if = "is_default")]
    pub at_once: bool,
    /// Unmounts a filesystem with open files, too (MNT_DETACH, `umount -l`): no path leads to it any more, and the last close
    /// of its files writes it. For `umount`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lazy: bool,
}

/// A step that takes time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lasting {
    /// How long.
    #[serde(rename = "for")]
    pub lasting: Time,
}

/// Time of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// Time since the steps of the task began; in a branch of `parallel`, since the branch began.
    pub at: Time,
}

/// Anonymous memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Anon {
    /// How much the task holds from now on.
    pub size: ByteSize,
}

/// Waits for a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitFor {
    /// Name of the task.
    pub task: String,
}

/// A meeting point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Barrier {
    /// Its name.
    pub name: String,
}

/// Does steps again and again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// How many times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// How long; a round that has begun is finished.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasting: Option<Time>,
    /// Time from the start of one round to the start of the next; a late round does not delay the schedule.
    /// This is how bursts are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Time>,
    /// The steps.
    pub steps: Vec<Step>,
}

/// Several programs at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parallel {
    /// The programs.
    pub branches: Vec<Vec<Step>>,
}

/// A step on a cgroup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnCgroup {
    /// Path of the cgroup as the machine has it.
    pub cgroup: String,
}

/// Changes limits of a cgroup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetLimits {
    /// Path of the cgroup as the machine has it.
    pub cgroup: String,
    /// The new limits; what is not named stays.
    pub limits: Cgroup,
}

/// A remark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// The remark.
    pub text: String,
}

fn one() -> u64 {
    1
}

// serde hands over references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_one(value: &u64) -> bool {
    *value == 1
}
