// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps that talk to a real service in a guest, over its socket: what they cause is done by the service, and what
//! is measured is how long it takes to answer. The services themselves are tasks with a `program`.

use super::machine::is_default;
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
    /// Kind of program that sends it; user where missing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub facility: Facility,
    /// How bad it is; notice where missing. journald syncs its file at once after `crit`, `alert` and `emerg`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: Priority,
    /// Ends after this many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Ends after this long.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasting: Option<Time>,
}

/// Facility of a syslog message, by the names of syslog(3), in the order of their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Facility {
    Kern = 0,
    #[default]
    User = 1,
    Mail = 2,
    Daemon = 3,
    Auth = 4,
    Syslog = 5,
    Lpr = 6,
    News = 7,
    Uucp = 8,
    Cron = 9,
    Authpriv = 10,
    Ftp = 11,
    Local0 = 16,
    Local1 = 17,
    Local2 = 18,
    Local3 = 19,
    Local4 = 20,
    Local5 = 21,
    Local6 = 22,
    Local7 = 23,
}

/// Priority of a syslog message, by the names of syslog(3), worst first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Priority {
    Emerg = 0,
    Alert = 1,
    Crit = 2,
    Err = 3,
    Warning = 4,
    #[default]
    Notice = 5,
    Info = 6,
    Debug = 7,
}

impl Syslog {
    /// The number in front of each message: `<13>` of user and notice.
    pub fn pri(&self) -> u8 {
        self.facility as u8 * 8 + self.priority as u8
    }
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
