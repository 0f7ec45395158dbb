// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the image needs to know of a program: whether it wants an interpreter, and which part of the file
//! is loaded when it runs. A program with its symbols and debug sections is several times its loaded
//! part, and all of it would take the guest's memory.

/// A 64-bit little-endian program.
#[derive(Debug)]
pub(crate) struct Elf<'a> {
    file: &'a [u8],
    /// Type, offset, bytes in the file.
    segments: Vec<(u32, u64, u64)>,
}

const PT_LOAD: u32 = 1;
const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;
/// Header fields about the section headers: their offset, and `e_shentsize` to `e_shstrndx`.
const E_SHOFF: std::ops::Range<usize> = 40..48;
const E_SHENTSIZE_TO_SHSTRNDX: std::ops::Range<usize> = 58..64;

impl<'a> Elf<'a> {
    /// Reads the headers. Returns `None` if the file is not such a program.
    pub(crate) fn parse(file: &'a [u8]) -> Option<Elf<'a>> {
        if !file.starts_with(b"\x7fELF\x02\x01") || file.len() < 64 {
            return None;
        }
        let table = usize::try_from(u64_at(file, 32)?).ok()?;
        let size = usize::from(u16_at(file, 54)?);
        let count = usize::from(u16_at(file, 56)?);
        let mut segments = Vec::new();
        for index in 0..count {
            let at = table.checked_add(index.checked_mul(size)?)?;
            segments.push((u32_at(file, at)?, u64_at(file, at.checked_add(8)?)?, u64_at(file, at.checked_add(32)?)?));
        }
        Some(Elf { file, segments })
    }

    /// The interpreter it is started with; `None` when it is static.
    pub(crate) fn interpreter(&self) -> Option<&'a str> {
        let (_, offset, size) = self.segments.iter().find(|(kind, _, _)| *kind == PT_INTERP)?;
        let (from, size) = (usize::try_from(*offset).ok()?, usize::try_from(*size).ok()?);
        let path = self.file.get(from..from.checked_add(size)?)?.split(|byte| *byte == 0).next()?;
        std::str::from_utf8(path).ok()
    }

    /// Its segments of notes.
    pub(crate) fn notes(&self) -> impl Iterator<Item = &'a [u8]> {
        let file = self.file;
        self.segments.iter().filter(|(kind, _, _)| *kind == PT_NOTE).filter_map(move |(_, offset, size)| {
            let (from, size) = (usize::try_from(*offset).ok()?, usize::try_from(*size).ok()?);
            file.get(from..from.checked_add(size)?)
        })
    }

    /// The file without what is never loaded: symbols, debug sections, section headers.
    pub(crate) fn loaded_part(&self) -> Vec<u8> {
        let ends = self.segments.iter().filter(|(kind, _, _)| *kind == PT_LOAD);
        let end = ends.map(|(_, offset, size)| offset.saturating_add(*size)).max().unwrap_or(0);
        let end = usize::try_from(end).unwrap_or(usize::MAX).clamp(64, self.file.len());
        let mut part = self.file[..end].to_vec();
        part[E_SHOFF].fill(0);
        part[E_SHENTSIZE_TO_SHSTRNDX].fill(0);
        part
    }
}

fn bytes_at<const N: usize>(file: &[u8], at: usize) -> Option<[u8; N]> {
    file.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn u16_at(file: &[u8], at: usize) -> Option<u16> {
    bytes_at(file, at).map(u16::from_le_bytes)
}

fn u32_at(file: &[u8], at: usize) -> Option<u32> {
    bytes_at(file, at).map(u32::from_le_bytes)
}

fn u64_at(file: &[u8], at: usize) -> Option<u64> {
    bytes_at(file, at).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_loaded_part_of_a_program_still_runs() {
        let whole = std::fs::read("/proc/self/exe").unwrap();
        let elf = Elf::parse(&whole).unwrap();
        let part = elf.loaded_part();
        assert!(part.len() < whole.len(), "{} of {}", part.len(), whole.len());
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("program");
        std::fs::write(&program, part).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let listed = std::process::Command::new(&program).args(["--list", "loaded_part"]).output().unwrap();
        assert!(String::from_utf8_lossy(&listed.stdout).contains("the_loaded_part_of_a_program_still_runs"));
    }

    #[test]
    fn any_bytes_are_a_program_or_are_not() {
        assert!(Elf::parse(b"\x7fELF\x02\x01").is_none());
        bolero::check!().for_each(|bytes: &[u8]| {
            let mut file = b"\x7fELF\x02\x01".to_vec();
            file.extend_from_slice(bytes);
            if let Some(elf) = Elf::parse(&file) {
                assert!(elf.loaded_part().len() <= file.len());
                let _ = elf.interpreter();
            }
        });
    }
}
