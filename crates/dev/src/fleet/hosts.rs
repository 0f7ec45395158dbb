// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lists of hosts on which predictions are scored, by the names that `predict-truth --model` takes. Each host is run before and
//! after its change. The kinds of the pre-flight are in the parent module.

use super::kinds::{KINDS, Kind};
use super::{made, written};
use crate::Failure;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use floodline_record::version::KernelVersion;
use floodline_record::window::Window;

/// Hosts on which predictions are scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hosts {
    /// Kinds that choose thresholds
    Seen,
    /// Kinds that no threshold is chosen on
    HeldOut,
    /// A list of hosts that are written down
    List(&'static str),
}

/// A host whose change is predicted: its behaviour before and after its change, and its recording before it.
pub(crate) struct Truth {
    pub(crate) kind: &'static str,
    pub(crate) change: Vec<&'static str>,
    pub(crate) kernel: KernelVersion,
    pub(crate) before: Window,
    pub(crate) after: Window,
    pub(crate) recording: Vec<u8>,
}

/// The list whose hosts are not shaped like those that people run.
const UNSEEN: &str = "unseen";

impl Hosts {
    /// Reads one of their names.
    pub(crate) fn parser() -> impl TypedValueParser<Value = Hosts> {
        PossibleValuesParser::new(["seen", "held-out"].into_iter().chain(written::lists())).try_map(|name| {
            let list = || written::lists().find(|list| *list == name).map(Hosts::List);
            match name.as_str() {
                "seen" => Some(Hosts::Seen),
                "held-out" => Some(Hosts::HeldOut),
                _ => list(),
            }
            .ok_or("there are no such hosts")
        })
    }

    /// Whether they are shaped like those that people run.
    pub(crate) fn is_lifelike(self) -> bool {
        matches!(self, Hosts::List(name) if name != UNSEEN)
    }

    /// Their names, in the order of their list.
    ///
    /// # Errors
    /// The list cannot be read.
    pub(crate) fn names(self) -> Result<Vec<&'static str>, Failure> {
        Ok(match self {
            Hosts::List(list) => written::hosts(list)?.iter().map(|host| host.name.as_str()).collect(),
            Hosts::Seen | Hosts::HeldOut => self.kinds().map(|kind| kind.name).collect(),
        })
    }

    /// The generated kinds that are held out, or the others.
    fn kinds(self) -> impl Iterator<Item = &'static Kind> {
        KINDS.iter().filter(move |kind| kind.held_out == (self == Hosts::HeldOut))
    }

    /// Runs one of them before and after its change.
    pub(crate) fn host(self, at: usize) -> Result<Truth, Failure> {
        let none = || Failure::input("there are not that many hosts");
        let (kind, change, scenarios) = match self {
            Hosts::List(list) => {
                let host = written::hosts(list)?.get(at).ok_or_else(none)?;
                (host.name.as_str(), host.change(), host.scenarios()?)
            }
            Hosts::Seen | Hosts::HeldOut => {
                let kind = *self.kinds().nth(at).ok_or_else(none)?;
                (kind.name, kind.change.to_vec(), made::scenarios(kind, 0, kind.name)?)
            }
        };
        let [(now, kernel), (then, kernel_then)] = scenarios;
        let (before, recording) = made::folded(&now, kernel, kind)?;
        let (after, _) = made::folded(&then, kernel_then, kind)?;
        Ok(Truth { kind, change, kernel, before, after, recording })
    }
}
