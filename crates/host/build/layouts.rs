// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the Rust types of the tables that the programs share with user space: one structure for each structure of
//! C, one enumeration for each enumeration, one constant for each table, one list of tables for each object.
//! `src/trace/layout.rs` has the macros that give them meaning.

use crate::btf::{Enum, Struct, Type, Types};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Types of all objects so far, by their names in C.
#[derive(Default)]
pub(crate) struct Layouts {
    types: BTreeMap<String, String>,
    tables: BTreeMap<String, String>,
    objects: String,
}

impl Layouts {
    /// Adds the tables of an object. What two objects share is stated alike in both, as they include the same header.
    pub(crate) fn add(&mut self, object: &str, types: &Types) -> Result<(), String> {
        let mut names = Vec::new();
        for map in types.maps() {
            let constant = map.name.to_uppercase();
            let (key, value) = (self.name(types, map.key)?, self.name(types, map.value)?);
            let line = format!("    table {constant} {:?} {key} => {value};\n", map.name);
            state(&mut self.tables, &map.name, line)?;
            names.push(constant);
        }
        let constant = object.to_uppercase();
        let names = names.join(" ");
        writeln!(self.objects, "    object {constant}_TABLES {names};").map_err(|error| error.to_string())
    }

    /// The Rust file.
    pub(crate) fn finish(self) -> String {
        let types: String = self.types.into_values().collect();
        let tables: String = self.tables.into_values().collect();
        format!("{types}tables! {{\n{tables}}}\nobjects! {{\n{}}}\n", self.objects)
    }

    /// What a type is called in Rust; a structure or enumeration is added.
    fn name(&mut self, types: &Types, number: u32) -> Result<String, String> {
        match types.get(number) {
            // A `char`, which has a sign here and none there.
            Type::Integer(1, _) => Ok("u8".to_owned()),
            Type::Integer(size @ (4 | 8), signed) => Ok(format!("{}{}", if *signed { 'i' } else { 'u' }, 8 * size)),
            Type::Array(of, count) => Ok(format!("[{}; {count}]", self.name(types, *of)?)),
            Type::Struct(structure) => self.add_struct(types, structure),
            // A field has any number, until `of` of its enumeration has looked.
            Type::Enum(one) if one.size == 4 => self.add_enum(one).map(|()| "u32".to_owned()),
            other => Err(format!("{other:?} cannot be part of a table")),
        }
    }

    fn add_struct(&mut self, types: &Types, structure: &Struct) -> Result<String, String> {
        let (name, mut at) = (camel(&structure.name), 0);
        let mut fields = String::new();
        for member in &structure.members {
            if member.offset as usize != 8 * at {
                return Err(format!("struct {} has a hole before {}: fill it", structure.name, member.name));
            }
            at += size(types, member.of);
            fields += &format!("        {}: {},\n", member.name, self.name(types, member.of)?);
        }
        if at != structure.size {
            return Err(format!("struct {} has a hole at its end: fill it", structure.name));
        }
        let text = format!("layout! {{\n    struct {name} {} {:?} {{\n{fields}    }}\n}}\n", at, structure.name);
        state(&mut self.types, &structure.name, text)?;
        Ok(name)
    }

    fn add_enum(&mut self, one: &Enum) -> Result<(), String> {
        let prefix = format!("{}_", one.name.to_uppercase());
        let name = camel(&one.name);
        let values = one.values.iter().map(|(value, number)| {
            let short = value.strip_prefix(&prefix).unwrap_or(value);
            format!("        {} = {number},\n", camel(&short.to_lowercase()))
        });
        let values: String = values.collect();
        let text = format!("numbers! {{\n    enum {name} {:?} {{\n{values}    }}\n}}\n", one.name);
        state(&mut self.types, &format!("enum {}", one.name), text)
    }
}

/// Bytes of a type.
fn size(types: &Types, number: u32) -> usize {
    match types.get(number) {
        Type::Integer(size, _) => *size,
        Type::Array(of, count) => count * size(types, *of),
        Type::Struct(structure) => structure.size,
        Type::Enum(one) => one.size,
        _ => 0,
    }
}

/// Adds the text of a name, or compares it with what another object has under it.
fn state(known: &mut BTreeMap<String, String>, name: &str, text: String) -> Result<(), String> {
    match known.insert(name.to_owned(), text.clone()) {
        Some(before) if before != text => Err(format!("two objects have different types under the name {name}")),
        _ => Ok(()),
    }
}

/// `throttle_key` → `ThrottleKey`.
fn camel(name: &str) -> String {
    let word = |word: &str| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_uppercase() + rest
    };
    name.split('_').map(word).collect()
}
