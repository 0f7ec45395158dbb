// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads one part of the tracer into the kernel: checks that the kernel has the tracepoints and fields that the part
//! reads, loads its object, attaches its programs. Every error is a cause that names the remedy. libbpf prints nothing.
//! Independent of the individual parts.

use super::budget::Runs;
use super::excerpt::{Excerpt, KERNEL_TYPES};
use super::layout::{self, Counted};
use super::missed::{self, Missed, is_spare};
use super::offer::permissions;
use super::part::{Need, Part};
use super::tracefs::Tracefs;
use crate::parse::trace_format;
use crate::root::{HostRoot, SMALL};
use floodline_record::gap::Cause;
use libbpf_rs::{Link, Map, MapCore, Object, ObjectBuilder, OpenObject, PrintLevel, ProgramMut};
use rustix::process::{Resource, getrlimit};
use std::cell::RefCell;
use std::os::fd::AsFd;

/// A part to be loaded, and how.
#[derive(Clone, Copy)]
pub(super) struct Order<'a> {
    pub(super) root: &'a HostRoot,
    pub(super) part: &'a Part,
    /// Maximum number of entries of each table.
    pub(super) room: u32,
    /// Whether this kernel lets a task be preempted within a tracepoint.
    pub(super) may_preempt: bool,
    /// Excerpt of the kernel's types, tried before all of them.
    pub(super) types: Option<&'a Excerpt>,
}

/// A part in the kernel. Dropping it detaches its programs.
pub(super) struct Loaded {
    // Declared before the object, so that links are dropped first.
    links: Vec<Link>,
    object: Object,
    dropped: u64,
    missed: Missed,
    /// Why programs of the part are not attached to functions, and the facts that are missing for that reason.
    without_functions: Option<(Cause, &'static str)>,
    /// Whether some programs are attached to functions.
    has_functions: bool,
    /// Whether the spare programs are attached.
    has_spares: bool,
}

// Messages of libbpf on this thread since they were last taken: only the last lines, which contain the reason.
thread_local!(static SAID: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) });
const SAID_MAX: usize = 8;

const RUN_AS_ROOT: &str = "CAP_BPF and CAP_PERFMON; run as root";

impl Loaded {
    /// Loads the part and attaches its programs.
    pub(super) fn load(order: &Order<'_>, tracefs: &Tracefs<'_>) -> Result<Loaded, Cause> {
        has_types(order.root)?;
        let have = tracepoints(tracefs, order.part)?;
        libbpf_rs::set_print(Some((PrintLevel::Warn, listen)));
        match Loaded::with_functions_or_without(order, &have) {
            // The excerpt lacks types of modules, such as those of a filesystem.
            Err(Cause::Refused { .. }) if order.types.is_some() => {
                Loaded::with_functions_or_without(&Order { types: None, ..*order }, &have)
            }
            result => result,
        }
    }

    /// Loads the part with programs on functions, or without those that the kernel refuses. Every kernel has the
    /// tracepoints. Many refuse programs on functions, and some lack one of the functions.
    fn with_functions_or_without(order: &Order<'_>, have: &[Have]) -> Result<Loaded, Cause> {
        let cause = match Loaded::attempt(order, have, Functions::All) {
            Err(cause) if !matches!(cause, Cause::Exhausted { .. }) => cause,
            result => return result,
        };
        let (optional, lost) = order.part.optional;
        let without = |loaded, cause, lost| Loaded { without_functions: Some((cause, lost)), ..loaded };
        let is_one_lacking = !optional.is_empty() && matches!(cause, Cause::Refused { .. });
        if is_one_lacking && let Ok(loaded) = Loaded::attempt(order, have, Functions::Needed) {
            return Ok(without(loaded, cause, lost));
        }
        let loaded = Loaded::attempt(order, have, Functions::LeftOut)?;
        // The kernel accepted the other programs, so this process has the permission.
        let why = match cause {
            Cause::PermissionDenied { .. } => "this kernel lets no process attach programs to functions".to_owned(),
            other => other.to_string(),
        };
        Ok(without(loaded, Cause::Refused { why: why.into() }, order.part.functions))
    }

