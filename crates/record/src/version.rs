// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel versions. Stable and vendor trees carry backports in both directions, so a version says
//! what is likely, not what is certain: probe for the behaviour where a probe exists.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Version, patch level and sublevel, e.g. 6.12.43. Ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelVersion {
    /// First number.
    pub major: u16,
    /// Second number.
    pub minor: u16,
    /// Third number; 0 where none is given.
    pub patch: u16,
}

impl KernelVersion {
    /// A version by its numbers.
    pub const fn new(major: u16, minor: u16, patch: u16) -> KernelVersion {
        KernelVersion { major, minor, patch }
    }

    /// Major and minor number.
    pub const fn series(self) -> Series {
        Series(self.major, self.minor)
    }

    /// Whether the patch level is 0, as in mainline releases and in releases of distributions that name the series only.
    pub fn is_series_only(self) -> bool {
        self.patch == 0
    }

    /// Whether another version is of the same series.
    pub fn is_of_series_of(self, other: KernelVersion) -> bool {
        self.series() == other.series()
    }
}

/// Major and minor number of a release, e.g. 6.12. Ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Series(pub u16, pub u16);

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// The text does not start with `MAJOR.MINOR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid kernel release: expected MAJOR.MINOR[.PATCH]")]
pub struct NotAVersion;

impl FromStr for KernelVersion {
    type Err = NotAVersion;

    /// Reads the front of a release such as `6.12.117+deb13-cloud-amd64`.
    fn from_str(release: &str) -> Result<KernelVersion, NotAVersion> {
        let mut numbers = release.splitn(3, '.').map(|part| {
            let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            (part[..digits].parse::<u16>(), digits == part.len())
        });
        let (major, whole) = numbers.next().ok_or(NotAVersion)?;
        let major = major.ok().filter(|_| whole).ok_or(NotAVersion)?;
        let (minor, whole) = numbers.next().ok_or(NotAVersion)?;
        let minor = minor.map_err(|_| NotAVersion)?;
        let patch = if whole { numbers.next().and_then(|(patch, _)| patch.ok()).unwrap_or(0) } else { 0 };
        Ok(KernelVersion { major, minor, patch })
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Serialize for KernelVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KernelVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<KernelVersion, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_several_distributions_are_read() {
        let check = |release: &str, expect: Option<(u16, u16, u16)>| {
            let expect = expect.map(|(a, b, c)| KernelVersion::new(a, b, c)).ok_or(NotAVersion);
            assert_eq!(release.parse::<KernelVersion>(), expect, "{release}");
        };
        check("6.12.117+deb13-cloud-amd64", Some((6, 12, 117)));
        check("5.10.0-32-amd64", Some((5, 10, 0)));
        check("6.18.44-fc-v595", Some((6, 18, 44)));
        check("7.2-rc3", Some((7, 2, 0)));
        check("3.3.0-rc1", Some((3, 3, 0)));
        check("4.18.0-147.el8.x86_64", Some((4, 18, 0)));
        check("6", None);
        check("", None);
        check("x.y.z", None);
        check("99999.1", None);
    }
}
