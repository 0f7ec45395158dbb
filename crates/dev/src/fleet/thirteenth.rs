// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thirteenth group of kinds, as a platform team meets them in moves: dumps beside a heap and site builders that get version 2, tables
//! of sessions on a newer release, guides for sticks and for throughput, a guest that gives memory back, volumes of other types, a
//! tenant with few requests, and tests that end after data that are older. The comment of each kind states the result that arithmetic
//! expects. All kinds were committed before any was scored.

use super::unseen::Unseen;

/// Every kind of the group.
pub(super) const THIRTEENTH: &[Unseen] = &[
    // Suffer.
    Unseen {
        // A database of 640 MiB holds 400 MiB in its heap. 20 % and 10 % of the 240 MiB that are left: paused from 36 MiB on. A dump of
        // 110 MiB every 23 s comes at 55 MB/s, so that 30 MiB and more wait for the disk, a second and a half each time.
        name: "thirteenth-dumps-beside-a-heap-to-v2",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<26> MB/s", read_bandwidth = "90 MB/s" }
machine.devices.vdb = { size = "20 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/db" = { type = "xfs", device = "vda" }
machine.mounts."/log" = { type = "ext4", device = "vdb" }
machine.cgroups.db = { memory_max = "640 MiB" }
machine.cgroups."app{i}" = { instances = 8, memory_max = "256 MiB" }
workload.seed = <seed>
workload.duration = "60s"
workload.tasks.heap = { cgroup = "db", setup = [{ anon = { size = "400 MiB" } }], steps = [{ repeat = { every = "100ms", steps = [{ burn = { for = "3ms" } }] } }] }
workload.tasks.dump = { cgroup = "db", steps = [{ repeat = { every = "23s", steps = [{ write = { file = "/db/dump.sql", block = "64 KiB", total = "<110> MiB", rate = "55 MB/s", truncate = true } }] } }] }
workload.tasks.app = { cgroup = "app{i}", stagger = "250ms", preset.logger = { file = "/log/app{i}", lines = "<10>/s" } }
"#,
    },
    Unseen {
        // Six pods of 128 MiB map a table of sessions of 6 MiB, which they wrote in blocks of 128 KiB, and store into 60 pages of it a
        // second. A guide's 64 MiB and 24 MiB leave a pod about a megabyte. On 6.1 each store dirties 4 KiB. The newer release keeps
        // folios of 128 KiB on XFS: whole folios are written again and again, and pods are paused.
        name: "thirteenth-tables-of-sessions-next-release",
        kernel: "6.1.192",
        change: &["kernel=6.12.117"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_bytes = "64 MiB", dirty_background_bytes = "24 MiB" }
machine.devices.vda = { size = "40 GiB", write_bandwidth = "<120> MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/srv" = { type = "xfs", device = "vda" }
machine.cgroups."pod{i}" = { instances = 6, memory_max = "128 MiB" }
workload.seed = <seed>
workload.duration = "50s"
workload.tasks.sessions = { cgroup = "pod{i}", stagger = "70ms", setup = [{ write = { file = "/srv/sessions{i}", block = "128 KiB", total = "6 MiB" } }, { fsync = { file = "/srv/sessions{i}" } }], steps = [{ mmap_store = { file = "/srv/sessions{i}", size = "6 MiB", pages = <12>, rate = "5/s" } }] }
workload.tasks.access = { cgroup = "pod{i}", stagger = "200ms", preset.logger = { file = "/srv/access{i}", lines = "<8>/s" } }
"#,
    },
    Unseen {
        // A guide against slow sticks sets 48 MiB and 16 MiB for all disks. A cut of a film, 300 MiB at 120 MB/s every 24 s, had a fifth
        // of 16 GiB. Now it is paused from 32 MiB on, for what the disk of 45 MB/s has not written: some 4 s each time.
        name: "thirteenth-cuts-of-a-film-by-a-guide-for-sticks",
        kernel: "6.12.43",
        change: &["vm.dirty_bytes=50331648", "vm.dirty_background_bytes=16777216"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 8
machine.devices.vda = { size = "400 GiB", write_bandwidth = "<45> MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/films" = { type = "xfs", device = "vda" }
machine.cgroups.cut = { memory_max = "8 GiB" }
workload.seed = <seed>
workload.duration = "58s"
workload.tasks.cut = { cgroup = "cut", steps = [{ repeat = { every = "24s", steps = [{ write = { file = "/films/cut", block = "512 KiB", total = "<300> MiB", rate = "120 MB/s", truncate = true } }] } }] }
workload.tasks.project = { cgroup = "cut", steps = [{ repeat = { every = "6s", steps = [{ write = { file = "/films/project", block = "64 KiB", count = <4>, truncate = true } }] } }] }
"#,
    },
    Unseen {
        // A profile for throughput sets 40 % and 10 %. An archive of 180 MiB is made at 24 MB/s every 26 s and synced. With 64 MiB and
        // 8 MiB it was on the disk but for the last megabytes. Now the sync finds most of it: some 5 s of 35 MB/s, for which orders wait.
        name: "thirteenth-synced-archives-by-a-profile-for-throughput",
        kernel: "6.12.117",
        change: &["vm.dirty_ratio=40", "vm.dirty_background_ratio=10"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_bytes = "64 MiB", dirty_background_bytes = "8 MiB" }
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<35> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "vda" }
machine.cgroups.archive = { memory_max = "4 GiB" }
machine.cgroups.shop = { memory_max = "1 GiB" }
workload.seed = <seed>
workload.duration = "60s"
workload.tasks.archive = { cgroup = "archive", steps = [{ repeat = { every = "26s", steps = [{ write = { file = "/data/archive", block = "128 KiB", total = "<180> MiB", rate = "24 MB/s", truncate = true } }, { fsync = { file = "/data/archive" } }] } }] }
workload.tasks.order = { cgroup = "shop", steps = [{ repeat = { every = "<900>ms", steps = [{ write = { file = "/data/order", order = "append", count = 1 } }, { fdatasync = { file = "/data/order" } }] } }] }
"#,
    },
    Unseen {
        // A guest gives 6 of 8 GiB back. Its services hold 1 GiB. Of 8 GiB, imports of 260 MiB every 22 s are never paused. Of 2 GiB, 15 %
        // of what the services leave are some 120 MiB: a hundred megabytes wait for the disk, 3 s each time.
        name: "thirteenth-imports-when-memory-is-given-back",
        kernel: "6.1.192",
        change: &["memory=2G"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<32> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "vda" }
machine.cgroups."service{i}" = { instances = 4 }
machine.cgroups.import = {}
workload.seed = <seed>
workload.duration = "60s"
workload.tasks.service = { cgroup = "service{i}", setup = [{ anon = { size = "256 MiB" } }], steps = [{ write = { file = "/data/service{i}.log", order = "append", block = "4 KiB", rate = "<3>/s" } }] }
workload.tasks.import = { cgroup = "import", steps = [{ repeat = { every = "22s", steps = [{ create_files = { file = "/data/import/{d}/{n}", files = <260>, files_per_dir = 65, size = "1 MiB", rate = "100/s" } }] } }] }
"#,
    },
    Unseen {
        // A queue moves to a cheaper type of volume. Six consumers commit their offsets four times a second each, which needs a request
        // or two each time. Of 25 requests a second each commit waits for the others, up to half a second.
        name: "thirteenth-offsets-on-a-cheaper-type-of-volume",
        kernel: "6.12.117",
        change: &["machine.devices.vda.iops=25 IO/s"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "120 GiB", bandwidth = "120 MB/s", iops = "<2400> IO/s" }
machine.mounts."/queue" = { type = "xfs", device = "vda" }
machine.cgroups.queue = { memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "46s"
workload.tasks.consumer = { cgroup = "queue", instances = 6, stagger = "40ms", steps = [{ repeat = { every = "<250>ms", steps = [{ write = { file = "/queue/offset{j}", order = "append", count = 1 } }, { fdatasync = { file = "/queue/offset{j}" } }] } }] }
workload.tasks.log = { cgroup = "queue", preset.logger = { file = "/queue/log", lines = "<10>/s" } }
"#,
    },
    Unseen {
        // A tenant's repositories get a limit of 8 writes a second. A push stores 20 objects and syncs each of them, every 10 s: some tens
        // of milliseconds before, and 2.5 s and more after. The shop beside it stays as it is.
        name: "thirteenth-pushes-of-a-tenant-get-few-requests",
        kernel: "7.2.13",
        change: &["machine.cgroups.tenant.io_max.vda.write_iops=8 IO/s"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<120> MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/git" = { type = "xfs", device = "vda" }
machine.cgroups.tenant = { memory_max = "1 GiB" }
machine.cgroups.shop = { memory_max = "1 GiB" }
workload.seed = <seed>
workload.duration = "54s"
workload.tasks.push = { cgroup = "tenant", instances = 2, stagger = "4s", steps = [{ repeat = { every = "10s", steps = [{ create_files = { file = "/git/r{j}/{n}", files = <20>, size = "12 KiB", fsync = true } }] } }] }
workload.tasks.shop = { cgroup = "shop", steps = [{ repeat = { every = "<800>ms", steps = [{ write = { file = "/git/shop", order = "append", count = 1 } }, { fdatasync = { file = "/git/shop" } }] } }] }
"#,
    },
    Unseen {
        // The timers go back from 2 s and 1 s to the usual ones, to spare an SSD. Tests write 90 MiB at 9 MB/s into their container and end
        // after 12 s, every 22 s. Before, the unmount found some 20 MiB. After, it finds nearly all: 5 s of 18 MB/s.
        name: "thirteenth-tests-end-with-older-data",
        kernel: "6.12.117",
        change: &["vm.dirty_expire_centisecs=3000", "vm.dirty_writeback_centisecs=500"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 10, dirty_expire_centisecs = 200, dirty_writeback_centisecs = 100 }
machine.devices.store = { size = "80 GiB", write_bandwidth = "<18> MB/s", read_bandwidth = "80 MB/s" }
machine.devices.data = { size = "40 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/store" = { type = "xfs", device = "store" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.mounts."/test" = { type = "overlay", at_start = false, overlay = { lower = "/data/image", upper = "/store/upper", work = "/store/work" } }
machine.cgroups.test = { memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "64s"
workload.tasks.test = { cgroup = "test", steps = [{ repeat = { every = "22s", steps = [{ mount = { point = "/test" } }, { create_files = { file = "/test/out/{n}", files = <90>, size = "1 MiB", rate = "9/s" } }, { umount = { point = "/test" } }] } }] }
workload.tasks.runner = { steps = [{ repeat = { every = "1s", steps = [{ write = { file = "/data/runner", order = "append", count = <2> } }, { fdatasync = { file = "/data/runner" } }] } }] }
"#,
    },
    // Tight.
    Unseen {
        // 20 % and 10 % of 512 MiB: paused from 77 MiB on. A site is built in 2 s, 52 MiB of pages every 17 s.
        name: "thirteenth-sites-near-their-limit-to-v2-next-release",
        kernel: "6.1.192",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<70> MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/sites" = { type = "ext4", device = "vda" }
machine.cgroups."site{i}" = { instances = 3, memory_max = "512 MiB" }
workload.seed = <seed>
workload.duration = "56s"
workload.tasks.build = { cgroup = "site{i}", stagger = "5s", steps = [{ repeat = { every = "17s", steps = [{ create_files = { file = "/sites/s{i}/{d}/{n}", files = <830>, files_per_dir = 100, size = "64 KiB", rate = "400/s" } }] } }] }
"#,
    },
    Unseen {
        // 192 MiB and 96 MiB: paused from 144 MiB on. A restore point of 105 MiB comes every 19 s and is not synced.
        name: "thirteenth-restore-points-near-the-bytes",
        kernel: "6.12.117",
        change: &["vm.dirty_bytes=201326592", "vm.dirty_background_bytes=100663296"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<48> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/points" = { type = "xfs", device = "vda" }
machine.cgroups.backup = { memory_max = "4 GiB" }
workload.seed = <seed>
workload.duration = "58s"
workload.tasks.point = { cgroup = "backup", steps = [{ repeat = { every = "19s", steps = [{ write = { file = "/points/point", order = "append", block = "128 KiB", total = "<105> MiB", rate = "150 MB/s" } }] } }] }
workload.tasks.state = { cgroup = "backup", steps = [{ repeat = { every = "5s", steps = [{ write = { file = "/points/state", count = <6>, truncate = true } }] } }] }
"#,
    },
    Unseen {
        // A guest of half its memory: 15 % of the 3.2 GiB that a cache of objects leaves are 490 MiB. Films of 300 MiB come every 25 s.
        name: "thirteenth-films-in-half-the-memory",
        kernel: "7.2.13",
        change: &["memory=4G"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "400 GiB", write_bandwidth = "<60> MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/films" = { type = "xfs", device = "vda" }
machine.cgroups.cache = {}
machine.cgroups.films = {}
workload.seed = <seed>
workload.duration = "62s"
workload.tasks.cache = { cgroup = "cache", setup = [{ anon = { size = "500 MiB" } }], steps = [{ repeat = { every = "100ms", steps = [{ burn = { for = "2ms" } }] } }] }
workload.tasks.film = { cgroup = "films", steps = [{ repeat = { every = "25s", steps = [{ write = { file = "/films/film", order = "append", block = "256 KiB", total = "<300> MiB", rate = "110 MB/s" } }] } }] }
"#,
    },
    Unseen {
        // Saves of 5 MiB every 6 s are synced, a twentieth of a second of the old volume. The other type does 40 MB/s: an eighth of a
        // second at most.
        name: "thirteenth-saves-on-a-volume-of-less-throughput",
        kernel: "6.12.43",
        change: &["machine.devices.vda.write_bandwidth=40 MB/s"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<110> MB/s", read_bandwidth = "110 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "vda" }
machine.cgroups.store = { memory_max = "1 GiB" }
workload.seed = <seed>
workload.duration = "52s"
workload.tasks.save = { cgroup = "store", steps = [{ repeat = { every = "6s", steps = [{ write = { file = "/data/save", block = "64 KiB", total = "<5> MiB", truncate = true } }, { fsync = { file = "/data/save" } }] } }] }
workload.tasks.log = { cgroup = "store", preset.logger = { file = "/data/log", lines = "<15>/s" } }
"#,
    },
    // Fine.
    Unseen {
        // Sick before, and cured: ten exporters of 64 MiB map a table of 3 MiB in folios of 128 KiB and have half a megabyte of a guide's
        // 48 MiB. Ratios of 20 and 10 leave each of them 12 MiB, more than its table.
        name: "thirteenth-exporters-leave-a-guide",
        kernel: "6.12.117",
        change: &["vm.dirty_ratio=20", "vm.dirty_background_ratio=10"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_bytes = "48 MiB", dirty_background_bytes = "16 MiB" }
machine.devices.vda = { size = "40 GiB", write_bandwidth = "<200> MB/s", read_bandwidth = "200 MB/s" }
machine.mounts."/var" = { type = "xfs", device = "vda" }
machine.cgroups."exporter{i}" = { instances = 10, memory_max = "64 MiB" }
workload.seed = <seed>
workload.duration = "48s"
workload.tasks.exporter = { cgroup = "exporter{i}", stagger = "60ms", setup = [{ write = { file = "/var/table{i}", block = "128 KiB", total = "3 MiB" } }, { fsync = { file = "/var/table{i}" } }], steps = [{ mmap_store = { file = "/var/table{i}", size = "3 MiB", pages = <8>, rate = "5/s" } }] }
"#,
    },
    Unseen {
        // Twenty-four offices keep little: letters that are synced, and logs, below limits of 384 MiB each. Version 2 leaves each of
        // them 57 MiB before a pause, a hundred times what it has.
        name: "thirteenth-offices-to-v2-next-release",
        kernel: "6.1.192",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<140> MB/s", read_bandwidth = "140 MB/s" }
machine.mounts."/srv" = { type = "xfs", device = "vda", options = ["noatime"] }
machine.cgroups."office{i}" = { instances = 24, memory_max = "384 MiB" }
workload.seed = <seed>
workload.duration = "48s"
workload.tasks.letters = { cgroup = "office0", preset.mail = { dir = "/srv/new", messages = "<2>/s", message = "8 KiB" } }
workload.tasks.log = { cgroup = "office{i}", stagger = "170ms", preset.logger = { file = "/srv/office{i}.log", lines = "<6>/s" } }
"#,
    },
    Unseen {
        // A tenant gets a limit that is forty times what it writes: 1.2 MB/s of scans, and a catalogue that is synced.
        name: "thirteenth-scans-far-below-a-limit",
        kernel: "7.2.13",
        change: &["machine.cgroups.scans.io_max.vda.write_bandwidth=50 MB/s"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<130> MB/s", read_bandwidth = "130 MB/s" }
machine.mounts."/scans" = { type = "ext4", device = "vda" }
machine.cgroups.scans = { memory_max = "1 GiB" }
workload.seed = <seed>
workload.duration = "50s"
workload.tasks.scan = { cgroup = "scans", steps = [{ create_files = { file = "/scans/{d}/{n}", files_per_dir = 50, size = "300 kB", rate = "<4>/s", for = "120s" } }] }
workload.tasks.catalogue = { cgroup = "scans", steps = [{ repeat = { every = "<900>ms", steps = [{ write = { file = "/scans/catalogue", order = "append", count = 1 } }, { fdatasync = { file = "/scans/catalogue" } }] } }] }
"#,
    },
    Unseen {
        // A database past the page cache moves to the next release. Its redo log is synced five times a second and little else is dirty.
        name: "thirteenth-direct-database-next-release",
        kernel: "6.1.192",
        change: &["kernel=6.12.117"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<220> MB/s", read_bandwidth = "220 MB/s", write_iops = "6000 IO/s", read_iops = "6000 IO/s" }
machine.mounts."/db" = { type = "xfs", device = "vda" }
machine.cgroups.db = { memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "46s"
workload.tasks.db = { cgroup = "db", preset.database = { data = "/db/data", log = "/db/redo", size = "128 MiB", reads = "<80>/s", commits = "5/s", flushes = "<20>/s", direct = true } }
workload.tasks.slow = { cgroup = "db", preset.logger = { file = "/db/slow.log", lines = "<4>/s" } }
"#,
    },
];
