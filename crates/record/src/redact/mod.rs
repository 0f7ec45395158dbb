// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording without the names of its owner: hosts, cgroups, processes, files, mounts and containers become keyed
//! hashes (HMAC-SHA256, RFC 2104). The same name with the same key is the same hash on every host, so that recordings of a
//! fleet can still be compared. Numbers, device numbers, settings and the words of [`words`] stay, and with them budgets
//! and rules.
//!
//! Each record is taken apart field by field, without `..`: a new field does not compile until someone decides here
//! whether it is a name.

mod facts;
#[cfg(test)]
mod tests;
mod words;

use crate::gap::{Cause, Gap};
use crate::id::Entity;
use crate::name::Name;
use crate::record::{Event, Record, TaskName, What};
use crate::text::Text;
use crate::traced::bytes::{Cancelled, Dirtied, Submitted};
use crate::traced::flusher::Flushed;
use crate::traced::switches::{CgroupRemoved, ForeignDirtied, ForeignFlushed, InodesSwitched};
use crate::traced::throttle::Throttled;
use crate::traced::waits::{SlowSync, Synced};
use crate::traced::{File, Who};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::borrow::Cow;
use std::fmt::Write as _;

/// Bytes of a hash that are shown: 48 bits, so that two of a million names meet with a chance of 0.2 %.
const SHOWN: usize = 6;

/// Minimum length of a key, bytes: a shorter key can be found by trying all keys.
pub const KEY_BYTES: usize = 16;

/// Shortest run of hexadecimal digits that is an id and not a word.
const ID_DIGITS: usize = 12;

/// Most digits of a number that stays: a job, an instance.
const NUMBER_DIGITS: usize = 7;

/// Most digits of a user.
const USER_DIGITS: usize = 10;

/// Lengths of the groups of a UUID.
const UUID: [usize; 5] = [8, 4, 4, 4, 12];

/// Replaces names by keyed hashes.
#[derive(Clone)]
pub struct Redactor {
    keyed: Hmac<Sha256>,
}

impl Redactor {
    /// With a secret key of any length. A key shorter than [`KEY_BYTES`] can be guessed.
    pub fn new(key: &[u8]) -> Redactor {
        // A key of any length is taken: HMAC hashes a long one and pads a short one.
        let keyed = Hmac::new_from_slice(key).unwrap_or_else(|_| Hmac::new(&Default::default()));
        Redactor { keyed }
    }

