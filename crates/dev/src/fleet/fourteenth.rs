// SPDX-License-Identifier: MIT OR Apache-2.0
//! A fourteenth group of kinds, as a platform team meets them in moves: sync clients and a search node that get version 2, mapped state
//! that is synced on a newer release, a role that hardens hosts, ratios of the distribution before a backup that syncs all disks, a
//! smaller guest for builds, a standard type of volume, a database that gets a limit, and hosts that such moves leave alone. The comment
//! of each kind states the result that arithmetic expects. All kinds were committed before any was scored.

use super::unseen::Unseen;

/// Every kind of the group.
pub(super) const FOURTEENTH: &[Unseen] = &[
    // Suffer.
    Unseen {
        // 20 % and 10 % of 256 MiB: paused from 38 MiB on. Each of four clients fetches 100 files of 1 MiB in 2 s every 28 s, in its turn.
        // The disk writes 20 MB/s: some 40 MiB of each client wait for it, 2 s each time.
        name: "fourteenth-sync-clients-to-v2",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "200 GiB", write_bandwidth = "<20> MB/s", read_bandwidth = "90 MB/s" }
machine.devices.vdb = { size = "20 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/sync" = { type = "xfs", device = "vda" }
machine.mounts."/log" = { type = "ext4", device = "vdb" }
machine.cgroups."client{i}" = { instances = 4, memory_max = "256 MiB" }
workload.seed = <seed>
workload.duration = "62s"
workload.tasks.fetch = { cgroup = "client{i}", stagger = "7s", steps = [{ repeat = { every = "28s", steps = [{ create_files = { file = "/sync/c{i}/{d}/{n}", files = <100>, files_per_dir = 50, size = "1 MiB", rate = "50/s" } }] } }] }
workload.tasks.log = { cgroup = "client{i}", stagger = "300ms", preset.logger = { file = "/log/client{i}", lines = "<6>/s" } }
"#,
    },
    Unseen {
        // A search node of 896 MiB has 500 MiB in its heap. 20 % and 10 % of what is left: paused from some 58 MiB on. Three threads of a
        // flush write 40 MiB of segments each at 10 MB/s, every 24 s: 30 MB/s for 4 s. The disk takes 16: some 30 MiB wait for it, 2 s
        // each time.
        name: "fourteenth-segments-beside-a-heap-to-v2-next-release",
        kernel: "6.1.192",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<16> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/search" = { type = "xfs", device = "vda" }
machine.cgroups.search = { memory_max = "896 MiB" }
machine.cgroups."web{i}" = { instances = 6, memory_max = "256 MiB" }
workload.seed = <seed>
workload.duration = "60s"
workload.tasks.heap = { cgroup = "search", setup = [{ anon = { size = "500 MiB" } }], steps = [{ repeat = { every = "100ms", steps = [{ burn = { for = "4ms" } }] } }] }
workload.tasks.flush = { cgroup = "search", steps = [{ repeat = { every = "24s", steps = [{ parallel = { branches = [[{ write = { file = "/search/a", block = "64 KiB", total = "<40> MiB", rate = "10 MB/s", truncate = true } }], [{ write = { file = "/search/b", block = "64 KiB", total = "<40> MiB", rate = "10 MB/s", truncate = true } }], [{ write = { file = "/search/c", block = "64 KiB", total = "<40> MiB", rate = "10 MB/s", truncate = true } }]] } }] } }] }
workload.tasks.web = { cgroup = "web{i}", stagger = "250ms", preset.logger = { file = "/search/web{i}.log", lines = "<5>/s" } }
"#,
    },
    Unseen {
        // A state of 24 MiB was written in blocks of 1 MiB, is mapped and synced each second, 50 scattered stores at a time. On 6.1 a store
        // dirties 4 KiB: 200 KB a second. The newer release keeps folios of up to 1 MiB on XFS, and a sync writes nearly all of the state: most
        // of a second of the volume, each second.
        name: "fourteenth-mapped-states-synced-next-release",
        kernel: "6.1.192",
        change: &["kernel=6.12.117"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "40 GiB", write_bandwidth = "<45> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/srv" = { type = "xfs", device = "vda" }
machine.cgroups.state = { memory_max = "1 GiB" }
workload.seed = <seed>
workload.duration = "46s"
workload.tasks.state = { cgroup = "state", setup = [{ write = { file = "/srv/state", block = "1 MiB", total = "24 MiB" } }, { fsync = { file = "/srv/state" } }], steps = [{ repeat = { every = "1s", steps = [{ mmap_store = { file = "/srv/state", size = "24 MiB", pages = <50>, count = 1 } }, { msync = { file = "/srv/state" } }] } }] }
workload.tasks.access = { cgroup = "state", preset.logger = { file = "/srv/access", lines = "<20>/s" } }
"#,
    },
    Unseen {
        // A role that hardens hosts sets 4 % and 1 %. Restores of 560 MiB come at 110 MB/s every 32 s, and 15 % of 7.5 GiB were never
        // reached. Now they are paused from 190 MiB on: more than 300 MiB wait for the disk, some 8 s each time.
        name: "fourteenth-restores-by-a-role-that-hardens",
        kernel: "6.12.117",
        change: &["vm.dirty_ratio=4", "vm.dirty_background_ratio=1"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "300 GiB", write_bandwidth = "<42> MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/restore" = { type = "xfs", device = "vda" }
machine.cgroups.restore = {}
machine.cgroups."agent{i}" = { instances = 5, memory_max = "128 MiB" }
workload.seed = <seed>
workload.duration = "68s"
workload.tasks.restore = { cgroup = "restore", steps = [{ repeat = { every = "32s", steps = [{ create_files = { file = "/restore/{d}/{n}", files = <70>, files_per_dir = 35, size = "8 MiB", rate = "14/s" } }] } }] }
workload.tasks.agent = { cgroup = "agent{i}", stagger = "400ms", preset.logger = { file = "/restore/agent{i}.log", lines = "<4>/s" } }
"#,
    },
    Unseen {
        // Hosts go back from 32 and 8 MiB to the ratios of the distribution. A recording goes to a slow second disk at 8 MB/s for 13 s of
        // each 24. A backup of the first disk calls sync, which waits for both disks: before, for some 8 MiB, and after, for all that the slow
        // disk holds, 100 MB or 8 s.
        name: "fourteenth-sync-of-both-disks-with-ratios",
        kernel: "6.12.117",
        change: &["vm.dirty_ratio=20", "vm.dirty_background_ratio=10"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_bytes = "32 MiB", dirty_background_bytes = "8 MiB" }
machine.devices.vda = { size = "100 GiB", write_bandwidth = "120 MB/s", read_bandwidth = "120 MB/s" }
machine.devices.vdb = { size = "900 GiB", write_bandwidth = "<13> MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "vda" }
machine.mounts."/record" = { type = "xfs", device = "vdb" }
machine.cgroups.record = { memory_max = "4 GiB" }
machine.cgroups.backup = { memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "78s"
workload.tasks.record = { cgroup = "record", steps = [{ repeat = { every = "24s", steps = [{ write = { file = "/record/hall", order = "append", block = "64 KiB", total = "<100> MiB", rate = "8 MB/s" } }] } }] }
workload.tasks.backup = { cgroup = "backup", start = "15s", steps = [{ repeat = { every = "24s", steps = [{ write = { file = "/data/base.tar", block = "128 KiB", total = "<12> MiB", truncate = true } }, "sync"] } }] }
"#,
    },
    Unseen {
        // Services hold 1.8 GiB. Of 12 GiB, 15 % are more than a build makes: 400 MiB at 80 MB/s every 26 s. Of 3 GiB, 15 % of what is left
        // are some 150 MiB: what the disk has not written beyond that waits for it, some 4 s each time. Services log to another disk.
        name: "fourteenth-builds-in-a-smaller-guest",
        kernel: "6.1.192",
        change: &["memory=3G"],
        scenario: r#"
machine.memory = "12 GiB"
machine.cpus = 4
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<30> MB/s", read_bandwidth = "90 MB/s" }
machine.devices.vdb = { size = "20 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/build" = { type = "ext4", device = "vda" }
machine.mounts."/log" = { type = "ext4", device = "vdb" }
machine.cgroups."service{i}" = { instances = 5 }
machine.cgroups.build = {}
workload.seed = <seed>
workload.duration = "64s"
workload.tasks.service = { cgroup = "service{i}", setup = [{ anon = { size = "360 MiB" } }], steps = [{ write = { file = "/log/service{i}", order = "append", block = "4 KiB", rate = "<2>/s" } }] }
workload.tasks.build = { cgroup = "build", steps = [{ repeat = { every = "26s", steps = [{ create_files = { file = "/build/out/{d}/{n}", files = <400>, files_per_dir = 80, size = "1 MiB", rate = "80/s" } }] } }] }
"#,
    },
    Unseen {
        // A mail host moves to the standard type of volume, 30 requests a second for reads and writes together. Five readers ask for 10 cold
        // pages a second each, and 6 letters a second are synced, some two requests each: twice as much as there is. Letters and pages wait
        // for each other.
        name: "fourteenth-letters-on-a-standard-volume",
        kernel: "6.12.117",
        change: &["machine.devices.vda.iops=30 IO/s"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.vda = { size = "200 GiB", bandwidth = "120 MB/s", iops = "<3000> IO/s" }
machine.mounts."/mail" = { type = "ext4", device = "vda", options = ["noatime"] }
machine.cgroups.imap = { memory_max = "1 GiB" }
machine.cgroups.smtp = { memory_max = "512 MiB" }
workload.seed = <seed>
workload.duration = "46s"
workload.tasks.imap = { cgroup = "imap", instances = 5, stagger = "60ms", setup = [{ write = { file = "/mail/box{j}", block = "1 MiB", total = "32 MiB", direct = true } }], steps = [{ read = { file = "/mail/box{j}", order = "random", block = "16 KiB", direct = true, rate = "<10>/s", for = "90s" } }] }
workload.tasks.smtp = { cgroup = "smtp", instances = 3, stagger = "150ms", preset.mail = { dir = "/mail/new{j}", messages = "2/s", message = "12 KiB" } }
"#,
    },
    Unseen {
        // A tenant's database gets a limit of 3 MB/s. Each 12 s a checkpoint writes 20 MiB and syncs them, a sixth of a second before, and 7 s
        // after. Commits of the same cgroup stand behind it in the limit. The shop beside it stays as it is.
        name: "fourteenth-checkpoints-of-a-tenant-get-a-limit",
        kernel: "6.1.192",
        change: &["machine.cgroups.tenant.io_max.vda.write_bandwidth=3 MB/s"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<150> MB/s", read_bandwidth = "150 MB/s" }
machine.mounts."/db" = { type = "xfs", device = "vda" }
machine.cgroups.tenant = { memory_max = "1 GiB" }
machine.cgroups.shop = { memory_max = "1 GiB" }
workload.seed = <seed>
workload.duration = "56s"
workload.tasks.checkpoint = { cgroup = "tenant", steps = [{ repeat = { every = "12s", steps = [{ write = { file = "/db/table", block = "64 KiB", size = "64 MiB", total = "<20> MiB" } }, { fdatasync = { file = "/db/table" } }] } }] }
workload.tasks.commit = { cgroup = "tenant", instances = 2, stagger = "70ms", steps = [{ repeat = { every = "<400>ms", steps = [{ write = { file = "/db/wal{j}", order = "append", block = "8 KiB", count = 1 } }, { fdatasync = { file = "/db/wal{j}" } }] } }] }
workload.tasks.shop = { cgroup = "shop", steps = [{ repeat = { every = "800ms", steps = [{ write = { file = "/db/shop", order = "append", count = 1 } }, { fdatasync = { file = "/db/shop" } }] } }] }
"#,
    },
    // Tight.
    Unseen {
        // 20 % and 10 % of 768 MiB: paused from 115 MiB on. Two caches write 80 MiB of their dumps in a second every 20 s and sync nothing.
        name: "fourteenth-dumps-of-caches-near-their-limit-to-v2",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<60> MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/cache" = { type = "xfs", device = "vda" }
machine.cgroups."cache{i}" = { instances = 2, memory_max = "768 MiB" }
workload.seed = <seed>
workload.duration = "56s"
workload.tasks.dump = { cgroup = "cache{i}", stagger = "9s", steps = [{ repeat = { every = "20s", steps = [{ write = { file = "/cache/dump{i}", block = "256 KiB", total = "<80> MiB", rate = "80 MB/s", truncate = true } }] } }] }
"#,
    },
    Unseen {
        // 384 MiB and 128 MiB: paused from 256 MiB on. An image of a machine comes every 24 s, 180 MiB at 130 MB/s, and is not synced.
        name: "fourteenth-machine-images-near-the-bytes",
        kernel: "6.12.43",
        change: &["vm.dirty_bytes=402653184", "vm.dirty_background_bytes=134217728"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.devices.vda = { size = "400 GiB", write_bandwidth = "<55> MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/images" = { type = "xfs", device = "vda" }
machine.cgroups.images = {}
workload.seed = <seed>
workload.duration = "60s"
workload.tasks.image = { cgroup = "images", steps = [{ repeat = { every = "24s", steps = [{ write = { file = "/images/new", order = "append", block = "512 KiB", total = "<180> MiB", rate = "130 MB/s" } }] } }] }
workload.tasks.catalogue = { cgroup = "images", steps = [{ repeat = { every = "7s", steps = [{ write = { file = "/images/catalogue", block = "16 KiB", count = <3>, truncate = true } }] } }] }
"#,
    },
    Unseen {
        // A guest of 6 GiB instead of 12: 15 % of the 5 GiB that a heap leaves are 760 MiB. Dumps of 480 MiB come every 28 s.
        name: "fourteenth-dumps-in-half-the-memory",
        kernel: "6.12.117",
        change: &["memory=6G"],
        scenario: r#"
machine.memory = "12 GiB"
machine.cpus = 4
machine.devices.vda = { size = "300 GiB", write_bandwidth = "<70> MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/dumps" = { type = "ext4", device = "vda" }
machine.cgroups.heap = {}
machine.cgroups.dump = {}
workload.seed = <seed>
workload.duration = "64s"
workload.tasks.heap = { cgroup = "heap", setup = [{ anon = { size = "700 MiB" } }], steps = [{ repeat = { every = "100ms", steps = [{ burn = { for = "3ms" } }] } }] }
workload.tasks.dump = { cgroup = "dump", steps = [{ repeat = { every = "28s", steps = [{ write = { file = "/dumps/dump", order = "append", block = "128 KiB", total = "<480> MiB", rate = "140 MB/s" } }] } }] }
"#,
    },
    Unseen {
        // A tenant's archive of 28 MiB every 16 s is not synced, and 51 MiB may be dirty before its flusher starts. A limit of 9 MB/s writes it
        // later, in 3 s, for which no task waits. Orders of another cgroup commit beside it.
        name: "fourteenth-archives-of-a-tenant-get-a-limit",
        kernel: "7.2.13",
        change: &["machine.cgroups.tenant.io_max.vda.write_bandwidth=9 MB/s"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<140> MB/s", read_bandwidth = "140 MB/s" }
machine.mounts."/srv" = { type = "xfs", device = "vda" }
machine.cgroups.tenant = { memory_max = "512 MiB" }
machine.cgroups.shop = { memory_max = "512 MiB" }
workload.seed = <seed>
workload.duration = "60s"
workload.tasks.archive = { cgroup = "tenant", steps = [{ repeat = { every = "16s", steps = [{ write = { file = "/srv/archive", order = "append", block = "128 KiB", total = "<28> MiB", rate = "40 MB/s" } }] } }] }
workload.tasks.order = { cgroup = "shop", steps = [{ repeat = { every = "<700>ms", steps = [{ write = { file = "/srv/order", order = "append", count = 1 } }, { fdatasync = { file = "/srv/order" } }] } }] }
"#,
    },
    // Fine.
    Unseen {
        // Letters are synced one by one on an SSD, and services log. The newer release has nothing that they meet.
        name: "fourteenth-letters-next-release",
        kernel: "6.1.192",
        change: &["kernel=6.12.117"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<220> MB/s", read_bandwidth = "220 MB/s", write_iops = "5000 IO/s", read_iops = "5000 IO/s" }
machine.mounts."/mail" = { type = "xfs", device = "vda", options = ["noatime"] }
machine.cgroups.mail = { memory_max = "1 GiB" }
machine.cgroups."filter{i}" = { instances = 8, memory_max = "128 MiB" }
workload.seed = <seed>
workload.duration = "46s"
workload.tasks.letters = { cgroup = "mail", instances = 2, stagger = "200ms", preset.mail = { dir = "/mail/new{j}", messages = "<3>/s", message = "16 KiB" } }
workload.tasks.filter = { cgroup = "filter{i}", stagger = "150ms", preset.logger = { file = "/mail/filter{i}.log", lines = "<5>/s" } }
"#,
    },
    Unseen {
        // Sick before, and cured: a heap leaves some 700 MiB of 2 GiB, and uploads of 280 MiB are paused from 100 MiB on. Of 8 GiB they
        // never are.
        name: "fourteenth-uploads-get-more-memory",
        kernel: "6.12.117",
        change: &["memory=8G"],
        scenario: r#"
machine.memory = "2 GiB"
machine.cpus = 4
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<32> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/srv" = { type = "xfs", device = "vda" }
machine.cgroups.heap = {}
machine.cgroups.upload = {}
workload.seed = <seed>
workload.duration = "60s"
workload.tasks.heap = { cgroup = "heap", setup = [{ anon = { size = "1100 MiB" } }], steps = [{ repeat = { every = "100ms", steps = [{ burn = { for = "3ms" } }] } }] }
workload.tasks.upload = { cgroup = "upload", steps = [{ repeat = { every = "25s", steps = [{ write = { file = "/srv/upload", order = "append", block = "128 KiB", total = "<280> MiB", rate = "75 MB/s" } }] } }] }
"#,
    },
    Unseen {
        // Sick before, and cured: a tenant of 2 MB/s saves 9 MiB each 10 s and syncs them, nearly 5 s. Of 60 MB/s a save takes a sixth of
        // a second.
        name: "fourteenth-saves-of-a-tenant-get-a-wider-limit",
        kernel: "6.1.192",
        change: &["machine.cgroups.tenant.io_max.vda.write_bandwidth=60 MB/s"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<130> MB/s", read_bandwidth = "130 MB/s" }
machine.mounts."/srv" = { type = "ext4", device = "vda" }
machine.cgroups.tenant = { memory_max = "512 MiB", io_max.vda = { write_bandwidth = "2 MB/s" } }
workload.seed = <seed>
workload.duration = "52s"
workload.tasks.save = { cgroup = "tenant", steps = [{ repeat = { every = "10s", steps = [{ write = { file = "/srv/save", block = "64 KiB", total = "<9> MiB", truncate = true } }, { fsync = { file = "/srv/save" } }] } }] }
workload.tasks.log = { cgroup = "tenant", preset.logger = { file = "/srv/log", lines = "<8>/s" } }
"#,
    },
    Unseen {
        // A team halves the ratios of its small services: 10 % and 5 % of 256 MiB leave each of them 19 MiB before a pause. A report of 2 MiB
        // each 9 s is the largest thing that one of them writes.
        name: "fourteenth-small-services-halve-their-ratios",
        kernel: "7.2.13",
        change: &["vm.dirty_ratio=10", "vm.dirty_background_ratio=5"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<110> MB/s", read_bandwidth = "110 MB/s" }
machine.mounts."/srv" = { type = "ext4", device = "vda" }
machine.cgroups."service{i}" = { instances = 16, memory_max = "256 MiB" }
workload.seed = <seed>
workload.duration = "48s"
workload.tasks.log = { cgroup = "service{i}", stagger = "130ms", preset.logger = { file = "/srv/log{i}", lines = "<7>/s" } }
workload.tasks.report = { cgroup = "service0", steps = [{ repeat = { every = "9s", steps = [{ write = { file = "/srv/report", block = "64 KiB", total = "<2> MiB", truncate = true } }] } }] }
workload.tasks.state = { cgroup = "service1", steps = [{ repeat = { every = "1s", steps = [{ write = { file = "/srv/state", order = "append", count = 1 } }, { fdatasync = { file = "/srv/state" } }] } }] }
"#,
    },
];
