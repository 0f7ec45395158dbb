// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kinds of hosts with a planned change each: sick, tight and healthy ones, several kernels, cgroup versions 1 and 2.
//! The effect of the change is not written here: it is measured by running the host before and after it. Held-out kinds
//! decide. They were written down after the thresholds were chosen, and no threshold is tuned on them.

use std::fmt::Write;

/// Workload of a host.
#[derive(Clone, Copy, Debug)]
pub(super) enum Load {
    /// Boxes that store into mapped files: number of boxes, MiB of memory each, MiB of the file.
    Rewriters(u64, u64, u64),
    /// Boxes that write a file in bursts: boxes, MiB of memory each, MiB of a burst, MB/s of a burst.
    Bursts(u64, u64, u64, u64),
    /// Boxes that log, append and sync a little: boxes, MiB of memory each.
    Logs(u64, u64),
    /// A bulk writer beside a program that syncs: MB/s, MiB of memory of its cgroup, if it has one.
    Bulk(u64, Option<u64>),
    /// A writer without a limit of its rate, beside a program that syncs: MiB of memory of its cgroup.
    Restore(u64),
    /// A database with direct I/O.
    Database,
    /// A cgroup with many cached inodes is removed, on a filesystem with lazytime: files.
    Removed(u64),
    /// Overlays are unmounted: overlays, MiB in each.
    Overlays(u64, u64),
    /// Scattered pages of a journal on a slow disk, beside a program that syncs.
    Journal,
    /// Almost no load.
    Idle,
}

/// A kind of host and its change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// Whether it is held out and decides, rather than being used to choose thresholds.
    pub(super) held_out: bool,
    pub(super) kernel: &'static str,
    pub(super) cgroup: &'static str,
    /// Settings in force, as a table of the scenario.
    pub(super) vm: &'static str,
    /// MB/s of the disk.
    pub(super) disk: u64,
    pub(super) fs: &'static str,
    /// GiB of memory.
    pub(super) memory: u64,
    pub(super) load: Load,
    /// `KEY=VALUE` of the change.
    pub(super) change: &'static [&'static str],
}

const RATIOS: &str = "{ dirty_ratio = 20, dirty_background_ratio = 10 }";
const QUICK: &str =
    "{ dirty_ratio = 20, dirty_background_ratio = 10, dirty_expire_centisecs = 1000, dirty_writeback_centisecs = 200 }";
const SMALL: &str = "{ dirty_bytes = \"100 MiB\", dirty_background_bytes = \"50 MiB\" }";
const MIDDLE: &str = "{ dirty_bytes = \"400 MiB\", dirty_background_bytes = \"200 MiB\" }";
const V2: &[&str] = &["cgroup=v2"];
const V2_NEW: &[&str] = &["cgroup=v2", "kernel=6.12.117"];
const V1: &[&str] = &["cgroup=v1"];
const TO_6_1: &[&str] = &["kernel=6.1.192"];
const TO_6_12_43: &[&str] = &["kernel=6.12.43"];
const TO_6_12: &[&str] = &["kernel=6.12.117"];
const TO_7_2: &[&str] = &["kernel=7.2.13"];
const TO_SMALL: &[&str] = &["vm.dirty_bytes=104857600", "vm.dirty_background_bytes=52428800"];
const TO_TINY: &[&str] = &["vm.dirty_bytes=16777216", "vm.dirty_background_bytes=8388608"];
const TO_LARGE: &[&str] = &["vm.dirty_ratio=60", "vm.dirty_background_ratio=40"];
const TO_RATIOS: &[&str] = &["vm.dirty_ratio=10", "vm.dirty_background_ratio=5"];

macro_rules! kinds {
    ($($held:literal $name:literal $kernel:literal $cgroup:literal $vm:ident $disk:literal $fs:literal $memory:literal $load:expr => $change:ident;)+) => {
        /// Every kind.
        pub(super) const KINDS: &[Kind] = &[$(Kind {
            name: $name, held_out: $held, kernel: $kernel, cgroup: $cgroup, vm: $vm, disk: $disk, fs: $fs, memory: $memory,
            load: $load, change: $change,
        }),+];
    };
}

use Load::{Bulk, Bursts, Database, Idle, Journal, Logs, Overlays, Removed, Restore, Rewriters};