    fn attempt(order: &Order<'_>, have: &[Have], functions: Functions) -> Result<Loaded, Cause> {
        let Order { root, part, room, types, .. } = *order;
        drop(heard());
        let mut builder = ObjectBuilder::default();
        if let Some(types) = types {
            builder.btf_custom_path(types.path()).map_err(|error| failed(root, &error))?;
        }
        let mut open = builder.open_memory(part.object).map_err(|error| failed(root, &error))?;
        leave_out(&mut open, part, have, functions);
        for mut map in open.maps_mut().filter(|map| map.max_entries() > room) {
            map.set_max_entries(room).map_err(|error| failed(root, &error))?;
        }
        let object = open.load().map_err(|error| failed(root, &error))?;
        let has_spares = order.may_preempt;
        let links = attach_all(root, &object, |name| has_spares || !is_spare(name))?;
        let (dropped, missed, has_functions) = (0, Missed::default(), functions != Functions::LeftOut);
        let loaded = Loaded { links, object, dropped, missed, without_functions: None, has_functions, has_spares };
        loaded.check(part)?;
        Ok(loaded)
    }

    /// Returns, once, why programs on functions were left out and the facts that are missing for that reason.
    pub(super) fn take_without_functions(&mut self) -> Option<(Cause, &'static str)> {
        self.without_functions.take()
    }

    /// Returns whether programs are attached to the functions of the part.
    pub(super) fn has_functions(&self) -> bool {
        self.has_functions
    }

    /// Returns a table by its name.
    pub(super) fn map(&self, name: &str) -> Option<Map<'_>> {
        self.object.maps().find(|map| map.name() == name)
    }

    /// Writes the settings for the programs.
    pub(super) fn control(&self, control: Control) -> Result<(), Cause> {
        layout::CONTROL.of(self)?.set(&control.shared())
    }

    /// Returns the counts of the programs since they were loaded, summed over the CPUs.
    pub(super) fn counted(&self) -> Counted {
        let of_cpus = layout::COUNTED.of(self).and_then(|table| table.of_cpus()).unwrap_or_default();
        let none = Counted { runs: 0, dropped: 0, timed: 0, timed_ns: 0, taken: 0 };
        of_cpus.iter().fold(none, |sum, cpu| Counted {
            runs: sum.runs + cpu.runs,
            dropped: sum.dropped + cpu.dropped,
            timed: sum.timed + cpu.timed,
            timed_ns: sum.timed_ns + cpu.timed_ns,
            taken: sum.taken + cpu.taken,
        })
    }

    /// Returns the number of runs of the programs, and the time of the timed ones. Programs on dirtied folios count
    /// their own runs, in the table `latest`.
    pub(super) fn runs(&self) -> Runs {
        let counted = self.counted();
        let all = Runs { runs: counted.runs, timed: counted.timed, timed_ns: counted.timed_ns };
        let of_cpus = layout::LATEST.of(self).and_then(|table| table.of_cpus()).unwrap_or_default();
        of_cpus.iter().fold(all, |sum, cpu| sum.and(Runs { runs: cpu.runs, timed: cpu.timed, timed_ns: cpu.timed_ns }))
    }

    /// Returns the events since the last call that no program ran for, by program. The first such events attach the
    /// spare programs.
    pub(super) fn newly_missed(&mut self, root: &HostRoot) -> Vec<(String, u64)> {
        let has_spares = self.has_spares;
        let skipped = self.object.progs().filter(|program| program.autoload()).filter_map(|program| {
            let name = program.name().to_string_lossy().into_owned();
            let skipped = missed::skipped(program.as_fd()).filter(|_| has_spares || !is_spare(&name))?;
            Some((name, skipped))
        });
        // Read before the events that spares took: an event that is skipped meanwhile is not reported as lost.
        let skipped: Vec<_> = skipped.collect();
        let newly = self.missed.newly(skipped.into_iter(), self.counted().taken);
        if !newly.is_empty() && !has_spares {
            self.links.extend(attach_all(root, &self.object, is_spare).unwrap_or_default());
            self.has_spares = true;
        }
        newly
    }

    /// Returns the number of events dropped for lack of room since the last call.
    pub(super) fn newly_dropped(&mut self) -> u64 {
        let dropped = self.counted().dropped;
        let before = std::mem::replace(&mut self.dropped, dropped);
        dropped.saturating_sub(before)
    }

    /// Checks that keys and entries of the tables have the sizes that the part expects.
    fn check(&self, part: &Part) -> Result<(), Cause> {
        for table in part.tables {
            let sizes = self.map(table.name).map(|map| (map.key_size() as usize, map.value_size() as usize));
            if sizes != Some((table.key, table.entry)) {
                return Err(Cause::Refused {
                    why: format!("table {} is not as this build knows it", table.name).into(),
                });
            }
        }
        Ok(())
    }
}

