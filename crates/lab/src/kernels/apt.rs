// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels of Debian and its children, through this machine's own apt: its sources, its mirror, its keys,
//! its proxy. Other suites of the same mirror are read with a private configuration (own lists, cache
//! and state below the lab's cache), so the machine's apt never learns of them and no root is needed.
//! apt verifies lists and packages; nothing here turns that off.

use super::{Fetching, fits};
use crate::cache::{Cache, CacheError};
use crate::tool::{self, ToolError};
use floodline_core::kernel::KernelVersion;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

/// The package manager could not be used.
#[derive(Debug, thiserror::Error)]
pub enum AptError {
    /// apt has no source of a distribution whose kernels we know.
    #[error(
        "apt has no binary package source with a main component; the lab takes kernels from there (run apt update)"
    )]
    NoSource,
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

/// A kernel that apt can fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Package that has or pulls in the image.
    pub package: String,
    /// Version of the package.
    pub package_version: String,
    /// Upstream version of the kernel.
    pub version: KernelVersion,
    /// Suite it is in; `this machine's sources` for the machine's own.
    pub suite: String,
    /// Bytes of the packages to download.
    pub download_bytes: u64,
    /// All packages to fetch, with their checksums as apt has them.
    parts: Vec<Part>,
    source: Source,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    package: String,
    version: String,
    sha256: String,
    size_bytes: u64,
}

/// Suites beside the machine's own, and the series one hopes to find there: a hint of where to look first.
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

/// Flavours we boot, the smaller one first: everything a guest needs is in both.
const FLAVOURS: &[&str] = &["cloud-amd64", "generic"];

/// Name for the machine's own sources.
const OWN: &str = "this machine's sources";

/// Private lists older than this are read again before something is fetched with them.
const LISTS_STAY_FRESH: Duration = Duration::from_secs(24 * 3600);

/// One set of package lists.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Source {
    /// Suite, or [`OWN`].
    name: String,
    /// Private configuration; `None` is the machine's own.
    config: Option<PathBuf>,
}

/// Finds the newest kernel of a version or series: in the machine's own lists, then in other suites,
/// whose lists are read as needed.
pub(super) fn look_everywhere(
    cache: &Cache,
    wanted: &str,
    tell: &mut dyn FnMut(&Fetching),
) -> Result<Option<Offer>, AptError> {
    let newest = |offers: Vec<Offer>| {
        let fitting = offers
            .into_iter()
            .filter(|offer| fits(offer.version, wanted) || offer.package.strip_prefix("linux-image-") == Some(wanted));
        fitting.max_by_key(|offer| offer.version)
    };
    let own = Source { name: OWN.to_owned(), config: None };
    if let Some(offer) = newest(own.offers()?) {
        return Ok(Some(offer));
    }
    let mirror = Mirror::of_this_machine()?;
    let mut suites: Vec<&Suite> = SUITES.iter().filter(|suite| suite.origin == mirror.origin).collect();
    suites.sort_by_key(|suite| !suite.series.iter().any(|series| is_series(wanted, series)));
    for suite in suites {
        let source = mirror.private_source(cache, suite.name)?;
        if source.is_stale() {
            tell(&Fetching::Lists { suite: suite.name.to_owned() });
            // A suite that this mirror no longer carries has nothing to offer; the others may.
            if source.update().is_err() {
                continue;
            }
        }
        if let Some(offer) = newest(source.offers()?) {
            return Ok(Some(offer));
        }
    }
    Ok(None)
}

/// Everything in lists that are on this machine.
pub(super) fn known_offers(cache: &Cache) -> Result<Vec<Offer>, AptError> {
    let mut offers = Source { name: OWN.to_owned(), config: None }.offers()?;
    let mirror = Mirror::of_this_machine()?;
    for suite in SUITES.iter().filter(|suite| suite.origin == mirror.origin) {
        let source = mirror.private_source(cache, suite.name)?;
        if source.updated().is_some() {
            offers.extend(source.offers()?);
        }
    }
    offers.sort_by(|a, b| (a.version, &a.package).cmp(&(b.version, &b.package)));
    offers.dedup_by(|later, first| later.parts == first.parts);
    Ok(offers)
}

