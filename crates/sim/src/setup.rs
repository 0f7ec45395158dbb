// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine of a scenario: memory, devices, filesystems and cgroups as they are before any program runs.

use crate::SimError;
use crate::admin::PROCESS_PAGES;
use crate::arena::{Arena, BdiId, BlockId, SbId};
use crate::arm::Arm;
use crate::block::{Block, Worker};
use crate::block_groups::Groups;
use crate::completions::Completions;
use crate::crypt::Crypt;
use crate::dcache::Names;
use crate::engine::Queue;
use crate::filesystem::{Atime, Folios, Superblock, Upper};
use crate::inode::Inode;
use crate::journal::Journal;
use crate::log_tree::LogTree;
use crate::media::{Media, Streams};
use crate::memory::Memory;
use crate::perag::{Perags, usual_groups};
use crate::raid1::Mirror;
use crate::reported::{mount_facts, setup_facts};
use crate::space::{Space, usual_log};
use crate::speed::Speed;
use crate::stripes::Stack;
use crate::tree_commit::Transaction;
use crate::wb::{Bdi, Domain, Lock};
use crate::wbt::Wbt;
use crate::world::{Costs, PAGE, Settings, World};
use crate::write_cache::WriteCache;
use floodline_kernel::{
    Behaviour, Build, CgroupWriteback, DirtyTunables, Ioends, KernelVersion, PauseArithmetic, cgroup_writeback,
    largest_folio,
};
use floodline_record::id::DevId;
use floodline_record::units::Bytes;
use floodline_scenario::{Backing, CacheType, CgroupMode, Device, FsType, Layout, Machine, Mount, MountCopy, Scenario};
use std::collections::{BTreeMap, BTreeSet};

/// Ticks per second if the scenario gives none.
const HZ: u32 = 250;
/// Bandwidth of a device without a cap, bytes per second.
const UNCAPPED: u64 = 2_000_000_000;
/// Fixed latency of a request if the scenario gives none, ns.
const LATENCY: u64 = 500_000;
/// Requests in a queue.
const DEPTH: u32 = 256;
/// Requests in the queue of a loop device.
const LOOP_DEPTH: u32 = 128;
/// Time between commits of ext4.
const JBD2_INTERVAL: u64 = 5_000_000_000;

/// Builds the machine.
pub(crate) fn machine(scenario: &Scenario, kernel: KernelVersion, speed: &Speed) -> Result<World, SimError> {
    let machine = &scenario.machine;
    let memory = memory(machine)?;
    let hz = machine.hz.unwrap_or(HZ);
    if ![100, 250, 300, 1000].contains(&hz) {
        return Err(SimError::Senseless(format!("machine.hz = {hz}: kernels are built with 100, 250, 300 or 1000")));
    }
    let behaviour = Behaviour::of(kernel);
    let has_min = |cgroup: &floodline_scenario::Cgroup| cgroup.memory_min.is_some();
    if let Some((path, _)) = machine.cgroups.iter().find(|(_, cgroup)| has_min(cgroup) && !behaviour.memcg.memory_min) {
        return Err(SimError::Senseless(format!("machine.cgroups.\"{path}\".memory_min: this key was added in 4.18")));
    }
    let build = Build { hz: hz.into(), cpus_possible: machine.cpus.into(), page_size: PAGE };
    let mut world = booted(scenario, kernel, behaviour, build, memory, crate::speed::COSTS.on(speed));
    if let Some(copy) = &machine.copy_bandwidth {
        world.costs.copy_in = copy.write.map_or(world.costs.copy_in, |rate| rate.0.0);
        world.costs.copy_out = copy.read.map_or(world.costs.copy_out, |rate| rate.0.0);
        world.copies.bandwidth = copy.total.map_or(0, |rate| rate.0.0);
    }
    if let Some(nodes) = machine.nodes.filter(|nodes| *nodes > 1) {
        world.copies.first_node = world.memory.total / u64::from(nodes);
    }
    world.add_cgroup("", &machine.cgroups.get("/").cloned().unwrap_or_default());
    for copy in scenario.cgroup_copies() {
        if !copy.path.is_empty() {
            world.add_cgroup(&copy.path, &copy.spec);
        }
    }
    let devices = add_devices(&mut world, scenario)?;
    add_filesystems(&mut world, scenario, &devices)?;
    add_loop_files(&mut world, scenario, &devices)?;
    world.keep_shares(scenario, &devices);
    use_groups(&mut world);
    for copy in scenario.cgroup_copies() {
        if let Some(id) = world.cgroup_at(&copy.path) {
            world.limit_io(id, &copy.spec).map_err(SimError::Senseless)?;
        }
    }
    world.set_ratelimit_at_boot();
    world.set_sysctls(&machine.sysctl).map_err(SimError::Senseless)?;
    fit_into_memory(&world, scenario)?;
    Ok(world)
}

