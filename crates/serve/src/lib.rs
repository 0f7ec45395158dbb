// SPDX-License-Identifier: MIT OR Apache-2.0
//! The long-lived program: one loop takes a sample per second, which feeds the exporter, the ring and the triggers.
//! No asynchronous runtime. It never writes to the host it observes; it writes its ring and its incidents.

pub mod board;
pub mod clock;
mod error;
mod http;
pub mod listen;
mod minute;
mod serve;

pub use error::ServeError;
pub use http::Listener;
pub use serve::{Options, Serve};
