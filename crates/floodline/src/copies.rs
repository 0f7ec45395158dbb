// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comparison of two files, byte by byte and a part at a time.

use std::fs::File;
use std::io::{self, BufReader, Read};

/// Bytes that are compared at once.
const PART: usize = 1 << 16;

/// Whether two files have the same bytes.
pub(crate) fn are_equal(one: &str, other: &str) -> io::Result<bool> {
    let (one, other) = (File::open(one)?, File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (BufReader::with_capacity(PART, one), BufReader::with_capacity(PART, other));
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        left.clear();
        right.clear();
        one.by_ref().take(PART as u64).read_to_end(&mut left)?;
        other.by_ref().take(PART as u64).read_to_end(&mut right)?;
        if left != right || left.is_empty() {
            return Ok(left == right);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_equal_to_the_last_part() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).expect("a file");
            path.to_string_lossy().into_owned()
        };
        let long = vec![7; 3 * PART];
        let mut other = long.clone();
        other[2 * PART] = 8;
        let (a, b, c) = (file("a", &long), file("b", &other), file("c", &long));
        assert!(are_equal(&a, &c).is_ok_and(|equal| equal));
        assert!(are_equal(&a, &b).is_ok_and(|equal| !equal));
        assert!(are_equal(&a, "nowhere").is_err());
    }
}
