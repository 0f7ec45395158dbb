// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/sys/kernel/btf/vmlinux`: the kernel's description of its types (BTF), more than a hundred thousand of them. Takes
//! out some, with all that they hold by value, as a description of its own. No general reader: what a type means
//! is left to libbpf. Mirrors `include/uapi/linux/btf.h`, described in `Documentation/bpf/btf.rst`.

use std::collections::BTreeMap;

const MAGIC: u16 = 0xeb9f;
/// Size of `struct btf_header`, bytes, without fields that later versions may add.
const HEADER: usize = 24;
/// Size of a word, bytes: types consist of words.
const WORD: usize = 4;
/// Words of `struct btf_type`: name, kind and count, size or another type.
const TYPE_WORDS: usize = 3;

/// Meaning of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// Where a name begins.
    Name,
    /// The number of a type that is held by value, or of the type behind an alias.
    Type,
    /// The number of a type that is pointed to: it is left out.
    Pointed,
    /// Something else.
    Plain,
}

/// Layout of the types of one kind.
struct Layout {
    /// The last word of `struct btf_type`.
    last: Word,
    /// The words behind it.
    behind: &'static [Word],
    /// Whether these words repeat for each member.
    each: bool,
}

/// Returns the layout of a kind, or `None` for a kind of a later kernel.
fn layout(kind: u32) -> Option<Layout> {
    use Word::{Name, Plain, Pointed, Type};
    let (last, behind, each): (Word, &'static [Word], bool) = match kind {
        // Integers, and marks of declarations and variables, which nothing holds.
        1 | 14 | 17 => (Plain, &[Plain], false),
        2 => (Pointed, &[], false),
        3 => (Plain, &[Type, Type, Plain], false),
        // Structures and unions.
        4 | 5 => (Plain, &[Name, Type, Plain], true),
        // Enumerations, of 64 bits the last.
        6 => (Plain, &[Name, Plain], true),
        19 => (Plain, &[Name, Plain, Plain], true),
        // Declared only, functions, floating point.
        7 | 12 | 16 => (Plain, &[], false),
        // Type definitions, volatile, const, restrict, marks of types.
        8..=11 | 18 => (Type, &[], false),
        // Signatures of functions are only pointed to, sections of data are held by nothing.
        13 => (Plain, &[Plain, Plain], true),
        15 => (Plain, &[Plain, Plain, Plain], true),
        _ => return None,
    };
    Some(Layout { last, behind, each })
}

/// Returns whether a program can name a type of this kind: structures, unions and enumerations.
fn is_named_by_programs(kind: u32) -> bool {
    matches!(kind, 4 | 5 | 6 | 19)
}

fn kind(info: u32) -> u32 {
    info >> 24 & 0x1f
}

/// Returns the wanted structures, unions and enumerations with all types that they hold, as BTF in which pointers lead
/// to
/// `void`. Returns `None` if the bytes are not BTF, or contain a kind that is not known here.
pub(crate) fn excerpt(btf: &[u8], is_wanted: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
    let all = Types::of(btf)?;
    let mut excerpt = Excerpt::new(&all);
    for number in 1..=u32::try_from(all.starts.len()).ok()? {
        let start = all.start(number)?;
        if is_named_by_programs(kind(all.word(start, 1)?)) && is_wanted(all.name(all.word(start, 0)?)?) {
            excerpt.number(number);
        }
    }
    excerpt.finish()
}

/// All types.
struct Types<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    /// Start of each type; the first has number 1, as 0 is `void`.
    starts: Vec<u32>,
}

