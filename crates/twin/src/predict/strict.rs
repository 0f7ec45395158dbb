// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a change ends the pauses of a strict limit for certain.

use floodline_analysis::prediction::Setting;
use floodline_record::id::Entity;
use floodline_record::window::Window;

/// Whether settings clear `strict_limit` of every backing device that has it. A backing device whose flag was not read may have it.
pub(super) fn clears(window: &Window, settings: &[Setting]) -> bool {
    let cleared = |name: &str| {
        let key = format!("bdi/{name}/strict_limit");
        settings.iter().any(|one| one.key == key && one.value.trim() == "0")
    };
    let mut flags = settings.iter().filter(|one| one.key.ends_with("/strict_limit")).peekable();
    let mut open = window.bdis.iter().filter(|(_, span)| span.last.strict_limit.is_none_or(|flag| flag.0 > 0));
    flags.peek().is_some()
        && flags.all(|one| one.value.trim() == "0")
        && open.all(|(id, _)| match window.entities.get(id) {
            Some(Entity::Bdi { name }) => cleared(&name.to_string()),
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strict_limit_is_cleared_only_if_no_device_keeps_one() {
        use floodline_record::units::Flag;
        use floodline_testkit::Fixture;
        let with = |other: Option<u64>| {
            Fixture::healthy()
                .bdi("8:0", |_, row| row.strict_limit = Some(Flag(1)))
                .bdi("0:60", move |_, row| row.strict_limit = other.map(Flag))
                .window()
        };
        let setting = [Setting::new("bdi/8:0/strict_limit", 0)];
        assert!(clears(&with(Some(0)), &setting));
        assert!(!clears(&with(Some(1)), &setting), "another device has one");
        assert!(!clears(&with(None), &setting), "it may have one");
        assert!(!clears(&with(Some(0)), &[Setting::new("vm.dirty_ratio", 20)]));
        // A flag that is set where none was makes such pauses.
        assert!(!clears(&with(Some(0)), &[Setting::new("bdi/8:0/strict_limit", 1)]));
        assert!(!clears(&with(Some(0)), &[Setting::new("bdi/0:60/strict_limit", 1), setting[0].clone()]));
    }
}
