// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the version from a kernel image. The x86 boot protocol keeps the text of `/proc/version` in the
//! image. Distributions whose release names lack the upstream version put it there (Debian's
//! `6.1.0-56-cloud-amd64` is 6.1.192).

use floodline_record::version::KernelVersion;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes read of an image: more than the boot header and its version text can reach.
const HEAD: u64 = 128 << 10;

/// Offsets of the boot header's magic and, 12 bytes later, of the pointer to the version text.
const MAGIC_AT: usize = 0x202;
const MAGIC: &[u8] = b"HdrS";
const VERSION_AT: usize = 0x20e;

/// The version text of an image: release, builder, build number, date.
pub(super) fn version_text(image: &[u8]) -> Option<String> {
    if image.get(MAGIC_AT..MAGIC_AT + MAGIC.len())? != MAGIC {
        return None;
    }
    let place = image.get(VERSION_AT..VERSION_AT + 2)?;
    let place = usize::from(u16::from_le_bytes([place[0], place[1]])).checked_add(0x200)?;
    let text = image.get(place..)?;
    let end = text.iter().take(512).position(|byte| *byte == 0)?;
    let text = std::str::from_utf8(&text[..end]).ok()?;
    // Printable ASCII only, because the text is shown on terminals.
    (!text.is_empty() && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())).then(|| text.to_owned())
}

/// The version text of an image file.
pub(super) fn read(path: &Path) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD).read_to_end(&mut head)?;
    Ok(version_text(&head))
}

/// Returns the upstream version in a version text: the one after "Debian", or else the release's.
pub(super) fn upstream(text: &str) -> Option<KernelVersion> {
    let named = text.split_once(" Debian ").and_then(|(_, rest)| rest.parse().ok());
    named.or_else(|| text.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forged::{Changes, Depth, change};

    /// An image with a text at `place`, counted as the boot header does.
    fn image(place: u16, text: &[u8]) -> Vec<u8> {
        let mut image = vec![0; VERSION_AT + 2];
        image[MAGIC_AT..MAGIC_AT + 4].copy_from_slice(MAGIC);
        image[VERSION_AT..VERSION_AT + 2].copy_from_slice(&place.to_le_bytes());
        image.resize(image.len().max(0x200 + usize::from(place)), 0);
        image.extend_from_slice(text);
        image.push(0);
        image
    }

    fn check(text: &str, release: &str, version: &str) {
        let found = version_text(&image(0x100, text.as_bytes())).unwrap();
        assert_eq!(found.split(' ').next(), Some(release));
        assert_eq!(upstream(&found).unwrap().to_string(), version);
    }

    #[test]
    fn an_image_names_its_release_and_its_upstream_version() {
        check(
            "6.1.0-56-cloud-amd64 (debian-kernel@lists.debian.org) #1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-10-01)",
            "6.1.0-56-cloud-amd64",
            "6.1.192",
        );
        check(
            "6.8.0-31-generic (buildd@lcy02) #31-Ubuntu SMP PREEMPT_DYNAMIC Sat Apr 20 00:40:06 UTC 2024",
            "6.8.0-31-generic",
            "6.8.0",
        );
    }

    #[test]
    fn any_bytes_are_an_image_or_are_not() {
        // What the versions of distributions are made of.
        const PIECES: [&str; 8] =
            ["6", ".", "18446744073709551616", " Debian ", "-rc1", " (a@b) #1 SMP", "\x1b[31m", "\u{e9}"];
        let depth = Depth::default();
        bolero::check!().with_type::<(u8, Vec<u8>, Changes)>().for_each(|(place, choices, changes)| {
            // A choice is mostly one letter, sometimes a piece of many.
            let text = choices.iter().map(|choice| match PIECES.get(usize::from(*choice)) {
                Some(piece) => (*piece).to_owned(),
                None => char::from(choice % 95 + 32).to_string(),
            });
            let text: String = text.collect();
            let mut image = image(u16::from(*place) + 0x10, text.as_bytes());
            let is_changed = change(&mut image, changes);
            let found = version_text(&image);
            depth.count(found.is_some() || text.is_empty());
            if let Some(found) = &found {
                assert!(!found.is_empty() && found.chars().all(|c| c == ' ' || c.is_ascii_graphic()), "{found:?}");
                let _ = upstream(found);
            }
            let is_shown =
                (1..512).contains(&text.len()) && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
            assert!(is_changed || found == is_shown.then_some(text));
            let _ = version_text(choices);
        });
        depth.check();
    }
}