/// Settings for the programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Control {
    /// Set of entries that is being filled.
    pub(super) epoch: u32,
    /// Level of dropped detail.
    pub(super) shed: u32,
    /// Bounds of the machine's freerun ceiling, pages.
    pub(super) machine_freerun: Option<(u64, u64)>,
}

impl Control {
    fn shared(self) -> layout::Control {
        let (machine_freerun_min, machine_freerun_max) = self.machine_freerun.unwrap_or_default();
        let page_kib = rustix::param::page_size() as u64 / 1024;
        layout::Control { epoch: self.epoch, shed: self.shed, machine_freerun_min, machine_freerun_max, page_kib }
    }
}

/// Checks that the kernel has type information (BTF), by which programs find the fields of structures.
fn has_types(root: &HostRoot) -> Result<(), Cause> {
    match root.exists(KERNEL_TYPES)? {
        true => Ok(()),
        false => Err(Cause::Unsupported { since: "needs one built with CONFIG_DEBUG_INFO_BTF=y".into() }),
    }
}

/// Returns the part's tracepoints that this kernel has. Each needs to exist under one of its names, unless the part
/// does without it, and to have the fields that are read.
fn tracepoints(tracefs: &Tracefs<'_>, part: &Part) -> Result<Vec<Have>, Cause> {
    let mut have = Vec::new();
    for wanted in part.tracepoints {
        let tracepoint = wanted.tracepoint;
        let mut found = false;
        for name in tracepoint.names {
            let text = match tracefs.format(name) {
                Ok(text) => text,
                Err(Cause::NotFound) => continue,
                Err(cause) => return Err(cause),
            };
            let lacks = match trace_format::parse(&text) {
                Some(fields) => tracepoint.lacks(&fields),
                None => vec!["no format that is understood".to_owned()],
            };
            if !lacks.is_empty() {
                return Err(Cause::Refused { why: format!("{name} has {}", lacks.join(", ")).into() });
            }
            have.push(Have { name, need: wanted.need });
            found = true;
        }
        if !found && wanted.need == Need::Always {
            let since = tracepoint.since.unwrap_or("or built without it");
            return Err(Cause::Unsupported { since: format!("{}: {since}", tracepoint.names[0]).into() });
        }
    }
    Ok(have)
}

/// A tracepoint of the part that this kernel has.
#[derive(Clone, Copy, Debug)]
struct Have {
    /// `GROUP/NAME`.
    name: &'static str,
    need: Need,
}

/// Selects the programs on functions that are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Functions {
    All,
    /// Programs on functions that every kernel has.
    Needed,
    LeftOut,
}

