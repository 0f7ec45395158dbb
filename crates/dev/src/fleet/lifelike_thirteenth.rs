// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thirteenth list of hosts shaped like those that people run, of shapes that the twelve lists before it do not have: passes of a
//! satellite flushed early, recordings of podcasts on version 2, a flight recorder on the next kernel, the stage of a tape library on a
//! smaller guest, stripes with a slower member, an idle disk with a minimum share, a terminal server with a soft limit, a till on a
//! memory card, patches of a game on version 2, and trades on mirrored stripes by two releases. All hosts were committed before any was
//! scored. The comment of each host states the result that arithmetic expects of its change. The position of a host decides how its
//! recording differs from one of a guest, as in the second list.

use super::lifelike::Lifelike;

/// The list. Recordings of neighbours in it have different shapes.
pub(super) const LIFELIKE_THIRTEENTH: &[Lifelike] = &[
    // Gets better. A pass of a satellite writes 350 MiB at 25 MB/s every 45 s. 10 % of 8 GiB are never reached, and all of it is old half a
    // minute later: 8 s of a disk of 45 MB/s, for which the catalogue waits with its commits. 2 % are reached after 6 s, and the flusher
    // writes faster than the pass. 155 MiB still grow old: less than half of the longest burst.
    Lifelike {
        name: "passes-of-a-satellite-flushed-early",
        kernel: "6.12.117",
        change: &["vm.dirty_ratio=30", "vm.dirty_background_ratio=2"],
        really: r#"machine.sysctl.vm = { dirty_ratio = 30, dirty_background_ratio = 2 }"#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "400 GiB", write_bandwidth = "45 MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/pass" = { type = "ext4", device = "vda" }
machine.cgroups.receive = { memory_max = "6 GiB" }
machine.cgroups.catalogue = { memory_max = "512 MiB" }
machine.cgroups."antenna{i}" = { instances = 6, memory_max = "64 MiB" }
workload.seed = 1301
workload.duration = "100s"
workload.tasks.pass = { cgroup = "receive", start = "2s", steps = [{ repeat = { every = "45s", steps = [{ write = { file = "/pass/raw", order = "append", block = "256 KiB", total = "350 MiB", rate = "25 MB/s" } }] } }] }
workload.tasks.catalogue = { cgroup = "catalogue", instances = 2, stagger = "260ms", steps = [{ repeat = { every = "700ms", steps = [{ write = { file = "/pass/catalogue{j}", order = "append", count = 1 } }, { fdatasync = { file = "/pass/catalogue{j}" } }] } }] }
workload.tasks.antenna = { cgroup = "antenna{i}", stagger = "400ms", preset.logger = { file = "/pass/antenna{i}.log", lines = "3/s" } }
"#,
    },
    // Gets sick. Five studios of 192 MiB each record 50 MiB every 20 s, listen to them again and encode 6 MiB. Version 2 pauses a studio
    // from 28 MiB on: some 40 MiB wait for a disk of 30 MB/s, 1.4 s each time.
    Lifelike {
        name: "podcast-studios-to-v2",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        really: r#"machine.cgroup_mode = "v2""#,
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.audio = { size = "500 GiB", write_bandwidth = "30 MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/audio" = { type = "xfs", device = "audio", options = ["noatime"] }
machine.cgroups."studio{i}" = { instances = 5, memory_max = "192 MiB" }
machine.cgroups."idle{i}" = { instances = 9, memory_max = "128 MiB" }
workload.seed = 1302
workload.duration = "84s"
workload.tasks.idle = { cgroup = "idle{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.episode = { cgroup = "studio{i}", stagger = "4s", steps = [{ repeat = { every = "20s", steps = [{ write = { file = "/audio/take{i}", block = "128 KiB", total = "50 MiB", rate = "100 MB/s", truncate = true } }, { read = { file = "/audio/take{i}", block = "128 KiB", total = "40 MiB" } }, { burn = { for = "1s" } }, { write = { file = "/audio/episode{i}", order = "append", block = "64 KiB", total = "6 MiB", rate = "6 MB/s" } }] } }] }
"#,
    },
    // Nothing comes. A flight recorder stores into a map from its begin to its end, 60 pages at a time, and syncs it every 4 s. The next
    // kernel has large folios on ext4, but neighbouring pages fill them anyway: 8 MB every 4 s as before.
    Lifelike {
        name: "flight-recorder-next-kernel",
        kernel: "6.12.43",
        change: &["kernel=7.2.13"],
        really: "",
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.vda = { size = "100 GiB", write_bandwidth = "50 MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/flight" = { type = "ext4", device = "vda" }
machine.cgroups.recorder = { memory_max = "512 MiB" }
machine.cgroups."sensor{i}" = { instances = 12, memory_max = "64 MiB" }
workload.seed = 1303
workload.duration = "72s"
workload.tasks.recorder = { cgroup = "recorder", setup = [{ write = { file = "/flight/data", block = "1 MiB", total = "24 MiB" } }, { fsync = { file = "/flight/data" } }], steps = [{ mmap_store = { file = "/flight/data", size = "24 MiB", pages = 60, order = "sequential", rate = "8/s", sync = { call = "msync", every = "4s" } } }] }
workload.tasks.sensor = { cgroup = "sensor{i}", stagger = "230ms", preset.logger = { file = "/flight/sensor{i}", lines = "5/s" } }
"#,
    },
    // Gets sick. A stage before a tape library takes 900 MiB at 100 MB/s every 50 s, and the library reads it. Its database holds 900 MiB.
    // Of 12 GiB, 15 % are more than that. Of 4 GiB, 15 % of what is left are some 420 MiB, which a disk of 35 MB/s leaves behind: the
    // rest comes at the speed of the disk, 8 s more each time.
    Lifelike {
        name: "stage-of-a-tape-library-on-a-smaller-guest",
        kernel: "6.1.192",
        change: &["memory=4G"],
        really: r#"machine.memory = "4 GiB""#,
        scenario: r#"
machine.memory = "12 GiB"
machine.cpus = 4
machine.devices.system = { size = "40 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "60 MB/s" }
machine.devices.stage = { size = "900 GiB", write_bandwidth = "35 MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/db" = { type = "ext4", device = "system" }
machine.mounts."/stage" = { type = "xfs", device = "stage" }
machine.cgroups.database = {}
machine.cgroups.stage = {}
workload.seed = 1304
workload.duration = "106s"
workload.tasks.database = { cgroup = "database", setup = [{ anon = { size = "900 MiB" } }], steps = [{ repeat = { every = "800ms", steps = [{ write = { file = "/db/volumes", order = "append", block = "8 KiB", count = 1 } }, { fdatasync = { file = "/db/volumes" } }] } }] }
workload.tasks.take = { cgroup = "stage", start = "2s", steps = [{ repeat = { every = "50s", steps = [{ write = { file = "/stage/set", block = "512 KiB", total = "900 MiB", rate = "100 MB/s", truncate = true } }, { sleep = { for = "4s" } }, { read = { file = "/stage/set", block = "512 KiB", total = "200 MiB", rate = "40 MB/s" } }] } }] }
"#,
    },
    // Gets worse. Five ranks of a simulation write 50 MiB each to striped disks every 25 s, and steps are synced. Two disks of 60 MB/s write
    // what is old in 2 s. One of 14 MB/s makes the stripes as fast as twice that: 9 s, for which steps wait.
    Lifelike {
        name: "scratch-on-stripes-with-a-slower-member",
        kernel: "7.2.13",
        change: &["machine.devices.vdb.write_bandwidth=14 MB/s"],
        really: r#"machine.devices.vdb.write_bandwidth = "14 MB/s""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.vda = { size = "16 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "90 MB/s" }
machine.devices.vdb = { size = "16 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "90 MB/s" }
machine.devices.scratch.backing = { striped = { members = ["vda", "vdb"] } }
machine.mounts."/scratch" = { type = "ext4", device = "scratch" }
machine.cgroups."rank{i}" = { instances = 5, memory_max = "1 GiB" }
machine.cgroups.steps = { memory_max = "256 MiB" }
workload.seed = 1305
workload.duration = "88s"
workload.tasks.rank = { cgroup = "rank{i}", stagger = "500ms", steps = [{ repeat = { every = "25s", steps = [{ write = { file = "/scratch/rank{i}", order = "append", block = "256 KiB", total = "50 MiB", rate = "60 MB/s" } }] } }] }
workload.tasks.step = { cgroup = "steps", steps = [{ repeat = { every = "1s", steps = [{ write = { file = "/scratch/steps", order = "append", count = 1 } }, { fsync = { file = "/scratch/steps" } }] } }] }
"#,
    },
    // Gets better. A copy to a slow disk holds the machine at its limit, so every writer is paused. The other disk is idle for 9 of 10 s,
    // has completed next to nothing, and has next to no share when a report of 8 MiB comes. A minimum share of a fifth is there at once.
    // The copy waits a little more.
    Lifelike {
        name: "idle-disk-gets-a-minimum-share",
        kernel: "6.12.117",
        change: &["bdi/254:16/min_ratio=20"],
        really: r#"machine.devices.vdb.bdi.min_ratio = 20"#,
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_bytes = "200 MiB", dirty_background_bytes = "100 MiB" }
machine.devices.vda = { size = "900 GiB", write_bandwidth = "12 MB/s", read_bandwidth = "30 MB/s" }
machine.devices.vdb = { size = "200 GiB", write_bandwidth = "110 MB/s", read_bandwidth = "110 MB/s" }
machine.mounts."/usb" = { type = "ext4", device = "vda" }
machine.mounts."/data" = { type = "xfs", device = "vdb" }
machine.cgroups.copy = {}
machine.cgroups.report = {}
workload.seed = 1306
workload.duration = "82s"
workload.tasks.copy = { cgroup = "copy", steps = [{ write = { file = "/usb/copy", order = "append", block = "128 KiB", rate = "30 MB/s" } }] }
workload.tasks.report = { cgroup = "report", start = "6s", steps = [{ repeat = { every = "10s", steps = [{ write = { file = "/data/report", order = "append", block = "64 KiB", total = "8 MiB" } }] } }] }
"#,
    },
    // Gets worse. Six users of a terminal server hold 50 MiB each, and one of them unpacks 150 MiB every 30 s. A soft limit of 512 MiB for
    // all users leaves 15 % of some 200 MiB: more than 100 MiB wait for a disk of 40 MB/s, 3 s each time.
    Lifelike {
        name: "terminal-server-gets-a-soft-limit",
        kernel: "6.1.192",
        change: &["cgroup/user.slice/memory.high=536870912"],
        really: r#"machine.cgroups."user.slice".memory_high = "512 MiB""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.home = { size = "300 GiB", write_bandwidth = "40 MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/home" = { type = "ext4", device = "home" }
machine.cgroups."user.slice" = {}
machine.cgroups."user.slice/u{i}" = { instances = 6 }
workload.seed = 1307
workload.duration = "94s"
workload.tasks.desktop = { cgroup = "user.slice/u{i}", stagger = "300ms", setup = [{ anon = { size = "50 MiB" } }], steps = [{ repeat = { every = "5s", steps = [{ write = { file = "/home/u{i}.state", count = 3, truncate = true } }] } }] }
workload.tasks.unpack = { cgroup = "user.slice/u0", start = "3s", steps = [{ repeat = { every = "30s", steps = [{ create_files = { file = "/home/tree/{d}/{n}", files = 300, files_per_dir = 60, size = "512 KiB", rate = "200/s" } }] } }] }
"#,
    },
    // Gets better. A till has a memory card of 4 MB/s. Its camera writes 400 kB/s, which are old after half a minute: 12 MB or 3 s, for
    // which durable lines of sales wait. One background threshold of 1 MiB makes the flusher write a quarter of a second at a time.
    Lifelike {
        name: "till-on-a-card-flushed-from-one-megabyte",
        kernel: "5.10.223",
        change: &["vm.dirty_background_bytes=1048576"],
        really: r#"machine.sysctl.vm.dirty_background_bytes = "1 MiB"
unset = ["machine.sysctl.vm.dirty_background_ratio"]"#,
        scenario: r#"
machine.memory = "2 GiB"
machine.cpus = 2
machine.devices.card = { size = "32 GiB", write_bandwidth = "4 MB/s", read_bandwidth = "20 MB/s" }
machine.mounts."/till" = { type = "ext4", device = "card", options = ["noatime"] }
machine.cgroups.camera = {}
machine.cgroups.sales = {}
machine.cgroups."idle{i}" = { instances = 8, memory_max = "64 MiB" }
workload.seed = 1308
workload.duration = "104s"
workload.tasks.idle = { cgroup = "idle{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.camera = { cgroup = "camera", steps = [{ write = { file = "/till/camera", order = "append", block = "32 KiB", rate = "400 kB/s" } }] }
workload.tasks.sale = { cgroup = "sales", steps = [{ write = { file = "/till/sales", order = "append", block = "4 KiB", dsync = true, rate = "1/s" } }] }
"#,
    },
    // Gets better. A client of games allocates 512 MiB and writes 300 MiB of a patch into them at 20 MB/s, out of order, every 40 s, then
    // syncs. On version 1 the sync writes nearly all of it: 8 s of 40 MB/s. Version 2 leaves 1 GiB some 100 MiB before the flusher starts:
    // it writes during the patch, and the sync writes the last 100 MiB or less.
    Lifelike {
        name: "patches-of-a-game-to-v2-next-kernel",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.1.192"],
        really: r#"machine.cgroup_mode = "v2""#,
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.games = { size = "900 GiB", write_bandwidth = "40 MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/games" = { type = "ext4", device = "games" }
machine.cgroups.client = { memory_max = "1 GiB" }
machine.cgroups."chat{i}" = { instances = 4, memory_max = "256 MiB" }
workload.seed = 1309
workload.duration = "90s"
workload.tasks.patch = { cgroup = "client", setup = [{ fallocate = { file = "/games/pack", size = "512 MiB" } }], steps = [{ repeat = { every = "40s", steps = [{ write = { file = "/games/pack", order = "random", size = "512 MiB", block = "256 KiB", total = "300 MiB", rate = "20 MB/s" } }, { fsync = { file = "/games/pack" } }] } }] }
workload.tasks.chat = { cgroup = "chat{i}", stagger = "600ms", preset.logger = { file = "/games/chat{i}", lines = "6/s" } }
"#,
    },
    // Nothing comes. A book of trades is written with direct I/O to mirrored stripes, its log is durable line by line, and a statement of
    // 9 MiB every 12 s is far below any threshold. Two releases change nothing of that.
    Lifelike {
        name: "trades-on-mirrored-stripes-by-two-releases",
        kernel: "5.10.223",
        change: &["kernel=6.12.117"],
        really: "",
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.a = { size = "16 GiB", write_bandwidth = "110 MB/s", read_bandwidth = "110 MB/s" }
machine.devices.b = { size = "16 GiB", write_bandwidth = "110 MB/s", read_bandwidth = "110 MB/s" }
machine.devices.c = { size = "16 GiB", write_bandwidth = "110 MB/s", read_bandwidth = "110 MB/s" }
machine.devices.d = { size = "16 GiB", write_bandwidth = "110 MB/s", read_bandwidth = "110 MB/s" }
machine.devices.array.backing = { raid10 = { members = ["a", "b", "c", "d"] } }
machine.mounts."/trades" = { type = "xfs", device = "array" }
machine.cgroups.trades = { memory_max = "2 GiB" }
machine.cgroups."desk{i}" = { instances = 10, memory_max = "128 MiB" }
workload.seed = 1310
workload.duration = "76s"
workload.tasks.book = { cgroup = "trades", steps = [{ write = { file = "/trades/book", order = "random", size = "256 MiB", block = "16 KiB", direct = true, depth = 2, rate = "120/s" } }] }
workload.tasks.line = { cgroup = "trades", steps = [{ write = { file = "/trades/log", order = "append", block = "8 KiB", dsync = true, rate = "20/s" } }] }
workload.tasks.statement = { cgroup = "desk0", start = "3s", steps = [{ repeat = { every = "12s", steps = [{ write = { file = "/trades/statement", block = "64 KiB", total = "9 MiB", truncate = true } }] } }] }
workload.tasks.desk = { cgroup = "desk{i}", stagger = "350ms", preset.logger = { file = "/trades/desk{i}.log", lines = "5/s" } }
"#,
    },
];
