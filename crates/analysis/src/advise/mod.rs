// SPDX-License-Identifier: MIT OR Apache-2.0
//! Derives the change that helps from a diagnosis: the tunables ([`knob`]), the value and the undo of each step
//! ([`step`]), and the thresholds that suit this machine ([`threshold`]). Advice is computed from the machine's memory,
//! cgroups and device speed. It never includes a hard `io.max`: a capped cgroup that holds a journal open stops the
//! whole filesystem.

pub mod beside;
pub mod knob;
pub mod raised;
pub mod step;
pub mod threshold;
