// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unpacks the captured kernels where tests find them.

#![allow(unreachable_pub, reason = "the module is shared with the crate")]

#[path = "src/unpack.rs"]
mod unpack;

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=trees");
    println!("cargo:rerun-if-changed=src/unpack.rs");
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo names no OUT_DIR"))?;
    // Kernels that were taken away or renamed since the last build.
    for old in fs::read_dir(&out)? {
        fs::remove_dir_all(old?.path())?;
    }
    for entry in fs::read_dir("trees")? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "tree") {
            let text = fs::read_to_string(&path)?;
            let name = path.file_stem().unwrap_or_default();
            let in_file = |error| io::Error::other(format!("{}: {error}", path.display()));
            unpack::unpack(&text, &Path::new(&out).join(name)).map_err(in_file)?;
        }
    }
    Ok(())
}
