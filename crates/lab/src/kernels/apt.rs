// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds kernel packages in the machine's own lists and in other suites of the same mirror. Handles Debian's and
//! Ubuntu's naming and splitting of kernel packages. Fetching is in [`crate::apt`].

use super::fits;
use crate::apt::{AptError, Fetching, Mirror, Part, Source, download_bytes};
use crate::cache::Cache;
use floodline_record::version::KernelVersion;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A kernel that apt can fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Package that contains the image or depends on the one that does.
    pub package: String,
    /// Version of the package.
    pub package_version: String,
    /// Upstream version of the kernel.
    pub version: KernelVersion,
    /// Its suite; `this machine's sources` for the machine's own.
    pub suite: String,
    /// Bytes of the packages to download.
    pub download_bytes: u64,
    /// All packages to fetch, with apt's checksums.
    parts: Vec<Part>,
    source: Source,
}

/// A suite beside the machine's own, with the kernel series expected there: a hint for the search order.
struct Suite {
    name: &'static str,
    origin: &'static str,
    series: &'static [&'static str],
}

const SUITES: &[Suite] = &[
    Suite { name: "bullseye", origin: "Debian", series: &["5.10"] },
    Suite { name: "bookworm", origin: "Debian", series: &["6.1"] },
    Suite { name: "bookworm-backports", origin: "Debian", series: &["6.12"] },
    Suite { name: "trixie", origin: "Debian", series: &["6.12"] },
    Suite { name: "sid", origin: "Debian", series: &["7"] },
    Suite { name: "jammy-updates", origin: "Ubuntu", series: &["5.15"] },
    Suite { name: "noble-updates", origin: "Ubuntu", series: &["6.8"] },
];

/// Supported kernel flavours, the smaller one first. Both contain everything a guest needs.
const FLAVOURS: &[&str] = &["cloud-amd64", "generic"];

/// Finds the newest kernel of a version or series in the machine's own lists, then in other suites, whose lists are
/// read as needed.
pub(super) fn look_everywhere(
    cache: &Cache,
    wanted: &str,
    tell: &mut dyn FnMut(&Fetching),
    is_asked: &dyn Fn() -> bool,
) -> Result<Option<Offer>, AptError> {
    let newest = |offers: Vec<Offer>| {
        let fitting = offers
            .into_iter()
            .filter(|offer| fits(offer.version, wanted) || offer.package.strip_prefix("linux-image-") == Some(wanted));
        fitting.max_by_key(|offer| offer.version)
    };
    if let Some(offer) = newest(offers_of(&Source::own(cache)?)?) {
        return Ok(Some(offer));
    }
    let mirror = Mirror::of_this_machine()?;
    let mut suites: Vec<&Suite> = SUITES.iter().filter(|suite| suite.origin == mirror.origin).collect();
    suites.sort_by_key(|suite| !suite.series.iter().any(|series| is_series(wanted, series)));
    for suite in suites {
        let source = mirror.private_source(cache, suite.name)?;
        if source.is_stale() && !update(&source, tell, is_asked)? {
            continue;
        }
        if let Some(offer) = newest(offers_of(&source)?) {
            return Ok(Some(offer));
        }
    }
    Ok(None)
}

/// Returns the kernels in all lists that are on this machine.
pub(super) fn known_offers(cache: &Cache) -> Result<Vec<Offer>, AptError> {
    let mut offers = offers_of(&Source::own(cache)?)?;
    let mirror = Mirror::of_this_machine()?;
    for suite in SUITES.iter().filter(|suite| suite.origin == mirror.origin) {
        let source = mirror.private_source(cache, suite.name)?;
        if source.updated().is_some() {
            offers.extend(offers_of(&source)?);
        }
    }
    offers.sort_by(|a, b| (a.version, &a.package).cmp(&(b.version, &b.package)));
    offers.dedup_by(|later, first| later.parts == first.parts);
    Ok(offers)
}

/// Reads the lists of all other suites.
pub(super) fn refresh(
    cache: &Cache,
    tell: &mut dyn FnMut(&Fetching),
    is_asked: &dyn Fn() -> bool,
) -> Result<(), AptError> {
    let mirror = Mirror::of_this_machine()?;
    for suite in SUITES.iter().filter(|suite| suite.origin == mirror.origin) {
        update(&mirror.private_source(cache, suite.name)?, tell, is_asked)?;
    }
    Ok(())
}

/// Reads the lists of a suite. Returns false if this mirror no longer carries the suite, so that the search continues
/// with the others.
fn update(source: &Source, tell: &mut dyn FnMut(&Fetching), is_asked: &dyn Fn() -> bool) -> Result<bool, AptError> {
    tell(&Fetching::Lists { suite: source.name.clone() });
    match source.update(is_asked) {
        Err(error @ AptError::Interrupted { .. }) => Err(error),
        ended => Ok(ended.is_ok()),
    }
}

