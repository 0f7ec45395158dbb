// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether an answer depends on the limit of a disk that the recording never shows at its limit: the twin before and after the change on
//! slow disks. The slowest one did no more than in the busiest interval of the recording. Where programs would have waited on that one,
//! faster ones follow.

use crate::Depth;
use crate::harm::Felt;
use floodline_sim::{Progress, SimError};
use floodline_twin::predict::{Question, Run};
use floodline_twin::shown::{self, Trial};
use floodline_twin::{Recorded, Twin};

/// Severity before the change from which the recording excludes a disk: its programs would have waited.
const EXCLUDED: f64 = 1.0;

/// A twin whose disks are exchanged.
pub(super) struct Disks<'a> {
    pub(super) recorded: &'a Recorded,
    pub(super) twin: &'a Twin,
    pub(super) question: &'a Question,
    /// The twin as it is, before the change.
    pub(super) before: &'a Felt,
    pub(super) depth: Depth,
    pub(super) go_on: &'a dyn Fn() -> bool,
}

impl Disks<'_> {
    /// Harm of the change on the slowest disks that the recording does not exclude. `None` if each disk was seen at its limits, or if tasks
    /// would wait noticeably longer on disks of a usual speed before the change too.
    pub(super) fn slowest(&self) -> Option<f64> {
        let (twin, window) = (self.twin, &self.recorded.window);
        let slower: [&dyn Fn() -> Option<Question>; 3] =
            [&|| self.question.on_slowest_disks(twin, window), &|| self.question.on_slow_disks(twin, window), &|| {
                self.question.on_usual_disks(twin, window)
            }];
        // A run that is refused tells nothing of its disks, and does not take back what others tell.
        let of_requests = self.harm(self.question.on_disks_of_few_requests(twin, window)).unwrap_or_default();
        for question in slower {
            if let Some(harm) = self.harm(question()).unwrap_or_default() {
                return Some(harm.max(of_requests.unwrap_or(0.0)));
            }
        }
        of_requests
    }

    /// Harm of the change on disks of few bytes and on disks of few requests per second, where the recording shows no such limit: the larger
    /// one. `None` if it shows the limits of each disk, or if tasks would wait noticeably longer on these disks before the change too.
    pub(super) fn slow(&self) -> Option<f64> {
        let (twin, window) = (self.twin, &self.recorded.window);
        let of_bytes = self.harm(self.question.on_slow_disks(twin, window)).unwrap_or_default();
        let of_requests = self.harm(self.question.on_disks_of_few_requests(twin, window)).unwrap_or_default();
        of_bytes.into_iter().chain(of_requests).reduce(f64::max)
    }

    /// Harm of a question. `None` if the recording excludes its disks.
    fn harm(&self, question: Option<Question>) -> Result<Option<f64>, SimError> {
        let Some(question) = question else { return Ok(None) };
        let felt = |is_changed| -> Result<Option<Felt>, SimError> {
            let trial = Trial { diagnosed: false, ..Trial::NOMINAL };
            let Some(changed) = question.scenario(&Run { demand: 0, is_changed, trial }) else { return Ok(None) };
            let may_go_on = |at: &Progress| at.events < self.depth.events_max && (self.go_on)();
            let (shown, _) = shown::of_twin(self.twin, changed, trial, None, may_go_on)?;
            Ok((!shown.is_cut).then(|| Felt::of(&shown.figures, &[], self.twin.seconds)))
        };
        let Some(now) = felt(false)?.filter(|now| self.before.worse(now) < EXCLUDED) else { return Ok(None) };
        Ok(felt(true)?.map(|then| now.worse(&then)))
    }
}
