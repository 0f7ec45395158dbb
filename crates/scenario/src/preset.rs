// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that people know, as steps. A preset is a pure function from a few parameters to a program;
//! `floodline scenario show` prints what it expands to. Each says what of the real program it keeps.

use super::quantity::{ByteSize, Frequency, Pace, Time};
use super::step::{
    Anon, CreateFiles, Lasting, MmapStore, OnFile, Order, Parallel, Read, Repeat, Step, SyncCall, SyncEvery, Write,
};
use floodline_record::units::{Bytes, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A program by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Preset {
    /// Messages into a mapped journal file: a few scattered pages each, a sync now and then.
    JournaldLike(JournaldLike),
    /// An append-only file with fdatasync once a second.
    RedisAof(RedisAof),
    /// Random reads, a redo log with fdatasync, and flushing of pages, at once.
    Database(Database),
    /// Lines appended to a log, never synced.
    Logger(Logger),
    /// One small file after the other: create, write, fsync, close.
    Mail(Mail),
    /// One file copied into another.
    Copy(Copy),
    /// Many small files unpacked into directories.
    Untar(Untar),
    /// Whole files read, computed on, written: each stage reads what the one before wrote.
    Pipeline(Pipeline),
}

/// journald with persistent storage: per message about two scattered pages of a mapped file of 8 MiB or
/// more, msync after `sync_every` (journald's `SyncIntervalSec`), no write calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JournaldLike {
    /// The journal file.
    pub file: String,
    /// Messages per time.
    pub messages: Frequency,
    /// Pages a message touches.
    #[serde(default = "two")]
    pub pages: u64,
    /// Size of the file.
    #[serde(default = "mib8")]
    pub size: ByteSize,
    /// Time between syncs.
    #[serde(default = "minutes5")]
    pub sync_every: Time,
}

/// Redis with `appendonly yes` and `appendfsync everysec`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedisAof {
    /// The append-only file.
    pub file: String,
    /// Commands per time.
    pub commands: Frequency,
    /// Bytes of one command in the file.
    #[serde(default = "bytes120")]
    pub command: ByteSize,
}

/// A relational database: three threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Database {
    /// The table file.
    pub data: String,
    /// The redo log.
    pub log: String,
    /// Size of the table file.
    pub size: ByteSize,
    /// Random reads of 16 KiB per time.
    pub reads: Frequency,
    /// Commits per time: 512 bytes of log and fdatasync each.
    pub commits: Frequency,
    /// Dirty pages of 16 KiB written back per time, fsync each second.
    pub flushes: Frequency,
    /// Past the page cache.
    #[serde(default, skip_serializing_if = "super::machine::is_default")]
    pub direct: bool,
}

/// A program that logs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Logger {
    /// The log.
    pub file: String,
    /// Lines per time.
    pub lines: Frequency,
    /// Bytes of one line.
    #[serde(default = "bytes120")]
    pub line: ByteSize,
}

/// A mail server's spool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mail {
    /// The spool directory.
    pub dir: String,
    /// Messages per time.
    pub messages: Frequency,
    /// Bytes of one message.
    #[serde(default = "kib4")]
    pub message: ByteSize,
}

/// cp.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Copy {
    /// The source.
    pub from: String,
    /// The copy.
    pub to: String,
    /// Bytes to copy.
    pub size: ByteSize,
    /// Bytes of one read and one write.
    #[serde(default = "kib128")]
    pub block: ByteSize,
    /// fsync at the end.
    #[serde(default, skip_serializing_if = "super::machine::is_default")]
    pub fsync: bool,
}

/// tar -x.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Untar {
    /// Where to.
    pub dir: String,
    /// How many files.
    pub files: u64,
    /// Bytes of each.
    pub size: ByteSize,
    /// Files per directory.
    #[serde(default = "hundred")]
    pub files_per_dir: u64,
}

/// A chain of programs over files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// The files, in order: the first is read, the rest are written and, but for the last, read again.
    pub files: Vec<String>,
    /// Size of each.
    pub size: ByteSize,
    /// CPU time of a stage, between its reading and its writing.
    pub compute: Time,
    /// Bytes of one read or write; the first file is made in no fewer than 1 MiB.
    #[serde(default = "mib1")]
    pub block: ByteSize,
}

/// What a preset stands for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Before the workload's clock starts.
    pub setup: Vec<Step>,
    /// The program.
    pub steps: Vec<Step>,
}

/// InnoDB's page and the usual one of the others, twice over.
const DB_PAGE: ByteSize = ByteSize(Bytes(16 << 10));
/// The smallest unit a redo log is written in.
const LOG_BLOCK: ByteSize = ByteSize(Bytes(512));
const SECOND: Time = Time(Nanos::SECOND);

impl Preset {
    /// The program it stands for.
    pub fn expand(&self) -> Program {
        match self {
            Preset::JournaldLike(journal) => journal.expand(),
            Preset::RedisAof(redis) => redis.expand(),
            Preset::Database(database) => database.expand(),
            Preset::Logger(logger) => Program {
                setup: Vec::new(),
                steps: vec![Step::Write(Write {
                    file: logger.file.clone(),
                    order: Order::Append,
                    block: logger.line,
                    rate: Some(Pace::Blocks(logger.lines)),
                    ..Write::default()
                })],
            },
            Preset::Mail(mail) => Program {
                setup: Vec::new(),
                steps: vec![Step::CreateFiles(CreateFiles {
                    file: format!("{}/{{n}}", mail.dir),
                    files: None,
                    files_per_dir: None,
                    size: mail.message,
                    rate: Some(mail.messages),
                    lasting: None,
                    fsync: true,
                })],
            },
            Preset::Copy(copy) => copy.expand(),
            Preset::Untar(untar) => Program {
                setup: Vec::new(),
                steps: vec![Step::CreateFiles(CreateFiles {
                    file: format!("{}/{{d}}/{{n}}", untar.dir),
                    files: Some(untar.files),
                    files_per_dir: Some(untar.files_per_dir),
                    size: untar.size,
                    rate: None,
                    lasting: None,
                    fsync: false,
                })],
            },
            Preset::Pipeline(pipeline) => pipeline.expand(),
        }
    }
}

