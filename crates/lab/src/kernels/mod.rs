// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels to run: from a directory, a package file, the host, or the machine's package manager. Unpacked
//! kernels are kept in the cache and found there the next time, without the network. The package manager
//! verifies packages. Nothing is installed.

mod apt;
mod boot_image;
mod config;
mod modules;
pub(crate) mod uncompressed;

pub use crate::apt::{AptError, Fetching};
pub use crate::package::PackageError;
pub use apt::Offer;
pub use modules::{Module, ModuleError, Modules};

use crate::cache::{Cache, CacheError};
use crate::package;
use floodline_record::version::KernelVersion;
use std::io;
use std::path::{Path, PathBuf};

/// A kernel that can be booted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Release, `uname -r`.
    pub release: String,
    /// Upstream version, which Debian's release names do not contain.
    pub version: KernelVersion,
    /// The bootable image.
    pub image: PathBuf,
    /// `lib/modules/RELEASE`, if the kernel has modules.
    pub modules: Option<PathBuf>,
    /// Origin, for display.
    pub origin: String,
}

/// The kernel could not be found or read.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// Neither the cache nor the package lists have the kernel.
    #[error(
        "kernel {wanted:?} was not found: not in the cache, in this machine's package lists, or in the other suites"
    )]
    NotFound {
        /// The kernel that was requested.
        wanted: String,
    },
    /// The file or directory is not a kernel.
    #[error("{path}: {what}")]
    NotAKernel {
        /// The file or directory.
        path: PathBuf,
        /// The defect.
        what: &'static str,
    },
    /// A file operation failed.
    #[error("{path}: {cause}")]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// A package could not be unpacked.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The package manager could not be used.
    #[error(transparent)]
    Apt(#[from] AptError),
    /// The cache could not be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

/// Finds a kernel by the user's argument: `6.12`, `6.12.43`, a release name, `host`, or a path to a package or
/// directory. The newest match wins. If the cache has a match, the package lists are not read. Stops when `is_asked`
/// returns true.
pub fn find(
    cache: &Cache,
    wanted: &str,
    tell: &mut dyn FnMut(&Fetching),
    is_asked: &dyn Fn() -> bool,
) -> Result<Kernel, KernelError> {
    if wanted == "host" {
        return host();
    }
    if wanted.contains('/') || wanted.ends_with(".deb") || wanted.ends_with(".rpm") {
        return of_path(cache, Path::new(wanted), tell, is_asked);
    }
    let fits = |kernel: &Kernel| kernel.release == wanted || fits(kernel.version, wanted);
    if let Some(kernel) = cached(cache)?.into_iter().rfind(fits) {
        return Ok(kernel);
    }
    match apt::look_everywhere(cache, wanted, tell, is_asked)? {
        Some(offer) => fetch(cache, &offer, tell, is_asked),
        None => Err(KernelError::NotFound { wanted: wanted.to_owned() }),
    }
}

/// Returns true if a version is the requested one or belongs to the requested series: `6.1` matches 6.1.x, not 6.12.
fn fits(version: KernelVersion, wanted: &str) -> bool {
    let version = version.to_string();
    version.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Kernels in the cache, oldest version first.
pub fn cached(cache: &Cache) -> Result<Vec<Kernel>, KernelError> {
    let dir = cache.dir("kernels")?;
    let entries = std::fs::read_dir(&dir).map_err(|cause| KernelError::Io { path: dir.clone(), cause })?;
    // Entries that are not kernels are skipped.
    let mut kernels: Vec<Kernel> = entries.flatten().filter_map(|entry| in_tree(&entry.path(), "cache").ok()).collect();
    kernels.sort_by(|a, b| (a.version, &a.release).cmp(&(b.version, &b.release)));
    Ok(kernels)
}

/// Returns the kernel this machine runs, if its image is readable.
pub fn host() -> Result<Kernel, KernelError> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let places = [format!("/boot/vmlinuz-{release}"), format!("/usr/lib/modules/{release}/vmlinuz")].map(PathBuf::from);
    let Some(image) = places.iter().find(|path| path.exists()) else {
        let [path, _] = places;
        return Err(KernelError::NotAKernel { path, what: "the host's kernel image is not there" });
    };
    let modules = PathBuf::from(format!("/lib/modules/{release}"));
    of_image(image, Some(modules).filter(|dir| dir.exists()), "host")
}

/// Returns the kernels in the machine's package lists, newest last. Does not use the network.
pub fn offers(cache: &Cache) -> Result<Vec<Offer>, KernelError> {
    Ok(apt::known_offers(cache)?)
}

/// Reads the lists of the suites beside the machine's own again. Stops when `is_asked` returns true.
pub fn refresh(cache: &Cache, tell: &mut dyn FnMut(&Fetching), is_asked: &dyn Fn() -> bool) -> Result<(), KernelError> {
    Ok(apt::refresh(cache, tell, is_asked)?)
}

fn fetch(
    cache: &Cache,
    offer: &Offer,
    tell: &mut dyn FnMut(&Fetching),
    is_asked: &dyn Fn() -> bool,
) -> Result<Kernel, KernelError> {
    let scratch = cache.scratch()?;
    let packages = offer.download(scratch.path(), tell, is_asked)?;
    tell(&Fetching::Unpack { package: offer.package.clone() });
    let tree = scratch.path().join("tree");
    for package in &packages {
        package::unpack(package, &tree, of_kernel, is_asked)?;
    }
    keep(cache, &tree, &offer.key(), &format!("{} {}", offer.package, offer.suite))
}

fn of_path(
    cache: &Cache,
    path: &Path,
    tell: &mut dyn FnMut(&Fetching),
    is_asked: &dyn Fn() -> bool,
) -> Result<Kernel, KernelError> {
    let at = |cause| KernelError::Io { path: path.to_owned(), cause };
    let metadata = std::fs::metadata(path).map_err(at)?;
    if metadata.is_dir() {
        return in_tree(path, "directory");
    }
    if !package::is_package(path) {
        return of_image(path, None, "image file");
    }
    let key = format!("file-{:016x}", package::content_hash(path).map_err(at)?);
    let kept = cache.dir("kernels")?.join(&key);
    if let Ok(kernel) = in_tree(&kept, "cache") {
        return Ok(kernel);
    }
    tell(&Fetching::Unpack { package: path.display().to_string() });
    let scratch = cache.scratch()?;
    let tree = scratch.path().join("tree");
    package::unpack(path, &tree, of_kernel, is_asked)?;
    keep(cache, &tree, &key, "package file")
}

/// Selects the needed files of a kernel's package: the image and the modules.
fn of_kernel(path: &Path) -> Option<PathBuf> {
    let is_needed = ["boot", "lib/modules", "usr/lib/modules"].iter().any(|dir| path.starts_with(dir));
    is_needed.then(|| path.to_owned())
}

/// Moves an unpacked tree into the cache. If another process was faster, its tree has the same content and is used.
fn keep(cache: &Cache, tree: &Path, key: &str, origin: &str) -> Result<Kernel, KernelError> {
    in_tree(tree, origin)?;
    let kept = cache.dir("kernels")?.join(key);
    match std::fs::rename(tree, &kept) {
        Err(cause) if !kept.exists() => return Err(KernelError::Io { path: kept, cause }),
        _ => {}
    }
    in_tree(&kept, origin)
}

/// Returns the kernel in a tree: the layout of a package, or one directory with image and modules.
fn in_tree(tree: &Path, origin: &str) -> Result<Kernel, KernelError> {
    let lists = [tree.join("lib/modules"), tree.join("usr/lib/modules"), tree.to_owned()];
    let modules = lists.iter().find_map(|list| {
        let dirs = std::fs::read_dir(list).ok()?.flatten().map(|entry| entry.path());
        dirs.filter(|dir| dir.join("kernel").is_dir()).max()
    });
    let mut images: Vec<PathBuf> = [Some(tree.join("boot")), Some(tree.to_owned()), modules.clone()]
        .into_iter()
        .flatten()
        .filter_map(|dir| std::fs::read_dir(dir).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz")))
        .filter(|path| path.is_file())
        .collect();
    images.sort();
    let Some(image) = images.last() else {
        return Err(KernelError::NotAKernel { path: tree.to_owned(), what: "no vmlinuz in it" });
    };
    of_image(image, modules, origin)
}

fn of_image(image: &Path, modules: Option<PathBuf>, origin: &str) -> Result<Kernel, KernelError> {
    let text = boot_image::read(image).map_err(|cause| KernelError::Io { path: image.to_owned(), cause })?;
    let not_a_kernel = |what| KernelError::NotAKernel { path: image.to_owned(), what };
    let text = text.ok_or_else(|| not_a_kernel("not a Linux x86 boot image"))?;
    let release = text.split(' ').next().unwrap_or(&text).to_owned();
    let version = boot_image::upstream(&text).ok_or_else(|| not_a_kernel("the image names no version"))?;
    let modules = modules.filter(|dir| dir.file_name().is_none_or(|name| name.to_string_lossy() == *release));
    Ok(Kernel { release, version, image: image.to_owned(), modules, origin: origin.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_its_own_versions_and_no_others() {
        let check = |version: &str, wanted: &str, expect: bool| {
            assert_eq!(fits(version.parse().unwrap(), wanted), expect, "{version} {wanted}");
        };
        check("6.1.192", "6.1", true);
        check("6.12.43", "6.1", false);
        check("6.12.43", "6.12.43", true);
        check("6.12.43", "6.12.4", false);
        check("6.12.43", "6", true);
        check("6.12.43", "", false);
    }

    #[test]
    fn what_is_no_kernel_is_refused_with_its_path() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().join("cache"));
        let check = |wanted: &Path, expect: &str| {
            let error = find(&cache, wanted.to_str().unwrap(), &mut |_| {}, &|| false).unwrap_err().to_string();
            assert!(error.ends_with(expect) && error.contains(wanted.to_str().unwrap()), "{error}");
        };
        let image = dir.path().join("vmlinuz-9.9.9");
        std::fs::write(&image, "#!/bin/sh").unwrap();
        check(&image, "not a Linux x86 boot image");
        let empty = dir.path().join("empty");
        std::fs::create_dir(&empty).unwrap();
        check(&empty, "no vmlinuz in it");
        check(&dir.path().join("missing"), "No such file or directory (os error 2)");
    }

    #[test]
    fn a_corrupt_package_is_an_error_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().join("cache"));
        let package = dir.path().join("linux-image.deb");
        std::fs::write(&package, "!<arch>\ngarbage").unwrap();
        let error = find(&cache, package.to_str().unwrap(), &mut |_| {}, &|| false).unwrap_err().to_string();
        assert!(error.contains("dpkg-deb"), "{error}");
        assert_eq!(std::fs::read_dir(cache.dir("kernels").unwrap()).unwrap().count(), 0);
        assert_eq!(std::fs::read_dir(cache.dir("runs").unwrap()).unwrap().count(), 0);
    }
}
