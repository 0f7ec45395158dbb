// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps of a task: what a program does to files, memory and cgroups, one verb each. A task runs its
//! steps in order on one thread, keeps its files open between them, and remembers where it was in each.
//!
//! Paths may hold `{i}` (number of the cgroup's copy), `{j}` (number of the task's copy within its cgroup),
//! `{n}` (number of the file or mount, where a step has several) and `{d}` (`n ÷ files_per_dir`); all from 0.
//! A step that names no end (`total`, `count`, `for`) goes on until the workload's `duration` is over.

use super::machine::{Cgroup, is_default};
use super::quantity::{ByteSize, Frequency, Pace, Time};
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

/// In which order blocks or pages are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// From where the task was in the file, starting over at its `size`.
    #[default]
    Sequential,
    /// Anywhere within the file's `size`, by the seed.
    Random,
    /// At the end of the file (O_APPEND).
    Append,
}

/// A call that makes data durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum SyncCall {
    Fsync,
    Fdatasync,
    Msync,
    SyncFileRange,
}

/// When data is made durable within a step: after so many blocks, or so often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SyncEvery {
    /// The call.
    pub call: SyncCall,
    /// At most so often: with the first block after this much time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Time>,
    /// After this many blocks or bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

/// Writes blocks to a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// The file.
    pub file: String,
    /// Where the blocks go.
    #[serde(default, skip_serializing_if = "is_default")]
    pub order: Order,
    /// Bytes of one write call.
    #[serde(default = "page", skip_serializing_if = "is_page")]
    pub block: ByteSize,
    /// How fast; unlimited where missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Pace>,
    /// Ends after this many bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<ByteSize>,
    /// Ends after this many blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Ends after this long.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasting: Option<Time>,
    /// Size of the file: the range of random writes, and where sequential ones start over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<ByteSize>,
    /// Past the page cache (O_DIRECT).
    #[serde(default, skip_serializing_if = "is_default")]
    pub direct: bool,
    /// Each write returns when its data is durable (O_DSYNC).
    #[serde(default, skip_serializing_if = "is_default")]
    pub dsync: bool,
    /// Requests under way at once, each on a thread of its own; 1 where missing.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub depth: u64,
    /// Cuts the file to nothing first (O_TRUNC).
    #[serde(default, skip_serializing_if = "is_default")]
    pub truncate: bool,
    /// When it is made durable on the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncEvery>,
}

/// Reads blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// The file; with `files`, each of them whole, in order.
    pub file: String,
    /// How many files, `{n}` in the name being the number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Files per directory, for `{d}` in the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_per_dir: Option<u64>,
    /// Which blocks; `append` makes no sense here.
    #[serde(default, skip_serializing_if = "is_default")]
    pub order: Order,
    /// Bytes of one read call.
    #[serde(default = "page", skip_serializing_if = "is_page")]
    pub block: ByteSize,
    /// How fast; unlimited where missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Pace>,
    /// Ends after this many bytes; a sequential read without any end stops at the end of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<ByteSize>,
    /// Ends after this many blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Ends after this long.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasting: Option<Time>,
    /// Past the page cache (O_DIRECT).
    #[serde(default, skip_serializing_if = "is_default")]
    pub direct: bool,
    /// Requests under way at once, each on a thread of its own; 1 where missing.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub depth: u64,
    /// Keeps what was read in anonymous memory, until an `anon` step says otherwise.
    #[serde(default, skip_serializing_if = "is_default")]
    pub keep: bool,
}

/// Stores into a shared mapping, in bursts of distinct pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MmapStore {
    /// The file; with `files`, the bursts go to one after the other.
    pub file: String,
    /// How many files, `{n}` in the name being the number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Size of the mapping; the file is extended to it.
    pub size: ByteSize,
    /// Distinct pages touched in one burst.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub pages: u64,
    /// Bytes stored into each.
    #[serde(default = "byte", skip_serializing_if = "is_byte")]
    pub store: ByteSize,
    /// Which pages; `append` makes no sense here.
    #[serde(default = "random", skip_serializing_if = "is_random")]
    pub order: Order,
    /// Bursts per time; unlimited where missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Frequency>,
    /// Ends after this many bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Ends after this long.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasting: Option<Time>,
    /// When it is made durable on the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncEvery>,
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

/// Creates files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateFiles {
    /// The file; `{n}` is its number, which goes on where an earlier step of the same task left off for
    /// the same name. Directories are created where they are missing.
    pub file: String,
    /// Ends after this many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Files per directory, for `{d}` in the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_per_dir: Option<u64>,
    /// Bytes written into each; none where missing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub size: ByteSize,
    /// Files per time; unlimited where missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Frequency>,
    /// Ends after this long.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasting: Option<Time>,
    /// fsync before close.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fsync: bool,
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

const PAGE: ByteSize = ByteSize(floodline_record::units::Bytes(4096));
const BYTE: ByteSize = ByteSize(floodline_record::units::Bytes(1));

fn page() -> ByteSize {
    PAGE
}

fn byte() -> ByteSize {
    BYTE
}

fn one() -> u64 {
    1
}

fn random() -> Order {
    Order::Random
}

// serde hands over references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_page(size: &ByteSize) -> bool {
    *size == PAGE
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_byte(size: &ByteSize) -> bool {
    *size == BYTE
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_one(value: &u64) -> bool {
    *value == 1
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_random(order: &Order) -> bool {
    *order == Order::Random
}

impl Default for Write {
    fn default() -> Write {
        Write {
            file: String::new(),
            order: Order::Sequential,
            block: PAGE,
            rate: None,
            total: None,
            count: None,
            lasting: None,
            size: None,
            direct: false,
            dsync: false,
            depth: 1,
            truncate: false,
            sync: None,
        }
    }
}

impl Default for Read {
    fn default() -> Read {
        Read {
            file: String::new(),
            files: None,
            files_per_dir: None,
            order: Order::Sequential,
            block: PAGE,
            rate: None,
            total: None,
            count: None,
            lasting: None,
            direct: false,
            depth: 1,
            keep: false,
        }
    }
}

impl Default for MmapStore {
    fn default() -> MmapStore {
        MmapStore {
            file: String::new(),
            files: None,
            size: PAGE,
            pages: 1,
            store: BYTE,
            order: Order::Random,
            rate: None,
            count: None,
            lasting: None,
            sync: None,
        }
    }
}

impl Step {
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
}
