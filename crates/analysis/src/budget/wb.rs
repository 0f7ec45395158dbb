// SPDX-License-Identifier: MIT OR Apache-2.0
//! The share of one wb in its domain's threshold. The share follows completions, which user space cannot see. Where the
//! kernel prints it (wb_stats, 6.10), that number is used; elsewhere the share is a bound. The devices on which a
//! cgroup has a wb follow from wb_stats, else from the devices it ever wrote to.

use super::inputs::{Inputs, gap};
use super::{Bound, DeviceBound, DomainBudget, WbBudget};
use crate::diagnose::device;
use crate::shown;
use floodline_kernel::{CgroupWriteback, cgroup_writeback, wb_dirty_is_exact};
use floodline_record::facts::{HostFacts, Mount};
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::id::{DevId, Entity, EntityId};
use floodline_record::name::Name;
use floodline_record::sample::{BdiRow, WbRow};
use floodline_record::units::Bytes;
use floodline_record::window::Window;
use std::collections::BTreeMap;

/// A ratio of 1 in parts per million.
const ALL_PPM: u64 = 1_000_000;

/// A wb that the kernel prints, with the inode number of its cgroup.
pub(super) struct PrintedWb<'a> {
    id: EntityId,
    bdi: &'a Name,
    row: &'a WbRow,
}

/// The wbs of the latest sample, by the inode number of their cgroup.
pub(super) fn printed<'a>(inputs: &Inputs<'a>) -> BTreeMap<u64, Vec<PrintedWb<'a>>> {
    let window = inputs.window;
    let latest = window.wbs.values().map(|span| span.last_at).max();
    let mut by_cgroup: BTreeMap<u64, Vec<PrintedWb>> = BTreeMap::new();
    for (&id, span) in window.wbs.iter().filter(|(_, span)| Some(span.last_at) == latest) {
        if let Some(Entity::Wb { bdi, cgroup_ino }) = window.entities.get(&id) {
            by_cgroup.entry(*cgroup_ino).or_default().push(PrintedWb { id, bdi, row: &span.last });
        }
    }
    by_cgroup
}

/// Bdis of printed wbs, each looked up once: the name of the disk, and the settings.
#[derive(Default)]
pub(super) struct PrintedBdis<'a>(BTreeMap<&'a Name, (Option<Name>, Knobs)>);

/// Shares of wbs that the kernel prints, in a domain whose wbs are known.
pub(super) fn of_printed<'a>(
    inputs: &Inputs,
    bdis: &mut PrintedBdis<'a>,
    wbs: &[PrintedWb<'a>],
    domain: Option<&DomainBudget>,
) -> Vec<WbBudget> {
    let share = |wb: &PrintedWb<'a>| {
        let found = || (device_name(inputs, wb.bdi), Knobs::of(inputs, wb.bdi));
        let (device, knobs) = bdis.0.entry(wb.bdi).or_insert_with(found);
        let domain_thresh = domain.and_then(|domain| domain.thresh);
        let thresh = wb.row.dirty_thresh;
        let binding = thresh.zip(domain_thresh).and_then(|(thresh, domain)| {
            let (own, all) = bandwidths(inputs, wb);
            let part = |ppm: u64| match (own, all) {
                (Some(own), Some(all)) if own < all => mul_div(ppm, own, all),
                _ => ppm,
            };
            knobs.binding(thresh, domain, part)
        });
        WbBudget {
            wb: Some(wb.id),
            device: device.clone(),
            bdi: wb.bdi.clone(),
            dirty: wb.row.reclaimable,
            writeback: wb.row.writeback,
            thresh: thresh.map(Bound::exactly),
            is_printed: thresh.is_some(),
            is_counted_exactly: is_counted_exactly(inputs, thresh),
            strictlimit: knobs.strictlimit,
            binding,
            write_bandwidth: wb.row.write_bandwidth,
        }
    };
    wbs.iter().map(share).collect()
}

/// Average bandwidth of a wb, and of all wbs of its bdi that have dirty inodes.
fn bandwidths(inputs: &Inputs, wb: &PrintedWb) -> (Option<u64>, Option<u64>) {
    let all = inputs.busy_bandwidth.get(wb.bdi).copied().unwrap_or(Some(0));
    (wb.row.write_bandwidth.map(|bandwidth| bandwidth.0), all)
}