/// Refuses tasks and cgroups that fill the memory by existing. A kernel would kill some of them, which the model does not
/// do.
fn fit_into_memory(world: &World, scenario: &Scenario) -> Result<(), SimError> {
    let (tasks, cgroups) = (scenario.number_of_tasks(), scenario.number_of_cgroups());
    let Memory { total, kernel, reserve, .. } = world.memory;
    let need = tasks.saturating_mul(PROCESS_PAGES).saturating_add(kernel).saturating_add(reserve);
    if need < total {
        return Ok(());
    }
    let mebibytes = |pages: u64| pages / ((1 << 20) / PAGE);
    Err(SimError::Senseless(format!(
        "machine.memory = \"{}\": {tasks} tasks, {cgroups} cgroups and the kernel use {} MiB before they do anything, and \
         the machine has {} MiB: raise machine.memory or lower instances",
        scenario.machine.memory,
        mebibytes(need),
        mebibytes(total)
    )))
}

/// The memory of a machine before its workload.
fn memory(machine: &Machine) -> Result<Memory, SimError> {
    let total = machine.memory.bytes() / PAGE;
    // Descriptors of pages, 64 bytes each, and the kernel itself.
    let total = (total - total / 64).saturating_sub(16_384);
    if total < 8_192 {
        return Err(SimError::Senseless(format!("machine.memory = \"{}\": too little for a kernel", machine.memory)));
    }
    let used = (total / 50).min(65_536) + machine.memory_used.map_or(0, |used| used.bytes() / PAGE);
    let watermark = min_free_pages(total) * 3 / 2;
    Ok(Memory {
        total,
        reserve: watermark,
        high_watermark: watermark,
        free: total.saturating_sub(used),
        kernel: used,
        ..Memory::default()
    })
}

/// A machine that has just booted: without devices, filesystems, cgroups and programs, its settings the kernel's own.
fn booted(
    scenario: &Scenario,
    kernel: KernelVersion,
    behaviour: Behaviour,
    build: Build,
    memory: Memory,
    costs: Costs,
) -> World {
    let machine = &scenario.machine;
    let dirty = DirtyTunables { dirty_ratio: 20, dirty_background_ratio: 10, ..DirtyTunables::default() };
    let settings = Settings {
        dirty,
        expire_centisecs: 3000,
        writeback_centisecs: 500,
        dirtytime_expire_seconds: 43_200,
        laptop_mode: 0,
    };
    World {
        now: 0,
        uptime: 0,
        queue: Queue::default(),
        kernel,
        behaviour,
        build,
        pauses: PauseArithmetic::of(build),
        cpus: machine.cpus.into(),
        cpu: crate::cpu::Cpus::default(),
        sleepers: Vec::new(),
        unified: machine.cgroup_mode == CgroupMode::V2,
        settings,
        costs,
        memory,
        blocks: Arena::default(),
        bdis: Arena::default(),
        bdi_min_ratio: 0,
        sbs: Arena::default(),
        inodes: Arena::default(),
        cgroups: Arena::default(),
        wbs: Arena::default(),
        pids: Arena::default(),
        completions: Completions::default(),
        ioends: crate::ioend::Ioends::default(),
        r1bios: crate::raid1::R1bios::default(),
        crypt_writes: crate::crypt::CryptWrites::default(),
        plugs: crate::plug::Plugs::default(),
        domain: Domain::default(),
        domain_limits: crate::domain::KnownLimits::default(),
        ratelimit_pages: 32,
        percpu: vec![(0, 0); usize::try_from(machine.cpus.max(1)).unwrap_or(1)],
        dirty_inodes: 0,
        new_wbs: Vec::new(),
        new_workers: Vec::new(),
        devices: BTreeMap::new(),
        switching: crate::switch::Switching::default(),
        events: Vec::new(),
        meeting: crate::task::Meeting::default(),
        shares: crate::start_share::Shares::default(),
        has_protection: false,
        cgroup_paths: BTreeMap::new(),
        next_pid: 100,
        placement: crate::wb_stat::placement(scenario.workload.seed),
        wake_ups: crate::wake_ups::WakeUps::default(),
        is_interrupt: false,
        copies: crate::copies::Copies::default(),
        reclaim_waiters: crate::engine::Waiters::default(),
    }
}

