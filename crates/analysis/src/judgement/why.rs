// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a plan rests on arithmetic: the twin is not like its recording, or it predicts nothing that decides. Words only.

use crate::prediction::MISS_MAX;
use floodline_record::human;

/// Why a plan rests on arithmetic where the twin is not like its recording.
pub fn missed(error: Option<f64>) -> String {
    match error {
        Some(error) => format!("the twin misses this recording by {}", human::percent(error)),
        None => "the recording has no figure to compare the twin with".to_owned(),
    }
}

/// Why a plan rests on arithmetic if a run was ended early.
pub const BEYOND_BUDGET: &str = "the simulation of this load exceeds its budget here; floodline predict runs all of it";

/// Why a plan rests on arithmetic where the twin predicts nothing that decides. `rules` are those of its findings.
pub fn unpredicted(error: Option<f64>, rules: &[&str]) -> String {
    match (error, rules) {
        (None, _) => missed(error),
        (Some(share), _) if share > MISS_MAX => missed(error),
        (_, ["inode-switch-storm"]) => "the twin has no inodes of removed cgroups".to_owned(),
        _ => "the twin predicts no wait and no amount of data that the recording has".to_owned(),
    }
}
