// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of mounts in the window in which a change holds. Rules and arithmetic then judge them as any others.

use crate::change::Change;
use floodline_record::facts::Mount;
use floodline_record::name::Name;
use floodline_record::window::Window;

/// Puts the mount options of a change in place of those of the recording. Returns the keys of mounts that the host does not have.
pub(crate) fn apply(change: &Change, window: &mut Window) -> Vec<String> {
    let options = |key: &str| Some(key.strip_prefix("mount/")?.strip_suffix("/options")?.trim_matches('/').to_owned());
    let mut absent = Vec::new();
    for setting in &change.settings {
        let Some(path) = options(&setting.key) else { continue };
        let mounts = window.facts.iter_mut().flat_map(|facts| &mut facts.mounts);
        let mut meant = mounts.filter(|mount| is_meant(mount, &path)).peekable();
        if meant.peek().is_none() {
            absent.push(setting.key.clone());
        }
        meant.for_each(|mount| replace(mount, &setting.value));
    }
    absent
}

/// Whether a path names a mount. `overlay` stands for all overlays, as for the twin.
fn is_meant(mount: &Mount, path: &str) -> bool {
    let point = mount.mount_point.as_bytes();
    let is_any_overlay = path == "overlay" && mount.fs_type.as_str() == "overlay";
    point.strip_prefix(b"/").unwrap_or(point) == path.as_bytes() || is_any_overlay
}

fn replace(mount: &mut Mount, value: &str) {
    let words: Vec<&str> = value.split(',').map(str::trim).collect();
    if let Some(overlay) = &mut mount.overlay {
        overlay.volatile = words.contains(&"volatile");
    }
    mount.options = Name::new(words.join(","));
    mount.super_options = Name::new("");
}
