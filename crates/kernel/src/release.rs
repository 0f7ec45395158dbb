// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel as a person names it: `6.12`, `6.12.43`, or the release that `uname -r` prints. Some distributions name the
//! stable release, and some only the series. Others carry many backports, so their version says little. A [`Release`]
//! records which of these it is.

use crate::change::{Change, OLDEST_KNOWN, Presence, newest_modelled};
use floodline_record::version::{KernelVersion, Series};
use std::fmt;

/// A kernel as a command names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// As it was written.
    pub text: String,
    /// The version in it.
    pub version: KernelVersion,
    /// The builder, as far as the text shows.
    pub vendor: Vendor,
    /// Significance of the version.
    pub certainty: Certainty,
}

/// Builder of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// kernel.org, or a vendor that the text does not show.
    Unknown,
    /// Debian.
    Debian,
    /// Ubuntu.
    Ubuntu,
    /// Red Hat, and what is rebuilt from it.
    RedHat,
    /// Oracle's own kernel.
    Oracle,
    /// SUSE.
    Suse,
    /// Amazon Linux.
    Amazon,
    /// Fedora.
    Fedora,
}

/// Significance of a kernel's version for the changes that it contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// The stable release is named.
    Exact,
    /// Only the series is named: the changes that its stable releases got are uncertain.
    Series,
    /// The vendor carries changes of much later releases: whatever is not in the series is uncertain.
    Vendor,
}

/// A text that names no kernel known here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotARelease {
    /// It does not start with `MAJOR.MINOR`.
    #[error("invalid kernel version: expected MAJOR.MINOR[.PATCH] or a release such as 6.1.0-28-amd64")]
    Malformed,
    /// No such series was released.
    #[error("Linux {0} was never released: {1} was followed by {2}")]
    NeverReleased(Series, Series, Series),
    /// Older than the table.
    #[error("Linux {0} is older than {OLDEST_KNOWN}, the oldest kernel known here")]
    TooOld(Series),
    /// Newer than the table.
    #[error("Linux {0} is newer than {1}, the newest kernel known here")]
    TooNew(Series, Series),
}

/// Last series of each major number that is complete.
const LAST: &[Series] = &[Series(3, 19), Series(4, 20), Series(5, 19), Series(6, 19)];

/// Flavours of Ubuntu's kernels.
const UBUNTU: &[&str] =
    &["generic", "lowlatency", "aws", "azure", "gcp", "gke", "ibm", "kvm", "oem", "oracle", "raspi"];

/// Architectures as Debian writes them at the end of a release.
const DEBIAN: &[&str] = &["amd64", "arm64", "armmp", "686", "686-pae", "i386", "s390x", "powerpc64le", "riscv64"];

impl Release {
    /// Reads a kernel as a person or `uname -r` writes it.
    pub fn parse(text: &str) -> Result<Release, NotARelease> {
        let text = text.trim();
        let version: KernelVersion = text.parse().map_err(|_| NotARelease::Malformed)?;
        let series = version.series();
        let newest = newest_modelled();
        if let Some(last) = LAST.iter().find(|last| last.0 == series.0 && series > **last) {
            return Err(NotARelease::NeverReleased(series, *last, Series(last.0 + 1, 0)));
        }
        if series < OLDEST_KNOWN {
            return Err(NotARelease::TooOld(series));
        }
        if series > newest {
            return Err(NotARelease::TooNew(series, newest));
        }
        let vendor = vendor(text);
        let has_suffix = !text.chars().all(|c| c.is_ascii_digit() || c == '.');
        let names_patch = text.matches('.').count() >= 2 && !(version.is_series_only() && has_suffix);
        let certainty = match vendor {
            Vendor::RedHat | Vendor::Oracle | Vendor::Suse => Certainty::Vendor,
            _ if names_patch => Certainty::Exact,
            _ => Certainty::Series,
        };
        Ok(Release { text: text.to_owned(), version, vendor, certainty })
    }

    /// Its name in a table: the text as it was written.
    pub fn name(&self) -> &str {
        &self.text
    }

    /// Its name before a sentence: without what the distribution adds to the version.
    pub fn label(&self) -> String {
        let end = self.text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(self.text.len());
        self.text.get(..end).unwrap_or_default().trim_end_matches('.').to_owned()
    }

    /// Whether it has a change.
    pub fn presence(&self, change: &Change) -> Presence {
        let series = self.version.series();
        let has_backport = || change.backports.iter().any(|backport| backport.series == series);
        match (self.certainty, change.presence(self.version)) {
            (Certainty::Exact, presence) => presence,
            (_, Presence::In) if series >= change.since => Presence::In,
            (Certainty::Series | Certainty::Vendor, _) if has_backport() => Presence::Unsure,
            _ => Presence::Out,
        }
    }

