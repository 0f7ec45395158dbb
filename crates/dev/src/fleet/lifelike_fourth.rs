// SPDX-License-Identifier: MIT OR Apache-2.0
//! A fourth list of hosts shaped like those that people run, of shapes that the three lists before it do not have: torrents,
//! mirrored stripes, scans of a corpus, volumes with burst credit, notebooks, game worlds, stores that dump their memory,
//! scratch space in memory. They were written down and committed before any was scored. The comment of each host states the
//! result that arithmetic expects of its change. The position of a host decides how its recording differs from one of a
//! guest, as in the second list.

use super::lifelike::Lifelike;

/// The list. Recordings of neighbours in it have different shapes.
pub(super) const LIFELIKE_FOURTH: &[Lifelike] = &[
    // Bytes down. Pieces of a torrent arrive at 16 MB/s in random order in a file with allocated blocks. Before, the flusher
    // starts at 0.4 GB, after 23 s. After, it starts at 12 MiB, and each piece costs a seek: two fifths of the disk.
    Lifelike {
        name: "torrents-get-small-bytes",
        kernel: "6.12.117",
        change: &["vm.dirty_bytes=50331648", "vm.dirty_background_bytes=12582912"],
        really: r#"machine.sysctl.vm = { dirty_bytes = "48 MiB", dirty_background_bytes = "12 MiB" }
unset = ["machine.sysctl.vm.dirty_ratio", "machine.sysctl.vm.dirty_background_ratio"]"#,
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.data = { profile = "hdd-5400" }
machine.mounts."/media" = { type = "ext4", device = "data" }
machine.cgroups."system.slice/torrent" = {}
machine.cgroups."system.slice/player" = { memory_max = "512 MiB" }
machine.cgroups."system.slice/unit{i}" = { instances = 11 }
workload.seed = 401
workload.duration = "74s"
workload.tasks.unit = { cgroup = "system.slice/unit{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.torrent = { cgroup = "system.slice/torrent", setup = [{ fallocate = { file = "/media/torrent", size = "1500 MiB" } }], steps = [{ write = { file = "/media/torrent", order = "random", size = "1500 MiB", block = "1 MiB", rate = "16 MB/s" } }] }
workload.tasks.player = { cgroup = "system.slice/player", setup = [{ write = { file = "/media/film", block = "1 MiB", total = "320 MiB" } }, { fsync = { file = "/media/film" } }, "drop_caches"], steps = [{ read = { file = "/media/film", block = "256 KiB", rate = "3 MB/s" } }] }
workload.tasks.resume = { cgroup = "system.slice/torrent", steps = [{ repeat = { every = "5s", steps = [{ write = { file = "/media/resume", count = 2, truncate = true } }, { fsync = { file = "/media/resume" } }] } }] }
"#,
    },
    // Bytes up. Before, an import of 400 MiB waits for the 40 MB/s that guests leave of the array: 10 s. After, it fits below
    // the limit of 1 GiB, and an fdatasync of a guest finds at most the 36 MB of its own 6 s.
    Lifelike {
        name: "guests-on-mirrored-stripes-larger-bytes",
        kernel: "6.1.192",
        change: &["vm.dirty_bytes=1073741824", "vm.dirty_background_bytes=536870912"],
        really: r#"machine.sysctl.vm = { dirty_bytes = "1 GiB", dirty_background_bytes = "512 MiB" }"#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_bytes = "32 MiB", dirty_background_bytes = "8 MiB" }
machine.devices.east0 = { size = "60 GiB", write_bandwidth = "30 MB/s", read_bandwidth = "60 MB/s" }
machine.devices.east1 = { size = "60 GiB", write_bandwidth = "30 MB/s", read_bandwidth = "60 MB/s" }
machine.devices.west0 = { size = "60 GiB", write_bandwidth = "30 MB/s", read_bandwidth = "60 MB/s" }
machine.devices.west1 = { size = "60 GiB", write_bandwidth = "30 MB/s", read_bandwidth = "60 MB/s" }
machine.devices.array = { backing = { raid10 = { members = ["east0", "east1", "west0", "west1"] } } }
machine.mounts."/vm" = { type = "xfs", device = "array" }
machine.cgroups."guests/vm{i}" = { instances = 3, memory_max = "2 GiB" }
machine.cgroups.import = {}
workload.seed = 402
workload.duration = "86s"
workload.tasks.guest = { cgroup = "guests/vm{i}", stagger = "2s", steps = [{ write = { file = "/vm/image{i}", order = "random", size = "400 MiB", block = "64 KiB", rate = "6 MB/s", sync = { call = "fdatasync", every = "6s" } } }] }
workload.tasks.import = { cgroup = "import", start = "5s", steps = [{ repeat = { every = "28s", steps = [{ write = { file = "/vm/imported", block = "1 MiB", total = "400 MiB", truncate = true } }] } }] }
"#,
    },
    // A hard limit down, which makes it worse. A scan of 480 MiB every 12 s finds the file in 2 GiB. It does not find it in
    // 256 MiB: 4 s of reads each time. The 70 MiB that it writes do not fit below the dirty limit of 51 MiB either.
    Lifelike {
        name: "corpus-in-a-smaller-limit",
        kernel: "7.2.13",
        change: &["cgroup/search/embed/memory.max=268435456"],
        really: r#"machine.cgroups."search/embed".memory_max = "256 MiB""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.data = { profile = "network-general" }
machine.mounts."/corpus" = { type = "xfs", device = "data" }
machine.cgroups."search/embed" = { memory_max = "2 GiB" }
machine.cgroups."search/api" = { memory_max = "1 GiB" }
workload.seed = 403
workload.duration = "76s"
workload.tasks.embed = { cgroup = "search/embed", setup = [{ write = { file = "/corpus/text", block = "1 MiB", total = "480 MiB" } }, { fsync = { file = "/corpus/text" } }], steps = [{ repeat = { every = "12s", steps = [{ read = { file = "/corpus/text", block = "256 KiB", total = "480 MiB" } }, { burn = { for = "500ms" } }, { write = { file = "/corpus/vectors", block = "256 KiB", total = "70 MiB", truncate = true } }] } }] }
workload.tasks.api = { cgroup = "search/api", steps = [{ repeat = { every = "700ms", steps = [{ write = { file = "/corpus/queries", order = "append", count = 1 } }, { fdatasync = { file = "/corpus/queries" } }] } }] }
"#,
    },
    // Age and interval down. A volume has 400 requests a second. A checkpoint finds the 6000 scattered pages of 25 s: up to
    // 15 s. After, pages are written at an age of 2 s, and it finds 750 of them.
    Lifelike {
        name: "ticks-written-at-two-seconds",
        kernel: "6.12.117",
        change: &["vm.dirty_expire_centisecs=200", "vm.dirty_writeback_centisecs=100"],
        really: r#"machine.sysctl.vm = { dirty_expire_centisecs = 200, dirty_writeback_centisecs = 100 }"#,
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 10, dirty_expire_centisecs = 3000, dirty_writeback_centisecs = 500 }
machine.devices.volume = { size = "200 GiB", bandwidth = "100 MB/s", iops = "400 IO/s", burst = "5s" }
machine.mounts."/ticks" = { type = "xfs", device = "volume" }
machine.cgroups."system.slice/timescale" = { memory_max = "8 GiB" }
machine.cgroups."system.slice/feed{i}" = { instances = 5, memory_max = "128 MiB" }
workload.seed = 404
workload.duration = "88s"
workload.tasks.feed = { cgroup = "system.slice/feed{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.chunks = { cgroup = "system.slice/timescale", steps = [{ repeat = { every = "26s", steps = [{ write = { file = "/ticks/chunks", order = "random", size = "300 MiB", block = "8 KiB", rate = "240/s", for = "25s" } }, { fsync = { file = "/ticks/chunks" } }] } }] }
workload.tasks.wal = { cgroup = "system.slice/timescale", steps = [{ write = { file = "/ticks/wal", order = "append", block = "8 KiB", rate = "12/s", sync = { call = "fdatasync", after = 1 } } }] }
"#,
    },
    // Version 1 to 2. Heaps of 260 MiB leave 252 MiB of each limit: a dirty limit of 50 MiB. A frame has 75 MiB.
    Lifelike {
        name: "notebooks-to-v2",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        really: r#"machine.cgroup_mode = "v2""#,
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 8
machine.cgroup_mode = "v1"
machine.devices.data = { size = "100 GiB", write_bandwidth = "65 MB/s", read_bandwidth = "130 MB/s" }
machine.mounts."/home" = { type = "xfs", device = "data" }
machine.cgroups."hub/user{i}" = { instances = 8, memory_max = "512 MiB" }
machine.cgroups."hub/absent{i}" = { instances = 22, memory_max = "512 MiB" }
workload.seed = 405
workload.duration = "80s"
workload.tasks.absent = { cgroup = "hub/absent{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.kernel = { cgroup = "hub/user{i}", stagger = "2s", setup = [{ anon = { size = "260 MiB" } }], steps = [{ repeat = { every = "20s", steps = [{ burn = { for = "1s" } }, { write = { file = "/home/u{i}/frame", block = "256 KiB", total = "75 MiB", truncate = true } }, { close = { file = "/home/u{i}/frame" } }] } }] }
workload.tasks.save = { cgroup = "hub/user{i}", stagger = "900ms", steps = [{ repeat = { every = "9s", steps = [{ write = { file = "/home/u{i}/book.tmp", count = 8, truncate = true } }, { fsync = { file = "/home/u{i}/book.tmp" } }, { close = { file = "/home/u{i}/book.tmp" } }, { rename = { from = "/home/u{i}/book.tmp", to = "/home/u{i}/book" } }] } }] }
"#,
    },
    // io.max up, which is worse for a neighbour. A mirror of packages writes 240 MiB every 30 s. With 10 MB/s it leaves six
    // sevenths of the disk to bookings. With 200 MB/s it has the whole disk for 3.5 s.
    Lifelike {
        name: "package-mirror-gets-more-io",
        kernel: "6.12.117",
        change: &["machine.cgroups.mirror.io_max.vda.write_bandwidth=200 MB/s"],
        really: r#"machine.cgroups.mirror.io_max.vda.write_bandwidth = "200 MB/s""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "100 GiB", write_bandwidth = "70 MB/s", read_bandwidth = "140 MB/s" }
machine.mounts."/srv" = { type = "xfs", device = "vda" }
machine.cgroups.mirror = { memory_max = "1 GiB", io_max.vda.write_bandwidth = "10 MB/s" }
machine.cgroups.booking = { memory_max = "1 GiB" }
workload.seed = 406
workload.duration = "84s"
workload.tasks.mirror = { cgroup = "mirror", steps = [{ repeat = { every = "30s", steps = [{ create_files = { file = "/srv/pool/{d}/{n}", files = 96, files_per_dir = 24, size = "2560 KiB", rate = "60/s" } }] } }] }
workload.tasks.booking = { cgroup = "booking", steps = [{ repeat = { every = "200ms", steps = [{ write = { file = "/srv/bookings", order = "append", count = 2 } }, { fdatasync = { file = "/srv/bookings" } }] } }] }
"#,
    },
    // A newer kernel, which does nothing. Worlds dirty 300 pages of 40 MiB every 15 s, and an SSD takes them at once.
    Lifelike {
        name: "game-worlds-new-kernel",
        kernel: "6.12.117",
        change: &["kernel=7.2.13"],
        really: "",
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.data = { profile = "sata-ssd" }
machine.mounts."/games" = { type = "ext4", device = "data" }
machine.cgroups."games/world{i}" = { instances = 4, memory_max = "2 GiB" }
machine.cgroups."games/lobby{i}" = { instances = 7, memory_max = "256 MiB" }
workload.seed = 407
workload.duration = "70s"
workload.tasks.lobby = { cgroup = "games/lobby{i}", stagger = "600ms", preset.logger = { file = "/games/lobby{i}.log", lines = "30/s" } }
workload.tasks.world = { cgroup = "games/world{i}", stagger = "3s", setup = [{ anon = { size = "300 MiB" } }], steps = [{ repeat = { every = "15s", steps = [{ write = { file = "/games/region{i}", order = "random", size = "40 MiB", block = "8 KiB", count = 150 } }, { fsync = { file = "/games/region{i}" } }, { write = { file = "/games/level{i}", count = 1, truncate = true } }, { close = { file = "/games/level{i}" } }] } }] }
"#,
    },
    // A strict share ends. Scans of 130 MiB may have 1 % of 1.5 GiB on a disk of 9 MB/s: 13 s of waiting each time. Without
    // strict_limit, the limit of the host applies, and no scan waits.
    Lifelike {
        name: "scans-leave-their-strict-share",
        kernel: "6.12.117",
        change: &["bdi/254:0/strict_limit=0"],
        really: r#"machine.devices.archive.bdi.strict_limit = false"#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.archive = { size = "200 GiB", write_bandwidth = "9 MB/s", read_bandwidth = "30 MB/s", bdi = { max_ratio = 1, strict_limit = true } }
machine.devices.system = { profile = "nvme-boot" }
machine.mounts."/scans" = { type = "ext4", device = "archive" }
machine.mounts."/srv" = { type = "ext4", device = "system" }
machine.cgroups."office/scanner{i}" = { instances = 2 }
machine.cgroups."office/desk{i}" = { instances = 9, memory_max = "512 MiB" }
workload.seed = 408
workload.duration = "72s"
workload.tasks.desk = { cgroup = "office/desk{i}", stagger = "1100ms", steps = [{ repeat = { every = "10s", steps = [{ write = { file = "/srv/desk{i}", count = 12, truncate = true } }, { fsync = { file = "/srv/desk{i}" } }] } }] }
workload.tasks.scan = { cgroup = "office/scanner{i}", stagger = "4s", steps = [{ repeat = { every = "32s", steps = [{ create_files = { file = "/scans/s{i}/{n}", files = 26, size = "2560 KiB", rate = "9/s" } }] } }] }
"#,
    },
    // Less memory. Two stores hold 3.2 GiB and dump 700 MiB together every 30 s. The limit falls from 2.4 GiB to 0.5 GiB:
    // 0.2 GiB wait for the disk.
    Lifelike {
        name: "stores-dump-on-a-smaller-host",
        kernel: "5.10.223",
        change: &["memory=6G"],
        really: r#"machine.memory = "6 GiB""#,
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.devices.data = { size = "100 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/redis" = { type = "ext4", device = "data" }
machine.cgroups."stores/redis{i}" = { instances = 2 }
workload.seed = 409
workload.duration = "80s"
workload.tasks.dump = { cgroup = "stores/redis{i}", setup = [{ anon = { size = "1600 MiB" } }], steps = [{ repeat = { every = "30s", steps = [{ write = { file = "/redis/dump{i}.tmp", block = "64 KiB", total = "350 MiB", truncate = true } }, { close = { file = "/redis/dump{i}.tmp" } }, { rename = { from = "/redis/dump{i}.tmp", to = "/redis/dump{i}" } }] } }] }
workload.tasks.sentinel = { steps = [{ repeat = { every = "4s", steps = [{ write = { file = "/redis/sentinel", count = 1, truncate = true } }, { fsync = { file = "/redis/sentinel" } }] } }] }
"#,
    },
    // A tighter target of writeback throttling. A vacuum writes 300 MiB every 20 s, and reads that miss the cache wait behind
    // it. With a target of 10 ms instead of 75 ms, writes are held back further.
    Lifelike {
        name: "vacuum-gets-a-tighter-wbt",
        kernel: "6.1.192",
        change: &["queue/vda/wbt_lat_usec=10000"],
        really: r#"machine.devices.data.queue.wbt_latency = "10ms""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_bytes = "512 MiB", dirty_background_bytes = "96 MiB" }
machine.devices.data = { profile = "hdd-7200", queue = { wbt_latency = "75ms" } }
machine.mounts."/pg" = { type = "xfs", device = "data" }
machine.cgroups."pg/main" = { memory_max = "6 GiB" }
machine.cgroups."pg/pool{i}" = { instances = 10, memory_max = "64 MiB" }
workload.seed = 410
workload.duration = "72s"
workload.tasks.pool = { cgroup = "pg/pool{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.lookup = { cgroup = "pg/main", setup = [{ write = { file = "/pg/index", block = "1 MiB", total = "400 MiB" } }, { fsync = { file = "/pg/index" } }, "drop_caches"], steps = [{ read = { file = "/pg/index", order = "random", block = "8 KiB", rate = "25/s", direct = true } }] }
workload.tasks.vacuum = { cgroup = "pg/main", steps = [{ repeat = { every = "20s", steps = [{ write = { file = "/pg/table", block = "8 KiB", total = "300 MiB", rate = "60 MB/s", truncate = true } }] } }] }
"#,
    },
    // Version 1 to 2, with a kernel of one release later. Sessions of 34 MiB are saved and synced: little changes. A bridge
    // writes 150 MiB in 192 MiB: a limit of 38 MiB, 1.5 s of the disk every 16 s.
    Lifelike {
        name: "message-brokers-to-v2-and-next-kernel",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.1.192"],
        really: r#"machine.cgroup_mode = "v2""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.data = { size = "60 GiB", write_bandwidth = "80 MB/s", read_bandwidth = "80 MB/s" }
machine.mounts."/mqtt" = { type = "ext4", device = "data" }
machine.cgroups."mqtt/broker{i}" = { instances = 4, memory_max = "128 MiB" }
machine.cgroups."mqtt/bridge" = { memory_max = "192 MiB" }
machine.cgroups."other/box{i}" = { instances = 20, memory_max = "64 MiB" }
workload.seed = 411
workload.duration = "70s"
workload.tasks.box = { cgroup = "other/box{i}", stagger = "400ms", steps = [{ repeat = { every = "12s", steps = [{ write = { file = "/mqtt/box{i}", order = "append", count = 1 } }] } }] }
workload.tasks.session = { cgroup = "mqtt/broker{i}", stagger = "2500ms", steps = [{ repeat = { every = "10s", steps = [{ write = { file = "/mqtt/b{i}/db.new", block = "32 KiB", total = "34 MiB", truncate = true } }, { fsync = { file = "/mqtt/b{i}/db.new" } }, { close = { file = "/mqtt/b{i}/db.new" } }, { rename = { from = "/mqtt/b{i}/db.new", to = "/mqtt/b{i}/db" } }] } }] }
workload.tasks.bridge = { cgroup = "mqtt/bridge", start = "3s", steps = [{ repeat = { every = "16s", steps = [{ write = { file = "/mqtt/backlog", block = "128 KiB", total = "150 MiB", truncate = true } }] } }] }
"#,
    },
    // A mount option. Agents empty and rewrite small files every 2 s. ext4 writes such a file when it is closed. With
    // "noauto_da_alloc" it waits for its age, and most versions are never written.
    Lifelike {
        name: "settings-closed-without-a-flush",
        kernel: "6.12.117",
        change: &["mount/var/options=noatime,noauto_da_alloc"],
        really: r#"machine.mounts."/var".options = ["noatime", "noauto_da_alloc"]"#,
        scenario: r#"
machine.memory = "2 GiB"
machine.cpus = 2
machine.devices.data = { profile = "hdd-7200" }
machine.mounts."/var" = { type = "ext4", device = "data", options = ["noatime"] }
machine.cgroups."agents/agent{i}" = { instances = 16 }
machine.cgroups.audit = { memory_max = "256 MiB" }
workload.seed = 412
workload.duration = "75s"
workload.tasks.agent = { cgroup = "agents/agent{i}", stagger = "120ms", steps = [{ repeat = { every = "2s", steps = [{ write = { file = "/var/agent{i}", count = 6, truncate = true } }, { close = { file = "/var/agent{i}" } }] } }] }
workload.tasks.audit = { cgroup = "audit", steps = [{ repeat = { every = "1500ms", steps = [{ write = { file = "/var/audit", order = "append", count = 1 } }, { fdatasync = { file = "/var/audit" } }] } }] }
"#,
    },
    // Ratio down, of the background alone. Every 40 s a syncfs finds an archive of 160 MiB that is younger than 30 s: 4 s of
    // the disk. After, it finds the 75 MiB at which the flusher stops: 2 s.
    Lifelike {
        name: "archives-flushed-from-one-percent",
        kernel: "6.1.192",
        change: &["vm.dirty_background_ratio=1"],
        really: r#"machine.sysctl.vm.dirty_background_ratio = 1"#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.outer = { size = "60 GiB", write_bandwidth = "40 MB/s", read_bandwidth = "80 MB/s" }
machine.devices.inner = { size = "60 GiB", write_bandwidth = "40 MB/s", read_bandwidth = "80 MB/s" }
machine.devices.volume = { backing = { linear = { members = ["outer", "inner"] } } }
machine.mounts."/archive" = { type = "xfs", device = "volume" }
machine.cgroups.archiver = { memory_max = "4 GiB" }
machine.cgroups.catalogue = { memory_max = "512 MiB" }
workload.seed = 413
workload.duration = "90s"
workload.tasks.archiver = { cgroup = "archiver", steps = [{ repeat = { every = "20s", steps = [{ write = { file = "/archive/parts", order = "append", block = "512 KiB", total = "160 MiB", rate = "60 MB/s" } }] } }] }
workload.tasks.seal = { cgroup = "archiver", steps = [{ repeat = { every = "40s", steps = [{ sleep = { for = "38s" } }, { syncfs = { path = "/archive" } }] } }] }
workload.tasks.catalogue = { cgroup = "catalogue", steps = [{ repeat = { every = "1s", steps = [{ write = { file = "/archive/catalogue", order = "append", count = 2 } }, { fdatasync = { file = "/archive/catalogue" } }] } }] }
"#,
    },
    // Ratio up, which does nothing. The scratch space is in memory, the table passes the page cache, and a log of 3 MB/s is
    // handed to an idle disk twice a second.
    Lifelike {
        name: "scratch-in-memory-larger-ratio",
        kernel: "6.12.117",
        change: &["vm.dirty_ratio=50", "vm.dirty_background_ratio=25"],
        really: r#"machine.sysctl.vm = { dirty_ratio = 50, dirty_background_ratio = 25 }"#,
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 8
machine.sysctl.vm = { dirty_ratio = 10, dirty_background_ratio = 5 }
machine.devices.data = { profile = "nvme-512g" }
machine.mounts."/scratch" = { type = "tmpfs" }
machine.mounts."/db" = { type = "xfs", device = "data" }
machine.cgroups."flow/worker{i}" = { instances = 3, memory_max = "2 GiB" }
machine.cgroups."flow/table" = { memory_max = "2 GiB" }
workload.seed = 414
workload.duration = "66s"
workload.tasks.worker = { cgroup = "flow/worker{i}", stagger = "3s", steps = [{ repeat = { every = "11s", steps = [{ write = { file = "/scratch/part{i}", block = "1 MiB", total = "220 MiB", truncate = true } }, { burn = { for = "2s" } }] } }] }
workload.tasks.table = { cgroup = "flow/table", steps = [{ write = { file = "/db/table", order = "random", size = "256 MiB", block = "16 KiB", direct = true, depth = 4, rate = "300/s" } }] }
workload.tasks.log = { cgroup = "flow/table", steps = [{ write = { file = "/db/log", order = "append", block = "32 KiB", rate = "3 MB/s", sync = { call = "sync_file_range", every = "500ms" } } }] }
"#,
    },
    // A soft limit up. Four restores of 60 MiB share 200 MiB before: a limit of 40 MiB, and reclaim. After, 1 GiB has room
    // for all of them.
    Lifelike {
        name: "restores-get-a-larger-soft-limit",
        kernel: "6.12.43",
        change: &["cgroup/jobs/memory.high=1073741824"],
        really: r#"machine.cgroups.jobs.memory_high = "1 GiB""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.data = { size = "100 GiB", write_bandwidth = "75 MB/s", read_bandwidth = "150 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.jobs = { memory_high = "200 MiB" }
machine.cgroups."jobs/restore{i}" = { instances = 4, memory_max = "1 GiB" }
machine.cgroups.ledger = { memory_max = "1 GiB" }
workload.seed = 415
workload.duration = "78s"
workload.tasks.restore = { cgroup = "jobs/restore{i}", stagger = "1s", steps = [{ repeat = { every = "18s", steps = [{ write = { file = "/data/restore{i}", block = "256 KiB", total = "60 MiB", truncate = true } }, { read = { file = "/data/restore{i}", block = "256 KiB", total = "60 MiB" } }] } }] }
workload.tasks.ledger = { cgroup = "ledger", steps = [{ repeat = { every = "600ms", steps = [{ write = { file = "/data/ledger", order = "append", count = 1 } }, { fdatasync = { file = "/data/ledger" } }] } }] }
"#,
    },
];