impl<'a> Types<'a> {
    fn of(btf: &'a [u8]) -> Option<Types<'a>> {
        let field = |at: usize| Some(word(btf, at)? as usize);
        if btf.get(..2)? != MAGIC.to_ne_bytes() {
            return None;
        }
        let header = field(4)?;
        let section = |at: usize| {
            let begin = header.checked_add(field(at)?)?;
            btf.get(begin..begin.checked_add(field(at + WORD)?)?)
        };
        let mut all = Types { types: section(8)?, strings: section(16)?, starts: Vec::new() };
        let mut at = 0;
        while at < all.types.len() {
            all.starts.push(u32::try_from(at).ok()?);
            at += all.length(at)?;
        }
        (at == all.types.len()).then_some(all)
    }

    /// Returns the length of the type at `start`, bytes.
    fn length(&self, start: usize) -> Option<usize> {
        let info = self.word(start, 1)?;
        let layout = layout(kind(info))?;
        let times = if layout.each { info as usize & 0xffff } else { 1 };
        Some((TYPE_WORDS + layout.behind.len() * times) * WORD)
    }

    fn start(&self, number: u32) -> Option<usize> {
        Some(*self.starts.get((number as usize).checked_sub(1)?)? as usize)
    }

    fn word(&self, start: usize, index: usize) -> Option<u32> {
        word(self.types, start + index * WORD)
    }

    fn name(&self, offset: u32) -> Option<&'a [u8]> {
        self.strings.get(offset as usize..)?.split(|&byte| byte == 0).next()
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(WORD)?)?.try_into().ok()?))
}

/// An excerpt in progress.
struct Excerpt<'a> {
    all: &'a Types<'a>,
    /// Types taken, in the order of their new numbers.
    taken: Vec<u32>,
    /// New numbers by old ones.
    numbers: BTreeMap<u32, u32>,
    strings: Vec<u8>,
    /// New offsets of names by old ones.
    names: BTreeMap<u32, u32>,
}

