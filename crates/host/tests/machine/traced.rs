// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tracer on this machine, where it runs out of something: room in its tables, CPU time that it may take, the
//! process or the file that it counted for. Skipped where nothing may be traced.

#![allow(clippy::unwrap_used, reason = "tests")]

use floodline_host::plan::{Needs, Plan};
use floodline_host::trace::{Budget, Tracer};
use floodline_host::{Collector, HostRoot};
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::record::{Event, Record, What};
use floodline_record::traced::bytes::{Class, Dirtied, Submitted};
use floodline_skip::{Need, skip};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Child, Command};

/// What is recorded of `happens` by a tracer with so much room and such a budget.
fn traced(room: u32, budget: Budget, mut happens: impl FnMut(&mut dyn FnMut())) -> Option<Vec<Record>> {
    let root = HostRoot::live().unwrap();
    let facts = floodline_host::probe(&root).facts;
    let tracer = Tracer::start_within(&root, &facts, room).with_budget(budget);
    if !tracer.parts().any(|part| part == "bytes") {
        skip(Need::Trace, format_args!("{:?}", tracer.gaps()));
        return None;
    }
    let plan = Plan::for_needs(&facts, Needs::ALL);
    let mut collector = Collector::new(&root, plan).with_tracer(tracer);
    let mut records = Vec::new();
    collector.collect(&mut records);
    records.clear();
    happens(&mut || collector.collect(&mut records));
    collector.collect(&mut records);
    Some(records)
}

fn gaps(records: &[Record]) -> impl Iterator<Item = &Gap> {
    records.iter().filter_map(|record| match record {
        Record::Gap(gap) if gap.source == Source::TraceBytes => Some(gap),
        _ => None,
    })
}

/// What some processes made dirty. Other tests of this process write at the same time, and so do other programs of the
/// machine: only the numbers of processes tell them apart.
fn rows<'a>(records: &'a [Record], pids: &'a [u32]) -> impl Iterator<Item = &'a Dirtied> {
    records.iter().filter_map(|record| match record {
        Record::Event(Event { what: What::Dirtied(row), .. }) if pids.contains(&row.who.pid) => Some(row),
        _ => None,
    })
}

/// Bytes that some processes made dirty.
fn dirtied(records: &[Record], pids: &[u32]) -> u64 {
    rows(records, pids).map(|row| row.bytes.0).sum()
}

/// Runs processes one after the other, each of which writes its own file. Returns their numbers.
fn processes_that_write(folder: &Path, count: u32) -> Vec<u32> {
    let run = |number: u32| {
        let file = std::fs::File::create(folder.join(number.to_string())).unwrap();
        let mut head = Command::new("head").args(["-c", "12288", "/dev/zero"]).stdout(file).spawn().unwrap();
        assert!(head.wait().unwrap().success());
        head.id()
    };
    (0..count).map(run).collect()
}

/// Starts a shell that runs a script in a folder.
fn shell(folder: &Path, script: &str, args: &[u64]) -> Child {
    let args = args.iter().map(u64::to_string);
    Command::new("sh").args(["-c", script, "sh"]).args(args).current_dir(folder).spawn().unwrap()
}

/// Waits for a process, and takes a sample after the other until it has ended.
fn sample_until_ended(child: &mut Child, look: &mut dyn FnMut()) {
    let status = loop {
        look();
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
    };
    assert!(status.success());
}

/// On a disk: a filesystem in memory has no writeback.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Readings without a pause between them cost more than one core on a busy machine.
const ENOUGH: Budget = Budget(f64::INFINITY);

#[test]
fn a_process_and_a_file_that_are_gone_have_their_bytes_and_their_name() {
    let folder = folder();
    let mut pids = Vec::new();
    let records = traced(u32::MAX, ENOUGH, |look| {
        pids = processes_that_write(folder.path(), 7);
        (0..7).for_each(|number| std::fs::remove_file(folder.path().join(number.to_string())).unwrap());
        // A sum that moves from a CPU to the table while they are read is in neither, and the next reading has it.
        look();
    });
    let Some(records) = records else { return };
    let bytes = dirtied(&records, &pids);
    assert!(bytes >= 7 * 12288, "{bytes}");
    assert!(rows(&records, &pids).all(|row| row.who.comm == "head".into()), "{records:?}");
    assert!(gaps(&records).all(|gap| gap.detail.as_deref() != Some("events")), "{records:?}");
}

