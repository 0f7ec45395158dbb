// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tracing filesystem, read-only: fields of tracepoints. If it is not mounted, this process makes a mount of its
//! own that no other process can see and that ends with this process. The machine stays as it is. Nothing is ever
//! enabled in it: the tracer attaches without it.

use crate::root::{HostRoot, SMALL};
use floodline_record::gap::Cause;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// Its mount points, the usual one first. The second is the automount of debugfs.
const PLACES: &[&str] = &["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The tracing filesystem of a machine.
#[derive(Debug)]
pub(super) enum Tracefs<'root> {
    /// Mounted on the machine, at this path.
    Mounted(&'root HostRoot, &'static str),
    /// Mounted for this process only, on no directory.
    Detached(HostRoot),
}

impl<'root> Tracefs<'root> {
    /// Finds it. On a live machine without one, makes a detached mount.
    pub(super) fn open(root: &'root HostRoot) -> Result<Tracefs<'root>, Cause> {
        let mut denied = None;
        for &place in PLACES {
            match root.exists(format!("{place}/events")) {
                Ok(true) => return Ok(Tracefs::Mounted(root, place)),
                Ok(false) => {}
                Err(cause) => denied = Some(cause),
            }
        }
        if root.is_live()
            && let Some(detached) = detached()
        {
            return Ok(Tracefs::Detached(detached));
        }
        Err(denied.unwrap_or(Cause::NotMounted { fs_type: "tracefs".into() }))
    }

    /// Returns the content of the `format` file of a tracepoint, or `Cause::NotFound` if this kernel lacks it.
    pub(super) fn format(&self, name: &str) -> Result<Vec<u8>, Cause> {
        self.read(&format!("events/{name}/format"))
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, Cause> {
        match self {
            Tracefs::Mounted(root, place) => root.read(format!("{place}/{path}"), SMALL),
            Tracefs::Detached(root) => root.read(format!("/{path}"), SMALL),
        }
    }
}

/// Makes a detached mount, on no directory (since 5.2, with CAP_SYS_ADMIN).
fn detached() -> Option<HostRoot> {
    let mount = || -> Result<OwnedFd, rustix::io::Errno> {
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_RDONLY)
    };
    let mount = mount().ok()?;
    // The root keeps a descriptor of its own.
    HostRoot::at(Path::new(&format!("/proc/self/fd/{}", mount.as_raw_fd()))).ok()
}
