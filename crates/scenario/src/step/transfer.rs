// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steps that write, read and store on a schedule.

use super::{is_one, one};
use crate::machine::is_default;
use crate::quantity::{ByteSize, Frequency, Pace, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// In which order blocks or pages are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// From where the task was in the file, starting over at its `size`.
    #[default]
    Sequential,
    /// Anywhere within the file's `size`, by the seed.
    Random,
    /// At the end of the file (O_APPEND).
    Append,
}

/// A call that makes data durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum SyncCall {
    Fsync,
    Fdatasync,
    Msync,
    SyncFileRange,
}

/// When a step makes its data durable: after a number of blocks, or after a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SyncEvery {
    /// The call.
    pub call: SyncCall,
    /// The call is made with the first block after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Time>,
    /// After this many blocks or bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

/// Writes blocks to a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// The file.
    pub file: String,
    /// Where the blocks go.
    #[serde(default, skip_serializing_if = "is_default")]
    pub order: Order,
    /// Bytes of one write call.
    #[serde(default = "page", skip_serializing_if = "is_page")]
    pub block: ByteSize,
    /// How fast; unlimited where missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Pace>,
    /// Ends after this many bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<ByteSize>,
    /// Ends after this many blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Ends after this long.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasting: Option<Time>,
    /// Size of the file: the range of random writes, and where sequential ones start over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<ByteSize>,
    /// Past the page cache (O_DIRECT).
    #[serde(default, skip_serializing_if = "is_default")]
    pub direct: bool,
    /// Each write returns when its data is durable (O_DSYNC).
    #[serde(default, skip_serializing_if = "is_default")]
    pub dsync: bool,
    /// Requests under way at once, each on a thread of its own; 1 where missing.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub depth: u64,
    /// Cuts the file to nothing first (O_TRUNC).
    #[serde(default, skip_serializing_if = "is_default")]
    pub truncate: bool,
    /// When it is made durable on the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncEvery>,
}

/// Reads blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// The file; with `files`, each of them whole, in order.
    pub file: String,
    /// How many files, `{n}` in the name being the number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Files per directory, for `{d}` in the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_per_dir: Option<u64>,
    /// Which blocks; `append` makes no sense here.
    #[serde(default, skip_serializing_if = "is_default")]
    pub order: Order,
    /// Bytes of one read call.
    #[serde(default = "page", skip_serializing_if = "is_page")]
    pub block: ByteSize,
    /// How fast; unlimited where missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Pace>,
    /// Ends after this many bytes; a sequential read without any end stops at the end of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<ByteSize>,
    /// Ends after this many blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Ends after this long.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasting: Option<Time>,
    /// Past the page cache (O_DIRECT).
    #[serde(default, skip_serializing_if = "is_default")]
    pub direct: bool,
    /// Requests under way at once, each on a thread of its own; 1 where missing.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub depth: u64,
    /// Keeps what was read in anonymous memory, until an `anon` step says otherwise.
    #[serde(default, skip_serializing_if = "is_default")]
    pub keep: bool,
}

/// Stores into a shared mapping, in bursts of distinct pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MmapStore {
    /// The file; with `files`, the bursts go to one after the other.
    pub file: String,
    /// How many files, `{n}` in the name being the number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Size of the mapping; the file is extended to it.
    pub size: ByteSize,
    /// Distinct pages touched in one burst.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub pages: u64,
    /// Bytes stored into each.
    #[serde(default = "byte", skip_serializing_if = "is_byte")]
    pub store: ByteSize,
    /// Which pages; `append` makes no sense here.
    #[serde(default = "random", skip_serializing_if = "is_random")]
    pub order: Order,
    /// Bursts per time; unlimited where missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Frequency>,
    /// Ends after this many bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Ends after this long.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasting: Option<Time>,
    /// When it is made durable on the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncEvery>,
}

/// Creates files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateFiles {
    /// The file; `{n}` is its number, which goes on where an earlier step of the same task left off for
    /// the same name. Directories are created where they are missing.
    pub file: String,
    /// Ends after this many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Files per directory, for `{d}` in the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_per_dir: Option<u64>,
    /// Bytes written into each; none where missing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub size: ByteSize,
    /// Files per time; unlimited where missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Frequency>,
    /// Ends after this long.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasting: Option<Time>,
    /// fsync before close.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fsync: bool,
}

const PAGE: ByteSize = ByteSize(floodline_record::units::Bytes(4096));
const BYTE: ByteSize = ByteSize(floodline_record::units::Bytes(1));

fn page() -> ByteSize {
    PAGE
}

fn byte() -> ByteSize {
    BYTE
}

fn random() -> Order {
    Order::Random
}

// serde hands over references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_page(size: &ByteSize) -> bool {
    *size == PAGE
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_byte(size: &ByteSize) -> bool {
    *size == BYTE
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_random(order: &Order) -> bool {
    *order == Order::Random
}

impl Default for Write {
    fn default() -> Write {
        Write {
            file: String::new(),
            order: Order::Sequential,
            block: PAGE,
            rate: None,
            total: None,
            count: None,
            lasting: None,
            size: None,
            direct: false,
            dsync: false,
            depth: 1,
            truncate: false,
            sync: None,
        }
    }
}

impl Default for Read {
    fn default() -> Read {
        Read {
            file: String::new(),
            files: None,
            files_per_dir: None,
            order: Order::Sequential,
            block: PAGE,
            rate: None,
            total: None,
            count: None,
            lasting: None,
            direct: false,
            depth: 1,
            keep: false,
        }
    }
}

impl Default for MmapStore {
    fn default() -> MmapStore {
        MmapStore {
            file: String::new(),
            files: None,
            size: PAGE,
            pages: 1,
            store: BYTE,
            order: Order::Random,
            rate: None,
            count: None,
            lasting: None,
            sync: None,
        }
    }
}