/// `min_free_kbytes` in pages: by the square root of memory, and the amount for huge pages on larger machines.
fn min_free_pages(total: u64) -> u64 {
    let by_root = (total * 4 * 16).isqrt() / 4;
    let for_huge_pages = if total > 1 << 19 { 67_584 / 4 } else { 0 };
    by_root.max(for_huge_pages).min(total / 20)
}

fn add_devices(world: &mut World, scenario: &Scenario) -> Result<BTreeMap<String, (BlockId, BdiId)>, SimError> {
    let mut ids = BTreeMap::new();
    // Physical disks first, named as a guest names them.
    let (disks, built): (Vec<_>, Vec<_>) =
        scenario.machine.devices.iter().partition(|(_, device)| device.backing == Backing::Disk);
    for (number, (name, device)) in (0_u8..).zip(disks) {
        let letter = char::from(b'a' + number % 26);
        let dev = DevId { major: 254, minor: u32::from(number) * 16 };
        let mut block = Block::new(&format!("vd{letter}"), dev);
        speed(&mut block, name, device)?;
        ids.insert(name.clone(), add_block(world, block, name, device)?);
    }
    let loops = built.into_iter().filter(|(_, device)| matches!(device.backing, Backing::Loop { .. }));
    for (number, (name, device)) in (0_u32..).zip(loops) {
        let mut block = Block::new(&format!("loop{number}"), DevId { major: 7, minor: number });
        block.size = device.size.map_or(1 << 30, |size| size.bytes());
        block.depth = device.queue.nr_requests.unwrap_or(LOOP_DEPTH).max(1);
        ids.insert(name.clone(), add_block(world, block, name, device)?);
    }
    let mut numbers = [0_u32; 2];
    for (name, device) in scenario.machine.stacked_devices() {
        let level = device.backing.md_level();
        let (prefix, major) = if level.is_some() { ("md", 9) } else { ("dm-", 253) };
        let next = &mut numbers[usize::from(level.is_none())];
        let number = std::mem::replace(next, *next + 1);
        let mut block = Block::new(&format!("{prefix}{number}"), DevId { major, minor: number });
        if let Some((layout, members)) = device.backing.stack() {
            let members = members.iter().filter_map(|member| ids.get(member)).map(|(id, _)| *id);
            block.mirrors = members.map(Mirror::new).collect();
            let disks = || block.mirrors.iter().map(|mirror| &world.blocks[mirror.device]);
            let (rotational, sizes) = (disks().any(|disk| disk.rotational), disks().map(|disk| disk.size).collect());
            let stack = Stack::new(layout, level.unwrap_or(name), level.is_some(), sizes);
            (block.rotational, block.size) = (rotational, stack.size());
            block.stack = Some(stack);
            block.crypt = encryption(world, scenario, device);
        }
        let (id, bdi) = add_block(world, block, name, device)?;
        if world.blocks[id].crypt.is_some() {
            world.new_workers.push(Worker::Crypt(id));
        }
        ids.insert(name.clone(), (id, bdi));
    }
    world.devices = ids.iter().map(|(name, (block, _))| (name.clone(), *block)).collect();
    Ok(ids)
}

/// Encryption of a device, if any. A rate from a scenario is that of its machine and is not scaled by its slowdown.
fn encryption(world: &World, scenario: &Scenario, device: &Device) -> Option<Crypt> {
    let (Layout::Encrypted(rate), _) = device.backing.stack()? else { return None };
    let is_given = matches!(device.backing, Backing::Crypt { cpu_bandwidth: Some(_), .. });
    let rate = if is_given { rate } else { rate / world.costs.percent.max(1) * 100 };
    let is_crypt = |device: &&Device| matches!(device.backing, Backing::Crypt { .. });
    let devices = scenario.machine.devices.values().filter(is_crypt).count() as u64;
    Some(Crypt::new(rate, world.memory.total, devices))
}

