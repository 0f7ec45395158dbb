// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds the size of a TOML text without writing it. Twins of busy hosts have thousands of tasks: their text, and the tree of it,
//! take much more time and memory than this sum.

use serde::Serialize;
use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple, SerializeTupleStruct,
    SerializeTupleVariant, Serializer,
};
use std::fmt::Error;

/// Most bytes that the TOML text of a value may have. `None` if it has a part that TOML does not have.
pub(super) fn most_text(value: &(impl Serialize + ?Sized)) -> Option<usize> {
    let mut bound = Bound::default();
    value.serialize(&mut bound).ok().map(|()| bound.bytes)
}

#[derive(Default)]
struct Bound {
    bytes: usize,
    /// Bytes of the keys above: each table may repeat them.
    path: usize,
}

impl Bound {
    /// A character of another than plain text is written with at most six bytes, such as `\u0001`.
    fn text(&mut self, text: &str) {
        let is_plain = |byte: u8| matches!(byte, b' ' | b'!' | b'#'..=b'&' | b'('..=b'[' | b']'..=b'~');
        let each = if text.bytes().all(is_plain) { 1 } else { 6 };
        self.bytes += each * text.len() + 8;
    }

    fn table(&mut self) {
        self.bytes += self.path + 8;
    }

    /// Adds a key and enters it. Returns the bytes of its path, with which it is left.
    fn enter(&mut self, key: &(impl Serialize + ?Sized)) -> Result<usize, Error> {
        let before = self.bytes;
        key.serialize(&mut *self)?;
        let key = self.bytes - before;
        self.path += key;
        self.bytes += 4;
        Ok(key)
    }

    fn entry(&mut self, key: &(impl Serialize + ?Sized), value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        let key = self.enter(key)?;
        value.serialize(&mut *self)?;
        self.path -= key;
        Ok(())
    }

    fn item(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.bytes += 2;
        value.serialize(self)
    }

    fn number(&mut self) -> Result<(), Error> {
        self.bytes += 40;
        Ok(())
    }

    /// All digits are written, without an exponent.
    fn float(&mut self) -> Result<(), Error> {
        self.bytes += 350;
        Ok(())
    }

    fn parts(&mut self, entered: usize) -> Parts<'_> {
        Parts { bound: self, entered }
    }
}

/// The parts of a value, and the bytes of the key that ends with them.
struct Parts<'a> {
    bound: &'a mut Bound,
    entered: usize,
}

impl Parts<'_> {
    fn left(self) -> Result<(), Error> {
        self.bound.path -= self.entered;
        Ok(())
    }
}

macro_rules! numbers {
    ($($name:ident: $type:ty = $of:ident),*) => {
        $(fn $name(self, _: $type) -> Result<(), Error> { self.$of() })*
    };
}

impl<'a> Serializer for &'a mut Bound {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Parts<'a>;
    type SerializeTuple = Parts<'a>;
    type SerializeTupleStruct = Parts<'a>;
    type SerializeTupleVariant = Parts<'a>;
    type SerializeMap = Parts<'a>;
    type SerializeStruct = Parts<'a>;
    type SerializeStructVariant = Parts<'a>;

    numbers! {
        serialize_bool: bool = number, serialize_i8: i8 = number, serialize_i16: i16 = number, serialize_i32: i32 = number,
        serialize_i64: i64 = number, serialize_u8: u8 = number, serialize_u16: u16 = number, serialize_u32: u32 = number,
        serialize_u64: u64 = number, serialize_f32: f32 = float, serialize_f64: f64 = float
    }

    fn serialize_char(self, c: char) -> Result<(), Error> {
        self.text(c.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    fn serialize_str(self, text: &str) -> Result<(), Error> {
        self.text(text);
        Ok(())
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<(), Error> {
        Err(Error)
    }

    fn serialize_none(self) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        Err(Error)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        Err(Error)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.table();
        self.entry(variant, value)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Parts<'a>, Error> {
        self.bytes += 4;
        Ok(self.parts(0))
    }

    fn serialize_tuple(self, _: usize) -> Result<Parts<'a>, Error> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts<'a>, Error> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'a>, Error> {
        self.table();
        let entered = self.enter(variant)?;
        self.bytes += 4;
        Ok(self.parts(entered))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Parts<'a>, Error> {
        self.table();
        Ok(self.parts(0))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Parts<'a>, Error> {
        self.serialize_map(None)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'a>, Error> {
        self.table();
        let entered = self.enter(variant)?;
        self.table();
        Ok(self.parts(entered))
    }
}

/// Parts without names, one after the other.
macro_rules! items {
    ($($part:ident $method:ident),*) => { $(
        impl $part for Parts<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.bound.item(value)
            }

            fn end(self) -> Result<(), Error> {
                self.left()
            }
        }
    )* };
}

items!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

impl SerializeMap for Parts<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.entered = self.bound.enter(key)?;
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(&mut *self.bound)?;
        self.bound.path -= std::mem::take(&mut self.entered);
        Ok(())
    }

    fn end(self) -> Result<(), Error> {
        self.left()
    }
}

/// Parts with names.
macro_rules! entries {
    ($($part:ident),*) => { $(
        impl $part for Parts<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
                self.bound.entry(key, value)
            }

            fn end(self) -> Result<(), Error> {
                self.left()
            }
        }
    )* };
}

entries!(SerializeStruct, SerializeStructVariant);
