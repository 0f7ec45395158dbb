// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel within a boot image. An emulated CPU needs seconds to unpack it, this machine a fraction of
//! one; and QEMU starts an unpacked kernel at the entry that it names for that (the PVH boot protocol, a
//! note of its ELF file). Images that are packed otherwise boot as they are: those unpack fast.

use crate::image::Elf;
use std::io::{self, Read, Write};
use std::path::Path;

/// Fields of the x86 boot header: sectors of the real-mode part, and where behind it the payload is.
const SETUP_SECTORS_AT: usize = 0x1f1;
const PAYLOAD_OFFSET_AT: usize = 0x248;
const PAYLOAD_LENGTH_AT: usize = 0x24c;
const SECTOR: usize = 512;
/// The payload ends with its unpacked size.
const SIZE_BYTES: usize = 4;
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
/// No kernel is that large.
const SIZE_MAX: u64 = 512 << 20;
/// The start of a note of type `XEN_ELFNOTE_PHYS32_ENTRY`, behind the length of its content.
const PVH_NOTE: &[u8] = b"\x12\0\0\0Xen\0";

/// Writes the unpacked kernel of an image to a file; `false` when it is one that boots as it is.
pub(crate) fn write(image: &Path, to: &Path) -> io::Result<bool> {
    let image = std::fs::read(image)?;
    let Some(packed) = payload(&image).filter(|packed| packed.starts_with(ZSTD)) else { return Ok(false) };
    let mut kernel = Vec::new();
    let unpacked = zstd::Decoder::new(packed)?.single_frame().take(SIZE_MAX).read_to_end(&mut kernel);
    if unpacked.is_err() || !can_be_started(&kernel) {
        return Ok(false);
    }
    std::fs::File::create_new(to)?.write_all(&kernel)?;
    Ok(true)
}

fn payload(image: &[u8]) -> Option<&[u8]> {
    let number = |at: usize| -> Option<usize> {
        usize::try_from(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?)).ok()
    };
    // 0 means 4, for the sake of very old boot loaders.
    let setup = usize::from(*image.get(SETUP_SECTORS_AT)?);
    let real_mode = (if setup == 0 { 4 } else { setup } + 1) * SECTOR;
    let start = real_mode.checked_add(number(PAYLOAD_OFFSET_AT)?)?;
    let end = start.checked_add(number(PAYLOAD_LENGTH_AT)?)?.checked_sub(SIZE_BYTES)?;
    image.get(start..end)
}

fn can_be_started(kernel: &[u8]) -> bool {
    let Some(elf) = Elf::parse(kernel) else { return false };
    elf.notes().any(|notes| notes.windows(PVH_NOTE.len()).any(|window| window == PVH_NOTE))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel with a segment of notes.
    fn kernel(note: &[u8]) -> Vec<u8> {
        let mut kernel = vec![0; 64 + 56];
        kernel[..6].copy_from_slice(b"\x7fELF\x02\x01");
        kernel[32] = 64;
        (kernel[54], kernel[56]) = (56, 1);
        kernel[64] = 4;
        kernel[64 + 8] = 120;
        kernel[64 + 32] = u8::try_from(note.len()).unwrap();
        kernel.extend_from_slice(note);
        kernel
    }

    fn image(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 0x600];
        image[SETUP_SECTORS_AT] = 1;
        image[PAYLOAD_OFFSET_AT..PAYLOAD_OFFSET_AT + 4].copy_from_slice(&0x200_u32.to_le_bytes());
        let length = u32::try_from(payload.len() + SIZE_BYTES).unwrap();
        image[PAYLOAD_LENGTH_AT..PAYLOAD_LENGTH_AT + 4].copy_from_slice(&length.to_le_bytes());
        image.extend_from_slice(payload);
        image.extend_from_slice(&[0; SIZE_BYTES]);
        image
    }

    #[test]
    fn a_kernel_is_unpacked_where_it_can_be_started_so() {
        let dir = tempfile::tempdir().unwrap();
        let good = kernel(b"\x04\0\0\0\x08\0\0\0\x12\0\0\0Xen\0\0\0\0\x01");
        let pack = |kernel: &[u8]| zstd::encode_all(kernel, 1).unwrap();
        let check = |name: &str, image: &[u8], expect: bool| {
            let (from, to) = (dir.path().join(name), dir.path().join(format!("{name}.elf")));
            std::fs::write(&from, image).unwrap();
            assert_eq!(write(&from, &to).unwrap(), expect, "{name}");
            assert_eq!(std::fs::read(&to).ok().as_deref(), expect.then_some(&good[..]), "{name}");
        };
        check("good", &image(&pack(&good)), true);
        check("without the note", &image(&pack(&kernel(b"\x04\0\0\0"))), false);
        check("no kernel", &image(&pack(b"hello")), false);
        check("another way", &image(b"\x02\x21\x4c\x18"), false);
        check("cut off", &image(&pack(&good)[..20]), false);
        check("empty", b"", false);
    }

    #[test]
    fn any_bytes_have_a_payload_or_have_none() {
        bolero::check!().for_each(|bytes: &[u8]| {
            let mut image = vec![0; 0x250];
            for (to, from) in image.iter_mut().skip(SETUP_SECTORS_AT).zip(bytes) {
                *to = *from;
            }
            assert!(payload(&image).is_none_or(|payload| payload.len() < image.len()));
        });
    }
}