/// Creates the files of loop devices, on filesystems that exist by now. They have all their blocks from the start.
fn add_loop_files(
    world: &mut World,
    scenario: &Scenario,
    devices: &BTreeMap<String, (BlockId, BdiId)>,
) -> Result<(), SimError> {
    for (name, device) in &scenario.machine.devices {
        let (Backing::Loop { file, direct_io }, Some((block, _))) = (&device.backing, devices.get(name)) else {
            continue;
        };
        let (sb, _) = world.resolve(file);
        if world.sbs[sb].device == Some(*block) {
            let what = format!("machine.devices.{name}.backing.loop.file = {file:?}: the file is on the device itself");
            return Err(SimError::Senseless(what));
        }
        let Ok(inode) = world.make_file(file) else {
            let what = format!("machine.devices.{name}.backing.loop.file = {file:?} is a directory, or below a file");
            return Err(SimError::Senseless(what));
        };
        let i = &mut world.inodes[inode];
        (i.size, i.allocated, i.opens) = (u64::MAX / 2, u64::MAX / PAGE, 1);
        let mount = world.mount_of(file);
        world.sbs[mount].opened += 1;
        world.blocks[*block].loop_file = Some(crate::loop_device::LoopFile::new(file, inode, *direct_io));
    }
    Ok(())
}

fn speed(block: &mut Block, name: &str, device: &Device) -> Result<(), SimError> {
    let senseless = |key: &str| SimError::Senseless(format!("machine.devices.{name}.{key} = 0: expected more than 0"));
    for (key, value) in [
        ("bandwidth", device.bandwidth.map(|rate| rate.0.0)),
        ("iops", device.iops.map(|rate| rate.0.0)),
        ("read_stream", device.read_stream.map(|rate| rate.0.0)),
        ("write_bandwidth", device.write_bandwidth.map(|rate| rate.0.0)),
        ("read_bandwidth", device.read_bandwidth.map(|rate| rate.0.0)),
        ("write_iops", device.write_iops.map(|rate| rate.0.0)),
        ("read_iops", device.read_iops.map(|rate| rate.0.0)),
    ] {
        if value == Some(0) {
            return Err(senseless(key));
        }
    }
    block.size = device.size.map_or(1 << 30, |size| size.bytes());
    block.rotational = device.rotational;
    let holds = device.holds().and_then(|holds| usize::try_from(holds).ok()).unwrap_or(usize::MAX);
    block.arm = device.seek_time().map(|seek| Arm::new(seek.nanos(), holds));
    block.latency = device.latency.map_or(LATENCY, |latency| latency.nanos());
    block.depth = device.queue.nr_requests.unwrap_or(DEPTH).max(1);
    block.read.bandwidth = device.read_bandwidth.map_or(UNCAPPED, |rate| rate.0.0);
    block.write.bandwidth = device.write_bandwidth.map_or(UNCAPPED, |rate| rate.0.0);
    block.read.iops = device.read_iops.map_or(0, |rate| rate.0.0);
    block.write.iops = device.write_iops.map_or(0, |rate| rate.0.0);
    block.total.lane.bandwidth = device.bandwidth.map_or(0, |rate| rate.0.0);
    block.total.lane.iops = device.iops.map_or(0, |rate| rate.0.0);
    let is_total = block.total.is_limited();
    // The credit of a scenario applies to the limits of both ways together, if there are such limits.
    let each_way = if is_total && device.burst.is_some() { 0 } else { device.credit().0 };
    (block.read.credit, block.write.credit, block.total.lane.credit) = (each_way, each_way, device.credit().0);
    block.queued_latency = device.queued_latency.map_or(0, |latency| latency.nanos());
    let cache =
        |cache: &floodline_scenario::WriteCache| WriteCache::new(cache.size.bytes(), cache.drain.0.0, cache.volatile);
    block.write_cache = device.write_cache.as_ref().map(cache);
    block.media = device.shared_time().map(|percent| Media::new(percent.into(), each_way, holds));
    block.streams = device.stream_rate().map(|rate| Streams::new(rate.0.0));
    Ok(())
}