kinds! {
    // The move to version 2.
    false "rewriters-small-bytes" "6.12.117" "v1" SMALL 100 "xfs" 8 Rewriters(6, 128, 4) => V2;
    false "rewriters-small-bytes-old" "6.1.192" "v1" SMALL 200 "xfs" 8 Rewriters(4, 192, 6) => V2_NEW;
    false "rewriters-ratios" "6.12.117" "v1" RATIOS 100 "xfs" 8 Rewriters(6, 256, 4) => V2;
    false "rewriters-ratios-large" "6.1.192" "v1" RATIOS 150 "xfs" 16 Rewriters(5, 512, 6) => V2_NEW;
    false "rewriters-tight-ratios" "6.12.117" "v1" RATIOS 100 "xfs" 4 Rewriters(5, 48, 8) => V2;
    false "rewriters-ext4" "6.12.117" "v1" SMALL 100 "ext4" 8 Rewriters(6, 128, 4) => V2;
    false "rewriters-5-10" "5.10.223" "v1" SMALL 100 "xfs" 8 Rewriters(6, 128, 4) => V2_NEW;
    false "rewriters-5-10-stay" "5.10.223" "v1" SMALL 100 "xfs" 8 Rewriters(4, 128, 4) => V2;
    false "bursts-fit" "6.12.117" "v1" QUICK 300 "xfs" 8 Bursts(4, 512, 16, 20) => V2;
    false "bursts-fit-old" "5.10.223" "v1" QUICK 200 "ext4" 8 Bursts(5, 768, 12, 20) => V2_NEW;
    false "bursts-too-large" "6.12.117" "v1" RATIOS 20 "xfs" 8 Bursts(3, 128, 64, 200) => V2;
    false "bursts-too-large-ext4" "6.1.192" "v1" RATIOS 15 "ext4" 8 Bursts(4, 96, 48, 150) => V2_NEW;
    false "bursts-fast-disk" "6.12.117" "v1" RATIOS 400 "xfs" 8 Bursts(3, 128, 64, 100) => V2;
    false "bursts-fast-disk-small-bytes" "6.12.117" "v1" MIDDLE 400 "xfs" 8 Bursts(4, 256, 32, 60) => V2;
    false "logs" "6.12.117" "v1" RATIOS 200 "ext4" 8 Logs(5, 256) => V2;
    false "logs-small-bytes" "6.1.192" "v1" SMALL 200 "ext4" 8 Logs(6, 256) => V2_NEW;
    false "logs-xfs" "5.10.223" "v1" RATIOS 200 "xfs" 4 Logs(4, 128) => V2_NEW;
    false "bulk-in-cgroup" "6.12.117" "v1" RATIOS 42 "ext4" 4 Bulk(10, Some(512)) => V2;
    false "bulk-in-small-cgroup" "6.1.192" "v1" RATIOS 60 "ext4" 4 Bulk(20, Some(128)) => V2_NEW;
    false "restore-in-cgroup" "6.12.117" "v1" RATIOS 60 "xfs" 4 Restore(512) => V2;
    false "restore-in-cgroup-old" "5.10.223" "v1" RATIOS 60 "ext4" 4 Restore(1024) => V2_NEW;
    false "database" "6.12.117" "v1" MIDDLE 200 "xfs" 4 Database => V2;
    false "database-old" "5.10.223" "v1" RATIOS 200 "ext4" 8 Database => V2_NEW;
    false "idle" "6.12.117" "v1" RATIOS 100 "ext4" 2 Idle => V2;
    false "idle-old" "5.10.223" "v1" SMALL 50 "xfs" 4 Idle => V2_NEW;
    // Another kernel.
    false "rewriters-get-folios" "5.10.223" "v2" SMALL 100 "xfs" 8 Rewriters(6, 128, 4) => TO_6_1;
    false "rewriters-get-folios-tight" "5.10.223" "v2" MIDDLE 100 "xfs" 8 Rewriters(5, 128, 4) => TO_6_12;
    false "rewriters-ratios-new-kernel" "5.10.223" "v2" RATIOS 100 "xfs" 8 Rewriters(5, 256, 4) => TO_6_12;
    false "rewriters-sick-stay" "6.1.192" "v2" SMALL 100 "xfs" 8 Rewriters(6, 128, 4) => TO_6_12;
    false "rewriters-sick-stay-new" "6.12.117" "v2" SMALL 150 "xfs" 8 Rewriters(5, 128, 4) => TO_7_2;
    false "removed-old" "5.10.223" "v2" RATIOS 200 "xfs" 4 Removed(12000) => TO_6_12_43;
    false "removed-fixed" "5.10.223" "v2" RATIOS 200 "xfs" 4 Removed(12000) => TO_6_12;
    false "removed-sick-stay" "6.12.43" "v2" RATIOS 200 "xfs" 4 Removed(10000) => TO_6_12_43;
    false "overlays" "5.10.223" "v2" RATIOS 60 "xfs" 4 Overlays(5, 20) => TO_6_12;
    false "bursts-new-kernel" "6.1.192" "v2" QUICK 300 "xfs" 8 Bursts(4, 512, 16, 20) => TO_7_2;
    false "logs-new-kernel" "6.1.192" "v2" RATIOS 200 "ext4" 8 Logs(5, 256) => TO_7_2;
    false "bulk-new-kernel" "6.1.192" "v2" RATIOS 42 "ext4" 4 Bulk(10, None) => TO_6_12;
    false "journal-new-kernel" "5.10.223" "v2" RATIOS 2 "ext4" 2 Journal => TO_6_12;
    // Other settings.
    false "rewriters-to-small" "6.12.117" "v2" RATIOS 100 "xfs" 8 Rewriters(6, 256, 4) => TO_SMALL;
    false "rewriters-to-small-old" "6.1.192" "v2" RATIOS 100 "xfs" 8 Rewriters(5, 192, 6) => TO_SMALL;
    false "rewriters-to-ratios" "6.12.117" "v2" SMALL 100 "xfs" 8 Rewriters(6, 256, 4) => TO_RATIOS;
    false "rewriters-to-ratios-old" "6.1.192" "v2" SMALL 100 "xfs" 8 Rewriters(5, 256, 4) => TO_RATIOS;
    false "bulk-to-large" "6.12.117" "v2" SMALL 42 "ext4" 4 Bulk(30, None) => TO_LARGE;
    false "bulk-to-large-old" "6.1.192" "v1" SMALL 30 "ext4" 4 Bulk(25, None) => TO_LARGE;
    false "restore-to-large" "6.12.117" "v2" SMALL 60 "xfs" 4 Restore(2048) => TO_LARGE;
    false "restore-to-large-old" "5.10.223" "v1" SMALL 60 "ext4" 4 Restore(2048) => TO_LARGE;
    false "bursts-to-tiny" "6.12.117" "v2" RATIOS 40 "xfs" 8 Bursts(3, 512, 32, 150) => TO_TINY;
    false "bursts-to-tiny-old" "6.1.192" "v1" RATIOS 30 "ext4" 8 Bursts(3, 512, 48, 150) => TO_TINY;
    false "logs-to-small" "6.12.117" "v2" RATIOS 200 "ext4" 8 Logs(5, 512) => TO_SMALL;
    false "bulk-to-small" "6.12.117" "v1" RATIOS 42 "ext4" 4 Bulk(10, None) => TO_SMALL;
    false "bulk-to-ratios" "6.12.117" "v1" SMALL 200 "xfs" 8 Bulk(20, None) => TO_RATIOS;
    // Back to version 1, and changes that mean nothing.
    false "rewriters-back" "6.12.117" "v2" SMALL 100 "xfs" 8 Rewriters(6, 128, 4) => V1;
    false "bursts-back" "6.1.192" "v2" QUICK 300 "xfs" 8 Bursts(4, 256, 16, 20) => V1;
    false "restore-back" "6.12.117" "v2" RATIOS 40 "ext4" 8 Restore(256) => V1;
    false "nothing-changes" "6.12.117" "v2" RATIOS 200 "ext4" 8 Logs(5, 256) => V2;
    false "nothing-changes-sick" "6.12.117" "v2" SMALL 100 "xfs" 8 Rewriters(5, 128, 4) => V2_NEW;
    // Held out: written down after the thresholds, and run once for the record.
    true "held-rewriters-network-disk" "6.1.192" "v1" SMALL 60 "xfs" 16 Rewriters(8, 96, 3) => V2;
    true "held-rewriters-large-boxes" "6.12.117" "v1" SMALL 200 "xfs" 16 Rewriters(3, 1024, 8) => V2;
    true "held-rewriters-middle" "6.12.43" "v1" MIDDLE 120 "xfs" 8 Rewriters(6, 96, 6) => V2;
    true "held-rewriters-roomy" "6.1.192" "v1" RATIOS 120 "xfs" 8 Rewriters(7, 384, 3) => V2_NEW;
    true "held-rewriters-ext4-new" "6.12.117" "v2" SMALL 120 "ext4" 8 Rewriters(5, 128, 5) => TO_7_2;
    true "held-rewriters-ext4-old" "5.10.223" "v1" MIDDLE 80 "ext4" 8 Rewriters(5, 192, 5) => V2_NEW;
    true "held-rewriters-folios-roomy" "5.10.223" "v2" RATIOS 120 "xfs" 8 Rewriters(5, 512, 3) => TO_6_1;
    true "held-rewriters-folios-small" "5.10.223" "v2" SMALL 150 "xfs" 16 Rewriters(4, 96, 5) => TO_6_12;
    true "held-rewriters-set-small" "6.12.43" "v2" RATIOS 150 "xfs" 16 Rewriters(4, 320, 5) => TO_SMALL;
    true "held-rewriters-set-ratios" "6.12.43" "v2" SMALL 90 "xfs" 16 Rewriters(4, 320, 4) => TO_RATIOS;
    true "held-bursts-small" "6.12.43" "v1" QUICK 250 "ext4" 8 Bursts(6, 640, 8, 15) => V2;
    true "held-bursts-slow-disk" "6.12.117" "v1" RATIOS 25 "ext4" 4 Bursts(3, 96, 48, 120) => V2;
    true "held-bursts-new-kernel" "5.10.223" "v2" QUICK 250 "xfs" 8 Bursts(4, 640, 12, 20) => TO_6_12;
    true "held-logs-many" "6.12.43" "v1" RATIOS 250 "xfs" 16 Logs(10, 192) => V2;
    true "held-logs-tiny" "6.12.117" "v2" QUICK 150 "xfs" 8 Logs(4, 256) => TO_SMALL;
    true "held-bulk-large" "6.12.43" "v2" SMALL 50 "xfs" 8 Bulk(28, None) => TO_LARGE;
    true "held-bulk-large-fast" "6.1.192" "v2" SMALL 400 "ext4" 8 Bulk(10, None) => TO_LARGE;
    true "held-bulk-cgroup" "6.12.43" "v1" QUICK 150 "xfs" 8 Bulk(12, Some(1024)) => V2;
    true "held-restore-roomy" "6.1.192" "v1" RATIOS 80 "xfs" 8 Restore(768) => V2_NEW;
    true "held-restore-large" "6.1.192" "v2" SMALL 70 "ext4" 8 Restore(4096) => TO_LARGE;
    true "held-database" "6.1.192" "v1" QUICK 300 "xfs" 16 Database => V2_NEW;
    true "held-journal" "6.1.192" "v1" RATIOS 2 "ext4" 2 Journal => V2;
    true "held-idle" "7.2.13" "v1" SMALL 80 "ext4" 2 Idle => V2;
    true "held-overlays" "6.1.192" "v2" RATIOS 80 "xfs" 4 Overlays(4, 16) => TO_6_12;
    true "held-nothing" "6.1.192" "v2" SMALL 80 "xfs" 8 Rewriters(4, 128, 4) => V2;
}

