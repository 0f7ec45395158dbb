// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's initramfs: this program as init, the kernel modules it loads, its job, and the host's tools
//! that the job needs (mkfs, losetup) with their libraries. Not compressed: unpacking costs an emulated CPU
//! more than reading.

mod cpio;
mod elf;

use crate::kernels::Module;
use crate::tool::{self, ToolError};
pub(crate) use cpio::Cpio;
pub(crate) use elf::Elf;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// Path of the job in the guest.
pub const JOB: &str = "/job.json";

/// Directory of the modules in the guest. File names start with the position in load order.
pub const MODULES: &str = "/modules";

/// Directory of the host's tools in the guest, with their loader. Their libraries are in a directory below it.
pub const TOOLS: &str = "/tools";
/// Name of the tools' loader.
pub const LOADER: &str = "ld.so";
/// Name of the directory with their libraries.
pub const TOOL_LIBRARIES: &str = "lib";

/// Largest image, bytes. It is in the memory of the guest. A debug build of the program is several times larger.
pub const SIZE_MAX: u64 = if cfg!(debug_assertions) { 96 << 20 } else { 64 << 20 };

/// The image could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A file operation failed.
    #[error("{path}: {cause}")]
    Io {
        /// The path.
        path: PathBuf,
        /// Why it failed.
        cause: io::Error,
    },
    /// A file is not a program for the guest.
    #[error("{path} is not a 64-bit Linux program")]
    NotAProgram {
        /// The file.
        path: PathBuf,
    },
    /// The libraries of a program could not be found.
    #[error("cannot find the libraries of {path}: {cause}")]
    Libraries {
        /// The program.
        path: PathBuf,
        /// The cause.
        cause: ToolError,
    },
    /// The image exceeds [`SIZE_MAX`].
    #[error(
        "the guest's image has {bytes} bytes; the limit is {SIZE_MAX}: use a release build of floodline, which is smaller"
    )]
    TooLarge {
        /// Its size.
        bytes: u64,
    },
}

/// The files of an image.
#[derive(Clone, Debug, Default)]
pub struct Image {
    files: BTreeMap<String, (u32, Vec<u8>)>,
}

/// Mount points of the guest.
const DIRS: &[&str] = &["dev", "proc", "sys", "run", "tmp"];

impl Image {
    /// An image with this program as init.
    pub fn new(init: &Path) -> Result<Image, ImageError> {
        let mut image = Image::default();
        image.program(init, "/init")?;
        Ok(image)
    }

    /// Adds a file of the given content.
    pub fn file(&mut self, path: &str, content: impl Into<Vec<u8>>) {
        self.put(path, 0o644, content.into());
    }

    /// Adds modules, to be loaded in this order.
    pub fn modules(&mut self, modules: Vec<Module>) {
        for (place, module) in modules.into_iter().enumerate() {
            self.put(&format!("{MODULES}/{place:03}-{}.ko", module.name), 0o644, module.content);
        }
    }

    /// Adds a program that the guest runs directly, with its libraries in the places where the loader looks for them.
    fn program(&mut self, from: &Path, to: &str) -> Result<(), ImageError> {
        for (path, content) in self.with_libraries(from, to)? {
            self.put(&path, 0o755, content);
        }
        Ok(())
    }

    /// Adds a program of this host as a tool. The tool and its libraries have their own directory, so that they do not
    /// conflict with other programs of the guest and their libraries.
    pub fn tool(&mut self, from: &Path, name: &str) -> Result<(), ImageError> {
        let to = format!("{TOOLS}/{name}");
        for (path, content) in self.with_libraries(from, &to)? {
            let file = path.rsplit('/').next().unwrap_or(&path);
            let place = match file {
                _ if path == to => to.clone(),
                file if file.starts_with("ld-") || file.starts_with("ld.") => format!("{TOOLS}/{LOADER}"),
                file => format!("{TOOLS}/{TOOL_LIBRARIES}/{file}"),
            };
            self.put(&place, 0o755, content);
        }
        Ok(())
    }