    /// The record without names.
    pub fn record<'a>(&self, record: &'a Record) -> Cow<'a, Record> {
        match record {
            // Numbers only.
            Record::Sample(_) => Cow::Borrowed(record),
            Record::Facts(facts) => Cow::Owned(Record::Facts(Box::new(self.facts(facts)))),
            Record::Entity(id, entity) => Cow::Owned(Record::Entity(*id, self.entity(entity))),
            Record::Event(Event { at, what }) => Cow::Owned(Record::Event(Event { at: *at, what: self.what(what) })),
            Record::Gap(gap) => Cow::Owned(Record::Gap(self.gap(gap))),
        }
    }

    /// A path: each component by itself, so that files of one folder stay in one folder. Below `/dev` a disk keeps its name.
    pub fn path(&self, path: &Name) -> Name {
        let disk = path.as_bytes().strip_prefix(b"/dev/").filter(|disk| words::is_disk(disk));
        if disk.is_some() { path.clone() } else { self.joined(path, b'/', |part| self.component(part)) }
    }

    /// The path of a file that sets something at boot. Its place in the order of such files stays: the number that it
    /// begins with, and the name of the file that Floodline writes.
    pub fn drop_in(&self, path: &Name) -> Name {
        let bytes = path.as_bytes();
        let at = bytes.iter().rposition(|&c| c == b'/').map_or(0, |at| at + 1);
        let (folder, file) = bytes.split_at(at);
        let digits = file.iter().take_while(|c| c.is_ascii_digit()).count();
        let (number, rest) = file.split_at(if digits <= 2 { digits } else { 0 });
        let file = match words::is_drop_in(file) {
            true => file.to_vec(),
            // What sorts before a letter stays before: `99-a` and `99-zz` keep their first letter.
            false => {
                let kept = rest.iter().take(2).take_while(|c| matches!(c, b'-' | b'a'..=b'z')).count();
                let (kept, rest) = rest.split_at(if number.is_empty() { 0 } else { kept });
                [number, kept, self.component(rest).as_slice()].concat()
            }
        };
        Name::new([self.path(&Name::new(folder)).as_bytes(), file.as_slice()].concat())
    }

    /// The name of a process.
    pub fn comm(&self, comm: &Name) -> Name {
        let bytes = comm.as_bytes();
        match words::is_program(bytes) || words::is_kernel_thread(bytes) {
            true => comm.clone(),
            false => Name::new(self.component(bytes)),
        }
    }

    /// A name as a whole, known words or not.
    pub fn whole(&self, name: &Name) -> Name {
        if name.is_empty() { Name::default() } else { Name::new(self.hash(name.as_bytes())) }
    }

    fn entity(&self, entity: &Entity) -> Entity {
        match entity {
            Entity::Zone { node, name } => Entity::Zone { node: *node, name: self.kernel_name(name) },
            Entity::Disk { dev, name } => Entity::Disk { dev: *dev, name: self.disk(name) },
            Entity::Bdi { name } => Entity::Bdi { name: self.kernel_name(name) },
            Entity::Wb { bdi, cgroup_ino } => Entity::Wb { bdi: self.kernel_name(bdi), cgroup_ino: *cgroup_ino },
            Entity::Cgroup { path, hierarchy, ino } => {
                Entity::Cgroup { path: self.path(path), hierarchy: *hierarchy, ino: *ino }
            }
            Entity::CgroupIo { cgroup, dev } => Entity::CgroupIo { cgroup: *cgroup, dev: *dev },
            Entity::Process { pid, start_ticks, comm, cgroup, kthread } => Entity::Process {
                pid: *pid,
                start_ticks: *start_ticks,
                comm: if *kthread { comm.clone() } else { self.comm(comm) },
                cgroup: *cgroup,
                kthread: *kthread,
            },
        }
    }

    fn what(&self, what: &What) -> What {
        match what {
            What::Note { text } => What::Note { text: self.hash(text.as_str().as_bytes()).into() },
            What::Missed { samples } => What::Missed { samples: *samples },
            What::WorkloadStarted { scenario, variant } => {
                What::WorkloadStarted { scenario: self.label(scenario), variant: self.label(variant) }
            }
            What::WorkloadEnded => What::WorkloadEnded,
            What::TaskStarted { task, pid } => What::TaskStarted { task: self.task(task), pid: *pid },
            What::TaskEnded { task, failure } => {
                What::TaskEnded { task: self.task(task), failure: failure.as_ref().map(|text| self.text(text)) }
            }
            What::TaskStall { task, operation, lasted } => {
                What::TaskStall { task: self.task(task), operation: self.kernel_word(operation), lasted: *lasted }
            }
            What::TaskOperations { task, operation, since, count, bytes, latency } => What::TaskOperations {
                task: self.task(task),
                operation: self.kernel_word(operation),
                since: *since,
                count: *count,
                bytes: *bytes,
                latency: *latency,
            },
            What::TaskIo { task, since, io } => What::TaskIo { task: self.task(task), since: *since, io: *io },
            What::TaskThrottled { task, since, slept } => {
                What::TaskThrottled { task: self.task(task), since: *since, slept: *slept }
            }
            What::Dirtied(Dirtied { since, who, device, file, bytes, folios, redirtied }) => What::Dirtied(Dirtied {
                since: *since,
                who: self.who(who),
                device: *device,
                file: self.file(file.as_ref()),
                bytes: *bytes,
                folios: *folios,
                redirtied: *redirtied,
            }),
            What::Cancelled(Cancelled { since, who, device, file, bytes }) => What::Cancelled(Cancelled {
                since: *since,
                who: self.who(who),
                device: *device,
                file: self.file(file.as_ref()),
                bytes: *bytes,
            }),
            What::Submitted(Submitted { since, disk, class, device, file, cgroup_ino, who, bytes, bios }) => {
                What::Submitted(Submitted {
                    since: *since,
                    disk: *disk,
                    class: *class,
                    device: *device,
                    file: self.file(file.as_ref()),
                    cgroup_ino: *cgroup_ino,
                    who: who.as_ref().map(|who| self.who(who)),
                    bytes: *bytes,
                    bios: *bios,
                })
            }
            What::SlowSync(SlowSync { who, tid, operation, lasted, device, file, queued, own }) => {
                What::SlowSync(SlowSync {
                    who: self.who(who),
                    tid: *tid,
                    operation: *operation,
                    lasted: *lasted,
                    device: *device,
                    file: self.file(file.as_ref()),
                    queued: *queued,
                    own: *own,
                })
            }
            What::Synced(Synced { since, who, operation, count, total, longest }) => What::Synced(Synced {
                since: *since,
                who: self.who(who),
                operation: *operation,
                count: *count,
                total: *total,
                longest: *longest,
            }),
            What::TraceStarted { parts } => {
                What::TraceStarted { parts: parts.iter().map(|part| self.kernel_word(part)).collect() }
            }
            What::Throttled(throttled) => What::Throttled(Box::new(self.throttled(throttled))),
            What::Flushed(flushed) => What::Flushed(Box::new(self.flushed(flushed))),
            What::InodesSwitched(switched) => What::InodesSwitched(Box::new(self.switched(switched))),
            What::ForeignDirtied(foreign) => {
                let ForeignDirtied { since, bdi, wb_cgroup_ino, page_cgroup_ino, folios, last_ino } = &**foreign;
                What::ForeignDirtied(Box::new(ForeignDirtied {
                    since: *since,
                    bdi: self.kernel_name(bdi),
                    wb_cgroup_ino: *wb_cgroup_ino,
                    page_cgroup_ino: *page_cgroup_ino,
                    folios: *folios,
                    last_ino: *last_ino,
                }))
            }
            What::ForeignFlushed(foreign) => {
                let ForeignFlushed { since, bdi, cgroup_ino, frn_memcg_id, flushes } = &**foreign;
                What::ForeignFlushed(Box::new(ForeignFlushed {
                    since: *since,
                    bdi: self.kernel_name(bdi),
                    cgroup_ino: *cgroup_ino,
                    frn_memcg_id: *frn_memcg_id,
                    flushes: *flushes,
                }))
            }
            What::CgroupRemoved(CgroupRemoved { cgroup_ino, path }) => {
                What::CgroupRemoved(CgroupRemoved { cgroup_ino: *cgroup_ino, path: self.path(path) })
            }
            What::Unknown => What::Unknown,
        }
    }

    fn throttled(&self, throttled: &Throttled) -> Throttled {
        let Throttled {
            since,
            who,
            tid,
            bdi,
            wb_cgroup_ino,
            domain,
            pauses,
            pause_ns,
            pause_ns_max,
            slept_ns,
            slept_ns_max,
            unpaused,
            longest,
        } = throttled;
        Throttled {
            since: *since,
            who: self.who(who),
            tid: *tid,
            bdi: self.kernel_name(bdi),
            wb_cgroup_ino: *wb_cgroup_ino,
            domain: *domain,
            pauses: *pauses,
            pause_ns: *pause_ns,
            pause_ns_max: *pause_ns_max,
            slept_ns: *slept_ns,
            slept_ns_max: *slept_ns_max,
            unpaused: *unpaused,
            longest: *longest,
        }
    }

    fn flushed(&self, flushed: &Flushed) -> Flushed {
        let Flushed { since, bdi, wb_cgroup_ino, reason, rounds, sync_rounds, pages, busy_ns, busy_ns_max } = flushed;
        Flushed {
            since: *since,
            bdi: self.kernel_name(bdi),
            wb_cgroup_ino: *wb_cgroup_ino,
            reason: self.kernel_word(reason),
            rounds: *rounds,
            sync_rounds: *sync_rounds,
            pages: *pages,
            busy_ns: *busy_ns,
            busy_ns_max: *busy_ns_max,
        }
    }

    fn switched(&self, switched: &InodesSwitched) -> InodesSwitched {
        let InodesSwitched { since, bdi, old_cgroup_ino, new_cgroup_ino, switched, queued, first_at, last_at } =
            switched;
        InodesSwitched {
            since: *since,
            bdi: self.kernel_name(bdi),
            old_cgroup_ino: *old_cgroup_ino,
            new_cgroup_ino: *new_cgroup_ino,
            switched: *switched,
            queued: *queued,
            first_at: *first_at,
            last_at: *last_at,
        }
    }

    fn gap(&self, gap: &Gap) -> Gap {
        let Gap { source, cause, entity, detail, times } = gap;
        let cause = match cause {
            Cause::NotFound => Cause::NotFound,
            Cause::PermissionDenied { need } => Cause::PermissionDenied { need: self.text(need) },
            Cause::NotMounted { fs_type } => Cause::NotMounted { fs_type: self.kernel_word(fs_type) },
            Cause::Unsupported { since } => Cause::Unsupported { since: self.text(since) },
            Cause::Malformed { what } => Cause::Malformed { what: self.text(what) },
            Cause::Vanished => Cause::Vanished,
            Cause::TooLarge { limit_bytes } => Cause::TooLarge { limit_bytes: *limit_bytes },
            Cause::Io { errno } => Cause::Io { errno: *errno },
            Cause::Exhausted { what } => Cause::Exhausted { what: self.text(what) },
            Cause::Refused { why } => Cause::Refused { why: self.text(why) },
            Cause::NotPlanned => Cause::NotPlanned,
            Cause::TooShort { need } => Cause::TooShort { need: self.text(need) },
            Cause::TooCoarse { need } => Cause::TooCoarse { need: self.text(need) },
            Cause::SamplesMissing { what } => Cause::SamplesMissing { what: self.text(what) },
            Cause::NotRecorded => Cause::NotRecorded,
            Cause::Unknown => Cause::Unknown,
        };
        Gap {
            source: *source,
            cause,
            entity: *entity,
            detail: detail.as_ref().map(|text| self.text(text)),
            times: *times,
        }
    }

    fn task(&self, task: &TaskName) -> TaskName {
        let TaskName { task, copy } = task;
        TaskName { task: self.label(task), copy: *copy }
    }

    fn who(&self, who: &Who) -> Who {
        let Who { pid, comm, cgroup_ino } = who;
        Who { pid: *pid, comm: self.comm(comm), cgroup_ino: *cgroup_ino }
    }

    fn file(&self, file: Option<&File>) -> Option<File> {
        let File { ino, generation, path } = file?;
        Some(File { ino: *ino, generation: *generation, path: path.as_ref().map(|path| self.path(path)) })
    }

    /// A word of the kernel or of Floodline, e.g. `ext4`, `background`; any other text is hashed.
    fn kernel_word(&self, word: &Text) -> Text {
        let is_kept = |c: u8| c.is_ascii_alphanumeric() || b"_.+:-~".contains(&c);
        if word.as_str().bytes().all(is_kept) { word.clone() } else { self.hash(word.as_str().as_bytes()).into() }
    }

    /// A name that the kernel gives, e.g. `8:0`, `DMA32`, `btrfs-1`.
    fn kernel_name(&self, name: &Name) -> Name {
        let is_kept = |c: &u8| c.is_ascii_alphanumeric() || b"_.+:-".contains(c);
        if name.as_bytes().iter().all(is_kept) { name.clone() } else { self.whole(name) }
    }

    /// The name of a disk or partition.
    fn disk(&self, name: &Name) -> Name {
        if words::is_disk(name.as_bytes()) { name.clone() } else { Name::new(self.component(name.as_bytes())) }
    }

    /// A name in text, e.g. that of a task.
    fn label(&self, label: &Text) -> Text {
        Name::new(self.component(Name::from_escaped(label.as_str()).as_bytes())).to_string().into()
    }

    /// A sentence: from the first path on that is not below /proc or /sys it is one path, as names may have spaces.
    fn text(&self, text: &Text) -> Text {
        let text = text.as_str();
        let is_kernels = |rest: &str| {
            ["/proc/", "/sys/"].iter().any(|start| rest.starts_with(start)) && !rest.starts_with("/sys/fs/cgroup/")
        };
        let is_word = |word: &str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.+:%=<>{},;()'-~…×".contains(c);
            word.chars().all(is_plain) || is_kernels(word.trim_start_matches(['(', '\'']))
        };
        let mut kept = 0;
        for word in text.split_inclusive(' ') {
            if !is_word(word.trim_end_matches(' ')) {
                break;
            }
            kept += word.len();
        }
        let (kept, rest) = text.split_at(kept);
        match rest {
            "" => kept.into(),
            rest => format!("{kept}{}", self.path(&Name::from_escaped(rest))).into(),
        }
    }

    /// Fields of a name, each changed by itself.
    fn joined(&self, name: &Name, by: u8, change: impl Fn(&[u8]) -> Vec<u8>) -> Name {
        let fields: Vec<Vec<u8>> = name.as_bytes().split(|&c| c == by).map(change).collect();
        Name::new(fields.join(&by))
    }

    /// One component of a path: known words, separators and small numbers stay, ids stay ids, and each run of other
    /// words becomes one hash.
    fn component(&self, part: &[u8]) -> Vec<u8> {
        let tokens = tokens(part);
        let mut out = Vec::with_capacity(part.len());
        // Where a run of unknown words began and ended so far, as bytes of `part`.
        let mut run: Option<(usize, usize)> = None;
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let (kind, length) = match uuid(part, &tokens, at) {
                Some(length) => (Kind::Id, length),
                None => (kind(part, &tokens, at), 1),
            };
            let end = tokens.get(at + length - 1).map_or(token.end, |last| last.end);
            let bytes = part.get(token.start..end).unwrap_or_default();
            match (kind, run) {
                (Kind::Other, Some((start, _))) => run = Some((start, end)),
                (Kind::Other, None) => run = Some((token.start, end)),
                // A separator may lie within a run.
                (Kind::Separator, Some(_)) => {}
                (_, before) => {
                    if let Some((start, run_end)) = before {
                        out.extend(self.hash(part.get(start..run_end).unwrap_or_default()).into_bytes());
                        out.extend_from_slice(part.get(run_end..token.start).unwrap_or_default());
                        run = None;
                    }
                    match kind {
                        Kind::Id => out.extend(self.id(bytes)),
                        _ => out.extend_from_slice(bytes),
                    }
                }
            }
            at += length;
        }
        if let Some((start, end)) = run {
            out.extend(self.hash(part.get(start..end).unwrap_or_default()).into_bytes());
            out.extend_from_slice(part.get(end..).unwrap_or_default());
        }
        out
    }

    /// An id with other digits; `pod` before it, and separators, stay.
    fn id(&self, id: &[u8]) -> Vec<u8> {
        let (kept, id) = if id.starts_with(b"pod") { id.split_at(b"pod".len()) } else { id.split_at(0) };
        let digits: Vec<u8> = id.iter().copied().filter(is_digit).collect();
        let mut hashed = String::new();
        let mut round = 0_u8;
        while hashed.len() < digits.len() {
            hex(&mut hashed, &self.keyed.clone().chain_update([round]).chain_update(&digits).finalize().into_bytes());
            round = round.wrapping_add(1);
        }
        let mut hashed = hashed.into_bytes().into_iter();
        let changed = id.iter().map(|&c| if is_digit(&c) { hashed.next().unwrap_or(b'0') } else { c });
        kept.iter().copied().chain(changed).collect()
    }

    fn hash(&self, name: &[u8]) -> String {
        let bytes = self.keyed.clone().chain_update(name).finalize().into_bytes();
        let mut text = String::from("x");
        hex(&mut text, bytes.get(..SHOWN).unwrap_or_default());
        text
    }
}

