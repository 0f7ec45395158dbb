// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices with `strict_limit` in budgets under other conditions. Such a device pauses writers at its own share of each limit, even below
//! the free-run ceiling of the machine (`BDI_CAP_STRICTLIMIT` in `mm/page-writeback.c`). The share follows completions, so only its
//! largest value is known.

use super::WbBudget;
use super::as_if::AsIfRow;
use crate::diagnose::device;
use floodline_record::human;
use floodline_record::id::DevId;
use floodline_record::window::Window;

/// A device that pauses writers at its own share.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct StrictDevice {
    /// Name of the device, or of its bdi (escaped).
    pub device: String,
    /// Its largest share of the hard threshold under the conditions, bytes; `None` if it is not known.
    pub thresh_bytes_max: Option<u64>,
}

/// The strict devices among wbs.
pub(super) fn of_wbs(wbs: &[WbBudget]) -> Vec<StrictDevice> {
    let strict = wbs.iter().filter(|wb| wb.strictlimit == Some(true));
    let named = |wb: &WbBudget| StrictDevice {
        device: wb.device.as_ref().unwrap_or(&wb.bdi).to_string(),
        thresh_bytes_max: wb.thresh.map(|bound| bound.high.0).filter(|bytes| *bytes < u64::MAX / 2),
    };
    strict.map(named).collect()
}

/// The strict devices among bdis to which something was written. The bdi of a FUSE filesystem is strict by default.
pub(super) fn of_bdis(window: &Window, bdis: &[WbBudget]) -> Vec<StrictDevice> {
    let is_written = |wb: &&WbBudget| {
        let dev = wb.bdi.to_string().parse::<DevId>().ok();
        let disk = dev.and_then(|dev| device::by_dev(window, dev));
        disk.is_some_and(|disk| disk.span.growth.writes.is_some_and(|writes| writes.0 > 0))
    };
    let written: Vec<WbBudget> = bdis.iter().filter(is_written).cloned().collect();
    of_wbs(&written)
}

/// The verdict on a row that writes to strict devices. That its data fits below the limit does not tell whether its parts fit below the
/// shares of these devices.
pub(super) fn verdict(row: &AsIfRow, verdict: &'static str) -> &'static str {
    let is_open = verdict == "fits" && !row.strict.is_empty() && row.peak_bytes > Some(0);
    if is_open { "unknown" } else { verdict }
}

/// Names of all strict devices below which data was seen.
pub(super) fn names(rows: &[AsIfRow]) -> Vec<&str> {
    let seen = rows.iter().filter(|row| row.peak_bytes > Some(0));
    let mut names: Vec<&str> = seen.flat_map(|row| &row.strict).map(|strict| strict.device.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Says which devices hold writers below the limits of these rows. `None` where there is none.
pub fn strict_note(rows: &[AsIfRow]) -> Option<String> {
    let names = names(rows);
    if names.is_empty() {
        return None;
    }
    let share = |row: &AsIfRow| {
        let most = row.strict.iter().filter_map(|strict| strict.thresh_bytes_max).min()?;
        let whose = row.container.clone().or_else(|| row.cgroup.clone());
        Some((most, whose.unwrap_or_else(|| "the whole machine".to_owned())))
    };
    let least = rows.iter().filter(|row| row.peak_bytes > Some(0)).filter_map(share).min();
    let most = least.map(|(most, whose)| {
        format!(" The smallest of these shares is {} at most ({whose}).", human::bytes(most as f64))
    });
    let (has, device) = if names.len() == 1 { ("has", "the device's") } else { ("have", "each device's") };
    Some(format!(
        "{} {has} strict_limit: writers are paused at {device} share of a limit, and dirty data was held below that.{} What was seen does \
         not show whether programs would write more.",
        names.join(", "),
        most.unwrap_or_default()
    ))
}
