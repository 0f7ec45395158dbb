// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sixteenth group of kinds, as a platform team meets them in moves: virtual machines, files of metrics and limits of io that meet
//! version 2, volumes that are detached after a profile for throughput, warmers of caches on a kernel whose inode switches are slow,
//! brokers on larger hosts, caches of runners by a guide of one key, and mapped indexes that get large folios. Then hosts near a limit,
//! hosts that a move cures, and hosts that such moves leave alone. The comment of each kind states the result that arithmetic expects.
//! All kinds were committed before any was scored.

use super::unseen::Unseen;

/// Every kind of the group.
pub(super) const SIXTEENTH: &[Unseen] = &[
    // Suffer.
    Unseen {
        // The memory of a guest takes 1536 of the 2048 MiB of its cgroup. Its disk is an image of 384 MiB. Every 30 s the guest writes
        // 260 MiB in blocks of 64 KiB all over it: 4160 draws of 6144 blocks meet some 3020 of them, 189 MiB. Version 1 pauses none below
        // 15 % of what the host has left, 1.9 GiB. Version 2 pauses the guest from 15 % of 512 MiB on, 76 MiB: 100 MiB or more wait for a disk
        // of 28 MB/s, 4 s each time.
        name: "sixteenth-guests-that-fill-their-cgroup-by-two-releases-to-v2",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "200 GiB", write_bandwidth = "<28> MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/images" = { type = "xfs", device = "vda", options = ["noatime"] }
machine.cgroups."guest{i}" = { instances = 2, memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "76s"
workload.tasks.memory = { cgroup = "guest{i}", setup = [{ anon = { size = "1536 MiB" } }], steps = [{ repeat = { every = "100ms", steps = [{ burn = { for = "3ms" } }] } }] }
workload.tasks.disk = { cgroup = "guest{i}", stagger = "15s", setup = [{ fallocate = { file = "/images/guest{i}", size = "384 MiB" } }], steps = [{ repeat = { every = "30s", steps = [{ write = { file = "/images/guest{i}", order = "random", size = "384 MiB", block = "64 KiB", total = "<260> MiB", rate = "90 MB/s" } }] } }] }
"#,
    },
    Unseen {
        // A pod mounts its volume, writes 120 MiB in files of 4 MiB at 17 MB/s, and ends. The volume is unmounted a second later. Before, the
        // flusher starts at 8 MiB and writes faster than the pod: the unmount finds some 8 MiB, a third of a second. The profile sets 40 % and
        // 10 %: 750 MiB are never reached, and the unmount writes all of it, 5 s of a disk of 24 MB/s each time.
        name: "sixteenth-volumes-detached-by-a-profile-for-throughput",
        kernel: "6.12.117",
        change: &["vm.dirty_ratio=40", "vm.dirty_background_ratio=10"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_bytes = "48 MiB", dirty_background_bytes = "8 MiB" }
machine.devices.vda = { size = "40 GiB", write_bandwidth = "120 MB/s", read_bandwidth = "120 MB/s" }
machine.devices.vdb = { size = "100 GiB", write_bandwidth = "<24> MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/var" = { type = "ext4", device = "vda" }
machine.mounts."/volume" = { type = "ext4", device = "vdb", at_start = false }
machine.cgroups.pod = {}
machine.cgroups.agent = {}
workload.seed = <seed>
workload.duration = "82s"
workload.tasks.pod = { cgroup = "pod", steps = [{ repeat = { every = "26s", steps = [{ mount = { point = "/volume" } }, { create_files = { file = "/volume/part{n}", files = <30>, size = "4 MiB", rate = "4/s" } }, { sleep = { for = "1s" } }, { umount = { point = "/volume" } }] } }] }
workload.tasks.agent = { cgroup = "agent", preset.logger = { file = "/var/agent.log", lines = "<4>/s" } }
"#,
    },
    Unseen {
        // A unit warms the cache of a site with 24,000 files of 1 KiB and ends. They are synced. 18,000 of them are read, so that their times
        // are dirty, and the cgroup is removed. On 5.10 its inodes stay where they are. On 6.12.43 each dirty one is inserted in order of its
        // age. 20,000 took 10 s of a CPU under emulation, and it is quadratic: 8 s. Requests of 1 ms wait meanwhile.
        name: "sixteenth-warmers-of-caches-next-kernel",
        kernel: "5.10.223",
        change: &["kernel=6.12.43"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.vda = { size = "40 GiB", write_bandwidth = "200 MB/s", read_bandwidth = "200 MB/s" }
machine.mounts."/www" = { type = "xfs", device = "vda", options = ["lazytime", "strictatime"] }
machine.cgroups.system = {}
machine.cgroups."system/warm" = {}
machine.cgroups.web = {}
workload.seed = <seed>
workload.duration = "44s"
workload.tasks.warm = { cgroup = "system/warm", steps = [{ create_files = { file = "/www/cache/{d}/{n}", files = <24000>, files_per_dir = 500, size = "1 KiB" } }] }
workload.tasks.manager = { steps = [{ wait_for = { task = "warm" } }, "sync", { read = { file = "/www/cache/{d}/{n}", files = 18000, files_per_dir = 500 } }, { sleep = { for = "5s" } }, { remove_cgroup = { cgroup = "system/warm" } }, { sleep = { for = "20s" } }] }
workload.tasks.request = { cgroup = "web", instances = 2, stagger = "7ms", steps = [{ repeat = { every = "20ms", steps = [{ burn = { for = "1ms" } }] } }] }
"#,
    },
    Unseen {
        // A guide set 5 % and 1 % on hosts of 2 GiB: the flusher starts at 18 MiB, half a second of the disk. On hosts of 32 GiB the same
        // percent are 300 MiB. Three partitions take 2.5 MB/s each: after 30 s 225 MB are old and written at once, 6 s of a disk of 36 MB/s.
        // Offsets of the same cgroup are synced twice a second and wait behind them.
        name: "sixteenth-brokers-on-larger-hosts",
        kernel: "6.12.117",
        change: &["memory=32G"],
        scenario: r#"
machine.memory = "2 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_ratio = 5, dirty_background_ratio = 1 }
machine.devices.vda = { size = "200 GiB", write_bandwidth = "<36> MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/kafka" = { type = "ext4", device = "vda", options = ["noatime"] }
machine.cgroups.broker = {}
workload.seed = <seed>
workload.duration = "96s"
workload.tasks.partition = { cgroup = "broker", instances = 3, stagger = "100ms", steps = [{ write = { file = "/kafka/log{j}", order = "append", block = "32 KiB", rate = "<2500> kB/s" } }] }
workload.tasks.offset = { cgroup = "broker", instances = 3, stagger = "160ms", steps = [{ repeat = { every = "500ms", steps = [{ write = { file = "/kafka/offset{j}", order = "append", count = 1 } }, { fdatasync = { file = "/kafka/offset{j}" } }] } }] }
"#,
    },
    Unseen {
        // A guide names only vm.dirty_bytes, 32 MiB. 10 % are more than that, so the background threshold is half of it, and runners are paused
        // from 24 MiB on instead of 1.1 GiB. Each of two unpacks 160 MiB of its cache every 22 s, at the speed of memory: some 130 MiB wait for
        // a disk of 30 MB/s, 4.5 s each time.
        name: "sixteenth-caches-of-runners-by-a-guide-of-one-key",
        kernel: "6.12.117",
        change: &["vm.dirty_bytes=33554432"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "200 GiB", write_bandwidth = "<30> MB/s", read_bandwidth = "120 MB/s" }
machine.devices.vdb = { size = "20 GiB", write_bandwidth = "80 MB/s", read_bandwidth = "80 MB/s" }
machine.mounts."/builds" = { type = "xfs", device = "vda" }
machine.mounts."/log" = { type = "ext4", device = "vdb" }
machine.cgroups."runner{i}" = { instances = 2 }
workload.seed = <seed>
workload.duration = "70s"
workload.tasks.unpack = { cgroup = "runner{i}", stagger = "11s", steps = [{ repeat = { every = "22s", steps = [{ create_files = { file = "/builds/r{i}/{d}/{n}", files = <160>, files_per_dir = 40, size = "1 MiB" } }] } }] }
workload.tasks.log = { cgroup = "runner{i}", stagger = "300ms", preset.logger = { file = "/log/runner{i}", lines = "<8>/s" } }
"#,
    },
    Unseen {
        // Metrics are one page each, 1500 of them a second, all over a file of 64 MiB. Version 1 keeps the file in memory and pauses no task.
        // Version 2 pauses a cgroup of 112 MiB from 16 MiB on. Then a quarter of the pages is dirty, and runs of them have 1.4 pages: 200
        // requests a second clean 280 pages, and more than 1000 become dirty. The writer waits for three quarters of the time.
        name: "sixteenth-files-of-metrics-to-v2",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "40 GiB", bandwidth = "60 MB/s", iops = "<200> IO/s" }
machine.mounts."/metrics" = { type = "xfs", device = "vda", options = ["noatime"] }
machine.cgroups.carbon = { memory_max = "112 MiB" }
machine.cgroups."web{i}" = { instances = 4, memory_max = "256 MiB" }
workload.seed = <seed>
workload.duration = "60s"
workload.tasks.carbon = { cgroup = "carbon", setup = [{ write = { file = "/metrics/all", block = "256 KiB", total = "64 MiB" } }, { fsync = { file = "/metrics/all" } }], steps = [{ write = { file = "/metrics/all", order = "random", size = "64 MiB", rate = "<1500>/s" } }] }
workload.tasks.web = { cgroup = "web{i}", steps = [{ repeat = { every = "200ms", steps = [{ burn = { for = "4ms" } }] } }] }
"#,
    },
    Unseen {
        // Tenants have a limit of 5 MB/s. On version 1 the flusher writes for the root cgroup, so the limit holds no buffered write. On version
        // 2 it does, and a tenant of 256 MiB is paused from 38 MiB on. An export of 70 MiB comes every 26 s: 32 MiB or more wait for
        // 5 MB/s, 6 s or more each time.
        name: "sixteenth-limits-of-tenants-that-begin-to-hold-on-v2",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "200 GiB", write_bandwidth = "<120> MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/srv" = { type = "xfs", device = "vda" }
machine.cgroups."tenant{i}" = { instances = 2, memory_max = "256 MiB", io_max.vda = { write_bandwidth = "5 MB/s" } }
machine.cgroups.front = { memory_max = "256 MiB" }
workload.seed = <seed>
workload.duration = "78s"
workload.tasks.export = { cgroup = "tenant{i}", stagger = "9s", steps = [{ repeat = { every = "26s", steps = [{ write = { file = "/srv/export{i}", order = "append", block = "128 KiB", total = "<70> MiB", rate = "60 MB/s" } }] } }] }
workload.tasks.front = { cgroup = "front", preset.logger = { file = "/srv/front.log", lines = "<10>/s" } }
"#,
    },
    Unseen {
        // An index of 48 MiB was read into memory and is mapped. Each second 120 scattered pages change and are synced: half a megabyte. The
        // next release keeps folios of 128 KiB that readahead made, 384 of them. 120 stores meet some 103: 13 MB are synced, 0.8 s of
        // a disk of 16 MB/s, each second.
        name: "sixteenth-mapped-indexes-that-were-read-two-releases-on",
        kernel: "5.10.223",
        change: &["kernel=6.12.43"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<16> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/index" = { type = "xfs", device = "vda", options = ["noatime"] }
machine.cgroups.directory = { memory_max = "768 MiB" }
workload.seed = <seed>
workload.duration = "46s"
workload.tasks.index = { cgroup = "directory", setup = [{ write = { file = "/index/data", block = "1 MiB", total = "48 MiB", direct = true } }, { read = { file = "/index/data", block = "128 KiB" } }], steps = [{ repeat = { every = "1s", steps = [{ mmap_store = { file = "/index/data", size = "48 MiB", pages = <120>, count = 1 } }, { msync = { file = "/index/data" } }] } }] }
workload.tasks.access = { cgroup = "directory", preset.logger = { file = "/index/access.log", lines = "<15>/s" } }
"#,
    },
    // Tight.
    Unseen {
        // 20 % and 10 % of 768 MiB: paused from 115 MiB on. A job that may use less memory writes a report of 70 MiB over the last one every
        // 20 s.
        name: "sixteenth-reports-near-a-smaller-limit",
        kernel: "6.12.117",
        change: &["cgroup/batch/memory.max=768M"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "200 GiB", write_bandwidth = "<65> MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/reports" = { type = "xfs", device = "vda" }
machine.cgroups.batch = { memory_max = "3 GiB" }
workload.seed = <seed>
workload.duration = "62s"
workload.tasks.report = { cgroup = "batch", steps = [{ repeat = { every = "20s", steps = [{ write = { file = "/reports/day", block = "128 KiB", total = "<70> MiB", rate = "50 MB/s", truncate = true } }] } }] }
workload.tasks.log = { cgroup = "batch", preset.logger = { file = "/reports/log", lines = "<6>/s" } }
"#,
    },
    Unseen {
        // 5 % and 2 % of some 3.7 GiB: paused from 130 MiB on. A build writes 85 MiB of packages over the last ones every 20 s, at the speed of
        // memory.
        name: "sixteenth-packages-near-the-percents",
        kernel: "6.1.192",
        change: &["vm.dirty_ratio=5", "vm.dirty_background_ratio=2"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 4
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<55> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/packages" = { type = "xfs", device = "vda" }
machine.cgroups.build = {}
workload.seed = <seed>
workload.duration = "64s"
workload.tasks.build = { cgroup = "build", steps = [{ repeat = { every = "20s", steps = [{ write = { file = "/packages/new", block = "256 KiB", total = "<85> MiB", truncate = true } }, { burn = { for = "2s" } }] } }] }
"#,
    },
    // Do not suffer.
    Unseen {
        // Sick before, and cured: a job mounts a disk of 10 MB/s, writes 60 MiB in 4 s, computes for 16 s and unmounts it: 6 s. With ages of
        // 5 s all is written before the job ends.
        name: "sixteenth-disks-unmounted-after-younger-data",
        kernel: "7.2.13",
        change: &["vm.dirty_expire_centisecs=500", "vm.dirty_writeback_centisecs=100"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 10, dirty_expire_centisecs = 3000, dirty_writeback_centisecs = 500 }
machine.devices.vda = { size = "40 GiB", write_bandwidth = "100 MB/s", read_bandwidth = "100 MB/s" }
machine.devices.vdb = { size = "500 GiB", write_bandwidth = "<10> MB/s", read_bandwidth = "40 MB/s" }
machine.mounts."/var" = { type = "ext4", device = "vda" }
machine.mounts."/disk" = { type = "ext4", device = "vdb", at_start = false }
machine.cgroups.job = {}
workload.seed = <seed>
workload.duration = "92s"
workload.tasks.job = { cgroup = "job", steps = [{ repeat = { every = "32s", steps = [{ mount = { point = "/disk" } }, { create_files = { file = "/disk/set{n}", files = <15>, size = "4 MiB", rate = "4/s" } }, { sleep = { for = "16s" } }, { umount = { point = "/disk" } }] } }] }
workload.tasks.log = { cgroup = "job", preset.logger = { file = "/var/job.log", lines = "<3>/s" } }
"#,
    },
    Unseen {
        // Sick before, and cured: 6.12.43 switches the inodes of a removed cgroup in quadratic time, and 6.12.117 has the mend of 2025. The
        // cgroup that the host removes has 20,000 inodes, 15,000 of them with dirty times.
        name: "sixteenth-warmers-of-caches-get-the-mend",
        kernel: "6.12.43",
        change: &["kernel=6.12.117"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.vda = { size = "40 GiB", write_bandwidth = "180 MB/s", read_bandwidth = "180 MB/s" }
machine.mounts."/srv" = { type = "xfs", device = "vda", options = ["lazytime", "strictatime"] }
machine.cgroups.system = {}
machine.cgroups."system/fetch" = {}
machine.cgroups.web = {}
workload.seed = <seed>
workload.duration = "42s"
workload.tasks.fetch = { cgroup = "system/fetch", steps = [{ create_files = { file = "/srv/cache/{d}/{n}", files = <20000>, files_per_dir = 300, size = "1 KiB" } }] }
workload.tasks.manager = { steps = [{ wait_for = { task = "fetch" } }, "sync", { read = { file = "/srv/cache/{d}/{n}", files = 15000, files_per_dir = 300 } }, { sleep = { for = "5s" } }, { remove_cgroup = { cgroup = "system/fetch" } }, { sleep = { for = "18s" } }] }
workload.tasks.request = { cgroup = "web", steps = [{ repeat = { every = "25ms", steps = [{ burn = { for = "1ms" } }] } }] }
"#,
    },
    Unseen {
        // Three queues sync each message of 16 KiB, and their segments are removed after a while. Nothing unsynced is left that version 2
        // or a newer kernel could hold back.
        name: "sixteenth-queues-that-sync-by-two-releases-to-v2",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<150> MB/s", read_bandwidth = "150 MB/s" }
machine.mounts."/queue" = { type = "xfs", device = "vda", options = ["noatime"] }
machine.cgroups."queue{i}" = { instances = 3, memory_max = "512 MiB" }
workload.seed = <seed>
workload.duration = "50s"
workload.tasks.message = { cgroup = "queue{i}", stagger = "70ms", steps = [{ repeat = { every = "<150>ms", steps = [{ write = { file = "/queue/q{i}", order = "append", block = "16 KiB", count = 1 } }, { fdatasync = { file = "/queue/q{i}" } }] } }] }
workload.tasks.segment = { cgroup = "queue{i}", stagger = "1s", steps = [{ repeat = { every = "9s", steps = [{ create_files = { file = "/queue/s{i}/{n}", files = 2, size = "512 KiB", fsync = true } }, { sleep = { for = "3s" } }, { unlink = { file = "/queue/s{i}/{n}", files = 2 } }] } }] }
"#,
    },
    Unseen {
        // A guide sets 64 and 16 MiB. Scratch data of 300 MiB every 14 s lie in memory, where no page is dirty. Each of ten services of 256 MiB
        // is paused from 1.4 MiB on, and its log has some 40 KiB when it is old.
        name: "sixteenth-scratch-in-memory-by-a-guide",
        kernel: "6.12.117",
        change: &["vm.dirty_bytes=67108864", "vm.dirty_background_bytes=16777216"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<90> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/srv" = { type = "ext4", device = "vda" }
machine.mounts."/scratch" = { type = "tmpfs" }
machine.cgroups.render = {}
machine.cgroups."service{i}" = { instances = 10, memory_max = "256 MiB" }
workload.seed = <seed>
workload.duration = "52s"
workload.tasks.render = { cgroup = "render", steps = [{ repeat = { every = "14s", steps = [{ write = { file = "/scratch/frames", block = "256 KiB", total = "<300> MiB", rate = "150 MB/s", truncate = true } }] } }] }
workload.tasks.log = { cgroup = "service{i}", stagger = "210ms", preset.logger = { file = "/srv/service{i}.log", lines = "<10>/s" } }
"#,
    },
    Unseen {
        // Two stores append to their logs and sync them each second. Every 20 s each dumps 30 MiB, syncs the dump and renames it, a quarter of
        // a second. All of it is written from start to end, so folios of the next kernel change nothing.
        name: "sixteenth-stores-with-dumps-next-kernel",
        kernel: "6.1.192",
        change: &["kernel=7.2.13"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<130> MB/s", read_bandwidth = "130 MB/s" }
machine.mounts."/store" = { type = "xfs", device = "vda", options = ["noatime"] }
machine.cgroups."store{i}" = { instances = 2, memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "58s"
workload.tasks.log = { cgroup = "store{i}", stagger = "400ms", preset.redis_aof = { file = "/store/log{i}", commands = "<60>/s" } }
workload.tasks.dump = { cgroup = "store{i}", stagger = "8s", steps = [{ repeat = { every = "20s", steps = [{ write = { file = "/store/dump{i}.new", block = "256 KiB", total = "<30> MiB", truncate = true } }, { fsync = { file = "/store/dump{i}.new" } }, { close = { file = "/store/dump{i}.new" } }, { rename = { from = "/store/dump{i}.new", to = "/store/dump{i}" } }] } }] }
"#,
    },
    Unseen {
        // A gateway reads objects of 256 MiB from memory and writes 12 durable records a second. Half of 16 GiB holds all of it, and no task
        // comes near 15 % of it.
        name: "sixteenth-gateways-in-half-the-memory",
        kernel: "6.12.43",
        change: &["memory=8G"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.devices.vda = { size = "200 GiB", write_bandwidth = "<140> MB/s", read_bandwidth = "140 MB/s" }
machine.mounts."/objects" = { type = "ext4", device = "vda", options = ["noatime"] }
machine.cgroups.gateway = {}
machine.cgroups."worker{i}" = { instances = 5 }
workload.seed = <seed>
workload.duration = "48s"
workload.tasks.read = { cgroup = "gateway", setup = [{ write = { file = "/objects/hot", block = "1 MiB", total = "256 MiB" } }, { fsync = { file = "/objects/hot" } }], steps = [{ read = { file = "/objects/hot", order = "random", block = "64 KiB", rate = "<60>/s", for = "90s" } }] }
workload.tasks.record = { cgroup = "gateway", steps = [{ write = { file = "/objects/records", order = "append", block = "8 KiB", dsync = true, rate = "<12>/s" } }] }
workload.tasks.worker = { cgroup = "worker{i}", stagger = "350ms", preset.logger = { file = "/objects/worker{i}.log", lines = "<5>/s" } }
"#,
    },
];
