// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of a filesystem that is made for a scenario: numbers, sizes and flags, never arguments of a program.
//! A text of a scenario reaches no mkfs program: what is passed is built from these values
//! ([`Mkfs::arguments`]), and names of features are looked up in a table. A strange one is refused by the check.

use super::FsType;
use super::machine::is_default;
use super::quantity::ByteSize;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Options of a filesystem. What is not given is what its mkfs program takes by default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mkfs {
    /// Size of a block; of ext4 and xfs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_size: Option<ByteSize>,
    /// Size of a sector; of xfs and btrfs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sector_size: Option<ByteSize>,
    /// Size of a node of the trees; of btrfs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_size: Option<ByteSize>,
    /// Size of an inode on disk; of ext4 and xfs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inode_size: Option<ByteSize>,
    /// Bytes of the disk for each inode; of ext4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_inode: Option<ByteSize>,
    /// Whether it has a journal; of ext4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<bool>,
    /// Size of the journal of ext4, of the log of xfs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal_size: Option<ByteSize>,
    /// Blocks kept for root, percent; of ext4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_percent: Option<u32>,
    /// Number of allocation groups; of xfs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<u32>,
    /// How data is kept; of btrfs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Copies>,
    /// How metadata is kept; of btrfs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Copies>,
    /// Features switched on and off by name: `{ metadata_csum = false }`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub features: BTreeMap<String, bool>,
}

/// How often btrfs keeps a block on its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Copies {
    /// Once.
    Single,
    /// Twice.
    Dup,
}

impl Copies {
    /// As mkfs.btrfs spells it.
    fn name(self) -> &'static str {
        match self {
            Copies::Single => "single",
            Copies::Dup => "dup",
        }
    }
}

/// A feature: its name here, the option of the mkfs program that takes it, its name there.
type Feature = (&'static str, &'static str, &'static str);

const EXT4: &[Feature] = &[
    ("64bit", "-O", "64bit"),
    ("bigalloc", "-O", "bigalloc"),
    ("dir_index", "-O", "dir_index"),
    ("dir_nlink", "-O", "dir_nlink"),
    ("ea_inode", "-O", "ea_inode"),
    ("ext_attr", "-O", "ext_attr"),
    ("extent", "-O", "extent"),
    ("extra_isize", "-O", "extra_isize"),
    ("fast_commit", "-O", "fast_commit"),
    ("flex_bg", "-O", "flex_bg"),
    ("huge_file", "-O", "huge_file"),
    ("inline_data", "-O", "inline_data"),
    ("large_dir", "-O", "large_dir"),
    ("large_file", "-O", "large_file"),
    ("metadata_csum", "-O", "metadata_csum"),
    ("metadata_csum_seed", "-O", "metadata_csum_seed"),
    ("orphan_file", "-O", "orphan_file"),
    ("project", "-O", "project"),
    ("quota", "-O", "quota"),
    ("resize_inode", "-O", "resize_inode"),
    ("sparse_super", "-O", "sparse_super"),
    ("sparse_super2", "-O", "sparse_super2"),
    ("uninit_bg", "-O", "uninit_bg"),
    ("verity", "-O", "verity"),
];
const XFS: &[Feature] = &[
    ("bigtime", "-m", "bigtime"),
    ("crc", "-m", "crc"),
    ("finobt", "-m", "finobt"),
    ("inobtcount", "-m", "inobtcount"),
    ("nrext64", "-i", "nrext64"),
    ("reflink", "-m", "reflink"),
    ("rmapbt", "-m", "rmapbt"),
    ("sparse", "-i", "sparse"),
];
const BTRFS: &[Feature] = &[
    ("block_group_tree", "-O", "block-group-tree"),
    ("extref", "-O", "extref"),
    ("free_space_tree", "-O", "free-space-tree"),
    ("mixed_bg", "-O", "mixed-bg"),
    ("no_holes", "-O", "no-holes"),
    ("quota", "-O", "quota"),
    ("skinny_metadata", "-O", "skinny-metadata"),
];

fn features_of(fs_type: FsType) -> &'static [Feature] {
    match fs_type {
        FsType::Ext4 => EXT4,
        FsType::Xfs => XFS,
        FsType::Btrfs => BTRFS,
        FsType::Tmpfs | FsType::Overlay => &[],
    }
}

/// Something wrong with an option: the rest of its key, why, what to write instead.
pub(super) type Wrong = (Vec<String>, String, Option<String>);

