// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps that talk to a real service in a guest, over its socket: what they cause is done by the service, and what
//! is measured is how long it takes to answer. The services themselves are tasks with a `program`.

use super::quantity::{ByteSize, Frequency, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sends messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Syslog {
    /// The datagram socket; journald without an init system has `/run/systemd/journal/dev-log`.
    pub socket: String,
    /// Messages per time.
    pub messages: Frequency,
    /// Bytes of one message, at least those of its priority.
    pub message: ByteSize,
    /// Ends after this many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Ends after this long.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasting: Option<Time>,
}

/// Sets keys of a Redis, one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedisSet {
    /// The stream socket of the server; one that is not there yet is waited for.
    pub socket: String,
    /// Commands per time; unlimited where missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Frequency>,
    /// How many different keys, chosen at random.
    #[serde(default = "keys", skip_serializing_if = "is_keys")]
    pub keys: u64,
    /// Bytes of a value.
    pub value: ByteSize,
    /// Ends after this many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Ends after this long.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasting: Option<Time>,
}

/// Sends one SQL statement again and again, each a transaction of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sql {
    /// The stream socket of the server; one that is not there yet is waited for.
    pub socket: String,
    /// The statement; one that answers with rows is refused.
    pub statement: String,
    /// Statements per time; unlimited where missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Frequency>,
    /// Ends after this many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Ends after this long.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasting: Option<Time>,
}

fn keys() -> u64 {
    100_000
}

// serde hands over references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_keys(value: &u64) -> bool {
    *value == keys()
}