/// A figure of one host: between 75 % and 130 % of its kind's, each from a different part of the host's number. The first
/// host has the kind's own figures.
pub(super) fn vary(host: u64, value: u64, by: u64) -> u64 {
    let percent = 75 + (host.wrapping_mul(2_654_435_761).wrapping_add(by * 40_503) >> 7) % 56;
    if host == 0 { value } else { (value * percent / 100).max(1) }
}

impl Kind {
    /// The scenario of one host of this kind. Hosts differ in numbers, rates, disks and seed.
    pub(super) fn scenario(&self, host: u64) -> String {
        let vary = |value: u64, by: u64| vary(host, value, by);
        let mut text = format!(
            "name = \"fleet\"\nsummary = \"a host of the fleet\"\n[machine]\nmemory = \"{} GiB\"\ncpus = 2\n\
             cgroup_mode = \"{}\"\nsysctl.vm = {}\n[machine.devices.data]\nsize = \"8 GiB\"\n",
            self.memory, self.cgroup, self.vm
        );
        let _ = match self.load {
            Load::Journal => {
                writeln!(text, "write_iops = \"{0} IO/s\"\nread_iops = \"{0} IO/s\"\nrotational = true", vary(30, 1))
            }
            _ => writeln!(text, "write_bandwidth = \"{0} MB/s\"\nread_bandwidth = \"{0} MB/s\"", vary(self.disk, 1)),
        };
        let options =
            if matches!(self.load, Load::Removed(_)) { "options = [\"lazytime\", \"strictatime\"]\n" } else { "" };
        let _ = write!(text, "[machine.mounts.\"/data\"]\ntype = \"{}\"\ndevice = \"data\"\n{options}", self.fs);
        self.load.write(&mut text, &vary, host);
        text
    }
}

