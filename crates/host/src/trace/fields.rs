// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys and entries of the kernel's tables as bytes, read field by field in the order of the C structures of
//! `bpf/`, which have no holes. That sizes agree is checked when a part is loaded, that fields do by a test
//! against the type information in the object.

use floodline_record::name::Name;

/// What is left of a structure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_at_checked(N).unwrap_or((&[], self.0));
        self.0 = rest;
        // A structure that is too short was refused when the part was loaded.
        field.try_into().unwrap_or([0; N])
    }

    /// The next `__u32`.
    pub(super) fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    /// The next `__u64`.
    pub(super) fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }

    /// The next `char[N]`, up to its end.
    pub(super) fn name<const N: usize>(&mut self) -> Name {
        let bytes: [u8; N] = self.take();
        Name::new(bytes.split(|&byte| byte == 0).next().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_their_order_and_names_end_at_a_zero() {
        let mut bytes = 7u32.to_ne_bytes().to_vec();
        bytes.extend(u64::MAX.to_ne_bytes());
        bytes.extend(b"sda\0xyz\0");
        bytes.extend(b"full");
        let mut fields = Fields(&bytes);
        assert_eq!((fields.u32(), fields.u64()), (7, u64::MAX));
        assert_eq!((fields.name::<8>(), fields.name::<4>()), ("sda".into(), "full".into()));
        assert!(fields.0.is_empty());
    }
}