fn add_block(world: &mut World, mut block: Block, key: &str, device: &Device) -> Result<(BlockId, BdiId), SimError> {
    let usual = if block.rotational { 75_000_000 } else { 2_000_000 };
    let target = device.queue.wbt_latency.map_or(usual, |latency| latency.nanos());
    // Stacked devices have no queue to throttle.
    // BFQ turns wbt off.
    let is_bfq = device.queue.scheduler.as_deref() == Some("bfq");
    let has_wbt = world.behaviour.wbt.exists && block.mirrors.is_empty() && !is_bfq;
    block.scheduler = device.queue.scheduler.clone().unwrap_or_else(|| "none".to_owned());
    block.is_write_back = device.queue.write_cache != Some(CacheType::WriteThrough);
    block.wbt = Wbt::new(if has_wbt { target } else { 0 }, block.depth, block.is_write_back);
    let name = block.dev.to_string();
    // A rotating disk that states no optimal size takes its largest request for it.
    let is_rotating = device.rotational && device.backing == Backing::Disk;
    let Ioends { request_max_kib, rotational_read_ahead, .. } = world.behaviour.ioend;
    let of_disk = if is_rotating && rotational_read_ahead { request_max_kib << 10 } else { 0 };
    let optimal = block.stack.as_ref().map_or(of_disk, Stack::optimal);
    let id = world.blocks.push(block);
    let full = world.behaviour.arithmetic.ratio_full();
    let percent = |value: Option<u32>| value.map(|percent| u64::from(percent) * world.behaviour.arithmetic.ratio_scale);
    if let Some(knob) = device.bdi.missing_on(&world.behaviour) {
        return Err(SimError::Senseless(format!("machine.devices.{key}.bdi.{knob}: this knob was added in 6.2")));
    }
    let max_bytes = max_bytes_as_ratio(world, key, device)?;
    let bdi = Bdi {
        min_ratio: percent(device.bdi.min_ratio).unwrap_or(0),
        max_ratio: max_bytes.or(percent(device.bdi.max_ratio)).unwrap_or(full),
        strictlimit: device.bdi.strict_limit.unwrap_or(false),
        // Twice the size that keeps all members busy, at least VM_READAHEAD_PAGES.
        read_ahead: device.bdi.read_ahead.map_or((2 * optimal).max(128 << 10), |size| size.bytes()),
        ..Bdi::new(name, id, full)
    };
    let bdi = world.add_bdi(bdi);
    world.blocks[id].bdi = Some(bdi);
    Ok((id, bdi))
}

/// `max_bytes` as the kernel stores it: a ratio of the machine's threshold at the time of the write, which is
/// before its other settings are made.
fn max_bytes_as_ratio(world: &World, name: &str, device: &Device) -> Result<Option<u64>, SimError> {
    let Some(bytes) = device.bdi.max_bytes else { return Ok(None) };
    let full = world.behaviour.arithmetic.ratio_full();
    let thresh = world.gdtc(true).thresh.max(1);
    let ratio = u128::from(bytes.bytes() / PAGE) * u128::from(full) / u128::from(thresh);
    match u64::try_from(ratio) {
        Ok(ratio) if ratio <= full => Ok(Some(ratio)),
        _ => Err(SimError::Senseless(format!(
            "machine.devices.{name}.bdi.max_bytes = \"{bytes}\": the kernel refuses more than the machine's threshold (EINVAL)"
        ))),
    }
}

