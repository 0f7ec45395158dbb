// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suites beside those this machine follows, read from the same mirror with the same keys, through a private
//! configuration of apt: own lists, cache and state below the lab's cache. The machine's apt never learns
//! of them. Nothing here names a mirror: it is taken from the machine's own sources.

use super::{AptError, Source};
use crate::cache::Cache;
use crate::tool;
use std::path::Path;

/// Where the machine's own sources take packages from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mirror {
    /// Distribution.
    pub(crate) origin: String,
    uri: String,
    signed_by: Option<String>,
}

impl Mirror {
    /// Asks apt.
    pub(crate) fn of_this_machine() -> Result<Mirror, AptError> {
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
            let known = DISTRIBUTIONS.contains(&origin) && label == origin && component == "main";
            if !known {
                return None;
            }
            let signed_by = entry.rsplit_once(':').and_then(|(file, line)| signed_by(&read(file)?, line.parse().ok()?));
            Some(Mirror { origin: origin.to_owned(), uri: uri.to_owned(), signed_by })
        })
    }

    /// Another suite of the same mirror.
    pub(crate) fn private_source(&self, cache: &Cache, suite: &str) -> Result<Source, AptError> {
        let dir = cache.dir(&format!("apt/{suite}"))?;
        for below in ["lists/partial", "archives/partial", "state"] {
            cache.dir(&format!("apt/{suite}/{below}"))?;
        }
        let signed_by = self.signed_by.as_ref().map_or(String::new(), |path| format!("[signed-by={path}] "));
        write(&dir.join("sources.list"), &format!("deb {signed_by}{} {suite} main\n", self.uri))?;
        write(&dir.join("status"), "")?;
        let (config, packed) = (dir.join("apt.conf"), dir.join("lists.bin"));
        let dir = dir.display();
        // The lists belong to the user who runs the lab, so apt must not switch to its sandbox user.
        let text = format!(
            "Dir::Etc::sourcelist \"{dir}/sources.list\";\nDir::Etc::sourceparts \"-\";\nDir::State \"{dir}/state\";\n\
             Dir::State::lists \"{dir}/lists\";\nDir::State::status \"{dir}/status\";\nDir::Cache \"{dir}\";\n\
             Dir::Cache::archives \"{dir}/archives\";\nAPT::Sandbox::User \"\";\nAcquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n\
             Acquire::Languages \"none\";\n"
        );
        write(&config, &text)?;
        Ok(Source { name: suite.to_owned(), config: Some(config), packed })
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

/// Distributions whose mirrors we know how to read.
const DISTRIBUTIONS: &[&str] = &["Debian", "Ubuntu"];

#[cfg(test)]
mod tests {
    use super::*;

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
    fn any_text_has_a_mirror_or_has_none() {
        bolero::check!().for_each(|bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            Mirror::parse(&text, |_| Some(text.clone().into_owned()));
            signed_by(&text, 1);
        });
    }
}
