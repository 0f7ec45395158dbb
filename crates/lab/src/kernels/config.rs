// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options with which a kernel was built, from the file that its package has beside the image or the modules. A kernel without such a file
//! is taken to have every option.

use super::Kernel;
use floodline_record::version::KernelVersion;
use std::path::PathBuf;

/// Largest configuration that is read, bytes. Debian's has 280 KB.
const SIZE_MAX: u64 = 4 << 20;
/// First release in which version 1 of the memory controller is an option of its own ("mm: memcg: put cgroup v1-specific code under a
/// config option", v6.11). Without it, the controller can be mounted and has none of its files.
const OPTIONAL_SINCE: KernelVersion = KernelVersion::new(6, 11, 0);
/// That option.
const MEMCG_V1: &str = "CONFIG_MEMCG_V1";

impl Kernel {
    /// Whether the kernel was built without version 1 of the memory controller, by its configuration.
    pub(crate) fn lacks_memcg_v1(&self) -> bool {
        self.version >= OPTIONAL_SINCE && self.config().is_some_and(|config| !is_set(&config, MEMCG_V1))
    }

    fn config(&self) -> Option<String> {
        let beside_image = self.image.with_file_name(format!("config-{}", self.release));
        let with_modules = self.modules.as_ref().map(|dir| dir.join("config"));
        let read = |path: PathBuf| {
            let is_small = std::fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= SIZE_MAX);
            is_small.then(|| std::fs::read(&path).ok()).flatten()
        };
        let text = std::iter::once(beside_image).chain(with_modules).find_map(read)?;
        Some(String::from_utf8_lossy(&text).into_owned())
    }
}

/// Whether an option is built in.
fn is_set(config: &str, option: &str) -> bool {
    config.lines().any(|line| line.strip_prefix(option) == Some("=y"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_controller_of_version_1_is_an_option_since_6_11() {
        let dir = tempfile::tempdir().unwrap();
        let kernel = |version: &str| Kernel {
            release: "6.12-amd64".to_owned(),
            version: version.parse().unwrap(),
            image: dir.path().join("vmlinuz-6.12-amd64"),
            modules: Some(dir.path().to_owned()),
            origin: "test".to_owned(),
        };
        assert!(!kernel("6.12.43").lacks_memcg_v1(), "it has no configuration");
        let check = |name: &str, text: &str, expect: bool| {
            std::fs::write(dir.path().join(name), text).unwrap();
            assert_eq!(kernel("6.12.43").lacks_memcg_v1(), expect, "{text}");
            assert!(!kernel("6.10.9").lacks_memcg_v1());
        };
        check("config", "CONFIG_MEMCG=y\n# CONFIG_MEMCG_V1 is not set\n", true);
        check("config", "CONFIG_MEMCG=y\nCONFIG_MEMCG_V1=y\n", false);
        check("config-6.12-amd64", "CONFIG_MEMCG=y\nCONFIG_MEMCG_V1_X=y\n", true);
    }
}