    /// Whether it is the plain name of a series, such as 6.12.
    pub fn is_series(&self) -> bool {
        self.certainty == Certainty::Series && self.vendor == Vendor::Unknown && !self.text.contains('-')
    }

    /// What to know before its version is trusted; `None` where nothing is.
    pub fn caution(&self) -> Option<String> {
        let Release { text, vendor, version, .. } = self;
        let series = version.series();
        match self.certainty {
            Certainty::Exact => None,
            Certainty::Series if self.is_series() => {
                Some(format!("{text} names a series. What only some of its stable releases have is uncertain."))
            }
            Certainty::Series => Some(format!(
                "{text} is a {vendor} kernel that names only its series, {series}. {} tells the stable release.",
                match vendor {
                    Vendor::Ubuntu => "/proc/version_signature",
                    _ => "uname -v",
                }
            )),
            Certainty::Vendor => Some(format!(
                "{text} is a {vendor} kernel. {vendor} adds many changes of later releases to {series}: it may have any change \
                 that is listed as newer. A trace or a test shows whether it does."
            )),
        }
    }
}

impl fmt::Display for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Vendor::Unknown => "distribution",
            Vendor::Debian => "Debian",
            Vendor::Ubuntu => "Ubuntu",
            Vendor::RedHat => "Red Hat",
            Vendor::Oracle => "Oracle",
            Vendor::Suse => "SUSE",
            Vendor::Amazon => "Amazon Linux",
            Vendor::Fedora => "Fedora",
        })
    }
}

