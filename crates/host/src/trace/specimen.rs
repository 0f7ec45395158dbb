// SPDX-License-Identifier: MIT OR Apache-2.0
//! For tests: a C structure of a part with a different value in every field, to check that its reader takes each field
//! from its offset. Here libbpf reads the type information of the object. The build has its own reader: the two need to
//! agree.

use libbpf_rs::btf::types::{MemberAttr, Struct};
use libbpf_rs::btf::{Btf, HasSize};

/// A filled structure.
pub(super) struct Specimen {
    /// Its bytes.
    pub(super) bytes: Vec<u8>,
    fields: Vec<(String, u64)>,
}

impl Specimen {
    /// Field `n` of structure `name` holds `n`; a string holds one letter.
    pub(super) fn of(object: &[u8], name: &str) -> Specimen {
        let btf = Btf::from_raw("part", object).unwrap().expect("type information");
        let structure: Struct<'_> = btf.type_by_name(name).unwrap_or_else(|| panic!("no struct {name}"));
        let mut specimen = Specimen { bytes: Vec::new(), fields: Vec::new() };
        let offsets: Vec<usize> = structure
            .iter()
            .map(|member| match member.attr {
                MemberAttr::Normal { offset } => offset as usize / 8,
                MemberAttr::BitField { .. } => panic!("{name} has a bit field"),
            })
            .chain([structure.size()])
            .collect();
        for (index, member) in structure.iter().enumerate() {
            let size = offsets[index + 1] - offsets[index];
            let field = member.name.expect("a named field").to_string_lossy().into_owned();
            let number = index as u64 + 1;
            match size {
                4 => specimen.bytes.extend((number as u32).to_ne_bytes()),
                8 => specimen.bytes.extend(number.to_ne_bytes()),
                _ => {
                    specimen.bytes.push(b'a' + index as u8);
                    specimen.bytes.resize(offsets[index + 1], 0);
                }
            }
            specimen.fields.push((field, number));
        }
        specimen
    }

    /// Decodes the structure.
    pub(super) fn read<T: super::layout::Layout>(&self) -> T {
        assert_eq!(self.bytes.len(), T::SIZE);
        super::layout::read(&self.bytes)
    }

    /// Returns the value of a field.
    pub(super) fn number(&self, field: &str) -> u64 {
        self.fields.iter().find(|(name, _)| name == field).unwrap_or_else(|| panic!("no field {field}")).1
    }

    /// Returns the value of a string field.
    pub(super) fn name(&self, field: &str) -> floodline_record::name::Name {
        floodline_record::name::Name::new([b'a' + self.number(field) as u8 - 1])
    }
}
