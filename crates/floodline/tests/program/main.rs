// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program from outside: one test binary, one module a topic. The environment is cleared; width,
//! host tree and time are fixed by arguments.

mod advise;
mod budget;
mod cli;
mod compare;
mod doctor;
mod doctor_incidents;
mod doctor_tried;
mod exit_codes;
mod flight;
mod harness;
mod heavy;
mod holes;
mod hostile;
mod kernels;
mod lab;
mod lab_apply;
mod lab_faults;
mod lab_trace;
mod lab_truth;
mod ledger;
mod misuse;
mod output_files;
mod packaging;
mod predict;
mod preflight;
mod record;
mod recorder;
mod report;
mod scenario;
mod serve;
mod simulate;
mod snapshot;
mod standard_output;
mod sweep;
mod top;
mod trace;
mod tune;
mod tune_ends;
mod tune_ramp;
mod tune_verify;
mod twin;
mod two_processes;
