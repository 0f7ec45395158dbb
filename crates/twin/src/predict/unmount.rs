// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unmounts that a changed run does not reach. An unmount of a twin comes after the programs that wrote, and a change may make them write for
//! longer than the recording.

use crate::shown::Shown;
use floodline_analysis::prediction::{Doubtful, Prediction, Reason, Seen, UNMOUNT};
use floodline_analysis::rule_figures::hurts_by;

/// Leaves findings of unmounts open where the changed run ends before its unmounts: its programs write for longer than the recording. That
/// no unmount waits there is no cure.
pub(super) fn leave_open(prediction: &mut Prediction, now: &Shown, then: &Shown) {
    if !now.figures.contains_key(UNMOUNT) || then.figures.contains_key(UNMOUNT) {
        return;
    }
    let is_of_unmount = |rule: &str| hurts_by(rule) == Some(UNMOUNT);
    let (open, ended): (Vec<Seen>, Vec<Seen>) =
        std::mem::take(&mut prediction.vanish).into_iter().partition(|seen| is_of_unmount(seen.rule));
    prediction.vanish = ended;
    prediction.doubtful.retain(|one| open.iter().all(|seen| seen.rule != one.rule));
    prediction.doubtful.extend(open.iter().map(|seen| Doubtful::new(seen, true, Reason::Unchecked, (0, 0))));
    prediction.stay.extend(open);
    prediction.notes.push(
        "After the change, the programs write for longer than the recording, so their unmount is not simulated: how long it waits is \
         not known."
            .to_owned(),
    );
}
