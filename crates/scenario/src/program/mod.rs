// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one interpreter of steps. A [`Program`] is one thread of a task copy: it keeps the place in the steps, the
//! schedules, the position in each file and the choices of the seed. It yields one [`Op`] after the other and takes the
//! answer of each. An executor (the simulator, the worker in a guest) carries the operations out and times them;
//! [`Measures`] keeps the times and makes events of them. Pure: the time is passed in.

mod durable;
mod files;
mod frame;
mod histogram;
mod measures;
mod meeting;
mod repeat;
mod requests;
mod store;
#[cfg(test)]
mod tests;
mod transfer;

pub use measures::Measures;
pub use meeting::Barriers;

use self::frame::{Frame, Turn};
use crate::step::{CreateFiles, Single, Step, SyncCall};
use crate::{Parallel, Random, fill};
use floodline_record::units::Nanos;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

/// Number of an open file of one program, from 0. Numbers of closed files are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(pub usize);

/// What a file is open for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// For writing at any offset, and for mappings. A missing file is created with its directories.
    Write,
    /// For writing at the end (O_APPEND). A missing file is created with its directories.
    Append,
    /// For reading.
    Read,
}

/// How a file is open. A program may have one file open in several ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Way {
    /// Past the page cache (O_DIRECT).
    pub is_direct: bool,
    /// Writes return when their data is durable (O_DSYNC).
    pub is_dsync: bool,
    /// What for.
    pub access: Access,
}

/// A file that is made durable.
#[derive(Clone, Debug, PartialEq)]
pub enum Target<'s> {
    /// An open one.
    Open(Slot),
    /// One that is opened for this call only.
    Path(&'s str),
}

/// One operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Op<'s> {
    /// Sleep until then.
    SleepUntil(Nanos),
    /// Open a file.
    Open {
        /// Its number from now on.
        slot: Slot,
        /// Its path.
        path: Cow<'s, str>,
        /// How.
        way: Way,
        /// Whether the call is measured as `open`.
        is_measured: bool,
    },
    /// Close a file in all the ways it is open; measured once, as `close`.
    Close {
        /// Its numbers.
        slots: Vec<Slot>,
    },
    /// Close a file; not measured.
    Release(Slot),
    /// Length of an open file in bytes: [`Answer::Bytes`].
    Length(Slot),
    /// Set the length of an open file, in bytes; `truncate`.
    SetLength(Slot, u64),
    /// Give an open file its blocks from its start to this many bytes, and at least that length; `fallocate`.
    Allocate(Slot, u64),
    /// Write; `write`.
    Write {
        /// The file.
        slot: Slot,
        /// Where to, in bytes; `None` at the end of the file.
        offset: Option<u64>,
        /// How many bytes.
        length: u64,
    },
    /// Read; `read`. The answer is how many bytes there were: [`Answer::Bytes`].
    Read {
        /// The file.
        slot: Slot,
        /// Where from, in bytes.
        offset: u64,
        /// How many bytes at most.
        length: u64,
        /// Whether the bytes stay in anonymous memory.
        keep: bool,
    },
    /// Starts a read or write once fewer than `depth` are under way, and does not wait for it. It is measured as `read` or
    /// `write` when it is done.
    Submit {
        /// The file.
        slot: Slot,
        /// Which of the two.
        is_write: bool,
        /// Where, in bytes.
        offset: u64,
        /// How many bytes.
        length: u64,
        /// Requests under way, this one included.
        depth: u64,
    },
    /// Waits for every submitted request.
    Drain,
    /// Map a file for stores, extending it to this many bytes.
    Map {
        /// The file.
        slot: Slot,
        /// Bytes.
        size: u64,
    },
    /// Store into one page of the mapping; `mmap_store`.
    Store {
        /// The file.
        slot: Slot,
        /// Number of the page.
        page: u64,
        /// Bytes, at most a page.
        length: u64,
    },
    /// Make a file durable; measured by the name of the call.
    Durable(SyncCall, Target<'s>),
    /// Create, fill and close a file; `create`, `write`, `fsync`, `close` and the whole as `create_files`.
    CreateFile {
        /// Its path.
        path: String,
        /// How.
        step: &'s CreateFiles,
    },
    /// Unlink a file; `unlink`.
    Unlink(String),
    /// One request to a server; `syslog`, `redis_set` or `sql`.
    Request {
        /// The step that makes it.
        step: &'s Step,
        /// Whether it is the first of its step: connect before.
        is_first: bool,
    },
    /// Mount or unmount; each is `mount` or `umount`.
    Mounts {
        /// The step: [`Step::Mount`] or [`Step::Umount`].
        step: &'s Step,
        /// Mount points.
        points: Vec<String>,
        /// All at the same moment instead of one after the other.
        at_once: bool,
    },
    /// Run one program per branch at the same time, each with its seed; go on when all have ended.
    Parallel(&'s Parallel, Vec<u64>),
    /// A round that began then is done. In the model it takes some time even if nothing in it does.
    EndOfRound(Nanos),
    /// A step that is one operation.
    Single(Single<'s>),
}

/// What came of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// Done.
    #[default]
    Done,
    /// Bytes that were read, or the length of a file.
    Bytes(u64),
}

/// What all frames of a program share.
#[derive(Debug)]
struct State {
    random: Random,
    /// When the steps began. `None` before the first step.
    began: Option<Nanos>,
    /// Open files by path.
    open: BTreeMap<String, BTreeMap<Way, Slot>>,
    files: Vec<File>,
    /// Numbers of the files that this thread created by each name and has not removed.
    numbers: BTreeMap<String, Range<u64>>,
}

impl State {
    /// Returns the number of the oldest file of this name that the thread created and has not removed: 0 if it created none.
    fn oldest(&self, file: &str) -> u64 {
        self.numbers.get(file).map_or(0, |numbers| numbers.start)
    }
}

/// An open file.
#[derive(Clone, Copy, Debug, Default)]
struct File {
    /// Where the program is in it: bytes, or pages for a mapping.
    cursor: u64,
    /// Bytes of its mapping.
    mapped: u64,
}

/// One thread of a task.
#[derive(Debug)]
pub struct Program<'s> {
    frames: Vec<Frame<'s>>,
    state: State,
}

