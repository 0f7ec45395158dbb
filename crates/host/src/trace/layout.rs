// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables that programs share with user space: their names, and the types of their keys and entries. `build/`
//! generates all of them from the type information of the compiled programs. This file only has the code that reads and
//! writes such a type. No other file states the layout of an entry.

use super::table::{Table, TableOf};
use floodline_record::name::Name;

/// A value in a table: its bytes in the order of the C type, which has no holes.
pub(super) trait Layout: Copy {
    /// Size in bytes.
    const SIZE: usize;

    /// Takes the next value from bytes. Missing bytes are 0: a table of another size is refused before.
    fn take(bytes: &mut &[u8]) -> Self;

    /// Appends its bytes.
    fn put(&self, bytes: &mut Vec<u8>);
}

/// Decodes a value.
pub(super) fn read<T: Layout>(mut bytes: &[u8]) -> T {
    T::take(&mut bytes)
}

/// Encodes a value.
pub(super) fn bytes<T: Layout>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(T::SIZE);
    value.put(&mut bytes);
    bytes
}

/// Decodes a C string, up to its NUL.
pub(super) fn name<const N: usize>(field: &[u8; N]) -> Name {
    Name::new(field.split(|&byte| byte == 0).next().unwrap_or_default())
}

macro_rules! numbers_are_laid_out {
    ($($type:ty)*) => {$(
        impl Layout for $type {
            const SIZE: usize = size_of::<$type>();

            fn take(bytes: &mut &[u8]) -> $type {
                let (field, rest) = bytes.split_at_checked(Self::SIZE).unwrap_or((&[], bytes));
                *bytes = rest;
                <$type>::from_ne_bytes(field.try_into().unwrap_or_default())
            }

            fn put(&self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_ne_bytes());
            }
        }
    )*};
}
numbers_are_laid_out!(u8 u32 u64 i64);

impl<T: Layout, const N: usize> Layout for [T; N] {
    const SIZE: usize = N * T::SIZE;

    fn take(bytes: &mut &[u8]) -> [T; N] {
        std::array::from_fn(|_| T::take(bytes))
    }

    fn put(&self, bytes: &mut Vec<u8>) {
        self.iter().for_each(|one| one.put(bytes));
    }
}

/// A structure of C.
macro_rules! layout {
    (struct $name:ident $size:literal $c:literal { $($field:ident: $type:ty,)* }) => {
        #[doc = concat!("`struct ", $c, "`.")]
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) struct $name {
            $(pub(super) $field: $type,)*
        }

        impl Layout for $name {
            const SIZE: usize = $size;

            fn take(bytes: &mut &[u8]) -> $name {
                $(let $field = Layout::take(bytes);)*
                $name { $($field),* }
            }

            fn put(&self, bytes: &mut Vec<u8>) {
                $(self.$field.put(bytes);)*
            }
        }

        const _: () = assert!(size_of::<$name>() == $size, "a structure of C and its type in Rust differ");
    };
}

/// An enumeration of C.
macro_rules! numbers {
    (enum $name:ident $c:literal { $($value:ident = $number:literal,)* }) => {
        #[doc = concat!("`enum ", $c, "`.")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum $name {
            $($value,)*
        }

        impl $name {
            /// Converts a number that a program stored.
            pub(super) fn of(number: u32) -> Option<$name> {
                match number {
                    $($number => Some($name::$value),)*
                    _ => None,
                }
            }
        }
    };
}

/// The tables.
macro_rules! tables {
    ($(table $constant:ident $name:literal $key:ty => $entry:ty;)*) => {$(
        #[doc = concat!("The table `", $name, "`.")]
        pub(super) const $constant: TableOf<$key, $entry> = TableOf::new($name);
    )*};
}

/// Which object has which tables.
macro_rules! objects {
    ($(object $name:ident $($table:ident)*;)*) => {$(
        pub(super) static $name: &[Table] = &[$($table.table()),*];
    )*};
}

include!(concat!(env!("OUT_DIR"), "/layouts.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_their_order_and_names_end_at_a_zero() {
        let raw = [&7u32.to_ne_bytes()[..], &u64::MAX.to_ne_bytes(), b"sda\0xyz\0", b"full"].concat();
        let mut rest = &raw[..];
        assert_eq!((u32::take(&mut rest), u64::take(&mut rest)), (7, u64::MAX));
        assert_eq!(
            (name(&<[u8; 8]>::take(&mut rest)), name(&<[u8; 4]>::take(&mut rest))),
            ("sda".into(), "full".into())
        );
        assert!(rest.is_empty());
        assert_eq!(read::<u64>(b"short"), 0);
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let key = FileKey { ino: 1, dev: 2, generation: 3 };
        assert_eq!((bytes(&key).len(), read::<FileKey>(&bytes(&key))), (FileKey::SIZE, key));
        assert_eq!((Class::of(2), Class::of(5)), (Some(Class::Journal), None));
    }
}
