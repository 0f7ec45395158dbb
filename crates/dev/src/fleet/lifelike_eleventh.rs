// SPDX-License-Identifier: MIT OR Apache-2.0
//! An eleventh list of hosts shaped like those that people run, of shapes that the ten lists before it do not have: chunks of a cloud
//! store by a guide, notebooks whose heaps stay when memory goes, runners that move by a release and to version 2 at once, a forum on
//! a newer type of volume, tenants that get more requests, a school server that leaves its power profile, a bucket with a larger
//! strict share, two images past the cache, a node with half of its ratios, and letters by a release. All hosts were committed before
//! any was scored. The comment of each host states the result that arithmetic expects of its change. The position of a host decides
//! how its recording differs from one of a guest, as in the second list.

use super::lifelike::Lifelike;

/// The list. Recordings of neighbours in it have different shapes.
pub(super) const LIFELIKE_ELEVENTH: &[Lifelike] = &[
    // Gets better. A chunked upload of 380 MiB is put together every 36 s at 25 MB/s, without a sync. 20 % and 10 % of 12 GiB are never
    // reached: all of it is old at once, 7 s of 55 MB/s, for which the store's database waits. With 192 MiB and 48 MiB the flusher
    // starts after 2 s and keeps up, so that the upload is not paused and no burst is left. The database waits less each time.
    Lifelike {
        name: "chunks-by-a-guide-of-a-cloud",
        kernel: "6.12.117",
        change: &["vm.dirty_bytes=201326592", "vm.dirty_background_bytes=50331648"],
        really: r#"machine.sysctl.vm = { dirty_bytes = "192 MiB", dirty_background_bytes = "48 MiB" }
unset = ["machine.sysctl.vm.dirty_ratio", "machine.sysctl.vm.dirty_background_ratio"]"#,
        scenario: r#"
machine.memory = "12 GiB"
machine.cpus = 4
machine.devices.data = { size = "400 GiB", write_bandwidth = "55 MB/s", read_bandwidth = "110 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.cloud = { memory_max = "8 GiB" }
machine.cgroups."preview{i}" = { instances = 8, memory_max = "256 MiB" }
workload.seed = 1101
workload.duration = "92s"
workload.tasks.chunk = { cgroup = "cloud", start = "2s", steps = [{ repeat = { every = "36s", steps = [{ write = { file = "/data/film", block = "128 KiB", total = "380 MiB", rate = "25 MB/s", truncate = true } }] } }] }
workload.tasks.database = { cgroup = "cloud", instances = 2, stagger = "200ms", steps = [{ repeat = { every = "600ms", steps = [{ write = { file = "/data/db{j}", order = "append", block = "8 KiB", count = 1 } }, { fdatasync = { file = "/data/db{j}" } }] } }] }
workload.tasks.preview = { cgroup = "preview{i}", stagger = "600ms", steps = [{ repeat = { every = "11s", steps = [{ write = { file = "/data/preview{i}", block = "64 KiB", total = "256 KiB", truncate = true } }] } }] }
"#,
    },
    // Gets sick. Three notebooks hold 960 MiB each. Of 16 GiB, 300 MiB of a result every 32 s pause no task. Of 4 GiB, 15 % of the gigabyte
    // that is left are some 140 MiB: what the disk has not written by then waits for 38 MB/s, 2 s and more.
    Lifelike {
        name: "notebooks-with-heaps-on-a-smaller-guest",
        kernel: "6.12.43",
        change: &["memory=4G"],
        really: r#"machine.memory = "4 GiB""#,
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.devices.home = { size = "200 GiB", write_bandwidth = "38 MB/s", read_bandwidth = "90 MB/s" }
machine.devices.system = { size = "40 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/home" = { type = "xfs", device = "home" }
machine.mounts."/srv" = { type = "ext4", device = "system" }
machine.cgroups."hub/nb{i}" = { instances = 3 }
machine.cgroups."hub/idle{i}" = { instances = 9, memory_max = "128 MiB" }
workload.seed = 1102
workload.duration = "90s"
workload.tasks.heap = { cgroup = "hub/nb{i}", setup = [{ anon = { size = "960 MiB" } }], steps = [{ repeat = { every = "200ms", steps = [{ burn = { for = "8ms" } }] } }] }
workload.tasks.result = { cgroup = "hub/nb0", start = "3s", steps = [{ repeat = { every = "32s", steps = [{ write = { file = "/home/result", block = "256 KiB", total = "300 MiB", rate = "100 MB/s", truncate = true } }] } }] }
workload.tasks.idle = { cgroup = "hub/idle{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.hub = { steps = [{ repeat = { every = "800ms", steps = [{ write = { file = "/srv/hub", order = "append", count = 1 } }, { fdatasync = { file = "/srv/hub" } }] } }] }
"#,
    },
    // Gets sick. Four runners of 384 MiB unpack 140 MiB of sources in 2 s, each in its turn. Version 1 has one threshold for all,
    // which is far. Version 2 pauses a runner from 57 MiB on: some 50 MiB wait for 30 MB/s. The release changes little.
    Lifelike {
        name: "runners-by-a-release-to-v2",
        kernel: "6.1.192",
        change: &["cgroup=v2", "kernel=6.12.117"],
        really: r#"machine.cgroup_mode = "v2""#,
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.build = { size = "300 GiB", write_bandwidth = "30 MB/s", read_bandwidth = "110 MB/s" }
machine.devices.system = { size = "40 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/build" = { type = "xfs", device = "build" }
machine.mounts."/srv" = { type = "ext4", device = "system" }
machine.cgroups."runner{i}" = { instances = 4, memory_max = "384 MiB" }
machine.cgroups.agent = { memory_max = "256 MiB" }
workload.seed = 1103
workload.duration = "84s"
workload.tasks.unpack = { cgroup = "runner{i}", stagger = "9s", steps = [{ repeat = { every = "36s", steps = [{ create_files = { file = "/build/r{i}/{d}/{n}", files = 560, files_per_dir = 70, size = "256 KiB", rate = "260/s" } }] } }] }
workload.tasks.agent = { cgroup = "agent", instances = 2, steps = [{ repeat = { every = "900ms", steps = [{ write = { file = "/srv/agent{j}", order = "append", count = 1 } }, { fdatasync = { file = "/srv/agent{j}" } }] } }] }
"#,
    },
    // Gets well. Readers of a forum ask for 90 cold pages a second of a volume of 100 requests a second of both kinds, and 12 posts a
    // second are committed beside them: pages wait, and posts a little. The newer type of volume does 3,000 requests a second, and 125 MB/s.
    Lifelike {
        name: "forum-on-a-newer-type-of-volume",
        kernel: "6.1.192",
        change: &["machine.devices.vda.iops=3000 IO/s", "machine.devices.vda.bandwidth=125 MB/s"],
        really: r#"machine.devices.vda.iops = "3000 IO/s"
machine.devices.vda.bandwidth = "125 MB/s""#,
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.vda = { size = "33 GiB", bandwidth = "60 MB/s", iops = "100 IO/s" }
machine.mounts."/srv" = { type = "ext4", device = "vda", options = ["noatime"] }
machine.cgroups.db = { memory_max = "1 GiB" }
machine.cgroups."php{i}" = { instances = 6, memory_max = "128 MiB" }
workload.seed = 1104
workload.duration = "68s"
workload.tasks.page = { cgroup = "db", instances = 6, stagger = "70ms", setup = [{ write = { file = "/srv/table{j}", block = "1 MiB", total = "48 MiB", direct = true } }], steps = [{ read = { file = "/srv/table{j}", order = "random", block = "16 KiB", direct = true, rate = "15/s", for = "120s" } }] }
workload.tasks.post = { cgroup = "db", instances = 3, stagger = "110ms", steps = [{ repeat = { every = "250ms", steps = [{ write = { file = "/srv/redo{j}", order = "append", count = 1 } }, { fdatasync = { file = "/srv/redo{j}" } }] } }] }
workload.tasks.php = { cgroup = "php{i}", stagger = "250ms", preset.logger = { file = "/srv/php{i}.log", lines = "6/s" } }
"#,
    },
    // Gets well. Three workers of a tenant commit three times a second each, a write of its data each time, and the tenant may
    // do 6 writes a second: a commit waits for the better part of a second. Of 300 a second it takes milliseconds.
    Lifelike {
        name: "tenant-gets-more-requests",
        kernel: "6.12.117",
        change: &["machine.cgroups.tenant.io_max.vda.write_iops=300 IO/s"],
        really: r#"machine.cgroups.tenant.io_max.vda.write_iops = "300 IO/s""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "300 GiB", write_bandwidth = "150 MB/s", read_bandwidth = "150 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "vda" }
machine.cgroups.tenant = { memory_max = "1 GiB", io_max.vda = { write_iops = "6 IO/s" } }
machine.cgroups.shop = { memory_max = "1 GiB" }
machine.cgroups."idle{i}" = { instances = 14, memory_max = "128 MiB" }
workload.seed = 1105
workload.duration = "70s"
workload.tasks.idle = { cgroup = "idle{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.worker = { cgroup = "tenant", instances = 3, stagger = "90ms", steps = [{ repeat = { every = "330ms", steps = [{ write = { file = "/data/worker{j}", order = "append", block = "8 KiB", count = 1 } }, { fdatasync = { file = "/data/worker{j}" } }] } }] }
workload.tasks.shop = { cgroup = "shop", steps = [{ repeat = { every = "700ms", steps = [{ write = { file = "/data/shop", order = "append", count = 1 } }, { fdatasync = { file = "/data/shop" } }] } }] }
"#,
    },
    // Gets better. A school server has a power profile: data are old after a minute, and the timer comes each 15 s. Homes of 2.2 MB/s are
    // up to 75 s old, 165 MB or 7 s of 24 MB/s. With the usual timers they are half of that at most. Marks that are synced wait two
    // thirds as long each time, and more often.
    Lifelike {
        name: "school-server-leaves-its-power-profile",
        kernel: "5.10.223",
        change: &["vm.dirty_expire_centisecs=3000", "vm.dirty_writeback_centisecs=500"],
        really: r#"machine.sysctl.vm.dirty_expire_centisecs = 3000
machine.sysctl.vm.dirty_writeback_centisecs = 500"#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 10, dirty_expire_centisecs = 6000, dirty_writeback_centisecs = 1500 }
machine.devices.home = { size = "900 GiB", write_bandwidth = "24 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/home" = { type = "ext4", device = "home" }
machine.cgroups.smb = { memory_max = "4 GiB" }
machine.cgroups.marks = { memory_max = "512 MiB" }
machine.cgroups."room{i}" = { instances = 8, memory_max = "64 MiB" }
workload.seed = 1106
workload.duration = "170s"
workload.tasks.home = { cgroup = "smb", instances = 4, stagger = "700ms", steps = [{ write = { file = "/home/class{j}", order = "append", block = "32 KiB", rate = "550 kB/s" } }] }
workload.tasks.marks = { cgroup = "marks", steps = [{ repeat = { every = "1s", steps = [{ write = { file = "/home/marks", order = "append", count = 1 } }, { fdatasync = { file = "/home/marks" } }] } }] }
workload.tasks.room = { cgroup = "room{i}", stagger = "900ms", steps = [{ repeat = { every = "13s", steps = [{ write = { file = "/home/room{i}", order = "append", count = 1 } }] } }] }
"#,
    },
    // Gets better. A bucket of 7 MB/s is mounted with a strict limit of one percent of 4 GiB, some 7 MiB. Scans of 40 MB wait for the
    // bucket, 5 s of each 16. Ten percent are 70 MiB, in which a scan finds room.
    Lifelike {
        name: "bucket-gets-a-larger-strict-share",
        kernel: "6.12.117",
        change: &["bdi/254:0/max_ratio=10"],
        really: r#"machine.devices.bucket.bdi.max_ratio = 10"#,
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.bucket = { size = "900 GiB", write_bandwidth = "7 MB/s", read_bandwidth = "20 MB/s", bdi = { max_ratio = 1, strict_limit = true } }
machine.devices.system = { size = "40 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/bucket" = { type = "xfs", device = "bucket" }
machine.mounts."/srv" = { type = "ext4", device = "system" }
machine.cgroups.scans = { memory_max = "2 GiB" }
machine.cgroups."desk{i}" = { instances = 10, memory_max = "128 MiB" }
workload.seed = 1107
workload.duration = "80s"
workload.tasks.scan = { cgroup = "scans", start = "2s", steps = [{ repeat = { every = "16s", steps = [{ create_files = { file = "/bucket/scan/{n}", files = 20, size = "2 MB", rate = "8/s" } }] } }] }
workload.tasks.desk = { cgroup = "desk{i}", stagger = "800ms", steps = [{ repeat = { every = "9s", steps = [{ write = { file = "/srv/desk{i}", count = 6, truncate = true } }, { fsync = { file = "/srv/desk{i}" } }] } }] }
"#,
    },
    // Gets well. Two guests have images that go through the page cache of the host. Each writes 1.5 MB/s past its own cache and syncs each
    // 7 s: 10 MB each, more than 1.5 s of 12 MB/s for both. Past the cache of the host nothing is left for a sync.
    Lifelike {
        name: "two-images-past-the-cache",
        kernel: "6.1.192",
        change: &["loop/loop0/direct_io=1", "loop/loop1/direct_io=1"],
        really: r#"machine.devices.image0.backing = { loop = { file = "/host/image0", direct_io = true } }
machine.devices.image1.backing = { loop = { file = "/host/image1", direct_io = true } }"#,
        scenario: r#"
machine.memory = "6 GiB"
machine.cpus = 2
machine.devices.disk = { size = "100 GiB", write_bandwidth = "12 MB/s", read_bandwidth = "60 MB/s" }
machine.devices.image0 = { size = "4 GiB", backing = { loop = { file = "/host/image0" } } }
machine.devices.image1 = { size = "4 GiB", backing = { loop = { file = "/host/image1" } } }
machine.mounts."/host" = { type = "xfs", device = "disk" }
machine.mounts."/guest0" = { type = "ext4", device = "image0" }
machine.mounts."/guest1" = { type = "ext4", device = "image1" }
machine.cgroups."guest{i}" = { instances = 2, memory_max = "1 GiB" }
workload.seed = 1108
workload.duration = "70s"
workload.tasks.stream = { cgroup = "guest{i}", steps = [{ write = { file = "/guest{i}/stream", size = "300 MB", block = "128 KiB", rate = "1500 kB/s", direct = true } }] }
workload.tasks.save = { cgroup = "guest{i}", start = "2s", stagger = "900ms", steps = [{ repeat = { every = "7s", steps = [{ write = { file = "/guest{i}/save", block = "16 KiB", count = 1, truncate = true } }, { fsync = { file = "/guest{i}/save" } }] } }] }
workload.tasks.messages = { preset.logger = { file = "/host/messages", lines = "8/s" } }
"#,
    },
    // Gets worse. A node has ratios of 40 and 20. Pods of 512 MiB write a report of 80 MiB in 1 s, each in its turn: paused from 150 MiB
    // on, which is never. With 10 and 5 a pod is paused from 38 MiB on: a second or more of 34 MB/s each time.
    Lifelike {
        name: "node-with-a-quarter-of-its-ratios",
        kernel: "7.2.13",
        change: &["vm.dirty_ratio=10", "vm.dirty_background_ratio=5"],
        really: r#"machine.sysctl.vm = { dirty_ratio = 10, dirty_background_ratio = 5 }"#,
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_ratio = 40, dirty_background_ratio = 20 }
machine.devices.pods = { size = "300 GiB", write_bandwidth = "34 MB/s", read_bandwidth = "90 MB/s" }
machine.devices.system = { size = "40 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/pods" = { type = "xfs", device = "pods" }
machine.mounts."/srv" = { type = "ext4", device = "system" }
machine.cgroups."kubepods/report{i}" = { instances = 3, memory_max = "512 MiB" }
machine.cgroups."kubepods/web{i}" = { instances = 20, memory_max = "128 MiB" }
workload.seed = 1109
workload.duration = "84s"
workload.tasks.report = { cgroup = "kubepods/report{i}", start = "1s", stagger = "8s", steps = [{ repeat = { every = "26s", steps = [{ write = { file = "/pods/report{i}", block = "128 KiB", total = "80 MiB", rate = "80 MB/s", truncate = true } }] } }] }
workload.tasks.web = { cgroup = "kubepods/web{i}", stagger = "250ms", preset.logger = { file = "/srv/web{i}.log", lines = "6/s" } }
workload.tasks.kubelet = { steps = [{ repeat = { every = "1s", steps = [{ write = { file = "/srv/kubelet", order = "append", count = 1 } }, { fdatasync = { file = "/srv/kubelet" } }] } }] }
"#,
    },
    // Nothing comes. Letters are synced one by one on an SSD and an index is changed at random, 12 pages a second. The newer kernel has
    // large folios on ext4, but the letters are small and the index is written in single pages.
    Lifelike {
        name: "letters-and-an-index-by-a-release",
        kernel: "6.12.117",
        change: &["kernel=7.2.13"],
        really: "",
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.mail = { size = "200 GiB", write_bandwidth = "250 MB/s", read_bandwidth = "250 MB/s", write_iops = "5000 IO/s", read_iops = "5000 IO/s" }
machine.mounts."/mail" = { type = "ext4", device = "mail", options = ["noatime"] }
machine.cgroups.mail = { memory_max = "1 GiB" }
machine.cgroups."filter{i}" = { instances = 6, memory_max = "128 MiB" }
workload.seed = 1110
workload.duration = "72s"
workload.tasks.letters = { cgroup = "mail", instances = 3, preset.mail = { dir = "/mail/new{j}", messages = "2/s", message = "12 KiB" } }
workload.tasks.index = { cgroup = "mail", setup = [{ write = { file = "/mail/index", block = "4 KiB", total = "16 MiB" } }, { fsync = { file = "/mail/index" } }], steps = [{ write = { file = "/mail/index", order = "random", size = "16 MiB", rate = "12/s" } }] }
workload.tasks.filter = { cgroup = "filter{i}", stagger = "400ms", preset.logger = { file = "/mail/filter{i}.log", lines = "5/s" } }
"#,
    },
];