#[test]
fn what_begins_while_idle_files_are_forgotten_is_kept() {
    const FILES: u64 = 6000;
    const BYTES: u64 = 4096;
    let folder = folder();
    let mut pids = Vec::new();
    let records = traced(u32::MAX, ENOUGH, |look| {
        // More than the table keeps: each sample forgets the files that were not written since the one before.
        let script =
            "for turn in 1 2 3 4; do n=0; while [ $n -lt $1 ]; do printf %4096s x > $n; n=$((n + 1)); done; done";
        let mut writer = shell(folder.path(), script, &[FILES]);
        pids.push(writer.id());
        sample_until_ended(&mut writer, look);
    });
    let Some(records) = records else { return };
    let events: Vec<String> =
        gaps(&records).filter(|gap| gap.detail.as_deref() == Some("events")).map(ToString::to_string).collect();
    assert_eq!(events, [""; 0]);
    let (bytes, written) = (dirtied(&records, &pids), 4 * FILES * BYTES);
    assert!(bytes >= written, "{bytes} of {written}");
}

#[test]
fn files_that_are_finished_while_they_are_read_count_once() {
    const FILES: u64 = 500;
    const BYTES: u64 = 512 * 4096;
    let folder = folder();
    let mut pids = Vec::new();
    let records = traced(u32::MAX, ENOUGH, |look| {
        // Other processes remove the files, ten at a time.
        let script =
            "n=0; while [ $n -lt $1 ]; do printf %$2s x > $n; n=$((n + 1)); [ $((n % 10)) != 0 ] || rm *; done";
        let mut writer = shell(folder.path(), script, &[FILES, BYTES]);
        pids.push(writer.id());
        sample_until_ended(&mut writer, look);
    });
    let Some(records) = records else { return };
    let (bytes, written) = (dirtied(&records, &pids), FILES * BYTES);
    // Each file dirties a page of its folder too. One file that counted twice would be more than all of these.
    let folders = FILES * 4096;
    assert!(bytes >= written && bytes < written + folders + BYTES / 2, "{bytes} of {written}");
}

#[test]
fn what_finds_no_room_in_a_full_table_is_counted_and_named() {
    const ROOM: u32 = 4;
    const PROCESSES: u32 = 40;
    let folder = folder();
    let records = traced(ROOM, ENOUGH, |_| drop(processes_that_write(folder.path(), PROCESSES)));
    let Some(records) = records else { return };
    let dropped = gaps(&records).find(|gap| gap.detail.as_deref() == Some("events"));
    let dropped = dropped.unwrap_or_else(|| panic!("{records:?}"));
    assert_eq!(dropped.cause, Cause::Exhausted { what: "room in the tracer's table".into() });
    // There is room in the table with files, in the one without, and for the last of each CPU, which is read from there.
    let cpus = u32::try_from(std::thread::available_parallelism().unwrap().get()).unwrap();
    assert!(dropped.times >= u64::from(PROCESSES - 2 * ROOM - cpus.min(8)), "{dropped}");
}

#[test]
fn names_of_files_are_given_up_first_where_the_tracer_costs_too_much() {
    let folder = folder();
    let mut pids = Vec::new();
    let records = traced(u32::MAX, Budget(0.0), |look| {
        look();
        pids = processes_that_write(folder.path(), 7);
        // The second reading; the one after it has what moved from a CPU to the table meanwhile.
        look();
    });
    let Some(records) = records else { return };
    let given_up: Vec<String> = gaps(&records).map(ToString::to_string).take(2).collect();
    let expect = ["names of files", "names of files, bytes dirtied again"]
        .map(|what| format!("{} ({what}): ran out of the CPU time that the tracer may take", Source::TraceBytes));
    assert_eq!(given_up, expect);
    let bytes = dirtied(&records, &pids);
    assert!(bytes >= 7 * 12288, "{bytes}");
    assert!(rows(&records, &pids).all(|row| row.file.is_none()), "{records:?}");
}

/// What a buffer that a process hands to the kernel is made of.
#[derive(Clone, Copy, Debug)]
enum Memory {
    Anonymous,
    /// As between the processes of a database.
    Shared,
    /// As that of a virtual machine.
    MappedFile,
}

