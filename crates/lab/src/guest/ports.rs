// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's virtio ports to the host, found by the names that the host gave them.

use super::GuestError;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Port devices by name.
#[derive(Debug)]
pub struct Ports(BTreeMap<String, PathBuf>);

const LIST: &str = "/sys/class/virtio-ports";
/// Time that the ports have to appear after the driver was loaded.
const APPEAR: Duration = Duration::from_secs(10);

impl Ports {
    /// Waits for the ports to appear and finds their names.
    pub(super) fn find() -> Result<Ports, GuestError> {
        let until = Instant::now() + APPEAR;
        loop {
            let ports = Ports::in_list(Path::new(LIST));
            if ports.0.len() >= 2 || Instant::now() > until {
                return Ok(ports);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn in_list(list: &Path) -> Ports {
        let entries = fs::read_dir(list).into_iter().flatten().flatten();
        let named = entries.filter_map(|entry| {
            let name = fs::read_to_string(entry.path().join("name")).ok()?;
            Some((name.trim().to_owned(), Path::new("/dev").join(entry.file_name())))
        });
        Ports(named.filter(|(name, _)| !name.is_empty()).collect())
    }

    /// Opens a port for writing.
    pub(super) fn open(&self, name: &str) -> Result<File, GuestError> {
        let missing = || GuestError::Missing { what: format!("the port {name}") };
        let path = self.0.get(name).ok_or_else(missing)?;
        OpenOptions::new().write(true).open(path).map_err(GuestError::at(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_found_by_name() {
        let dir = tempfile::tempdir().unwrap();
        for (device, name) in [("vport1p1", "floodline.status\n"), ("vport1p2", "\n")] {
            fs::create_dir(dir.path().join(device)).unwrap();
            fs::write(dir.path().join(device).join("name"), name).unwrap();
        }
        let ports = Ports::in_list(dir.path());
        assert_eq!(ports.0.get("floodline.status"), Some(&PathBuf::from("/dev/vport1p1")));
        assert_eq!(ports.0.len(), 1);
        let error = ports.open("floodline.recording").unwrap_err().to_string();
        assert_eq!(error, "the port floodline.recording is missing in the guest");
    }
}
