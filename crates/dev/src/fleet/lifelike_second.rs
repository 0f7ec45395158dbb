// SPDX-License-Identifier: MIT OR Apache-2.0
//! A second list of hosts shaped like those that people run: spools, databases on two disks, brokers, quorums beside image
//! pulls, backup windows, images on loop devices, home directories, limits of a parent. They were written down and
//! committed before any was scored. The position of a host decides how its recording differs from one of a guest: hosts
//! whose recording has samples of 5 s run for 60 s.

use super::lifelike::Lifelike;

/// The list. Recordings of neighbours in it have different shapes.
pub(super) const LIFELIKE_SECOND: &[Lifelike] = &[
    // A mail spool with an archive of the night, and a limit in bytes.
    Lifelike {
        name: "spool-beside-archive",
        kernel: "6.1.192",
        change: &["vm.dirty_bytes=50331648", "vm.dirty_background_bytes=12582912"],
        really: r#"machine.sysctl.vm = { dirty_bytes = "48 MiB", dirty_background_bytes = "12 MiB" }
unset = ["machine.sysctl.vm.dirty_ratio", "machine.sysctl.vm.dirty_background_ratio"]"#,
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.data = { profile = "hdd-7200" }
machine.mounts."/var" = { type = "ext4", device = "data" }
machine.cgroups."system.slice/unit{i}" = { instances = 18 }
machine.cgroups."system.slice/dovecot" = {}
workload.seed = 201
workload.duration = "60s"
workload.tasks.unit = { cgroup = "system.slice/unit{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.smtp = { instances = 2, preset.mail = { dir = "/var/queue{j}", messages = "1/s", message = "12 KiB" } }
workload.tasks.index = { cgroup = "system.slice/dovecot", steps = [{ repeat = { every = "3s", steps = [{ write = { file = "/var/mail/index", order = "append", count = 3 } }, { fdatasync = { file = "/var/mail/index" } }] } }] }
workload.tasks.archive = { start = "12s", steps = [{ write = { file = "/var/archive.tar", block = "128 KiB", total = "900 MiB", rate = "40 MB/s" } }, "exit"] }
"#,
    },
    // A log that syncs each commit on a disk of its own, and checkpoints that sync what the flusher left.
    Lifelike {
        name: "checkpoints-on-a-second-disk",
        kernel: "6.12.117",
        change: &["vm.dirty_background_bytes=33554432"],
        really: r#"machine.sysctl.vm.dirty_background_bytes = "32 MiB"
unset = ["machine.sysctl.vm.dirty_background_ratio"]"#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_ratio = 30, dirty_background_ratio = 15 }
machine.devices.base = { size = "60 GiB", write_bandwidth = "70 MB/s", read_bandwidth = "120 MB/s" }
machine.devices.wal = { profile = "nvme-boot" }
machine.mounts."/base" = { type = "xfs", device = "base" }
machine.mounts."/wal" = { type = "ext4", device = "wal" }
machine.cgroups."system.slice/postgresql" = { memory_max = "6 GiB" }
workload.seed = 202
workload.duration = "80s"
workload.tasks.backend = { cgroup = "system.slice/postgresql", instances = 3, steps = [{ write = { file = "/wal/segment{j}", order = "append", block = "8 KiB", rate = "25/s", sync = { call = "fdatasync", after = 1 } } }] }
workload.tasks.checkpointer = { cgroup = "system.slice/postgresql", steps = [{ repeat = { every = "26s", steps = [{ write = { file = "/base/heap", order = "random", block = "8 KiB", size = "768 MiB", rate = "22 MB/s", for = "20s" } }, { fsync = { file = "/base/heap" } }] } }] }
"#,
    },
    // Brokers append to segments, store into mapped indexes, and roll.
    Lifelike {
        name: "brokers-roll-segments",
        kernel: "6.1.192",
        change: &["kernel=6.12.117"],
        really: "",
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 5 }
machine.devices.data = { size = "80 GiB", write_bandwidth = "110 MB/s", read_bandwidth = "110 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."broker{i}" = { instances = 4, memory_max = "512 MiB" }
workload.seed = 203
workload.duration = "60s"
workload.settle = "6s"
workload.tasks.segment = { cgroup = "broker{i}", stagger = "2s", steps = [{ repeat = { every = "14s", steps = [{ write = { file = "/data/broker{i}/segment", block = "64 KiB", total = "96 MiB", rate = "8 MB/s", truncate = true } }, { fsync = { file = "/data/broker{i}/segment" } }] } }] }
workload.tasks.index = { cgroup = "broker{i}", setup = [{ write = { file = "/data/broker{i}/index", block = "1 MiB", total = "10 MiB" } }, { fsync = { file = "/data/broker{i}/index" } }], steps = [{ mmap_store = { file = "/data/broker{i}/index", size = "10 MiB", pages = 1, order = "sequential", rate = "20/s" } }] }
"#,
    },
    // Pages go to the doublewrite file first; a dump beside the database gets a small limit.
    Lifelike {
        name: "dump-beside-doublewrite-gets-a-limit",
        kernel: "6.12.117",
        change: &["cgroup/dump/memory.max=100663296"],
        really: r#"machine.cgroups.dump.memory_max = "96 MiB""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.data = { size = "60 GiB", write_bandwidth = "55 MB/s", read_bandwidth = "110 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.mariadb = { memory_max = "3 GiB" }
machine.cgroups.dump = { memory_max = "3 GiB" }
workload.seed = 204
workload.duration = "70s"
workload.tasks.redo = { cgroup = "mariadb", steps = [{ write = { file = "/data/redo", size = "48 MiB", block = "4 KiB", rate = "15/s", sync = { call = "fdatasync", after = 1 } } }] }
workload.tasks.cleaner = { cgroup = "mariadb", steps = [{ repeat = { every = "1s", steps = [{ write = { file = "/data/doublewrite", size = "2 MiB", block = "128 KiB", count = 8 } }, { fdatasync = { file = "/data/doublewrite" } }, { write = { file = "/data/tables", order = "random", size = "600 MiB", block = "16 KiB", count = 64 } }, { fdatasync = { file = "/data/tables" } }] } }] }
workload.tasks.dump = { cgroup = "dump", start = "10s", steps = [{ repeat = { every = "20s", steps = [{ write = { file = "/data/dump", order = "append", block = "256 KiB", total = "300 MiB", rate = "90 MB/s" } }] } }] }
"#,
    },
    // A head in mapped chunks, a log in segments of pages, blocks that are compacted and synced.
    Lifelike {
        name: "blocks-age-sooner",
        kernel: "6.12.117",
        change: &["vm.dirty_expire_centisecs=500"],
        really: r#"machine.sysctl.vm.dirty_expire_centisecs = 500"#,
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 10, dirty_expire_centisecs = 3000 }
machine.devices.data = { profile = "sata-ssd" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."monitoring/prometheus" = { memory_max = "2 GiB" }
machine.cgroups."monitoring/exporter{i}" = { instances = 12, memory_max = "64 MiB" }
workload.seed = 205
workload.duration = "60s"
workload.settle = "6s"
workload.tasks.exporter = { cgroup = "monitoring/exporter{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.wal = { cgroup = "monitoring/prometheus", steps = [{ write = { file = "/data/wal", order = "append", block = "32 KiB", rate = "1500 kB/s" } }] }
workload.tasks.head = { cgroup = "monitoring/prometheus", setup = [{ write = { file = "/data/head", block = "1 MiB", total = "48 MiB" } }, { fsync = { file = "/data/head" } }], steps = [{ mmap_store = { file = "/data/head", size = "48 MiB", pages = 24, rate = "6/s" } }] }
workload.tasks.compact = { cgroup = "monitoring/prometheus", start = "20s", steps = [{ write = { file = "/data/block", block = "512 KiB", total = "220 MiB" } }, { fsync = { file = "/data/block" } }, "exit"] }
"#,
    },
    // Small commits of a quorum on one volume, images pulled to another. The second volume gets a small share.
    Lifelike {
        name: "pulls-get-a-share-beside-quorum",
        kernel: "6.12.117",
        change: &["bdi/254:16/max_ratio=2"],
        really: r#"machine.devices.images.bdi = { max_ratio = 2 }"#,
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 4
machine.devices.etcd = { profile = "network-general" }
machine.devices.images = { profile = "network-small" }
machine.mounts."/etcd" = { type = "ext4", device = "etcd" }
machine.mounts."/images" = { type = "xfs", device = "images" }
machine.cgroups."kubepods/etcd" = { memory_max = "1 GiB" }
machine.cgroups."kubepods/pause{i}" = { instances = 45, memory_max = "64 MiB" }
workload.seed = 206
workload.duration = "60s"
workload.tasks.pause = { cgroup = "kubepods/pause{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.etcd = { cgroup = "kubepods/etcd", steps = [{ write = { file = "/etcd/wal", order = "append", block = "4 KiB", rate = "40/s", sync = { call = "fdatasync", after = 1 } } }] }
workload.tasks.pull = { start = "6s", steps = [{ repeat = { every = "18s", steps = [{ write = { file = "/images/layer.gz", block = "64 KiB", total = "110 MiB", rate = "70 MB/s", truncate = true } }, { create_files = { file = "/images/fs/{d}/{n}", files = 1800, files_per_dir = 60, size = "40 KiB" } }] } }] }
"#,
    },
    // Lines of many containers, copied by a shipper that remembers its place. Version 1 of cgroups stays.
    Lifelike {
        name: "shippers-get-more-room",
        kernel: "6.1.192",
        change: &["vm.dirty_ratio=40", "vm.dirty_background_ratio=25"],
        really: r#"machine.sysctl.vm = { dirty_ratio = 40, dirty_background_ratio = 25 }
unset = ["machine.sysctl.vm.dirty_bytes", "machine.sysctl.vm.dirty_background_bytes"]"#,
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.sysctl.vm = { dirty_bytes = "40 MiB", dirty_background_bytes = "10 MiB" }
machine.devices.data = { size = "40 GiB", write_bandwidth = "22 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."docker/c{i}" = { instances = 24, memory_max = "256 MiB" }
workload.seed = 207
workload.duration = "75s"
workload.tasks.app = { cgroup = "docker/c{i}", preset.logger = { file = "/data/c{i}.log", lines = "500/s", line = "220 B" } }
workload.tasks.ship = { steps = [{ repeat = { every = "2s", steps = [{ write = { file = "/data/spool", order = "append", block = "64 KiB", total = "24 MiB" } }, { write = { file = "/data/places", count = 1, truncate = true } }, { fsync = { file = "/data/places" } }] } }] }
"#,
    },
    // The window of a backup on a host of 5.10 with version 1.
    Lifelike {
        name: "backup-window-to-v2",
        kernel: "5.10.223",
        change: &["cgroup=v2"],
        really: r#"machine.cgroup_mode = "v2""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.data = { size = "80 GiB", write_bandwidth = "65 MB/s", read_bandwidth = "130 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.backup = { memory_max = "320 MiB" }
machine.cgroups.ledger = { memory_max = "1 GiB" }
machine.cgroups."web{i}" = { instances = 9, memory_max = "384 MiB" }
workload.seed = 208
workload.duration = "60s"
workload.tasks.web = { cgroup = "web{i}", stagger = "700ms", steps = [{ repeat = { every = "7s", steps = [{ write = { file = "/data/web{i}.log", order = "append", count = 6 } }] } }] }
workload.tasks.ledger = { cgroup = "ledger", steps = [{ repeat = { every = "400ms", steps = [{ write = { file = "/data/ledger", order = "append", count = 2 } }, { fdatasync = { file = "/data/ledger" } }] } }] }
workload.tasks.backup = { cgroup = "backup", start = "15s", steps = [{ write = { file = "/data/backup", block = "256 KiB", total = "1200 MiB", rate = "55 MB/s" } }, "exit"] }
"#,
    },
    // Two guests on images of one disk.
    Lifelike {
        name: "guests-on-images-smaller-ratios",
        kernel: "6.12.117",
        change: &["vm.dirty_ratio=4", "vm.dirty_background_ratio=1"],
        really: r#"machine.sysctl.vm = { dirty_ratio = 4, dirty_background_ratio = 1 }"#,
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 4
machine.devices.disk = { size = "80 GiB", write_bandwidth = "75 MB/s", read_bandwidth = "75 MB/s" }
machine.devices.image0 = { size = "8 GiB", backing = { loop = { file = "/pool/image0" } } }
machine.devices.image1 = { size = "8 GiB", backing = { loop = { file = "/pool/image1" } } }
machine.mounts."/pool" = { type = "xfs", device = "disk" }
machine.mounts."/one" = { type = "ext4", device = "image0" }
machine.mounts."/two" = { type = "ext4", device = "image1" }
workload.seed = 209
workload.duration = "60s"
workload.tasks.upgrade = { steps = [{ repeat = { every = "22s", steps = [{ create_files = { file = "/one/usr/{d}/{n}", files = 2000, files_per_dir = 100, size = "60 KiB", rate = "350/s" } }] } }] }
workload.tasks.queue = { steps = [{ repeat = { every = "900ms", steps = [{ write = { file = "/two/queue", order = "append", count = 2 } }, { fdatasync = { file = "/two/queue" } }] } }] }
"#,
    },
    // Home directories: many small files, browsers that sync, one download. Another filesystem.
    Lifelike {
        name: "homes-move-to-xfs",
        kernel: "6.12.117",
        change: &["mount/home/type=xfs"],
        really: r#"machine.mounts."/home".type = "xfs""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 10, dirty_expire_centisecs = 1500 }
machine.devices.data = { profile = "hdd-10000" }
machine.mounts."/home" = { type = "ext4", device = "data" }
machine.cgroups."user.slice/user{i}" = { instances = 8, memory_max = "1 GiB" }
workload.seed = 210
workload.duration = "60s"
workload.tasks.sync = { cgroup = "user.slice/user{i}", stagger = "900ms", steps = [{ repeat = { every = "12s", steps = [{ create_files = { file = "/home/u{i}/cache/{d}/{n}", files = 90, files_per_dir = 30, size = "14 KiB", rate = "45/s" } }, { unlink = { file = "/home/u{i}/cache/{d}/{n}", files = 90, files_per_dir = 30 } }] } }] }
workload.tasks.browser = { cgroup = "user.slice/user{i}", stagger = "1300ms", steps = [{ repeat = { every = "9s", steps = [{ write = { file = "/home/u{i}/places", order = "append", count = 2 } }, { fsync = { file = "/home/u{i}/places" } }] } }] }
workload.tasks.download = { cgroup = "user.slice/user3", start = "18s", steps = [{ write = { file = "/home/iso", block = "64 KiB", total = "300 MiB", rate = "11 MB/s" } }, "exit"] }
"#,
    },
    // The limit of a parent, above children with larger limits.
    Lifelike {
        name: "tenants-share-a-smaller-limit",
        kernel: "7.2.13",
        change: &["cgroup/tenants/memory.max=268435456"],
        really: r#"machine.cgroups.tenants.memory_max = "256 MiB""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.data = { size = "60 GiB", write_bandwidth = "45 MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.tenants = { memory_max = "4 GiB" }
machine.cgroups."tenants/t{i}" = { instances = 6, memory_max = "1 GiB" }
workload.seed = 211
workload.duration = "65s"
workload.tasks.report = { cgroup = "tenants/t{i}", stagger = "2s", steps = [{ repeat = { every = "13s", steps = [{ write = { file = "/data/t{i}/report", block = "128 KiB", total = "48 MiB", rate = "70 MB/s", truncate = true } }] } }] }
workload.tasks.session = { cgroup = "tenants/t{i}", steps = [{ repeat = { every = "3s", steps = [{ write = { file = "/data/t{i}/session", order = "append", count = 1 } }, { fsync = { file = "/data/t{i}/session" } }] } }] }
"#,
    },
    // A disk, an SSD and a volume under one limit.
    Lifelike {
        name: "three-speeds-one-limit",
        kernel: "6.12.117",
        change: &["vm.dirty_ratio=3", "vm.dirty_background_ratio=1"],
        really: r#"machine.sysctl.vm = { dirty_ratio = 3, dirty_background_ratio = 1 }"#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.archive = { profile = "hdd-5400" }
machine.devices.root = { profile = "sata-ssd" }
machine.devices.volume = { profile = "network-small" }
machine.mounts."/archive" = { type = "xfs", device = "archive" }
machine.mounts."/system" = { type = "ext4", device = "root" }
machine.mounts."/volume" = { type = "xfs", device = "volume" }
workload.seed = 212
workload.duration = "60s"
workload.tasks.camera = { instances = 3, steps = [{ write = { file = "/archive/camera{j}", order = "append", block = "64 KiB", rate = "6 MB/s" } }] }
workload.tasks.render = { steps = [{ repeat = { every = "17s", steps = [{ write = { file = "/volume/render", block = "512 KiB", total = "350 MiB", truncate = true } }] } }] }
workload.tasks.state = { steps = [{ write = { file = "/system/state", order = "append", block = "16 KiB", rate = "12/s", sync = { call = "fdatasync", after = 3 } } }] }
"#,
    },
    // Containers that start, write, end and are removed, on a kernel two releases later.
    Lifelike {
        name: "short-containers-new-kernel",
        kernel: "5.10.223",
        change: &["kernel=7.2.13"],
        really: "",
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_ratio = 15, dirty_background_ratio = 5 }
machine.devices.data = { size = "40 GiB", write_bandwidth = "35 MB/s", read_bandwidth = "70 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."short{i}" = { instances = 26, memory_max = "128 MiB", remove_after = "3s" }
machine.cgroups."long{i}" = { instances = 20, memory_max = "128 MiB" }
workload.seed = 213
workload.duration = "65s"
workload.tasks.wait = { cgroup = "long{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.task = { cgroup = "short{i}", stagger = "2200ms", steps = [{ create_files = { file = "/data/short{i}/{d}/{n}", files = 120, files_per_dir = 40, size = "20 KiB" } }, { write = { file = "/data/short{i}/result", block = "128 KiB", total = "38 MiB" } }, { sleep = { for = "2s" } }, "exit"] }
workload.tasks.runtime = { steps = [{ repeat = { every = "1100ms", steps = [{ write = { file = "/data/runtime.db", order = "append", count = 2 } }, { fsync = { file = "/data/runtime.db" } }] } }] }
"#,
    },
    // Databases with mapped stores that leave version 1.
    Lifelike {
        name: "mapped-databases-to-v2",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        really: r#"machine.cgroup_mode = "v2""#,
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.sysctl.vm = { dirty_bytes = "192 MiB", dirty_background_bytes = "96 MiB" }
machine.devices.data = { size = "60 GiB", write_bandwidth = "140 MB/s", read_bandwidth = "140 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."ldap{i}" = { instances = 4, memory_max = "256 MiB" }
machine.cgroups."front{i}" = { instances = 14, memory_max = "128 MiB" }
workload.seed = 214
workload.duration = "70s"
workload.settle = "6s"
workload.tasks.front = { cgroup = "front{i}", stagger = "500ms", steps = [{ repeat = { every = "11s", steps = [{ write = { file = "/data/front{i}.log", order = "append", count = 3 } }] } }] }
workload.tasks.ldap = { cgroup = "ldap{i}", setup = [{ write = { file = "/data/ldap{i}", block = "1 MiB", total = "24 MiB" } }, { fsync = { file = "/data/ldap{i}" } }], steps = [{ mmap_store = { file = "/data/ldap{i}", size = "24 MiB", pages = 10, rate = "15/s", sync = { call = "msync", every = "12s" } } }] }
"#,
    },
    // Runners of a build farm that get version 2 and a kernel of today together.
    Lifelike {
        name: "farm-to-v2-and-new-kernel",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.12.117"],
        really: r#"machine.cgroup_mode = "v2""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.data = { size = "80 GiB", write_bandwidth = "90 MB/s", read_bandwidth = "180 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."farm/runner{i}" = { instances = 5, memory_max = "384 MiB" }
workload.seed = 215
workload.duration = "60s"
workload.tasks.job = { cgroup = "farm/runner{i}", stagger = "4s", steps = [{ repeat = { every = "24s", steps = [{ create_files = { file = "/data/r{i}/{d}/{n}", files = 1400, files_per_dir = 70, size = "32 KiB", rate = "300/s" } }, { burn = { for = "2s" } }, { write = { file = "/data/r{i}.image", block = "256 KiB", total = "130 MiB", truncate = true } }, { fsync = { file = "/data/r{i}.image" } }, { unlink = { file = "/data/r{i}/{d}/{n}", files = 1400, files_per_dir = 70 } }] } }] }
workload.tasks.agent = { steps = [{ repeat = { every = "2s", steps = [{ write = { file = "/data/agent", order = "append", count = 1 } }] } }] }
"#,
    },
    // Stages of a warehouse, with four times the memory.
    Lifelike {
        name: "warehouse-gets-memory",
        kernel: "6.12.117",
        change: &["memory=16G"],
        really: r#"machine.memory = "16 GiB""#,
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_ratio = 10, dirty_background_ratio = 5 }
machine.devices.data = { profile = "network-general" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.stage = {}
machine.cgroups."worker{i}" = { instances = 16, memory_max = "512 MiB" }
workload.seed = 216
workload.duration = "75s"
workload.tasks.worker = { cgroup = "worker{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.stage = { cgroup = "stage", steps = [{ repeat = { every = "24s", steps = [{ write = { file = "/data/one", block = "1 MiB", total = "640 MiB", truncate = true } }, { read = { file = "/data/one", block = "1 MiB" } }, { write = { file = "/data/two", block = "1 MiB", total = "320 MiB", truncate = true } }] } }] }
workload.tasks.catalogue = { steps = [{ repeat = { every = "700ms", steps = [{ write = { file = "/data/catalogue", order = "append", count = 1 } }, { fdatasync = { file = "/data/catalogue" } }] } }] }
"#,
    },
];