/// Target of a program, by its section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target<'a> {
    /// `tp_btf/NAME`, `raw_tp/NAME`: a tracepoint, whose arguments it reads.
    Tracepoint(&'a str),
    /// `fentry/NAME`, `fexit/NAME`: a function.
    Function(&'a str),
}

impl Target<'_> {
    fn of(section: &str) -> Option<Target<'_>> {
        match section.split_once('/')? {
            ("tp_btf" | "raw_tp", name) => Some(Target::Tracepoint(name)),
            ("fentry" | "fexit", name) => Some(Target::Function(name)),
            _ => None,
        }
    }

    /// Returns whether this kernel has the target and no better one.
    fn is_wanted(self, part: &Part, have: &[Have], functions: Functions) -> bool {
        // The function on folios replaced that on pages with the tracepoint (5.18), or a little earlier (5.16).
        let is_new = || have.iter().any(|one| one.name == "writeback/writeback_dirty_folio");
        let mut wanted =
            have.iter().filter(|one| one.need != Need::WithoutFunctions || functions == Functions::LeftOut);
        match self {
            Target::Tracepoint(name) => wanted.any(|one| one.name.rsplit('/').next() == Some(name)),
            Target::Function(name) => match part.optional.0.iter().position(|one| *one == name) {
                Some(at) => functions == Functions::All && (at == 0) == is_new(),
                None => functions != Functions::LeftOut,
            },
        }
    }
}

/// Excludes the programs whose target this kernel lacks.
fn leave_out(object: &mut OpenObject, part: &Part, have: &[Have], functions: Functions) {
    for mut program in object.progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        program.set_autoload(Target::of(&section).is_some_and(|target| target.is_wanted(part, have, functions)));
    }
}

/// Attaches the loaded programs that are wanted by name.
fn attach_all(root: &HostRoot, object: &Object, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<Link>, Cause> {
    let is_wanted = |program: &ProgramMut<'_>| program.autoload() && is_wanted(&program.name().to_string_lossy());
    let wanted = object.progs_mut().filter(is_wanted);
    wanted.map(|program| program.attach().map_err(|error| failed(root, &error))).collect()
}

const EPERM: i32 = 1;
const ENOMEM: i32 = 12;

/// Converts an error of libbpf to a cause. The error has its number only in its text.
fn failed(root: &HostRoot, error: &libbpf_rs::Error) -> Cause {
    let text = format!("{error:?}");
    let errno = text.split("os error ").nth(1).and_then(|rest| rest.split(')').next()?.parse().ok());
    refused(root, errno, &error.to_string())
}

/// Returns the cause for an error number. Without a known number the cause is libbpf's last message.
fn refused(root: &HostRoot, errno: Option<i32>, text: &str) -> Cause {
    match errno {
        Some(EPERM) => Cause::PermissionDenied { need: needed(root, is_memlock_limited()).into() },
        Some(ENOMEM) => Cause::Exhausted { what: "kernel memory for the tracer's tables".into() },
        _ => Cause::Refused { why: heard().pop().unwrap_or_else(|| text.to_owned()).into() },
    }
}

/// Returns the permission that is missing after EPERM. Before 5.11 the kernel also returns EPERM when the tables exceed
/// RLIMIT_MEMLOCK. libbpf raises that limit if it may.
fn needed(root: &HostRoot, is_memlock_limited: bool) -> &'static str {
    if is_confidential(root) {
        "a kernel not locked down for confidentiality"
    } else if is_memlock_limited && permissions(root).is_ok() {
        "more locked memory; run ulimit -l unlimited as root"
    } else {
        RUN_AS_ROOT
    }
}

fn is_memlock_limited() -> bool {
    getrlimit(Resource::Memlock).current.is_some()
}

fn is_confidential(root: &HostRoot) -> bool {
    let modes = root.read("/sys/kernel/security/lockdown", SMALL).unwrap_or_default();
    modes.windows(17).any(|word| word == b"[confidentiality]")
}

