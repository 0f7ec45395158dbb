// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `apply --switchback` and `verify --switchback` have in common: a trial by turns, and its verdict. Wiring only.

use crate::console::Console;
use crate::error::CliError;
use crate::observe::parse_duration;
use crate::tuning::tell_settled;
use floodline_analysis::change::ChangePlan;
use floodline_record::human;
use floodline_tune::apply::{Request, prepare};
use floodline_tune::benefit::switchback::{Block, judge};
use floodline_tune::benefit::{Verdict, Why};
use floodline_tune::recover::Site;
use floodline_tune::switchback::{Design, check, run};
use floodline_view::change as view;

/// Reads blocks and their length: 6x10m.
pub(crate) fn parse_design(text: &str) -> Result<Design, String> {
    let (blocks, block) =
        text.split_once('x').ok_or_else(|| "expected blocks and their length, e.g. 6x10m".to_owned())?;
    let blocks = blocks.parse().map_err(|_| format!("invalid number of blocks {blocks:?}: e.g. 6x10m"))?;
    Design::new(blocks, parse_duration(block)?)
}

/// What is tried.
pub(crate) struct Trial {
    /// The plan. It is not in force.
    pub(crate) plan: ChangePlan,
    /// Whether the plan undoes a change, so that the host as it is has the change.
    pub(crate) is_inverse: bool,
    /// Blocks.
    pub(crate) design: Design,
    /// Largest difference that counts as none, as a share.
    pub(crate) difference: f64,
    /// Command that must go on succeeding.
    pub(crate) probe: Option<String>,
}

/// How long a trial takes, for a note.
pub(crate) fn told(design: Design) -> String {
    let (length, block) = (human::seconds(design.length().as_secs_f64()), human::seconds(design.block.as_secs_f64()));
    format!(
        "the trial takes {length}: {} blocks of {block}. If this program ends earlier, the present settings are restored",
        design.blocks
    )
}

/// Makes a trial. Returns its number and its verdict.
pub(crate) fn try_by_turns(console: &Console, site: &Site, trial: Trial) -> Result<(u32, view::Benefit), CliError> {
    let Trial { plan, is_inverse, design, difference, probe } = trial;
    check(&site.host)?;
    let request = Request { plan, within: design.within(), persist: false, probe, at_once: true };
    let prepared = prepare(site, &request, false)?;
    tell_settled(console, &prepared.settled);
    console.note(&told(design));
    let (id, blocks) = run(site, &request, prepared, design, |period, of, is_new| {
        let side = if is_new == is_inverse { "without" } else { "with" };
        console.note(&format!("period {period} of {of}: {side} the change"));
    })?;
    let blocks: Vec<Block> = match is_inverse {
        true => blocks.into_iter().map(|block| Block { without: block.with, with: block.without }).collect(),
        false => blocks,
    };
    let judged = judge(&blocks, design.block.as_secs_f64(), difference);
    let (verdict, why, needs_minutes) = match judged.verdict {
        Verdict::Helped => ("helped", None, None),
        Verdict::NoDifference => ("no_difference", None, None),
        Verdict::Harmed => ("harmed", None, None),
        Verdict::NotEnough { why, minutes } => ("not_enough", Some(because(why)), minutes),
    };
    let benefit = view::Benefit {
        verdict,
        why,
        needs_minutes,
        difference,
        before_stall_s_per_hour: judged.without,
        after_stall_s_per_hour: judged.with,
        ratio: judged.ratio,
        matched_share: 1.0,
        any_load: false,
        predicted: None,
        switchback: Some(view::Switchback { blocks: judged.blocks, p: judged.p }),
    };
    Ok((id, benefit))
}

fn because(why: Why) -> &'static str {
    match why {
        Why::ShortBefore | Why::Short => "the trial has too few blocks",
        Why::Silent => "nothing was written in some of the blocks",
        Why::OtherLoad => "the loads of the blocks are too different",
        Why::NoStalls => "tasks did not stall",
        Why::Varying => "the stalls vary too much for this number of blocks",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_design_is_blocks_and_their_length() {
        let design = parse_design("6x10m").unwrap();
        assert_eq!((design.blocks, design.block), (6, Duration::from_secs(600)));
        assert!(told(design).starts_with("the trial takes 60 min: 6 blocks of 10 min."), "{}", told(design));
        for text in ["", "6", "x10m", "6x", "5x10m", "17x10m", "6x10", "6x100ms", "-6x10m"] {
            assert!(parse_design(text).is_err(), "{text}");
        }
    }
}