/// A device that cgroups wrote to, and on which they have wbs.
struct WrittenDevice {
    bdi: Name,
    device: Option<Name>,
    knobs: Knobs,
}

/// Devices that cgroups wrote to, each looked up once: on most hosts hundreds of cgroups write to one or two.
#[derive(Default)]
pub(super) struct WrittenDevices {
    known: BTreeMap<DevId, Option<WrittenDevice>>,
}

impl WrittenDevices {
    /// A device; `None` if cgroups have no wbs on it.
    fn get(&mut self, inputs: &Inputs, dev: DevId) -> Option<&WrittenDevice> {
        let found = || {
            if inputs.window.facts.as_ref().is_some_and(|facts| !may_have_wb(inputs.window, facts, dev)) {
                return None;
            }
            let own = Name::from(dev.to_string().as_str());
            let device = device_name(inputs, &own);
            let bdi = device::by_dev(inputs.window, dev).and_then(|device| device.bdi_name()).unwrap_or(own);
            Some(WrittenDevice { device, knobs: Knobs::of(inputs, &bdi), bdi })
        };
        self.known.entry(dev).or_insert_with(found).as_ref()
    }
}

/// Shares of a cgroup on the devices it wrote to, where the kernel does not print them.
pub(super) fn of_written_devices(
    inputs: &Inputs,
    devices: &mut WrittenDevices,
    cgroup: EntityId,
    domain: &DomainBudget,
    global: &DomainBudget,
) -> Vec<WbBudget> {
    let mut found = Vec::new();
    for dev in inputs.written.get(&cgroup).into_iter().flatten() {
        let Some(WrittenDevice { bdi, device, knobs }) = devices.get(inputs, *dev) else { continue };
        found.push(WbBudget {
            wb: None,
            device: device.clone(),
            thresh: knobs.share_bound(inputs, domain, global),
            bdi: bdi.clone(),
            dirty: None,
            writeback: None,
            is_printed: false,
            is_counted_exactly: None,
            strictlimit: knobs.strictlimit,
            binding: None,
            write_bandwidth: None,
        });
    }
    found
}

/// Whether cgroups have wbs on a device: it has a bdi, and a filesystem that supports cgroup writeback. (io.stat also
/// lists the disks below a stacked device, where the pages do not belong.) True unless the machine's facts show
/// otherwise.
fn may_have_wb(window: &Window, facts: &HostFacts, dev: DevId) -> bool {
    let behaviour = shown::behaviour(window);
    let takes_part = |mount: &Mount| {
        let support = behaviour.as_ref().map(|kernel| cgroup_writeback(mount, kernel, &facts.cgroups));
        !matches!(support, Some(CgroupWriteback::Unsupported(_)))
    };
    let lookup = window.lookup();
    let mut mounts = lookup.mounts_of_device(facts, dev).filter(|mount| mount.dev.major != 0);
    (facts.bdis.is_empty() || facts.bdis.contains_key(dev.to_string().as_str()))
        && (facts.mounts.is_empty() || mounts.any(takes_part))
}

/// Shares of the bdis in the global domain, as debugfs prints them.
pub(super) fn of_bdis(inputs: &Inputs, global: &DomainBudget) -> Vec<WbBudget> {
    let window = inputs.window;
    let share = |(id, row): (&EntityId, &BdiRow)| {
        let Some(Entity::Bdi { name }) = window.entities.get(id) else { return None };
        let knobs = Knobs::of(inputs, name);
        let printed = row.dirty_thresh.map(Bound::exactly);
        Some(WbBudget {
            wb: None,
            device: device_name(inputs, name),
            bdi: name.clone(),
            dirty: row.reclaimable,
            writeback: row.writeback,
            thresh: printed.or_else(|| knobs.share_bound(inputs, global, global)),
            is_printed: printed.is_some(),
            is_counted_exactly: is_counted_exactly(inputs, row.dirty_thresh),
            strictlimit: knobs.strictlimit,
            binding: row
                .dirty_thresh
                .zip(global.thresh)
                .and_then(|(thresh, all)| knobs.binding(thresh, all, |ppm| ppm)),
            write_bandwidth: row.write_bandwidth,
        })
    };
    window.bdis.iter().map(|(id, span)| (id, &span.last)).filter_map(share).collect()
}