/// Writes a buffer of that memory past the page cache.
#[allow(unsafe_code, reason = "memory of a given kind has no safe form")]
fn write_directly(folder: &Path, memory: Memory, bytes: usize) -> std::io::Result<()> {
    let flags = match memory {
        Memory::Anonymous => libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        Memory::Shared => libc::MAP_SHARED | libc::MAP_ANONYMOUS,
        Memory::MappedFile => libc::MAP_SHARED,
    };
    let backing =
        std::fs::File::options().create(true).truncate(true).read(true).write(true).open(folder.join("memory"))?;
    backing.set_len(bytes as u64)?;
    let descriptor = if matches!(memory, Memory::MappedFile) { backing.as_raw_fd() } else { -1 };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the kernel chooses a free place for the new mapping.
    let begin = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, descriptor, 0) };
    assert_ne!(begin, libc::MAP_FAILED);
    // SAFETY: the mapping is that long and nothing else uses it or its file.
    let buffer = unsafe { std::slice::from_raw_parts_mut(begin.cast::<u8>(), bytes) };
    buffer.fill(7);
    let mut options = std::fs::File::options();
    let file = options.create(true).write(true).custom_flags(libc::O_DIRECT).open(folder.join("direct"))?;
    let written = file.write_at(buffer, 0)?;
    assert_eq!(written, bytes);
    // SAFETY: nothing refers to the mapping any more.
    assert_eq!(unsafe { libc::munmap(begin, bytes) }, 0);
    Ok(())
}

#[test]
fn writes_past_the_cache_are_the_process_whatever_their_memory_is() {
    let folder = folder();
    for (memory, blocks) in [(Memory::Anonymous, 1009), (Memory::Shared, 1013), (Memory::MappedFile, 1019)] {
        let bytes = blocks * 4096;
        let records = traced(u32::MAX, ENOUGH, |_| write_directly(folder.path(), memory, bytes).unwrap());
        let Some(records) = records else { return };
        let ours = |row: &&Submitted| row.who.as_ref().is_some_and(|who| who.pid == std::process::id());
        let rows = records.iter().filter_map(|record| match record {
            Record::Event(Event { what: What::Submitted(row), .. }) if row.class == Class::Direct => Some(row),
            _ => None,
        });
        // A disk that is a layer above another counts for itself.
        let of_one_disk = rows.filter(ours).map(|row| row.bytes.0).max().unwrap_or(0);
        assert_eq!(of_one_disk, bytes as u64, "{memory:?}: {records:?}");
    }
}

#[test]
fn a_file_that_was_renamed_has_its_new_name_at_the_disk() {
    const BYTES: usize = 257 * 4096;
    let folder = folder();
    let records = traced(u32::MAX, ENOUGH, |look| {
        let file = std::fs::File::create(folder.path().join("before")).unwrap();
        file.write_all_at(&[7; BYTES], 0).unwrap();
        look();
        std::fs::rename(folder.path().join("before"), folder.path().join("after")).unwrap();
        file.sync_all().unwrap();
    });
    let Some(records) = records else { return };
    let name = |path: &floodline_record::name::Name| path.to_string().rsplit('/').next().map(str::to_owned);
    let rows = records.iter().filter_map(|record| match record {
        Record::Event(Event { what: What::Submitted(row), .. }) if row.class == Class::Data => Some(row),
        _ => None,
    });
    let of = |wanted: &str| {
        let rows = rows.clone().filter(|row| {
            let path = row.file.as_ref().and_then(|file| file.path.as_ref());
            path.and_then(name).as_deref() == Some(wanted)
        });
        rows.map(|row| row.bytes.0).max().unwrap_or(0)
    };
    // The flusher may have written a part of it under its old name.
    assert!(of("after") > 0, "{records:?}");
    assert!(of("before") + of("after") >= BYTES as u64, "{records:?}");
}

#[test]
fn a_new_file_with_a_number_that_was_used_before_was_not_dirty_before() {
    const FILES: u64 = 211;
    const BYTES: u64 = 16 * 4096;
    let folder = folder();
    let script = "for n in $(seq $1); do printf %$2s x > file; rm file; done";
    let mut pids = Vec::new();
    let records = traced(u32::MAX, ENOUGH, |look| {
        let mut writer = shell(folder.path(), script, &[FILES, BYTES]);
        pids.push(writer.id());
        assert!(writer.wait().unwrap().success());
        look();
    });
    let Some(records) = records else { return };
    let (dirtied, again) =
        rows(&records, &pids).fold((0, 0), |(all, again), row| (all + row.bytes.0, again + row.redirtied.0));
    assert!(dirtied >= FILES * BYTES, "{dirtied}");
    // A table without chains errs now and then.
    assert!(again * 10 < dirtied, "{again} of {dirtied}");
}
