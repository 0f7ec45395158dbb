// SPDX-License-Identifier: MIT OR Apache-2.0
//! Columns of a made recording that follow from others: thresholds by the kernel's own arithmetic, and
//! counts that the kernel prints twice. Fills only unset columns, and none that the recording leaves unread.

use floodline_kernel::{
    Behaviour, DirtyTunables, DirtyableMemory, TaskClass, ZoneReserve, domain_dirty_limits, global_dirtyable_memory,
    totalreserve_pages,
};
use floodline_record::facts::HostFacts;
use floodline_record::sample::{BdiRow, HostRow, Sample, Table, ZoneRow};
use floodline_record::units::Pages;

/// Fills in the missing columns. `is_unread` returns whether a column's source is to stay unread.
pub(super) fn fill(sample: &mut Sample, facts: &HostFacts, is_unread: impl Fn(&str) -> bool) {
    let page_size = facts.page_size.max(1);
    let host = &mut sample.host;
    if !is_unread("/proc/meminfo") {
        host.mem_free = host.mem_free.or(host.nr_free_pages.map(|pages| pages.bytes(page_size)));
    }
    let kernel = Behaviour::of_host(facts).unwrap_or_else(Behaviour::newest);
    // A kernel has no readings of files that it does not have.
    if !kernel.files.wb_stats {
        sample.wbs = Table::default();
    }
    if is_unread("/proc/vmstat") {
        return;
    }
    let limits = limits(host, &sample.zones, facts);
    host.nr_dirty_threshold = host.nr_dirty_threshold.or(limits.map(|limits| Pages(limits.0)));
    host.nr_dirty_background_threshold = host.nr_dirty_background_threshold.or(limits.map(|limits| Pages(limits.1)));
    // One device has all of the threshold.
    let whole = host.nr_dirty_threshold.map(|pages| pages.bytes(page_size));
    if !is_unread("/sys/class/bdi") && kernel.knobs.bdi_fine {
        change(&mut sample.bdis, |row: &mut BdiRow| row.max_bytes = row.max_bytes.or(whole));
    }
    if !is_unread("debugfs bdi/NAME/stats") {
        change(&mut sample.bdis, |row: &mut BdiRow| row.dirty_thresh = row.dirty_thresh.or(whole));
    }
}

fn change<R: floodline_record::metric::Row>(table: &mut Table<R>, change: impl Fn(&mut R)) {
    let mut rows = table.rows().to_vec();
    rows.iter_mut().for_each(|(_, row)| change(row));
    *table = Table::read(rows);
}

/// Hard and background threshold of the machine, pages; `None` without their inputs.
fn limits(host: &HostRow, zones: &Table<ZoneRow>, facts: &HostFacts) -> Option<(u64, u64)> {
    let zones = zones.rows().iter().map(|(_, zone)| {
        Some(ZoneReserve { managed: zone.managed?.0, high: zone.high?.0, protection_max: zone.protection_max?.0 })
    });
    let reserve = totalreserve_pages(zones.collect::<Option<Vec<_>>>()?);
    let available = global_dirtyable_memory(&DirtyableMemory {
        free: host.nr_free_pages?.0,
        reserve,
        inactive_file: host.nr_inactive_file?.0,
        active_file: host.nr_active_file?.0,
    });
    let tunables = DirtyTunables {
        dirty_ratio: host.dirty_ratio?.0,
        dirty_background_ratio: host.dirty_background_ratio?.0,
        dirty_bytes: host.dirty_bytes?.0,
        dirty_background_bytes: host.dirty_background_bytes?.0,
    };
    let algorithm = Behaviour::of_host(facts).unwrap_or_else(Behaviour::newest).arithmetic;
    let limits = domain_dirty_limits(&algorithm, &tunables, facts.page_size, available, None, TaskClass::Normal);
    Some((limits.thresh, limits.bg_thresh))
}

#[cfg(test)]
mod tests {
    use crate::Fixture;
    use crate::incidents::INCIDENTS;
    use floodline_analysis::budget::budgets;
    use floodline_record::units::Pages;

    /// 20 and 10 percent of 3,630,001 pages, in units of 1/4096.
    #[test]
    fn the_healthy_machine_prints_the_thresholds_of_its_counters() {
        let host = Fixture::healthy().one_look().window().host.last;
        let printed = (host.nr_dirty_threshold, host.nr_dirty_background_threshold);
        assert_eq!(printed, (Some(Pages(725_822)), Some(Pages(362_468))));
        let budgets = budgets(&Fixture::healthy().one_look().window());
        assert_eq!((budgets.disagreements.as_slice(), budgets.global.missing.as_slice()), (&[][..], &[][..]));
        assert_eq!(budgets.global.thresh, budgets.global.computed_thresh);
        assert!(budgets.global.is_exact());
    }

    #[test]
    fn every_incident_prints_the_thresholds_of_its_counters() {
        for incident in INCIDENTS {
            let budgets = budgets(&(incident.make)().seconds(1).window());
            assert_eq!(budgets.disagreements, [], "{}", incident.name);
        }
    }
}