fn is_series(wanted: &str, series: &str) -> bool {
    wanted.strip_prefix(series).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns the kernels in the lists of a source.
fn offers_of(source: &Source) -> Result<Vec<Offer>, AptError> {
    for flavour in FLAVOURS {
        let names = source.search(&format!("^linux-(image|binary|modules)-[0-9].*-{flavour}$"))?;
        if !names.is_empty() {
            return Ok(offers_in(&source.show(&names)?, source));
        }
    }
    Ok(Vec::new())
}

fn offers_in(parts: &BTreeMap<String, Part>, source: &Source) -> Vec<Offer> {
    let offer = |image: &Part| -> Option<Offer> {
        image.package.strip_prefix("linux-image-")?;
        let version = image.version.rsplit(':').next().unwrap_or(&image.version).parse().ok()?;
        // Since 7.0, Debian's image package only depends on one package with the image and one with the modules.
        let pulled_in = image.depends.split(',').filter_map(|dependency| {
            let name = dependency.trim().split([' ', ':']).next()?;
            ["linux-binary-", "linux-modules-"].iter().any(|start| name.starts_with(start)).then(|| parts.get(name))?
        });
        let all: Vec<Part> = std::iter::once(image).chain(pulled_in).cloned().collect();
        Some(Offer {
            package: image.package.clone(),
            package_version: image.version.clone(),
            version,
            suite: source.name.clone(),
            download_bytes: download_bytes(&all),
            parts: all,
            source: source.clone(),
        })
    };
    parts.values().filter_map(offer).collect()
}

impl Offer {
    /// Returns the name in the cache, made of the packages' checksums.
    pub(super) fn key(&self) -> String {
        let sums: Vec<&str> = self.parts.iter().map(|part| part.sha256.get(..12).unwrap_or("")).collect();
        format!("{}-{}", self.version, sums.join("-"))
    }

    /// Fetches the packages into a directory and returns their files.
    pub(super) fn download(
        &self,
        into: &Path,
        tell: &mut dyn FnMut(&Fetching),
        is_asked: &dyn Fn() -> bool,
    ) -> Result<Vec<PathBuf>, AptError> {
        self.source.download(&self.parts, into, tell, is_asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apt::parts_in;

    const SHOWN: &str = "\
Package: linux-image-7.2.13+deb14-cloud-amd64
Version: 7.2.13-1
Depends: dracut | initramfs-tools (>= 0.120), linux-base-7.2.13+deb14-cloud-amd64 (= 7.2.13-1), linux-binary-7.2.13+deb14-cloud-amd64 (= 7.2.13-1), linux-modules-7.2.13+deb14-cloud-amd64 (= 7.2.13-1)
Size: 1916
SHA256: 100ec8efc7e14271719aee6e50424ad2f92c5573723bb33134c391c4f4fe5b7b

Package: linux-binary-7.2.13+deb14-cloud-amd64
Version: 7.2.13-1
Size: 13717736
SHA256: aaaaaaaaaaaaaaaa

Package: linux-modules-7.2.13+deb14-cloud-amd64
Version: 7.2.13-1
Size: 23451956
SHA256: bbbbbbbbbbbbbbbb

Package: linux-image-6.1.0-56-cloud-amd64
Version: 6.1.192-2
Depends: kmod
Size: 26713492
SHA256: cccccccccccccccc

Package: linux-image-broken
Version: none
";

    fn own() -> Source {
        let home = tempfile::tempdir().unwrap();
        Source::own(&Cache::at(home.path())).unwrap()
    }

    #[test]
    fn an_image_comes_with_the_packages_that_hold_it() {
        let offers = offers_in(&parts_in(SHOWN), &own());
        let lines: Vec<String> = offers
            .iter()
            .map(|offer| format!("{} {} {} {}", offer.version, offer.parts.len(), offer.download_bytes, offer.key()))
            .collect();
        assert_eq!(
            lines,
            [
                "6.1.192 1 26713492 6.1.192-cccccccccccc",
                "7.2.13 3 37171608 7.2.13-100ec8efc7e1-aaaaaaaaaaaa-bbbbbbbbbbbb",
            ]
        );
    }

    #[test]
    fn any_text_has_offers_or_has_none() {
        let own = own();
        bolero::check!().for_each(|bytes: &[u8]| {
            offers_in(&parts_in(&String::from_utf8_lossy(bytes)), &own);
        });
    }
}
