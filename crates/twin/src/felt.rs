// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a change does to the scenario of a recording: the change under the scenario's own names, and the figures by which the
//! run before and the run after are judged. The lab runs both on a real kernel, `floodline-dev advice` on the model.

use crate::backtest::{self, Value};
use crate::changed::{Host, NotChanged, change};
use floodline_analysis::prediction::{DIRTIED, LONGEST, PEAK, Setting, UNMOUNT, WAITS, WRITTEN};
use floodline_analysis::run::figures as of_run;
use floodline_record::version::KernelVersion;
use floodline_record::window::Window;
use floodline_scenario::{Figure, Scenario};
use std::collections::BTreeMap;

/// The figures that people feel.
pub const FELT: [&str; 6] = [LONGEST, UNMOUNT, WAITS, PEAK, DIRTIED, WRITTEN];

/// The figures that people feel, in a run of a scenario.
pub fn felt(window: &Window) -> BTreeMap<String, Value> {
    let mut felt = backtest::figures(window, None);
    felt.retain(|name, _| FELT.contains(&name.as_str()));
    let umount = longest_umount(&of_run(window));
    felt.extend(umount.map(|seconds| (UNMOUNT.to_owned(), Value { value: seconds, unit: "seconds" })));
    felt
}

/// The longest unmount of any task, seconds. Calls that make data durable are in another figure.
fn longest_umount(figures: &BTreeMap<String, Figure>) -> Option<f64> {
    let umounts = figures.iter().filter(|(name, _)| name.ends_with(".umount.max_seconds"));
    umounts.map(|(_, figure)| figure.value).reduce(f64::max)
}

/// The scenario of a recording after a change. `window` holds the names that the recording has for its devices.
///
/// # Errors
///
/// The scenario does not have what the change is about, or nothing changes.
pub fn changed(
    scenario: &Scenario,
    kernel: KernelVersion,
    window: &Window,
    settings: &[Setting],
) -> Result<Scenario, NotChanged> {
    let journald: Vec<String> =
        scenario.workload.tasks.keys().filter(|name| name.contains("journal")).cloned().collect();
    let settings: Vec<Setting> = settings.iter().map(|setting| of_scenario(scenario, window, setting)).collect();
    let host = Host { window, journald: &journald };
    Ok(change(scenario, kernel, &settings, host)?.scenario)
}

/// A setting of a device of the recording, as one of the device of the scenario that has the same filesystem.
fn of_scenario(scenario: &Scenario, window: &Window, setting: &Setting) -> Setting {
    let parts: Vec<&str> = setting.key.split('/').collect();
    let ["bdi" | "queue" | "loop", device, knob] = parts.as_slice() else { return setting.clone() };
    let name = || {
        let facts = window.facts.as_ref()?;
        let named = facts.devices.iter().find(|one| one.name.as_bytes() == device.as_bytes());
        let dev = named.map(|one| one.dev).or_else(|| device.parse().ok())?;
        let of_device = facts.mounts.iter().filter(|mount| mount.dev == dev);
        of_device
            .filter_map(|mount| scenario.machine.mounts.get(&mount.mount_point.to_string()))
            .find_map(|mount| mount.device.clone())
    };
    match name() {
        Some(name) => Setting::new(format!("{}/{name}/{knob}", parts[0]), &setting.value),
        None => setting.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unmount_of_all_tasks_is_what_people_feel() {
        let figures = |rows: &[(&str, f64)]| -> BTreeMap<String, Figure> {
            rows.iter().map(|(name, value)| ((*name).to_owned(), Figure { value: *value, unit: "seconds" })).collect()
        };
        let several = [("a.umount.max_seconds", 4.5), ("b.umount.max_seconds", 9.5), ("c.fsync.max_seconds", 20.0)];
        assert_eq!(longest_umount(&figures(&several)), Some(9.5));
        assert_eq!(longest_umount(&figures(&several[2..])), None);
        assert!(FELT.contains(&UNMOUNT));
    }
}