fn vendor(release: &str) -> Vendor {
    let is_numbered = |mark: &str| {
        release.match_indices(mark).any(|(at, _)| {
            release.get(at + mark.len()..).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
    };
    let ends =
        |words: &[&str]| words.iter().any(|word| release.strip_suffix(word).is_some_and(|rest| rest.ends_with('-')));
    if release.contains("uek") {
        Vendor::Oracle
    } else if is_numbered(".el") {
        Vendor::RedHat
    } else if is_numbered(".amzn") {
        Vendor::Amazon
    } else if is_numbered(".fc") {
        Vendor::Fedora
    } else if is_numbered("+deb") || ends(DEBIAN) {
        Vendor::Debian
    } else if ends(&["default"]) {
        Vendor::Suse
    } else if ends(UBUNTU) {
        Vendor::Ubuntu
    } else {
        Vendor::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::change;

    #[test]
    fn releases_of_distributions_are_told_apart() {
        let check = |text: &str, version: (u16, u16, u16), vendor, certainty| {
            let release = Release::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let (major, minor, patch) = version;
            assert_eq!(release.version, KernelVersion::new(major, minor, patch), "{text}");
            assert_eq!((release.vendor, release.certainty), (vendor, certainty), "{text}");
            assert_eq!(release.caution().is_none(), certainty == Certainty::Exact, "{text}");
        };
        use Certainty::{Exact, Series, Vendor as Patched};
        check("6.12", (6, 12, 0), Vendor::Unknown, Series);
        check("6.12.0", (6, 12, 0), Vendor::Unknown, Exact);
        check("6.12.43", (6, 12, 43), Vendor::Unknown, Exact);
        check("6.1.0-28-amd64", (6, 1, 0), Vendor::Debian, Series);
        check("6.1.0-56-cloud-amd64", (6, 1, 0), Vendor::Debian, Series);
        check("6.12.117+deb13-cloud-amd64", (6, 12, 117), Vendor::Debian, Exact);
        check("5.14.0-427.el9", (5, 14, 0), Vendor::RedHat, Patched);
        check("4.18.0-553.el8_10.x86_64", (4, 18, 0), Vendor::RedHat, Patched);
        check("5.15.0-206.153.7.el9uek.x86_64", (5, 15, 0), Vendor::Oracle, Patched);
        check("6.8.0-49-generic", (6, 8, 0), Vendor::Ubuntu, Series);
        check("5.15.0-1051-aws", (5, 15, 0), Vendor::Ubuntu, Series);
        check("6.4.0-150600.23.25-default", (6, 4, 0), Vendor::Suse, Patched);
        check("5.10.205-195.807.amzn2.x86_64", (5, 10, 205), Vendor::Amazon, Exact);
        check("6.8.5-301.fc40.x86_64", (6, 8, 5), Vendor::Fedora, Exact);
        check("6.18.44-fc-v595", (6, 18, 44), Vendor::Unknown, Exact);
        check("5.15.167.4-microsoft-standard-WSL2", (5, 15, 167), Vendor::Unknown, Exact);
        check("7.2-rc3", (7, 2, 0), Vendor::Unknown, Series);
    }

    #[test]
    fn kernels_that_nobody_released_are_refused_by_reason() {
        let check = |text: &str, expect: &str| {
            let found = Release::parse(text).map_err(|error| error.to_string());
            assert_eq!(found.err().as_deref(), Some(expect), "{text}");
        };
        check("5.25", "Linux 5.25 was never released: 5.19 was followed by 6.0");
        check("2.6.32", "Linux 2.6 is older than 3.2, the oldest kernel known here");
        let newest = newest_modelled();
        check("99.1", &format!("Linux 99.1 is newer than {newest}, the newest kernel known here"));
        let malformed = "invalid kernel version: expected MAJOR.MINOR[.PATCH] or a release such as 6.1.0-28-amd64";
        for text in ["", "6", "six", "latest", "\u{1b}[2J6.1", "99999999.1"] {
            check(text, malformed);
        }
    }

    #[test]
    fn the_last_series_of_a_major_number_and_the_ends_of_the_table_are_releases() {
        let is_release = |text: &str| Release::parse(text).is_ok();
        for text in ["3.2", "3.19", "4.0", "4.20", "5.0", "5.19", "6.0", "6.19", "7.0"] {
            assert!(is_release(text), "{text}");
        }
        for text in ["3.1", "3.20", "4.21", "5.20", "6.20"] {
            assert!(!is_release(text), "{text}");
        }
        let newest = newest_modelled();
        assert!(is_release(&newest.to_string()) && !is_release(&format!("{}.{}", newest.0, newest.1 + 1)));
    }

    #[test]
    fn a_release_is_named_in_full_and_labelled_by_its_version() {
        let check = |text: &str, label: &str, series, caution: &str| {
            let release = Release::parse(text).expect(text);
            assert_eq!(
                (release.name(), release.label().as_str(), release.is_series()),
                (text, label, series),
                "{text}"
            );
            let found = release.caution().unwrap_or_default();
            assert_eq!(found.get(..caution.len()), Some(caution), "{found}");
        };
        check("6.12", "6.12", true, "6.12 names a series.");
        check("6.12.43", "6.12.43", false, "");
        check(
            "6.1.0-28-amd64",
            "6.1.0",
            false,
            "6.1.0-28-amd64 is a Debian kernel that names only its series, 6.1. uname -v",
        );
        check(
            "6.8.0-49-generic",
            "6.8.0",
            false,
            "6.8.0-49-generic is a Ubuntu kernel that names only its series, 6.8. /proc/",
        );
        check("7.2-rc3", "7.2", false, "7.2-rc3 is a distribution kernel");
        check("5.14.0-427.el9", "5.14.0", false, "5.14.0-427.el9 is a Red Hat kernel. Red Hat adds");
        check("6.12.117+deb13-cloud-amd64", "6.12.117", false, "");
    }

    #[test]
    fn a_mark_of_a_vendor_is_followed_by_a_number() {
        let vendor_of = |text: &str| Release::parse(text).expect(text).vendor;
        assert_eq!(vendor_of("6.12.1.elder"), Vendor::Unknown);
        assert_eq!(vendor_of("6.12.1.elder.el9"), Vendor::RedHat);
        assert_eq!(vendor_of("6.12.1.elX9"), Vendor::Unknown);
        assert_eq!(vendor_of("6.12.1-amd64"), Vendor::Debian);
        assert_eq!(vendor_of("6.12.1+deb13"), Vendor::Debian);
        assert_eq!(vendor_of("6.12.1amd64"), Vendor::Unknown);
        assert_eq!(vendor_of("6.12.1-generic"), Vendor::Ubuntu);
    }

    #[test]
    fn of_a_vendors_kernel_only_its_own_series_is_sure() {
        let fix = change("switch-without-sorting").expect("a change");
        let check = |text: &str, expect| assert_eq!(Release::parse(text).expect(text).presence(fix), expect, "{text}");
        check("6.1.0-99.el9", Presence::Unsure);
        check("6.1.157-99.el9", Presence::Unsure);
        check("5.14.0-427.el9", Presence::Out);
        check("6.18.0-1.el11", Presence::In);
    }

    #[test]
    fn a_series_may_have_what_its_stable_releases_got() {
        let fix = change("switch-without-sorting").expect("a change");
        let check = |text: &str, expect| assert_eq!(Release::parse(text).expect(text).presence(fix), expect, "{text}");
        check("6.1", Presence::Unsure);
        check("6.1.0-28-amd64", Presence::Unsure);
        check("6.1.0", Presence::Out);
        check("6.1.156", Presence::Out);
        check("6.1.157", Presence::In);
        check("6.8", Presence::Out);
        check("6.18", Presence::In);
        check("7.0", Presence::In);
    }
}
