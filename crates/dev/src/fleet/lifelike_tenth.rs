// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tenth list of hosts shaped like those that people run, of shapes that the nine lists before it do not have: series whose
//! blocks are synced in a smaller pod, a guide for databases on a host of exports, a mail host that moves by two releases, a file
//! server on a smaller guest, letters on a better volume, a tenant's export that gets a limit, a power profile, saves in a larger
//! pod, and tables on ext4 whose folios grow with the kernel. All hosts were committed before any was scored. The comment of
//! each host states the result that arithmetic expects of its change. The position of a host decides how its recording differs
//! from one of a guest, as in the second list.

use super::lifelike::Lifelike;

/// The list. Recordings of neighbours in it have different shapes.
pub(super) const LIFELIKE_TENTH: &[Lifelike] = &[
    // One wait for another. A server of series writes a block of 180 MiB in 3 s and syncs it: 3.5 s of 50 MB/s. 20 % and 10 % of 400
    // MiB: written from 40 MiB on and paused from 60 MiB on. The disk has done half of it before the sync, which is shorter, but
    // the writes wait.
    Lifelike {
        name: "series-and-blocks-in-a-smaller-pod",
        kernel: "6.12.117",
        change: &["cgroup/monitoring/series/memory.max=419430400"],
        really: r#"machine.cgroups."monitoring/series".memory_max = "400 MiB""#,
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.devices.vda = { size = "200 GiB", write_bandwidth = "50 MB/s", read_bandwidth = "90 MB/s" }
machine.devices.vdb = { size = "40 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/series" = { type = "ext4", device = "vda" }
machine.mounts."/srv" = { type = "xfs", device = "vdb" }
machine.cgroups."monitoring/series" = { memory_max = "4 GiB" }
machine.cgroups."monitoring/exporter{i}" = { instances = 14, memory_max = "64 MiB" }
workload.seed = 1001
workload.duration = "84s"
workload.tasks.exporter = { cgroup = "monitoring/exporter{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.scrape = { cgroup = "monitoring/series", steps = [{ write = { file = "/series/wal", order = "append", block = "8 KiB", rate = "300 kB/s" } }] }
workload.tasks.block = { cgroup = "monitoring/series", start = "6s", steps = [{ repeat = { every = "26s", steps = [{ write = { file = "/series/block", block = "256 KiB", total = "180 MiB", rate = "60 MB/s", truncate = true } }, { fsync = { file = "/series/block" } }] } }] }
workload.tasks.alerts = { steps = [{ repeat = { every = "1s", steps = [{ write = { file = "/srv/alerts", order = "append", count = 1 } }, { fdatasync = { file = "/srv/alerts" } }] } }] }
"#,
    },
    // A guide for databases, on another kind of host. An export of 640 MiB comes in 6 s every 34 s. 20 % and 10 % of 16 GiB are never
    // reached: all of it is old at once, 12 s of 55 MB/s, in which orders of the same disk wait. From 3 % on, 460 MiB, a
    // small part is written sooner. Orders wait nearly as long.
    Lifelike {
        name: "exports-beside-orders-by-a-guide-for-databases",
        kernel: "5.10.223",
        change: &["vm.dirty_ratio=10", "vm.dirty_background_ratio=3"],
        really: r#"machine.sysctl.vm = { dirty_ratio = 10, dirty_background_ratio = 3 }"#,
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.devices.data = { size = "300 GiB", write_bandwidth = "55 MB/s", read_bandwidth = "110 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.export = {}
machine.cgroups.orders = { memory_max = "2 GiB" }
machine.cgroups."app{i}" = { instances = 11, memory_max = "512 MiB" }
workload.seed = 1002
workload.duration = "88s"
workload.tasks.app = { cgroup = "app{i}", stagger = "350ms", preset.logger = { file = "/data/app{i}.log", lines = "9/s" } }
workload.tasks.export = { cgroup = "export", start = "2s", steps = [{ repeat = { every = "34s", steps = [{ write = { file = "/data/export", block = "256 KiB", total = "640 MiB", rate = "110 MB/s", truncate = true } }] } }] }
workload.tasks.orders = { cgroup = "orders", instances = 2, steps = [{ repeat = { every = "700ms", steps = [{ write = { file = "/data/orders{j}", order = "append", block = "8 KiB", count = 1 } }, { fdatasync = { file = "/data/orders{j}" } }] } }] }
"#,
    },
    // Nothing comes. Letters are synced one by one, so little is dirty, and limits of 512 MiB leave 50 MiB for it. Six boxes are read out of
    // memory. Neither version 2 nor two releases change that.
    Lifelike {
        name: "letters-by-two-releases-to-v2",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.12.117"],
        really: r#"machine.cgroup_mode = "v2""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.mail = { size = "400 GiB", write_bandwidth = "90 MB/s", read_bandwidth = "90 MB/s", write_iops = "900 IO/s", read_iops = "900 IO/s" }
machine.devices.system = { size = "40 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/mail" = { type = "ext4", device = "mail", options = ["noatime"] }
machine.mounts."/log" = { type = "xfs", device = "system" }
machine.cgroups.lmtp = { memory_max = "512 MiB" }
machine.cgroups.imap = { memory_max = "512 MiB" }
machine.cgroups."filter{i}" = { instances = 6, memory_max = "256 MiB" }
workload.seed = 1003
workload.duration = "72s"
workload.tasks.lmtp = { cgroup = "lmtp", instances = 3, preset.mail = { dir = "/mail/new{j}", messages = "3/s", message = "10 KiB" } }
workload.tasks.imap = { cgroup = "imap", instances = 6, setup = [{ write = { file = "/mail/box{j}", block = "1 MiB", total = "30 MiB" } }, { fsync = { file = "/mail/box{j}" } }], steps = [{ read = { file = "/mail/box{j}", order = "random", block = "16 KiB", rate = "12/s" } }] }
workload.tasks.filter = { cgroup = "filter{i}", stagger = "300ms", preset.logger = { file = "/log/filter{i}", lines = "15/s" } }
"#,
    },
    // Gets sick. Uploads of 640 MiB come at 100 MB/s every 36 s and are not synced. A guest of 16 GiB pauses no task below 2 GiB. One of
    // 2 GiB pauses from some 280 MiB on: 200 MiB wait for 42 MB/s.
    Lifelike {
        name: "shares-on-a-smaller-guest",
        kernel: "6.12.43",
        change: &["memory=2G"],
        really: r#"machine.memory = "2 GiB""#,
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 2
machine.devices.share = { size = "900 GiB", write_bandwidth = "42 MB/s", read_bandwidth = "120 MB/s" }
machine.devices.system = { size = "40 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/share" = { type = "xfs", device = "share" }
machine.mounts."/srv" = { type = "ext4", device = "system" }
machine.cgroups.nfsd = {}
machine.cgroups."home{i}" = { instances = 10, memory_max = "128 MiB" }
workload.seed = 1004
workload.duration = "90s"
workload.tasks.home = { cgroup = "home{i}", stagger = "700ms", steps = [{ repeat = { every = "8s", steps = [{ write = { file = "/srv/home{i}", block = "64 KiB", total = "512 KiB", truncate = true } }] } }] }
workload.tasks.upload = { cgroup = "nfsd", start = "1s", steps = [{ repeat = { every = "36s", steps = [{ create_files = { file = "/share/set/{d}/{n}", files = 160, files_per_dir = 80, size = "4 MiB", rate = "25/s" } }] } }] }
workload.tasks.lookup = { cgroup = "nfsd", setup = [{ write = { file = "/share/tree", block = "1 MiB", total = "60 MiB" } }, { fsync = { file = "/share/tree" } }], steps = [{ read = { file = "/share/tree", order = "random", block = "4 KiB", rate = "50/s" } }] }
"#,
    },
    // Gets well. Nine letters a second are synced, and an index is updated at random. Each letter needs several requests, and the volume
    // does 40 a second: letters wait all the time. Of 2,000 a second each takes milliseconds.
    Lifelike {
        name: "letters-on-a-volume-of-more-requests",
        kernel: "6.1.192",
        change: &["machine.devices.vda.write_iops=2000 IO/s"],
        really: r#"machine.devices.vda.write_iops = "2000 IO/s""#,
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.vda = { size = "200 GiB", write_bandwidth = "80 MB/s", read_bandwidth = "80 MB/s", write_iops = "40 IO/s", read_iops = "2000 IO/s" }
machine.mounts."/mail" = { type = "ext4", device = "vda" }
machine.cgroups.mail = { memory_max = "1 GiB" }
machine.cgroups."worker{i}" = { instances = 7, memory_max = "128 MiB" }
workload.seed = 1005
workload.duration = "70s"
workload.tasks.worker = { cgroup = "worker{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.letters = { cgroup = "mail", instances = 3, preset.mail = { dir = "/mail/new{j}", messages = "3/s", message = "12 KiB" } }
workload.tasks.index = { cgroup = "mail", setup = [{ write = { file = "/mail/index", block = "1 MiB", total = "40 MiB" } }, { fsync = { file = "/mail/index" } }], steps = [{ write = { file = "/mail/index", order = "random", size = "40 MiB", rate = "6/s" } }] }
"#,
    },
    // Gets sick. A tenant exports 260 MiB every 40 s at 60 MB/s and syncs nothing. 20 % and 10 % of 1 GiB: paused from 150 MiB on, and
    // the disk keeps up. With 8 MB/s for the tenant, 80 MiB and more wait for that: 10 s each time.
    Lifelike {
        name: "exports-of-a-tenant-get-a-limit",
        kernel: "7.2.13",
        change: &["machine.cgroups.tenant.io_max.vda.write_bandwidth=8 MB/s"],
        really: r#"machine.cgroups.tenant.io_max.vda.write_bandwidth = "8 MB/s""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "300 GiB", write_bandwidth = "120 MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "vda" }
machine.cgroups.tenant = { memory_max = "1 GiB" }
machine.cgroups.shop = { memory_max = "1 GiB" }
machine.cgroups."idle{i}" = { instances = 16, memory_max = "128 MiB" }
workload.seed = 1006
workload.duration = "92s"
workload.tasks.idle = { cgroup = "idle{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.export = { cgroup = "tenant", start = "2s", steps = [{ repeat = { every = "40s", steps = [{ write = { file = "/data/export", block = "256 KiB", total = "260 MiB", rate = "60 MB/s", truncate = true } }] } }] }
workload.tasks.shop = { cgroup = "shop", steps = [{ repeat = { every = "600ms", steps = [{ write = { file = "/data/shop", order = "append", count = 2 } }, { fdatasync = { file = "/data/shop" } }] } }] }
"#,
    },
    // A little worse. A power profile wakes the flusher each 15 s instead of 5. Data of two cameras, 3 MB/s together, are up to 45 s old
    // instead of 35: 135 MB instead of 105, which the disk of 30 MB/s writes in 4.5 s instead of 3.5. Doors sync and wait.
    Lifelike {
        name: "cameras-under-a-power-profile",
        kernel: "6.12.117",
        change: &["vm.dirty_writeback_centisecs=1500"],
        really: r#"machine.sysctl.vm.dirty_writeback_centisecs = 1500"#,
        scenario: r#"
machine.memory = "6 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 10, dirty_writeback_centisecs = 500 }
machine.devices.data = { size = "900 GiB", write_bandwidth = "30 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.cameras = { memory_max = "3 GiB" }
machine.cgroups.doors = { memory_max = "256 MiB" }
machine.cgroups."sensor{i}" = { instances = 9, memory_max = "64 MiB" }
workload.seed = 1007
workload.duration = "110s"
workload.tasks.camera = { cgroup = "cameras", instances = 2, stagger = "500ms", steps = [{ write = { file = "/data/camera{j}", order = "append", block = "64 KiB", rate = "1500 kB/s" } }] }
workload.tasks.doors = { cgroup = "doors", steps = [{ repeat = { every = "900ms", steps = [{ write = { file = "/data/doors", order = "append", count = 1 } }, { fdatasync = { file = "/data/doors" } }] } }] }
workload.tasks.sensor = { cgroup = "sensor{i}", stagger = "900ms", steps = [{ repeat = { every = "12s", steps = [{ write = { file = "/data/sensor{i}", order = "append", count = 1 } }] } }] }
"#,
    },
    // Gets sick by a larger limit. A store saves 280 MiB in 9 s every 30 s and syncs them. 20 % and 10 % of 384 MiB: written from 38 MiB on,
    // so that most is on the disk before the sync. 10 % of 6 GiB are never reached: the sync finds all, 6 s of 48 MB/s, in
    // which the log of the store, synced each second, waits.
    Lifelike {
        name: "saves-of-a-store-in-a-larger-pod",
        kernel: "6.1.192",
        change: &["cgroup/store/memory.max=6442450944"],
        really: r#"machine.cgroups.store.memory_max = "6 GiB""#,
        scenario: r#"
machine.memory = "12 GiB"
machine.cpus = 4
machine.devices.data = { size = "200 GiB", write_bandwidth = "48 MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.store = { memory_max = "384 MiB" }
machine.cgroups."client{i}" = { instances = 12, memory_max = "128 MiB" }
workload.seed = 1008
workload.duration = "86s"
workload.tasks.client = { cgroup = "client{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.save = { cgroup = "store", start = "3s", steps = [{ repeat = { every = "30s", steps = [{ write = { file = "/data/dump.tmp", block = "64 KiB", total = "280 MiB", rate = "32 MB/s", truncate = true } }, { fsync = { file = "/data/dump.tmp" } }, { close = { file = "/data/dump.tmp" } }, { rename = { from = "/data/dump.tmp", to = "/data/dump" } }] } }] }
workload.tasks.log = { cgroup = "store", preset.redis_aof = { file = "/data/appendonly", commands = "60/s" } }
"#,
    },
    // Writes more. Six indexers store into mapped tables of 24 MiB on ext4. The older kernel dirties 4 KiB with each store. The newer one
    // has large folios on ext4: a store dirties all of a folio, and the tables go out whole again and again.
    Lifelike {
        name: "mapped-tables-on-ext4-next-kernel",
        kernel: "6.12.117",
        change: &["kernel=7.2.13"],
        really: "",
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 10, dirty_expire_centisecs = 500, dirty_writeback_centisecs = 100 }
machine.devices.data = { size = "200 GiB", write_bandwidth = "140 MB/s", read_bandwidth = "140 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."index{i}" = { instances = 6, memory_max = "512 MiB" }
machine.cgroups."web{i}" = { instances = 10, memory_max = "128 MiB" }
workload.seed = 1009
workload.duration = "66s"
workload.tasks.index = { cgroup = "index{i}", stagger = "70ms", setup = [{ write = { file = "/data/table{i}", block = "1 MiB", total = "24 MiB" } }, { fsync = { file = "/data/table{i}" } }], steps = [{ mmap_store = { file = "/data/table{i}", size = "24 MiB", pages = 12, rate = "5/s" } }] }
workload.tasks.web = { cgroup = "web{i}", stagger = "400ms", preset.logger = { file = "/data/web{i}.log", lines = "10/s" } }
"#,
    },
];