fn add_filesystems(
    world: &mut World,
    scenario: &Scenario,
    devices: &BTreeMap<String, (BlockId, BdiId)>,
) -> Result<(), SimError> {
    // A path below no mount is in memory, as in a guest that runs from its image.
    world.sbs.push(superblock("/", FsType::Tmpfs));
    for copy in scenario.mount_copies() {
        let MountCopy { point, spec } = copy;
        let mut sb = superblock(&point, spec.fs_type);
        sb.options = spec.options.join(",");
        sb.is_mounted = spec.at_start;
        let has = |option: &str| spec.options.iter().any(|have| have == option);
        sb.is_lazytime = has("lazytime");
        sb.flushes_on_close = !has("noauto_da_alloc");
        sb.atime = match () {
            () if has("noatime") => Atime::Never,
            () if has("strictatime") => Atime::Always,
            () => Atime::Relative,
        };
        if let Some(dirs) = &spec.overlay {
            for dir in [&dirs.lower, &dirs.upper, &dirs.work] {
                let (of, dir) = world.resolve(dir);
                let dir = dir.into_owned();
                if world.sbs[of].make_dirs(&dir).is_err() {
                    return Err(SimError::Senseless(format!(
                        "machine.mounts.{point:?}.overlay: {dir} is below a file"
                    )));
                }
            }
            let (upper, _) = world.resolve(&dirs.upper);
            sb.upper = Some(Upper {
                sb: upper,
                dir: dirs.upper.clone(),
                lower: dirs.lower.clone(),
                work: dirs.work.clone(),
                whiteouts: BTreeSet::new(),
                is_volatile: has("volatile"),
            });
        }
        if spec.fs_type == FsType::Tmpfs {
            sb.space = Some(Space::in_memory(world.memory.total));
        }
        let device = spec.device.as_ref().and_then(|name| devices.get(name)).copied();
        if let (Some((block, bdi)), true) = (device, spec.fs_type.needs_device()) {
            let bdi = if spec.fs_type == FsType::Btrfs { world.add_bdi_of_btrfs(block) } else { bdi };
            (sb.device, sb.bdi) = (Some(block), Some(bdi));
            let bytes = world.blocks[block].size;
            let log = log_pages(&point, &spec, bytes)?;
            sb.space = Some(Space::on_device(spec.fs_type, bytes, log));
            if spec.fs_type == FsType::Xfs && !spec.in_use {
                let is_striped = world.blocks[block].stack.as_ref().is_some_and(|stack| stack.optimal() > 0);
                sb.perags = Perags::new(spec.mkfs.groups.unwrap_or_else(|| usual_groups(bytes, is_striped)));
            }
            if spec.fs_type == FsType::Ext4 && !spec.in_use {
                sb.groups = Groups::new();
            }
            let mount = mount_facts(world, &sb, block);
            // The window of a read of many pages is larger than the bdi's.
            let folio = largest_folio(spec.fs_type.name(), Some(&world.behaviour), Some(Bytes(u64::MAX)), PAGE);
            sb.folios.by_readahead = folio.map_or(1, |folio| (folio.by_readahead.0 / PAGE).max(1));
            sb.folios.by_write = folio.map_or(1, |folio| (folio.by_write.0 / PAGE).max(1));
            // A fault requests folios of one page. They have four pages if readahead raises every order by two.
            let read_ahead = (world.bdis[bdi].read_ahead / PAGE).max(1);
            let has_larger = world.behaviour.folios.fault_makes_four;
            sb.folios.by_fault = if has_larger { sb.folios.by_readahead.min(read_ahead).min(4) } else { 1 };
            // Buffer heads have always tracked dirty blocks.
            sb.folios.has_dirty_blocks = spec.fs_type != FsType::Xfs || world.behaviour.folios.iomap_dirty_blocks;
            sb.has_unwritten = match spec.fs_type {
                FsType::Xfs => true,
                FsType::Ext4 => world.behaviour.journal.ext4_dioread_nolock && !has("dioread_lock"),
                _ => false,
            };
            // mkfs.xfs enables reflink by default since xfsprogs 5.1.
            sb.has_reflink = match spec.fs_type {
                FsType::Xfs => spec.mkfs.features.get("reflink") != Some(&false),
                FsType::Btrfs => true,
                _ => false,
            };
            sb.has_cgroup_writeback = world.behaviour.arithmetic.memcg_domain
                && cgroup_writeback(&mount, &world.behaviour, &setup_facts(world)) == CgroupWriteback::Supported;
            refuse_journal_options(&point, &spec)?;
            sb.journal = match spec.fs_type {
                FsType::Ext4 if spec.mkfs.journal == Some(false) => None,
                FsType::Ext4 => {
                    // 0 is the default.
                    let commit = commit_option(&spec).filter(|seconds| *seconds > 0);
                    let interval = commit.map_or(JBD2_INTERVAL, |s: u64| s * 1_000_000_000);
                    let journal = Journal::jbd2(interval, bytes, log, world.behaviour.journal);
                    Some(journal.with_order(!has("data=writeback")))
                }
                FsType::Xfs => Some(Journal::xfs(log)),
                _ => None,
            };
        }
        let id = world.sbs.push(sb);
        if world.sbs[id].is_mounted {
            world.try_upper(id);
        }
        if device.is_some() && matches!(spec.fs_type, FsType::Ext4 | FsType::Btrfs) {
            let mut inode = Inode::new(id, 0);
            (inode.allocated, inode.size) = (u64::MAX / PAGE, u64::MAX / 2);
            let inode = world.inodes.push(inode);
            match spec.fs_type {
                FsType::Ext4 => world.sbs[id].metadata = Some(inode),
                _ => {
                    let transaction = Transaction::every(commit_option(&spec));
                    world.sbs[id].log_tree = LogTree::new(inode, &spec.mkfs, transaction);
                }
            }
        }
    }
    Ok(())
}

