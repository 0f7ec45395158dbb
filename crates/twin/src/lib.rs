// SPDX-License-Identifier: MIT OR Apache-2.0
//! Twin: a scenario made from a recording, the error of its back-test, and what a change of a setting would do on this
//! host. Pure: it reads no file and starts no thread; the program runs the simulations it asks for.

pub mod changed;
