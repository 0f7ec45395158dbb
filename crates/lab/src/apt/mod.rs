// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packages of Debian and its derivatives through this machine's own apt: its sources, mirror, keys and
//! proxy. Reads lists and downloads packages. It installs nothing and needs no root. apt verifies lists and
//! packages, and nothing here turns that off. The callers choose the packages.

mod mirror;

pub(crate) use mirror::Mirror;

use crate::cache::{Cache, CacheError};
use crate::tool::{self, ToolError};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

/// The package manager could not be used.
#[derive(Debug, thiserror::Error)]
pub enum AptError {
    /// apt has no source of a supported distribution.
    #[error(
        "apt has no binary package source with a main component, which the lab needs (add one, then run apt update)"
    )]
    NoSource,
    /// The package is not in apt's lists.
    #[error("package {package:?} is not in this machine's package lists (run apt update)")]
    NoPackage {
        /// Its name.
        package: String,
    },
    /// The caller interrupted the download.
    #[error("interrupted while fetching {package}")]
    Interrupted {
        /// The first package, or the package lists being read.
        package: String,
    },
    /// apt failed.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The private directories could not be made.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A file could not be written.
    #[error("{path}: {cause}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
}

impl AptError {
    /// Converts the error of a program that fetched packages or lists.
    fn while_fetching(error: ToolError, what: impl FnOnce() -> String) -> AptError {
        match error {
            ToolError::Interrupted { .. } => AptError::Interrupted { package: what() },
            error => AptError::Tool(error),
        }
    }
}

/// Progress of fetching packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetching {
    /// Reading the package lists of a suite.
    Lists {
        /// The suite.
        suite: String,
    },
    /// Looking up the packages' dependencies.
    Needs,
    /// Downloading packages.
    Download {
        /// The first package.
        package: String,
        /// Bytes downloaded.
        done_bytes: u64,
        /// Bytes in all.
        total_bytes: u64,
    },
    /// Unpacking.
    Unpack {
        /// The package.
        package: String,
    },
}

impl fmt::Display for Fetching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fetching::Lists { suite } => write!(f, "reading the package lists of {suite}"),
            Fetching::Needs => f.write_str("looking up packages"),
            Fetching::Download { package, done_bytes, total_bytes } => {
                write!(f, "fetching {package}: {} of {} MiB", done_bytes >> 20, total_bytes >> 20)
            }
            Fetching::Unpack { package } => write!(f, "unpacking {package}"),
        }
    }
}

/// One version of a package, as listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Name.
    pub(crate) package: String,
    /// Version.
    pub(crate) version: String,
    /// Checksum.
    pub(crate) sha256: String,
    /// Bytes to download.
    pub(crate) size_bytes: u64,
    /// `Pre-Depends` and `Depends`.
    pub(crate) depends: String,
}

/// Name of the machine's own sources.
const OWN: &str = "this machine's sources";

/// Private lists older than this are read again before a download.
const LISTS_STAY_FRESH: Duration = Duration::from_secs(24 * 3600);

/// One set of package lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// Suite, or [`OWN`].
    pub(crate) name: String,
    /// Private configuration; `None` for the machine's own.
    config: Option<PathBuf>,
    /// apt's binary cache of the lists. Many machines keep no such file, containers among them. Without it, every
    /// `apt-cache` call takes a second of CPU.
    packed: PathBuf,
}

impl Source {
    /// Returns the machine's own lists.
    pub(crate) fn own(cache: &Cache) -> Result<Source, CacheError> {
        Ok(Source { name: OWN.to_owned(), config: None, packed: cache.dir("apt")?.join("own.bin") })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = tool::bound(program);
        if let Some(config) = &self.config {
            command.env("APT_CONFIG", config);
        }
        command
    }

    /// An `apt-cache` command on the lists. The command line overrides the machine's own configuration.
    fn ask(&self, question: &str) -> Command {
        let mut command = self.command("apt-cache");
        command.arg(question).arg("-o").arg(format!("Dir::Cache::pkgcache={}", self.packed.display()));
        command.args(["-o", "Dir::Cache::srcpkgcache="]);
        command
    }

    /// Returns the time of the last update, or `None` if the lists were never read.
    pub(crate) fn updated(&self) -> Option<SystemTime> {
        let dir = self.config.as_ref()?.parent()?;
        let mut files = std::fs::read_dir(dir.join("lists")).ok()?.flatten().filter(|entry| entry.path().is_file());
        let has_lists = files.any(|entry| entry.file_name().to_string_lossy().contains("Packages"));
        dir.join("updated").metadata().ok().filter(|_| has_lists)?.modified().ok()
    }

    /// Returns true if the lists have to be read again.
    pub(crate) fn is_stale(&self) -> bool {
        self.updated().is_none_or(|at| at.elapsed().is_ok_and(|age| age > LISTS_STAY_FRESH))
    }

    /// Reads the lists. Stops when `is_asked` returns true.
    pub(crate) fn update(&self, is_asked: &dyn Fn() -> bool) -> Result<(), AptError> {
        let mut update = self.command("apt-get");
        tool::finish(update.args(["update", "--quiet", "--error-on=any"]), is_asked)
            .map_err(|error| AptError::while_fetching(error, || format!("the package lists of {}", self.name)))?;
        if let Some(dir) = self.config.as_ref().and_then(|config| config.parent()) {
            let stamp = dir.join("updated");
            std::fs::write(&stamp, "").map_err(|cause| AptError::Io { path: stamp, cause })?;
        }
        Ok(())
    }

