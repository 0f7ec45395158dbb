// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab's cache of kernels, package lists and probe results, and the temporary directories of runs. All
//! are below one directory of the user. Several labs may use it at once: entries appear by rename, and a
//! run's directory is held by a lock.

use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The lab's directory.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// The cache could not be used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The environment does not define a directory for it.
    #[error("no place for the cache: neither XDG_CACHE_HOME nor HOME is set")]
    NoPlace,
    /// A file operation failed.
    #[error("{path}: {cause}")]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
}

impl CacheError {
    /// For `map_err`: the error of an operation on a path.
    pub fn at(path: &Path) -> impl FnOnce(io::Error) -> CacheError + '_ {
        move |cause| CacheError::Io { path: path.to_owned(), cause }
    }
}

/// A directory of one run. It is deleted with its content when this is dropped.
#[derive(Debug)]
pub struct RunDir {
    dir: tempfile::TempDir,
    // Held during the run, so that no other process sweeps the directory as a left-over.
    _lock: File,
}

impl RunDir {
    /// Returns its path.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Name of the file in a run's directory that is locked while the run lives.
const LOCK: &str = "lock";

impl Cache {
    /// Uses the user's cache directory, `$XDG_CACHE_HOME/floodline` or `~/.cache/floodline`.
    pub fn of_user() -> Result<Cache, CacheError> {
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
        Ok(Cache::at(base.ok_or(CacheError::NoPlace)?.join("floodline")))
    }

    /// Uses a directory of the caller's choice.
    pub fn at(root: impl Into<PathBuf>) -> Cache {
        Cache { root: root.into() }
    }

    /// Returns a directory of the cache. Creates it if it is missing.
    pub fn dir(&self, name: &str) -> Result<PathBuf, CacheError> {
        let path = self.root.join(name);
        fs::create_dir_all(&path).map_err(CacheError::at(&path))?;
        Ok(path)
    }

    /// Creates a directory on the same filesystem, deleted when dropped.
    pub fn scratch(&self) -> Result<RunDir, CacheError> {
        let runs = self.dir("runs")?;
        sweep(&runs);
        let dir = tempfile::Builder::new().prefix("run-").tempdir_in(&runs).map_err(CacheError::at(&runs))?;
        let lock = File::create(dir.path().join(LOCK)).map_err(CacheError::at(dir.path()))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|errno| CacheError::Io { path: dir.path().to_owned(), cause: errno.into() })?;
        Ok(RunDir { dir, _lock: lock })
    }
}

/// Prefix of directories that a sweep removes. If a sweep is killed, the next one removes the rest.
const GONE: &str = "gone-";
/// Age from which a directory without a lock belongs to a killed process: a run locks its own within milliseconds.
const UNLOCKED_MAX: Duration = Duration::from_secs(60);

/// Removes the directories of killed runs.
fn sweep(runs: &Path) {
    let Ok(entries) = fs::read_dir(runs) else { return };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        // Held until the directory is renamed.
        let lock = File::open(path.join(LOCK));
        let is_left = match &lock {
            Ok(lock) => flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
            Err(_) => is_old(&path),
        };
        // Each step fails if another sweep was faster.
        if name.starts_with(GONE) {
            let _ = fs::remove_dir_all(&path);
        } else if is_left {
            let gone = runs.join(format!("{GONE}{name}"));
            let _ = fs::rename(&path, &gone).and_then(|()| fs::remove_dir_all(&gone));
        }
    }
}

/// Returns true if a directory has not changed for longer than a run takes to lock its own.
fn is_old(path: &Path) -> bool {
    let changed = fs::metadata(path).and_then(|about| about.modified()).ok();
    changed.and_then(|changed| changed.elapsed().ok()).is_some_and(|age| age > UNLOCKED_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_sweep_or_start_left_is_swept() {
        let home = tempfile::tempdir().unwrap();
        let made = |name: &str, age: Duration| {
            let path = home.path().join(name);
            fs::create_dir_all(path.join("within")).unwrap();
            let then = std::time::SystemTime::now() - age;
            File::open(&path).unwrap().set_modified(then).unwrap();
            path
        };
        let (half, old) = (made("gone-run-a", Duration::ZERO), made("run-b", UNLOCKED_MAX + Duration::from_secs(1)));
        let fresh = made("run-c", Duration::ZERO);
        sweep(home.path());
        assert!(!half.exists() && !old.exists(), "left by kills");
        assert!(fresh.exists(), "a run is just making this one");
    }

    #[test]
    fn a_run_directory_goes_with_its_run_and_left_overs_are_swept() {
        let home = tempfile::tempdir().unwrap();
        let cache = Cache::at(home.path());
        let left_over = home.path().join("runs/run-killed");
        fs::create_dir_all(&left_over).unwrap();
        fs::write(left_over.join(LOCK), "").unwrap();
        let first = cache.scratch().unwrap();
        assert!(!left_over.exists());
        let second = cache.scratch().unwrap();
        assert!(first.path().exists(), "a living run is no left-over");
        let path = second.path().to_owned();
        drop(second);
        assert!(!path.exists());
    }
}
