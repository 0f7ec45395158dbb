// SPDX-License-Identifier: MIT OR Apache-2.0
//! A twelfth list of hosts shaped like those that people run, of shapes that the eleven lists before it do not have: series by a guide
//! that sets one key, a hotel of sites on version 2, mapped states by a release, builds on a smaller guest, a mail host on a better
//! volume, a tenant whose plan is widened, uploads that get a plan, a server of scans with young data, a share that leaves its strict
//! limit, and services by two releases. All hosts were committed before any was scored. The comment of each host states the result that
//! arithmetic expects of its change. The position of a host decides how its recording differs from one of a guest, as in the second list.

use super::lifelike::Lifelike;

/// The list. Recordings of neighbours in it have different shapes.
pub(super) const LIFELIKE_TWELFTH: &[Lifelike] = &[
    // Gets better. A database of series writes its blocks at 7 MB/s without a sync. 10 % of 8 GiB are never reached, and all of it is old
    // after half a minute: 210 MB, 7 s of what 38 MB/s leave, for which alerts wait with their commits. A background threshold of 32 MiB
    // alone is reached after 5 s: bursts of a second, more often. The longest wait falls to a fraction, and all waits together a little.
    Lifelike {
        name: "series-by-a-guide-of-one-key",
        kernel: "6.12.117",
        change: &["vm.dirty_background_bytes=33554432"],
        really: r#"machine.sysctl.vm.dirty_background_bytes = "32 MiB"
unset = ["machine.sysctl.vm.dirty_background_ratio"]"#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.data = { size = "200 GiB", write_bandwidth = "38 MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.series = { memory_max = "4 GiB" }
machine.cgroups.alerts = { memory_max = "512 MiB" }
machine.cgroups."agent{i}" = { instances = 8, memory_max = "64 MiB" }
workload.seed = 1201
workload.duration = "92s"
workload.tasks.block = { cgroup = "series", steps = [{ write = { file = "/data/chunks", order = "append", block = "64 KiB", rate = "7 MB/s" } }] }
workload.tasks.alert = { cgroup = "alerts", instances = 2, stagger = "200ms", steps = [{ repeat = { every = "600ms", steps = [{ write = { file = "/data/alert{j}", order = "append", count = 1 } }, { fdatasync = { file = "/data/alert{j}" } }] } }] }
workload.tasks.agent = { cgroup = "agent{i}", stagger = "300ms", preset.logger = { file = "/data/agent{i}.log", lines = "4/s" } }
"#,
    },
    // Nothing comes. Twenty sites of 384 MiB log, and each saves a page of 300 kB every 15 s. Version 2 leaves each of them 57 MiB before a
    // pause.
    Lifelike {
        name: "hotel-of-sites-to-v2",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        really: r#"machine.cgroup_mode = "v2""#,
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.www = { size = "300 GiB", write_bandwidth = "120 MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/www" = { type = "xfs", device = "www", options = ["noatime"] }
machine.cgroups."site{i}" = { instances = 20, memory_max = "384 MiB" }
machine.cgroups.mysql = { memory_max = "2 GiB" }
workload.seed = 1202
workload.duration = "80s"
workload.tasks.access = { cgroup = "site{i}", stagger = "190ms", preset.logger = { file = "/www/access{i}", lines = "7/s" } }
workload.tasks.page = { cgroup = "site{i}", stagger = "700ms", steps = [{ repeat = { every = "15s", steps = [{ write = { file = "/www/page{i}", block = "64 KiB", total = "300 kB", truncate = true } }] } }] }
workload.tasks.mysql = { cgroup = "mysql", steps = [{ repeat = { every = "400ms", steps = [{ write = { file = "/www/redo", order = "append", block = "8 KiB", count = 1 } }, { fdatasync = { file = "/www/redo" } }] } }] }
"#,
    },
    // Gets worse. Six pods of 128 MiB store into a mapped state of 5 MiB that was written in blocks of 256 KiB. A guide's 64 MiB and 24 MiB
    // leave a pod about a megabyte. On 6.1 a store dirties 4 KiB. The newer release has large folios on XFS, and whole folios go out again
    // and again.
    Lifelike {
        name: "mapped-states-of-pods-by-a-release",
        kernel: "6.1.192",
        change: &["kernel=6.12.117"],
        really: "",
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_bytes = "64 MiB", dirty_background_bytes = "24 MiB" }
machine.devices.data = { size = "100 GiB", write_bandwidth = "140 MB/s", read_bandwidth = "140 MB/s" }
machine.devices.system = { size = "40 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.mounts."/srv" = { type = "ext4", device = "system" }
machine.cgroups."pod{i}" = { instances = 6, memory_max = "128 MiB" }
machine.cgroups."idle{i}" = { instances = 10, memory_max = "128 MiB" }
workload.seed = 1203
workload.duration = "70s"
workload.tasks.state = { cgroup = "pod{i}", stagger = "60ms", setup = [{ write = { file = "/data/state{i}", block = "256 KiB", total = "5 MiB" } }, { fsync = { file = "/data/state{i}" } }], steps = [{ mmap_store = { file = "/data/state{i}", size = "5 MiB", pages = 10, rate = "6/s" } }] }
workload.tasks.idle = { cgroup = "idle{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.kubelet = { steps = [{ repeat = { every = "1s", steps = [{ write = { file = "/srv/kubelet", order = "append", count = 1 } }, { fdatasync = { file = "/srv/kubelet" } }] } }] }
"#,
    },
    // Gets sick. Services hold 1.5 GiB of a build host. Of 12 GiB, 440 MiB of objects every 34 s pause no task. Of 3 GiB, 15 % of what is left
    // are some 190 MiB: what the disk of 34 MB/s has not written beyond that waits for it, 5 s and more each time.
    Lifelike {
        name: "builds-on-a-guest-of-a-quarter",
        kernel: "6.12.43",
        change: &["memory=3G"],
        really: r#"machine.memory = "3 GiB""#,
        scenario: r#"
machine.memory = "12 GiB"
machine.cpus = 4
machine.devices.build = { size = "200 GiB", write_bandwidth = "34 MB/s", read_bandwidth = "90 MB/s" }
machine.devices.system = { size = "40 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/build" = { type = "xfs", device = "build" }
machine.mounts."/srv" = { type = "ext4", device = "system" }
machine.cgroups."service{i}" = { instances = 5 }
machine.cgroups.runner = {}
workload.seed = 1204
workload.duration = "96s"
workload.tasks.service = { cgroup = "service{i}", setup = [{ anon = { size = "300 MiB" } }], steps = [{ write = { file = "/srv/service{i}.log", order = "append", block = "200 B", rate = "10/s" } }] }
workload.tasks.objects = { cgroup = "runner", start = "3s", steps = [{ repeat = { every = "34s", steps = [{ create_files = { file = "/build/{d}/{n}", files = 440, files_per_dir = 110, size = "1 MiB", rate = "90/s" } }] } }] }
workload.tasks.result = { cgroup = "runner", steps = [{ repeat = { every = "900ms", steps = [{ write = { file = "/srv/result", order = "append", count = 1 } }, { fdatasync = { file = "/srv/result" } }] } }] }
"#,
    },
    // Gets well. A mail host syncs 8 letters a second on a volume of 24 requests a second: each letter waits for the others. The better
    // volume does 2,400.
    Lifelike {
        name: "mail-host-on-a-better-volume",
        kernel: "6.1.192",
        change: &["machine.devices.vda.iops=2400 IO/s"],
        really: r#"machine.devices.vda.iops = "2400 IO/s""#,
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.vda = { size = "100 GiB", bandwidth = "100 MB/s", iops = "24 IO/s" }
machine.mounts."/mail" = { type = "ext4", device = "vda", options = ["noatime"] }
machine.cgroups.smtp = { memory_max = "1 GiB" }
machine.cgroups."filter{i}" = { instances = 6, memory_max = "128 MiB" }
workload.seed = 1205
workload.duration = "70s"
workload.tasks.smtp = { cgroup = "smtp", instances = 4, stagger = "120ms", preset.mail = { dir = "/mail/new{j}", messages = "2/s", message = "10 KiB" } }
workload.tasks.filter = { cgroup = "filter{i}", stagger = "350ms", preset.logger = { file = "/mail/filter{i}.log", lines = "4/s" } }
"#,
    },
    // Gets well. A tenant of 3 MB/s exports 12 MiB each 9 s and syncs them, 4 s each time, and its commits stand behind that. Of 45 MB/s an
    // export takes a third of a second.
    Lifelike {
        name: "plan-of-a-tenant-is-widened",
        kernel: "6.12.117",
        change: &["machine.cgroups.tenant.io_max.vda.write_bandwidth=45 MB/s"],
        really: r#"machine.cgroups.tenant.io_max.vda.write_bandwidth = "45 MB/s""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "300 GiB", write_bandwidth = "160 MB/s", read_bandwidth = "160 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "vda" }
machine.cgroups.tenant = { memory_max = "1 GiB", io_max.vda = { write_bandwidth = "3 MB/s" } }
machine.cgroups.shop = { memory_max = "1 GiB" }
machine.cgroups."idle{i}" = { instances = 12, memory_max = "128 MiB" }
workload.seed = 1206
workload.duration = "74s"
workload.tasks.idle = { cgroup = "idle{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.export = { cgroup = "tenant", start = "2s", steps = [{ repeat = { every = "9s", steps = [{ write = { file = "/data/export", block = "64 KiB", total = "12 MiB", truncate = true } }, { fsync = { file = "/data/export" } }] } }] }
workload.tasks.commit = { cgroup = "tenant", instances = 2, stagger = "140ms", steps = [{ repeat = { every = "500ms", steps = [{ write = { file = "/data/wal{j}", order = "append", block = "8 KiB", count = 1 } }, { fdatasync = { file = "/data/wal{j}" } }] } }] }
workload.tasks.shop = { cgroup = "shop", steps = [{ repeat = { every = "700ms", steps = [{ write = { file = "/data/shop", order = "append", count = 1 } }, { fdatasync = { file = "/data/shop" } }] } }] }
"#,
    },
    // Gets sick. Uploads of 9 MiB each 8 s are synced in a tenth of a second. A plan of 2 MB/s makes 5 s of that, and the receipts of the same
    // tenant wait as well.
    Lifelike {
        name: "uploads-get-a-plan",
        kernel: "6.1.192",
        change: &["machine.cgroups.uploads.io_max.vda.write_bandwidth=2 MB/s"],
        really: r#"machine.cgroups.uploads.io_max.vda.write_bandwidth = "2 MB/s""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "300 GiB", write_bandwidth = "140 MB/s", read_bandwidth = "140 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "vda" }
machine.cgroups.uploads = { memory_max = "1 GiB" }
machine.cgroups."web{i}" = { instances = 8, memory_max = "256 MiB" }
workload.seed = 1207
workload.duration = "76s"
workload.tasks.upload = { cgroup = "uploads", start = "1s", steps = [{ repeat = { every = "8s", steps = [{ create_files = { file = "/data/up/{n}", files = 3, size = "3 MiB", fsync = true } }] } }] }
workload.tasks.receipt = { cgroup = "uploads", steps = [{ repeat = { every = "700ms", steps = [{ write = { file = "/data/receipt", order = "append", count = 1 } }, { fdatasync = { file = "/data/receipt" } }] } }] }
workload.tasks.web = { cgroup = "web{i}", stagger = "260ms", preset.logger = { file = "/data/web{i}.log", lines = "6/s" } }
"#,
    },
    // Gets better. A server of scans takes 3 files of 1 MiB a second and syncs none. The flusher comes each 5 s and finds 15 MiB that are
    // old: 1.4 s of 11 MB/s, for which names that are synced wait. If it comes each second, it finds 3 MiB: a quarter of a second.
    Lifelike {
        name: "scans-are-written-young",
        kernel: "5.10.223",
        change: &["vm.dirty_expire_centisecs=200", "vm.dirty_writeback_centisecs=100"],
        really: r#"machine.sysctl.vm.dirty_expire_centisecs = 200
machine.sysctl.vm.dirty_writeback_centisecs = 100"#,
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 10, dirty_expire_centisecs = 3000, dirty_writeback_centisecs = 500 }
machine.devices.scans = { size = "400 GiB", write_bandwidth = "11 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/scans" = { type = "ext4", device = "scans" }
machine.cgroups.smb = { memory_max = "2 GiB" }
machine.cgroups."desk{i}" = { instances = 8, memory_max = "64 MiB" }
workload.seed = 1208
workload.duration = "110s"
workload.tasks.scan = { cgroup = "smb", steps = [{ create_files = { file = "/scans/{d}/{n}", files_per_dir = 40, size = "1 MiB", rate = "3/s", for = "200s" } }] }
workload.tasks.name = { cgroup = "smb", steps = [{ repeat = { every = "800ms", steps = [{ write = { file = "/scans/names", order = "append", count = 1 } }, { fdatasync = { file = "/scans/names" } }] } }] }
workload.tasks.desk = { cgroup = "desk{i}", stagger = "900ms", steps = [{ repeat = { every = "12s", steps = [{ write = { file = "/scans/desk{i}", order = "append", count = 1 } }] } }] }
"#,
    },
    // Gets better. A share of 8 MB/s has a strict limit of one percent of 4 GiB's threshold, some 7 MiB. Films of 60 MB come every 20 s at
    // 30 MB/s and wait for the share, 6 s each time. Without the strict limit a film finds room.
    Lifelike {
        name: "share-leaves-its-strict-limit",
        kernel: "6.12.117",
        change: &["bdi/254:0/strict_limit=0"],
        really: r#"machine.devices.share.bdi.strict_limit = false"#,
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.share = { size = "900 GiB", write_bandwidth = "8 MB/s", read_bandwidth = "20 MB/s", bdi = { max_ratio = 1, strict_limit = true } }
machine.devices.system = { size = "40 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/share" = { type = "ext4", device = "share" }
machine.mounts."/srv" = { type = "ext4", device = "system" }
machine.cgroups.films = { memory_max = "2 GiB" }
machine.cgroups."desk{i}" = { instances = 8, memory_max = "128 MiB" }
workload.seed = 1209
workload.duration = "84s"
workload.tasks.film = { cgroup = "films", start = "2s", steps = [{ repeat = { every = "20s", steps = [{ write = { file = "/share/film", order = "append", block = "128 KiB", total = "60 MB", rate = "30 MB/s" } }] } }] }
workload.tasks.desk = { cgroup = "desk{i}", stagger = "800ms", steps = [{ repeat = { every = "10s", steps = [{ write = { file = "/srv/desk{i}", count = 5, truncate = true } }, { fsync = { file = "/srv/desk{i}" } }] } }] }
"#,
    },
    // Nothing comes. Twelve services log and commit a little on an SSD, and a dump of 40 MiB each 30 s is below the 77 MiB that version 2
    // leaves its service before a pause. Two releases change nothing of that.
    Lifelike {
        name: "small-services-by-two-releases-to-v2",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.12.117"],
        really: r#"machine.cgroup_mode = "v2""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.data = { size = "200 GiB", write_bandwidth = "260 MB/s", read_bandwidth = "260 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data", options = ["noatime"] }
machine.cgroups."service{i}" = { instances = 12, memory_max = "512 MiB" }
workload.seed = 1210
workload.duration = "78s"
workload.tasks.log = { cgroup = "service{i}", stagger = "210ms", preset.logger = { file = "/data/log{i}", lines = "8/s" } }
workload.tasks.commit = { cgroup = "service0", instances = 2, stagger = "150ms", steps = [{ repeat = { every = "600ms", steps = [{ write = { file = "/data/commit{j}", order = "append", count = 1 } }, { fdatasync = { file = "/data/commit{j}" } }] } }] }
workload.tasks.dump = { cgroup = "service1", start = "4s", steps = [{ repeat = { every = "30s", steps = [{ write = { file = "/data/dump", block = "128 KiB", total = "40 MiB", rate = "60 MB/s", truncate = true } }] } }] }
"#,
    },
];
