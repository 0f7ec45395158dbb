// SPDX-License-Identifier: MIT OR Apache-2.0
//! The collector on machines made up for tests: what it reads, and what it makes of their faults.

mod collect;
mod faults;
mod traced;
mod tree;
