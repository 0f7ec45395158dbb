// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel that a plan names. A plan "to 6.12" means the newest release of that series, with every fix that its stable releases got:
//! that is the package that gets installed. `6.12.0` means the first release.

use crate::change::changes;
use floodline_record::version::{KernelVersion, NotAVersion, Series};
use std::str::FromStr;

/// A kernel to move to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The release. Of a series, the newest that is known here.
    pub version: KernelVersion,
    /// Whether only the series was named.
    pub is_series: bool,
}

impl Planned {
    /// The release that a host gets whose present kernel is `now`. A host that has a newer release of the series keeps it.
    pub fn on(self, now: Option<KernelVersion>) -> KernelVersion {
        match now.filter(|now| self.is_series && now.is_of_series_of(self.version)) {
            Some(now) => now.max(self.version),
            None => self.version,
        }
    }

    /// How a series was taken; `None` where a release was named, or where no later release than the first is known.
    pub fn told(self) -> Option<String> {
        let Planned { version, is_series } = self;
        let is_told = is_series && !version.is_series_only();
        is_told.then(|| format!("{} is taken as {version}, its newest release that is known here", version.series()))
    }
}

impl FromStr for Planned {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Planned, NotAVersion> {
        let version: KernelVersion = text.parse()?;
        let text = text.trim();
        let is_series = text.matches('.').count() == 1 && text.chars().all(|c| c.is_ascii_digit() || c == '.');
        match is_series {
            true => Ok(Planned { version: newest_of(version.series()), is_series }),
            false => Ok(Planned { version, is_series }),
        }
    }
}

/// The newest release of a series of which a change is known: it has every change that any of its releases got.
pub fn newest_of(series: Series) -> KernelVersion {
    let of_series = changes().flat_map(|change| change.backports).filter(|backport| backport.series == series);
    let newest = of_series.map(|backport| backport.patch).max().unwrap_or(0);
    KernelVersion::new(series.0, series.1, newest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{Presence, change};

    fn planned(text: &str) -> Planned {
        text.parse().expect(text)
    }

    #[test]
    fn a_series_has_every_fix_of_its_stable_releases() {
        let fix = change("switch-without-sorting").expect("a change");
        assert_eq!(fix.presence(planned("6.12").version), Presence::In);
        assert_eq!(fix.presence(planned("6.12.0").version), Presence::Out);
        for one in changes().flat_map(|change| change.backports.iter().map(move |backport| (change, backport.series))) {
            let (change, series) = one;
            assert_eq!(change.presence(newest_of(series)), Presence::In, "{} {series}", change.id);
        }
    }

    #[test]
    fn only_a_series_is_taken_as_its_newest_release() {
        let newest = newest_of(Series(6, 12));
        assert!(newest.patch >= 94, "{newest}");
        assert_eq!(
            planned("6.12").told(),
            Some(format!("6.12 is taken as {newest}, its newest release that is known here"))
        );
        for exact in ["6.12.0", "6.12.43", "6.12.0-rc1", "7.2-rc3", "6.8"] {
            assert_eq!((planned(exact).told(), planned(exact).version.to_string()), (None, version(exact)), "{exact}");
        }
        assert!("six".parse::<Planned>().is_err());
    }

    fn version(text: &str) -> String {
        text.parse::<KernelVersion>().expect(text).to_string()
    }

    #[test]
    fn a_host_keeps_a_newer_release_of_the_series() {
        let check = |plan: &str, now: &str, expect: &str| {
            let now = now.parse().expect(now);
            assert_eq!(planned(plan).on(Some(now)).to_string(), expect, "{plan} on {now}");
        };
        let newest = newest_of(Series(6, 12)).to_string();
        check("6.12", "6.12.999", "6.12.999");
        check("6.12", "6.12.43", &newest);
        check("6.12", "6.1.43", &newest);
        check("6.12.43", "6.12.999", "6.12.43");
        check("6.8", "6.8.5", "6.8.5");
        assert_eq!(planned("6.12").on(None).to_string(), newest);
    }
}
