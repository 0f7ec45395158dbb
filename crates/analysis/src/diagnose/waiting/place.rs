// SPDX-License-Identifier: MIT OR Apache-2.0
//! The disk that a traced wait was on. A trace names the device of a filesystem, which may be a volume, or names none. Such a wait
//! counts for the disks below the volume; where these are not known, for one disk only.

use crate::diagnose::derived::Derived;
use crate::diagnose::device::{self, Device};
use crate::diagnose::loops;
use floodline_record::id::DevId;

/// Whether a wait was on a device: that of the wait, one below it, or one built on it. A wait of which that is not known was on the busiest disk.
pub(super) fn is_on(derived: &Derived<'_>, dev: Option<DevId>, disk: &Device<'_>) -> bool {
    let upper = dev.and_then(|dev| device::by_dev(derived.window, dev));
    let upper = upper.and_then(|upper| loops::holder(derived, &upper));
    let known = upper.filter(|upper| upper.bottoms().iter().all(Device::is_bottom) && !upper.bottoms().is_empty());
    match known {
        Some(upper) => upper.stands_on(disk) || disk.stands_on(&upper),
        None => busiest(derived).is_none_or(|busiest| disk.stands_on(busiest)),
    }
}

/// The disk that was busy for most of the time; of several, the first.
fn busiest<'d, 'a>(derived: &'d Derived<'a>) -> Option<&'d Device<'a>> {
    let busy = |disk: &Device<'_>| disk.utilisation().unwrap_or(0.0);
    derived.disks().iter().reduce(|most, disk| if busy(disk) > busy(most) { disk } else { most })
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_testkit::{Fixture, dev_of, secs};

    /// The disks that a wait on a device counts for.
    fn check(dev: Option<DevId>, expect: &[&str]) {
        let busy =
            |share: f64| move |t: f64, row: &mut floodline_record::sample::DiskRow| row.io_time = Some(secs(share * t));
        let window = Fixture::healthy()
            .disk("sda", busy(0.2))
            .disk("sdb", busy(0.9))
            .disk("sdc", busy(0.9))
            .disk("dm-0", busy(0.9))
            .facts(|facts| {
                for one in facts.devices.iter_mut().filter(|one| one.name.to_string() == "dm-0") {
                    one.slaves = vec![dev_of("sda"), dev_of("sdc")];
                }
            })
            .window();
        let derived = Derived::of(&window);
        let on: Vec<String> = derived
            .disks()
            .iter()
            .filter(|disk| is_on(&derived, dev, disk))
            .map(|disk| disk.name.to_string())
            .collect();
        assert_eq!(on, expect, "{dev:?}");
    }

    #[test]
    fn a_wait_counts_for_the_disks_of_its_stack_and_one_of_an_unknown_device_once() {
        check(Some(dev_of("sda")), &["sda"]);
        check(Some(dev_of("dm-0")), &["sda", "sdc"]);
        check(Some(dev_of("dm-7")), &["sdb"]);
        check(None, &["sdb"]);
    }
}
