// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captured kernels for tests: the text of `/proc`, `/sys` and debugfs of guests, one text file per kernel in `trees`.
//! The build script unpacks them; [`tree`] returns where. Only tests depend on this crate.

pub mod pack;
pub mod unpack;

use std::path::{Path, PathBuf};

/// Returns the folder of a captured kernel, such as `6.12`. Tests that change files copy it first.
///
/// # Panics
/// If there is no kernel of this name.
pub fn tree(name: &str) -> PathBuf {
    let folder = Path::new(env!("OUT_DIR")).join(name);
    assert!(folder.join("proc").is_dir(), "no captured kernel {name}");
    folder
}

/// Returns the folders of all captured kernels, in the order of their names.
pub fn trees() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(env!("OUT_DIR")).into_iter().flatten().flatten();
    let mut trees: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.join("proc").is_dir()).collect();
    trees.sort();
    trees
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn every_tree_packs_to_the_text_it_came_from() {
        let texts = Path::new(env!("CARGO_MANIFEST_DIR")).join("trees");
        let trees = trees();
        assert!(trees.len() >= 9, "{trees:?}");
        for folder in trees {
            let name = folder.file_name().unwrap().to_str().unwrap();
            let text = std::fs::read_to_string(texts.join(format!("{name}.tree"))).unwrap();
            assert!(text == pack::pack(&folder).unwrap(), "{name}");
            assert_eq!(tree(name), folder);
        }
    }

    #[test]
    fn any_content_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let contents: [&[u8]; 7] = [b"", b"\n", b"a", b"a\n\n", b"=== x\n= \\x\\\n", b"\0\x1b\xff", b"a\\\nb\t=\r\n"];
        for (number, content) in contents.iter().enumerate() {
            std::fs::create_dir_all(folder.path().join("in/deep")).unwrap();
            std::fs::write(folder.path().join(format!("in/deep/{number}")), content).unwrap();
        }
        let text = pack::pack(&folder.path().join("in")).unwrap();
        assert!(text.is_ascii());
        unpack::unpack(&text, &folder.path().join("out")).unwrap();
        for (number, content) in contents.iter().enumerate() {
            assert_eq!(std::fs::read(folder.path().join(format!("out/deep/{number}"))).unwrap(), *content, "{text}");
        }
    }

    #[test]
    fn what_is_not_a_tree_is_refused() {
        let check = |text: &str, expect: &str| assert_eq!(unpack::files(text), Err(expect.to_owned()), "{text}");
        check("a", "line 1: no path before it");
        check("=== a\n\\q", "line 2: unknown escape");
        check("=== a\n\\x1", "line 2: unknown escape");
        for path in ["../a", "a/../b", "/a", "", "a//b", "x"] {
            check(&format!("=== x\n=== {path}"), "line 2: not a new path below the tree");
        }
    }
}
