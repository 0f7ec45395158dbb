// SPDX-License-Identifier: MIT OR Apache-2.0
//! A ninth group of kinds, of shapes that the groups before it do not have: a setting of kilobytes that was meant as
//! megabytes, volumes that become slower, one process of several threads, rings that are written in place, files that are
//! removed while they are young, logs that are copied and cut, hosts that the change cures, a move to an older kernel. The
//! comment of each kind states the result that arithmetic expects. All kinds were committed before any was scored.
//!
//! First score, of 5 hosts of each kind: 80 hosts, 30 suffer, recall 73.3 %, false alarms 0 %, order of severity 0.25. Two
//! kinds were expected to suffer and do not. Joins wait no longer in the smaller limit. Scratch files that are written while
//! they are young cost the disk 7 MB/s, but no task waits. Parents that grow were not sick. Children of a slice with a soft
//! limit were expected to be tight, but each of them has a limit of its own.

use super::unseen::Unseen;

/// Every kind of the group.
pub(super) const NINTH: &[Unseen] = &[
    // Suffer.
    Unseen {
        // 384 KiB were meant as 384 MiB. A report of 60 MiB takes as long as the disk, and each line of a log waits.
        name: "ninth-kilobytes-meant-as-megabytes",
        kernel: "6.12.117",
        change: &["vm.dirty_bytes=393216", "vm.dirty_background_bytes=131072"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<38> MB/s", read_bandwidth = "<38> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."service{i}" = { instances = 3, memory_max = "512 MiB" }
machine.cgroups.report = { memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "45s"
workload.tasks.service = { cgroup = "service{i}", steps = [{ write = { file = "/data/service{i}", order = "append", rate = "<60>/s" } }] }
workload.tasks.report = { cgroup = "report", steps = [{ repeat = { every = "15s", steps = [{ write = { file = "/data/report", block = "128 KiB", total = "<60> MiB", truncate = true } }] } }] }
"#,
    },
    Unseen {
        // A dump of 100 MiB is synced every 20 s. It takes 2 s of the present volume, and 10 s of one of 10 MB/s.
        name: "ninth-dumps-on-a-slower-volume",
        kernel: "6.1.192",
        change: &["machine.devices.vda.write_bandwidth=10 MB/s"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.vda = { size = "16 GiB", write_bandwidth = "<48> MB/s", read_bandwidth = "<48> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "vda" }
machine.cgroups.dump = { memory_max = "3 GiB" }
workload.seed = <seed>
workload.duration = "52s"
workload.tasks.dump = { cgroup = "dump", steps = [{ repeat = { every = "20s", steps = [{ write = { file = "/data/dump", block = "256 KiB", total = "<100> MiB", truncate = true } }, { fsync = { file = "/data/dump" } }] } }] }
"#,
    },
    Unseen {
        // 20 % of 192 MiB are 38 MiB. Four threads of one process write 32 MiB each: 90 MiB wait for the disk every 18 s.
        name: "ninth-threads-of-one-process-to-v2",
        kernel: "5.10.223",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.data = { size = "16 GiB", write_bandwidth = "<35> MB/s", read_bandwidth = "<35> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.encode = { memory_max = "192 MiB" }
workload.seed = <seed>
workload.duration = "48s"
workload.tasks.encode = { cgroup = "encode", steps = [{ repeat = { every = "18s", steps = [{ burn = { for = "400ms" } }, { parallel = { branches = [[{ write = { file = "/data/a", order = "append", block = "128 KiB", total = "<32> MiB" } }], [{ write = { file = "/data/b", order = "append", block = "128 KiB", total = "<32> MiB" } }], [{ write = { file = "/data/c", order = "append", block = "128 KiB", total = "<32> MiB" } }], [{ write = { file = "/data/d", order = "append", block = "128 KiB", total = "<32> MiB" } }]] } }] } }] }
"#,
    },
    Unseen {
        // 128 MiB of 16 GiB leave 192 MiB a budget of 1.5 MiB. Eight rings of 4 MiB are written in place, 1.2 MB/s each:
        // 1 MB/s reach the disk before, when a ring is old, and nearly 10 MB/s after.
        name: "ninth-rings-in-small-shares",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=7.2.13"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.sysctl.vm = { dirty_bytes = "128 MiB", dirty_background_bytes = "64 MiB" }
machine.devices.data = { size = "16 GiB", write_bandwidth = "<70> MB/s", read_bandwidth = "<70> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."ring{i}" = { instances = 8, memory_max = "192 MiB" }
workload.seed = <seed>
workload.duration = "44s"
workload.tasks.ring = { cgroup = "ring{i}", stagger = "100ms", steps = [{ write = { file = "/data/ring{i}", size = "4 MiB", block = "16 KiB", rate = "<1200> kB/s" } }] }
"#,
    },
    Unseen {
        // Files of 512 KiB, 60 of them in 5 s, are removed after 6 s. At an age of 30 s none is written. At an age of 1 s
        // nearly all are: 8 MB/s of two boxes.
        name: "ninth-scratch-files-written-while-young",
        kernel: "6.12.117",
        change: &["vm.dirty_expire_centisecs=100", "vm.dirty_writeback_centisecs=50"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<60> MB/s", read_bandwidth = "<60> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."box{i}" = { instances = 2, memory_max = "1 GiB" }
workload.seed = <seed>
workload.duration = "46s"
workload.tasks.scratch = { cgroup = "box{i}", stagger = "3s", steps = [{ repeat = { every = "7s", steps = [{ create_files = { file = "/data/s{i}/{n}", files = 60, size = "512 KiB", rate = "<14>/s" } }, { sleep = { for = "500ms" } }, { unlink = { file = "/data/s{i}/{n}", files = 60 } }] } }] }
"#,
    },
    Unseen {
        // Two inputs of 40 MiB are read, and 130 MiB are written. 20 % of 256 MiB are 51 MiB: 80 MiB wait for the disk every
        // 19 s.
        name: "ninth-joins-in-less-memory",
        kernel: "6.12.43",
        change: &["cgroup/join/memory.max=256M"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<36> MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/data" = { type = "btrfs", device = "data" }
machine.cgroups.join = { memory_max = "3 GiB" }
workload.seed = <seed>
workload.duration = "50s"
workload.tasks.join = { cgroup = "join", setup = [{ write = { file = "/data/left", block = "1 MiB", total = "40 MiB" } }, { write = { file = "/data/right", block = "1 MiB", total = "40 MiB" } }, { fsync = { file = "/data/left" } }, { fsync = { file = "/data/right" } }], steps = [{ repeat = { every = "19s", steps = [{ read = { file = "/data/left", block = "256 KiB", total = "40 MiB" } }, { read = { file = "/data/right", block = "256 KiB", total = "40 MiB" } }, { burn = { for = "500ms" } }, { write = { file = "/data/joined", block = "256 KiB", total = "<130> MiB", truncate = true } }] } }] }
"#,
    },
    Unseen {
        // At an age of 5 s, a sync of the filesystem finds 15 MB of a stream, and takes 1 s. Without a flusher, it finds
        // all that was written in 22 s, and takes 3.5 s.
        name: "ninth-streams-synced-without-a-flusher",
        kernel: "7.2.13",
        change: &["vm.dirty_writeback_centisecs=0"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 10, dirty_expire_centisecs = 500 }
machine.devices.data = { size = "16 GiB", write_bandwidth = "<14> MB/s", read_bandwidth = "<14> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.stream = {}
workload.seed = <seed>
workload.duration = "70s"
workload.tasks.stream = { cgroup = "stream", steps = [{ write = { file = "/data/stream", order = "append", block = "64 KiB", rate = "<2200> kB/s" } }] }
workload.tasks.snapshot = { steps = [{ sleep = { for = "20s" } }, { repeat = { every = "22s", steps = [{ syncfs = { path = "/data" } }] } }] }
"#,
    },
    Unseen {
        // 20 % of 128 MiB are 25 MiB. A rotation copies a log of 45 MiB and cuts it, in three services at a time: 75 MiB
        // wait for the disk every 20 s.
        name: "ninth-logs-copied-and-cut-to-v2",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.data = { size = "16 GiB", write_bandwidth = "<30> MB/s", read_bandwidth = "<30> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."service{i}" = { instances = 3, memory_max = "128 MiB" }
workload.seed = <seed>
workload.duration = "52s"
workload.tasks.log = { cgroup = "service{i}", stagger = "400ms", steps = [{ repeat = { every = "20s", steps = [{ write = { file = "/data/log{i}", order = "append", block = "32 KiB", total = "45 MiB", rate = "<5> MB/s" } }, { read = { file = "/data/log{i}", block = "128 KiB", total = "45 MiB" } }, { write = { file = "/data/log{i}.1", block = "128 KiB", total = "<45> MiB", truncate = true } }, { truncate = { file = "/data/log{i}" } }] } }] }
"#,
    },
    // Tight.
    Unseen {
        // Paused from 150 MiB on. Two journals append 52 MiB each at the same time.
        name: "ninth-journals-near-larger-bytes",
        kernel: "7.2.13",
        change: &["vm.dirty_bytes=209715200", "vm.dirty_background_bytes=104857600"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<55> MB/s", read_bandwidth = "<55> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."journal{i}" = { instances = 2, memory_max = "3 GiB" }
workload.seed = <seed>
workload.duration = "48s"
workload.tasks.journal = { cgroup = "journal{i}", steps = [{ repeat = { every = "16s", steps = [{ write = { file = "/data/journal{i}", order = "append", block = "64 KiB", total = "<52> MiB" } }] } }] }
"#,
    },
    Unseen {
        // The soft limit of a parent: 20 % and 10 % of 600 MiB, paused from 90 MiB on. Three children write 22 MiB each.
        name: "ninth-slices-below-a-soft-limit",
        kernel: "6.12.117",
        change: &["cgroup/batch/memory.high=600M"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<45> MB/s", read_bandwidth = "<45> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.batch = { memory_max = "4 GiB" }
machine.cgroups."batch/b{i}" = { instances = 3 }
workload.seed = <seed>
workload.duration = "46s"
workload.tasks.batch = { cgroup = "batch/b{i}", steps = [{ repeat = { every = "15s", steps = [{ write = { file = "/data/b{i}", block = "128 KiB", total = "<22> MiB", truncate = true } }] } }] }
"#,
    },
    Unseen {
        // 20 % and 10 % of 2.7 GiB: paused from 0.4 GiB on. A backup writes 300 MiB in one go.
        name: "ninth-backups-on-stripes-half-the-memory",
        kernel: "5.10.223",
        change: &["memory=3G"],
        scenario: r#"
machine.memory = "6 GiB"
machine.cpus = 2
machine.devices.a = { size = "16 GiB", write_bandwidth = "<32> MB/s", read_bandwidth = "80 MB/s" }
machine.devices.b = { size = "16 GiB", write_bandwidth = "<32> MB/s", read_bandwidth = "80 MB/s" }
machine.devices.pair.backing = { raid0 = { members = ["a", "b"] } }
machine.mounts."/data" = { type = "ext4", device = "pair" }
machine.cgroups.backup = {}
workload.seed = <seed>
workload.duration = "50s"
workload.tasks.backup = { cgroup = "backup", steps = [{ repeat = { every = "23s", steps = [{ write = { file = "/data/backup", block = "1 MiB", total = "<300> MiB", truncate = true } }] } }] }
"#,
    },
    Unseen {
        // Sick before: 30 s of a stream are written at once, and a commit waits 7 s for them. After, the disk writes all the
        // time, and a commit waits for 16 MiB.
        name: "ninth-streams-cured-by-small-bytes",
        kernel: "6.12.117",
        change: &["vm.dirty_bytes=67108864", "vm.dirty_background_bytes=16777216"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<34> MB/s", read_bandwidth = "<34> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.stream = { memory_max = "4 GiB" }
workload.seed = <seed>
workload.duration = "75s"
workload.tasks.stream = { cgroup = "stream", steps = [{ write = { file = "/data/stream", order = "append", block = "64 KiB", rate = "<8> MB/s" } }] }
workload.tasks.commit = { steps = [{ repeat = { every = "1s", steps = [{ write = { file = "/data/redo", order = "append", count = 2 } }, { fdatasync = { file = "/data/redo" } }] } }] }
"#,
    },
    // Fine.
    Unseen {
        // Three boxes read an archive at random. What they write is a line of 200 bytes, 20 times a second.
        name: "ninth-readers-of-archives-to-v2",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.devices.data = { size = "16 GiB", write_bandwidth = "<80> MB/s", read_bandwidth = "<80> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."reader{i}" = { instances = 3, memory_max = "256 MiB" }
workload.seed = <seed>
workload.duration = "42s"
workload.tasks.reader = { cgroup = "reader{i}", setup = [{ write = { file = "/data/archive{i}", block = "1 MiB", total = "160 MiB" } }, { fsync = { file = "/data/archive{i}" } }], steps = [{ read = { file = "/data/archive{i}", order = "random", block = "32 KiB", rate = "<50>/s" } }] }
workload.tasks.access = { cgroup = "reader{i}", preset.logger = { file = "/data/access{i}", lines = "<20>/s", line = "200 B" } }
"#,
    },
    Unseen {
        // 30 % do not lie below the limit of 10 %, so the kernel takes half of the limit. The 5 % are that half.
        name: "ninth-background-without-effect",
        kernel: "6.1.192",
        change: &["vm.dirty_background_ratio=5"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_ratio = 10, dirty_background_ratio = 30 }
machine.devices.data = { size = "16 GiB", write_bandwidth = "<50> MB/s", read_bandwidth = "<50> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."worker{i}" = { instances = 2, memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "46s"
workload.tasks.worker = { cgroup = "worker{i}", stagger = "5s", steps = [{ repeat = { every = "15s", steps = [{ write = { file = "/data/worker{i}", block = "128 KiB", total = "<90> MiB", truncate = true } }] } }] }
"#,
    },
    Unseen {
        // Sick before, and cured: 20 % of 160 MiB are 32 MiB for two rounds of 60 MiB. 20 % of 4 GiB hold both.
        name: "ninth-parents-that-grow",
        kernel: "7.2.13",
        change: &["cgroup/apps/memory.max=4G"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<36> MB/s", read_bandwidth = "<36> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.apps = { memory_max = "160 MiB" }
machine.cgroups."apps/app{i}" = { instances = 2 }
workload.seed = <seed>
workload.duration = "50s"
workload.tasks.app = { cgroup = "apps/app{i}", stagger = "1s", steps = [{ repeat = { every = "19s", steps = [{ write = { file = "/data/app{i}", block = "128 KiB", total = "<60> MiB", truncate = true } }] } }] }
"#,
    },
    Unseen {
        // An older kernel. Each file of 32 KiB is synced before it is closed, as before.
        name: "ninth-synced-files-to-an-older-kernel",
        kernel: "6.12.43",
        change: &["kernel=5.10.223"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<60> MB/s", read_bandwidth = "<60> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."box{i}" = { instances = 2, memory_max = "256 MiB" }
workload.seed = <seed>
workload.duration = "42s"
workload.tasks.files = { cgroup = "box{i}", stagger = "700ms", steps = [{ create_files = { file = "/data/box{i}/{d}/{n}", files_per_dir = 50, size = "32 KiB", rate = "<9>/s", fsync = true } }] }
"#,
    },
];
