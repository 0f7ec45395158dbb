// SPDX-License-Identifier: MIT OR Apache-2.0
//! A third group of kinds, of shapes that neither [`super::kinds`] nor [`super::unseen`] has: archives, random pages of a
//! store, limits of a parent, heaps, two disks. They were written down and committed before any was scored. `<N>` in a
//! scenario is a number that differs from host to host; `<seed>` is the host's own.

use super::unseen::Unseen;

/// Every kind of the group.
pub(super) const THIRD: &[Unseen] = &[
    // The move to version 2.
    Unseen {
        name: "third-archives-unpacked",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.devices.data = { size = "8 GiB", write_bandwidth = "<60> MB/s", read_bandwidth = "<60> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."build{i}" = { instances = 3, memory_max = "192 MiB" }
workload.seed = <seed>
workload.duration = "40s"
workload.tasks.unpack = { cgroup = "build{i}", stagger = "3s", steps = [{ repeat = { every = "12s", steps = [{ create_files = { file = "/data/b{i}/{d}/{n}", files = <900>, files_per_dir = 100, size = "48 KiB" } }, { unlink = { file = "/data/b{i}/{d}/{n}", files = <900>, files_per_dir = 100 } }] } }] }
"#,
    },
    Unseen {
        name: "third-stages-in-a-box",
        kernel: "6.1.192",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.devices.data = { size = "8 GiB", write_bandwidth = "<80> MB/s", read_bandwidth = "<80> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.job = { memory_max = "512 MiB" }
workload.seed = <seed>
workload.duration = "40s"
workload.tasks.pipeline = { cgroup = "job", steps = [{ repeat = { every = "15s", steps = [{ write = { file = "/data/one", block = "1 MiB", total = "<120> MiB", truncate = true } }, { read = { file = "/data/one", block = "1 MiB" } }, { burn = { for = "1s" } }, { write = { file = "/data/two", block = "1 MiB", total = "<90> MiB", truncate = true } }] } }] }
"#,
    },
    Unseen {
        name: "third-random-pages-of-a-store",
        kernel: "6.12.117",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.sysctl.vm = { dirty_bytes = "400 MiB", dirty_background_bytes = "200 MiB" }
machine.devices.data = { size = "8 GiB", write_bandwidth = "<90> MB/s", read_bandwidth = "<90> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."store{i}" = { instances = 3, memory_max = "160 MiB" }
workload.seed = <seed>
workload.duration = "40s"
workload.tasks.store = { cgroup = "store{i}", steps = [{ write = { file = "/data/store{i}", order = "random", size = "96 MiB", block = "4 KiB", rate = "<3> MB/s" } }] }
"#,
    },
    Unseen {
        name: "third-mapped-beside-bulk",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.sysctl.vm = { dirty_bytes = "100 MiB", dirty_background_bytes = "50 MiB" }
machine.devices.data = { size = "8 GiB", write_bandwidth = "<100> MB/s", read_bandwidth = "<100> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."map{i}" = { instances = 3, memory_max = "128 MiB" }
workload.seed = <seed>
workload.duration = "30s"
workload.settle = "6s"
workload.tasks.map = { cgroup = "map{i}", setup = [{ write = { file = "/data/map{i}", block = "1 MiB", total = "4 MiB" } }, { fsync = { file = "/data/map{i}" } }], steps = [{ mmap_store = { file = "/data/map{i}", size = "4 MiB", pages = <12>, rate = "<8>/s" } }] }
workload.tasks.bulk = { steps = [{ write = { file = "/data/bulk", block = "64 KiB", rate = "<30> MB/s" } }] }
"#,
    },
    Unseen {
        name: "third-copies-that-sync",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.devices.data = { size = "8 GiB", write_bandwidth = "<30> MB/s", read_bandwidth = "<30> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."copy{i}" = { instances = 2, memory_max = "96 MiB" }
workload.seed = <seed>
workload.duration = "40s"
workload.tasks.copy = { cgroup = "copy{i}", stagger = "4s", steps = [{ repeat = { every = "10s", steps = [{ write = { file = "/data/copy{i}", block = "128 KiB", total = "<50> MiB", truncate = true } }, { fsync = { file = "/data/copy{i}" } }] } }] }
"#,
    },
    Unseen {
        name: "third-parents-limit-children",
        kernel: "6.12.117",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.devices.data = { size = "8 GiB", write_bandwidth = "<50> MB/s", read_bandwidth = "<50> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.pods = { memory_max = "256 MiB" }
machine.cgroups."pods/child{i}" = { instances = 4 }
workload.seed = <seed>
workload.duration = "40s"
workload.tasks.upload = { cgroup = "pods/child{i}", stagger = "2s", steps = [{ repeat = { every = "8s", steps = [{ write = { file = "/data/child{i}", block = "128 KiB", total = "<30> MiB", rate = "120 MB/s", truncate = true } }] } }] }
"#,
    },
    Unseen {
        name: "third-heaps-leave-little",
        kernel: "6.12.117",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.devices.data = { size = "8 GiB", write_bandwidth = "<60> MB/s", read_bandwidth = "<60> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."java{i}" = { instances = 3, memory_max = "320 MiB" }
workload.seed = <seed>
workload.duration = "40s"
workload.tasks.java = { cgroup = "java{i}", stagger = "3s", setup = [{ anon = { size = "<220> MiB" } }], steps = [{ repeat = { every = "9s", steps = [{ write = { file = "/data/dump{i}", block = "128 KiB", total = "<24> MiB", rate = "80 MB/s", truncate = true } }] } }] }
"#,
    },
    Unseen {
        name: "third-early-writeback-by-range",
        kernel: "6.1.192",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.devices.data = { size = "8 GiB", write_bandwidth = "<80> MB/s", read_bandwidth = "<80> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.ingest = { memory_max = "160 MiB" }
workload.seed = <seed>
workload.duration = "40s"
workload.tasks.ingest = { cgroup = "ingest", steps = [{ write = { file = "/data/ingest", block = "256 KiB", rate = "<40> MB/s", sync = { call = "sync_file_range", every = "500ms" } } }] }
"#,
    },
    Unseen {
        name: "third-forty-quiet-boxes",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.devices.data = { size = "8 GiB", write_bandwidth = "<200> MB/s", read_bandwidth = "<200> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."quiet{i}" = { instances = 40, memory_max = "256 MiB" }
workload.seed = <seed>
workload.duration = "30s"
workload.tasks.quiet = { cgroup = "quiet{i}", preset.logger = { file = "/data/quiet{i}.log", lines = "<20>/s" } }
"#,
    },
    Unseen {
        name: "third-readers-beside-a-writer",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.devices.data = { size = "8 GiB", write_bandwidth = "<120> MB/s", read_bandwidth = "<120> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.search = { memory_max = "256 MiB" }
machine.cgroups.index = { memory_max = "384 MiB" }
workload.seed = <seed>
workload.duration = "40s"
workload.tasks.search = { cgroup = "search", setup = [{ write = { file = "/data/segments", block = "1 MiB", total = "200 MiB" } }, { fsync = { file = "/data/segments" } }], steps = [{ read = { file = "/data/segments", order = "random", block = "16 KiB", rate = "<200>/s" } }] }
workload.tasks.index = { cgroup = "index", steps = [{ write = { file = "/data/index", block = "64 KiB", rate = "<12> MB/s" } }] }
"#,
    },
    // Other settings.
    Unseen {
        name: "third-durable-writes-beside-bulk",
        kernel: "6.12.117",
        change: &["vm.dirty_ratio=60", "vm.dirty_background_ratio=40"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_bytes = "100 MiB", dirty_background_bytes = "50 MiB" }
machine.devices.data = { size = "8 GiB", write_bandwidth = "<60> MB/s", read_bandwidth = "<60> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
workload.seed = <seed>
workload.duration = "40s"
workload.tasks.bulk = { steps = [{ write = { file = "/data/bulk", block = "128 KiB", rate = "<45> MB/s" } }] }
workload.tasks.ledger = { steps = [{ write = { file = "/data/ledger", order = "append", block = "4 KiB", dsync = true, rate = "<20>/s" } }] }
"#,
    },
    Unseen {
        name: "third-bursts-to-two-percent",
        kernel: "6.1.192",
        change: &["vm.dirty_ratio=2", "vm.dirty_background_ratio=1"],
        scenario: r#"
machine.memory = "2 GiB"
machine.cpus = 2
machine.devices.data = { size = "8 GiB", write_bandwidth = "<50> MB/s", read_bandwidth = "<50> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
workload.seed = <seed>
workload.duration = "40s"
workload.tasks.burst = { steps = [{ repeat = { every = "10s", steps = [{ write = { file = "/data/burst", block = "256 KiB", total = "<100> MiB", rate = "150 MB/s", truncate = true } }] } }] }
workload.tasks.app = { steps = [{ repeat = { every = "500ms", steps = [{ write = { file = "/data/app", order = "append", count = 1 } }, { fdatasync = { file = "/data/app" } }] } }] }
"#,
    },
    Unseen {
        name: "third-scratch-ages-sooner",
        kernel: "6.12.117",
        change: &["vm.dirty_expire_centisecs=200", "vm.dirty_writeback_centisecs=100"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.data = { size = "8 GiB", write_bandwidth = "<80> MB/s", read_bandwidth = "<80> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.scratch = { memory_max = "1 GiB" }
workload.seed = <seed>
workload.duration = "60s"
workload.tasks.scratch = { cgroup = "scratch", steps = [{ write = { file = "/data/scratch", order = "random", size = "64 MiB", block = "4 KiB", rate = "<8> MB/s" } }] }
workload.tasks.app = { steps = [{ repeat = { every = "500ms", steps = [{ write = { file = "/data/app", order = "append", count = 1 } }, { fdatasync = { file = "/data/app" } }] } }] }
"#,
    },
    Unseen {
        name: "third-two-disks-to-large",
        kernel: "6.1.192",
        change: &["vm.dirty_ratio=50", "vm.dirty_background_ratio=30"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_bytes = "100 MiB", dirty_background_bytes = "50 MiB" }
machine.devices.fast = { size = "8 GiB", write_bandwidth = "<300> MB/s", read_bandwidth = "<300> MB/s" }
machine.devices.slow = { size = "8 GiB", write_bandwidth = "<20> MB/s", read_bandwidth = "<20> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "fast" }
machine.mounts."/backup" = { type = "ext4", device = "slow" }
workload.seed = <seed>
workload.duration = "40s"
workload.tasks.backup = { steps = [{ write = { file = "/backup/tar", block = "128 KiB" } }] }
workload.tasks.app = { steps = [{ repeat = { every = "500ms", steps = [{ write = { file = "/data/app", order = "append", count = 1 } }, { fdatasync = { file = "/data/app" } }] } }] }
"#,
    },
    Unseen {
        name: "third-random-pages-to-tiny",
        kernel: "6.12.117",
        change: &["vm.dirty_bytes=16777216", "vm.dirty_background_bytes=8388608"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.data = { size = "8 GiB", write_bandwidth = "<100> MB/s", read_bandwidth = "<100> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."store{i}" = { instances = 3, memory_max = "1 GiB" }
workload.seed = <seed>
workload.duration = "30s"
workload.settle = "6s"
workload.tasks.store = { cgroup = "store{i}", setup = [{ write = { file = "/data/store{i}", block = "1 MiB", total = "12 MiB" } }, { fsync = { file = "/data/store{i}" } }], steps = [{ mmap_store = { file = "/data/store{i}", size = "12 MiB", pages = <15>, rate = "<10>/s" } }] }
"#,
    },
    // Another kernel.
    Unseen {
        name: "third-mapped-on-ext4-to-folios",
        kernel: "6.1.192",
        change: &["cgroup=v2", "kernel=7.2.13"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.sysctl.vm = { dirty_bytes = "100 MiB", dirty_background_bytes = "50 MiB" }
machine.devices.data = { size = "8 GiB", write_bandwidth = "<100> MB/s", read_bandwidth = "<100> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."map{i}" = { instances = 5, memory_max = "96 MiB" }
workload.seed = <seed>
workload.duration = "30s"
workload.settle = "6s"
workload.tasks.map = { cgroup = "map{i}", setup = [{ write = { file = "/data/map{i}", block = "1 MiB", total = "5 MiB" } }, { fsync = { file = "/data/map{i}" } }], steps = [{ mmap_store = { file = "/data/map{i}", size = "5 MiB", pages = <10>, rate = "<9>/s" } }] }
"#,
    },
    Unseen {
        name: "third-mapped-and-synced",
        kernel: "5.10.223",
        change: &["kernel=6.12.117"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_bytes = "100 MiB", dirty_background_bytes = "50 MiB" }
machine.devices.data = { size = "8 GiB", write_bandwidth = "<70> MB/s", read_bandwidth = "<70> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."map{i}" = { instances = 4, memory_max = "160 MiB" }
workload.seed = <seed>
workload.duration = "30s"
workload.settle = "6s"
workload.tasks.map = { cgroup = "map{i}", setup = [{ write = { file = "/data/map{i}", block = "1 MiB", total = "4 MiB" } }, { fsync = { file = "/data/map{i}" } }], steps = [{ mmap_store = { file = "/data/map{i}", size = "4 MiB", pages = <12>, rate = "<8>/s", sync = { call = "msync", every = "3s" } } }] }
"#,
    },
    // Back to version 1.
    Unseen {
        name: "third-appenders-lose-their-limit",
        kernel: "6.12.117",
        change: &["cgroup=v1"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.data = { size = "8 GiB", write_bandwidth = "<60> MB/s", read_bandwidth = "<60> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."ship{i}" = { instances = 3, memory_max = "128 MiB" }
workload.seed = <seed>
workload.duration = "40s"
workload.tasks.ship = { cgroup = "ship{i}", steps = [{ write = { file = "/data/ship{i}", order = "append", block = "64 KiB", rate = "<18> MB/s" } }] }
workload.tasks.app = { steps = [{ repeat = { every = "500ms", steps = [{ write = { file = "/data/app", order = "append", count = 1 } }, { fdatasync = { file = "/data/app" } }] } }] }
"#,
    },
];