/// Reads the lists of all other suites.
pub(super) fn refresh(cache: &Cache, tell: &mut dyn FnMut(&Fetching)) -> Result<(), AptError> {
    let mirror = Mirror::of_this_machine()?;
    for suite in SUITES.iter().filter(|suite| suite.origin == mirror.origin) {
        tell(&Fetching::Lists { suite: suite.name.to_owned() });
        // As above: one suite that is gone is no reason to miss the others.
        let _ = mirror.private_source(cache, suite.name)?.update();
    }
    Ok(())
}

fn is_series(wanted: &str, series: &str) -> bool {
    wanted.strip_prefix(series).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Where the machine's own sources take packages from.
#[derive(Debug, PartialEq, Eq)]
struct Mirror {
    origin: String,
    uri: String,
    signed_by: Option<String>,
}

impl Mirror {
    fn of_this_machine() -> Result<Mirror, AptError> {
        let format = "$(ORIGIN)\t$(LABEL)\t$(COMPONENT)\t$(REPO_URI)\t$(SOURCESENTRY)";
        let targets =
            tool::output(tool::tool("apt-get").args(["indextargets", "--format", format, "Created-By: Packages"]))?;
        let read = |path: &str| std::fs::read_to_string(path).ok();
        Mirror::parse(&String::from_utf8_lossy(&targets), read).ok_or(AptError::NoSource)
    }

    /// The first source of a distribution's main archive. Security archives have another label.
    fn parse(targets: &str, read: impl Fn(&str) -> Option<String>) -> Option<Mirror> {
        targets.lines().find_map(|line| {
            let [origin, label, component, uri, entry] = line.split('\t').collect::<Vec<_>>().try_into().ok()?;
            let known = SUITES.iter().any(|suite| suite.origin == origin) && label == origin && component == "main";
            if !known {
                return None;
            }
            let signed_by = entry.rsplit_once(':').and_then(|(file, line)| signed_by(&read(file)?, line.parse().ok()?));
            Some(Mirror { origin: origin.to_owned(), uri: uri.to_owned(), signed_by })
        })
    }

    fn private_source(&self, cache: &Cache, suite: &str) -> Result<Source, AptError> {
        let dir = cache.dir(&format!("apt/{suite}"))?;
        for below in ["lists/partial", "archives/partial", "state"] {
            cache.dir(&format!("apt/{suite}/{below}"))?;
        }
        let signed_by = self.signed_by.as_ref().map_or(String::new(), |path| format!("[signed-by={path}] "));
        write(&dir.join("sources.list"), &format!("deb {signed_by}{} {suite} main\n", self.uri))?;
        write(&dir.join("status"), "")?;
        let config = dir.join("apt.conf");
        let dir = dir.display();
        // The lists belong to whoever runs the lab, so apt must not change to a user of its own.
        let text = format!(
            "Dir::Etc::sourcelist \"{dir}/sources.list\";\nDir::Etc::sourceparts \"-\";\nDir::State \"{dir}/state\";\n\
             Dir::State::lists \"{dir}/lists\";\nDir::State::status \"{dir}/status\";\nDir::Cache \"{dir}\";\n\
             Dir::Cache::archives \"{dir}/archives\";\nAPT::Sandbox::User \"\";\nAcquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n\
             Acquire::Languages \"none\";\n"
        );
        write(&config, &text)?;
        Ok(Source { name: suite.to_owned(), config: Some(config) })
    }
}

/// The key file that an entry of a sources file names: `[signed-by=…]` on its line, or the `Signed-By:` of
/// the stanza that starts there. Without one apt's own keys apply. (apt does not tell it otherwise.)
fn signed_by(sources: &str, line: usize) -> Option<String> {
    let mut entry = sources.lines().skip(line.checked_sub(1)?);
    let first = entry.next()?;
    let in_brackets = first.split(['[', ']', ' ', '\t']).find_map(|word| word.strip_prefix("signed-by="));
    let in_stanza =
        || entry.take_while(|line| !line.trim().is_empty()).find_map(|line| line.strip_prefix("Signed-By:"));
    let path = in_brackets.or_else(in_stanza)?.trim();
    (path.starts_with('/') && !path.contains([' ', ']'])).then(|| path.to_owned())
}

fn write(path: &Path, text: &str) -> Result<(), AptError> {
    // Unchanged files keep their time: two labs at once write the same.
    if std::fs::read_to_string(path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    std::fs::write(path, text).map_err(|cause| AptError::Io { path: path.to_owned(), cause })
}

impl Source {
    fn command(&self, program: &str) -> Command {
        let mut command = tool::tool(program);
        if let Some(config) = &self.config {
            command.env("APT_CONFIG", config);
        }
        command
    }

    /// When the lists were read, or `None` when they never were.
    fn updated(&self) -> Option<SystemTime> {
        let lists = self.config.as_ref()?.parent()?.join("lists");
        let files = std::fs::read_dir(lists).ok()?.flatten().filter(|entry| entry.path().is_file());
        files
            .filter(|entry| entry.file_name().to_string_lossy().contains("Packages"))
            .filter_map(|entry| entry.path().parent().and_then(|dir| dir.join("..").join("updated").metadata().ok()))
            .find_map(|metadata| metadata.modified().ok())
    }

    fn is_stale(&self) -> bool {
        self.updated().is_none_or(|at| at.elapsed().is_ok_and(|age| age > LISTS_STAY_FRESH))
    }

    fn update(&self) -> Result<(), AptError> {
        tool::output(self.command("apt-get").args(["update", "--quiet", "--error-on=any"]))?;
        if let Some(dir) = self.config.as_ref().and_then(|config| config.parent()) {
            let stamp = dir.join("updated");
            std::fs::write(&stamp, "").map_err(|cause| AptError::Io { path: stamp, cause })?;
        }
        Ok(())
    }

    /// The kernels in the lists.
    fn offers(&self) -> Result<Vec<Offer>, AptError> {
        for flavour in FLAVOURS {
            let pattern = format!("^linux-(image|binary|modules)-[0-9].*-{flavour}$");
            let names = tool::output(self.command("apt-cache").args(["--names-only", "search", &pattern]))?;
            let names = String::from_utf8_lossy(&names);
            let names: Vec<&str> = names.lines().filter_map(|line| line.split(' ').next()).collect();
            if names.is_empty() {
                continue;
            }
            let shown = tool::output(self.command("apt-cache").arg("show").arg("--no-all-versions").args(&names))?;
            return Ok(offers_in(&String::from_utf8_lossy(&shown), self));
        }
        Ok(Vec::new())
    }
}

/// Reads the stanzas of `apt-cache show`.
fn offers_in(shown: &str, source: &Source) -> Vec<Offer> {
    let stanzas: BTreeMap<&str, BTreeMap<&str, &str>> = shown
        .split("\n\n")
        .filter_map(|stanza| {
            let fields: BTreeMap<&str, &str> = stanza.lines().filter_map(|line| line.split_once(": ")).collect();
            Some((*fields.get("Package")?, fields))
        })
        .collect();
    let part = |fields: &BTreeMap<&str, &str>| -> Option<Part> {
        Some(Part {
            package: (*fields.get("Package")?).to_owned(),
            version: (*fields.get("Version")?).to_owned(),
            sha256: (*fields.get("SHA256")?).to_owned(),
            size_bytes: fields.get("Size")?.parse().ok()?,
        })
    };
    let offer = |(package, fields): (&&str, &BTreeMap<&str, &str>)| -> Option<Offer> {
        package.strip_prefix("linux-image-")?;
        let image = part(fields)?;
        let version = image.version.rsplit(':').next().unwrap_or(&image.version).parse().ok()?;
        // Since 7.0 Debian's image package only pulls in one with the image and one with the modules.
        let pulled_in = fields.get("Depends").copied().unwrap_or_default().split(',').filter_map(|dependency| {
            let name = dependency.trim().split([' ', ':']).next()?;
            ["linux-binary-", "linux-modules-"]
                .iter()
                .any(|start| name.starts_with(start))
                .then(|| stanzas.get(name))?
        });
        let mut parts = vec![image];
        parts.extend(pulled_in.filter_map(part));
        Some(Offer {
            package: (*package).to_owned(),
            package_version: parts.first()?.version.clone(),
            version,
            suite: source.name.clone(),
            download_bytes: parts.iter().map(|part| part.size_bytes).fold(0, u64::saturating_add),
            parts,
            source: source.clone(),
        })
    };
    stanzas.iter().filter_map(offer).collect()
}

impl Offer {
    /// Name in the cache: the packages' content.
    pub(super) fn key(&self) -> String {
        let sums: Vec<&str> = self.parts.iter().map(|part| part.sha256.get(..12).unwrap_or("")).collect();
        format!("{}-{}", self.version, sums.join("-"))
    }

    /// Fetches the packages into a directory and returns their files.
    pub(super) fn download(&self, into: &Path, tell: &mut dyn FnMut(&Fetching)) -> Result<Vec<PathBuf>, AptError> {
        let mut command = self.source.command("apt-get");
        command.args(["download", "--quiet"]);
        command.args(self.parts.iter().map(|part| format!("{}={}", part.package, part.version)));
        command.current_dir(into).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|cause| tool::not_run(&command, cause))?;
        let status = loop {
            let ended = child.try_wait().map_err(|cause| tool::not_run(&command, cause))?;
            let here = downloaded(into);
            tell(&Fetching::Download {
                package: self.package.clone(),
                done_bytes: here.iter().map(|(_, size)| size).sum(),
                total_bytes: self.download_bytes,
            });
            match ended {
                Some(status) => break status,
                None => std::thread::sleep(Duration::from_millis(200)),
            }
        };
        if !status.success() {
            let mut says = String::new();
            if let Some(mut stderr) = child.stderr.take() {
                // What it said is a help, not a need.
                let _ = std::io::Read::read_to_string(&mut stderr, &mut says);
            }
            let says = says.lines().rfind(|line| line.starts_with("E:")).unwrap_or("it was interrupted").to_owned();
            return Err(ToolError::Failed { tool: "apt-get".to_owned(), status: status.to_string(), says }.into());
        }
        Ok(downloaded(into).into_iter().map(|(path, _)| path).collect())
    }
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

    #[test]
    fn an_image_comes_with_the_packages_that_hold_it() {
        let source = Source { name: "sid".to_owned(), config: None };
        let offers = offers_in(SHOWN, &source);
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
    fn the_mirror_is_that_of_the_machines_own_archive() {
        let targets = "\
cloud\tcloud\tmain\thttps://packages.example/apt\t/etc/apt/cloud.list:1
Debian\tDebian-Security\tmain\thttp://security.example/debian-security/\t/etc/apt/debian.sources:7
Debian\tDebian\tcontrib\thttp://mirror.example/debian/\t/etc/apt/debian.sources:1
Debian\tDebian\tmain\thttp://mirror.example/debian/\t/etc/apt/debian.sources:1
";
        let check = |sources: &str, expect: Option<&str>| {
            let mirror = Mirror::parse(targets, |_| Some(sources.to_owned())).unwrap();
            assert_eq!((mirror.uri.as_str(), mirror.signed_by.as_deref()), ("http://mirror.example/debian/", expect));
        };
        check(
            "Types: deb\nURIs: u\nSigned-By: /keys/debian.gpg\n\nSigned-By: /keys/other.gpg\n",
            Some("/keys/debian.gpg"),
        );
        check("Types: deb\n\nSigned-By: /keys/other.gpg\n", None);
        check("deb [arch=amd64 signed-by=/keys/debian.gpg] u s main", Some("/keys/debian.gpg"));
        check("deb u s main", None);
        check("", None);
        assert_eq!(Mirror::parse("cloud\tcloud\tmain\thttps://packages.example/apt\tf:1\n", |_| None), None);
        assert_eq!(Mirror::parse("\n\t\t\n", |_| None), None);
    }

    #[test]
    fn any_text_has_offers_or_has_none() {
        let source = Source { name: "sid".to_owned(), config: None };
        bolero::check!().for_each(|bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            offers_in(&text, &source);
            Mirror::parse(&text, |_| Some(text.clone().into_owned()));
            signed_by(&text, 1);
        });
    }
}
