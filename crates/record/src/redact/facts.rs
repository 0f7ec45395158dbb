// SPDX-License-Identifier: MIT OR Apache-2.0
//! The facts of a machine without names.

use super::{Redactor, words};
use crate::facts::{BlockDevice, CgroupSetup, HostFacts, Journald, Mount, Overlay, Stack, SysctlLine};
use crate::name::Name;
use crate::text::Text;
use std::collections::BTreeMap;

impl Redactor {
    /// What the machine is, without names.
    pub fn facts(&self, facts: &HostFacts) -> HostFacts {
        let HostFacts {
            hostname,
            kernel_release,
            kernel,
            boot_id,
            cmdline,
            page_size,
            hz,
            cpus_possible,
            mem_total,
            cgroups,
            devices,
            mounts,
            journald,
            sysctl_lines,
            container_names,
            user_container_names,
            privileged,
            task_delayacct,
            lru_gen,
            debugfs,
            bdis,
            io_cost_qos,
            cgroup_inodes,
        } = facts;
        HostFacts {
            hostname: self.whole(hostname),
            kernel_release: self.release(kernel_release),
            kernel: *kernel,
            boot_id: boot_id.as_ref().map(|id| self.label(id)),
            cmdline: self.joined(cmdline, b' ', |parameter| self.parameter(parameter)),
            page_size: *page_size,
            hz: *hz,
            cpus_possible: *cpus_possible,
            mem_total: *mem_total,
            cgroups: self.setup(cgroups),
            devices: devices.iter().map(|device| self.device(device)).collect(),
            mounts: mounts.iter().map(|mount| self.mount(mount)).collect(),
            journald: journald.as_ref().map(|journald| self.journald(journald)),
            sysctl_lines: sysctl_lines.iter().map(|line| self.sysctl_line(line)).collect(),
            container_names: self.containers(container_names),
            user_container_names: user_container_names
                .iter()
                .map(|(user, names)| (*user, self.containers(names)))
                .collect(),
            privileged: *privileged,
            task_delayacct: *task_delayacct,
            lru_gen: *lru_gen,
            debugfs: *debugfs,
            bdis: bdis.iter().map(|(name, dev)| (self.kernel_word(name), *dev)).collect(),
            io_cost_qos: io_cost_qos.iter().map(|(dev, qos)| (self.kernel_word(dev), self.words(qos))).collect(),
            cgroup_inodes: cgroup_inodes
                .iter()
                .map(|(path, ino)| (self.path(&Name::from_escaped(path.as_str())).to_string().into(), *ino))
                .collect(),
        }
    }

    fn setup(&self, setup: &CgroupSetup) -> CgroupSetup {
        let CgroupSetup { mode, v2_mount, v2_controllers, v2_controllers_unread, v1_mounts } = setup;
        CgroupSetup {
            mode: *mode,
            v2_mount: v2_mount.as_ref().map(|path| self.path(path)),
            v2_controllers: v2_controllers.iter().map(|name| self.kernel_word(name)).collect(),
            v2_controllers_unread: *v2_controllers_unread,
            v1_mounts: v1_mounts.iter().map(|(name, path)| (self.kernel_word(name), self.path(path))).collect(),
        }
    }

    fn device(&self, device: &BlockDevice) -> BlockDevice {
        let BlockDevice {
            dev,
            name,
            rotational,
            scheduler,
            nr_requests,
            max_request,
            wbt_lat,
            write_back_cache,
            size,
            partition_of,
            slaves,
            stack,
        } = device;
        BlockDevice {
            dev: *dev,
            name: self.disk(name),
            rotational: *rotational,
            scheduler: scheduler.as_ref().map(|word| self.kernel_word(word)),
            nr_requests: *nr_requests,
            max_request: *max_request,
            wbt_lat: *wbt_lat,
            write_back_cache: *write_back_cache,
            size: *size,
            partition_of: *partition_of,
            slaves: slaves.clone(),
            stack: match stack {
                Stack::Bottom => Stack::Bottom,
                Stack::Loop { backing_file, dio } => Stack::Loop { backing_file: self.path(backing_file), dio: *dio },
                Stack::Md { level } => Stack::Md { level: self.kernel_word(level) },
                Stack::Dm { name } => Stack::Dm { name: self.whole(name) },
            },
        }
    }

