// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios on real kernels, in QEMU guests.