fn is_counted_exactly(inputs: &Inputs, thresh: Option<Bytes>) -> Option<bool> {
    Some(wb_dirty_is_exact(inputs.pages(thresh?), inputs.pages(inputs.wb_stat_error?)))
}

/// Kernel name of the disk a bdi belongs to.
fn device_name(inputs: &Inputs, bdi: &Name) -> Option<Name> {
    let facts = inputs.window.facts.as_ref();
    let text = bdi.to_string();
    let dev: DevId =
        facts.and_then(|facts| facts.bdis.get(text.as_str()).copied().flatten()).or_else(|| text.parse().ok())?;
    let lookup = inputs.window.lookup();
    lookup.device(facts, dev).map(|device| &device.name).or_else(|| lookup.disk_name(dev)).cloned()
}

/// Settings of a bdi as far as they were read, parts per million.
#[derive(Clone, Copy, Default)]
struct Knobs {
    min_ratio: Option<u64>,
    max_ratio: Option<u64>,
    strictlimit: Option<bool>,
}

impl Knobs {
    fn of(inputs: &Inputs, bdi: &Name) -> Knobs {
        let found = inputs.window.lookup().bdi(bdi).and_then(|id| inputs.window.bdis.get(&id));
        found.map_or_else(Knobs::default, |span| Knobs {
            min_ratio: span.last.min_ratio.map(|ppm| ppm.0),
            max_ratio: span.last.max_ratio.map(|ppm| ppm.0),
            strictlimit: span.last.strict_limit.map(|flag| flag.0 != 0),
        })
    }

    /// The setting of the device that decides a share printed by the kernel. `part` scales the device's ratios to the
    /// wb.
    fn binding(self, thresh: Bytes, domain: Bound, part: impl Fn(u64) -> u64) -> Option<DeviceBound> {
        let near = |ratio: u64| {
            let at = mul_div(domain.high.0, part(ratio), ALL_PPM);
            thresh.0.abs_diff(at) <= at / 20
        };
        match (self.max_ratio, self.min_ratio) {
            (Some(ppm), _) if ppm < ALL_PPM && near(ppm) => Some(DeviceBound::MaxRatio { ppm }),
            (_, Some(ppm)) if ppm > 0 && near(ppm) => Some(DeviceBound::MinRatio { ppm }),
            _ => None,
        }
    }

    /// Bounds of a share that the kernel does not print: at most the smaller threshold, at least the floor that shares
    /// have since 6.14, or zero.
    fn share_bound(self, inputs: &Inputs, domain: &DomainBudget, global: &DomainBudget) -> Option<Bound> {
        let (thresh, global_thresh) = (domain.thresh?, global.thresh?);
        let most = thresh.high.0.min(global_thresh.high.0);
        let max_ratio = self.max_ratio.filter(|ppm| *ppm < ALL_PPM);
        let high = max_ratio.map_or(most, |ppm| mul_div(most, ppm, ALL_PPM));
        // A cgroup has an unknown part of a largest share, which caps the floor too.
        let has_floor = inputs.algorithm.share_floor && self.max_ratio.is_some() && max_ratio.is_none();
        let divisor = if self.strictlimit == Some(false) { 8 } else { 100 };
        let floor = |domain: &DomainBudget, thresh: Bound| {
            let room = inputs.pages(thresh.low).saturating_sub(inputs.pages(domain.used()?));
            Some(inputs.bytes(room / divisor).0)
        };
        let low = match (floor(domain, thresh), floor(global, global_thresh)) {
            (Some(own), Some(global)) if has_floor => own.min(global).min(high),
            _ => 0,
        };
        Some(Bound { low: Bytes(low), high: Bytes(high) })
    }
}

fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    let quotient = (u128::from(a) * u128::from(b)).checked_div(u128::from(c)).unwrap_or(0);
    u64::try_from(quotient).unwrap_or(u64::MAX)
}

/// The reason why shares are bounds: the kernel's own were not read, or their cgroups are not known.
pub(super) fn unread(inputs: &Inputs, were_printed: bool) -> Gap {
    match were_printed {
        true => {
            let unknown = Cause::Malformed { what: "inode numbers of cgroups that are known here".into() };
            Gap::detailed(Source::DebugWbStats, unknown, "shares of wbs")
        }
        false => gap(inputs.window, Source::DebugWbStats, "shares of wbs"),
    }
}