/// A file of a size, written in blocks, on the device and not in memory.
fn cold_file(file: &str, size: ByteSize, block: ByteSize) -> Vec<Step> {
    let write = Write { file: file.to_owned(), block, total: Some(size), ..Write::default() };
    let on_file = OnFile { file: file.to_owned() };
    vec![Step::Write(write), Step::Fsync(on_file.clone()), Step::Close(on_file), Step::DropCaches]
}

impl JournaldLike {
    fn expand(&self) -> Program {
        Program {
            setup: cold_file(&self.file, self.size, mib1()),
            steps: vec![Step::MmapStore(MmapStore {
                file: self.file.clone(),
                size: self.size,
                pages: self.pages,
                store: bytes120(),
                rate: Some(self.messages),
                sync: Some(SyncEvery { call: SyncCall::Msync, every: Some(self.sync_every), after: None }),
                ..MmapStore::default()
            })],
        }
    }
}

impl RedisAof {
    fn expand(&self) -> Program {
        Program {
            setup: Vec::new(),
            steps: vec![Step::Write(Write {
                file: self.file.clone(),
                order: Order::Append,
                block: self.command,
                rate: Some(Pace::Blocks(self.commands)),
                sync: Some(SyncEvery { call: SyncCall::Fdatasync, every: Some(SECOND), after: None }),
                ..Write::default()
            })],
        }
    }
}

impl Database {
    fn expand(&self) -> Program {
        let read = Step::Read(Read {
            file: self.data.clone(),
            order: Order::Random,
            block: DB_PAGE,
            rate: Some(Pace::Blocks(self.reads)),
            direct: self.direct,
            ..Read::default()
        });
        let commit = Step::Write(Write {
            file: self.log.clone(),
            block: LOG_BLOCK,
            rate: Some(Pace::Blocks(self.commits)),
            size: Some(ByteSize(Bytes(48 << 20))),
            sync: Some(SyncEvery { call: SyncCall::Fdatasync, every: None, after: Some(1) }),
            ..Write::default()
        });
        let flush = Step::Write(Write {
            file: self.data.clone(),
            order: Order::Random,
            block: DB_PAGE,
            rate: Some(Pace::Blocks(self.flushes)),
            size: Some(self.size),
            direct: self.direct,
            sync: Some(SyncEvery { call: SyncCall::Fsync, every: Some(SECOND), after: None }),
            ..Write::default()
        });
        Program {
            setup: cold_file(&self.data, self.size, mib1()),
            steps: vec![Step::Parallel(Parallel { branches: vec![vec![read], vec![commit], vec![flush]] })],
        }
    }
}

impl Copy {
    fn expand(&self) -> Program {
        let read = Read { file: self.from.clone(), block: self.block, count: Some(1), ..Read::default() };
        let write = Write { file: self.to.clone(), block: self.block, count: Some(1), ..Write::default() };
        let blocks = self.size.bytes().div_ceil(self.block.bytes().max(1));
        let mut steps = vec![Step::Repeat(Repeat {
            times: Some(blocks),
            lasting: None,
            every: None,
            steps: vec![Step::Read(read), Step::Write(write)],
        })];
        if self.fsync {
            steps.push(Step::Fsync(OnFile { file: self.to.clone() }));
        }
        Program { setup: cold_file(&self.from, self.size, mib1()), steps }
    }
}

impl Pipeline {
    fn expand(&self) -> Program {
        let Some(first) = self.files.first() else { return Program::default() };
        let mut steps = Vec::new();
        for pair in self.files.windows(2) {
            let [from, to] = pair else { continue };
            steps.push(Step::Read(Read {
                file: from.clone(),
                block: self.block,
                total: Some(self.size),
                keep: true,
                ..Read::default()
            }));
            steps.push(Step::Burn(Lasting { lasting: self.compute }));
            steps.push(Step::Write(Write {
                file: to.clone(),
                block: self.block,
                total: Some(self.size),
                ..Write::default()
            }));
            steps.push(Step::Close(OnFile { file: from.clone() }));
            steps.push(Step::Close(OnFile { file: to.clone() }));
            steps.push(Step::Anon(Anon { size: ByteSize::default() }));
        }
        // Only what is left of it counts: small steps would take long for nothing.
        let block = ByteSize(self.block.0.max(mib1().0));
        Program { setup: cold_file(first, self.size, block), steps }
    }
}

fn two() -> u64 {
    2
}

fn hundred() -> u64 {
    100
}

fn bytes120() -> ByteSize {
    ByteSize(Bytes(120))
}

fn kib4() -> ByteSize {
    ByteSize(Bytes(4 << 10))
}

fn kib128() -> ByteSize {
    ByteSize(Bytes(128 << 10))
}

fn mib1() -> ByteSize {
    ByteSize(Bytes(1 << 20))
}

fn mib8() -> ByteSize {
    ByteSize(Bytes(8 << 20))
}

fn minutes5() -> Time {
    Time(Nanos(300 * Nanos::SECOND.0))
}