/// Digits of ids: runtimes write them in lower case.
fn is_digit(c: &u8) -> bool {
    matches!(c, b'0'..=b'9' | b'a'..=b'f')
}

fn hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // A string takes everything.
        let _ = write!(text, "{byte:02x}");
    }
}

/// A stretch of a component.
#[derive(Clone, Copy, Debug)]
struct Token {
    start: usize,
    end: usize,
    is_separator: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Between words.
    Separator,
    /// A word that stays, or a small number beside one.
    Known,
    /// An id of a container or pod.
    Id,
    /// A word that is hashed.
    Other,
}

/// Letters and digits, and what lies between. systemd's escapes (`\x2d`) lie between.
fn tokens(part: &[u8]) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = part.get(at) {
        let is_escape = part.get(at..at + 2) == Some(b"\\x") && part.len() >= at + 4;
        let (length, is_separator) = if is_escape { (4, true) } else { (1, b"-._:@,()[]=+~ ".contains(&byte)) };
        match tokens.last_mut() {
            Some(last) if last.is_separator == is_separator => last.end += length,
            _ => tokens.push(Token { start: at, end: at + length, is_separator }),
        }
        at += length;
    }
    tokens
}

/// How many tokens from here on are the groups of a UUID, `1b4e28ba-2fa1-…` or with `_` between; the first may have `pod`
/// before it.
fn uuid(part: &[u8], tokens: &[Token], at: usize) -> Option<usize> {
    let length = 2 * UUID.len() - 1;
    let found = tokens.get(at..at + length)?;
    let bytes = |token: &Token| part.get(token.start..token.end).unwrap_or_default();
    for (index, token) in found.iter().enumerate() {
        let bytes = bytes(token);
        let is_right = match (index % 2, UUID.get(index / 2)) {
            (0, Some(&digits)) => {
                let group = if index == 0 { bytes.strip_prefix(b"pod").unwrap_or(bytes) } else { bytes };
                group.len() == digits && group.iter().all(is_digit)
            }
            _ => bytes == b"-" || bytes == b"_",
        };
        if !is_right {
            return None;
        }
    }
    Some(length)
}

