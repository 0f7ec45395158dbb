// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lists of hosts on which predictions are scored, by the names that `predict-truth --model` takes. Each host is run before and
//! after its change. The kinds of the pre-flight are in the parent module.

use super::kinds::{KINDS, Kind};
use super::lifelike::{LIFELIKE, Lifelike};
use super::lifelike_eighth::LIFELIKE_EIGHTH;
use super::lifelike_eleventh::LIFELIKE_ELEVENTH;
use super::lifelike_fifth::LIFELIKE_FIFTH;
use super::lifelike_fourteenth::LIFELIKE_FOURTEENTH;
use super::lifelike_fourth::LIFELIKE_FOURTH;
use super::lifelike_ninth::LIFELIKE_NINTH;
use super::lifelike_second::LIFELIKE_SECOND;
use super::lifelike_seventh::LIFELIKE_SEVENTH;
use super::lifelike_sixth::LIFELIKE_SIXTH;
use super::lifelike_tenth::LIFELIKE_TENTH;
use super::lifelike_third::LIFELIKE_THIRD;
use super::lifelike_thirteenth::LIFELIKE_THIRTEENTH;
use super::lifelike_twelfth::LIFELIKE_TWELFTH;
use super::made;
use super::unseen::UNSEEN;
use crate::Failure;
use floodline_record::version::KernelVersion;
use floodline_record::window::Window;

/// Hosts on which predictions are scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Hosts {
    /// Kinds that choose thresholds
    Seen,
    /// Kinds that no threshold is chosen on
    HeldOut,
    /// Kinds that were written down before the twin was last mended
    Unseen,
    /// Hosts shaped like those that people run, written down after the kinds above
    Lifelike,
    /// A second list of such hosts, written down after the first one was scored
    Second,
    /// A third list of such hosts, written down after the second one was scored
    Third,
    /// A fourth list of such hosts, written down after the third one was scored
    Fourth,
    /// A fifth list of such hosts, written down after the fourth one was scored
    Fifth,
    /// A sixth list of such hosts, written down after the fifth one was scored
    Sixth,
    /// A seventh list of such hosts, written down after the sixth one was scored
    Seventh,
    /// An eighth list of such hosts, written down after the seventh one was scored
    Eighth,
    /// A ninth list of such hosts, written down after the eighth one was scored
    Ninth,
    /// A tenth list of such hosts, written down after the ninth one was scored
    Tenth,
    /// An eleventh list of such hosts, written down after the tenth one was scored
    Eleventh,
    /// A twelfth list of such hosts, written down after the eleventh one was scored
    Twelfth,
    /// A thirteenth list of such hosts, written down after the twelfth one was scored
    Thirteenth,
    /// A fourteenth list of such hosts, written down after the thirteenth one was scored
    Fourteenth,
}

/// A host whose change is predicted: its behaviour before and after its change, and its recording before it.
pub(crate) struct Truth {
    pub(crate) kind: &'static str,
    pub(crate) change: &'static [&'static str],
    pub(crate) kernel: KernelVersion,
    pub(crate) before: Window,
    pub(crate) after: Window,
    pub(crate) recording: Vec<u8>,
}

impl Hosts {
    /// Returns the list of hosts shaped like those that people run; `None` of other kinds.
    fn lifelike(self) -> Option<&'static [Lifelike]> {
        match self {
            Hosts::Lifelike => Some(LIFELIKE),
            Hosts::Second => Some(LIFELIKE_SECOND),
            Hosts::Third => Some(LIFELIKE_THIRD),
            Hosts::Fourth => Some(LIFELIKE_FOURTH),
            Hosts::Fifth => Some(LIFELIKE_FIFTH),
            Hosts::Sixth => Some(LIFELIKE_SIXTH),
            Hosts::Seventh => Some(LIFELIKE_SEVENTH),
            Hosts::Eighth => Some(LIFELIKE_EIGHTH),
            Hosts::Ninth => Some(LIFELIKE_NINTH),
            Hosts::Tenth => Some(LIFELIKE_TENTH),
            Hosts::Eleventh => Some(LIFELIKE_ELEVENTH),
            Hosts::Twelfth => Some(LIFELIKE_TWELFTH),
            Hosts::Thirteenth => Some(LIFELIKE_THIRTEENTH),
            Hosts::Fourteenth => Some(LIFELIKE_FOURTEENTH),
            Hosts::Seen | Hosts::HeldOut | Hosts::Unseen => None,
        }
    }

    /// Whether they are shaped like those that people run.
    pub(crate) fn is_lifelike(self) -> bool {
        self.lifelike().is_some()
    }

    /// The generated kinds that are held out, or the others.
    fn kinds(self) -> impl Iterator<Item = &'static Kind> {
        KINDS.iter().filter(move |kind| kind.held_out == (self == Hosts::HeldOut))
    }

    /// Their number.
    pub(crate) fn count(self) -> usize {
        match (self.lifelike(), self) {
            (Some(list), _) => list.len(),
            (None, Hosts::Unseen) => UNSEEN.len(),
            (None, _) => self.kinds().count(),
        }
    }

    /// Name of one of them; empty beyond their number.
    pub(crate) fn name(self, at: usize) -> &'static str {
        match (self.lifelike(), self) {
            (Some(list), _) => list.get(at).map(|host| host.name),
            (None, Hosts::Unseen) => UNSEEN.get(at).map(|host| host.name),
            (None, _) => self.kinds().nth(at).map(|kind| kind.name),
        }
        .unwrap_or_default()
    }

    /// Runs one of them before and after its change.
    pub(crate) fn host(self, at: usize) -> Result<Truth, Failure> {
        let none = || Failure::input("there are not that many hosts");
        let (kind, change, scenarios) = match (self.lifelike(), self) {
            (Some(list), _) => {
                let host = list.get(at).ok_or_else(none)?;
                (host.name, host.change, made::varied(&host.text(), host.kernel, host.change, host.name)?)
            }
            (None, Hosts::Unseen) => {
                let host = UNSEEN.get(at).ok_or_else(none)?;
                (host.name, host.change, made::changed(&host.text(), host.kernel, host.change, host.name)?)
            }
            (None, _) => {
                let kind = *self.kinds().nth(at).ok_or_else(none)?;
                (kind.name, kind.change, made::scenarios(kind, 0, kind.name)?)
            }
        };
        let [(now, kernel), (then, kernel_then)] = scenarios;
        let (before, recording) = made::folded(&now, kernel, kind)?;
        let (after, _) = made::folded(&then, kernel_then, kind)?;
        Ok(Truth { kind, change, kernel, before, after, recording })
    }
}
