// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's own arithmetic, by version: integers, with the kernel's rounding. Files are named
//! after the kernel functions they follow. Written from documented behaviour and traced rows.

mod version;

pub use version::{KernelVersion, NotAVersion};
