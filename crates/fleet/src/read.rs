// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes of a recording → a window, and the causes for which a file has no answer. Stops after a bounded number of
//! samples: a file of any length is judged by its first part.

use crate::change::Change;
use crate::row::{Cause, Row};
use floodline_record::human;
use floodline_record::record::{Record, Sink};
use floodline_record::recording::{DecodeError, Decoder, Why};
use floodline_record::window::Window;
use std::convert::Infallible;
use std::io::{self, Read};
use std::ops::ControlFlow;

/// Samples of a recording that are read: a day at one sample in 5 s.
pub const SAMPLES_MAX: u64 = 20_000;

/// Why a file has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Stable word for it.
    pub cause: Cause,
    /// One sentence.
    pub why: String,
}

impl Unreadable {
    /// Reports why a file could not be opened or read.
    pub fn of_io(error: &io::Error) -> Unreadable {
        Unreadable { cause: Cause::FileUnreadable, why: format!("The file cannot be read: {error}.") }
    }

    /// Reports why an existing file is not opened.
    pub fn not_a_file(kind: &str) -> Unreadable {
        Unreadable { cause: Cause::FileUnreadable, why: format!("It is {kind}, not a file.") }
    }

    /// The row of the file.
    pub fn row(&self, name: &str, change: &Change) -> Row {
        Row::not_known(name, change, self.cause, self.why.clone())
    }

    fn of(error: DecodeError) -> Unreadable {
        let cause = match &error {
            DecodeError::Read(error) => return Unreadable::of_io(error),
            DecodeError::Empty => Cause::FileEmpty,
            DecodeError::NotARecording => Cause::NotARecording,
            DecodeError::NewerFormat { .. } => Cause::NewerFormat,
            DecodeError::NoHeader => Cause::Truncated,
            DecodeError::DamagedStart | DecodeError::DamagedHeader | DecodeError::TooMuch(_) => Cause::Damaged,
        };
        let text = error.to_string();
        let mut letters = text.chars();
        let first = letters.next().map(char::to_uppercase).into_iter().flatten().collect::<String>();
        Unreadable { cause, why: format!("{first}{}.", letters.as_str()) }
    }
}

/// Folds a recording. Returns what was missing in it as a note.
pub(crate) fn fold<S: Sink<Error = Infallible> + Default>(
    reader: impl Read,
) -> Result<(S, Option<String>), Unreadable> {
    let mut decoder = Decoder::new(reader).map_err(Unreadable::of)?;
    let mut folded = S::default();
    let mut samples = 0;
    let went = decoder.lend(|record| {
        samples += u64::from(matches!(record, Record::Sample(_)));
        let Ok(()) = folded.record(record);
        if samples < SAMPLES_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    went.map_err(Unreadable::of)?;
    Ok((folded, note(&decoder, samples)?))
}

/// Folds a recording into a window, by column where that is possible. `open` is called once more where it is not.
pub(crate) fn window<R: Read>(
    open: impl Fn() -> Result<R, Unreadable>,
) -> Result<(Window, Option<String>), Unreadable> {
    let mut decoder = Decoder::new(open()?).map_err(Unreadable::of)?;
    let mut window = Window::default();
    match decoder.fold_into(&mut window, SAMPLES_MAX).map_err(Unreadable::of)? {
        Some(samples) => Ok((window, note(&decoder, samples)?)),
        None => fold(open()?),
    }
}

/// What was missing in a recording of which a number of samples were read.
fn note<R: Read>(decoder: &Decoder<R>, samples: u64) -> Result<Option<String>, Unreadable> {
    let cut = decoder.cuts().iter().find(|cut| cut.why != Why::NotClosed);
    if samples == 0 {
        return Err(match cut {
            Some(cut) => Unreadable {
                cause: if cut.why == Why::Truncated { Cause::Truncated } else { Cause::Damaged },
                why: format!("No sample can be read: {cut}."),
            },
            None => Unreadable { cause: Cause::NoSample, why: "The recording contains no sample.".to_owned() },
        });
    }
    Ok(match (cut, decoder.unknown_records()) {
        _ if samples >= SAMPLES_MAX => {
            Some(format!("Judged by the first {} only.", human::plural(samples, "sample", "samples")))
        }
        (Some(cut), _) => Some(format!("Judged by a part: {cut}.")),
        (None, unknown) if unknown > 0 => Some(format!(
            "Skipped {}.",
            human::plural(unknown, "record of a newer version", "records of a newer version")
        )),
        _ => None,
    })
}