const ONLY_EXT4: &[FsType] = &[FsType::Ext4];
const ONLY_XFS: &[FsType] = &[FsType::Xfs];
const ONLY_BTRFS: &[FsType] = &[FsType::Btrfs];
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

impl Mkfs {
    /// Everything wrong with the options for a type of filesystem.
    pub(super) fn wrong_for(&self, fs_type: FsType) -> Vec<Wrong> {
        let mut wrong: Vec<Wrong> = self.misplaced(fs_type).into_iter().collect();
        let mut add = |key: &str, message: String| wrong.push((vec![key.to_owned()], message, None));
        for (key, value, min, max) in self.powers_of_two(fs_type) {
            let is_power = value.is_none_or(|size| size.bytes().is_power_of_two());
            if !is_power || value.is_some_and(|size| !(min..=max).contains(&size.bytes())) {
                add(key, format!("{} takes a power of two from {min} B to {} KiB", fs_type.name(), max / KIB));
            }
        }
        let journal = if fs_type == FsType::Xfs { 2 * MIB..=2 * KIB * MIB - MIB } else { MIB..=40 * KIB * MIB };
        if self.journal_size.is_some_and(|size| !journal.contains(&size.bytes()) || size.bytes() % MIB > 0) {
            let (min, max) = (journal.start() / MIB, journal.end() / MIB);
            add("journal_size", format!("{} takes whole MiB from {min} MiB to {max} MiB", fs_type.name()));
        }
        if self.journal == Some(false) && self.journal_size.is_some() {
            add("journal_size", "a journal that is not there has no size".to_owned());
        }
        if self.reserved_percent.is_some_and(|percent| percent > 50) {
            add("reserved_percent", "ext4 takes 0 to 50".to_owned());
        }
        if self.groups.is_some_and(|groups| !(1..=1 << 20).contains(&groups)) {
            add("groups", format!("xfs takes 1 to {}", 1 << 20));
        }
        let known = features_of(fs_type);
        for name in self.features.keys().filter(|name| !known.iter().any(|(known, ..)| known == name)) {
            let names = known.iter().map(|(name, ..)| *name);
            let hint = match floodline_record::nearest::nearest(name, names.clone()) {
                Some(near) => format!("did you mean {near}?"),
                None if known.is_empty() => "leave mkfs out".to_owned(),
                None => format!("known: {}", names.collect::<Vec<_>>().join(", ")),
            };
            let message = format!("{} has no feature {name:?} that can be chosen", fs_type.name());
            wrong.push((vec!["features".to_owned(), name.clone()], message, Some(hint)));
        }
        wrong
    }

