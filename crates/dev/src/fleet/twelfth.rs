// SPDX-License-Identifier: MIT OR Apache-2.0
//! A twelfth group of kinds, as a platform team meets them in moves: image pulls and unpacked trees that get version 2 or a newer
//! release, mapped tables on a kernel with larger folios, thresholds of a guide that are taken back before containers end, a
//! guest with less memory beside a heap, a volume of fewer reads, tenants that get limits, and an image that goes through the
//! page cache. The comment of each kind states the result that arithmetic expects. All kinds were committed before any was
//! scored.

use super::unseen::Unseen;

/// Every kind of the group.
pub(super) const TWELFTH: &[Unseen] = &[
    // Suffer.
    Unseen {
        // 20 % and 10 % of 320 MiB: paused from 48 MiB on. A runtime pulls 200 MiB at 66 MB/s every 21 s. It is paused for what the
        // disk has not written by then: 100 MiB, 3 s each time. Pods log to another disk.
        name: "twelfth-image-pulls-to-v2",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "40 GiB", write_bandwidth = "<30> MB/s", read_bandwidth = "90 MB/s" }
machine.devices.vdb = { size = "16 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/images" = { type = "xfs", device = "vda" }
machine.mounts."/log" = { type = "ext4", device = "vdb" }
machine.cgroups.runtime = { memory_max = "320 MiB" }
machine.cgroups."pod{i}" = { instances = 6, memory_max = "128 MiB" }
workload.seed = <seed>
workload.duration = "58s"
workload.tasks.pull = { cgroup = "runtime", steps = [{ repeat = { every = "21s", steps = [{ create_files = { file = "/images/layer/{d}/{n}", files = <200>, files_per_dir = 50, size = "1 MiB", rate = "63/s" } }] } }] }
workload.tasks.pod = { cgroup = "pod{i}", stagger = "300ms", preset.logger = { file = "/log/pod{i}", lines = "<12>/s" } }
"#,
    },
    Unseen {
        // 20 % and 10 % of 192 MiB: paused from 29 MiB on. A restore unpacks 120 MiB of small files every 24 s: 70 MiB and more
        // wait for the disk, 3 s each time.
        name: "twelfth-unpacked-trees-by-a-release",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "40 GiB", write_bandwidth = "<24> MB/s", read_bandwidth = "80 MB/s" }
machine.mounts."/srv" = { type = "ext4", device = "vda", options = ["noatime"] }
machine.cgroups.restore = { memory_max = "192 MiB" }
machine.cgroups.web = { memory_max = "512 MiB" }
workload.seed = <seed>
workload.duration = "60s"
workload.tasks.restore = { cgroup = "restore", steps = [{ repeat = { every = "24s", steps = [{ create_files = { file = "/srv/tree/{d}/{n}", files = <1200>, files_per_dir = 100, size = "100 KiB", rate = "600/s" } }] } }] }
workload.tasks.web = { cgroup = "web", preset.logger = { file = "/srv/access", lines = "<40>/s" } }
"#,
    },
    Unseen {
        // Five tables of 16 MiB are mapped and stored into at random, sixty pages a second each, on ext4. The newer kernel keeps
        // them in large folios, and a store dirties all of a folio: at an age of 2 s the tables go out whole again and again.
        name: "twelfth-mapped-tables-on-ext4-next-kernel",
        kernel: "6.12.117",
        change: &["kernel=7.2.13"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 10, dirty_expire_centisecs = 200, dirty_writeback_centisecs = 100 }
machine.devices.data = { size = "40 GiB", write_bandwidth = "<45> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."store{i}" = { instances = 5, memory_max = "512 MiB" }
workload.seed = <seed>
workload.duration = "50s"
workload.tasks.store = { cgroup = "store{i}", stagger = "60ms", setup = [{ write = { file = "/data/table{i}", block = "1 MiB", total = "16 MiB" } }, { fsync = { file = "/data/table{i}" } }], steps = [{ mmap_store = { file = "/data/table{i}", size = "16 MiB", pages = <12>, rate = "5/s" } }] }
workload.tasks.commit = { steps = [{ repeat = { every = "800ms", steps = [{ write = { file = "/data/commits", order = "append", count = 2 } }, { fdatasync = { file = "/data/commits" } }] } }] }
"#,
    },
    Unseen {
        // A guide's 64 MiB and 16 MiB are taken back. A job writes 84 MiB into its container in 7 s, and the container is
        // unmounted. Before, at most 16 MiB are left by then. After, all of it: 4 s of the disk every 20 s.
        name: "twelfth-containers-end-after-a-guide",
        kernel: "6.12.117",
        change: &["vm.dirty_ratio=20", "vm.dirty_background_ratio=10"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_bytes = "64 MiB", dirty_background_bytes = "16 MiB" }
machine.devices.store = { size = "40 GiB", write_bandwidth = "<20> MB/s", read_bandwidth = "80 MB/s" }
machine.devices.data = { size = "40 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/store" = { type = "xfs", device = "store" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.mounts."/job" = { type = "overlay", at_start = false, overlay = { lower = "/data/image", upper = "/store/upper", work = "/store/work" } }
machine.cgroups.job = { memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "60s"
workload.tasks.job = { cgroup = "job", steps = [{ repeat = { every = "20s", steps = [{ mount = { point = "/job" } }, { write = { file = "/job/result", block = "64 KiB", total = "<84> MiB", rate = "12 MB/s", truncate = true } }, { close = { file = "/job/result" } }, { umount = { point = "/job" } }] } }] }
workload.tasks.runner = { steps = [{ repeat = { every = "1s", steps = [{ write = { file = "/data/runner", order = "append", count = <2> } }, { fdatasync = { file = "/data/runner" } }] } }] }
"#,
    },
    Unseen {
        // A heap holds 900 MiB. Of 8 GiB, an export of 320 MiB every 22 s is never paused. Of 2 GiB, 15 % of the gigabyte that is
        // left are 150 MiB: what the disk has not written by then, 120 MiB, waits 3 s each time.
        name: "twelfth-exports-beside-a-heap-in-less-memory",
        kernel: "6.12.43",
        change: &["memory=2G"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "40 GiB", write_bandwidth = "<36> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "vda" }
machine.cgroups.app = {}
machine.cgroups.export = {}
workload.seed = <seed>
workload.duration = "62s"
workload.tasks.app = { cgroup = "app", setup = [{ anon = { size = "900 MiB" } }], steps = [{ write = { file = "/data/app.log", order = "append", block = "4 KiB", rate = "<5>/s" } }] }
workload.tasks.export = { cgroup = "export", steps = [{ repeat = { every = "22s", steps = [{ write = { file = "/data/export", order = "append", block = "128 KiB", total = "<320> MiB", rate = "110 MB/s" } }] } }] }
"#,
    },
    Unseen {
        // A database reads 160 scattered pages a second past the page cache, with eight sessions. A volume of 60 reads a second
        // keeps all of them waiting. Nothing is dirty but a log.
        name: "twelfth-tables-on-a-volume-of-fewer-reads",
        kernel: "6.1.192",
        change: &["machine.devices.vda.read_iops=60 IO/s"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "40 GiB", write_bandwidth = "90 MB/s", read_bandwidth = "90 MB/s", write_iops = "<3000> IO/s", read_iops = "<3000> IO/s" }
machine.mounts."/pg" = { type = "ext4", device = "vda" }
machine.cgroups.db = { memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "46s"
workload.tasks.session = { cgroup = "db", instances = 8, stagger = "30ms", setup = [{ write = { file = "/pg/table{j}", block = "1 MiB", total = "40 MiB", direct = true } }], steps = [{ read = { file = "/pg/table{j}", order = "random", block = "8 KiB", direct = true, rate = "<20>/s", for = "120s" } }] }
workload.tasks.log = { cgroup = "db", steps = [{ repeat = { every = "<500>ms", steps = [{ write = { file = "/pg/log", order = "append", count = 2 } }, { fdatasync = { file = "/pg/log" } }] } }] }
"#,
    },
    Unseen {
        // Tenants get a limit. Two save 14 MiB each every 8 s, one after the other, and sync them: a fifth of a second of the disk.
        // Of 4 MB/s a save takes 3.7 s.
        name: "twelfth-saves-of-tenants-get-a-limit",
        kernel: "7.2.13",
        change: &["machine.cgroups.tenants.io_max.vda.write_bandwidth=4 MB/s"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "40 GiB", write_bandwidth = "<90> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/tenants" = { type = "xfs", device = "vda" }
machine.cgroups.tenants = { memory_max = "1 GiB" }
machine.cgroups.shop = { memory_max = "512 MiB" }
workload.seed = <seed>
workload.duration = "52s"
workload.tasks.tenant = { cgroup = "tenants", instances = 2, stagger = "4s", steps = [{ repeat = { every = "8s", steps = [{ write = { file = "/tenants/save{j}", block = "64 KiB", total = "<14> MiB", truncate = true } }, { fsync = { file = "/tenants/save{j}" } }] } }] }
workload.tasks.shop = { cgroup = "shop", preset.logger = { file = "/tenants/shop.log", lines = "<30>/s" } }
"#,
    },
    Unseen {
        // An image goes through the page cache of the host. A guest writes 4 MB/s past its own cache and syncs each 6 s. Before,
        // that takes milliseconds. After, a sync writes all that is dirty in the host: 24 MB, 1.7 s of the disk.
        name: "twelfth-images-get-the-cache",
        kernel: "6.12.117",
        change: &["machine.devices.loop0.backing.loop.direct_io=false"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.vda = { size = "40 GiB", write_bandwidth = "<14> MB/s", read_bandwidth = "60 MB/s" }
machine.devices.loop0 = { size = "2 GiB", backing = { loop = { file = "/host/guest.img", direct_io = true } } }
machine.mounts."/host" = { type = "xfs", device = "vda" }
machine.mounts."/guest" = { type = "ext4", device = "loop0" }
machine.cgroups.guest = { memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "50s"
workload.tasks.stream = { cgroup = "guest", steps = [{ write = { file = "/guest/stream", size = "500 MB", block = "256 KiB", rate = "<4000> kB/s", direct = true } }] }
workload.tasks.catalogue = { cgroup = "guest", start = "2s", steps = [{ repeat = { every = "6s", steps = [{ write = { file = "/guest/catalogue", block = "32 KiB", count = 1, truncate = true } }, { fsync = { file = "/guest/catalogue" } }] } }] }
"#,
    },
    // Tight.
    Unseen {
        // 20 % and 10 % of 384 MiB: paused from 58 MiB on. Builds write 40 MiB of objects in 2 s.
        name: "twelfth-builds-near-their-limit-to-v2",
        kernel: "6.1.192",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "40 GiB", write_bandwidth = "<60> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/build" = { type = "xfs", device = "vda" }
machine.cgroups."build{i}" = { instances = 2, memory_max = "384 MiB" }
workload.seed = <seed>
workload.duration = "52s"
workload.tasks.build = { cgroup = "build{i}", stagger = "7s", steps = [{ repeat = { every = "16s", steps = [{ create_files = { file = "/build/b{i}/{d}/{n}", files = <160>, files_per_dir = 40, size = "256 KiB", rate = "80/s" } }] } }] }
"#,
    },
    Unseen {
        // 256 MiB and 128 MiB: paused from 192 MiB on. Frames of 140 MiB come every 20 s and are not synced.
        name: "twelfth-frames-near-the-bytes",
        kernel: "6.12.117",
        change: &["vm.dirty_bytes=268435456", "vm.dirty_background_bytes=134217728"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.devices.vda = { size = "40 GiB", write_bandwidth = "<50> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/render" = { type = "ext4", device = "vda" }
machine.cgroups.render = { memory_max = "8 GiB" }
workload.seed = <seed>
workload.duration = "56s"
workload.tasks.render = { cgroup = "render", steps = [{ repeat = { every = "20s", steps = [{ write = { file = "/render/frames", order = "append", block = "256 KiB", total = "<140> MiB" } }] } }] }
"#,
    },
    Unseen {
        // 15 % of 4 GiB are 0.55 GiB. Uploads of 330 MiB come every 24 s and are not synced.
        name: "twelfth-uploads-in-half-the-memory",
        kernel: "6.12.43",
        change: &["memory=4G"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "40 GiB", write_bandwidth = "<55> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/share" = { type = "xfs", device = "vda" }
machine.cgroups.nfsd = {}
workload.seed = <seed>
workload.duration = "60s"
workload.tasks.upload = { cgroup = "nfsd", steps = [{ repeat = { every = "24s", steps = [{ write = { file = "/share/upload", order = "append", block = "256 KiB", total = "<330> MiB", rate = "120 MB/s" } }] } }] }
workload.tasks.lookup = { cgroup = "nfsd", setup = [{ write = { file = "/share/tree", block = "1 MiB", total = "40 MiB" } }, { fsync = { file = "/share/tree" } }], steps = [{ read = { file = "/share/tree", order = "random", block = "4 KiB", rate = "<60>/s" } }] }
"#,
    },
    Unseen {
        // A tenant's spool of 20 MiB every 12 s is not synced and below each threshold. Of 8 MB/s it takes 2.5 s, for which no
        // task waits.
        name: "twelfth-spools-of-a-tenant-get-a-limit",
        kernel: "6.1.192",
        change: &["machine.cgroups.tenant.io_max.vda.write_bandwidth=8 MB/s"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.vda = { size = "40 GiB", write_bandwidth = "<80> MB/s", read_bandwidth = "80 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "vda" }
machine.cgroups.tenant = { memory_max = "1 GiB" }
workload.seed = <seed>
workload.duration = "54s"
workload.tasks.spool = { cgroup = "tenant", steps = [{ repeat = { every = "12s", steps = [{ write = { file = "/data/spool", order = "append", block = "64 KiB", total = "<20> MiB", rate = "20 MB/s" } }] } }] }
"#,
    },
    // Fine.
    Unseen {
        // Sick before, and cured: six letters a second are synced, which need more than the 7 requests a second of the old volume.
        name: "twelfth-letters-on-a-better-volume",
        kernel: "6.12.117",
        change: &["machine.devices.vda.write_iops=2500 IO/s"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.vda = { size = "40 GiB", write_bandwidth = "80 MB/s", read_bandwidth = "80 MB/s", write_iops = "7 IO/s", read_iops = "2500 IO/s" }
machine.mounts."/mail" = { type = "xfs", device = "vda" }
machine.cgroups.mail = { memory_max = "1 GiB" }
workload.seed = <seed>
workload.duration = "48s"
workload.tasks.letters = { cgroup = "mail", instances = 2, preset.mail = { dir = "/mail/new{j}", messages = "<3>/s", message = "8 KiB" } }
workload.tasks.imap = { cgroup = "mail", setup = [{ write = { file = "/mail/box", block = "1 MiB", total = "40 MiB" } }, { fsync = { file = "/mail/box" } }], steps = [{ read = { file = "/mail/box", order = "random", block = "16 KiB", rate = "<30>/s" } }] }
"#,
    },
    Unseen {
        // Thirty small services log little, below limits of 256 MiB. One of them commits. Version 2 leaves each 38 MiB.
        name: "twelfth-thirty-services-to-v2-next-kernel",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "40 GiB", write_bandwidth = "<90> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/srv" = { type = "ext4", device = "vda" }
machine.cgroups."service{i}" = { instances = 30, memory_max = "256 MiB" }
workload.seed = <seed>
workload.duration = "48s"
workload.tasks.service = { cgroup = "service{i}", stagger = "130ms", preset.logger = { file = "/srv/service{i}.log", lines = "<8>/s" } }
workload.tasks.commit = { cgroup = "service0", steps = [{ repeat = { every = "<700>ms", steps = [{ write = { file = "/srv/commits", order = "append", count = 1 } }, { fdatasync = { file = "/srv/commits" } }] } }] }
"#,
    },
    Unseen {
        // A broker appends 1.5 MB/s. At an age of 15 s the flusher finds 30 MB at most, half of what it found at 30 s. Offsets
        // that are synced wait less.
        name: "twelfth-topics-at-a-younger-age",
        kernel: "7.2.13",
        change: &["vm.dirty_expire_centisecs=1500"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 10, dirty_expire_centisecs = 3000 }
machine.devices.vda = { size = "40 GiB", write_bandwidth = "<120> MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/log" = { type = "xfs", device = "vda" }
machine.cgroups.broker = { memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "66s"
workload.tasks.topic = { cgroup = "broker", instances = 3, stagger = "90ms", steps = [{ write = { file = "/log/topic{j}", order = "append", block = "16 KiB", rate = "<500> kB/s" } }] }
workload.tasks.offsets = { cgroup = "broker", steps = [{ repeat = { every = "1s", steps = [{ write = { file = "/log/offsets", order = "append", count = 1 } }, { fdatasync = { file = "/log/offsets" } }] } }] }
"#,
    },
    Unseen {
        // Two guests write past the host's page cache and sync often. The host has 16 GiB for nothing: 4 GiB do as well.
        name: "twelfth-direct-guests-in-less-memory",
        kernel: "6.1.192",
        change: &["memory=4G"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.devices.vda = { size = "40 GiB", write_bandwidth = "<150> MB/s", read_bandwidth = "150 MB/s" }
machine.mounts."/vm" = { type = "xfs", device = "vda" }
machine.cgroups."guest{i}" = { instances = 2 }
workload.seed = <seed>
workload.duration = "50s"
workload.tasks.guest = { cgroup = "guest{i}", stagger = "200ms", setup = [{ write = { file = "/vm/image{i}", block = "1 MiB", total = "200 MiB", direct = true } }], steps = [{ repeat = { every = "<400>ms", steps = [{ write = { file = "/vm/image{i}", order = "random", size = "200 MiB", block = "16 KiB", count = 12, direct = true } }, { fdatasync = { file = "/vm/image{i}" } }] } }] }
"#,
    },
];
