// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenario and seed to recording: an executable model of Linux writeback.