    fn mount(&self, mount: &Mount) -> Mount {
        let Mount { dev, root, mount_point, fs_type, source, options, super_options, overlay } = mount;
        // `tmpfs`, `proc`: a filesystem without a source.
        let is_type = source.as_bytes() == fs_type.as_str().as_bytes();
        Mount {
            dev: *dev,
            root: self.path(root),
            mount_point: self.path(mount_point),
            fs_type: self.fs_type(fs_type),
            source: if is_type { source.clone() } else { self.path(source) },
            options: self.joined(options, b',', |option| self.option(option)),
            super_options: self.joined(super_options, b',', |option| self.option(option)),
            overlay: overlay.as_ref().map(|overlay| {
                let Overlay { upperdir, upper_dev, volatile } = overlay;
                let upperdir = upperdir.as_ref().map(|path| self.path(path));
                Overlay { upperdir, upper_dev: *upper_dev, volatile: *volatile }
            }),
        }
    }

    fn journald(&self, journald: &Journald) -> Journald {
        let Journald { storage, persistent, sync_interval, files } = journald;
        Journald {
            storage: self.kernel_word(storage),
            persistent: *persistent,
            sync_interval: *sync_interval,
            files: files.iter().map(|path| self.drop_in(path)).collect(),
        }
    }

    fn sysctl_line(&self, line: &SysctlLine) -> SysctlLine {
        let SysctlLine { file, line, key, value } = line;
        SysctlLine {
            file: self.drop_in(file),
            line: *line,
            key: self.kernel_word(key),
            value: if value.as_str().bytes().all(|c| c.is_ascii_digit()) {
                value.clone()
            } else {
                self.hash(value.as_str().as_bytes()).into()
            },
        }
    }

    fn containers(&self, names: &BTreeMap<Text, Name>) -> BTreeMap<Text, Name> {
        names.iter().map(|(id, name)| (self.label(id), self.whole(name))).collect()
    }

    /// Words and numbers of the kernel, with spaces between.
    fn words(&self, text: &Text) -> Text {
        let is_kept = |c: u8| c.is_ascii_alphanumeric() || b"_.=: ".contains(&c);
        if text.as_str().bytes().all(is_kept) { text.clone() } else { self.hash(text.as_str().as_bytes()).into() }
    }

    /// The release of a kernel: numbers and words of distributions stay, a name that someone gave their build does not.
    fn release(&self, release: &Text) -> Text {
        let between = |c: char| "-+._~".contains(c);
        let words = release.as_str().split_inclusive(between).map(|word| {
            let (body, end) = word.split_at(word.trim_end_matches(between).len());
            let body = if words::is_release(body.as_bytes()) { body.to_owned() } else { self.hash(body.as_bytes()) };
            body + end
        });
        words.collect::<String>().into()
    }

    /// The type of a filesystem; the name behind `fuse.` is that of a program.
    fn fs_type(&self, fs_type: &Text) -> Text {
        match fs_type.as_str().split_once('.') {
            Some((kind @ ("fuse" | "fuseblk"), program)) if program != "sshfs" => {
                format!("{kind}.{}", self.hash(program.as_bytes())).into()
            }
            _ => self.kernel_word(fs_type),
        }
    }

    /// A parameter of the kernel's command line.
    fn parameter(&self, parameter: &[u8]) -> Vec<u8> {
        let key = parameter.split(|&c| c == b'=').next().unwrap_or_default();
        match words::is_parameter(key) || parameter.is_empty() {
            true => parameter.to_vec(),
            false => self.hash(parameter).into_bytes(),
        }
    }

    /// An option of a mount: the word, and of a value only what names nothing.
    fn option(&self, option: &[u8]) -> Vec<u8> {
        let is_word = |word: &[u8]| {
            word.len() <= 16 && word.iter().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || b"_.:-".contains(c))
        };
        let Some(at) = option.iter().position(|&c| c == b'=') else {
            return if words::is_flag(option) { option.to_vec() } else { self.hash(option).into_bytes() };
        };
        let (key, value) = (option.get(..at).unwrap_or_default(), option.get(at + 1..).unwrap_or_default());
        let is_amount = |value: &[u8]| {
            let digits = value.iter().take_while(|c| c.is_ascii_digit()).count();
            digits > 0 && matches!(value.get(digits..), Some([] | [b'k' | b'm' | b'g' | b'K' | b'M' | b'G' | b'%']))
        };
        let value = if is_amount(value) || words::is_option(key) && is_word(value) {
            value.to_vec()
        } else if value.first() == Some(&b'/') {
            // Layers of an overlay have colons between.
            self.joined(&Name::new(value), b':', |path| self.path(&Name::new(path)).as_bytes().to_vec())
                .as_bytes()
                .to_vec()
        } else {
            self.hash(value).into_bytes()
        };
        let key = if words::is_key(key) { key.to_vec() } else { self.hash(key).into_bytes() };
        [key, value].join(&b'=')
    }
}
