// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sixth group of kinds, of shapes that the groups before it do not have: joined uploads, guests in one cgroup, soft limits,
//! limits of io.max, ranks at a barrier, stripes, heaps on a smaller host, appends that are synced now and then. They were
//! written down and committed before any was scored. The comment of each kind states the result that arithmetic expects of
//! its change; the effect is measured. A limit is the ratio of what can be dirtied, and writers are paused from the middle
//! between both limits on. `<N>` is a number that differs from host to host.

use super::unseen::Unseen;

/// Every kind of the group.
pub(super) const SIXTH: &[Unseen] = &[
    // Suffer.
    Unseen {
        // 20 % of 160 MiB are 32 MiB. Three uploads write 3 parts of 16 MiB and join them in 48 MiB: 7 s of the disk every
        // 18 s.
        name: "sixth-uploads-joined",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.data = { size = "16 GiB", write_bandwidth = "<28> MB/s", read_bandwidth = "<28> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."store/gate{i}" = { instances = 3, memory_max = "160 MiB" }
workload.seed = <seed>
workload.duration = "46s"
workload.tasks.gate = { cgroup = "store/gate{i}", stagger = "800ms", steps = [{ repeat = { every = "18s", steps = [{ create_files = { file = "/data/g{i}/part{n}", files = 3, size = "<16> MiB" } }, { write = { file = "/data/g{i}/joined", block = "1 MiB", total = "<48> MiB", truncate = true } }, { unlink = { file = "/data/g{i}/part{n}", files = 3 } }] } }] }
"#,
    },
    Unseen {
        // 20 % of 224 MiB are 45 MiB for five guests together. They write 44 MiB each: 6 s of the disk every 20 s.
        name: "sixth-guests-in-one-box",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "12 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.data = { size = "16 GiB", write_bandwidth = "<30> MB/s", read_bandwidth = "<30> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.machines = { memory_max = "224 MiB" }
workload.seed = <seed>
workload.duration = "48s"
workload.tasks.guest = { cgroup = "machines", instances = 5, stagger = "400ms", steps = [{ repeat = { every = "20s", steps = [{ write = { file = "/data/disk{j}", order = "random", size = "200 MiB", block = "64 KiB", total = "<44> MiB" } }] } }] }
"#,
    },
    Unseen {
        // A soft limit of 96 MiB allows 19 MiB of dirty pages instead of 400 MiB. A render writes 120 MiB: 2.6 s of the disk
        // every 15 s.
        name: "sixth-renders-get-a-soft-limit",
        kernel: "7.2.13",
        change: &["cgroup/render/memory.high=96M"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.data = { size = "16 GiB", write_bandwidth = "<40> MB/s", read_bandwidth = "<40> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.render = { memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "48s"
workload.tasks.render = { cgroup = "render", steps = [{ repeat = { every = "15s", steps = [{ burn = { for = "1s" } }, { create_files = { file = "/data/frames/{n}", files = <15>, size = "8 MiB", rate = "40/s" } }] } }] }
workload.tasks.queue = { preset.logger = { file = "/data/queue", lines = "<60>/s" } }
"#,
    },
    Unseen {
        // 20 % of 256 MiB are 51 MiB. A limit of 6 MB/s takes 8 s for what a batch of 100 MiB has beyond it, every 22 s.
        name: "sixth-batches-get-an-io-limit",
        kernel: "6.12.117",
        change: &["machine.cgroups.batch.io_max.vda.write_bandwidth=6 MB/s"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.vda = { size = "16 GiB", write_bandwidth = "<150> MB/s", read_bandwidth = "<150> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "vda" }
machine.cgroups.batch = { memory_max = "256 MiB" }
workload.seed = <seed>
workload.duration = "56s"
workload.tasks.batch = { cgroup = "batch", steps = [{ repeat = { every = "22s", steps = [{ write = { file = "/data/batch", block = "256 KiB", total = "<100> MiB", truncate = true } }] } }] }
"#,
    },
    Unseen {
        // The limit falls to 20 MiB. Six ranks write 40 MiB each and meet: 4.5 s of the disk every 18 s.
        name: "sixth-ranks-to-small-bytes",
        kernel: "5.10.223",
        change: &["vm.dirty_bytes=20971520", "vm.dirty_background_bytes=10485760"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 6
machine.devices.data = { size = "16 GiB", write_bandwidth = "<50> MB/s", read_bandwidth = "<50> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.job = { memory_max = "6 GiB" }
workload.seed = <seed>
workload.duration = "48s"
workload.tasks.rank = { cgroup = "job", instances = 6, steps = [{ repeat = { every = "18s", steps = [{ burn = { for = "1s" } }, { write = { file = "/data/rank{j}", block = "512 KiB", total = "<40> MiB", truncate = true } }, { barrier = { name = "step" } }] } }] }
"#,
    },
    Unseen {
        // The limit falls from 560 MiB to 84 MiB. Two captures write 140 MiB each on stripes: 3.8 s of them every 17 s.
        name: "sixth-captures-on-stripes-to-three-percent",
        kernel: "6.12.117",
        change: &["vm.dirty_ratio=3", "vm.dirty_background_ratio=1"],
        scenario: r#"
machine.memory = "3 GiB"
machine.cpus = 2
machine.devices.even = { size = "16 GiB", write_bandwidth = "<27> MB/s", read_bandwidth = "<27> MB/s" }
machine.devices.odd = { size = "16 GiB", write_bandwidth = "<27> MB/s", read_bandwidth = "<27> MB/s" }
machine.devices.stripes = { backing = { raid0 = { members = ["even", "odd"] } } }
machine.mounts."/data" = { type = "ext4", device = "stripes" }
workload.seed = <seed>
workload.duration = "50s"
workload.tasks.capture = { instances = 2, stagger = "500ms", steps = [{ repeat = { every = "17s", steps = [{ write = { file = "/data/capture{j}", block = "256 KiB", total = "<140> MiB", truncate = true } }] } }] }
"#,
    },
    Unseen {
        // A heap of 1.8 GiB stays. The limit falls from 1.2 GiB to 0.2 GiB. A flush writes 430 MiB: 5 s of the disk beyond it
        // every 25 s.
        name: "sixth-heaps-on-a-smaller-host",
        kernel: "6.1.192",
        change: &["memory=3G"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<40> MB/s", read_bandwidth = "<40> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.cassandra = {}
workload.seed = <seed>
workload.duration = "54s"
workload.tasks.cassandra = { cgroup = "cassandra", setup = [{ anon = { size = "<1800> MiB" } }], steps = [{ repeat = { every = "25s", steps = [{ write = { file = "/data/table", block = "64 KiB", total = "<430> MiB", truncate = true } }] } }] }
"#,
    },
    Unseen {
        // Before, an fsync after 14 s finds 4 MiB: 0.2 s. After, it finds all 9 MB/s of them: 5 s of the disk.
        name: "sixth-appends-synced-after-a-larger-ratio",
        kernel: "6.12.117",
        change: &["vm.dirty_ratio=50", "vm.dirty_background_ratio=40"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_bytes = "16 MiB", dirty_background_bytes = "4 MiB" }
machine.devices.data = { size = "16 GiB", write_bandwidth = "<25> MB/s", read_bandwidth = "<25> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."topic{i}" = { instances = 3, memory_max = "1 GiB" }
workload.seed = <seed>
workload.duration = "56s"
workload.tasks.topic = { cgroup = "topic{i}", steps = [{ write = { file = "/data/topic{i}", order = "append", block = "32 KiB", rate = "<3> MB/s", sync = { call = "fsync", every = "14s" } } }] }
"#,
    },
    // Tight.
    Unseen {
        // 25 % and 5 % of 320 MiB: paused from 48 MiB on. A clip has 45 MiB.
        name: "sixth-clips-between-wide-limits",
        kernel: "6.12.117",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.sysctl.vm = { dirty_ratio = 25, dirty_background_ratio = 5 }
machine.devices.data = { size = "16 GiB", write_bandwidth = "<45> MB/s", read_bandwidth = "<45> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."cut{i}" = { instances = 2, memory_max = "320 MiB" }
workload.seed = <seed>
workload.duration = "44s"
workload.tasks.cut = { cgroup = "cut{i}", stagger = "7s", steps = [{ repeat = { every = "14s", steps = [{ write = { file = "/data/clip{i}", order = "append", block = "1 MiB", total = "<45> MiB" } }, { close = { file = "/data/clip{i}" } }] } }] }
"#,
    },
    Unseen {
        // 15 % and 10 % of 400 MiB: paused from 50 MiB on. 380 wheels of 128 KiB are 48 MiB.
        name: "sixth-wheels-near-their-limit",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.sysctl.vm = { dirty_ratio = 15, dirty_background_ratio = 10 }
machine.devices.data = { size = "16 GiB", write_bandwidth = "<55> MB/s", read_bandwidth = "<55> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."venv{i}" = { instances = 3, memory_max = "400 MiB" }
workload.seed = <seed>
workload.duration = "44s"
workload.tasks.install = { cgroup = "venv{i}", stagger = "4s", steps = [{ repeat = { every = "13s", steps = [{ create_files = { file = "/data/v{i}/{d}/{n}", files = <380>, files_per_dir = 38, size = "128 KiB", rate = "<700>/s" } }, { burn = { for = "1s" } }, { unlink = { file = "/data/v{i}/{d}/{n}", files = <380>, files_per_dir = 38 } }] } }] }
"#,
    },
    Unseen {
        // 5 % and 2 % of 8 GiB: paused from about 270 MiB on. A level writes 260 MiB.
        name: "sixth-levels-on-half-a-host",
        kernel: "6.12.117",
        change: &["memory=8G"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_ratio = 5, dirty_background_ratio = 2 }
machine.devices.data = { size = "16 GiB", write_bandwidth = "<55> MB/s", read_bandwidth = "<55> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
workload.seed = <seed>
workload.duration = "52s"
workload.tasks.level = { steps = [{ repeat = { every = "21s", steps = [{ create_files = { file = "/data/level/{n}", files = 4, size = "<65> MiB" } }, { unlink = { file = "/data/level/{n}", files = 4 } }] } }] }
workload.tasks.manifest = { steps = [{ repeat = { every = "2s", steps = [{ write = { file = "/data/manifest", order = "append", count = 1 } }, { fdatasync = { file = "/data/manifest" } }] } }] }
"#,
    },
    Unseen {
        // 80 MiB and 20 MiB: paused from 50 MiB on. Two probes spool 24 MiB each at the same time.
        name: "sixth-probes-near-the-bytes",
        kernel: "6.1.192",
        change: &["vm.dirty_bytes=83886080", "vm.dirty_background_bytes=20971520"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<35> MB/s", read_bandwidth = "<35> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."probe{i}" = { instances = 2, memory_max = "1 GiB" }
workload.seed = <seed>
workload.duration = "40s"
workload.tasks.probe = { cgroup = "probe{i}", steps = [{ repeat = { every = "9s", steps = [{ write = { file = "/data/probe{i}", order = "append", block = "32 KiB", total = "<24> MiB" } }] } }] }
"#,
    },
    Unseen {
        // 20 % and 10 % of 320 MiB: paused from 48 MiB on. A mailbox is rewritten: 45 MiB.
        name: "sixth-mailboxes-in-less-memory",
        kernel: "7.2.13",
        change: &["cgroup/mail/memory.max=320M"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<50> MB/s", read_bandwidth = "<50> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.mail = { memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "44s"
workload.tasks.expunge = { cgroup = "mail", steps = [{ repeat = { every = "14s", steps = [{ write = { file = "/data/box.new", block = "64 KiB", total = "<45> MiB", truncate = true } }, { close = { file = "/data/box.new" } }, { rename = { from = "/data/box.new", to = "/data/box" } }] } }] }
workload.tasks.arrive = { cgroup = "mail", preset.mail = { dir = "/data/new", messages = "<3>/s" } }
"#,
    },
    // Fine.
    Unseen {
        // The tables pass the page cache, and each write of the log is durable when it returns.
        name: "sixth-durable-logs",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.devices.data = { size = "16 GiB", write_bandwidth = "<200> MB/s", read_bandwidth = "<200> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."oracle{i}" = { instances = 2, memory_max = "384 MiB" }
workload.seed = <seed>
workload.duration = "40s"
workload.tasks.tables = { cgroup = "oracle{i}", steps = [{ write = { file = "/data/tables{i}", order = "random", size = "128 MiB", block = "8 KiB", direct = true, depth = 4, rate = "<90>/s" } }] }
workload.tasks.redo = { cgroup = "oracle{i}", steps = [{ write = { file = "/data/redo{i}", order = "append", block = "16 KiB", dsync = true, rate = "<12>/s" } }] }
"#,
    },
    Unseen {
        // A stream of 2 MB/s is far below both limits. After, age writes 60 MB at a time, and no task waits for them.
        name: "sixth-slow-streams-to-ratios",
        kernel: "6.1.192",
        change: &["vm.dirty_ratio=30", "vm.dirty_background_ratio=15"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_bytes = "256 MiB", dirty_background_bytes = "64 MiB" }
machine.devices.data = { size = "16 GiB", write_bandwidth = "<70> MB/s", read_bandwidth = "<70> MB/s" }
machine.mounts."/data" = { type = "btrfs", device = "data" }
machine.cgroups."meter{i}" = { instances = 2, memory_max = "1 GiB" }
workload.seed = <seed>
workload.duration = "60s"
workload.tasks.meter = { cgroup = "meter{i}", steps = [{ write = { file = "/data/meter{i}", order = "append", block = "16 KiB", rate = "<1> MB/s" } }] }
"#,
    },
    Unseen {
        // 20 % of 512 MiB are 102 MiB. A job syncs each artefact of 512 KiB before it closes it.
        name: "sixth-artefacts-synced-new-kernel",
        kernel: "6.1.192",
        change: &["kernel=6.12.117"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<110> MB/s", read_bandwidth = "<110> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."deploy{i}" = { instances = 3, memory_max = "512 MiB" }
workload.seed = <seed>
workload.duration = "40s"
workload.tasks.deploy = { cgroup = "deploy{i}", stagger = "2s", steps = [{ repeat = { every = "9s", steps = [{ create_files = { file = "/data/d{i}/{n}", files = <20>, size = "512 KiB", rate = "<8>/s", fsync = true } }] } }] }
"#,
    },
];