    /// Returns the names of packages that match a regular expression.
    pub(crate) fn search(&self, pattern: &str) -> Result<Vec<String>, AptError> {
        let names = tool::output(self.ask("search").args(["--names-only", pattern]))?;
        let names = String::from_utf8_lossy(&names);
        Ok(names.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect())
    }

    /// Returns the newest version of packages, by name. Names that are not in the lists are left out.
    pub(crate) fn show<'a>(
        &self,
        names: impl IntoIterator<Item = &'a String>,
    ) -> Result<BTreeMap<String, Part>, AptError> {
        let mut command = self.ask("show");
        command.args(["--no-all-versions", "--"]).args(names);
        match tool::output(&mut command) {
            Ok(shown) => Ok(parts_in(&String::from_utf8_lossy(&shown))),
            // apt-cache fails if the lists have none of the names.
            Err(ToolError::Failed { .. }) => Ok(BTreeMap::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the packages, the packages of the same source that they require, and the libraries of all of these.
    pub(crate) fn with_libraries(&self, packages: &BTreeSet<String>) -> Result<Vec<Part>, AptError> {
        let mut parts: BTreeMap<String, Part> = BTreeMap::new();
        // Each name is looked up once, also a name without a package, such as that of a virtual package.
        let mut asked = BTreeSet::new();
        let mut wanted = packages.clone();
        while !wanted.is_empty() {
            parts.extend(self.show(&wanted)?);
            asked.append(&mut wanted);
            let names = parts.values().flat_map(|part| needed(&part.depends));
            wanted = names.filter(|name| !asked.contains(name)).collect();
        }
        match packages.iter().find(|package| !parts.contains_key(*package)) {
            None => Ok(parts.into_values().collect()),
            Some(package) => Err(AptError::NoPackage { package: package.clone() }),
        }
    }

    /// Downloads packages into a directory and returns their files. Stops when `is_asked` returns true.
    pub(crate) fn download(
        &self,
        parts: &[Part],
        into: &Path,
        tell: &mut dyn FnMut(&Fetching),
        is_asked: &dyn Fn() -> bool,
    ) -> Result<Vec<PathBuf>, AptError> {
        let package = parts.first().map(|part| part.package.clone()).unwrap_or_default();
        let mut command = self.command("apt-get");
        command.args(["download", "--quiet"]);
        command.args(parts.iter().map(|part| format!("{}={}", part.package, part.version)));
        let total_bytes = download_bytes(parts);
        tool::finish(command.current_dir(into), || {
            let done_bytes = downloaded(into).iter().map(|(_, size)| size).sum();
            tell(&Fetching::Download { package: package.clone(), done_bytes, total_bytes });
            is_asked()
        })
        .map_err(|error| AptError::while_fetching(error, || package.clone()))?;
        Ok(downloaded(into).into_iter().map(|(path, _)| path).collect())
    }
}

/// Returns the total download size of the packages.
pub(crate) fn download_bytes(parts: &[Part]) -> u64 {
    parts.iter().map(|part| part.size_bytes).fold(0, u64::saturating_add)
}

/// Reads the stanzas of `apt-cache show`.
pub(crate) fn parts_in(shown: &str) -> BTreeMap<String, Part> {
    let part = |stanza: &str| -> Option<Part> {
        let fields: BTreeMap<&str, &str> = stanza.lines().filter_map(|line| line.split_once(": ")).collect();
        let depends = ["Pre-Depends", "Depends"].iter().filter_map(|name| fields.get(name).copied());
        Some(Part {
            package: (*fields.get("Package")?).to_owned(),
            version: (*fields.get("Version")?).to_owned(),
            sha256: (*fields.get("SHA256")?).to_owned(),
            size_bytes: fields.get("Size")?.parse().ok()?,
            depends: depends.collect::<Vec<_>>().join(", "),
        })
    };
    shown.split("\n\n").filter_map(part).map(|part| (part.package.clone(), part)).collect()
}

/// Returns the dependencies that contain code a package's programs are linked with. These are libraries, by
/// Debian's naming, and packages of the same source, which are required in exactly one version. Of alternatives,
/// the first is taken.
fn needed(depends: &str) -> BTreeSet<String> {
    let first = |dependency: &str| -> Option<String> {
        let dependency = dependency.split('|').next()?.trim();
        let name = dependency.split([' ', ':', '(']).next().filter(|name| !name.is_empty())?;
        let is_library = name.starts_with("lib") || name == "zlib1g";
        (is_library || dependency.contains("(= ")).then(|| name.to_owned())
    };
    depends.split(',').filter_map(first).collect()
}

fn downloaded(dir: &Path) -> Vec<(PathBuf, u64)> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let packages =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "deb"));
    packages.filter_map(|path| Some((path.metadata().ok()?.len(), path))).map(|(size, path)| (path, size)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_parts_of_the_same_source_are_needed_and_others_are_not() {
        let check = |depends: &str, expect: &[&str]| {
            assert_eq!(needed(depends).iter().map(String::as_str).collect::<Vec<_>>(), expect, "{depends}");
        };
        check("lsb-base (>= 3.2-14), redis-tools (= 5:7.0.15-1), init-system-helpers (>= 1.54~)", &["redis-tools"]);
        check("libc6 (>= 2.34), zlib1g:any (>= 1), liba1 | libb1, adduser", &["liba1", "libc6", "zlib1g"]);
        check("", &[]);
        check(",,|,(= 1)", &[]);
    }

    #[test]
    fn any_text_has_packages_or_has_none() {
        bolero::check!().for_each(|bytes: &[u8]| {
            for part in parts_in(&String::from_utf8_lossy(bytes)).values() {
                assert!(needed(&part.depends).iter().all(|name| !name.is_empty()));
            }
        });
    }
}
