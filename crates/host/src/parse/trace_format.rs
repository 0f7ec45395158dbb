// SPDX-License-Identifier: MIT OR Apache-2.0
//! `events/GROUP/NAME/format` of tracefs: the fields of a tracepoint's record on this kernel. Names,
//! order and widths differ between releases, so they are read from this file.
//! Mirrors what `kernel/trace/trace_events.c` prints.

use std::collections::BTreeMap;

/// One field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Offset in the record, bytes.
    pub offset: u32,
    /// Length, bytes.
    pub size: u32,
    /// Whether its number is signed.
    pub signed: bool,
}

/// Returns the fields of a record in the kernel's order, including those of every record, or `None` if the text is not
/// a format file.
pub fn parse(text: &[u8]) -> Option<Vec<Field>> {
    let text = std::str::from_utf8(text).ok()?;
    let lines = text.lines().map(str::trim).filter(|line| line.starts_with("field:"));
    let fields = lines.map(field).collect::<Option<Vec<Field>>>()?;
    (!fields.is_empty()).then_some(fields)
}

/// `field:char bdi[32]; offset:8; size:32; signed:1;`
fn field(line: &str) -> Option<Field> {
    let mut parts = line.split(';').map(str::trim).filter(|part| !part.is_empty());
    let declaration = parts.next()?.strip_prefix("field:")?;
    let (mut offset, mut size, mut signed) = (None, None, None);
    for part in parts {
        match part.split_once(':')? {
            ("offset", value) => offset = value.parse().ok(),
            ("size", value) => size = value.parse().ok(),
            ("signed", "0") => signed = Some(false),
            ("signed", "1") => signed = Some(true),
            _ => {}
        }
    }
    // An array has its length behind the name, a `__data_loc` has empty brackets before it.
    let word = declaration.rsplit([' ', '*']).next()?;
    let name = word.split('[').next().filter(|name| !name.is_empty())?;
    Some(Field { name: name.into(), offset: offset?, size: size?, signed: signed? })
}

/// The words that the kernel prints for the numbers of a field, `__print_symbolic(REC->FIELD, { 0, "word" }, …)`;
/// empty where it prints no words.
pub fn symbols(text: &[u8], field: &str) -> BTreeMap<u64, String> {
    let text = String::from_utf8_lossy(text);
    let table = text.split("__print_symbolic(REC->").find_map(|rest| rest.strip_prefix(field)?.strip_prefix(','));
    let pairs = table.unwrap_or_default().split(')').next().unwrap_or_default().split('{').skip(1);
    pairs
        .filter_map(|pair| {
            let (number, word) = pair.split('}').next()?.split_once(',')?;
            Some((number.trim().parse().ok()?, word.trim().trim_matches('"').to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::testing::survives_anything;

    fn check(line: &str, expect: Option<(&str, u32, u32, bool)>) {
        let expect = expect.map(|(name, offset, size, signed)| vec![Field { name: name.into(), offset, size, signed }]);
        assert_eq!(parse(line.as_bytes()), expect, "{line}");
    }

    #[test]
    fn a_field_has_a_name_a_place_and_a_width() {
        check("\tfield:char bdi[32];\toffset:8;\tsize:32;\tsigned:0;", Some(("bdi", 8, 32, false)));
        check("\tfield:unsigned long limit;\toffset:40;\tsize:8;\tsigned:0;", Some(("limit", 40, 8, false)));
        check("\tfield:long pause;\toffset:112;\tsize:8;\tsigned:1;", Some(("pause", 112, 8, true)));
        check("\tfield:__data_loc char[] path;\toffset:8;\tsize:4;\tsigned:0;", Some(("path", 8, 4, false)));
        check("\tfield:const char * fn;\toffset:8;\tsize:8;\tsigned:0;", Some(("fn", 8, 8, false)));
    }

    #[test]
    fn what_is_no_format_is_refused() {
        check("", None);
        check("name: balance_dirty_pages\nID: 700\nformat:\n", None);
        check("field:long pause;\toffset:x;\tsize:8;\tsigned:1;", None);
        check("field:;", None);
        assert_eq!(parse(b"field:\xff"), None);
    }

    #[test]
    fn numbers_have_the_words_of_the_kernel_that_prints_them() {
        let text =
            b"print fmt: \"sb %d kind=%s reason=%s ino=%lu\", (REC->dev), __print_symbolic(REC->kind, { 0, \"a\" }), \
            __print_symbolic(REC->reason, { 0, \"background\" }, { 6,\"foreign_flush\" }), (unsigned long)REC->ino";
        let words = |field| symbols(text, field).into_iter().collect::<Vec<_>>();
        assert_eq!(words("reason"), [(0, "background".to_owned()), (6, "foreign_flush".to_owned())]);
        assert_eq!(words("ino"), []);
        assert!(symbols(b"", "reason").is_empty());
        survives_anything("__print_symbolic(REC->reason, { 0, \"a\" })", |text| symbols(text, "reason"));
    }

    #[test]
    fn it_survives_anything() {
        survives_anything("\tfield:char bdi[32];\toffset:8;\tsize:32;\tsigned:0;\n", parse);
    }

    #[test]
    fn the_lines_between_do_not_matter() {
        let text = "name: a\nID: 7\nformat:\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
                    \tfield:ino_t cgroup_ino;\toffset:8;\tsize:8;\tsigned:0;\n\nprint fmt: \"%d\", REC->x\n";
        let fields = parse(text.as_bytes()).unwrap();
        assert_eq!(fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>(), ["common_pid", "cgroup_ino"]);
    }
}
