// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tenth group of kinds, of shapes that the groups before it do not have: threads of one process that do different work, a
//! broker on two disks, workers that share a small limit, a limit of requests, a slower member of a mirror, a second volume of
//! few requests, an older age before snapshots, indexes that no longer fit into memory, a faster volume. Of the eight kinds that
//! suffer, five do so without a smaller budget of dirty pages. The comment of each kind states the result that arithmetic
//! expects. All kinds were committed before any was scored.
//!
//! First score, of 5 hosts of each kind: 80 hosts, 33 suffer, recall 42.4 %, false alarms 8.5 %, order of severity 0.30, 10 not
//! known. One kind was expected to suffer and does not: a burst of a broker takes 22 ms, and kernels from 6.9 on throttle a
//! cgroup by counters that are up to 2 s old, so that no pause comes. Two of five hosts with a limit of six requests a second do
//! not suffer: their nine messages a second pass it, and ten do not.

use super::unseen::Unseen;

/// Every kind of the group.
pub(super) const TENTH: &[Unseen] = &[
    // Suffer.
    Unseen {
        // Three threads of a store: a log that is synced each second, a flush of 30 MiB, and a merge that reads 50 MiB and
        // writes 60 MiB. 20 % of 160 MiB are 32 MiB for all of them. Two stores wait 3 s for the disk every 17 s.
        name: "tenth-merges-beside-a-log-to-v2",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.data = { size = "16 GiB", write_bandwidth = "<38> MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."store{i}" = { instances = 2, memory_max = "160 MiB" }
workload.seed = <seed>
workload.duration = "54s"
workload.tasks.store = { cgroup = "store{i}", stagger = "700ms", setup = [{ write = { file = "/data/level{i}", block = "1 MiB", total = "50 MiB" } }, { fsync = { file = "/data/level{i}" } }], steps = [{ parallel = { branches = [[{ repeat = { every = "1s", steps = [{ write = { file = "/data/log{i}", order = "append", block = "16 KiB", count = 6 } }, { fdatasync = { file = "/data/log{i}" } }] } }], [{ repeat = { every = "17s", steps = [{ write = { file = "/data/flush{i}", block = "256 KiB", total = "<30> MiB", truncate = true } }] } }], [{ repeat = { every = "17s", steps = [{ read = { file = "/data/level{i}", block = "256 KiB", total = "50 MiB" } }, { write = { file = "/data/merged{i}", block = "256 KiB", total = "<60> MiB", truncate = true } }] } }]] } }] }
"#,
    },
    Unseen {
        // A thread of each broker appends 40 MiB to a fast disk, and another one 40 MiB to a slow disk. 20 % of 192 MiB are
        // 38 MiB, of which the slow disk has a part. It gets 80 MiB every 17 s: 6 s of it.
        name: "tenth-brokers-on-two-disks-to-v2",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "16 GiB", write_bandwidth = "<65> MB/s", read_bandwidth = "65 MB/s" }
machine.devices.vdb = { size = "16 GiB", write_bandwidth = "<13> MB/s", read_bandwidth = "40 MB/s" }
machine.mounts."/fast" = { type = "xfs", device = "vda" }
machine.mounts."/slow" = { type = "xfs", device = "vdb" }
machine.cgroups."broker{i}" = { instances = 2, memory_max = "192 MiB" }
workload.seed = <seed>
workload.duration = "52s"
workload.tasks.broker = { cgroup = "broker{i}", stagger = "900ms", steps = [{ repeat = { every = "17s", steps = [{ parallel = { branches = [[{ write = { file = "/fast/part{i}", order = "append", block = "64 KiB", total = "<40> MiB" } }], [{ write = { file = "/slow/part{i}", order = "append", block = "64 KiB", total = "<40> MiB" } }]] } }] } }] }
"#,
    },
    Unseen {
        // The limit falls from 400 MiB to 19 MiB. Four workers of a shipper in one cgroup write buffers of 40 MiB each, send
        // them and remove them: 3 s of the disk every 19 s.
        name: "tenth-shipper-buffers-in-less-memory",
        kernel: "6.12.117",
        change: &["cgroup/ship/memory.max=96M"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.data = { size = "16 GiB", write_bandwidth = "<42> MB/s", read_bandwidth = "<42> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.ship = { memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "56s"
workload.tasks.worker = { cgroup = "ship", instances = 4, stagger = "600ms", steps = [{ repeat = { every = "19s", steps = [{ create_files = { file = "/data/w{j}/{n}", files = 20, size = "2 MiB", rate = "<14>/s" } }, { sleep = { for = "6s" } }, { unlink = { file = "/data/w{j}/{n}", files = 20 } }] } }] }
"#,
    },
    Unseen {
        // Ten messages of 8 KiB a second are synced. Each is a request at least, and the limit allows six a second.
        name: "tenth-mails-get-a-limit-of-requests",
        kernel: "6.12.43",
        change: &["machine.cgroups.mail.io_max.vda.write_iops=6 IO/s"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.vda = { size = "16 GiB", write_bandwidth = "<80> MB/s", read_bandwidth = "<80> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "vda" }
machine.cgroups.mail = { memory_max = "512 MiB" }
machine.cgroups.web = { memory_max = "512 MiB" }
workload.seed = <seed>
workload.duration = "46s"
workload.tasks.mail = { cgroup = "mail", preset.mail = { dir = "/data/spool", messages = "<10>/s", message = "8 KiB" } }
workload.tasks.web = { cgroup = "web", preset.logger = { file = "/data/access", lines = "<40>/s" } }
"#,
    },
    Unseen {
        // Eight packs of 16 MiB are synced one by one: 2 s of both disks. After, one of them has 9 MB/s: 15 s every 24 s.
        name: "tenth-mirrors-get-a-slower-member",
        kernel: "7.2.13",
        change: &["machine.devices.vdb.write_bandwidth=9 MB/s"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.vda = { size = "16 GiB", write_bandwidth = "<70> MB/s", read_bandwidth = "90 MB/s" }
machine.devices.vdb = { size = "16 GiB", write_bandwidth = "<70> MB/s", read_bandwidth = "90 MB/s" }
machine.devices.md0.backing = { raid1 = { members = ["vda", "vdb"] } }
machine.mounts."/data" = { type = "ext4", device = "md0" }
machine.cgroups.backup = { memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "54s"
workload.tasks.backup = { cgroup = "backup", steps = [{ repeat = { every = "24s", steps = [{ repeat = { times = 8, steps = [{ write = { file = "/data/pack.new", block = "256 KiB", total = "<16> MiB", truncate = true } }, { fsync = { file = "/data/pack.new" } }, { close = { file = "/data/pack.new" } }, { rename = { from = "/data/pack.new", to = "/data/pack" } }] } }] } }] }
"#,
    },
    Unseen {
        // Four sessions of a database commit 9 times a second each, to a volume of its own. 36 commits a second need more
        // requests than the 30 a second that the volume then has. The tables are on another one.
        name: "tenth-commits-on-a-volume-of-few-requests",
        kernel: "6.12.117",
        change: &["machine.devices.vdb.write_iops=30 IO/s"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "16 GiB", write_bandwidth = "<60> MB/s", read_bandwidth = "60 MB/s" }
machine.devices.vdb = { size = "8 GiB", write_bandwidth = "50 MB/s", read_bandwidth = "50 MB/s", write_iops = "<3000> IO/s" }
machine.mounts."/data" = { type = "xfs", device = "vda" }
machine.mounts."/wal" = { type = "xfs", device = "vdb" }
machine.cgroups.db = { memory_max = "4 GiB" }
workload.seed = <seed>
workload.duration = "48s"
workload.tasks.session = { cgroup = "db", instances = 4, stagger = "50ms", steps = [{ write = { file = "/wal/w{j}", order = "append", block = "8 KiB", rate = "<9>/s", sync = { call = "fdatasync", after = 1 } } }] }
workload.tasks.tables = { cgroup = "db", steps = [{ write = { file = "/data/table", order = "random", size = "256 MiB", block = "8 KiB", rate = "<60>/s" } }] }
"#,
    },
    Unseen {
        // A snapshot syncs the filesystem every 24 s. At an age of 2 s it finds 3 s of three streams: 20 MB. At an age of 60 s it
        // finds all of their 24 s: 145 MB, 5 s of the disk.
        name: "tenth-snapshots-after-an-older-age",
        kernel: "6.1.192",
        change: &["vm.dirty_expire_centisecs=6000", "vm.dirty_writeback_centisecs=1000"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 10, dirty_expire_centisecs = 200, dirty_writeback_centisecs = 100 }
machine.devices.data = { size = "16 GiB", write_bandwidth = "<27> MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."collect{i}" = { instances = 3, memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "78s"
workload.tasks.collect = { cgroup = "collect{i}", stagger = "200ms", steps = [{ write = { file = "/data/c{i}", order = "append", block = "32 KiB", rate = "<2000> kB/s" } }] }
workload.tasks.snapshot = { steps = [{ sleep = { for = "23s" } }, { repeat = { every = "24s", steps = [{ syncfs = { path = "/data" } }] } }] }
"#,
    },
    Unseen {
        // A search reads 300 MiB every 12 s. They fit into 1 GiB. They do not fit into 160 MiB: 5 s of a volume that reads and
        // writes share, and in these a commit waits. Next to nothing is dirty.
        name: "tenth-indexes-read-again-in-less-memory",
        kernel: "6.12.117",
        change: &["cgroup/search/memory.max=160M"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.vda = { size = "16 GiB", bandwidth = "<62> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "vda" }
machine.cgroups.search = { memory_max = "1 GiB" }
workload.seed = <seed>
workload.duration = "54s"
workload.tasks.search = { cgroup = "search", setup = [{ write = { file = "/data/index", block = "1 MiB", total = "300 MiB" } }, { fsync = { file = "/data/index" } }], steps = [{ repeat = { every = "12s", steps = [{ read = { file = "/data/index", block = "128 KiB", total = "300 MiB" } }, { write = { file = "/data/hits", order = "append", count = <8> } }] } }] }
workload.tasks.commit = { steps = [{ repeat = { every = "600ms", steps = [{ write = { file = "/data/commits", order = "append", count = <2> } }, { fdatasync = { file = "/data/commits" } }] } }] }
"#,
    },
    // Tight.
    Unseen {
        // 20 % and 10 % of 400 MiB: paused from 60 MiB on. Four threads of a dump write 13 MiB each at the same time.
        name: "tenth-parallel-dumps-near-their-limit",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.data = { size = "16 GiB", write_bandwidth = "<50> MB/s", read_bandwidth = "<50> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.dump = { memory_max = "400 MiB" }
workload.seed = <seed>
workload.duration = "50s"
workload.tasks.dump = { cgroup = "dump", steps = [{ repeat = { every = "16s", steps = [{ parallel = { branches = [[{ write = { file = "/data/t0", block = "64 KiB", total = "<13> MiB", truncate = true } }], [{ write = { file = "/data/t1", block = "64 KiB", total = "<13> MiB", truncate = true } }], [{ write = { file = "/data/t2", block = "64 KiB", total = "<13> MiB", truncate = true } }], [{ write = { file = "/data/t3", block = "64 KiB", total = "<13> MiB", truncate = true } }]] } }, { burn = { for = "300ms" } }] } }] }
"#,
    },
    Unseen {
        // 128 MiB and 64 MiB: paused from 96 MiB on. Packages of 42 MiB go to each of two disks at the same time.
        name: "tenth-two-disks-near-the-bytes",
        kernel: "5.10.223",
        change: &["vm.dirty_bytes=134217728", "vm.dirty_background_bytes=67108864"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.vda = { size = "16 GiB", write_bandwidth = "<48> MB/s", read_bandwidth = "60 MB/s" }
machine.devices.vdb = { size = "16 GiB", write_bandwidth = "<36> MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/one" = { type = "ext4", device = "vda" }
machine.mounts."/two" = { type = "xfs", device = "vdb" }
machine.cgroups.farm = { memory_max = "4 GiB" }
workload.seed = <seed>
workload.duration = "50s"
workload.tasks.one = { cgroup = "farm", steps = [{ repeat = { every = "16s", steps = [{ write = { file = "/one/package", block = "128 KiB", total = "<42> MiB", truncate = true } }] } }] }
workload.tasks.two = { cgroup = "farm", steps = [{ repeat = { every = "16s", steps = [{ write = { file = "/two/package", block = "128 KiB", total = "<42> MiB", truncate = true } }] } }] }
"#,
    },
    Unseen {
        // 6 % and 3 % of 4 GiB: paused from about 165 MiB on. Two guests write 72 MiB of scattered blocks to their images.
        name: "tenth-guests-near-the-percents",
        kernel: "7.2.13",
        change: &["vm.dirty_ratio=6", "vm.dirty_background_ratio=3"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<60> MB/s", read_bandwidth = "<60> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."guest{i}" = { instances = 2 }
workload.seed = <seed>
workload.duration = "54s"
workload.tasks.guest = { cgroup = "guest{i}", stagger = "500ms", steps = [{ repeat = { every = "18s", steps = [{ write = { file = "/data/disk{i}", order = "random", size = "1 GiB", block = "128 KiB", total = "<72> MiB" } }] } }] }
"#,
    },
    Unseen {
        // 700 MiB lie in memory. 20 % and 10 % of the other 2 GiB: paused from about 0.3 GiB on. A tree of 240 MiB is copied.
        name: "tenth-copies-beside-a-memory-disk-half-the-memory",
        kernel: "6.12.43",
        change: &["memory=3G"],
        scenario: r#"
machine.memory = "6 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<46> MB/s", read_bandwidth = "<46> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.mounts."/held" = { type = "tmpfs" }
machine.cgroups.held = {}
machine.cgroups.copy = {}
workload.seed = <seed>
workload.duration = "56s"
workload.tasks.held = { cgroup = "held", setup = [{ write = { file = "/held/queue", block = "1 MiB", total = "700 MiB" } }], steps = [{ repeat = { every = "2s", steps = [{ read = { file = "/held/queue", count = 4 } }] } }] }
workload.tasks.copy = { cgroup = "copy", steps = [{ repeat = { every = "25s", steps = [{ create_files = { file = "/data/tree/{d}/{n}", files = <240>, files_per_dir = 60, size = "1 MiB" } }] } }] }
"#,
    },
    // Fine.
    Unseen {
        // The image of a guest leaves the page cache of the host. A flush of the guest writes the same either way.
        name: "tenth-images-past-the-cache",
        kernel: "6.12.117",
        change: &["machine.devices.loop0.backing.loop.direct_io=true"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<70> MB/s", read_bandwidth = "<70> MB/s" }
machine.devices.loop0 = { size = "3 GiB", backing.loop = { file = "/data/image" } }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.mounts."/guest" = { type = "ext4", device = "loop0" }
machine.cgroups.guest = { memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "50s"
workload.tasks.guest = { cgroup = "guest", steps = [{ repeat = { every = "8s", steps = [{ write = { file = "/guest/table", block = "64 KiB", total = "<12> MiB", truncate = true } }, { fsync = { file = "/guest/table" } }] } }] }
"#,
    },
    Unseen {
        // Three builds write 28 MiB each and may keep 0.1 GiB each. A limit of 20 MB/s writes them in 5 s of 18 s.
        name: "tenth-builds-with-a-limit-of-writes",
        kernel: "6.12.117",
        change: &["machine.cgroups.builds.io_max.vda.write_bandwidth=20 MB/s"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "16 GiB", write_bandwidth = "<75> MB/s", read_bandwidth = "75 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "vda" }
machine.cgroups.builds = {}
machine.cgroups."builds/b{i}" = { instances = 3, memory_max = "768 MiB" }
workload.seed = <seed>
workload.duration = "52s"
workload.tasks.build = { cgroup = "builds/b{i}", stagger = "2s", steps = [{ repeat = { every = "18s", steps = [{ create_files = { file = "/data/b{i}/{d}/{n}", files = <448>, files_per_dir = 64, size = "64 KiB", rate = "150/s" } }] } }] }
"#,
    },
    Unseen {
        // Sick before, and cured: a push of 70 MiB is synced for 6 s of a volume of 12 MB/s, and for half a second of one of
        // 140 MB/s. A list of tags beside it waits no longer.
        name: "tenth-pushes-on-a-faster-volume",
        kernel: "5.10.223",
        change: &["machine.devices.vda.write_bandwidth=140 MB/s"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.vda = { size = "16 GiB", write_bandwidth = "<12> MB/s", read_bandwidth = "80 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "vda" }
machine.cgroups.registry = { memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "52s"
workload.tasks.push = { cgroup = "registry", steps = [{ repeat = { every = "17s", steps = [{ write = { file = "/data/blob", block = "128 KiB", total = "<70> MiB", truncate = true } }, { fsync = { file = "/data/blob" } }] } }] }
workload.tasks.tags = { cgroup = "registry", steps = [{ repeat = { every = "2s", steps = [{ write = { file = "/data/tags.new", count = 1, truncate = true } }, { fsync = { file = "/data/tags.new" } }, { close = { file = "/data/tags.new" } }, { rename = { from = "/data/tags.new", to = "/data/tags" } }] } }] }
"#,
    },
    Unseen {
        // Three threads read pages at random, sync a log and flush pages. The table fits into the page cache, and no limit is
        // near, with either kernel.
        name: "tenth-tables-in-the-cache-next-kernel",
        kernel: "6.1.192",
        change: &["kernel=7.2.13"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "16 GiB", write_bandwidth = "<90> MB/s", read_bandwidth = "<90> MB/s" }
machine.devices.vdb = { size = "16 GiB", write_bandwidth = "<90> MB/s", read_bandwidth = "<90> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "vda" }
machine.mounts."/log" = { type = "ext4", device = "vdb" }
machine.cgroups.db = { memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "46s"
workload.tasks.db = { cgroup = "db", preset.database = { data = "/data/table", log = "/log/redo", size = "128 MiB", reads = "<150>/s", commits = "<12>/s", flushes = "<20>/s" } }
"#,
    },
];
