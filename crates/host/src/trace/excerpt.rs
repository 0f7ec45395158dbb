// SPDX-License-Identifier: MIT OR Apache-2.0
//! Excerpt of the kernel's types for libbpf: only those that the tracer's programs name. libbpf searches all types of
//! the kernel for every structure of every object, which the excerpt makes fast. It is optional: without it libbpf
//! reads all types.

use crate::parse::btf;
use crate::root::HostRoot;
use libbpf_rs::btf::{Btf, BtfKind, BtfType};
use rustix::fs::{MemfdFlags, memfd_create};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// File with all types of the kernel.
pub(super) const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";
/// Maximum size of this file, bytes: far more than any kernel has.
const KERNEL_TYPES_MAX: usize = 64 << 20;

/// A file in memory that lives as long as this value.
#[derive(Debug)]
pub(super) struct Excerpt(File);

impl Excerpt {
    /// Makes an excerpt of the running kernel's types that these objects name.
    pub(super) fn of<'a>(root: &HostRoot, objects: impl IntoIterator<Item = &'a [u8]>) -> Option<Excerpt> {
        let names: BTreeSet<Vec<u8>> = objects.into_iter().flat_map(named).collect();
        let types = root.read(KERNEL_TYPES, KERNEL_TYPES_MAX).ok()?;
        let excerpt = btf::excerpt(&types, |name| names.contains(name))?;
        let mut file = File::from(memfd_create("kernel-types", MemfdFlags::CLOEXEC).ok()?);
        file.write_all(&excerpt).ok()?;
        Some(Excerpt(file))
    }

    /// Path of the file for this process.
    pub(super) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }
}

/// Returns the names of the structures, unions and enumerations of an object, its own included, without the suffix of a
/// form: `folio` for `folio___flags`.
fn named(object: &[u8]) -> BTreeSet<Vec<u8>> {
    let Ok(Some(types)) = Btf::from_raw("part", object) else { return BTreeSet::new() };
    let is_one =
        |of: &BtfType<'_>| matches!(of.kind(), BtfKind::Struct | BtfKind::Union | BtfKind::Enum | BtfKind::Enum64);
    let name = |of: BtfType<'_>| Some(of.name()?.to_str()?.split("___").next()?.as_bytes().to_vec());
    types.type_by_kind::<BtfType<'_>>().filter(is_one).filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::super::part::PARTS;
    use super::*;

    #[test]
    fn every_part_names_its_record_and_what_it_reads_of_the_kernel() {
        let check = |part: &str, name: &str| {
            let part = PARTS.iter().find(|one| one.name == part).expect("a part");
            assert!(named(part.object).contains(name.as_bytes()), "{name} in {:?}", part.name);
        };
        check("throttle", "dirty_throttle_control");
        check("switches", "mem_cgroup");
        check("bytes", "folio");
        check("bytes", "pageflags");
        check("bytes", "bpf_func_id");
    }
}
