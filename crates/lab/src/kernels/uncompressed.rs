// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unpacks the kernel in a boot image. An emulated CPU needs seconds for that, this machine a fraction of a
//! second. QEMU starts an unpacked kernel at the entry point in its ELF note (PVH boot protocol). Images with
//! another compression boot unchanged: those unpack fast.

use crate::image::Elf;
use std::io::{self, Read, Write};
use std::path::Path;

/// Offsets of fields of the x86 boot header: sectors of the real-mode part, offset and length of the payload after it.
const SETUP_SECTORS_AT: usize = 0x1f1;
const PAYLOAD_OFFSET_AT: usize = 0x248;
const PAYLOAD_LENGTH_AT: usize = 0x24c;
const SECTOR: usize = 512;
/// The payload ends with its unpacked size.
const SIZE_BYTES: usize = 4;
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
/// Most bytes of an unpacked kernel.
const SIZE_MAX: u64 = 512 << 20;
/// The start of a note of type `XEN_ELFNOTE_PHYS32_ENTRY`, after the length of its content.
const PVH_NOTE: &[u8] = b"\x12\0\0\0Xen\0";

/// Writes the unpacked kernel of an image to a file. Returns false if the image boots unchanged.
pub(crate) fn write(image: &Path, to: &Path) -> io::Result<bool> {
    let Some(kernel) = unpacked(&std::fs::read(image)?)? else { return Ok(false) };
    std::fs::File::create_new(to)?.write_all(&kernel)?;
    Ok(true)
}

/// Returns the unpacked kernel of an image; `None` if the image boots unchanged.
fn unpacked(image: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let Some(packed) = payload(image).filter(|packed| packed.starts_with(ZSTD)) else { return Ok(None) };
    let mut kernel = Vec::new();
    let read = zstd::Decoder::new(packed)?.single_frame().take(SIZE_MAX).read_to_end(&mut kernel);
    Ok((read.is_ok() && can_be_started(&kernel)).then_some(kernel))
}

fn payload(image: &[u8]) -> Option<&[u8]> {
    let number = |at: usize| -> Option<usize> {
        usize::try_from(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?)).ok()
    };
    // 0 means 4, for compatibility with very old boot loaders.
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
    use crate::forged::{Changes, Depth, change};

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

    /// A frame of zstd that holds up to 255 bytes as they are.
    fn stored(bytes: &[u8]) -> Vec<u8> {
        // One segment with its length, one block, which is the last.
        let mut frame = [ZSTD, &[0x20, u8::try_from(bytes.len()).unwrap()]].concat();
        frame.extend_from_slice(&(u32::try_from(bytes.len() << 3).unwrap() | 1).to_le_bytes()[..3]);
        frame.extend_from_slice(bytes);
        frame
    }

    #[test]
    fn any_bytes_have_a_payload_or_have_none() {
        const NOTE: &[u8] = b"\x04\0\0\0\x08\0\0\0\x12\0\0\0Xen\0\0\0\0\x01";
        let depth = Depth::default();
        bolero::check!().with_type::<(bool, Vec<u8>, Changes, Changes)>().for_each(
            |(is_noted, notes, inner, outer)| {
                let notes = if *is_noted { &[NOTE, notes].concat() } else { notes };
                let mut kernel = kernel(notes);
                let is_changed = change(&mut kernel, inner);
                let mut image = image(&stored(&kernel));
                let is_changed = change(&mut image, outer) || is_changed;
                let packed = payload(&image);
                depth.count(packed.is_some_and(|packed| packed.starts_with(ZSTD)));
                assert!(packed.is_none_or(|packed| packed.len() < image.len()));
                let unpacked = unpacked(&image).unwrap();
                assert!(is_changed || unpacked == is_noted.then_some(kernel));
                // What a few bytes of a header say, and nothing else.
                let mut header = vec![0; 0x250];
                header.iter_mut().skip(SETUP_SECTORS_AT).zip(notes).for_each(|(to, from)| *to = *from);
                assert!(payload(&header).is_none_or(|payload| payload.len() < header.len()));
            },
        );
        depth.check();
    }
}
