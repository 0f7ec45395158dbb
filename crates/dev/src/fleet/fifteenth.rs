// SPDX-License-Identifier: MIT OR Apache-2.0
//! A fifteenth group of kinds, as a platform team meets them in moves: stages of a computation, live channels and workers that change
//! their cgroup on version 2, a laptop guide before a stick is unmounted, core dumps in less memory, checkpoints of small apps by a guide
//! for latency, an older image for receivers, and a heap that grows beside imports. Then hosts near a limit, one that a move cures, and
//! hosts that such moves leave alone. The comment of each kind states the result that arithmetic expects. All kinds were committed before
//! any was scored.

use super::unseen::Unseen;

/// Every kind of the group.
pub(super) const FIFTEENTH: &[Unseen] = &[
    // Suffer.
    Unseen {
        // 20 % and 10 % of 512 MiB: paused from 76 MiB on. Each of two pods writes 90 MiB, computes for 2 s, reads them, and writes 90 and
        // 30 MiB more. The disk writes 24 MB/s: some 14 MiB of the first file and 60 MiB of the second wait for it, 3 s each time.
        name: "fifteenth-stages-of-genomes-to-v2",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "200 GiB", write_bandwidth = "<24> MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/genomes" = { type = "xfs", device = "vda" }
machine.cgroups."pod{i}" = { instances = 2, memory_max = "512 MiB" }
workload.seed = <seed>
workload.duration = "66s"
workload.tasks.stages = { cgroup = "pod{i}", stagger = "14s", steps = [{ repeat = { every = "32s", steps = [{ write = { file = "/genomes/reads{i}", block = "1 MiB", total = "<90> MiB", truncate = true } }, { burn = { for = "2s" } }, { read = { file = "/genomes/reads{i}", block = "1 MiB", total = "64 MiB" } }, { write = { file = "/genomes/sorted{i}", block = "1 MiB", total = "<90> MiB", truncate = true } }, { burn = { for = "2s" } }, { write = { file = "/genomes/marked{i}", block = "1 MiB", total = "<30> MiB", truncate = true } }] } }] }
"#,
    },
    Unseen {
        // Six live channels of 96 MiB write a segment of 18 MiB every 12 s and remove the one of 24 s before: on version 1 nothing gets old
        // enough to be written. On version 2 each is paused from 14 MiB on, and finds up to 9 MiB of the last segment: some 13 MiB wait for
        // a disk of 16 MB/s, most of a second, for every segment of every channel.
        name: "fifteenth-live-channels-to-v2-next-kernel",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=7.2.13"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<16> MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/live" = { type = "ext4", device = "vda", options = ["noatime"] }
machine.cgroups."channel{i}" = { instances = 6, memory_max = "96 MiB" }
workload.seed = <seed>
workload.duration = "76s"
workload.tasks.segment = { cgroup = "channel{i}", stagger = "2s", steps = [{ create_files = { file = "/live/c{i}/{n}", files = 1, size = "<18> MiB" } }, { sleep = { for = "12s" } }, { create_files = { file = "/live/c{i}/{n}", files = 1, size = "<18> MiB" } }, { sleep = { for = "12s" } }, { repeat = { every = "12s", steps = [{ create_files = { file = "/live/c{i}/{n}", files = 1, size = "<18> MiB" } }, { unlink = { file = "/live/c{i}/{n}", files = 1 } }] } }] }
"#,
    },
    Unseen {
        // A guide for laptops sets ages of 60 s and a flusher each 15 s. A user copies 48 MiB to a stick of 6 MB/s and unmounts it 50 s
        // later. With ages of 30 s all was written before. Now the unmount writes it: 8 s each time.
        name: "fifteenth-sticks-unmounted-after-a-laptop-guide",
        kernel: "6.12.117",
        change: &["vm.dirty_expire_centisecs=6000", "vm.dirty_writeback_centisecs=1500"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 10, dirty_expire_centisecs = 3000, dirty_writeback_centisecs = 500 }
machine.devices.vda = { size = "200 GiB", write_bandwidth = "<150> MB/s", read_bandwidth = "150 MB/s" }
machine.devices.vdb = { size = "32 GiB", write_bandwidth = "<6> MB/s", read_bandwidth = "20 MB/s" }
machine.mounts."/home" = { type = "ext4", device = "vda" }
machine.mounts."/stick" = { type = "ext4", device = "vdb", at_start = false }
machine.cgroups.session = {}
workload.seed = <seed>
workload.duration = "124s"
workload.tasks.copy = { cgroup = "session", steps = [{ repeat = { every = "60s", steps = [{ mount = { point = "/stick" } }, { create_files = { file = "/stick/film{n}", files = <6>, size = "8 MiB", rate = "2/s" } }, { sleep = { for = "50s" } }, { umount = { point = "/stick" } }] } }] }
workload.tasks.history = { cgroup = "session", preset.logger = { file = "/home/history", lines = "<5>/s" } }
"#,
    },
    Unseen {
        // Four workers hold 1.3 GiB. Every 36 s one of them dumps core, 600 MiB at the speed of memory. The dump is compressed and removed
        // after a few seconds. Of 16 GiB, 15 % are 2 GiB: no dump is ever written. Of 4 GiB, 15 % of what is left are some 370 MiB: the rest
        // waits for a disk of 50 MB/s, 4 s each time.
        name: "fifteenth-core-dumps-in-less-memory",
        kernel: "7.2.13",
        change: &["memory=4G"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.devices.vda = { size = "200 GiB", write_bandwidth = "<50> MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/crash" = { type = "xfs", device = "vda" }
machine.cgroups."worker{i}" = { instances = 4 }
machine.cgroups.coredump = {}
workload.seed = <seed>
workload.duration = "78s"
workload.tasks.worker = { cgroup = "worker{i}", setup = [{ anon = { size = "330 MiB" } }], steps = [{ repeat = { every = "200ms", steps = [{ burn = { for = "3ms" } }] } }] }
workload.tasks.core = { cgroup = "coredump", start = "2s", steps = [{ repeat = { every = "36s", steps = [{ create_files = { file = "/crash/core{n}", files = 1, size = "<600> MiB" } }, { burn = { for = "3s" } }, { write = { file = "/crash/core.zst", order = "append", block = "128 KiB", total = "<40> MiB", rate = "20 MB/s" } }, { unlink = { file = "/crash/core{n}", files = 1 } }] } }] }
"#,
    },
    Unseen {
        // A guide for latency sets 40 and 10 MiB: 11 and 3 in 4096 of each cgroup. Twelve apps of 256 MiB are paused from some 450 KiB on.
        // Each puts 8 MiB of its journal into its tables every 12 s, without a sync. Before, pages were rewritten in memory. Now each
        // checkpoint waits for the disk of 20 MB/s: half a second, and more where two of them meet.
        name: "fifteenth-checkpoints-of-apps-by-a-guide-for-latency",
        kernel: "6.12.43",
        change: &["vm.dirty_bytes=41943040", "vm.dirty_background_bytes=10485760"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 2
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<20> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/apps" = { type = "ext4", device = "vda" }
machine.cgroups."app{i}" = { instances = 12, memory_max = "256 MiB" }
workload.seed = <seed>
workload.duration = "58s"
workload.tasks.checkpoint = { cgroup = "app{i}", stagger = "900ms", steps = [{ repeat = { every = "12s", steps = [{ write = { file = "/apps/tables{i}", order = "random", size = "12 MiB", block = "16 KiB", total = "<8> MiB" } }] } }] }
"#,
    },
    Unseen {
        // Receivers go back to an older image, with version 1. On version 2, 10 % of 768 MiB are reached after 6 s, and the flusher writes
        // from then on as fast as samples come. On version 1 samples of 12 MB/s wait until they are 30 s old: 360 MB or 8 s of the disk,
        // and commits of rules wait behind them.
        name: "fifteenth-receivers-on-an-older-image",
        kernel: "6.12.117",
        change: &["cgroup=v1", "kernel=5.10.223"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "300 GiB", write_bandwidth = "<45> MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "vda" }
machine.cgroups.receive = { memory_max = "768 MiB" }
machine.cgroups.rules = { memory_max = "256 MiB" }
workload.seed = <seed>
workload.duration = "84s"
workload.tasks.receive = { cgroup = "receive", steps = [{ write = { file = "/data/samples", order = "append", block = "64 KiB", rate = "<12> MB/s" } }] }
workload.tasks.rule = { cgroup = "rules", instances = 2, stagger = "170ms", steps = [{ repeat = { every = "500ms", steps = [{ write = { file = "/data/rule{j}", order = "append", count = 1 } }, { fdatasync = { file = "/data/rule{j}" } }] } }] }
"#,
    },
    Unseen {
        // A worker appends 40 MiB in a cgroup of 1 GiB, moves to one of 192 MiB and appends 70 MiB to the same file. The file belongs to the
        // first cgroup. Its pages count for the second, which is paused from 28 MiB on: some 40 MiB wait for a disk of 18 MB/s, 2 s or more.
        name: "fifteenth-workers-that-change-cgroups-to-v2",
        kernel: "6.12.117",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<18> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/out" = { type = "ext4", device = "vda" }
machine.cgroups.stage = { memory_max = "1 GiB" }
machine.cgroups.publish = { memory_max = "192 MiB" }
workload.seed = <seed>
workload.duration = "64s"
workload.tasks.worker = { cgroup = "stage", steps = [{ repeat = { every = "24s", steps = [{ write = { file = "/out/batch", order = "append", block = "64 KiB", total = "<40> MiB", rate = "60 MB/s" } }, { move_to = { cgroup = "publish" } }, { write = { file = "/out/batch", order = "append", block = "64 KiB", total = "<70> MiB", rate = "60 MB/s" } }, { move_to = { cgroup = "stage" } }] } }] }
workload.tasks.log = { cgroup = "stage", preset.logger = { file = "/out/log", lines = "<10>/s" } }
"#,
    },
    Unseen {
        // A heap grows from 400 MiB to 2.2 GiB and is then emptied. Imports of 80 MiB come every 12 s. Under 20 % and 10 % they pause no
        // task. Under 6 % and 1 % they still fit while the heap is small: 3.5 % of 3.3 GiB are 118 MiB. Beside the large heap they are 53:
        // some 40 MiB wait for a disk of 26 MB/s, 1.5 s each time.
        name: "fifteenth-imports-beside-a-heap-that-grows",
        kernel: "6.1.192",
        change: &["vm.dirty_ratio=6", "vm.dirty_background_ratio=1"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 4
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<26> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/srv" = { type = "xfs", device = "vda" }
machine.cgroups.app = {}
machine.cgroups.import = {}
workload.seed = <seed>
workload.duration = "76s"
workload.tasks.app = { cgroup = "app", steps = [{ repeat = { every = "50s", steps = [{ anon = { size = "400 MiB" } }, { sleep = { for = "9s" } }, { anon = { size = "1000 MiB" } }, { sleep = { for = "9s" } }, { anon = { size = "1600 MiB" } }, { sleep = { for = "9s" } }, { anon = { size = "2200 MiB" } }, { sleep = { for = "20s" } }] } }] }
workload.tasks.import = { cgroup = "import", steps = [{ repeat = { every = "12s", steps = [{ write = { file = "/srv/import", order = "append", block = "128 KiB", total = "<80> MiB", rate = "90 MB/s" } }] } }] }
"#,
    },
    // Tight.
    Unseen {
        // 20 % and 10 % of 512 MiB: paused from 76 MiB on. Two tenants copy 48 MiB within their own directory every 18 s, over the last copy.
        name: "fifteenth-copies-of-tenants-near-their-limit-to-v2",
        kernel: "6.12.43",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "200 GiB", write_bandwidth = "<70> MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/srv" = { type = "xfs", device = "vda" }
machine.cgroups."tenant{i}" = { instances = 2, memory_max = "512 MiB" }
workload.seed = <seed>
workload.duration = "60s"
workload.tasks.copy = { cgroup = "tenant{i}", stagger = "8s", setup = [{ write = { file = "/srv/from{i}", block = "1 MiB", total = "64 MiB", direct = true } }], steps = [{ repeat = { every = "18s", steps = [{ read = { file = "/srv/from{i}", block = "128 KiB", total = "48 MiB" } }, { write = { file = "/srv/to{i}", block = "128 KiB", total = "<48> MiB", rate = "40 MB/s", truncate = true } }] } }] }
"#,
    },
    Unseen {
        // 120 MiB and 40 MiB: paused from 80 MiB on. Five printers get a page of 11 MiB every 15 s, one a second after the other.
        name: "fifteenth-pages-of-printers-near-the-bytes",
        kernel: "6.1.192",
        change: &["vm.dirty_bytes=125829120", "vm.dirty_background_bytes=41943040"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<45> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/spool" = { type = "ext4", device = "vda" }
machine.cgroups."printer{i}" = { instances = 5 }
workload.seed = <seed>
workload.duration = "62s"
workload.tasks.page = { cgroup = "printer{i}", stagger = "1s", steps = [{ repeat = { every = "15s", steps = [{ write = { file = "/spool/page{i}", block = "64 KiB", total = "<11> MiB", rate = "25 MB/s", truncate = true } }] } }] }
"#,
    },
    Unseen {
        // A host of two nodes has 4 GiB instead of 8: 15 % are some 550 MiB. A set of tiles of 330 MiB is made every 30 s, over the last one.
        name: "fifteenth-tiles-on-two-nodes-half-the-memory",
        kernel: "6.12.117",
        change: &["memory=4G"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.nodes = 2
machine.devices.vda = { size = "200 GiB", write_bandwidth = "<60> MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/tiles" = { type = "xfs", device = "vda" }
machine.cgroups.render = {}
workload.seed = <seed>
workload.duration = "68s"
workload.tasks.render = { cgroup = "render", steps = [{ repeat = { every = "30s", steps = [{ write = { file = "/tiles/set", block = "256 KiB", total = "<330> MiB", rate = "110 MB/s", truncate = true } }] } }] }
workload.tasks.index = { cgroup = "render", steps = [{ repeat = { every = "6s", steps = [{ write = { file = "/tiles/index", block = "16 KiB", count = <4>, truncate = true } }] } }] }
"#,
    },
    Unseen {
        // Data may be 60 s old instead of 30. Sensors append 1.5 MB/s, and a syncfs every 40 s finds at most 60 MB instead of 45: three
        // quarters of a second of the disk.
        name: "fifteenth-sensors-synced-at-an-older-age",
        kernel: "5.10.223",
        change: &["vm.dirty_expire_centisecs=6000"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 10, dirty_expire_centisecs = 3000, dirty_writeback_centisecs = 500 }
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<80> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "vda" }
machine.cgroups."sensor{i}" = { instances = 3 }
workload.seed = <seed>
workload.duration = "94s"
workload.tasks.sensor = { cgroup = "sensor{i}", stagger = "300ms", steps = [{ write = { file = "/data/s{i}", order = "append", block = "16 KiB", rate = "<500> kB/s" } }] }
workload.tasks.snapshot = { steps = [{ sleep = { for = "39s" } }, { repeat = { every = "40s", steps = [{ syncfs = { path = "/data" } }] } }] }
"#,
    },
    // Do not suffer.
    Unseen {
        // Sick before, and cured: each of four branches of 160 MiB is paused from 24 MiB on and writes a report of 60 MiB every 16 s: 50 MiB
        // wait for a disk of 22 MB/s. On version 1 only the thresholds of the machine count, and four reports are far below them.
        name: "fifteenth-reports-of-branches-back-to-v1",
        kernel: "6.12.117",
        change: &["cgroup=v1"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<22> MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/srv" = { type = "xfs", device = "vda" }
machine.cgroups."branch{i}" = { instances = 4, memory_max = "160 MiB" }
workload.seed = <seed>
workload.duration = "60s"
workload.tasks.report = { cgroup = "branch{i}", stagger = "4s", steps = [{ repeat = { every = "16s", steps = [{ write = { file = "/srv/report{i}", block = "128 KiB", total = "<60> MiB", truncate = true } }] } }] }
"#,
    },
    Unseen {
        // 24 edge services log a little on a filesystem with lazy times, read pages of 64 KiB and renew a certificate now and then. The
        // newer release changes nothing of that.
        name: "fifteenth-edges-with-lazy-times-next-release",
        kernel: "6.1.192",
        change: &["kernel=6.12.43"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<120> MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/srv" = { type = "ext4", device = "vda", options = ["lazytime"] }
machine.cgroups."edge{i}" = { instances = 24, memory_max = "128 MiB" }
workload.seed = <seed>
workload.duration = "52s"
workload.tasks.log = { cgroup = "edge{i}", stagger = "110ms", preset.logger = { file = "/srv/log{i}", lines = "<6>/s" } }
workload.tasks.page = { cgroup = "edge0", setup = [{ write = { file = "/srv/pages", block = "1 MiB", total = "32 MiB" } }, { fsync = { file = "/srv/pages" } }], steps = [{ read = { file = "/srv/pages", order = "random", block = "64 KiB", rate = "<40>/s", for = "90s" } }] }
workload.tasks.certificate = { cgroup = "edge1", steps = [{ repeat = { every = "8s", steps = [{ write = { file = "/srv/cert.new", count = 2, truncate = true } }, { fsync = { file = "/srv/cert.new" } }, { close = { file = "/srv/cert.new" } }, { rename = { from = "/srv/cert.new", to = "/srv/cert" } }] } }] }
"#,
    },
    Unseen {
        // A capture goes round a file of 256 MiB whose blocks are allocated, at 2 MB/s, and is synced every 5 s: 10 MB or a tenth of a second.
        // 10 % of 512 MiB are never reached, so version 2 and the newer release change nothing.
        name: "fifteenth-captures-round-a-file-to-v2-next-release",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.devices.vda = { size = "100 GiB", write_bandwidth = "<95> MB/s", read_bandwidth = "95 MB/s" }
machine.mounts."/capture" = { type = "xfs", device = "vda" }
machine.cgroups.capture = { memory_max = "512 MiB" }
workload.seed = <seed>
workload.duration = "54s"
workload.tasks.capture = { cgroup = "capture", setup = [{ fallocate = { file = "/capture/round", size = "256 MiB" } }], steps = [{ write = { file = "/capture/round", block = "64 KiB", size = "256 MiB", rate = "<2000> kB/s", sync = { call = "fdatasync", every = "5s" } } }] }
workload.tasks.log = { cgroup = "capture", preset.logger = { file = "/capture/log", lines = "<9>/s" } }
"#,
    },
    Unseen {
        // A volume is joined of two disks. A ledger writes 15 durable lines a second, and a statement of 20 MiB comes every 10 s. 5 % and 2 %
        // of 8 GiB pause from some 270 MiB on, and the flusher starts at 155: far above what a statement makes.
        name: "fifteenth-ledgers-on-a-joined-volume-smaller-ratios",
        kernel: "7.2.13",
        change: &["vm.dirty_ratio=5", "vm.dirty_background_ratio=2"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "16 GiB", write_bandwidth = "<130> MB/s", read_bandwidth = "130 MB/s" }
machine.devices.vdb = { size = "16 GiB", write_bandwidth = "<130> MB/s", read_bandwidth = "130 MB/s" }
machine.devices.volume.backing = { linear = { members = ["vda", "vdb"] } }
machine.mounts."/ledger" = { type = "ext4", device = "volume" }
machine.cgroups.ledger = { memory_max = "4 GiB" }
workload.seed = <seed>
workload.duration = "50s"
workload.tasks.line = { cgroup = "ledger", steps = [{ write = { file = "/ledger/lines", order = "append", block = "8 KiB", dsync = true, rate = "<15>/s" } }] }
workload.tasks.statement = { cgroup = "ledger", steps = [{ repeat = { every = "10s", steps = [{ write = { file = "/ledger/statement", block = "64 KiB", total = "<20> MiB", rate = "40 MB/s", truncate = true } }] } }] }
"#,
    },
];
