// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flight recorder's two rings. The one in memory takes every sample and never waits. The one on disk follows it in a
//! thread of its own: a disk that hangs delays the thread, not the samples.

pub(crate) mod carry;
pub(crate) mod disk;
pub(crate) mod memory;
pub(crate) mod thin;