    /// Options with sizes that are powers of two: smallest and largest, bytes.
    fn powers_of_two(&self, fs_type: FsType) -> [(&'static str, Option<ByteSize>, u64, u64); 5] {
        let is_ext4 = fs_type == FsType::Ext4;
        [
            ("block_size", self.block_size, KIB, if is_ext4 { 4 * KIB } else { 64 * KIB }),
            ("sector_size", self.sector_size, 512, if fs_type == FsType::Xfs { 32 * KIB } else { 64 * KIB }),
            ("node_size", self.node_size, 4 * KIB, 64 * KIB),
            if is_ext4 {
                ("inode_size", self.inode_size, 128, 4 * KIB)
            } else {
                ("inode_size", self.inode_size, 256, 2 * KIB)
            },
            ("bytes_per_inode", self.bytes_per_inode, KIB, 64 * MIB),
        ]
    }

    /// Options that a type of filesystem does not have.
    fn misplaced(&self, fs_type: FsType) -> Vec<Wrong> {
        let both = [ONLY_EXT4, ONLY_XFS].concat();
        let sectors = [ONLY_XFS, ONLY_BTRFS].concat();
        let options: [(&str, bool, &[FsType]); 11] = [
            ("block_size", self.block_size.is_some(), &both),
            ("sector_size", self.sector_size.is_some(), &sectors),
            ("node_size", self.node_size.is_some(), ONLY_BTRFS),
            ("inode_size", self.inode_size.is_some(), &both),
            ("bytes_per_inode", self.bytes_per_inode.is_some(), ONLY_EXT4),
            ("journal", self.journal.is_some(), ONLY_EXT4),
            ("journal_size", self.journal_size.is_some(), &both),
            ("reserved_percent", self.reserved_percent.is_some(), ONLY_EXT4),
            ("groups", self.groups.is_some(), ONLY_XFS),
            ("data", self.data.is_some(), ONLY_BTRFS),
            ("metadata", self.metadata.is_some(), ONLY_BTRFS),
        ];
        let misplaced = options.into_iter().filter(|(_, is_set, types)| *is_set && !types.contains(&fs_type));
        let name = fs_type.name();
        misplaced
            .map(|(key, _, types)| {
                let of = types.iter().map(|fs_type| fs_type.name()).collect::<Vec<_>>().join(" and ");
                (vec![key.to_owned()], format!("{name} has no such option; {of} has"), None)
            })
            .collect()
    }

    /// Arguments for the mkfs program of a filesystem, each built here from a number or a name of a table; the
    /// device is not among them.
    pub fn arguments(&self, fs_type: FsType) -> Vec<String> {
        let bytes = |size: Option<ByteSize>| size.map(|size| size.bytes().to_string());
        let named = |name: &str, value: Option<String>| value.map(|value| format!("{name}={value}"));
        let mib = self.journal_size.map(|size| (size.bytes() / MIB).to_string());
        let pairs: Vec<(&str, Option<String>)> = match fs_type {
            FsType::Ext4 => vec![
                ("-b", bytes(self.block_size)),
                ("-I", bytes(self.inode_size)),
                ("-i", bytes(self.bytes_per_inode)),
                ("-J", named("size", mib)),
                ("-m", self.reserved_percent.map(|percent| percent.to_string())),
                ("-O", self.journal.map(|on| switched("has_journal", on))),
            ],
            FsType::Xfs => vec![
                ("-b", named("size", bytes(self.block_size))),
                ("-s", named("size", bytes(self.sector_size))),
                ("-i", named("size", bytes(self.inode_size))),
                ("-l", named("size", bytes(self.journal_size))),
                ("-d", named("agcount", self.groups.map(|groups| groups.to_string()))),
            ],
            FsType::Btrfs => vec![
                ("-s", bytes(self.sector_size)),
                ("-n", bytes(self.node_size)),
                ("-d", self.data.map(|copies| copies.name().to_owned())),
                ("-m", self.metadata.map(|copies| copies.name().to_owned())),
            ],
            FsType::Tmpfs | FsType::Overlay => Vec::new(),
        };
        let mut arguments = Vec::new();
        for (option, value) in pairs {
            arguments.extend(value.into_iter().flat_map(|value| [option.to_owned(), value]));
        }
        for (name, option, theirs) in features_of(fs_type) {
            let Some(&on) = self.features.get(*name) else { continue };
            let value = match fs_type {
                FsType::Xfs => format!("{theirs}={}", u8::from(on)),
                _ => switched(theirs, on),
            };
            arguments.extend([(*option).to_owned(), value]);
        }
        arguments
    }
}

/// A feature as mke2fs and mkfs.btrfs take it.
fn switched(feature: &str, on: bool) -> String {
    format!("{}{feature}", if on { "" } else { "^" })
}

/// Reads the options. A list of arguments, which was taken once, is refused with what to write.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Mkfs, D::Error> {
    struct MkfsVisitor;
    impl<'de> Visitor<'de> for MkfsVisitor {
        type Value = Mkfs;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("options of the filesystem, such as { block_size = \"4 KiB\" }")
        }
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Mkfs, A::Error> {
            Mkfs::deserialize(MapAccessDeserializer::new(map))
        }
        fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Mkfs, A::Error> {
            Err(A::Error::custom(
                "arguments of a mkfs program are not accepted; write mkfs = { block_size = \"4 KiB\" } (options of each \
                 filesystem: docs/scenarios.md)",
            ))
        }
    }
    deserializer.deserialize_any(MkfsVisitor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ScenarioFile;

    fn options(toml: &str) -> Mkfs {
        toml::from_str(toml).unwrap()
    }

    #[test]
    fn arguments_are_those_that_each_program_takes() {
        let check = |fs_type: FsType, toml: &str, expect: &str| {
            let options = options(toml);
            assert_eq!(options.wrong_for(fs_type), []);
            assert_eq!(options.arguments(fs_type).join(" "), expect);
        };
        check(FsType::Ext4, "", "");
        check(
            FsType::Ext4,
            "block_size = \"1 KiB\"\ninode_size = \"256 B\"\nbytes_per_inode = \"64 KiB\"\njournal_size = \"16 MiB\"\n\
             reserved_percent = 0\nfeatures = { metadata_csum = false, fast_commit = true }",
            "-b 1024 -I 256 -i 65536 -J size=16 -m 0 -O fast_commit -O ^metadata_csum",
        );
        check(FsType::Ext4, "journal = false", "-O ^has_journal");
        check(
            FsType::Xfs,
            "block_size = \"4 KiB\"\nsector_size = \"512 B\"\njournal_size = \"64 MiB\"\ngroups = 8\n\
             features = { reflink = false, sparse = true }",
            "-b size=4096 -s size=512 -l size=67108864 -d agcount=8 -m reflink=0 -i sparse=1",
        );
        check(
            FsType::Btrfs,
            "node_size = \"16 KiB\"\ndata = \"single\"\nmetadata = \"dup\"\nfeatures = { no_holes = false }",
            "-n 16384 -d single -m dup -O ^no-holes",
        );
    }

    #[test]
    fn what_a_filesystem_does_not_take_is_wrong() {
        let check = |fs_type: FsType, toml: &str, expect: &str| {
            let wrong = options(toml).wrong_for(fs_type);
            let told: Vec<String> = wrong.iter().map(|(key, what, _)| format!("{}: {what}", key.join("."))).collect();
            assert_eq!(told, [expect], "{toml}");
        };
        check(FsType::Ext4, "block_size = \"3 KiB\"", "block_size: ext4 takes a power of two from 1024 B to 4 KiB");
        check(FsType::Xfs, "journal = true", "journal: xfs has no such option; ext4 has");
        check(FsType::Tmpfs, "groups = 2", "groups: tmpfs has no such option; xfs has");
        check(FsType::Xfs, "groups = 0", "groups: xfs takes 1 to 1048576");
        check(FsType::Ext4, "reserved_percent = 51", "reserved_percent: ext4 takes 0 to 50");
        check(
            FsType::Ext4,
            "journal_size = \"1500 KiB\"",
            "journal_size: ext4 takes whole MiB from 1 MiB to 40960 MiB",
        );
        check(
            FsType::Ext4,
            "features = { reflink = true }",
            "features.reflink: ext4 has no feature \"reflink\" that can be chosen",
        );
    }

    /// The problems of a file with one more piece of a mount, on line 10.
    fn check_file(piece: &str, expect: &str) {
        let file = format!(
            "name = \"s\"\nsummary = \"s\"\n[machine]\nmemory = \"1 GiB\"\n[machine.devices.b]\nsize = \"1 GiB\"\n\
             [machine.mounts.\"/b\"]\ntype = \"ext4\"\ndevice = \"b\"\n{piece}\n[workload.tasks.t]\nsteps = [\"sync\"]\n"
        );
        let told = ScenarioFile::parse(&file).unwrap_err().problems;
        let told: Vec<String> = told
            .iter()
            .map(|problem| format!("{}: {} -> {}", problem.key, problem.message, problem.hint.as_deref().unwrap_or("")))
            .collect();
        assert_eq!(told, [format!("machine.mounts.\"/b\".{expect}")], "{piece}");
    }

    #[test]
    fn a_file_has_typed_options_and_arguments_are_refused() {
        for arguments in ["[\"-F\", \"/dev/sda\", \"-L\"]", "[\"-d\", \"/etc\"]", "[\"-z\", \"/tmp/x\"]", "[]"] {
            check_file(
                &format!("mkfs = {arguments}"),
                "mkfs: arguments of a mkfs program are not accepted -> write mkfs = { block_size = \"4 KiB\" } (options of \
                 each filesystem: docs/scenarios.md)",
            );
        }
        check_file(
            "mkfs = { block_size = \"8 KiB\" }",
            "mkfs.block_size: ext4 takes a power of two from 1024 B to 4 KiB -> ",
        );
        check_file(
            "mkfs.features = { metadatacsum = true }",
            "mkfs.features.metadatacsum: ext4 has no feature \"metadatacsum\" that can be chosen -> did you mean \
             metadata_csum?",
        );
        check_file(
            "mkfs = { label = \"/dev/sda\" }",
            "mkfs.label: unknown key \"label\" -> known here: block_size, sector_size, node_size, inode_size, \
             bytes_per_inode, journal, journal_size, reserved_percent, groups, data, metadata, features",
        );
    }

    #[test]
    fn no_text_reaches_an_argument() {
        let strange = ["-d/etc", "^has_journal,-F", "/dev/sda", "..", "a b", "\0", "\n-z"];
        for name in strange {
            let options = Mkfs { features: [(name.to_owned(), true)].into(), ..Mkfs::default() };
            for fs_type in [FsType::Ext4, FsType::Xfs, FsType::Btrfs, FsType::Tmpfs, FsType::Overlay] {
                assert_eq!(options.wrong_for(fs_type).len(), 1, "{name:?}");
                assert!(options.arguments(fs_type).is_empty(), "{name:?}");
            }
        }
    }
}
