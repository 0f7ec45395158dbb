// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the type information (BTF) of a compiled object: which tables it declares, and how their keys and entries are
//! laid out. Only what such types are made of; `include/uapi/linux/btf.h` describes the format.

use std::ops::Range;

/// A type, with what is needed of it.
#[derive(Clone, Debug)]
pub(crate) enum Type {
    /// Size in bytes, and whether it has a sign.
    Integer(usize, bool),
    /// The type of the elements and their number.
    Array(u32, usize),
    Struct(Struct),
    Enum(Enum),
    /// Another name or a qualifier of a type.
    Alias(u32),
    Pointer(u32),
    /// A variable with its name and type.
    Variable(String, u32),
    /// A section with its name and its variables.
    Section(String, Vec<u32>),
    Other,
}

/// A structure.
#[derive(Clone, Debug)]
pub(crate) struct Struct {
    pub(crate) name: String,
    /// Bytes.
    pub(crate) size: usize,
    pub(crate) members: Vec<Member>,
}

/// A member of a structure.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) of: u32,
    /// Bits from the start.
    pub(crate) offset: u32,
}

/// An enumeration with its values.
#[derive(Clone, Debug)]
pub(crate) struct Enum {
    pub(crate) name: String,
    pub(crate) size: usize,
    pub(crate) values: Vec<(String, u32)>,
}

/// A table of the object: its name, and the types of a key and of an entry.
pub(crate) struct Map {
    pub(crate) name: String,
    pub(crate) key: u32,
    pub(crate) value: u32,
}

/// All types of an object, by number; the first is `void`.
pub(crate) struct Types(Vec<Type>);

impl Types {
    /// Reads the types of a compiled object.
    pub(crate) fn of_object(object: &[u8]) -> Option<Types> {
        Types::of(object.get(section(object, b".BTF")?)?)
    }

    fn of(btf: &[u8]) -> Option<Types> {
        let (header, begin, length) = (word(btf, 4)?, word(btf, 8)?, word(btf, 12)?);
        let types = btf.get(header + begin..header + begin + length)?;
        let strings = btf.get(header + word(btf, 16)?..)?;
        let mut words = types.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        let mut all = vec![Type::Other];
        while let Some(name) = words.next() {
            let (info, last) = (words.next()?, words.next()?);
            let name = text(strings, name)?;
            let mut rest = |count: usize| -> Option<Vec<u32>> { (0..count).map(|_| words.next()).collect() };
            let (kind, count) = (info >> 24 & 0x1f, info as usize & 0xffff);
            all.push(match kind {
                1 => rest(1).map(|words| Type::Integer(last as usize, words[0] >> 24 & 1 == 1))?,
                2 => Type::Pointer(last),
                3 => rest(3).map(|words| Type::Array(words[0], words[2] as usize))?,
                4 | 5 => {
                    let words = rest(3 * count)?;
                    let member =
                        |words: &[u32]| Some(Member { name: text(strings, words[0])?, of: words[1], offset: words[2] });
                    let members = words.chunks(3).map(member).collect::<Option<_>>()?;
                    if kind == 4 { Type::Struct(Struct { name, size: last as usize, members }) } else { Type::Other }
                }
                6 => {
                    let words = rest(2 * count)?;
                    let values = words.chunks(2).map(|words| Some((text(strings, words[0])?, words[1])));
                    Type::Enum(Enum { name, size: last as usize, values: values.collect::<Option<_>>()? })
                }
                8..=11 | 18 => Type::Alias(last),
                7 | 12 | 16 => Type::Other,
                13 => rest(2 * count).map(|_| Type::Other)?,
                14 => rest(1).map(|_| Type::Variable(name, last))?,
                15 => Type::Section(name, rest(3 * count)?.chunks(3).map(|words| words[0]).collect()),
                17 => rest(1).map(|_| Type::Other)?,
                19 => rest(3 * count).map(|_| Type::Other)?,
                _ => return None,
            });
        }
        Some(Types(all))
    }

    /// The type of a number, without qualifiers and other names.
    pub(crate) fn get(&self, number: u32) -> &Type {
        let mut number = number;
        for _ in 0..self.0.len() {
            match self.0.get(number as usize) {
                Some(Type::Alias(of)) => number = *of,
                found => return found.unwrap_or(&Type::Other),
            }
        }
        &Type::Other
    }

    /// The tables that the object declares: the variables of its section `.maps`.
    pub(crate) fn maps(&self) -> Vec<Map> {
        let variables = self.0.iter().filter_map(|one| match one {
            Type::Section(name, variables) if name == ".maps" => Some(variables),
            _ => None,
        });
        variables.flatten().filter_map(|variable| self.map(*variable)).collect()
    }

    fn map(&self, variable: u32) -> Option<Map> {
        let Type::Variable(name, of) = self.get(variable) else { return None };
        let Type::Struct(declared) = self.get(*of) else { return None };
        let pointed = |field: &str| {
            let member = declared.members.iter().find(|member| member.name == field)?;
            if let Type::Pointer(to) = self.get(member.of) { Some(*to) } else { None }
        };
        Some(Map { name: name.clone(), key: pointed("key")?, value: pointed("value")? })
    }
}

/// Where a section of a 64-bit ELF file with little-endian numbers lies.
fn section(object: &[u8], wanted: &[u8]) -> Option<Range<usize>> {
    let number = |at: usize, length: usize| {
        Some(object.get(at..at + length)?.iter().rev().fold(0usize, |sum, byte| sum << 8 | usize::from(*byte)))
    };
    let (table, count, names) = (number(0x28, 8)?, number(0x3c, 2)?, number(0x3e, 2)?);
    let header = |index: usize| table + index * 0x40;
    let names = number(header(names) + 0x18, 8)?;
    let is_it = |header: &usize| {
        let name = number(*header, 4).and_then(|name| object.get(names + name..));
        name.is_some_and(|name| name.strip_prefix(wanted).is_some_and(|rest| rest.first() == Some(&0)))
    };
    let found = (0..count).map(header).find(is_it)?;
    let begin = number(found + 0x18, 8)?;
    Some(begin..begin + number(found + 0x20, 8)?)
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize)
}

fn text(strings: &[u8], at: u32) -> Option<String> {
    let name = strings.get(at as usize..)?.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(name).into_owned())
}
