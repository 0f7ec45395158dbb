// SPDX-License-Identifier: MIT OR Apache-2.0
//! An eleventh group of kinds, of shapes that the groups before it do not have: limits of reads, a volume that is further away, a
//! limit of memory that is raised before snapshots, pages that are written each second on few requests, images that no
//! longer fit into the memory of the host, a farm of threads on two disks, a volume whose reads and writes share less, pushes
//! below a parent that shrinks. Of the eight kinds that suffer, six do so without a smaller budget of dirty pages. The comment of
//! each kind states the result that arithmetic expects. All kinds were committed before any was scored.
//!
//! First score, of 5 hosts of each kind: 80 hosts, 36 suffer, recall 41.7 %, false alarms 6.8 %, order of severity 0.44, none not
//! known. One kind was expected to suffer, and only one host of five does. The threads of runners with a cache disk begin the numbers
//! of their files anew in each round, so they empty and write the same files again. Each close of such a file begins its
//! writeback: the runners wait for 14 s and more before the change already, and for 2 s to 6 s more after it.

use super::unseen::Unseen;

/// Every kind of the group.
pub(super) const ELEVENTH: &[Unseen] = &[
    // Suffer.
    Unseen {
        // A backup reads 110 MiB that are not in the page cache: 1.3 s of 90 MB/s every 18 s. 5 MB/s are less than the 6.4 MB/s
        // that it needs, so it waits all the time. What it writes is on another disk and far below each limit.
        name: "eleventh-archives-read-under-a-limit",
        kernel: "6.12.117",
        change: &["machine.cgroups.backup.io_max.vda.read_bandwidth=5 MB/s"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.vda = { size = "16 GiB", write_bandwidth = "<80> MB/s", read_bandwidth = "<90> MB/s" }
machine.devices.vdb = { size = "16 GiB", write_bandwidth = "<45> MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/srv" = { type = "xfs", device = "vda" }
machine.mounts."/vault" = { type = "ext4", device = "vdb" }
machine.cgroups.backup = { memory_max = "1 GiB" }
machine.cgroups.files = {}
workload.seed = <seed>
workload.duration = "54s"
workload.tasks.backup = { cgroup = "backup", setup = [{ write = { file = "/srv/share", block = "1 MiB", total = "700 MiB" } }, { fsync = { file = "/srv/share" } }, "drop_caches"], steps = [{ repeat = { every = "18s", steps = [{ read = { file = "/srv/share", block = "256 KiB", total = "<110> MiB" } }, { write = { file = "/vault/archive", order = "append", block = "256 KiB", total = "<35> MiB" } }] } }] }
workload.tasks.files = { cgroup = "files", preset.logger = { file = "/srv/access", lines = "<30>/s" } }
"#,
    },
    Unseen {
        // Three sessions commit 11 times a second each. A commit writes and then forces the log: two requests, one after the
        // other. At 20 ms each they are 1.3 s in a second. The tables are on another disk.
        name: "eleventh-commits-on-a-far-volume",
        kernel: "5.10.223",
        change: &["machine.devices.vdb.latency=20ms"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "16 GiB", write_bandwidth = "<70> MB/s", read_bandwidth = "70 MB/s" }
machine.devices.vdb = { size = "8 GiB", write_bandwidth = "<60> MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/tables" = { type = "ext4", device = "vda" }
machine.mounts."/wal" = { type = "xfs", device = "vdb" }
machine.cgroups.db = { memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "48s"
workload.tasks.session = { cgroup = "db", instances = 3, stagger = "30ms", steps = [{ repeat = { every = "<90>ms", steps = [{ write = { file = "/wal/w{j}", order = "append", block = "8 KiB", count = 2 } }, { fdatasync = { file = "/wal/w{j}" } }] } }] }
workload.tasks.tables = { cgroup = "db", steps = [{ write = { file = "/tables/heap", order = "random", size = "200 MiB", block = "8 KiB", rate = "<50>/s" } }] }
"#,
    },
    Unseen {
        // A limit goes up, and a snapshot waits. 10 % of 96 MiB: three streams are written from 10 MiB on, and a sync of the
        // filesystem finds no more. 10 % of 6 GiB are never reached: it finds their 22 s, 105 MB, 4 s of the disk.
        name: "eleventh-limits-raised-before-snapshots",
        kernel: "6.1.192",
        change: &["cgroup/ingest/memory.max=6G"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<26> MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.ingest = { memory_max = "96 MiB" }
workload.seed = <seed>
workload.duration = "72s"
workload.tasks.ingest = { cgroup = "ingest", instances = 3, stagger = "300ms", steps = [{ write = { file = "/data/part{j}", order = "append", block = "32 KiB", rate = "<1600> kB/s" } }] }
workload.tasks.snapshot = { steps = [{ sleep = { for = "21s" } }, { repeat = { every = "22s", steps = [{ syncfs = { path = "/data" } }] } }] }
"#,
    },
    Unseen {
        // 700 updates a second fall on the 3072 pages of a table of counters. At an age of 30 s all of them are dirty: few large
        // requests, twice a minute. At an age of 1 s some 600 scattered pages are written each second: 500 requests, of which
        // the volume does 260. Mails that are synced wait behind them.
        name: "eleventh-counters-written-each-second",
        kernel: "6.12.117",
        change: &["vm.dirty_expire_centisecs=100", "vm.dirty_writeback_centisecs=100"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "60 MB/s", write_iops = "<260> IO/s", read_iops = "<260> IO/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.counters = { memory_max = "1 GiB" }
machine.cgroups.mail = { memory_max = "512 MiB" }
workload.seed = <seed>
workload.duration = "56s"
workload.tasks.counters = { cgroup = "counters", setup = [{ write = { file = "/data/counters", block = "1 MiB", total = "12 MiB" } }, { fsync = { file = "/data/counters" } }], steps = [{ write = { file = "/data/counters", order = "random", size = "12 MiB", rate = "<700>/s" } }] }
workload.tasks.mail = { cgroup = "mail", preset.mail = { dir = "/data/spool", messages = "<4>/s", message = "8 KiB" } }
"#,
    },
    Unseen {
        // Two guests read pages of their images at random, 60 a second each, beside a small journal that they sync. 2400 MiB of
        // images fit into 8 GiB. Of 2 GiB at least a quarter of the reads miss, and each of them is a seek of 13 ms: 0.4 s in a
        // second. Next to nothing is dirty.
        name: "eleventh-images-larger-than-the-host",
        kernel: "6.12.43",
        change: &["memory=2G"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.vda = { profile = "hdd-7200" }
machine.mounts."/vm" = { type = "xfs", device = "vda" }
machine.cgroups."guest{i}" = { instances = 2 }
workload.seed = <seed>
workload.duration = "50s"
workload.tasks.guest = { cgroup = "guest{i}", setup = [{ write = { file = "/vm/image{i}", block = "1 MiB", total = "1200 MiB" } }, { fsync = { file = "/vm/image{i}" } }], steps = [{ parallel = { branches = [[{ read = { file = "/vm/image{i}", order = "random", block = "16 KiB", rate = "<60>/s" } }], [{ repeat = { every = "<1000>ms", steps = [{ write = { file = "/vm/journal{i}", order = "append", count = 2 } }, { fdatasync = { file = "/vm/journal{i}" } }] } }]] } }] }
"#,
    },
    Unseen {
        // Three runners have 256 MiB: paused from 38 MiB on. One thread of each writes 52 MiB of objects, another one 30 MiB of a
        // compiler cache on a second disk, and a program of 24 MiB follows: 68 MiB of each wait, 4 s of both disks every 21 s.
        name: "eleventh-runners-with-a-cache-disk-to-v2",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 6
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "16 GiB", write_bandwidth = "<34> MB/s", read_bandwidth = "90 MB/s" }
machine.devices.vdb = { size = "16 GiB", write_bandwidth = "<22> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/builds" = { type = "ext4", device = "vda" }
machine.mounts."/ccache" = { type = "xfs", device = "vdb" }
machine.cgroups."runner{i}" = { instances = 3, memory_max = "256 MiB" }
workload.seed = <seed>
workload.duration = "60s"
workload.tasks.build = { cgroup = "runner{i}", stagger = "800ms", steps = [{ repeat = { every = "21s", steps = [{ parallel = { branches = [[{ create_files = { file = "/builds/r{i}/{d}/{n}", files = <208>, files_per_dir = 52, size = "256 KiB", rate = "100/s" } }], [{ create_files = { file = "/ccache/r{i}/{d}/{n}", files = <240>, files_per_dir = 60, size = "128 KiB", rate = "100/s" } }]] } }, { write = { file = "/builds/program{i}", block = "128 KiB", total = "24 MiB", truncate = true } }] } }] }
"#,
    },
    Unseen {
        // A broker appends 5 MB/s, and two consumers read 4 MB/s each of segments that are not in the page cache. Reads and
        // writes of the volume share 60 MB/s. Of 9 MB/s they get two thirds of what they need: consumers fall behind, and
        // the offsets that are synced each second wait for segments.
        name: "eleventh-consumers-on-a-smaller-shared-volume",
        kernel: "7.2.13",
        change: &["machine.devices.vda.bandwidth=9 MB/s"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 10, dirty_expire_centisecs = 500, dirty_writeback_centisecs = 100 }
machine.devices.vda = { size = "16 GiB", bandwidth = "<60> MB/s" }
machine.mounts."/log" = { type = "xfs", device = "vda" }
machine.cgroups.broker = { memory_max = "3 GiB" }
workload.seed = <seed>
workload.duration = "54s"
workload.tasks.append = { cgroup = "broker", steps = [{ parallel = { branches = [[{ write = { file = "/log/topic", order = "append", block = "32 KiB", rate = "<5000> kB/s" } }], [{ repeat = { every = "1s", steps = [{ write = { file = "/log/offsets", order = "append", count = 1 } }, { fdatasync = { file = "/log/offsets" } }] } }]] } }] }
workload.tasks.consume = { cgroup = "broker", instances = 2, setup = [{ write = { file = "/log/old{j}", block = "1 MiB", total = "300 MiB" } }, { fsync = { file = "/log/old{j}" } }, "drop_caches"], steps = [{ read = { file = "/log/old{j}", block = "128 KiB", rate = "<4000> kB/s" } }] }
"#,
    },
    Unseen {
        // The slice shrinks from 2 GiB to 112 MiB: paused from 17 MiB on. Three pushes of 55 MiB come at 25 MB/s below it, each
        // with a limit of 1 GiB of its own: 150 MiB wait for the disk every 17 s.
        name: "eleventh-pushes-below-a-slice-that-shrinks",
        kernel: "6.12.117",
        change: &["cgroup/registry/memory.max=112M"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.data = { size = "16 GiB", write_bandwidth = "<40> MB/s", read_bandwidth = "80 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.registry = { memory_max = "2 GiB" }
machine.cgroups."registry/push{i}" = { instances = 3, memory_max = "1 GiB" }
workload.seed = <seed>
workload.duration = "55s"
workload.tasks.push = { cgroup = "registry/push{i}", stagger = "1s", steps = [{ repeat = { every = "17s", steps = [{ write = { file = "/data/blob{i}.part", block = "64 KiB", total = "<55> MiB", rate = "25 MB/s", truncate = true } }, { close = { file = "/data/blob{i}.part" } }, { rename = { from = "/data/blob{i}.part", to = "/data/blob{i}" } }] } }] }
"#,
    },
    // Tight.
    Unseen {
        // The volume gets slower, and no task waits for it: tables of 48 MiB are not synced, and 22 MB/s write them in 2 s of 14 s.
        name: "eleventh-tables-on-a-slower-volume",
        kernel: "6.1.192",
        change: &["machine.devices.vda.write_bandwidth=22 MB/s"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.vda = { size = "16 GiB", write_bandwidth = "<80> MB/s", read_bandwidth = "80 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "vda" }
machine.cgroups.batch = { memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "52s"
workload.tasks.batch = { cgroup = "batch", steps = [{ repeat = { every = "14s", steps = [{ burn = { for = "500ms" } }, { write = { file = "/data/table", block = "128 KiB", total = "<48> MiB", truncate = true } }] } }] }
"#,
    },
    Unseen {
        // 20 % and 10 % of 320 MiB: paused from 48 MiB on. Three threads export 12 MiB each, to two disks.
        name: "eleventh-exports-of-threads-near-their-limit",
        kernel: "6.12.43",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "16 GiB", write_bandwidth = "<55> MB/s", read_bandwidth = "55 MB/s" }
machine.devices.vdb = { size = "16 GiB", write_bandwidth = "<55> MB/s", read_bandwidth = "55 MB/s" }
machine.mounts."/one" = { type = "xfs", device = "vda" }
machine.mounts."/two" = { type = "ext4", device = "vdb" }
machine.cgroups.export = { memory_max = "320 MiB" }
workload.seed = <seed>
workload.duration = "50s"
workload.tasks.export = { cgroup = "export", steps = [{ repeat = { every = "15s", steps = [{ parallel = { branches = [[{ write = { file = "/one/a", block = "64 KiB", total = "<12> MiB", rate = "8 MB/s", truncate = true } }], [{ write = { file = "/one/b", block = "64 KiB", total = "<12> MiB", rate = "8 MB/s", truncate = true } }], [{ write = { file = "/two/c", block = "64 KiB", total = "<12> MiB", rate = "8 MB/s", truncate = true } }]] } }] } }] }
"#,
    },
    Unseen {
        // 20 % and 10 % of 4 GiB: paused from some 0.5 GiB on. Two guests write 150 MiB each to images on two disks.
        name: "eleventh-guests-on-two-disks-half-the-memory",
        kernel: "5.10.223",
        change: &["memory=4G"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "16 GiB", write_bandwidth = "<50> MB/s", read_bandwidth = "90 MB/s" }
machine.devices.vdb = { size = "16 GiB", write_bandwidth = "<40> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/vm1" = { type = "xfs", device = "vda" }
machine.mounts."/vm2" = { type = "xfs", device = "vdb" }
machine.cgroups.one = {}
machine.cgroups.two = {}
workload.seed = <seed>
workload.duration = "58s"
workload.tasks.one = { cgroup = "one", steps = [{ repeat = { every = "27s", steps = [{ write = { file = "/vm1/image", order = "random", size = "1 GiB", block = "256 KiB", total = "<150> MiB" } }] } }] }
workload.tasks.two = { cgroup = "two", start = "1s", steps = [{ repeat = { every = "27s", steps = [{ write = { file = "/vm2/image", order = "random", size = "1 GiB", block = "256 KiB", total = "<150> MiB" } }] } }] }
"#,
    },
    Unseen {
        // A limit goes up a little: streams are written from 22 MiB on, not from 10. A sync of the filesystem takes half a
        // second longer, which is less than counts.
        name: "eleventh-limits-raised-a-little",
        kernel: "6.12.117",
        change: &["cgroup/ingest/memory.max=224M"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<27> MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.ingest = { memory_max = "96 MiB" }
workload.seed = <seed>
workload.duration = "70s"
workload.tasks.ingest = { cgroup = "ingest", instances = 2, stagger = "500ms", steps = [{ write = { file = "/data/part{j}", order = "append", block = "64 KiB", rate = "<2000> kB/s" } }] }
workload.tasks.snapshot = { steps = [{ sleep = { for = "18s" } }, { repeat = { every = "23s", steps = [{ syncfs = { path = "/data" } }] } }] }
"#,
    },
    // Fine.
    Unseen {
        // Sick before, and cured: each commit of two brokers takes two requests of 25 ms, and then two of 1 ms.
        name: "eleventh-quorums-on-a-nearer-volume",
        kernel: "7.2.13",
        change: &["machine.devices.vdb.latency=1ms"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.vda = { size = "16 GiB", write_bandwidth = "<70> MB/s", read_bandwidth = "70 MB/s" }
machine.devices.vdb = { size = "8 GiB", write_bandwidth = "50 MB/s", read_bandwidth = "50 MB/s", latency = "25ms" }
machine.mounts."/data" = { type = "xfs", device = "vda" }
machine.mounts."/raft" = { type = "ext4", device = "vdb" }
machine.cgroups."member{i}" = { instances = 2, memory_max = "512 MiB" }
workload.seed = <seed>
workload.duration = "46s"
workload.tasks.raft = { cgroup = "member{i}", stagger = "40ms", steps = [{ repeat = { every = "<150>ms", steps = [{ write = { file = "/raft/log{i}", order = "append", count = 1 } }, { fdatasync = { file = "/raft/log{i}" } }] } }] }
workload.tasks.log = { cgroup = "member{i}", preset.logger = { file = "/data/member{i}.log", lines = "<25>/s" } }
"#,
    },
    Unseen {
        // Two threads of a scanner read 4 MB/s each of files that are not in the page cache. A limit of 45 MB/s is far away.
        name: "eleventh-scanners-far-below-a-limit-of-reads",
        kernel: "5.10.223",
        change: &["machine.cgroups.scan.io_max.vda.read_bandwidth=45 MB/s"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 4
machine.devices.vda = { size = "16 GiB", write_bandwidth = "<80> MB/s", read_bandwidth = "<80> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "vda" }
machine.cgroups.scan = { memory_max = "512 MiB" }
machine.cgroups.share = {}
workload.seed = <seed>
workload.duration = "50s"
workload.tasks.scan = { cgroup = "scan", setup = [{ write = { file = "/data/a", block = "1 MiB", total = "300 MiB" } }, { write = { file = "/data/b", block = "1 MiB", total = "300 MiB" } }, "sync", "drop_caches"], steps = [{ parallel = { branches = [[{ read = { file = "/data/a", block = "64 KiB", rate = "<4000> kB/s" } }], [{ read = { file = "/data/b", block = "64 KiB", rate = "<4000> kB/s" } }]] } }] }
workload.tasks.share = { cgroup = "share", steps = [{ repeat = { every = "5s", steps = [{ write = { file = "/data/doc", block = "64 KiB", total = "<2> MiB", truncate = true } }] } }] }
"#,
    },
    Unseen {
        // 15 % of 768 MiB are 115 MiB. Two threads of each of four shippers buffer 7 MiB every 12 s, and a position on a second
        // disk is synced.
        name: "eleventh-shippers-of-threads-to-v2-next-kernel",
        kernel: "6.1.192",
        change: &["cgroup=v2", "kernel=7.2.13"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "16 GiB", write_bandwidth = "<90> MB/s", read_bandwidth = "90 MB/s" }
machine.devices.vdb = { size = "16 GiB", write_bandwidth = "<90> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/buffer" = { type = "ext4", device = "vda" }
machine.mounts."/state" = { type = "xfs", device = "vdb" }
machine.cgroups."ship{i}" = { instances = 4, memory_max = "768 MiB" }
workload.seed = <seed>
workload.duration = "48s"
workload.tasks.ship = { cgroup = "ship{i}", stagger = "2s", steps = [{ repeat = { every = "12s", steps = [{ parallel = { branches = [[{ write = { file = "/buffer/x{i}", block = "64 KiB", total = "<7> MiB", rate = "6 MB/s", truncate = true } }], [{ write = { file = "/buffer/y{i}", block = "64 KiB", total = "<7> MiB", rate = "6 MB/s", truncate = true } }]] } }, { write = { file = "/state/position{i}", count = 1, truncate = true } }, { fsync = { file = "/state/position{i}" } }] } }] }
"#,
    },
    Unseen {
        // Sick before, and cured: 1800 MiB of tables are read at random, 50 times a second. They do not fit into 1.5 GiB, and
        // each miss is a seek. They fit into 6 GiB.
        name: "eleventh-tables-that-fit-again",
        kernel: "6.12.117",
        change: &["memory=6G"],
        scenario: r#"
machine.memory = "1536 MiB"
machine.cpus = 2
machine.devices.vda = { profile = "hdd-7200" }
machine.mounts."/data" = { type = "ext4", device = "vda" }
machine.cgroups.db = {}
workload.seed = <seed>
workload.duration = "48s"
workload.tasks.tables = { cgroup = "db", setup = [{ write = { file = "/data/tables", block = "1 MiB", total = "1800 MiB" } }, { fsync = { file = "/data/tables" } }, { read = { file = "/data/tables", block = "1 MiB" } }], steps = [{ read = { file = "/data/tables", order = "random", block = "16 KiB", rate = "<50>/s" } }] }
workload.tasks.redo = { cgroup = "db", steps = [{ repeat = { every = "<800>ms", steps = [{ write = { file = "/data/redo", order = "append", count = 2 } }, { fdatasync = { file = "/data/redo" } }] } }] }
"#,
    },
];
