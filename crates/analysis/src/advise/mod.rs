// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a diagnosis to the change that helps: what can be tuned ([`knob`]), what each step writes and
//! how it is undone ([`step`]), and which thresholds suit this machine ([`threshold`]).
//! Advice is computed from the machine's memory, cgroups and device speed. It never includes a hard
//! `io.max`: a capped cgroup that holds a journal open stops the whole filesystem.

pub mod knob;
pub mod step;
pub mod threshold;