/// Keeps messages that libbpf would print.
fn listen(_: PrintLevel, message: String) {
    // The verifier's log comes in one message. The reason is the line before its statistics.
    let lines = message.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("processed "));
    let empty = |line: &str| line.contains("failed to load") || line.contains("-- END PROG LOAD LOG --");
    SAID.with_borrow_mut(|said| {
        said.extend(lines.filter(|line| !empty(line)).map(str::to_owned));
        said.drain(..said.len().saturating_sub(SAID_MAX));
    });
}

/// Takes the messages of libbpf since the last call.
fn heard() -> Vec<String> {
    SAID.take()
}

#[cfg(test)]
mod tests {
    use super::super::part::PARTS;
    use super::super::specimen::Specimen;
    use super::*;
    use floodline_skip::{Need, skip};
    use std::collections::BTreeSet;
    use std::fs;

    /// Why the first part is not loaded on a made-up machine of these files.
    fn check(files: &[(&str, &str)], expect: &str) {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let root = HostRoot::at(folder.path()).unwrap();
        let loaded = Tracefs::open(&root).and_then(|tracefs| {
            Loaded::load(
                &Order { root: &root, part: PARTS[0], room: u32::MAX, may_preempt: false, types: None },
                &tracefs,
            )
        });
        assert_eq!(loaded.err().map(|cause| cause.to_string()).as_deref(), Some(expect));
    }

    #[test]
    fn what_a_kernel_lacks_is_named_before_anything_is_loaded() {
        let events = ("sys/kernel/tracing/events/enable", "0\n");
        let types = ("sys/kernel/btf/vmlinux", "");
        let format = "sys/kernel/tracing/events/writeback/balance_dirty_pages/format";
        check(&[], "tracefs is not mounted");
        check(&[events], "not in this kernel (needs one built with CONFIG_DEBUG_INFO_BTF=y)");
        check(&[events, types], "not in this kernel (writeback/balance_dirty_pages: or built without it)");
        let lacks = "refused: writeback/balance_dirty_pages has no format that is understood";
        check(&[events, types, (format, "")], lacks);
        let fields = ["limit", "setpoint", "dirty", "wb_setpoint", "bdi_dirty", "cgroup_ino"]
            .map(|name| format!("\tfield:long {name};\toffset:8;\tsize:8;\tsigned:0;\n"));
        let text = format!("\tfield:char bdi[32];\toffset:8;\tsize:32;\tsigned:0;\n{}", fields.concat());
        check(&[events, types, (format, &text)], "refused: writeback/balance_dirty_pages has no field pause");
    }