    /// Returns the loaded parts of a program, its interpreter and its libraries, with their paths.
    fn with_libraries(&self, from: &Path, to: &str) -> Result<Vec<(String, Vec<u8>)>, ImageError> {
        // For the interpreter, `/proc/self/exe` would be the interpreter itself.
        let from = &from.canonicalize().map_err(|cause| ImageError::Io { path: from.to_owned(), cause })?;
        let file = read(from)?;
        let elf = Elf::parse(&file).ok_or_else(|| ImageError::NotAProgram { path: from.to_owned() })?;
        let mut files = vec![(to.to_owned(), elf.loaded_part())];
        if let Some(interpreter) = elf.interpreter() {
            let list = tool::output(tool::tool(interpreter).arg("--list").arg(from))
                .map_err(|cause| ImageError::Libraries { path: from.to_owned(), cause })?;
            for path in std::iter::once(interpreter).chain(libraries(&String::from_utf8_lossy(&list))) {
                let file = read(Path::new(path))?;
                let part = Elf::parse(&file).map_or(file.clone(), |elf| elf.loaded_part());
                files.push((path.to_owned(), part));
            }
        }
        Ok(files)
    }

    fn put(&mut self, path: &str, mode: u32, content: Vec<u8>) {
        self.files.insert(path.to_owned(), (mode, content));
    }

    /// Writes the image to a file. Returns its size in bytes.
    pub fn write(&self, path: &Path) -> Result<u64, ImageError> {
        let at = |cause| ImageError::Io { path: path.to_owned(), cause };
        let mut cpio = Cpio::new(BufWriter::new(File::create(path).map_err(at)?));
        for dir in DIRS {
            cpio.dir(dir).map_err(at)?;
        }
        for (path, (mode, content)) in &self.files {
            cpio.file(path.trim_start_matches('/'), *mode, content).map_err(at)?;
        }
        let bytes = cpio.finish().map_err(at)?;
        if bytes > SIZE_MAX {
            return Err(ImageError::TooLarge { bytes });
        }
        Ok(bytes)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, ImageError> {
    std::fs::read(path).map_err(|cause| ImageError::Io { path: path.to_owned(), cause })
}

/// Returns the paths in the interpreter's list, whose lines are `NAME => PATH (ADDRESS)`.
fn libraries(list: &str) -> impl Iterator<Item = &str> {
    list.lines().filter_map(|line| {
        let path = line.split_once("=> ")?.1.split(" (").next()?;
        path.starts_with('/').then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_comes_with_what_it_is_linked_with() {
        let mut image = Image::new(Path::new("/proc/self/exe")).unwrap();
        image.modules(vec![Module { name: "xfs".to_owned(), content: b"module".to_vec() }]);
        image.file(JOB, "{}");
        let names: Vec<&str> = image.files.keys().map(String::as_str).collect();
        assert!(names.contains(&"/init") && names.contains(&"/job.json") && names.contains(&"/modules/000-xfs.ko"));
        let elf = read(Path::new("/proc/self/exe")).unwrap();
        let interpreter = Elf::parse(&elf).unwrap().interpreter();
        assert_eq!(interpreter.is_some(), names.iter().any(|name| name.contains("libc.so")), "{names:?}");
        assert!(matches!(image.program(Path::new("/etc/passwd"), "/x"), Err(ImageError::NotAProgram { .. })));
        image.tool(&tool::path_of("sh").unwrap(), "sh").unwrap();
        let has = |name: &str| image.files.contains_key(name);
        assert!(has("/tools/sh") && has("/tools/ld.so") && has("/tools/lib/libc.so.6"));
    }

    #[test]
    fn libraries_are_the_files_in_the_interpreters_list() {
        let list = "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/libc.so.6 (0x2)\n\tlibx.so => not found\n\t/lib64/ld.so (0x3)\n";
        assert_eq!(libraries(list).collect::<Vec<_>>(), ["/lib/libc.so.6"]);
    }
}
