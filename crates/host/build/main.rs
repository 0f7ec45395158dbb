// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles every program of `bpf/` for the kernel's virtual machine, and makes Rust types of the tables that they
//! share with user space; `src/trace` takes both in. Needs clang and no kernel headers: what a program reads of the
//! kernel's records it declares itself, and the loader finds where that is on the kernel it runs on (CO-RE).
#![allow(clippy::print_stdout, reason = "this is how a build script speaks to cargo")]

mod btf;
mod layouts;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

/// What to type where there is no clang.
const INSTALL: &str = "install the package clang (apt-get install clang), or set CLANG to the compiler";

fn main() -> ExitCode {
    match compile_all() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo::error={error}");
            ExitCode::FAILURE
        }
    }
}

fn compile_all() -> Result<(), String> {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-env-changed=CLANG");
    println!("cargo::rerun-if-env-changed=LLVM_STRIP");
    let var = |name: &str| env::var_os(name).ok_or_else(|| format!("cargo does not say {name}"));
    // The helpers of libbpf, beside the library that this crate is linked with.
    let include = PathBuf::from(var("DEP_BPF_INCLUDE")?);
    let out = PathBuf::from(var("OUT_DIR")?);
    let files = fs::read_dir("bpf").map_err(|error| format!("bpf: {error}"))?;
    let mut sources: Vec<PathBuf> = files.flatten().map(|entry| entry.path()).collect();
    sources.retain(|path| path.to_string_lossy().ends_with(".bpf.c"));
    sources.sort();
    let mut layouts = layouts::Layouts::default();
    for source in sources {
        let object = compile(&source, &include, &out)?;
        let name = source.file_name().unwrap_or_default().to_string_lossy().replace(".bpf.c", "");
        // Only the benchmark uses it.
        if name != "empty" {
            let bytes = fs::read(&object).map_err(|error| format!("{}: {error}", object.display()))?;
            let types = btf::Types::of_object(&bytes).ok_or_else(|| format!("{name}: no type information (BTF)"))?;
            layouts.add(&name, &types).map_err(|error| format!("{name}: {error}"))?;
        }
    }
    fs::write(out.join("layouts.rs"), layouts.finish()).map_err(|error| format!("layouts.rs: {error}"))
}

/// `bpf/NAME.bpf.c` → `NAME.bpf.o`. Instructions of version 3 are understood since 5.1.
fn compile(source: &Path, include: &Path, out: &Path) -> Result<PathBuf, String> {
    let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    let object = out.join(source.with_extension("o").file_name().unwrap_or_default());
    // The names of system calls are those of the architecture that the program is built for.
    let target = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let status = Command::new(&clang)
        .args(["-target", "bpf", "-mcpu=v3", "-g", "-O2", "-Wall", "-Wextra", "-Werror", "-c"])
        .arg(format!("-DTARGET_{target}"))
        .arg("-I")
        .arg(include)
        .arg(source)
        .arg("-o")
        .arg(&object)
        .status();
    match status {
        Ok(status) if status.success() => {
            drop_debug(&object);
            Ok(object)
        }
        Ok(status) => Err(format!("{} cannot compile {}: {status}", clang.display(), source.display())),
        Err(error) => Err(format!("cannot run {}: {error}; {INSTALL}", clang.display())),
    }
}

/// Drops the debug information (DWARF), which the loader does not read; types (BTF) stay. An object that was not stripped
/// works as well, and makes the program some 130 KB larger.
fn drop_debug(object: &Path) {
    let strip = env::var_os("LLVM_STRIP").unwrap_or_else(|| "llvm-strip".into());
    match Command::new(&strip).arg("-g").arg(object).status() {
        Ok(status) if status.success() => {}
        failed => {
            let why = failed.map_or_else(|error| error.to_string(), |status| status.to_string());
            println!(
                "cargo::warning=cannot run {}: {why}; install the package llvm, or set LLVM_STRIP",
                strip.display()
            );
        }
    }
}
