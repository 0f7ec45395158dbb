// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block devices of a guest: the virtual disks, found by serial number, loop devices made of files, and
//! the knobs of both.

use super::{GuestError, host_tool};
use crate::tool;
use crate::workload::Place;
use floodline_record::id::DevId;
use floodline_scenario::{Backing, ByteSize, Device};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Node and number of devices by the scenario's names.
pub(super) type Devices = BTreeMap<String, (PathBuf, DevId)>;

/// How long a disk may take to appear after its driver was loaded.
const APPEAR: Duration = Duration::from_secs(10);

/// Waits for the virtual disks; `serials` by the scenario's names.
pub(super) fn find(serials: &BTreeMap<String, String>) -> Result<Devices, GuestError> {
    let until = Instant::now() + APPEAR;
    loop {
        let here = by_serial(Path::new("/sys/block"));
        match serials.iter().find(|(_, serial)| !here.contains_key(*serial)) {
            None => {
                let named = serials.iter().filter_map(|(name, serial)| Some((name, here.get(serial)?)));
                return named.map(|(name, kernel_name)| Ok((name.clone(), device(kernel_name)?))).collect();
            }
            Some((name, _)) if Instant::now() > until => {
                return Err(GuestError::Missing { what: format!("the disk of device {name}") });
            }
            Some(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Makes a loop device of a file on a mounted filesystem.
pub(super) fn make_loop(file: &str, size: Option<ByteSize>, direct_io: bool) -> Result<(PathBuf, DevId), GuestError> {
    if let Some(parent) = Path::new(file).parent() {
        fs::create_dir_all(parent).map_err(GuestError::at(parent))?;
    }
    let image = fs::OpenOptions::new().create(true).append(true).open(file).map_err(GuestError::at(file))?;
    if let Some(size) = size {
        image.set_len(size.bytes()).map_err(GuestError::at(file))?;
    }
    let direct_io = if direct_io { "--direct-io=on" } else { "--direct-io=off" };
    let shown = tool::output(host_tool("losetup").args(["--find", "--show", direct_io, file]))?;
    let shown = String::from_utf8_lossy(&shown);
    device(shown.trim().rsplit('/').next().unwrap_or_default())
}

/// Finishes a device: sets the knobs of its queue, then adds the `delay` device for its latency, if it has one.
pub(super) fn finish(name: &str, spec: &Device, made: (PathBuf, DevId)) -> Result<(PathBuf, DevId), GuestError> {
    write_all(&made.0, queue_knobs(spec))?;
    if spec.backing == Backing::Disk && spec.queue.wbt_latency.is_none() {
        set_default_wbt_latency(&made.0)?;
    }
    match spec.latency {
        // A stack may have the name already.
        Some(latency) if spec.backing.stack().is_some() => {
            super::mapper::delay(&format!("{name}_delay"), &made, latency.nanos() / MILLISECOND)
        }
        Some(latency) => super::mapper::delay(name, &made, latency.nanos() / MILLISECOND),
        None => Ok(made),
    }
}

/// `VM_READAHEAD_PAGES`, bytes.
const READ_AHEAD: u64 = 128 << 10;

/// Unit of the `delay` target, ns.
const MILLISECOND: u64 = 1_000_000;

/// Whether the `delay` target can have the latency of a device: whole milliseconds.
pub(crate) fn can_delay(device: &Device) -> bool {
    let is_whole = |nanos: u64| nanos >= MILLISECOND && nanos.is_multiple_of(MILLISECOND);
    device.latency.is_none_or(|latency| is_whole(latency.nanos()))
}

/// Cipher modules for `dm_crypt`. Kernels differ in which of them exist and which are built in.
pub(crate) const CIPHERS: &[&str] = &["xts", "ecb", "aes_generic", "aesni_intel", "aes_ce_blk"];

/// Modules that a device needs in a guest. Some kernels have them built in.
pub(crate) fn modules(device: &Device) -> Vec<&'static str> {
    let mut wanted = match device.backing {
        Backing::Disk => Vec::new(),
        Backing::Loop { .. } => vec!["loop"],
        Backing::Raid1 { .. } => vec!["raid1"],
        Backing::Raid0(_) => vec!["raid0"],
        Backing::Raid10(_) => vec!["raid10"],
        Backing::Linear { .. } | Backing::Striped(_) => vec!["dm_mod"],
        Backing::Crypt { .. } => [&["dm_crypt"][..], CIPHERS].concat(),
    };
    if device.latency.is_some() {
        wanted.push("dm_delay");
    }
    wanted.extend(match device.queue.scheduler.as_deref() {
        Some("mq-deadline") => Some("mq_deadline"),
        Some("kyber") => Some("kyber_iosched"),
        Some("bfq") => Some("bfq"),
        _ => None,
    });
    wanted
}

/// Sets the knobs of a device's backing device info.
pub(super) fn tune(place: &Place, name: &str, device: &Device) -> Result<(), GuestError> {
    let node = place.devices.get(name).map(|(node, _)| node);
    let node = node.ok_or_else(|| GuestError::Missing { what: format!("the device {name}") })?;
    write_all(node, bdi_knobs(device))
}

/// The kernel chose the latency when the disk appeared, before `rotational` was set: 75 ms for a rotational disk, else
/// 2 ms (`wbt_default_latency_nsec()`). If the file is unreadable or contains 0, writeback is not throttled at all.
fn set_default_wbt_latency(node: &Path) -> Result<(), GuestError> {
    let throttled = fs::read_to_string(block(node).join(WBT_LATENCY)).is_ok_and(|text| text.trim() != "0");
    if throttled { write_all(node, vec![(WBT_LATENCY, "-1".to_owned())]) } else { Ok(()) }
}

const WBT_LATENCY: &str = "queue/wbt_lat_usec";

fn block(node: &Path) -> PathBuf {
    Path::new("/sys/block").join(node.file_name().unwrap_or_default())
}

fn write_all(node: &Path, knobs: Vec<(&'static str, String)>) -> Result<(), GuestError> {
    for (file, value) in knobs {
        let path = block(node).join(file);
        fs::write(&path, value).map_err(GuestError::at(path))?;
    }
    Ok(())
}

/// Files below `/sys/block/NAME` and what to write, in order.
fn queue_knobs(device: &Device) -> Vec<(&'static str, String)> {
    let queue = &device.queue;
    // A virtual disk is rotational by default. A stacked device inherits the flag.
    let says = device.rotational || device.backing == Backing::Disk;
    let knobs = [
        ("queue/rotational", says.then(|| u8::from(device.rotational).to_string())),
        ("queue/scheduler", queue.scheduler.clone()),
        ("queue/nr_requests", queue.nr_requests.map(|number| number.to_string())),
        (WBT_LATENCY, queue.wbt_latency.map(|time| (time.nanos() / 1000).to_string())),
        ("queue/write_cache", queue.write_cache.map(|kind| kind.name().to_owned())),
    ];
    knobs.into_iter().filter_map(|(file, value)| Some((file, value?))).collect()
}

fn bdi_knobs(device: &Device) -> Vec<(&'static str, String)> {
    let bdi = &device.bdi;
    // A virtual disk was rotational when it appeared, which gives it a readahead of two requests since commit
    // 459779d04ae8; 7.2 then has 8 MiB, and never less. A non-rotational disk has the usual readahead.
    let is_usual = device.backing == Backing::Disk && !device.rotational;
    let read_ahead = bdi.read_ahead.map(ByteSize::bytes).or(is_usual.then_some(READ_AHEAD));
    let knobs = [
        ("bdi/read_ahead_kb", read_ahead.map(|bytes| (bytes >> 10).to_string())),
        // The upper bound first: the kernel refuses a minimum above the maximum.
        ("bdi/max_ratio", bdi.max_ratio.map(|percent| percent.to_string())),
        ("bdi/max_bytes", bdi.max_bytes.map(|size| size.bytes().to_string())),
        ("bdi/min_ratio", bdi.min_ratio.map(|percent| percent.to_string())),
        ("bdi/strict_limit", bdi.strict_limit.map(|on| u8::from(on).to_string())),
    ];
    knobs.into_iter().filter_map(|(file, value)| Some((file, value?))).collect()
}

pub(super) fn device(kernel_name: &str) -> Result<(PathBuf, DevId), GuestError> {
    let path = format!("/sys/block/{kernel_name}/dev");
    let number = fs::read_to_string(&path).map_err(GuestError::at(&path))?;
    let number = number.trim().parse().map_err(|_| GuestError::Missing { what: format!("a number in {path}") })?;
    Ok((Path::new("/dev").join(kernel_name), number))
}

fn by_serial(block: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(block).into_iter().flatten().flatten();
    let with_serial = entries.filter_map(|entry| {
        let serial = fs::read_to_string(entry.path().join("serial")).ok()?;
        Some((serial.trim().to_owned(), entry.file_name().to_string_lossy().into_owned()))
    });
    with_serial.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_scenario::BdiKnobs;

    #[test]
    fn only_the_knobs_that_are_named_are_written_and_whether_a_disk_turns() {
        let bdi = BdiKnobs { min_ratio: Some(60), max_ratio: Some(70), ..BdiKnobs::default() };
        let device = Device { rotational: true, bdi, ..toml_device() };
        let array = Device { backing: Backing::Raid1 { members: Vec::new() }, ..toml_device() };
        let named = |knobs: Vec<(&str, String)>| -> Vec<String> {
            knobs.iter().map(|(file, value)| format!("{file} {value}")).collect()
        };
        assert_eq!(named(queue_knobs(&device)), ["queue/rotational 1"]);
        assert_eq!(named(bdi_knobs(&device)), ["bdi/max_ratio 70", "bdi/min_ratio 60"]);
        assert_eq!(named(queue_knobs(&toml_device())), ["queue/rotational 0"]);
        let queue = floodline_scenario::QueueKnobs {
            write_cache: Some(floodline_scenario::CacheType::WriteThrough),
            ..floodline_scenario::QueueKnobs::default()
        };
        let through = Device { queue, ..toml_device() };
        assert_eq!(named(queue_knobs(&through)), ["queue/rotational 0", "queue/write_cache write through"]);
        assert_eq!(named(bdi_knobs(&toml_device())), ["bdi/read_ahead_kb 128"]);
        let bdi = BdiKnobs { read_ahead: Some("4 MiB".parse().unwrap()), ..BdiKnobs::default() };
        assert_eq!(named(bdi_knobs(&Device { bdi, ..toml_device() })), ["bdi/read_ahead_kb 4096"]);
        assert!(queue_knobs(&array).is_empty() && bdi_knobs(&array).is_empty());
    }

    fn toml_device() -> Device {
        serde_json::from_str("{}").unwrap()
    }
}