impl Load {
    fn write(self, text: &mut String, vary: &dyn Fn(u64, u64) -> u64, seed: u64) {
        let boxes = |text: &mut String, many: u64, memory: u64| {
            let _ = writeln!(
                text,
                "[machine.cgroups.\"pods/box{{i}}\"]\ninstances = {many}\nmemory_max = \"{memory} MiB\""
            );
        };
        let workload = |text: &mut String, seconds: u64, settle: u64| {
            let _ = writeln!(text, "[workload]\nseed = {seed}\nduration = \"{seconds}s\"\nsettle = \"{settle}s\"");
        };
        let syncs = "[workload.tasks.syncs]\nsteps = [{ repeat = { every = \"500ms\", steps = [\
            { write = { file = \"/data/aof\", order = \"append\", count = 1 } }, { fdatasync = { file = \"/data/aof\" } }] } }]\n";
        match self {
            Load::Rewriters(many, memory, file) => {
                let many = vary(many, 2).max(2);
                boxes(text, many, vary(memory, 3));
                workload(text, 24, 6);
                let _ = writeln!(
                    text,
                    "[workload.tasks.prepare]\nsetup = [{{ create_files = {{ file = \"/data/journal{{n}}\", files = {many}, \
                     size = \"{file} MiB\" }} }}, \"sync\", \"drop_caches\", {{ barrier = {{ name = \"ready\" }} }}]\n\
                     [workload.tasks.writers]\ncgroup = \"pods/box{{i}}\"\nsetup = [{{ barrier = {{ name = \"ready\" }} }}, \
                     {{ read = {{ file = \"/data/journal{{i}}\", block = \"128 KiB\" }} }}]\nsteps = [{{ mmap_store = \
                     {{ file = \"/data/journal{{i}}\", size = \"{file} MiB\", pages = {}, rate = \"{}/s\" }} }}]",
                    vary(12, 4),
                    vary(8, 5)
                );
            }
            Load::Bursts(many, memory, size, rate) => {
                boxes(text, vary(many, 2).max(2), vary(memory, 3));
                workload(text, 30, 4);
                let _ = writeln!(
                    text,
                    "[workload.tasks.upload]\ncgroup = \"pods/box{{i}}\"\nstart = \"2s\"\nstagger = \"2s\"\nsteps = \
                     [{{ repeat = {{ every = \"9s\", steps = [{{ write = {{ file = \"/data/box{{i}}/upload\", block = \"128 KiB\", \
                     total = \"{} MiB\", rate = \"{} MB/s\", truncate = true }} }}] }} }}]",
                    vary(size, 4),
                    vary(rate, 5)
                );
            }
            Load::Logs(many, memory) => {
                boxes(text, vary(many, 2).max(2), vary(memory, 3));
                workload(text, 24, 4);
                let _ = writeln!(
                    text,
                    "[workload.tasks.log]\ncgroup = \"pods/box{{i}}\"\npreset.logger = {{ file = \"/data/box{{i}}/log\", lines = \
                     \"{}/s\" }}\n[workload.tasks.cache]\ncgroup = \"pods/box{{i}}\"\npreset.redis_aof = {{ file = \
                     \"/data/box{{i}}/aof\", commands = \"{}/s\" }}",
                    vary(50, 4),
                    vary(20, 5)
                );
            }
            Load::Bulk(rate, memory) => {
                if let Some(memory) = memory {
                    let _ = writeln!(text, "[machine.cgroups.batch]\nmemory_max = \"{} MiB\"", vary(memory, 3));
                }
                workload(text, 45, 4);
                let cgroup = if memory.is_some() { "cgroup = \"batch\"\n" } else { "" };
                let _ = writeln!(
                    text,
                    "[workload.tasks.writer]\n{cgroup}steps = [{{ write = {{ file = \"/data/bulk\", block = \"64 KiB\", rate = \
                     \"{} MB/s\" }} }}]\n{syncs}",
                    vary(rate, 4)
                );
            }
            Load::Restore(memory) => {
                let _ = writeln!(text, "[machine.cgroups.batch]\nmemory_max = \"{} MiB\"", vary(memory, 3));
                workload(text, 24, 4);
                let _ = writeln!(
                    text,
                    "[workload.tasks.restore]\ncgroup = \"batch\"\nsteps = [{{ write = {{ file = \"/data/restore\", block = \
                     \"256 KiB\" }} }}]\n{syncs}"
                );
            }
            Load::Database => {
                let _ = writeln!(text, "[machine.cgroups.database]\nmemory_max = \"{} MiB\"", vary(2048, 3));
                workload(text, 24, 4);
                let _ = writeln!(
                    text,
                    "[workload.tasks.database]\ncgroup = \"database\"\npreset.database = {{ data = \"/data/tables\", log = \
                     \"/data/redo\", size = \"256 MiB\", reads = \"{}/s\", commits = \"{}/s\", flushes = \"40/s\", direct = true }}",
                    vary(100, 4),
                    vary(20, 5)
                );
            }
            Load::Removed(files) => {
                let files = vary(files, 4);
                let _ = writeln!(
                    text,
                    "[machine.cgroups.slice]\n[machine.cgroups.\"slice/oneshot\"]\n[workload]\nseed = {seed}\n\
                     [workload.tasks.oneshot]\ncgroup = \"slice/oneshot\"\nsteps = [{{ create_files = {{ file = \
                     \"/data/cache/{{d}}/{{n}}\", files = {files}, files_per_dir = 500, size = \"1 KiB\" }} }}]\n\
                     [workload.tasks.manager]\nsteps = [{{ wait_for = {{ task = \"oneshot\" }} }}, \"sync\", {{ read = {{ file = \
                     \"/data/cache/{{d}}/{{n}}\", files = {files}, files_per_dir = 500 }} }}, {{ remove_cgroup = {{ cgroup = \
                     \"slice/oneshot\" }} }}, {{ sleep = {{ for = \"8s\" }} }}]"
                );
            }
            Load::Overlays(many, size) => {
                let many = vary(many, 2).max(2);
                let _ = writeln!(
                    text,
                    "[machine.mounts.\"/merged{{i}}\"]\ntype = \"overlay\"\noverlay = {{ lower = \"/data/lower\", upper = \
                     \"/data/upper{{i}}\", work = \"/data/work{{i}}\" }}\ninstances = {many}\n[workload]\nseed = {seed}\n\
                     [workload.tasks.containers]\ninstances = {many}\nsteps = [{{ write = {{ file = \"/merged{{j}}/data\", block = \
                     \"1 MiB\", total = \"{} MiB\" }} }}]\n[workload.tasks.teardown]\nsteps = [{{ wait_for = {{ task = \"containers\" \
                     }} }}, {{ sleep = {{ for = \"4s\" }} }}, {{ umount = {{ point = \"/merged{{n}}\", count = {many}, at_once = true \
                     }} }}]",
                    vary(size, 4)
                );
            }
            Load::Journal => {
                workload(text, 45, 4);
                let _ = writeln!(
                    text,
                    "[workload.tasks.journal]\npreset.journald_like = {{ file = \"/data/system.journal\", messages = \"{}/s\", pages = \
                     1 }}\n{syncs}",
                    vary(8, 4)
                );
            }
            Load::Idle => {
                workload(text, 20, 4);
                let _ = writeln!(
                    text,
                    "[workload.tasks.log]\npreset.logger = {{ file = \"/data/syslog\", lines = \"{}/s\" }}",
                    vary(2, 4)
                );
            }
        }
    }
}
