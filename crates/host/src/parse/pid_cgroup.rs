// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/proc/PID/cgroup`: the path of a process in each hierarchy, below the mount as this process sees
//! it. Mirrors kernel/cgroup/cgroup.c (proc_cgroup_show).

use super::{Flaw, scan};

/// The path in the unified hierarchy; `None` when there is none.
pub fn unified(text: &[u8]) -> Result<Option<&[u8]>, Flaw> {
    find(text, |id, controllers| id == b"0" && controllers.is_empty())
}

/// The path in the version 1 hierarchy of a controller.
pub fn v1<'a>(text: &'a [u8], controller: &[u8]) -> Result<Option<&'a [u8]>, Flaw> {
    find(text, |_, controllers| controllers.split(|&b| b == b',').any(|name| name == controller))
}

fn find(text: &[u8], wanted: impl Fn(&[u8], &[u8]) -> bool) -> Result<Option<&[u8]>, Flaw> {
    let mut notes = scan::Notes::default();
    let mut found = None;
    for line in notes.lines(text) {
        let (id, rest) = scan::split(line, b':');
        let (controllers, path) = scan::split(rest, b':');
        if scan::number(id).is_none() || path.first() != Some(&b'/') {
            notes.flaw("ID:CONTROLLERS:/PATH");
        } else if found.is_none() && wanted(id, controllers) {
            // Printed after the path while the last process of a removed cgroup is still there.
            found = Some(path.strip_suffix(b" (deleted)").unwrap_or(path));
        }
    }
    notes.finish_maybe_empty()?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
9:name=systemd:/
7:blkio:/a
4:cpu,cpuacct:/c
3:memory:/process_api/bba6:7e
0::/
";

    #[test]
    fn paths_are_found_by_hierarchy() {
        let check = |text: &str, controller: Option<&str>, expect: Result<Option<&str>, ()>| {
            let found = match controller {
                Some(controller) => v1(text.as_bytes(), controller.as_bytes()),
                None => unified(text.as_bytes()),
            };
            assert_eq!(found.map_err(drop), expect.map(|path| path.map(str::as_bytes)), "{text:?} {controller:?}");
        };
        check(HYBRID, None, Ok(Some("/")));
        check(HYBRID, Some("memory"), Ok(Some("/process_api/bba6:7e")));
        check(HYBRID, Some("cpuacct"), Ok(Some("/c")));
        check(HYBRID, Some("pids"), Ok(None));
        check("0::/system.slice/redis.service\n", None, Ok(Some("/system.slice/redis.service")));
        check("0::/gone (deleted)\n", None, Ok(Some("/gone")));
        check("0::/../sibling\n", None, Ok(Some("/../sibling")));
        check("0::/system.sl", None, Err(()));
        check("", None, Ok(None));
        check("garbage\n", None, Err(()));
    }

    #[test]
    fn any_bytes_are_survived() {
        crate::parse::testing::survives_anything(HYBRID, |bytes| {
            let _ = (unified(bytes), v1(bytes, b"memory"));
        });
    }
}