impl<'a> Excerpt<'a> {
    fn new(all: &'a Types<'a>) -> Excerpt<'a> {
        // A type without a name has the empty name at offset 0.
        let (strings, names) = (vec![0], BTreeMap::from([(0, 0)]));
        Excerpt { all, taken: Vec::new(), numbers: BTreeMap::from([(0, 0)]), strings, names }
    }

    /// Returns the new number of a type, and takes the type.
    fn number(&mut self, number: u32) -> u32 {
        *self.numbers.entry(number).or_insert_with(|| {
            self.taken.push(number);
            // There are at most as many as in the source, which fits.
            self.taken.len() as u32
        })
    }

    fn name(&mut self, offset: u32) -> Option<u32> {
        if let Some(known) = self.names.get(&offset) {
            return Some(*known);
        }
        let place = u32::try_from(self.strings.len()).ok()?;
        self.strings.extend_from_slice(self.all.name(offset)?);
        self.strings.push(0);
        self.names.insert(offset, place);
        Some(place)
    }

    fn word(&mut self, word: u32, says: Word) -> Option<u32> {
        match says {
            Word::Name => self.name(word),
            Word::Type => Some(self.number(word)),
            Word::Pointed => Some(0),
            Word::Plain => Some(word),
        }
    }

    /// Writes all types taken, and takes the types that they hold.
    fn finish(mut self) -> Option<Vec<u8>> {
        let mut types = Vec::new();
        let mut written = 0;
        while let Some(&number) = self.taken.get(written) {
            let start = self.all.start(number)?;
            let info = self.all.word(start, 1)?;
            let layout = layout(kind(info))?;
            let behind = layout.behind.iter().copied().cycle();
            let says = [Word::Name, Word::Plain, layout.last].into_iter().chain(behind);
            let words = self.all.length(start)? / WORD;
            for (index, says) in says.take(words).enumerate() {
                let word = self.word(self.all.word(start, index)?, says)?;
                types.extend(word.to_ne_bytes());
            }
            written += 1;
        }
        let (types_length, strings_length) =
            (u32::try_from(types.len()).ok()?, u32::try_from(self.strings.len()).ok()?);
        let mut btf = MAGIC.to_ne_bytes().to_vec();
        // Version 1, no flags.
        btf.extend([1, 0]);
        for field in [HEADER as u32, 0, types_length, types_length, strings_length] {
            btf.extend(field.to_ne_bytes());
        }
        Some([btf, types, self.strings].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A description of types, each given as its words; names are `NAMES` by their place.
    fn btf(types: &[&[u32]]) -> Vec<u8> {
        let words: Vec<u8> = types.iter().flat_map(|words| words.iter().flat_map(|word| word.to_ne_bytes())).collect();
        let mut btf = MAGIC.to_ne_bytes().to_vec();
        btf.extend([1, 0]);
        for field in [HEADER, 0, words.len(), words.len(), NAMES.len()] {
            btf.extend((field as u32).to_ne_bytes());
        }
        [&btf, &words, NAMES].concat()
    }

    const NAMES: &[u8] = b"\0int\0inode\0i_ino\0i_sb\0page\0";
    const INT: u32 = 1;
    const INODE: u32 = 5;
    const I_INO: u32 = 11;
    const I_SB: u32 = 17;
    const PAGE: u32 = 22;

    fn info(kind: u32, members: u32) -> u32 {
        kind << 24 | members
    }

    /// A kernel with a structure of a number, a pointer to another structure, and an array of itself.
    fn kernel() -> Vec<u8> {
        btf(&[
            &[PAGE, info(4, 1), 8, I_SB, 3, 0],
            &[INT, info(1, 0), 4, 0x20],
            &[0, info(2, 0), 4],
            &[INODE, info(4, 2), 16, I_INO, 2, 0, I_SB, 3, 64],
            &[0, info(3, 0), 0, 2, 2, 7],
            &[PAGE, info(12, 1), 1],
        ])
    }

    /// Names, and words that are not names, of an excerpt.
    fn check(btf: &[u8], wanted: &[u8], expect: Option<&[(&str, u32, &[u32])]>) {
        let excerpt = excerpt(btf, |name| name == wanted);
        let types = excerpt.as_deref().map(|bytes| Types::of(bytes).expect("an excerpt is a description"));
        let told = types.map(|types| {
            let one = |&start: &u32| {
                let start = start as usize;
                let name = String::from_utf8_lossy(types.name(types.word(start, 0).unwrap()).unwrap()).into_owned();
                let words = types.length(start).unwrap() / WORD;
                let behind: Vec<u32> = (2..words).map(|index| types.word(start, index).unwrap()).collect();
                (name, kind(types.word(start, 1).unwrap()), behind)
            };
            types.starts.iter().map(one).collect::<Vec<_>>()
        });
        let owned = |(name, kind, words): &(&str, u32, &[u32])| ((*name).to_owned(), *kind, words.to_vec());
        assert_eq!(told, expect.map(|expect| expect.iter().map(owned).collect()));
    }

    #[test]
    fn a_structure_comes_with_what_it_holds_and_without_what_it_points_to() {
        // Behind the name inode, which is the first string of the new ones, are those of its members.
        let inode: &[u32] = &[16, 7, 2, 0, 13, 3, 64];
        let expect: &[(&str, u32, &[u32])] = &[("inode", 4, inode), ("int", 1, &[4, 0x20]), ("", 2, &[0])];
        check(&kernel(), b"inode", Some(expect));
        check(&kernel(), b"nothing", Some(&[]));
        // A function of that name is no structure.
        check(&kernel(), b"page", Some(&[("page", 4, &[8, 6, 2, 0]), ("", 2, &[0])]));
    }

    #[test]
    fn what_is_not_understood_is_no_excerpt() {
        check(b"", b"inode", None);
        check(&kernel()[..kernel().len() - NAMES.len()], b"inode", None);
        check(&btf(&[&[INODE, info(20, 0), 0]]), b"inode", None);
        // A member of a type that there is not.
        check(&btf(&[&[INODE, info(4, 1), 8, I_INO, 9, 0]]), b"inode", None);
        // More members than there are words.
        check(&btf(&[&[INODE, info(4, 2), 8, I_INO, 0, 0]]), b"inode", None);
    }

    #[test]
    fn any_bytes_are_survived() {
        let good = kernel();
        bolero::check!().with_type::<Vec<(u16, u8)>>().with_iterations(400).for_each(|changes| {
            let mut bytes = good.clone();
            for (at, to) in changes {
                let at = usize::from(*at) % bytes.len();
                bytes[at] = *to;
            }
            excerpt(&bytes, |_| true);
        });
    }
}
