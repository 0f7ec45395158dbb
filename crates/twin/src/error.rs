// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why no twin can be made of a recording, and what to type next.

use floodline_record::version::KernelVersion;
use floodline_sim::SimError;

/// No twin can be made.
#[derive(Debug, thiserror::Error)]
pub enum TwinError {
    /// The first record is missing: the machine is not known.
    #[error("the recording does not describe its machine: its facts are missing")]
    NoFacts,
    /// Too few samples.
    #[error(
        "the recording is too short for a twin: {} in {seconds:.1} s; it needs at least 5 samples and 3 s",
        floodline_record::human::plural(*samples, "sample", "samples")
    )]
    TooShort {
        /// Samples.
        samples: u64,
        /// Seconds from the first to the last.
        seconds: f64,
    },
    /// More than the model carries.
    #[error("the recording lasts {hours:.1} h; a twin supports at most {most} h")]
    TooLong {
        /// Its length.
        hours: f64,
        /// The most.
        most: u64,
    },
    /// More than a scenario file may have.
    #[error(
        "the twin of this recording would be a scenario file of {}; such a file may have at most {}",
        floodline_record::human::bytes(*size as f64),
        floodline_record::human::bytes(floodline_scenario::TEXT_MAX as f64)
    )]
    TooLarge {
        /// Its size as a file, bytes.
        size: usize,
    },
    /// A reading that every twin needs is missing.
    #[error("the recording has no reading of {0}")]
    Missing(&'static str),
    /// No writes, and no reads from a device.
    #[error(
        "nothing was written in the recording and nothing was read from a disk, so a twin of it would predict nothing"
    )]
    Idle,
    /// No filesystem on a device.
    #[error("the recording has no filesystem on a block device that was written to")]
    NoDevice,
    /// An old kernel.
    #[error("Linux {kernel} is older than {oldest}, the oldest kernel that the model supports")]
    TooOld {
        /// The kernel.
        kernel: KernelVersion,
        /// The oldest.
        oldest: String,
    },
    /// A scenario that the language refuses.
    #[error("the twin of this recording is not a valid scenario: {0}")]
    Invalid(String),
    /// The model failed.
    #[error(transparent)]
    Sim(#[from] SimError),
}

impl TwinError {
    /// Returns a scenario as text that is small enough to be read again.
    pub(crate) fn fitting(text: String) -> Result<String, TwinError> {
        if text.len() > floodline_scenario::TEXT_MAX { Err(TwinError::TooLarge { size: text.len() }) } else { Ok(text) }
    }

    /// What to type next.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            TwinError::NoFacts | TwinError::Missing(_) => {
                "make a recording on the host itself with: floodline record --for 1m -o host.flr"
            }
            TwinError::TooShort { .. } => "record for longer: floodline record --for 1m -o host.flr",
            TwinError::TooLong { .. } => "record a shorter stretch: floodline record --for 10m -o host.flr",
            TwinError::TooLarge { .. } => "record a shorter stretch: floodline record --for 30s -o host.flr",
            TwinError::Idle | TwinError::NoDevice => {
                "record while the host is under load: floodline record --for 1m -o host.flr"
            }
            TwinError::TooOld { .. } => "model another kernel: floodline twin host.flr --kernel 5.10",
            TwinError::Invalid(_) | TwinError::Sim(_) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_scenario::TEXT_MAX;

    #[test]
    fn a_twin_that_could_not_be_read_again_is_refused_with_a_hint() {
        assert!(TwinError::fitting("x".repeat(TEXT_MAX)).is_ok());
        let error = TwinError::fitting("x".repeat(TEXT_MAX + 1)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the twin of this recording would be a scenario file of 16.0 MiB; such a file may have at most 16.0 MiB"
        );
        assert!(error.hint().unwrap().contains("record a shorter stretch"));
    }
}
