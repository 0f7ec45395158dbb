// SPDX-License-Identifier: MIT OR Apache-2.0
//! A fifth group of kinds, of shapes that the groups before it do not have: thumbnails, clones, spills, images of guests,
//! mirrors, encrypted disks, saves by renaming. They were written down and committed before any was scored. The comment of
//! each kind is what arithmetic says of its change; the effect is measured. A limit is the ratio of what can be dirtied,
//! writers are paused from the middle between both limits on. `<N>` is a number that differs from host to host.

use super::unseen::Unseen;

/// Every kind of the group.
pub(super) const FIFTH: &[Unseen] = &[
    // Suffer.
    Unseen {
        // 20 % of 192 MiB are 38 MiB. Four workers write 61 MiB of thumbnails each: 8.5 s of the disk every 16 s.
        name: "fifth-thumbnails-in-boxes",
        kernel: "6.12.117",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.data = { size = "16 GiB", write_bandwidth = "<30> MB/s", read_bandwidth = "<30> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."thumbs/worker{i}" = { instances = 4, memory_max = "192 MiB" }
workload.seed = <seed>
workload.duration = "42s"
workload.tasks.worker = { cgroup = "thumbs/worker{i}", stagger = "600ms", steps = [{ repeat = { every = "16s", steps = [{ create_files = { file = "/data/t{i}/{d}/{n}", files = <1300>, files_per_dir = 100, size = "48 KiB", rate = "900/s" } }] } }] }
"#,
    },
    Unseen {
        // 20 % of 192 MiB are 38 MiB. Two clones write 110 MiB each: 6.8 s of the disk every 18 s.
        name: "fifth-clones-of-a-database",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.data = { size = "16 GiB", write_bandwidth = "<34> MB/s", read_bandwidth = "<34> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."clone{i}" = { instances = 2, memory_max = "192 MiB" }
workload.seed = <seed>
workload.duration = "46s"
workload.tasks.clone = { cgroup = "clone{i}", stagger = "3s", steps = [{ repeat = { every = "18s", steps = [{ write = { file = "/data/base{i}", block = "1 MiB", total = "<110> MiB", truncate = true } }, { write = { file = "/data/label{i}", count = 1, truncate = true } }, { fsync = { file = "/data/label{i}" } }] } }] }
"#,
    },
    Unseen {
        // The limit falls from 600 MiB to 22 MiB. Three threads spill 45 MiB each: 3.2 s of the disk every 14 s.
        name: "fifth-spills-lose-their-memory",
        kernel: "6.1.192",
        change: &["cgroup/sort/memory.max=112M"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.data = { size = "16 GiB", write_bandwidth = "<44> MB/s", read_bandwidth = "<44> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.sort = { memory_max = "3 GiB" }
workload.seed = <seed>
workload.duration = "46s"
workload.tasks.sort = { cgroup = "sort", steps = [{ repeat = { every = "14s", steps = [{ parallel = { branches = [[{ write = { file = "/data/spill0", block = "256 KiB", total = "<45> MiB", truncate = true } }], [{ write = { file = "/data/spill1", block = "256 KiB", total = "<45> MiB", truncate = true } }], [{ write = { file = "/data/spill2", block = "256 KiB", total = "<45> MiB", truncate = true } }]] } }, { burn = { for = "500ms" } }] } }] }
"#,
    },
    Unseen {
        // 96 MiB of 32 GiB are 0.3 %: 0.8 MiB of 256 MiB. 112 pages a second of a file of 8 MiB are dirtied again.
        name: "fifth-maps-on-a-wide-host",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "32 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.sysctl.vm = { dirty_bytes = "96 MiB", dirty_background_bytes = "48 MiB" }
machine.devices.data = { size = "16 GiB", write_bandwidth = "<120> MB/s", read_bandwidth = "<120> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."maps/lmdb{i}" = { instances = 5, memory_max = "256 MiB" }
workload.seed = <seed>
workload.duration = "32s"
workload.settle = "6s"
workload.tasks.lmdb = { cgroup = "maps/lmdb{i}", setup = [{ write = { file = "/data/lmdb{i}", block = "1 MiB", total = "8 MiB" } }, { fsync = { file = "/data/lmdb{i}" } }], steps = [{ mmap_store = { file = "/data/lmdb{i}", size = "8 MiB", pages = <14>, rate = "<8>/s" } }] }
"#,
    },
    Unseen {
        // The limit falls from 1.7 GiB to 0.27 GiB. Two guests write 210 MiB each: 7 s of the disk beyond it every 26 s.
        name: "fifth-images-on-a-smaller-host",
        kernel: "6.12.117",
        change: &["memory=2G"],
        scenario: r#"
machine.memory = "12 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_ratio = 15, dirty_background_ratio = 5 }
machine.devices.data = { size = "16 GiB", write_bandwidth = "<32> MB/s", read_bandwidth = "<32> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
workload.seed = <seed>
workload.duration = "56s"
workload.tasks.guest = { instances = 2, stagger = "1s", steps = [{ repeat = { every = "26s", steps = [{ write = { file = "/data/image{j}", order = "random", size = "500 MiB", block = "64 KiB", total = "<210> MiB" } }] } }] }
"#,
    },
    Unseen {
        // The limit falls to 4 MiB. Ten collectors append 7 MiB each: 1.7 s of the disk every 4 s.
        name: "fifth-collectors-to-four-megabytes",
        kernel: "7.2.13",
        change: &["vm.dirty_bytes=4194304", "vm.dirty_background_bytes=2097152"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.data = { size = "16 GiB", write_bandwidth = "<42> MB/s", read_bandwidth = "<42> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.collect = { memory_max = "4 GiB" }
workload.seed = <seed>
workload.duration = "38s"
workload.tasks.collect = { cgroup = "collect", instances = 10, steps = [{ repeat = { every = "4s", steps = [{ write = { file = "/data/part{j}", order = "append", block = "64 KiB", total = "<7> MiB" } }] } }] }
"#,
    },
    Unseen {
        // Before, syncfs finds 6 MiB: 0.3 s. After, it finds what was written for 13 s: 11 MB/s, 6 s of the disk.
        name: "fifth-syncfs-after-a-larger-ratio",
        kernel: "5.10.223",
        change: &["vm.dirty_ratio=60", "vm.dirty_background_ratio=50"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_bytes = "24 MiB", dirty_background_bytes = "6 MiB" }
machine.devices.data = { size = "16 GiB", write_bandwidth = "<24> MB/s", read_bandwidth = "<24> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.backup = {}
workload.seed = <seed>
workload.duration = "60s"
workload.tasks.stream = { steps = [{ write = { file = "/data/stream", order = "append", block = "64 KiB", rate = "<11> MB/s" } }] }
workload.tasks.freeze = { cgroup = "backup", steps = [{ repeat = { every = "20s", steps = [{ sleep = { for = "13s" } }, { syncfs = { path = "/data" } }] } }] }
"#,
    },
    Unseen {
        // The limit falls from 570 MiB to 38 MiB. Three exports write 60 MiB each: 7 s of the disk every 16 s.
        name: "fifth-exports-to-two-percent",
        kernel: "6.12.117",
        change: &["vm.dirty_ratio=2", "vm.dirty_background_ratio=1"],
        scenario: r#"
machine.memory = "2 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_ratio = 30, dirty_background_ratio = 15 }
machine.devices.data = { size = "16 GiB", write_bandwidth = "<27> MB/s", read_bandwidth = "<27> MB/s" }
machine.mounts."/data" = { type = "btrfs", device = "data" }
workload.seed = <seed>
workload.duration = "50s"
workload.tasks.export = { instances = 3, stagger = "500ms", steps = [{ repeat = { every = "16s", steps = [{ write = { file = "/data/export{j}", block = "128 KiB", total = "<60> MiB", truncate = true } }] } }] }
"#,
    },
    Unseen {
        // The limit falls to 16 MiB. A copy writes 130 MiB to both disks: 3.5 s of them every 16 s.
        name: "fifth-copies-on-a-mirror",
        kernel: "6.1.192",
        change: &["vm.dirty_bytes=16777216", "vm.dirty_background_bytes=8388608"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.left = { size = "16 GiB", write_bandwidth = "<38> MB/s", read_bandwidth = "<38> MB/s" }
machine.devices.right = { size = "16 GiB", write_bandwidth = "<38> MB/s", read_bandwidth = "<38> MB/s" }
machine.devices.mirror = { backing = { raid1 = { members = ["left", "right"] } } }
machine.mounts."/data" = { type = "xfs", device = "mirror" }
workload.seed = <seed>
workload.duration = "50s"
workload.tasks.copy = { setup = [{ write = { file = "/data/source", block = "1 MiB", total = "170 MiB" } }, { fsync = { file = "/data/source" } }], steps = [{ repeat = { every = "16s", steps = [{ read = { file = "/data/source", block = "1 MiB", total = "160 MiB" } }, { write = { file = "/data/copy", block = "128 KiB", total = "<130> MiB", truncate = true } }] } }] }
"#,
    },
    // Tight.
    Unseen {
        // 20 % and 10 % of 384 MiB: paused from 57 MiB on. 250 photographs of 200 KiB are 49 MiB.
        name: "fifth-photographs-near-their-limit",
        kernel: "6.12.117",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.devices.data = { size = "16 GiB", write_bandwidth = "<60> MB/s", read_bandwidth = "<60> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."album{i}" = { instances = 2, memory_max = "384 MiB" }
workload.seed = <seed>
workload.duration = "46s"
workload.tasks.import = { cgroup = "album{i}", stagger = "6s", steps = [{ repeat = { every = "14s", steps = [{ create_files = { file = "/data/a{i}/{d}/{n}", files = <250>, files_per_dir = 50, size = "200 KiB", rate = "<400>/s" } }] } }] }
"#,
    },
    Unseen {
        // 30 % and 10 % of 192 MiB: paused from 38 MiB on. A slice writes 36 MiB at 70 MB/s.
        name: "fifth-slices-between-the-limits",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.sysctl.vm = { dirty_ratio = 30, dirty_background_ratio = 10 }
machine.devices.data = { size = "16 GiB", write_bandwidth = "<50> MB/s", read_bandwidth = "<50> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."slice{i}" = { instances = 3, memory_max = "192 MiB" }
workload.seed = <seed>
workload.duration = "42s"
workload.tasks.slice = { cgroup = "slice{i}", stagger = "3300ms", steps = [{ repeat = { every = "10s", steps = [{ write = { file = "/data/slice{i}", block = "128 KiB", total = "<36> MiB", rate = "<70> MB/s", truncate = true } }] } }] }
"#,
    },
    Unseen {
        // 8 % and 4 % of 6 GiB: paused from about 340 MiB on. A dump writes 330 MiB.
        name: "fifth-dumps-on-half-a-host",
        kernel: "6.1.192",
        change: &["memory=6G"],
        scenario: r#"
machine.memory = "12 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_ratio = 8, dirty_background_ratio = 4 }
machine.devices.data = { size = "16 GiB", write_bandwidth = "<48> MB/s", read_bandwidth = "<48> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.dump = {}
workload.seed = <seed>
workload.duration = "52s"
workload.tasks.dump = { cgroup = "dump", steps = [{ repeat = { every = "22s", steps = [{ write = { file = "/data/dump", block = "256 KiB", total = "<330> MiB", truncate = true } }] } }] }
workload.tasks.lock = { steps = [{ repeat = { every = "3s", steps = [{ write = { file = "/data/lock", count = 1, truncate = true } }, { fsync = { file = "/data/lock" } }] } }] }
"#,
    },
    Unseen {
        // 96 MiB and 48 MiB: paused from 72 MiB on. Two compilers write 550 objects of 60 KiB each: 64 MiB.
        name: "fifth-objects-near-the-bytes",
        kernel: "5.10.223",
        change: &["vm.dirty_bytes=100663296", "vm.dirty_background_bytes=50331648"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<50> MB/s", read_bandwidth = "<50> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."build{i}" = { instances = 2, memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "42s"
workload.tasks.compile = { cgroup = "build{i}", steps = [{ repeat = { every = "12s", steps = [{ create_files = { file = "/data/o{i}/{d}/{n}", files = <550>, files_per_dir = 55, size = "60 KiB", rate = "<800>/s" } }, { burn = { for = "2s" } }] } }] }
"#,
    },
    Unseen {
        // Before, a burst of 120 MiB waits 1.5 s for the disk. After, it waits for nothing, and age writes two of them at
        // once: 6 s of the disk, behind which a save waits.
        name: "fifth-saves-beside-bursts",
        kernel: "7.2.13",
        change: &["vm.dirty_ratio=40", "vm.dirty_background_ratio=20"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_bytes = "64 MiB", dirty_background_bytes = "16 MiB" }
machine.devices.data = { size = "16 GiB", write_bandwidth = "<40> MB/s", read_bandwidth = "<40> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
workload.seed = <seed>
workload.duration = "64s"
workload.tasks.burst = { steps = [{ repeat = { every = "15s", steps = [{ write = { file = "/data/burst", order = "append", block = "256 KiB", total = "<120> MiB" } }] } }] }
workload.tasks.editor = { steps = [{ repeat = { every = "2s", steps = [{ write = { file = "/data/draft.tmp", count = 2, truncate = true } }, { fsync = { file = "/data/draft.tmp" } }, { close = { file = "/data/draft.tmp" } }, { rename = { from = "/data/draft.tmp", to = "/data/draft" } }] } }] }
"#,
    },
    Unseen {
        // 192 MiB of 8 GiB are 2.4 %: 9 MiB of 384 MiB, paused from 7 MiB on. Whole folios of the file are 6 MiB.
        name: "fifth-rings-get-folios",
        kernel: "6.1.192",
        change: &["kernel=7.2.13"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_bytes = "192 MiB", dirty_background_bytes = "96 MiB" }
machine.devices.data = { size = "16 GiB", write_bandwidth = "<80> MB/s", read_bandwidth = "<80> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."ring{i}" = { instances = 4, memory_max = "384 MiB" }
workload.seed = <seed>
workload.duration = "34s"
workload.settle = "6s"
workload.tasks.ring = { cgroup = "ring{i}", setup = [{ write = { file = "/data/ring{i}", block = "1 MiB", total = "<6> MiB" } }, { fsync = { file = "/data/ring{i}" } }], steps = [{ mmap_store = { file = "/data/ring{i}", size = "4 MiB", pages = <8>, rate = "<7>/s" } }] }
"#,
    },
    // Fine.
    Unseen {
        // 20 % of 256 MiB are 51 MiB. A receiver syncs after 64 KiB.
        name: "fifth-receivers-that-sync",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.devices.data = { size = "16 GiB", write_bandwidth = "<90> MB/s", read_bandwidth = "<90> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."receiver{i}" = { instances = 3, memory_max = "256 MiB" }
workload.seed = <seed>
workload.duration = "40s"
workload.tasks.receiver = { cgroup = "receiver{i}", steps = [{ write = { file = "/data/wal{i}", order = "append", block = "16 KiB", rate = "<40>/s", sync = { call = "fdatasync", after = 4 } } }] }
"#,
    },
    Unseen {
        // The limit falls from 3 GiB to 1.5 GiB. An export of 140 MiB fits into both.
        name: "fifth-exports-at-half-the-ratio",
        kernel: "6.12.117",
        change: &["vm.dirty_ratio=10", "vm.dirty_background_ratio=5"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 2
machine.devices.disk = { size = "16 GiB", write_bandwidth = "<60> MB/s", read_bandwidth = "<60> MB/s" }
machine.devices.vault = { backing = { crypt = { member = "disk" } } }
machine.mounts."/data" = { type = "ext4", device = "vault" }
machine.cgroups.export = {}
workload.seed = <seed>
workload.duration = "44s"
workload.tasks.export = { cgroup = "export", steps = [{ repeat = { every = "16s", steps = [{ write = { file = "/data/export", block = "512 KiB", total = "<140> MiB", truncate = true } }] } }] }
workload.tasks.line = { preset.logger = { file = "/data/lines", lines = "<80>/s" } }
"#,
    },
    Unseen {
        // A message of a spool is synced when it is there. No larger limit makes it wait.
        name: "fifth-spools-get-memory",
        kernel: "6.1.192",
        change: &["memory=16G"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<60> MB/s", read_bandwidth = "<60> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."queue{i}" = { instances = 2, memory_max = "1 GiB" }
workload.seed = <seed>
workload.duration = "40s"
workload.tasks.queue = { cgroup = "queue{i}", preset.mail = { dir = "/data/spool{i}", messages = "<6>/s", message = "16 KiB" } }
"#,
    },
];
