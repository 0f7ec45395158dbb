// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of every parser: any bytes are accepted without a panic, and a text cut off anywhere gives the same
//! values or none, never different ones.

use floodline_record::metric::Row;

/// Feeds a parser random bytes, and texts made of the pieces of a good one. Once in a test: a fuzzer stays in the
/// first.
#[track_caller]
pub(super) fn survives_anything<T>(good: &str, parse: impl Fn(&[u8]) -> T + std::panic::RefUnwindSafe) {
    let pieces: Vec<&[u8]> = good.as_bytes().split_inclusive(|b| b" \n:=".contains(b)).collect();
    // The parser that asks, because kept inputs of each have a folder of their own.
    let file = std::path::Path::new(std::panic::Location::caller().file()).file_stem().unwrap_or_default();
    bolero::check!(name = file.display()).with_type::<Vec<u16>>().with_iterations(400).for_each(|choices| {
        let raw: Vec<u8> = choices.iter().map(|&choice| choice as u8).collect();
        parse(&raw);
        let mut mixed = Vec::new();
        for &choice in choices {
            match pieces.get(usize::from(choice >> 4) % pieces.len().max(1)) {
                Some(piece) if choice & 7 != 0 => mixed.extend_from_slice(piece),
                _ => mixed.push((choice >> 4) as u8),
            }
        }
        parse(&mixed);
    });
}

/// Cuts a good text everywhere.
pub(super) fn a_cut_never_lies<R: Row>(good: &str, parse: impl Fn(&[u8]) -> (R, bool)) {
    let (whole, understood) = parse(good.as_bytes());
    assert!(understood, "the whole text is understood");
    for end in 0..good.len() {
        let (cut, understood) = parse(&good.as_bytes()[..end]);
        for (index, metric) in R::METRICS.iter().enumerate() {
            let value = cut.get(index);
            assert!(value.is_none() || value == whole.get(index), "{} cut at byte {end}: {value:?}", metric.name);
        }
        let at_line_end = end == 0 || good.as_bytes()[end - 1] == b'\n';
        assert!(!understood || at_line_end, "cut at byte {end} and not noticed");
    }
}
