// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block devices: their queues, and what each is built on.

use super::{Prober, first_line, join};
use crate::parse::number;
use crate::root::EntryKind;
use floodline_record::facts::{BlockDevice, Stack};
use floodline_record::gap::{Cause, Source};
use floodline_record::id::DevId;
use floodline_record::name::Name;
use floodline_record::units::{Bytes, Count, Flag, Nanos};
use std::collections::BTreeMap;

const FOLDER: &[u8] = b"/sys/block";
/// Sectors of sysfs are of this size whatever the device's are.
const SECTOR: u64 = 512;

pub(super) fn probe(prober: &mut Prober<'_>) {
    let names = match prober.root.list_dir(FOLDER) {
        Ok(entries) => entries,
        Err(cause) => return prober.gap(Source::SysBlock, cause, FOLDER),
    };
    let mut devices = Vec::new();
    for entry in &names {
        let folder = join(FOLDER, &entry.name);
        let Some(dev) = dev(prober, &folder) else { continue };
        devices.push(device(prober, &folder, &entry.name, dev));
        devices.extend(partitions(prober, &folder, dev));
    }
    let by_name: BTreeMap<Name, DevId> = devices.iter().map(|device| (device.name.clone(), device.dev)).collect();
    for device in &mut devices {
        device.slaves = slaves(prober, device, &by_name);
    }
    prober.facts.devices = devices;
}

fn dev(prober: &mut Prober<'_>, folder: &[u8]) -> Option<DevId> {
    prober.value(Source::SysBlock, &join(folder, b"dev"), |content| {
        let text = std::str::from_utf8(first_line(content)).ok();
        text.and_then(|text| text.parse().ok()).ok_or(crate::parse::Flaw("major:minor"))
    })
}

fn device(prober: &mut Prober<'_>, folder: &[u8], name: &[u8], dev: DevId) -> BlockDevice {
    let queue = |file: &[u8]| [folder, b"/queue/", file].concat();
    let flag = |prober: &mut Prober<'_>, path: &[u8]| {
        prober.value(Source::SysBlock, path, number::number::<Flag>).map(|flag| flag.0 != 0)
    };
    let write_cache = prober.text(Source::SysBlock, &queue(b"write_cache"));
    let max_request = prober.value(Source::SysBlock, &queue(b"max_sectors_kb"), |text| number::scaled(text, 1024));
    BlockDevice {
        dev,
        name: Name::new(name),
        rotational: flag(prober, &queue(b"rotational")),
        scheduler: prober.text(Source::SysBlock, &queue(b"scheduler")).map(|line| scheduler(&line).into()),
        nr_requests: prober
            .value(Source::SysBlock, &queue(b"nr_requests"), number::number::<Count>)
            .map(|requests| requests.0),
        max_request,
        wbt_lat: prober.value::<Nanos>(Source::SysBlock, &queue(b"wbt_lat_usec"), |text| number::scaled(text, 1000)),
        write_back_cache: write_cache.map(|kind| kind.as_bytes() == b"write back"),
        size: size(prober, folder),
        partition_of: None,
        slaves: Vec::new(),
        stack: stack(prober, folder),
    }
}

fn size(prober: &mut Prober<'_>, folder: &[u8]) -> Option<Bytes> {
    prober.value(Source::SysBlock, &join(folder, b"size"), |text| number::scaled(text, SECTOR))
}

/// "none [mq-deadline] kyber": the one in brackets; a driver without a choice prints its word bare.
fn scheduler(line: &Name) -> String {
    let text = line.to_string();
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(inside, _)| inside.to_owned());
    inside.unwrap_or(text)
}

fn stack(prober: &mut Prober<'_>, folder: &[u8]) -> Stack {
    if let Some(backing_file) = prober.text(Source::SysBlock, &join(folder, b"loop/backing_file")) {
        let dio = prober.value(Source::SysBlock, &join(folder, b"loop/dio"), number::number::<Flag>);
        return Stack::Loop { backing_file, dio: dio.map(|flag| flag.0 != 0) };
    }
    if let Some(level) = prober.text(Source::SysBlock, &join(folder, b"md/level")) {
        return Stack::Md { level: level.to_string().into() };
    }
    match prober.text(Source::SysBlock, &join(folder, b"dm/name")) {
        Some(name) => Stack::Dm { name },
        None => Stack::Bottom,
    }
}

/// Partitions are the folders of a disk that have a `partition` file.
fn partitions(prober: &mut Prober<'_>, folder: &[u8], whole: DevId) -> Vec<BlockDevice> {
    let Ok(entries) = prober.root.list_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.into_iter().filter(|entry| entry.kind != EntryKind::File) {
        let folder = join(folder, &entry.name);
        if prober.root.exists(join(&folder, b"partition")) != Ok(true) {
            continue;
        }
        let Some(dev) = dev(prober, &folder) else { continue };
        found.push(BlockDevice {
            dev,
            name: Name::new(&entry.name),
            rotational: None,
            scheduler: None,
            nr_requests: None,
            max_request: None,
            wbt_lat: None,
            write_back_cache: None,
            size: size(prober, &folder),
            partition_of: Some(whole),
            slaves: Vec::new(),
            stack: Stack::Bottom,
        });
    }
    found
}

/// What a device is built on, by number.
fn slaves(prober: &mut Prober<'_>, device: &BlockDevice, by_name: &BTreeMap<Name, DevId>) -> Vec<DevId> {
    let folder = [FOLDER, b"/", device.name.as_bytes(), b"/slaves"].concat();
    let Ok(entries) = prober.root.list_dir(&folder) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries {
        match by_name.get(&Name::new(&entry.name)) {
            Some(dev) => found.push(*dev),
            None => prober.gap(Source::SysBlock, Cause::NotFound, &join(&folder, &entry.name)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_in_use_is_the_one_in_brackets() {
        let check = |line: &str, expect: &str| assert_eq!(scheduler(&Name::from(line)), expect);
        check("[none] mq-deadline", "none");
        check("none mq-deadline [bfq]", "bfq");
        check("none", "none");
        check("[broken", "[broken");
    }
}
