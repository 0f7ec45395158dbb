// SPDX-License-Identifier: MIT OR Apache-2.0
//! The modules of a kernel: their files, their dependencies, and the order in which to load them.
//! Dependencies are read from the modules themselves (`.modinfo`), because a package has no
//! `modules.dep` before it is installed. Compressed modules are unpacked here.

use crate::tool::{self, ToolError};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// Module files by name.
#[derive(Clone, Debug, Default)]
pub struct Modules {
    files: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
}

/// A module to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its name, with underscores.
    pub name: String,
    /// Its file, unpacked.
    pub content: Vec<u8>,
}

/// Modules could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// A file operation failed.
    #[error("{path}: {cause}")]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// A compressed module could not be unpacked.
    #[error("{path}: {cause}")]
    Compressed {
        /// The module.
        path: PathBuf,
        /// The cause.
        cause: ToolError,
    },
}

/// Endings of module files and the programs that unpack them.
const ENDINGS: &[(&str, Option<&str>)] =
    &[(".ko", None), (".ko.xz", Some("xz")), (".ko.zst", Some("zstd")), (".ko.gz", Some("gzip"))];

impl Modules {
    /// Finds the modules below `lib/modules/RELEASE`.
    pub fn index(dir: &Path) -> Result<Modules, ModuleError> {
        let mut modules = Modules::default();
        let mut pending = vec![dir.join("kernel")];
        while let Some(dir) = pending.pop() {
            let at = |cause| ModuleError::Io { path: dir.clone(), cause };
            for entry in std::fs::read_dir(&dir).map_err(at)? {
                let entry = entry.map_err(at)?;
                if entry.file_type().map_err(at)?.is_dir() {
                    pending.push(entry.path());
                } else if let Some(name) = module_name(&entry.file_name().to_string_lossy()) {
                    modules.files.insert(name, entry.path());
                }
            }
        }
        // Not every package has the list. Without it, a module without a file counts as built in.
        let built_in = std::fs::read_to_string(dir.join("modules.builtin")).unwrap_or_default();
        modules.built_in =
            built_in.lines().filter_map(|line| module_name(line.rsplit('/').next().unwrap_or(line))).collect();
        Ok(modules)
    }

    /// Returns the number of module files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Returns true if there are no module files.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns true if this kernel certainly lacks a module: no file, and a list of built-ins without it.
    pub fn lacks(&self, name: &str) -> bool {
        !self.files.contains_key(name) && !self.built_in.is_empty() && !self.built_in.contains(name)
    }

    /// Returns the wanted modules and their dependencies in load order, without built-in ones.
    pub fn in_order(&self, wanted: &[&str]) -> Result<Vec<Module>, ModuleError> {
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        for name in wanted {
            self.visit(name, &mut seen, &mut order)?;
        }
        Ok(order)
    }

    fn visit(&self, name: &str, seen: &mut BTreeSet<String>, order: &mut Vec<Module>) -> Result<(), ModuleError> {
        let name = name.replace('-', "_");
        let Some(path) = self.files.get(&name).filter(|_| seen.insert(name.clone())) else { return Ok(()) };
        let content = read(path)?;
        for needed in depends(&content) {
            self.visit(&needed, seen, order)?;
        }
        order.push(Module { name, content });
        Ok(())
    }
}

/// Returns the module's name from its file name, or `None` if the file is not a module.
fn module_name(file: &str) -> Option<String> {
    let (ending, _) = ENDINGS.iter().find(|(ending, _)| file.ends_with(ending))?;
    Some(file.strip_suffix(ending)?.replace('-', "_"))
}

/// Returns a module's dependencies: the `depends=` of its `.modinfo`, a list of names joined by commas.
fn depends(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"depends=";
    let starts = module.windows(KEY.len()).enumerate().filter(|(at, window)| {
        // An entry starts the section or follows the end of another.
        *window == KEY && (*at == 0 || module.get(at - 1) == Some(&0))
    });
    for (at, _) in starts {
        let rest = &module[at + KEY.len()..];
        let end = rest.iter().position(|byte| *byte == 0).unwrap_or(0);
        if let Ok(names) = std::str::from_utf8(&rest[..end]) {
            return names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        }
    }
    Vec::new()
}

fn read(path: &Path) -> Result<Vec<u8>, ModuleError> {
    let packed = std::fs::read(path).map_err(|cause| ModuleError::Io { path: path.to_owned(), cause })?;
    let file = path.to_string_lossy();
    match ENDINGS.iter().find(|(ending, _)| file.ends_with(ending)) {
        Some((_, Some(unpacker))) => tool::filter(tool::tool(unpacker).args(["-d", "-c"]), packed)
            .map_err(|cause| ModuleError::Compressed { path: path.to_owned(), cause }),
        _ => Ok(packed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(depends: &str) -> Vec<u8> {
        format!("\x7fELF…nodepends=x\0license=GPL\0depends={depends}\0retpoline=Y\0").into_bytes()
    }

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let fs = dir.path().join("kernel/fs");
        std::fs::create_dir_all(&fs).unwrap();
        std::fs::write(fs.join("xfs.ko"), module("libcrc32c,crc-itu-t")).unwrap();
        std::fs::write(fs.join("libcrc32c.ko"), module("")).unwrap();
        std::fs::write(fs.join("crc-itu-t.ko"), module("xfs")).unwrap();
        std::fs::write(fs.join("README"), "").unwrap();
        std::fs::write(dir.path().join("modules.builtin"), "kernel/fs/ext4/ext4.ko\n").unwrap();
        dir
    }

    #[test]
    fn modules_are_loaded_after_what_they_need_even_in_a_circle() {
        let dir = tree();
        let modules = Modules::index(dir.path()).unwrap();
        let names = |wanted: &[&str]| -> Vec<String> {
            modules.in_order(wanted).unwrap().into_iter().map(|module| module.name).collect()
        };
        assert_eq!(names(&["xfs", "xfs", "ext4"]), ["libcrc32c", "crc_itu_t", "xfs"]);
        assert_eq!(modules.len(), 3);
        assert!(!modules.lacks("ext4") && modules.lacks("btrfs") && !modules.lacks("xfs"));
    }

    #[test]
    fn a_compressed_module_is_unpacked_and_a_broken_one_says_so() {
        let dir = tree();
        let file = dir.path().join("kernel/fs/xfs.ko");
        tool::output(tool::tool("gzip").arg(&file)).unwrap();
        let modules = Modules::index(dir.path()).unwrap();
        assert_eq!(modules.in_order(&["xfs"]).unwrap().last().unwrap().content, module("libcrc32c,crc-itu-t"));
        std::fs::write(dir.path().join("kernel/fs/xfs.ko.gz"), "not gzip").unwrap();
        let says = modules.in_order(&["xfs"]).unwrap_err().to_string();
        assert!(says.contains("xfs.ko.gz: gzip failed"), "{says}");
    }

    #[test]
    fn any_bytes_have_dependencies_or_have_none() {
        bolero::check!().for_each(|bytes: &[u8]| {
            assert!(depends(bytes).iter().all(|name| !name.is_empty()));
        });
    }
}