impl<'s> Program<'s> {
    /// A thread that has nothing to do yet. The same seed makes the same choices.
    pub fn new(seed: u64) -> Program<'s> {
        let state = State {
            random: Random::new(seed),
            began: None,
            open: BTreeMap::new(),
            files: Vec::new(),
            numbers: BTreeMap::new(),
        };
        Program { frames: Vec::new(), state }
    }

    /// Runs these steps next. Files stay open from one list of steps to the next.
    pub fn run(&mut self, steps: &'s [Step]) {
        self.frames = vec![Frame::steps(steps)];
        self.state.began = None;
    }

    /// The next operation; `None` at the end. `is_stopped` ends the program at the next step. `answer` is what came of
    /// the operation before.
    ///
    /// # Errors
    /// A step that makes no sense, such as an msync of a file that is not mapped.
    // What the model calls for each operation is inlined: the model is built for speed, and this crate for size.
    #[inline]
    pub fn next(&mut self, now: Nanos, is_stopped: bool, answer: Answer) -> Result<Option<Op<'s>>, String> {
        let mut answer = answer;
        self.state.began.get_or_insert(now);
        loop {
            let Some(frame) = self.frames.last_mut() else { return Ok(None) };
            let turn = frame.advance(&mut self.state, now, is_stopped, answer)?;
            answer = Answer::Done;
            match turn {
                Turn::Op(op) => return Ok(Some(op)),
                Turn::Push(frame) => self.frames.push(frame),
                Turn::Pop => {
                    self.frames.pop();
                }
                Turn::End => self.frames.clear(),
            }
        }
    }

    /// Where the program is, such as `[0].repeat.steps[2].write`.
    pub fn place(&self) -> String {
        self.frames.iter().map(Frame::place).collect()
    }
}

impl State {
    /// The open file, or the operation that opens it, with its number.
    fn open<'s>(&mut self, path: &str, way: Way) -> (Slot, Option<Op<'s>>) {
        if let Some(slot) = self.open.get(path).and_then(|ways| ways.get(&way)) {
            return (*slot, None);
        }
        let slot = self.unnamed();
        self.open.entry(path.to_owned()).or_default().insert(way, slot);
        (slot, Some(Op::Open { slot, path: Cow::Owned(path.to_owned()), way, is_measured: false }))
    }

    /// A file that later steps do not find.
    fn unnamed(&mut self) -> Slot {
        self.files.push(File::default());
        Slot(self.files.len() - 1)
    }

    #[inline]
    fn file(&mut self, slot: Slot) -> &mut File {
        // Numbers are given out by `unnamed` only.
        &mut self.files[slot.0]
    }

    /// The file in the first way it is open: for writing before for reading.
    fn any(&self, path: &str) -> Option<Slot> {
        self.open.get(path)?.values().next().copied()
    }

    fn durable<'s>(&self, call: SyncCall, path: &'s str) -> Result<Op<'s>, String> {
        let target = self.any(path).map_or(Target::Path(path), Target::Open);
        self.durable_at(call, target, path)
    }

    fn durable_at<'s>(&self, call: SyncCall, target: Target<'s>, path: &str) -> Result<Op<'s>, String> {
        if call != SyncCall::Msync {
            return Ok(Op::Durable(call, target));
        }
        let mapped = self.open.get(path).into_iter().flat_map(BTreeMap::values);
        let slot = mapped.copied().find(|slot| self.files[slot.0].mapped > 0);
        let slot = slot.ok_or_else(|| format!("msync of {path}, which is not mapped"))?;
        Ok(Op::Durable(call, Target::Open(slot)))
    }
}

/// The name of file `number` of a set.
fn numbered(pattern: &str, number: u64, per_dir: Option<u64>) -> String {
    let name = fill(pattern, 'n', number);
    match per_dir {
        Some(per_dir) => fill(&name, 'd', number / per_dir.max(1)),
        None => name,
    }
}

/// A moment this long after another one.
#[inline]
fn later(at: Nanos, span: Nanos) -> Nanos {
    Nanos(at.0.saturating_add(span.0))
}
