// SPDX-License-Identifier: MIT OR Apache-2.0
//! A fourteenth list of hosts shaped like those that people run, of shapes that the thirteen lists before it do not have: volumes that
//! are detached, an archive of mail on version 2, a search node on the next kernel, packs of a backup below a smaller slice, a
//! repository on a larger guest, caches of sites without dirty times, a spool on a faster second disk, worlds of games by two releases,
//! a gateway with twice its memory, and mail on a mirror that is flushed early. All hosts were committed before any was scored. The
//! comment of each host states the result that arithmetic expects of its change. The position of a host decides how its recording
//! differs from one of a guest, as in the second list.

use super::lifelike::Lifelike;

/// The list. Recordings of neighbours in it have different shapes.
pub(super) const LIFELIKE_FOURTEENTH: &[Lifelike] = &[
    // Gets better. A pod mounts its volume, writes 96 MiB at 8 MB/s and ends. The volume is unmounted 2 s later, for which 100 MB go to a
    // disk of 16 MB/s: 6 s each time. A background threshold of 8 MiB lets the flusher write beside the pod, and half a second is left.
    Lifelike {
        name: "volumes-detached-flushed-early",
        kernel: "6.12.117",
        change: &["vm.dirty_background_bytes=8388608"],
        really: r#"machine.sysctl.vm.dirty_background_bytes = "8 MiB"
unset = ["machine.sysctl.vm.dirty_background_ratio"]"#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.root = { size = "80 GiB", write_bandwidth = "150 MB/s", read_bandwidth = "150 MB/s" }
machine.devices.store = { size = "200 GiB", write_bandwidth = "16 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/var" = { type = "ext4", device = "root" }
machine.mounts."/volume" = { type = "ext4", device = "store", at_start = false }
machine.cgroups."kubepods/import" = {}
machine.cgroups."kubepods/pod{i}" = { instances = 12, memory_max = "256 MiB" }
workload.seed = 1401
workload.duration = "106s"
workload.tasks.import = { cgroup = "kubepods/import", steps = [{ repeat = { every = "34s", steps = [{ mount = { point = "/volume" } }, { create_files = { file = "/volume/part{n}", files = 24, size = "4 MiB", rate = "2/s" } }, { sleep = { for = "2s" } }, { umount = { point = "/volume" } }] } }] }
workload.tasks.pod = { cgroup = "kubepods/pod{i}", stagger = "300ms", preset.logger = { file = "/var/pod{i}.log", lines = "4/s" } }
"#,
    },
    // Gets sick. Three importers of an archive have 256 MiB each and store 320 letters of 256 KiB in less than a second every 24 s. Version 2
    // pauses an importer from 38 MiB on: 40 MiB or more wait for a disk of 26 MB/s, 2 s each time.
    Lifelike {
        name: "archive-of-mail-to-v2",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        really: r#"machine.cgroup_mode = "v2""#,
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.archive = { size = "900 GiB", write_bandwidth = "26 MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/archive" = { type = "xfs", device = "archive", options = ["noatime"] }
machine.cgroups."import{i}" = { instances = 3, memory_max = "256 MiB" }
machine.cgroups."idle{i}" = { instances = 8, memory_max = "128 MiB" }
workload.seed = 1402
workload.duration = "88s"
workload.tasks.idle = { cgroup = "idle{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.letters = { cgroup = "import{i}", stagger = "8s", steps = [{ repeat = { every = "24s", steps = [{ create_files = { file = "/archive/i{i}/{d}/{n}", files = 320, files_per_dir = 80, size = "256 KiB", rate = "400/s" } }, { burn = { for = "2s" } }] } }] }
"#,
    },
    // Nothing comes. A search node syncs its log of changes every 5 s and a segment of 12 MiB every 10 s: a tenth of a second. Both are
    // written from start to end, so the next kernel writes what this one does.
    Lifelike {
        name: "search-node-next-kernel",
        kernel: "6.12.43",
        change: &["kernel=7.2.13"],
        really: "",
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "200 GiB", write_bandwidth = "120 MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/search" = { type = "xfs", device = "vda", options = ["noatime"] }
machine.cgroups.search = { memory_max = "4 GiB" }
machine.cgroups."web{i}" = { instances = 6, memory_max = "128 MiB" }
workload.seed = 1403
workload.duration = "72s"
workload.tasks.heap = { cgroup = "search", setup = [{ anon = { size = "1 GiB" } }], steps = [{ repeat = { every = "100ms", steps = [{ burn = { for = "5ms" } }] } }] }
workload.tasks.changes = { cgroup = "search", steps = [{ write = { file = "/search/changes", order = "append", block = "4 KiB", rate = "30/s", sync = { call = "fdatasync", every = "5s" } } }] }
workload.tasks.segment = { cgroup = "search", start = "2s", steps = [{ repeat = { every = "10s", steps = [{ create_files = { file = "/search/segment{n}", files = 1, size = "12 MiB", fsync = true } }] } }] }
workload.tasks.web = { cgroup = "web{i}", stagger = "450ms", preset.logger = { file = "/search/web{i}.log", lines = "6/s" } }
"#,
    },
    // Gets sick. A backup reads 150 MiB from one disk at 75 MB/s every 36 s and writes them to another one, of 25 MB/s. Its slice has 4 GiB,
    // which pause it from 600 MiB on. A slice of 256 MiB pauses it from 38 MiB on: more than 60 MiB wait for the disk, 3 s each time.
    Lifelike {
        name: "packs-of-a-backup-below-a-smaller-slice",
        kernel: "6.12.117",
        change: &["cgroup/backup.slice/memory.max=268435456"],
        really: r#"machine.cgroups."backup.slice".memory_max = "256 MiB""#,
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.devices.source = { size = "200 GiB", write_bandwidth = "150 MB/s", read_bandwidth = "150 MB/s" }
machine.devices.target = { size = "900 GiB", write_bandwidth = "25 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/source" = { type = "xfs", device = "source" }
machine.mounts."/target" = { type = "xfs", device = "target" }
machine.cgroups."backup.slice" = { memory_max = "4 GiB" }
machine.cgroups."backup.slice/run" = {}
machine.cgroups."backup.slice/log" = {}
workload.seed = 1404
workload.duration = "100s"
workload.tasks.run = { cgroup = "backup.slice/run", setup = [{ write = { file = "/source/data", block = "1 MiB", total = "640 MiB", direct = true } }], steps = [{ repeat = { every = "36s", steps = [{ read = { file = "/source/data", block = "256 KiB", total = "150 MiB" } }, { write = { file = "/target/pack", order = "append", block = "256 KiB", total = "150 MiB", rate = "75 MB/s" } }] } }] }
workload.tasks.log = { cgroup = "backup.slice/log", preset.logger = { file = "/source/backup.log", lines = "8/s" } }
"#,
    },
    // Gets worse. A repository takes 7 MB/s in a guest of 3 GiB, where 1 % are 28 MiB: the flusher writes two thirds of a second at a time. In
    // a guest of 28 GiB, 1 % are 270 MiB, which are never reached. After half a minute 210 MB are old: 5 s of a disk of 40 MB/s, for which
    // the catalogue waits with its commits.
    Lifelike {
        name: "repository-on-a-larger-guest",
        kernel: "5.10.223",
        change: &["memory=28G"],
        really: r#"machine.memory = "28 GiB""#,
        scenario: r#"
machine.memory = "3 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.sysctl.vm = { dirty_ratio = 6, dirty_background_ratio = 1 }
machine.devices.vda = { size = "900 GiB", write_bandwidth = "40 MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/repository" = { type = "ext4", device = "vda", options = ["noatime"] }
machine.cgroups.take = {}
machine.cgroups.catalogue = {}
machine.cgroups."proxy{i}" = { instances = 4, memory_max = "128 MiB" }
workload.seed = 1405
workload.duration = "104s"
workload.tasks.take = { cgroup = "take", instances = 2, steps = [{ write = { file = "/repository/chain{j}", order = "append", block = "128 KiB", rate = "3500 kB/s" } }] }
workload.tasks.catalogue = { cgroup = "catalogue", instances = 2, stagger = "300ms", steps = [{ repeat = { every = "600ms", steps = [{ write = { file = "/repository/catalogue{j}", order = "append", count = 1 } }, { fdatasync = { file = "/repository/catalogue{j}" } }] } }] }
workload.tasks.proxy = { cgroup = "proxy{i}", stagger = "350ms", preset.logger = { file = "/repository/proxy{i}.log", lines = "4/s" } }
"#,
    },
    // Gets better. A unit fetches 16,000 files of 1 KiB. They are synced and read, and the cgroup of the unit is removed. With lazy times all
    // inodes are dirty by their times, and 6.12.43 inserts each in order: seconds of a CPU. Without access times they are clean, and
    // to switch them takes a tenth of a second.
    Lifelike {
        name: "caches-of-sites-without-dirty-times",
        kernel: "6.12.43",
        change: &["mount/www/options=noatime"],
        really: r#"machine.mounts."/www".options = ["noatime"]"#,
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.vda = { size = "40 GiB", write_bandwidth = "190 MB/s", read_bandwidth = "190 MB/s" }
machine.mounts."/www" = { type = "xfs", device = "vda", options = ["lazytime", "strictatime"] }
machine.cgroups.units = {}
machine.cgroups."units/fetch" = {}
machine.cgroups."site{i}" = { instances = 3, memory_max = "256 MiB" }
workload.seed = 1406
workload.duration = "52s"
workload.tasks.fetch = { cgroup = "units/fetch", steps = [{ create_files = { file = "/www/cache/{d}/{n}", files = 16000, files_per_dir = 400, size = "1 KiB" } }] }
workload.tasks.manager = { steps = [{ wait_for = { task = "fetch" } }, "sync", { read = { file = "/www/cache/{d}/{n}", files = 16000, files_per_dir = 400 } }, { sleep = { for = "8s" } }, { remove_cgroup = { cgroup = "units/fetch" } }, { sleep = { for = "24s" } }] }
workload.tasks.site = { cgroup = "site{i}", stagger = "9ms", steps = [{ repeat = { every = "30ms", steps = [{ burn = { for = "1ms" } }] } }] }
"#,
    },
    // Gets better. A spool on the second disk gets 20 MiB every 9 s and syncs them: 1.5 s of 14 MB/s. On a disk of 110 MB/s they take a fifth
    // of a second. The database on the first disk stays as it is.
    Lifelike {
        name: "spool-on-a-faster-second-disk",
        kernel: "6.12.117",
        change: &["machine.devices.vdb.write_bandwidth=110 MB/s"],
        really: r#"machine.devices.vdb.write_bandwidth = "110 MB/s""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "100 GiB", write_bandwidth = "90 MB/s", read_bandwidth = "90 MB/s" }
machine.devices.vdb = { size = "500 GiB", write_bandwidth = "14 MB/s", read_bandwidth = "110 MB/s" }
machine.mounts."/db" = { type = "xfs", device = "vda" }
machine.mounts."/spool" = { type = "ext4", device = "vdb", options = ["noatime"] }
machine.cgroups.database = { memory_max = "2 GiB" }
machine.cgroups.spool = { memory_max = "1 GiB" }
workload.seed = 1407
workload.duration = "76s"
workload.tasks.commit = { cgroup = "database", instances = 2, stagger = "120ms", steps = [{ repeat = { every = "500ms", steps = [{ write = { file = "/db/log{j}", order = "append", block = "8 KiB", count = 1 } }, { fdatasync = { file = "/db/log{j}" } }] } }] }
workload.tasks.spool = { cgroup = "spool", start = "2s", steps = [{ repeat = { every = "9s", steps = [{ write = { file = "/spool/batch", order = "append", block = "128 KiB", total = "20 MiB" } }, { fdatasync = { file = "/spool/batch" } }] } }] }
"#,
    },
    // Gets sick. Six worlds of a game have 384 MiB each, of which 250 are in use. Each saves 45 MiB every 25 s, in its turn. Version 2 pauses a
    // world from 20 MiB on: some 25 MiB wait for a disk of 18 MB/s, 1.4 s each time.
    Lifelike {
        name: "worlds-of-games-by-two-releases-to-v2",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.12.117"],
        really: r#"machine.cgroup_mode = "v2""#,
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "200 GiB", write_bandwidth = "18 MB/s", read_bandwidth = "80 MB/s" }
machine.mounts."/worlds" = { type = "xfs", device = "vda" }
machine.cgroups."world{i}" = { instances = 6, memory_max = "384 MiB" }
workload.seed = 1408
workload.duration = "92s"
workload.tasks.players = { cgroup = "world{i}", setup = [{ anon = { size = "250 MiB" } }], steps = [{ repeat = { every = "50ms", steps = [{ burn = { for = "2ms" } }] } }] }
workload.tasks.save = { cgroup = "world{i}", stagger = "4s", steps = [{ repeat = { every = "25s", steps = [{ write = { file = "/worlds/w{i}", block = "64 KiB", total = "45 MiB", truncate = true } }] } }] }
"#,
    },
    // Nothing comes. A gateway of objects writes durable records and 300 kB/s of logs, and reads 200 MiB that stay in memory. Twice the memory
    // changes nothing of that: no threshold was near, and 9 MB are old at a time.
    Lifelike {
        name: "gateway-with-twice-its-memory",
        kernel: "7.2.13",
        change: &["memory=16G"],
        really: r#"machine.memory = "16 GiB""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "300 GiB", write_bandwidth = "130 MB/s", read_bandwidth = "130 MB/s" }
machine.mounts."/objects" = { type = "ext4", device = "vda", options = ["noatime"] }
machine.cgroups.gateway = {}
machine.cgroups.log = {}
machine.cgroups."tenant{i}" = { instances = 9, memory_max = "256 MiB" }
workload.seed = 1409
workload.duration = "74s"
workload.tasks.read = { cgroup = "gateway", setup = [{ write = { file = "/objects/hot", block = "1 MiB", total = "200 MiB" } }, { fsync = { file = "/objects/hot" } }], steps = [{ read = { file = "/objects/hot", order = "random", block = "32 KiB", rate = "50/s", for = "120s" } }] }
workload.tasks.record = { cgroup = "gateway", steps = [{ write = { file = "/objects/records", order = "append", block = "16 KiB", dsync = true, rate = "10/s" } }] }
workload.tasks.log = { cgroup = "log", steps = [{ write = { file = "/objects/access", order = "append", block = "16 KiB", rate = "300 kB/s" } }] }
workload.tasks.tenant = { cgroup = "tenant{i}", stagger = "380ms", preset.logger = { file = "/objects/tenant{i}.log", lines = "3/s" } }
"#,
    },
    // Gets better. An export of 6 MB/s goes to a mirror whose slower disk writes 30 MB/s. After half a minute 180 MB are old: 6 s, for which
    // letters wait. A background threshold of 4 MiB makes the flusher write a seventh of a second at a time.
    Lifelike {
        name: "mail-on-a-mirror-flushed-from-four-megabytes",
        kernel: "5.10.223",
        change: &["vm.dirty_bytes=268435456", "vm.dirty_background_bytes=4194304"],
        really: r#"machine.sysctl.vm = { dirty_bytes = "256 MiB", dirty_background_bytes = "4 MiB" }
unset = ["machine.sysctl.vm.dirty_ratio", "machine.sysctl.vm.dirty_background_ratio"]"#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.a = { size = "64 GiB", write_bandwidth = "30 MB/s", read_bandwidth = "60 MB/s" }
machine.devices.b = { size = "64 GiB", write_bandwidth = "45 MB/s", read_bandwidth = "60 MB/s" }
machine.devices.mirror.backing = { raid1 = { members = ["a", "b"] } }
machine.mounts."/srv" = { type = "ext4", device = "mirror" }
machine.cgroups.export = { memory_max = "2 GiB" }
machine.cgroups.mail = { memory_max = "1 GiB" }
machine.cgroups."idle{i}" = { instances = 7, memory_max = "64 MiB" }
workload.seed = 1410
workload.duration = "96s"
workload.tasks.idle = { cgroup = "idle{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.export = { cgroup = "export", steps = [{ write = { file = "/srv/export", order = "append", block = "64 KiB", rate = "6 MB/s" } }] }
workload.tasks.letters = { cgroup = "mail", instances = 2, stagger = "250ms", preset.mail = { dir = "/srv/mail{j}", messages = "2/s", message = "8 KiB" } }
"#,
    },
];