fn kind(part: &[u8], tokens: &[Token], at: usize) -> Kind {
    let Some(token) = tokens.get(at) else { return Kind::Other };
    let bytes = |token: &Token| part.get(token.start..token.end).unwrap_or_default();
    let word = |at: Option<usize>| at.and_then(|at| tokens.get(at)).map(&bytes);
    let is_number = |word: &[u8]| {
        // A user of a directory service has more digits.
        let digits =
            if matches!(word_before(part, tokens, at), b"user" | b"uid") { USER_DIGITS } else { NUMBER_DIGITS };
        word.len() <= digits && word.iter().all(u8::is_ascii_digit)
    };
    let is_id = |word: &[u8]| word.len() >= ID_DIGITS && word.iter().all(is_digit);
    match bytes(token) {
        _ if token.is_separator => Kind::Separator,
        one if words::is_word(one) => Kind::Known,
        one if is_id(one.strip_prefix(b"pod").unwrap_or(one)) => Kind::Id,
        one if is_number(one) => {
            let (before, after) = (word(at.checked_sub(2)), word(Some(at + 2)));
            let is_numeric = |word: &[u8]| word.iter().all(u8::is_ascii_digit);
            let stays = match (before, after) {
                // The number of a virtual machine: `qemu\x2d1\x2dNAME`.
                (Some(b"qemu" | b"lxc"), _) => true,
                // An address has numbers beside numbers.
                (_, Some(after)) if is_numeric(after) => false,
                (Some(before), _) => words::is_word(before),
                // A number alone may be a customer; `101.scope` is a virtual machine.
                (None, after) => after.is_some_and(words::is_word),
            };
            if stays { Kind::Known } else { Kind::Other }
        }
        _ => Kind::Other,
    }
}

/// The word before a token, or nothing.
fn word_before<'a>(part: &'a [u8], tokens: &[Token], at: usize) -> &'a [u8] {
    let before = at.checked_sub(2).and_then(|at| tokens.get(at));
    before.and_then(|token| part.get(token.start..token.end)).unwrap_or_default()
}
