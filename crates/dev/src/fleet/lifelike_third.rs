// SPDX-License-Identifier: MIT OR Apache-2.0
//! A third list of hosts shaped like those that people run, of shapes that the two lists before it do not have: mirrors,
//! stripes, encrypted disks, overlays, memory cards, sorts, barriers, files that are renamed or removed while they are
//! young. They were written down and committed before any was scored. The comment of each host says what arithmetic expects
//! of its change. The position of a host decides how its recording differs from one of a guest, as in the second list.

use super::lifelike::Lifelike;

/// The list. Recordings of neighbours in it have different shapes.
pub(super) const LIFELIKE_THIRD: &[Lifelike] = &[
    // Bytes down. A ledger writes with O_DSYNC on a mirror. The closing of a day writes 420 MiB in 4 s: 8 s of the disks.
    // Of these, 300 MiB wait for the disks before the change, and 40 MiB after it.
    Lifelike {
        name: "ledger-on-a-mirror",
        kernel: "6.12.117",
        change: &["vm.dirty_bytes=67108864", "vm.dirty_background_bytes=16777216"],
        really: r#"machine.sysctl.vm = { dirty_bytes = "64 MiB", dirty_background_bytes = "16 MiB" }
unset = ["machine.sysctl.vm.dirty_ratio", "machine.sysctl.vm.dirty_background_ratio"]"#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.left = { size = "60 GiB", write_bandwidth = "55 MB/s", read_bandwidth = "110 MB/s" }
machine.devices.right = { size = "60 GiB", write_bandwidth = "55 MB/s", read_bandwidth = "110 MB/s" }
machine.devices.mirror = { backing = { raid1 = { members = ["left", "right"] } } }
machine.mounts."/srv" = { type = "ext4", device = "mirror" }
machine.cgroups."system.slice/ledger" = { memory_max = "1 GiB" }
machine.cgroups."system.slice/closing" = { memory_max = "2 GiB" }
machine.cgroups."system.slice/unit{i}" = { instances = 14 }
workload.seed = 301
workload.duration = "80s"
workload.tasks.unit = { cgroup = "system.slice/unit{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.ledger = { cgroup = "system.slice/ledger", steps = [{ write = { file = "/srv/ledger", order = "append", block = "8 KiB", dsync = true, rate = "12/s" } }] }
workload.tasks.closing = { cgroup = "system.slice/closing", start = "8s", steps = [{ repeat = { every = "30s", steps = [{ write = { file = "/srv/closing", block = "512 KiB", total = "420 MiB", rate = "110 MB/s", truncate = true } }] } }] }
"#,
    },
    // Bytes up. A checkout writes 75 MiB and an export 350 MiB on an encrypted disk of 90 MB/s. The limit of 24 MiB pauses
    // both. The limit of 512 MiB pauses neither.
    Lifelike {
        name: "encrypted-laptop-gets-bytes",
        kernel: "6.1.192",
        change: &["vm.dirty_bytes=536870912", "vm.dirty_background_bytes=268435456"],
        really: r#"machine.sysctl.vm = { dirty_bytes = "512 MiB", dirty_background_bytes = "256 MiB" }"#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_bytes = "24 MiB", dirty_background_bytes = "6 MiB" }
machine.devices.flash = { size = "200 GiB", write_bandwidth = "90 MB/s", read_bandwidth = "250 MB/s" }
machine.devices.vault = { backing = { crypt = { member = "flash", cpu_bandwidth = "700 MB/s" } } }
machine.mounts."/home" = { type = "ext4", device = "vault", options = ["relatime"] }
machine.cgroups."user.slice/terminal" = {}
machine.cgroups."user.slice/editor" = {}
machine.cgroups."user.slice/app{i}" = { instances = 9 }
workload.seed = 302
workload.duration = "66s"
workload.tasks.app = { cgroup = "user.slice/app{i}", stagger = "800ms", steps = [{ repeat = { every = "15s", steps = [{ write = { file = "/home/app{i}", order = "append", count = 2 } }] } }] }
workload.tasks.checkout = { cgroup = "user.slice/terminal", steps = [{ repeat = { every = "22s", steps = [{ create_files = { file = "/home/tree/{d}/{n}", files = 2500, files_per_dir = 50, size = "30 KiB", rate = "1200/s" } }] } }] }
workload.tasks.editor = { cgroup = "user.slice/editor", steps = [{ repeat = { every = "4s", steps = [{ write = { file = "/home/notes.tmp", count = 3, truncate = true } }, { fsync = { file = "/home/notes.tmp" } }, { close = { file = "/home/notes.tmp" } }, { rename = { from = "/home/notes.tmp", to = "/home/notes" } }] } }] }
workload.tasks.export = { start = "20s", steps = [{ write = { file = "/home/film", block = "1 MiB", total = "350 MiB" } }, "exit"] }
"#,
    },
    // A mount option. Builders in an overlay sync its filesystem after each layer of 25 MiB. The option "volatile" skips that.
    Lifelike {
        name: "builders-in-a-volatile-overlay",
        kernel: "6.12.117",
        change: &["mount/build/options=volatile"],
        really: r#"machine.mounts."/build".options = ["volatile"]"#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.data = { size = "80 GiB", write_bandwidth = "30 MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/var" = { type = "xfs", device = "data" }
machine.mounts."/build" = { type = "overlay", overlay = { lower = "/var/base", upper = "/var/upper", work = "/var/work" } }
machine.cgroups."builder{i}" = { instances = 3, memory_max = "1 GiB" }
machine.cgroups."parked{i}" = { instances = 12, memory_max = "256 MiB" }
workload.seed = 303
workload.duration = "62s"
workload.tasks.parked = { cgroup = "parked{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.layer = { cgroup = "builder{i}", stagger = "5s", steps = [{ repeat = { every = "16s", steps = [{ create_files = { file = "/build/b{i}/{d}/{n}", files = 700, files_per_dir = 50, size = "36 KiB", rate = "350/s" } }, { syncfs = { path = "/build" } }] } }] }
workload.tasks.daemon = { steps = [{ repeat = { every = "1500ms", steps = [{ write = { file = "/var/daemon.db", order = "append", count = 2 } }, { fsync = { file = "/var/daemon.db" } }] } }] }
"#,
    },
    // A newer kernel. Photographs of 1.8 MB are imported in bursts of 390 MB in a cgroup whose limit is 76 MiB.
    Lifelike {
        name: "photographs-new-kernel",
        kernel: "5.10.223",
        change: &["kernel=6.12.117"],
        really: "",
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 4
machine.devices.data = { size = "200 GiB", write_bandwidth = "48 MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/photos" = { type = "btrfs", device = "data" }
machine.cgroups.photos = { memory_max = "384 MiB" }
machine.cgroups."site{i}" = { instances = 10, memory_max = "128 MiB" }
workload.seed = 304
workload.duration = "64s"
workload.tasks.site = { cgroup = "site{i}", stagger = "600ms", steps = [{ repeat = { every = "8s", steps = [{ write = { file = "/photos/site{i}.log", order = "append", count = 3 } }] } }] }
workload.tasks.import = { cgroup = "photos", steps = [{ repeat = { every = "24s", steps = [{ create_files = { file = "/photos/raw/{d}/{n}", files = 220, files_per_dir = 40, size = "1800 KiB", rate = "50/s" } }] } }] }
workload.tasks.catalogue = { cgroup = "photos", steps = [{ repeat = { every = "3s", steps = [{ write = { file = "/photos/catalogue", order = "random", size = "40 MiB", count = 20 } }, { fsync = { file = "/photos/catalogue" } }] } }] }
"#,
    },
    // The flusher wakes up rarely. Pages of 15 s age wait up to 30 s longer on a memory card of 120 requests a second.
    Lifelike {
        name: "gateway-wakes-its-flusher-rarely",
        kernel: "6.1.192",
        change: &["vm.dirty_writeback_centisecs=3000"],
        really: r#"machine.sysctl.vm.dirty_writeback_centisecs = 3000"#,
        scenario: r#"
machine.memory = "1 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 10, dirty_expire_centisecs = 1500, dirty_writeback_centisecs = 500 }
machine.devices.card = { size = "32 GiB", write_bandwidth = "12 MB/s", read_bandwidth = "40 MB/s", write_iops = "120 IO/s", read_iops = "900 IO/s" }
machine.mounts."/data" = { type = "ext4", device = "card", options = ["noatime"] }
machine.cgroups."sensor{i}" = { instances = 14 }
machine.cgroups.gateway = {}
workload.seed = 305
workload.duration = "90s"
workload.tasks.sensor = { cgroup = "sensor{i}", stagger = "400ms", preset.logger = { file = "/data/sensor{i}.csv", lines = "9/s", line = "200 B" } }
workload.tasks.picture = { cgroup = "gateway", steps = [{ repeat = { every = "6s", steps = [{ create_files = { file = "/data/pictures/{n}", files = 4, size = "380 KiB" } }] } }] }
workload.tasks.database = { cgroup = "gateway", steps = [{ repeat = { every = "5s", steps = [{ write = { file = "/data/gateway.db", order = "random", size = "6 MiB", count = 3 } }, { fsync = { file = "/data/gateway.db" } }] } }] }
"#,
    },
    // A soft limit, which makes it worse. A conversion reads 200 MiB and writes 260 MiB in a cgroup that may then have 150 MiB.
    Lifelike {
        name: "conversion-gets-a-soft-limit",
        kernel: "7.2.13",
        change: &["cgroup/media/video/memory.high=157286400"],
        really: r#"machine.cgroups."media/video".memory_high = "150 MiB""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.data = { size = "100 GiB", write_bandwidth = "70 MB/s", read_bandwidth = "140 MB/s" }
machine.mounts."/media" = { type = "xfs", device = "data" }
machine.cgroups."media/video" = { memory_max = "2 GiB" }
machine.cgroups."media/web" = { memory_max = "512 MiB" }
workload.seed = 306
workload.duration = "62s"
workload.tasks.video = { cgroup = "media/video", setup = [{ write = { file = "/media/source", block = "1 MiB", total = "200 MiB" } }, { fsync = { file = "/media/source" } }], steps = [{ repeat = { every = "14s", steps = [{ read = { file = "/media/source", block = "1 MiB", total = "200 MiB" } }, { burn = { for = "1s" } }, { write = { file = "/media/target", block = "256 KiB", total = "260 MiB", rate = "90 MB/s", truncate = true } }] } }] }
workload.tasks.web = { cgroup = "media/web", steps = [{ repeat = { every = "600ms", steps = [{ write = { file = "/media/web.db", order = "append", count = 1 } }, { fdatasync = { file = "/media/web.db" } }] } }] }
"#,
    },
    // Less memory. A sort writes two runs of 256 MiB, reads them and writes 512 MiB. The limit falls from 1.5 GiB to 0.3 GiB,
    // and the runs hardly fit into the page cache beside a heap of 400 MiB.
    Lifelike {
        name: "sort-on-a-smaller-host",
        kernel: "6.12.117",
        change: &["memory=2G"],
        really: r#"machine.memory = "2 GiB""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.data = { size = "100 GiB", write_bandwidth = "95 MB/s", read_bandwidth = "190 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.sort = {}
machine.cgroups.status = { memory_max = "128 MiB" }
workload.seed = 307
workload.duration = "80s"
workload.tasks.sort = { cgroup = "sort", setup = [{ anon = { size = "400 MiB" } }], steps = [{ repeat = { every = "26s", steps = [{ write = { file = "/data/run0", block = "1 MiB", total = "256 MiB", truncate = true } }, { write = { file = "/data/run1", block = "1 MiB", total = "256 MiB", truncate = true } }, { read = { file = "/data/run0", block = "1 MiB" } }, { read = { file = "/data/run1", block = "1 MiB" } }, { write = { file = "/data/sorted", block = "1 MiB", total = "512 MiB", truncate = true } }] } }] }
workload.tasks.status = { cgroup = "status", steps = [{ repeat = { every = "2s", steps = [{ write = { file = "/data/status", count = 1, truncate = true } }, { fsync = { file = "/data/status" } }] } }] }
"#,
    },
    // io.max. Thumbnails of 430 MiB are 7.5 s of the disk every 24 s. With 15 MB/s they leave it three quarters of its time.
    // The device has the name that the kernel gives it, because a prediction has no shorter key for this limit.
    Lifelike {
        name: "thumbnails-get-an-io-limit",
        kernel: "6.1.192",
        change: &["machine.cgroups.thumbs.io_max.vda.write_bandwidth=15 MB/s"],
        really: r#"machine.cgroups.thumbs.io_max.vda.write_bandwidth = "15 MB/s""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "100 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "vda" }
machine.cgroups.thumbs = { memory_max = "1 GiB" }
machine.cgroups.orders = { memory_max = "1 GiB" }
workload.seed = 308
workload.duration = "80s"
workload.tasks.thumbs = { cgroup = "thumbs", steps = [{ repeat = { every = "24s", steps = [{ create_files = { file = "/data/thumbs/{d}/{n}", files = 3600, files_per_dir = 120, size = "120 KiB", rate = "700/s" } }] } }] }
workload.tasks.orders = { cgroup = "orders", steps = [{ repeat = { every = "250ms", steps = [{ write = { file = "/data/orders", order = "append", count = 2 } }, { fdatasync = { file = "/data/orders" } }] } }] }
"#,
    },
    // Version 1 to 2. Packs of 90 MiB are written, synced and renamed in four cgroups of 160 MiB: a limit of 32 MiB each.
    Lifelike {
        name: "repositories-repacked-to-v2",
        kernel: "5.10.223",
        change: &["cgroup=v2"],
        really: r#"machine.cgroup_mode = "v2""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.data = { size = "100 GiB", write_bandwidth = "55 MB/s", read_bandwidth = "110 MB/s" }
machine.mounts."/git" = { type = "ext4", device = "data" }
machine.cgroups."git/repo{i}" = { instances = 4, memory_max = "160 MiB" }
machine.cgroups."git/idle{i}" = { instances = 18, memory_max = "96 MiB" }
workload.seed = 309
workload.duration = "64s"
workload.tasks.idle = { cgroup = "git/idle{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.repack = { cgroup = "git/repo{i}", stagger = "4s", setup = [{ write = { file = "/git/r{i}/objects", block = "1 MiB", total = "60 MiB" } }, { fsync = { file = "/git/r{i}/objects" } }], steps = [{ repeat = { every = "18s", steps = [{ read = { file = "/git/r{i}/objects", block = "256 KiB", total = "60 MiB" } }, { burn = { for = "1s" } }, { write = { file = "/git/r{i}/pack.tmp", block = "128 KiB", total = "90 MiB", truncate = true } }, { fsync = { file = "/git/r{i}/pack.tmp" } }, { close = { file = "/git/r{i}/pack.tmp" } }, { rename = { from = "/git/r{i}/pack.tmp", to = "/git/r{i}/pack" } }] } }] }
workload.tasks.refs = { steps = [{ repeat = { every = "1200ms", steps = [{ write = { file = "/git/refs", order = "append", count = 1 } }, { fsync = { file = "/git/refs" } }] } }] }
"#,
    },
    // Knobs of a bdi. A slow disk may have 24 MiB of the 1.5 GiB, strictly. 270 MiB every 35 s then wait for it: 24 s.
    Lifelike {
        name: "staging-disk-gets-strict-bytes",
        kernel: "6.12.117",
        change: &["bdi/254:0/max_bytes=25165824", "bdi/254:0/strict_limit=1"],
        really: r#"machine.devices.archive.bdi = { max_bytes = "24 MiB", strict_limit = true }"#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.archive = { size = "200 GiB", write_bandwidth = "11 MB/s", read_bandwidth = "40 MB/s" }
machine.devices.boot = { profile = "nvme-boot" }
machine.mounts."/archive" = { type = "ext4", device = "archive" }
machine.mounts."/srv" = { type = "xfs", device = "boot" }
machine.cgroups.staging = {}
machine.cgroups.api = { memory_max = "2 GiB" }
workload.seed = 310
workload.duration = "75s"
workload.tasks.stage = { cgroup = "staging", instances = 3, stagger = "2s", steps = [{ repeat = { every = "35s", steps = [{ write = { file = "/archive/reel{j}", order = "append", block = "512 KiB", total = "90 MiB" } }] } }] }
workload.tasks.api = { cgroup = "api", steps = [{ write = { file = "/srv/events", order = "append", block = "32 KiB", rate = "6 MB/s" } }] }
workload.tasks.index = { cgroup = "api", steps = [{ repeat = { every = "900ms", steps = [{ write = { file = "/srv/index", order = "append", count = 1 } }, { fsync = { file = "/srv/index" } }] } }] }
"#,
    },
    // Writeback throttling is switched on. Random reads compete with bursts of 700 MiB on an SSD.
    Lifelike {
        name: "readers-get-throttled-writeback",
        kernel: "6.1.192",
        change: &["queue/vda/wbt_lat_usec=2000"],
        really: r#"machine.devices.data.queue.wbt_latency = "2ms""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_bytes = "256 MiB", dirty_background_bytes = "64 MiB" }
machine.devices.data = { profile = "sata-ssd", queue = { wbt_latency = "0s" } }
machine.mounts."/search" = { type = "xfs", device = "data" }
machine.cgroups.search = { memory_max = "2 GiB" }
machine.cgroups.index = { memory_max = "3 GiB" }
workload.seed = 311
workload.duration = "62s"
workload.tasks.search = { cgroup = "search", setup = [{ write = { file = "/search/terms", block = "1 MiB", total = "300 MiB" } }, { fsync = { file = "/search/terms" } }, "drop_caches"], steps = [{ read = { file = "/search/terms", order = "random", block = "16 KiB", rate = "140/s", direct = true } }] }
workload.tasks.index = { cgroup = "index", steps = [{ repeat = { every = "15s", steps = [{ write = { file = "/search/index", block = "1 MiB", total = "700 MiB", truncate = true } }] } }] }
"#,
    },
    // Ratio down. Four ranks write 600 MiB together on stripes of 105 MB/s and meet at a barrier. The limit falls from 3 GiB
    // to 0.2 GiB.
    Lifelike {
        name: "ranks-on-stripes-smaller-ratio",
        kernel: "6.12.117",
        change: &["vm.dirty_ratio=3", "vm.dirty_background_ratio=1"],
        really: r#"machine.sysctl.vm = { dirty_ratio = 3, dirty_background_ratio = 1 }"#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_ratio = 40, dirty_background_ratio = 10 }
machine.devices.one = { size = "60 GiB", write_bandwidth = "35 MB/s", read_bandwidth = "70 MB/s" }
machine.devices.three = { size = "60 GiB", write_bandwidth = "35 MB/s", read_bandwidth = "70 MB/s" }
machine.devices.two = { size = "60 GiB", write_bandwidth = "35 MB/s", read_bandwidth = "70 MB/s" }
machine.devices.scratch = { backing = { striped = { members = ["one", "two", "three"] } } }
machine.mounts."/scratch" = { type = "xfs", device = "scratch" }
machine.cgroups.job = {}
workload.seed = 312
workload.duration = "90s"
workload.tasks.rank = { cgroup = "job", instances = 4, steps = [{ repeat = { every = "28s", steps = [{ burn = { for = "2s" } }, { write = { file = "/scratch/rank{j}", block = "1 MiB", total = "150 MiB", truncate = true } }, { barrier = { name = "step" } }] } }] }
workload.tasks.monitor = { steps = [{ repeat = { every = "1s", steps = [{ write = { file = "/scratch/monitor", order = "append", count = 1 } }, { fdatasync = { file = "/scratch/monitor" } }] } }] }
"#,
    },
    // Ratio up, which does nothing. The tables pass the page cache, and a commit syncs its 512 bytes.
    Lifelike {
        name: "direct-tables-larger-ratio",
        kernel: "6.12.117",
        change: &["vm.dirty_ratio=40", "vm.dirty_background_ratio=20"],
        really: r#"machine.sysctl.vm = { dirty_ratio = 40, dirty_background_ratio = 20 }"#,
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_ratio = 10, dirty_background_ratio = 5 }
machine.devices.data = { profile = "nvme-256g" }
machine.mounts."/db" = { type = "xfs", device = "data" }
machine.cgroups."db/mysql{i}" = { instances = 2, memory_max = "2 GiB" }
machine.cgroups."db/exporter{i}" = { instances = 6, memory_max = "64 MiB" }
workload.seed = 313
workload.duration = "60s"
workload.tasks.exporter = { cgroup = "db/exporter{i}", stagger = "900ms", steps = [{ repeat = { every = "13s", steps = [{ write = { file = "/db/exporter{i}.log", order = "append", count = 1 } }] } }] }
workload.tasks.mysql = { cgroup = "db/mysql{i}", preset.database = { data = "/db/m{i}/tables", log = "/db/m{i}/log", size = "256 MiB", reads = "80/s", commits = "20/s", flushes = "60/s", direct = true } }
"#,
    },
    // Ratio up, which makes it worse. A rotation syncs the filesystem: 10 MiB before, 130 MB after, 5 s of the disk.
    Lifelike {
        name: "rotations-sync-a-larger-ratio",
        kernel: "6.1.192",
        change: &["vm.dirty_ratio=50", "vm.dirty_background_ratio=40"],
        really: r#"machine.sysctl.vm = { dirty_ratio = 50, dirty_background_ratio = 40 }
unset = ["machine.sysctl.vm.dirty_bytes", "machine.sysctl.vm.dirty_background_bytes"]"#,
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_bytes = "40 MiB", dirty_background_bytes = "10 MiB" }
machine.devices.data = { size = "100 GiB", write_bandwidth = "24 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/log" = { type = "ext4", device = "data" }
machine.cgroups.collector = {}
machine.cgroups.api = { memory_max = "512 MiB" }
machine.cgroups."pod{i}" = { instances = 16, memory_max = "128 MiB" }
workload.seed = 314
workload.duration = "80s"
workload.tasks.pod = { cgroup = "pod{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.collector = { cgroup = "collector", steps = [{ write = { file = "/log/stream", order = "append", block = "64 KiB", rate = "10 MB/s" } }] }
workload.tasks.rotate = { cgroup = "collector", steps = [{ repeat = { every = "16s", steps = [{ sleep = { for = "13s" } }, { syncfs = { path = "/log" } }] } }] }
workload.tasks.api = { cgroup = "api", steps = [{ repeat = { every = "800ms", steps = [{ write = { file = "/log/api", order = "append", count = 1 } }, { fdatasync = { file = "/log/api" } }] } }] }
"#,
    },
    // memory.max up. Merges of 170 MiB are paused by a limit of 35 MiB before, and by none after: 200 MiB.
    Lifelike {
        name: "merges-get-a-larger-limit",
        kernel: "7.2.13",
        change: &["cgroup/search/memory.max=1073741824"],
        really: r#"machine.cgroups.search.memory_max = "1 GiB""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.data = { size = "100 GiB", write_bandwidth = "65 MB/s", read_bandwidth = "130 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.search = { memory_max = "176 MiB" }
machine.cgroups."idle{i}" = { instances = 10, memory_max = "256 MiB" }
workload.seed = 315
workload.duration = "85s"
workload.tasks.idle = { cgroup = "idle{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.refresh = { cgroup = "search", steps = [{ repeat = { every = "5s", steps = [{ write = { file = "/data/segment", order = "append", block = "64 KiB", total = "12 MiB", rate = "30 MB/s" } }] } }] }
workload.tasks.merge = { cgroup = "search", start = "3s", steps = [{ repeat = { every = "21s", steps = [{ write = { file = "/data/merged", block = "256 KiB", total = "170 MiB", rate = "130 MB/s", truncate = true } }] } }] }
"#,
    },
    // Pages age for longer. Uploads of 40 MiB are removed after 18 s: with an age of 8 s they are written, with 60 s they are not.
    Lifelike {
        name: "uploads-removed-before-they-age",
        kernel: "6.12.117",
        change: &["vm.dirty_expire_centisecs=6000"],
        really: r#"machine.sysctl.vm.dirty_expire_centisecs = 6000"#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 10, dirty_expire_centisecs = 800 }
machine.devices.data = { profile = "hdd-10000" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."web/php{i}" = { instances = 6, memory_max = "1 GiB" }
machine.cgroups.queue = { memory_max = "256 MiB" }
workload.seed = 316
workload.duration = "84s"
workload.tasks.upload = { cgroup = "web/php{i}", stagger = "4s", steps = [{ repeat = { every = "26s", steps = [{ create_files = { file = "/data/tmp{i}/{d}/{n}", files = 160, files_per_dir = 40, size = "256 KiB", rate = "40/s" } }, { sleep = { for = "18s" } }, { unlink = { file = "/data/tmp{i}/{d}/{n}", files = 160, files_per_dir = 40 } }] } }] }
workload.tasks.queue = { cgroup = "queue", steps = [{ repeat = { every = "1s", steps = [{ write = { file = "/data/queue", order = "append", count = 2 } }, { fdatasync = { file = "/data/queue" } }] } }] }
"#,
    },
];
