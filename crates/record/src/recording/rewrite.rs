// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rewrites the JSON of a recording, as an attacker could. For tests, which cannot make such files with the encoder.

use super::frame::{FrameReader, PREAMBLE, Step, kind, put_frame};
use super::wire::{Cursor, put_bytes};
use super::{MAX_CONTENT, item};
use serde_json::Value;

/// Kind of a piece of JSON in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The header of the file.
    Header,
    /// The facts about the machine.
    Facts,
    /// The description of an entity.
    Entity,
    /// An event.
    Event,
    /// A gap.
    Gap,
}

impl Piece {
    fn of_item(kind: u8) -> Option<Piece> {
        match kind {
            item::FACTS => Some(Piece::Facts),
            item::ENTITY => Some(Piece::Entity),
            item::EVENT => Some(Piece::Event),
            item::GAP => Some(Piece::Gap),
            _ => None,
        }
    }
}

/// Returns the recording with each piece of JSON replaced by the result of `change`, or `None` if the bytes are not a
/// whole recording.
pub fn rewrite(recording: &[u8], mut change: impl FnMut(Piece, Value) -> Value) -> Option<Vec<u8>> {
    let mut out = recording.get(..PREAMBLE)?.to_vec();
    let mut frames = FrameReader::with(recording, Vec::new());
    frames.preamble().ok()?;
    loop {
        let kind = match frames.next().ok()? {
            Step::End => return Some(out),
            Step::Damaged { .. } => return None,
            Step::Frame { kind, .. } => kind,
        };
        let content = zstd::bulk::decompress(frames.payload(), MAX_CONTENT).ok()?;
        let content = match kind {
            kind::HEADER => change(Piece::Header, serde_json::from_slice(&content).ok()?).to_string().into_bytes(),
            kind::RECORDS | kind::DIRECTORY => {
                let mut cursor = Cursor::new(&content);
                if kind == kind::RECORDS {
                    cursor.varint().ok()?;
                    cursor.varint().ok()?;
                    cursor.byte().ok()?;
                }
                let mut changed = content.get(..content.len() - cursor.left())?.to_vec();
                loop {
                    let item = cursor.byte().ok()?;
                    changed.push(item);
                    if item == item::STOP {
                        break;
                    }
                    let json = cursor.bytes().ok()?;
                    match Piece::of_item(item) {
                        Some(piece) => {
                            let value = change(piece, serde_json::from_slice(json).ok()?);
                            put_bytes(&mut changed, value.to_string().as_bytes());
                        }
                        None => put_bytes(&mut changed, json),
                    }
                }
                changed.extend_from_slice(cursor.take(cursor.left()).ok()?);
                changed
            }
            _ => content,
        };
        put_frame(&mut out, kind, &zstd::bulk::compress(&content, 3).ok()?);
    }
}
