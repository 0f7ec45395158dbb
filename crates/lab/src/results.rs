// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cached results: recordings of runs, by the content of everything they depend on (scenario, kernel, the
//! program in the guest, how it was run). The scenario's expectations are not part of the key: a changed
//! expectation is checked on the cached recording. Entries appear by rename.

use crate::cache::{Cache, CacheError};
use crate::run::Order;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Recordings of earlier runs.
#[derive(Debug)]
pub struct Results {
    dir: PathBuf,
    program: u64,
}

impl Results {
    /// Opens the results of runs with this program in the guest.
    pub fn of(cache: &Cache, program: &Path) -> Result<Results, CacheError> {
        let program = content(program).map_err(CacheError::at(program))?;
        Ok(Results { dir: cache.dir("results")?, program })
    }

    /// Returns the path of a run's recording, whether it exists or not. `repeat` distinguishes repeats.
    pub fn place(&self, order: &Order<'_>, repeat: u32) -> Result<PathBuf, serde_json::Error> {
        let mut scenario = order.scenario.clone();
        scenario.expect = Default::default();
        scenario.about = None;
        let mut hasher = DefaultHasher::new();
        serde_json::to_string(&scenario)?.hash(&mut hasher);
        (&order.kernel.release, &order.kernel.image, self.program).hash(&mut hasher);
        (format!("{:?}", order.accel), order.every.0, order.trace, repeat).hash(&mut hasher);
        let name = format!("{}-{}-{}", scenario.name, order.variant, order.kernel.version);
        Ok(self.dir.join(format!("{name}-{:016x}.flr", hasher.finish())))
    }

    /// Stores a recording.
    pub fn keep(&self, recording: &Path, place: &Path) -> Result<(), CacheError> {
        let half = tempfile::NamedTempFile::new_in(&self.dir).map_err(CacheError::at(&self.dir))?;
        fs::copy(recording, half.path()).map_err(CacheError::at(half.path()))?;
        half.persist(place).map(drop).map_err(|error| CacheError::at(place)(error.error))
    }
}

fn content(path: &Path) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let mut hasher = DefaultHasher::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            length => hasher.write(buffer.get(..length).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Kernel;
    use crate::qemu::{Accel, Patience};
    use floodline_record::units::Nanos;
    use floodline_record::version::KernelVersion;
    use floodline_scenario::ScenarioFile;
    use std::time::Duration;

    const BASE: &str = "name = \"s\"\nsummary = \"s\"\n[machine]\nmemory = \"1 GiB\"\n[workload.tasks.t]\n";

    #[test]
    fn a_result_is_found_again_by_what_it_depends_on() {
        let home = tempfile::tempdir().unwrap();
        let cache = Cache::at(home.path());
        let program = home.path().join("program");
        fs::write(&program, "one").unwrap();
        let place = |steps: &str, release: &str, repeat: u32| {
            let file = ScenarioFile::parse(&format!("{BASE}{steps}")).unwrap();
            let scenario = file.variants.into_values().next().unwrap();
            let kernel = Kernel {
                release: release.to_owned(),
                version: KernelVersion::new(6, 12, 0),
                image: PathBuf::from("vmlinuz"),
                modules: None,
                origin: String::new(),
            };
            let order = Order {
                scenario: &scenario,
                variant: "default",
                kernel: &kernel,
                program: &program,
                accel: Accel::Tcg,
                every: Nanos(1),
                trace: false,
                patience: Patience { total: Duration::ZERO, silence: Duration::ZERO },
            };
            Results::of(&cache, &program).unwrap().place(&order, repeat).unwrap()
        };
        let sync = "steps = [\"sync\"]";
        let first = place(sync, "6.12", 0);
        assert_eq!(place(sync, "6.12", 0), first);
        assert_eq!(place("steps = [\"sync\"]\n[expect]\nquiet_from = \"warning\"", "6.12", 0), first);
        assert_ne!(place(sync, "6.12", 1), first);
        assert_ne!(place(sync, "6.1", 0), first);
        assert_ne!(place("steps = [\"sync\", \"sync\"]", "6.12", 0), first);
        let recording = home.path().join("r.flr");
        fs::write(&recording, "recording").unwrap();
        Results::of(&cache, &program).unwrap().keep(&recording, &first).unwrap();
        assert_eq!(fs::read(&first).unwrap(), b"recording");
        fs::write(&program, "two").unwrap();
        assert_ne!(place(sync, "6.12", 0), first, "another program");
    }
}