/// Seconds of the mount option `commit=`.
fn commit_option(spec: &Mount) -> Option<u64> {
    spec.options.iter().find_map(|option| option.strip_prefix("commit=")?.parse().ok())
}

/// Notes the groups that hold directories of overlays and files of loop devices: they were made before the workload.
fn use_groups(world: &mut World) {
    for id in world.sbs.ids() {
        let sb = &mut world.sbs[id];
        if !sb.names.is_empty(0) {
            sb.perags.used_before(sb.names.directories(), sb.created);
            sb.groups.used_before();
        }
    }
}

/// Pages of the log of a filesystem, by the size of its device in bytes.
fn log_pages(point: &str, spec: &Mount, bytes: u64) -> Result<u64, SimError> {
    if spec.mkfs.journal == Some(false) {
        return Ok(0);
    }
    let Some(size) = spec.mkfs.journal_size else { return Ok(usual_log(spec.fs_type, bytes)) };
    if size.bytes() >= bytes {
        return Err(SimError::Senseless(format!(
            "machine.mounts.{point:?}.mkfs.journal_size = \"{size}\": expected less than the {bytes} B of the device"
        )));
    }
    Ok(size.bytes() / PAGE)
}

/// Refuses mount options of a journal for an ext4 without one, as the kernel does.
fn refuse_journal_options(point: &str, spec: &Mount) -> Result<(), SimError> {
    // The default of 5 s, also as 0, is no option for the kernel.
    let is_of_journal = |option: &&String| match option.strip_prefix("commit=") {
        Some(seconds) => !["0", "5"].contains(&seconds),
        None => option.starts_with("data="),
    };
    match spec.options.iter().find(is_of_journal).filter(|_| spec.mkfs.journal == Some(false)) {
        Some(option) => Err(SimError::Senseless(format!(
            "machine.mounts.{point:?}.options: the kernel refuses {option:?} for an ext4 without a journal (EINVAL)"
        ))),
        None => Ok(()),
    }
}

fn superblock(point: &str, fs_type: FsType) -> Superblock {
    Superblock {
        point: point.to_owned(),
        fs_type,
        device: None,
        bdi: None,
        has_cgroup_writeback: false,
        folios: Folios { by_readahead: 1, by_fault: 1, by_write: 1, has_dirty_blocks: true },
        is_lazytime: false,
        flushes_on_close: true,
        atime: Atime::Relative,
        options: String::new(),
        is_mounted: true,
        is_detached: false,
        opened: 0,
        s_umount: Lock::default(),
        s_sync_lock: Lock::default(),
        under_writeback: Vec::new(),
        names: Names::default(),
        journal: None,
        has_unwritten: false,
        has_reflink: false,
        space: None,
        conversions: crate::ioend::Conversions::default(),
        metadata: None,
        log_tree: LogTree::default(),
        upper: None,
        created: 0,
        groups: Groups::default(),
        perags: Perags::default(),
        reading: Lock::default(),
        last_small: None,
        places: BTreeMap::new(),
    }
}

/// Superblocks with a journal, with a worker that converts unwritten blocks, or with a thread that commits transactions.
pub(crate) fn with_threads(world: &World) -> Vec<SbId> {
    let has = |sb: &Superblock| sb.journal.is_some() || sb.has_unwritten || sb.log_tree.inode().is_some();
    world.sbs.iter().filter(|(_, sb)| has(sb)).map(|(id, _)| id).collect()
}
