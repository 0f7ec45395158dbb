// SPDX-License-Identifier: MIT OR Apache-2.0
//! The long-lived program: one loop takes samples, which feed the exporter, the ring and the triggers.
//! No asynchronous runtime. It never writes to the host it observes; it writes its ring and its incidents.

pub mod board;
pub mod clock;
mod control;
mod error;
mod hook;
mod http;
mod incident;
pub mod listen;
mod lock;
mod minute;
mod pressure;
mod recorder;
mod ring;
mod serve;
mod trigger;
mod writer;

pub use control::mark;
pub use error::ServeError;
pub use http::Listener;
pub use lock::{lock_memory, lock_touched_memory};
pub use recorder::RingOptions;
pub use ring::disk::LIMIT_MIN;
pub use serve::{Options, Serve};
pub use trigger::Limits;
