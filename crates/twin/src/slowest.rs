// SPDX-License-Identifier: MIT OR Apache-2.0
//! The slowest disks that a recording allows. A disk that was never full has a limit that no counter shows. It did at least what it did in
//! its fastest interval. Between that and any speed, an answer may depend on the limit: then the recording does not decide it.

use crate::Twin;
use crate::changed::Changed;
use crate::derive::names;
use crate::provenance::Origin;
use floodline_analysis::diagnose::device;
use floodline_record::units::BytesPerSecond;
use floodline_record::window::Window;
use floodline_scenario::{Backing, ByteRate, IoRate, RequestsPerSecond, Scenario};
use std::collections::BTreeMap;

/// Written bytes per second of a slow but usual disk.
pub(crate) const USUAL_BYTES_PER_SECOND: f64 = 50e6;
/// Written bytes per second of the slowest disks in use: a memory card, a stick, the smallest volumes of a cloud.
const SLOW_BYTES_PER_SECOND: f64 = 10e6;
/// Requests per second of the slowest disks in use: a rotating disk, the smallest volumes of a cloud.
const SLOW_REQUESTS_PER_SECOND: f64 = 250.0;

/// Most that a disk did in an interval, where its limit is not known: bytes and requests per second.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Most {
    bytes: Option<f64>,
    requests: Option<f64>,
}

/// Limits of the disks of a twin that were never met.
#[derive(Clone, Debug)]
pub(crate) struct Slowest(BTreeMap<String, Most>);

impl Slowest {
    /// Of a recording. `None` if each disk was seen at its limits.
    pub(crate) fn of(twin: &Twin, window: &Window) -> Option<Slowest> {
        let mut all = BTreeMap::new();
        for seen in device::drains(window) {
            let name = names::word(seen.name.as_bytes());
            let Some(device) = twin.scenario.machine.devices.get(&name) else { continue };
            if device.backing != Backing::Disk {
                continue;
            }
            let key = format!("machine.devices.{name}.write_bandwidth");
            let is_measured = twin.provenance.iter().any(|one| one.key == key && one.origin == Origin::Measured);
            let has_requests = device.write_iops.is_some() || device.iops.is_some();
            let (mut bytes, mut requests) = (0.0_f64, 0.0_f64);
            for interval in seen.intervals().iter().filter(|interval| interval.seconds > 0.0) {
                bytes = bytes.max(interval.write_rate());
                requests = requests.max(interval.writes / interval.seconds);
            }
            let most = Most {
                bytes: Some(bytes).filter(|bytes| !is_measured && *bytes >= 1.0),
                requests: Some(requests).filter(|requests| !has_requests && *requests >= 1.0),
            };
            if most.bytes.or(most.requests).is_some() {
                all.insert(name, most);
            }
        }
        (!all.is_empty()).then_some(Slowest(all))
    }

    /// The disks whose written bytes were never limited, as slow as a small cloud volume or a worn disk: a speed that the twin does not
    /// have at all lets each burst vanish in a moment. `None` if the limit of each disk was seen.
    pub(crate) fn usual(twin: &Twin, window: &Window) -> Option<Slowest> {
        Slowest::open(twin, window, Some(USUAL_BYTES_PER_SECOND), None)
    }

    /// Disks that write as few bytes as the slowest ones in use, where the recording shows no limit of bytes. `None` if it shows that of each
    /// disk.
    pub(crate) fn slow(twin: &Twin, window: &Window) -> Option<Slowest> {
        Slowest::open(twin, window, Some(SLOW_BYTES_PER_SECOND), None)
    }

    /// Disks that make as few write requests as the slowest ones in use, where the recording shows no limit of requests. `None` if it shows
    /// that of each disk.
    pub(crate) fn of_few_requests(twin: &Twin, window: &Window) -> Option<Slowest> {
        Slowest::open(twin, window, None, Some(SLOW_REQUESTS_PER_SECOND))
    }

    /// The disks whose written bytes or requests were never limited, as fast as in their fastest interval, and at least as fast as stated.
    fn open(
        twin: &Twin,
        window: &Window,
        bytes_per_second: Option<f64>,
        requests_per_second: Option<f64>,
    ) -> Option<Slowest> {
        let known = |name: &str| twin.ceilings.iter().find(|ceiling| ceiling.device == name);
        let is_open = |name: &str| {
            let has_none =
                twin.scenario.machine.devices.get(name).is_some_and(|device| device.write_bandwidth.is_none());
            has_none && known(name).is_some_and(|ceiling| !ceiling.known.write_bytes && !ceiling.has_credit)
        };
        let Slowest(mut all) = Slowest::of(twin, window)?;
        for (name, most) in &mut all {
            let takes_any = known(name).is_some_and(|ceiling| !ceiling.known.writes);
            let at_least = |most: Option<f64>, least: Option<f64>| most.zip(least).map(|(most, least)| most.max(least));
            *most = Most {
                bytes: at_least(most.bytes, bytes_per_second.filter(|_| is_open(name))),
                requests: at_least(most.requests, requests_per_second.filter(|_| takes_any)),
            };
        }
        all.retain(|_, most| most.bytes.or(most.requests).is_some());
        (!all.is_empty()).then_some(Slowest(all))
    }

    /// A twin on these disks. `before` is the scenario before its change.
    pub(crate) fn under(&self, changed: &Changed, before: &Scenario) -> Changed {
        let mut changed = changed.clone();
        self.set(&mut changed.scenario, before);
        changed
    }

    /// Gives a scenario these disks. A limit that the change sets itself stays: `before` is the scenario before it.
    pub(crate) fn set(&self, scenario: &mut Scenario, before: &Scenario) {
        for (name, most) in &self.0 {
            let Some((device, before)) = scenario.machine.devices.get_mut(name).zip(before.machine.devices.get(name))
            else {
                continue;
            };
            let is_set = device.write_bandwidth != before.write_bandwidth
                || device.bandwidth != before.bandwidth
                || device.write_iops != before.write_iops
                || device.iops != before.iops;
            if is_set {
                continue;
            }
            if let Some(bytes) = most.bytes {
                device.write_bandwidth = Some(ByteRate(BytesPerSecond(bytes as u64)));
            }
            if let Some(requests) = most.requests {
                device.write_iops = Some(IoRate(RequestsPerSecond(requests.ceil() as u64)));
            }
        }
    }
}