    /// Programs of the part of bytes that are loaded where there are these tracepoints.
    fn chosen(tracepoints: &[&'static str], functions: Functions) -> BTreeSet<String> {
        let part = PARTS.iter().find(|part| part.name == "bytes").unwrap();
        let of = |name: &&'static str| {
            let wanted = part.tracepoints.iter().find(|one| one.tracepoint.names.contains(name)).unwrap();
            Have { name, need: wanted.need }
        };
        let mut object = ObjectBuilder::default().open_memory(part.object).unwrap();
        leave_out(&mut object, part, &tracepoints.iter().map(of).collect::<Vec<_>>(), functions);
        let programs = object.progs().filter(|program| program.autoload());
        programs.map(|program| program.name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn programs_are_chosen_by_what_a_kernel_has() {
        let always = ["", "_spare1", "_spare2"].map(|end| format!("on_block_bio_queue{end}"));
        let syncs = ["on_fsync", "on_sync", "on_sync_filesystem"];
        let calls = if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            &["on_fsync_call", "on_fdatasync_call"][..]
        } else {
            &[]
        };
        let waits: Vec<String> = [&syncs[..], calls]
            .concat()
            .into_iter()
            .flat_map(|name| [name.to_owned(), format!("{name}_done")])
            .collect();
        let waits: Vec<&str> = waits.iter().map(String::as_str).collect();
        let check = |tracepoints: &[&'static str], functions, programs: &[&[&str]]| {
            let expect = programs.concat().into_iter().map(str::to_owned).chain(always.clone()).collect();
            assert_eq!(chosen(tracepoints, functions), expect);
        };
        let ext4 = ["ext4/ext4_sync_file_enter", "ext4/ext4_sync_file_exit", "ext4/ext4_journalled_write_end"];
        let of_ext4 = ["on_ext4_sync_file", "on_ext4_sync_file_done", "on_journalled_write"];
        let new = ["block/block_bio_queue", "writeback/writeback_dirty_folio"];
        let old = ["block/block_bio_queue", "writeback/writeback_dirty_page"];
        let all = [&new[..], &ext4].concat();
        check(&all, Functions::All, &[&waits, &["on_cancelled_folio", "on_dirty_folio", "on_journalled_write"]]);
        check(&all, Functions::Needed, &[&waits, &["on_dirty_folio", "on_journalled_write"]]);
        check(&all, Functions::LeftOut, &[&of_ext4, &["on_dirty_folio"]]);
        check(&old, Functions::All, &[&waits, &["on_cancelled_page", "on_dirty_page"]]);
        check(&old, Functions::Needed, &[&waits, &["on_dirty_page"]]);
        check(&new, Functions::LeftOut, &[&["on_dirty_folio"]]);
    }

    #[test]
    fn an_excerpt_of_the_kernels_types_is_enough_for_every_part() {
        let root = HostRoot::live().unwrap();
        let tracefs = Tracefs::open(&root).ok().filter(|_| permissions(&root).is_ok());
        let types = Excerpt::of(&root, PARTS.iter().map(|part| part.object));
        let (Some(tracefs), Some(types)) = (tracefs, types) else {
            return skip(Need::Trace, "nothing may be traced here");
        };
        libbpf_rs::set_print(None);
        for part in PARTS {
            let Ok(have) = tracepoints(&tracefs, part) else { continue };
            let load = |types| {
                let order = Order { root: &root, part, room: 64, may_preempt: true, types };
                Loaded::with_functions_or_without(&order, &have).map(|loaded| loaded.object.progs().count())
            };
            assert_eq!(load(Some(&types)), load(None), "{}", part.name);
        }
    }

    #[test]
    fn error_numbers_mean_something() {
        let folder = tempfile::tempdir().unwrap();
        let root = HostRoot::at(folder.path()).unwrap();
        let check = |errno, expect: &str| assert_eq!(refused(&root, errno, "text").to_string(), expect);
        check(Some(EPERM), "permission denied (needs CAP_BPF and CAP_PERFMON; run as root)");
        let nothing = "CAP_BPF and CAP_PERFMON; run as root";
        assert_eq!((needed(&root, false), needed(&root, true)), (nothing, nothing));
        fs::create_dir_all(folder.path().join("proc/self")).unwrap();
        fs::write(folder.path().join("proc/self/status"), "CapEff:\t000000c000000000\n").unwrap();
        let locked = "more locked memory; run ulimit -l unlimited as root";
        assert_eq!((needed(&root, false), needed(&root, true)), (nothing, locked));
        check(Some(ENOMEM), "ran out of kernel memory for the tracer's tables");
        check(None, "refused: text");
        listen(PrintLevel::Warn, "libbpf: prog 'x': BEGIN\nR1 off=72 disallowed\nprocessed 9 insns\n".into());
        listen(PrintLevel::Warn, "libbpf: failed to load object 'y'\n".into());
        std::thread::spawn(|| drop(heard())).join().unwrap(); // as another thread that loads programs does
        check(Some(22), "refused: R1 off=72 disallowed");
        fs::create_dir_all(folder.path().join("sys/kernel/security")).unwrap();
        fs::write(folder.path().join("sys/kernel/security/lockdown"), "none integrity [confidentiality]\n").unwrap();
        check(Some(EPERM), "permission denied (needs a kernel not locked down for confidentiality)");
    }

    #[test]
    fn what_programs_and_reader_share_is_laid_out_alike() {
        let control = Specimen::of(PARTS[0].object, "control");
        let (min, max) = (control.number("machine_freerun_min"), control.number("machine_freerun_max"));
        let shared = Control { epoch: 1, shed: 2, machine_freerun: Some((min, max)) }.shared();
        assert_eq!((control.number("epoch"), control.number("shed"), control.number("page_kib")), (1, 2, 5));
        assert_eq!(layout::bytes(&shared)[..24], control.bytes[..24]);
        assert_eq!(layout::bytes(&shared).len(), control.bytes.len());
        let counted = Specimen::of(PARTS[0].object, "counted");
        let expect = Counted { runs: 1, dropped: 2, timed: 3, timed_ns: 4, taken: 5 };
        assert_eq!(layout::read::<Counted>(&counted.bytes), expect);
    }

    /// Bytes of a section of a 64-bit ELF file.
    fn section_size(object: &[u8], wanted: &[u8]) -> u64 {
        let number = |at: usize, length: usize| {
            object[at..at + length].iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte))
        };
        let headers = (0..number(0x3c, 2)).map(|index| (number(0x28, 8) + index * 0x40) as usize);
        let headers: Vec<usize> = headers.collect();
        let names = number(headers[number(0x3e, 2) as usize] + 0x18, 8);
        let is_it = |header: &&usize| object[(names + number(**header, 4)) as usize..].starts_with(wanted);
        headers.iter().find(is_it).map_or(0, |header| number(header + 0x20, 8))
    }

    #[test]
    fn programs_have_no_functions_of_their_own_with_which_old_kernels_die_of_a_fault() {
        for part in PARTS {
            assert_eq!(section_size(part.object, b".text\0"), 0, "{}", part.name);
            assert!(section_size(part.object, b"license\0") > 0, "{}", part.name);
        }
    }

    #[test]
    fn a_table_that_user_space_does_not_clear_is_bounded_by_itself() {
        // What programs put in for a while and take out themselves, and what readers clear.
        let taken_out = ["rounds", "waiting", "syncing"];
        let cleared = [
            &[
                layout::PAUSES.table(),
                layout::FLUSHES.table(),
                layout::DIRTIED.table(),
                layout::DIRTIED_UNNAMED.table(),
            ],
            &[layout::QUEUED.table(), layout::QUEUED_UNNAMED.table(), layout::CANCELLED.table(), layout::SLOW.table()],
            &[
                layout::CANCELLED_UNNAMED.table(),
                layout::WAITED.table(),
                layout::SWITCHES.table(),
                layout::FOREIGN.table(),
            ],
        ];
        let more = [layout::FOREIGN_FLUSHES.table(), layout::REMOVALS.table()];
        let cleared: BTreeSet<&str> = cleared.into_iter().flatten().chain(&more).map(|table| table.name).collect();
        for part in PARTS {
            let object = ObjectBuilder::default().open_memory(part.object).unwrap();
            let tables = object.maps().filter(|map| map.map_type() == libbpf_rs::MapType::Hash);
            for name in tables.map(|map| map.name().to_string_lossy().into_owned()) {
                assert!(cleared.contains(name.as_str()) || taken_out.contains(&name.as_str()), "{name} only grows");
            }
        }
    }

    #[test]
    fn every_part_has_its_own_name_and_source_and_knows_its_tables() {
        for part in PARTS {
            let object = ObjectBuilder::default().open_memory(part.object).unwrap();
            let same = PARTS.iter().filter(|other| other.name == part.name || other.source == part.source);
            assert_eq!(same.count(), 1, "{}", part.name);
            for table in part.tables {
                let map = object.maps().find(|map| map.name() == table.name).unwrap();
                let sizes = (map.key_size() as usize, map.value_size() as usize);
                assert_eq!(sizes, (table.key, table.entry), "{}", table.name);
                assert!(table.key >= 4 && table.entry > 0, "{}", table.name);
            }
        }
    }
}
