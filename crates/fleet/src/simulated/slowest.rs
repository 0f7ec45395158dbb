// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether an answer depends on the limit of a disk that the recording never shows at its limit: the twin before and after the change on
//! the slowest disks that the recording allows.

use crate::Depth;
use crate::harm::Felt;
use floodline_sim::{Progress, SimError};
use floodline_twin::predict::{Question, Run};
use floodline_twin::shown::{self, Trial};
use floodline_twin::{Recorded, Twin};

/// Severity before the change from which the recording excludes a disk: its programs would have waited.
const EXCLUDED: f64 = 1.0;

/// Harm of the change on the slowest disks. `None` if each disk was seen at its limits, or if tasks would wait noticeably longer on these
/// disks before the change too. `before` is the twin as it is.
pub(super) fn harm(
    recorded: &Recorded,
    twin: &Twin,
    question: &Question,
    before: &Felt,
    depth: Depth,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<f64>, SimError> {
    let Some(question) = question.on_slowest_disks(twin, &recorded.window) else { return Ok(None) };
    let felt = |is_changed| -> Result<Option<Felt>, SimError> {
        let trial = Trial { diagnosed: false, ..Trial::NOMINAL };
        let Some(changed) = question.scenario(&Run { demand: 0, is_changed, trial }) else { return Ok(None) };
        let may_go_on = |at: &Progress| at.events < depth.events_max && go_on();
        let (shown, _) = shown::of_twin(twin, changed, trial, None, may_go_on)?;
        Ok((!shown.is_cut).then(|| Felt::of(&shown.figures, &[], twin.seconds)))
    };
    let Some(now) = felt(false)?.filter(|now| before.worse(now) < EXCLUDED) else { return Ok(None) };
    Ok(felt(true)?.map(|then| now.worse(&then)))
}
