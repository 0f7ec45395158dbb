// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs scenarios on real kernels, in QEMU guests. Host side: kernels, the guest's image, QEMU. Guest side:
//! the same program as init. Independent of the rules. Reads only those files of the host that a guest
//! needs to start.

mod apt;
pub mod bisect;
pub mod cache;
#[cfg(test)]
mod forged;
pub mod guest;
pub mod image;
#[cfg(test)]
mod inert;
pub mod job;
pub mod kernels;
mod package;
pub mod programs;
pub mod qemu;
pub mod results;
pub mod root;
pub mod run;
pub mod tool;
pub mod workload;
