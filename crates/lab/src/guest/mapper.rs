// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device-mapper devices in a guest. `delay` holds every request for a number of milliseconds (QEMU limits rates but
//! cannot delay). `linear` and `striped` are tables like LVM's, `crypt` is one like LUKS's. The kernel's
//! `Documentation/admin-guide/device-mapper/` describes the tables. No program of a distribution is needed. This is
//! the only file of the guest that calls an ioctl itself.
#![allow(unsafe_code)]

use super::array::{self, Member};
use super::{GuestError, devices};
use floodline_record::id::DevId;
use floodline_scenario::Layout;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use std::fs::File;
use std::path::PathBuf;

const CONTROL: &str = "/dev/mapper/control";

/// Length and field offsets of `struct dm_ioctl` in `linux/dm-ioctl.h`.
const HEADER: usize = 312;
const DATA_SIZE: usize = 12;
const DATA_START: usize = 16;
const TARGET_COUNT: usize = 20;
const DEV: usize = 40;
const NAME: std::ops::Range<usize> = 48..176;
/// Field offsets of `struct dm_target_spec`, and the offset of the parameters after it.
const START: usize = 0;
const LENGTH: usize = 8;
const NEXT: usize = 20;
const TYPE: usize = 24;
const PARAMETERS: usize = 40;
/// Message size: the header and the targets with their parameters, 32 `linear` targets or one of 32 stripes.
const SIZE: usize = 4096;

const fn command(number: u8) -> Opcode {
    opcode::read_write::<[u8; HEADER]>(0xfd, number)
}

const DEV_CREATE: Opcode = command(3);
const DEV_SUSPEND: Opcode = command(6);
const TABLE_LOAD: Opcode = command(9);

/// One message to the device mapper; the kernel writes its answer into it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Message([u8; SIZE]);

impl Message {
    fn new(name: &str) -> Message {
        let mut message = Message([0; SIZE]);
        // Interface version: 4.0.0.
        message.put(0, &4_u32.to_ne_bytes());
        message.put(DATA_SIZE, &u32::try_from(SIZE).unwrap_or(0).to_ne_bytes());
        message.put(DATA_START, &u32::try_from(HEADER).unwrap_or(0).to_ne_bytes());
        // Leaves room for the terminating zero byte.
        message.put(NAME.start, name.as_bytes().get(..NAME.len() - 1).unwrap_or(name.as_bytes()));
        message
    }

    /// Adds a table of consecutive targets.
    fn with_table(mut self, targets: &[Target]) -> Message {
        self.put(TARGET_COUNT, &u32::try_from(targets.len()).unwrap_or(0).to_ne_bytes());
        let (mut at, mut start) = (HEADER, 0_u64);
        for Target { sectors, kind, parameters } in targets {
            // The parameters end with a zero byte. The next target is aligned to 64 bits.
            let size = (PARAMETERS + parameters.len() + 1).next_multiple_of(8);
            self.put(at + START, &start.to_ne_bytes());
            self.put(at + LENGTH, &sectors.to_ne_bytes());
            self.put(at + NEXT, &u32::try_from(size).unwrap_or(0).to_ne_bytes());
            self.put(at + TYPE, kind.as_bytes());
            self.put(at + PARAMETERS, parameters.as_bytes());
            (at, start) = (at + size, start + sectors);
        }
        self
    }

    /// Writes bytes at an offset. Bytes beyond the end are dropped.
    fn put(&mut self, at: usize, bytes: &[u8]) {
        for (to, from) in self.0.iter_mut().skip(at).zip(bytes) {
            *to = *from;
        }
    }

    /// Returns the minor number of the answer's device, decoded as in `new_decode_dev()`.
    fn minor(&self) -> u64 {
        let bytes = self.0.get(DEV..DEV + 8).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; 8]);
        let dev = u64::from_ne_bytes(bytes);
        (dev & 0xff) | ((dev >> 12) & 0xf_ff00)
    }
}

/// A target: the mapping of some sectors of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    sectors: u64,
    kind: &'static str,
    parameters: String,
}

/// Makes a delay device on top of a device, and returns it.
pub(super) fn delay(name: &str, device: &(PathBuf, DevId), milliseconds: u64) -> Result<(PathBuf, DevId), GuestError> {
    let Member { number, sectors, .. } = array::member(device)?;
    make(name, &[Target { sectors, kind: "delay", parameters: format!("{number} 0 {milliseconds}") }])
}

/// Makes a device from others as LVM or LUKS does. Returns `None` for a layout of md.
pub(super) fn stack(
    name: &str,
    layout: Layout,
    members: &[(PathBuf, DevId)],
) -> Result<Option<(PathBuf, DevId)>, GuestError> {
    let members: Vec<Member> = members.iter().map(array::member).collect::<Result<_, _>>()?;
    table(layout, &members).map(|table| make(name, &table)).transpose()
}

/// A key of 512 bits, of which AES-256-XTS takes one half for each of its ciphers: they must differ.
fn key() -> String {
    (0..64_u8).map(|byte| format!("{byte:02x}")).collect()
}

fn table(layout: Layout, members: &[Member]) -> Option<Vec<Target>> {
    let linear = |kind, parameters: &dyn Fn(&Member) -> String| -> Vec<Target> {
        members.iter().map(|member| Target { sectors: member.sectors, kind, parameters: parameters(member) }).collect()
    };
    Some(match layout {
        Layout::Linear => linear("linear", &|member| format!("{} 0", member.number)),
        Layout::Encrypted(_) => linear("crypt", &|member| format!("aes-xts-plain64 {} 0 {} 0", key(), member.number)),
        Layout::Stripes(chunk) => {
            let chunk = (chunk / array::SECTOR).max(1);
            let least = members.iter().map(|member| member.sectors).min().unwrap_or(0);
            let each = least - least % chunk;
            let parts: String = members.iter().map(|member| format!(" {} 0", member.number)).collect();
            let parameters = format!("{} {chunk}{parts}", members.len());
            vec![Target { sectors: each * members.len() as u64, kind: "striped", parameters }]
        }
        Layout::Mirrors | Layout::MirroredStripes(_) => return None,
    })
}

fn make(name: &str, table: &[Target]) -> Result<(PathBuf, DevId), GuestError> {
    let control = File::options().read(true).write(true).open(CONTROL).map_err(GuestError::at(CONTROL))?;
    let mut created = Message::new(name);
    tell::<DEV_CREATE>(&control, &mut created)?;
    tell::<TABLE_LOAD>(&control, &mut Message::new(name).with_table(table))?;
    // Without the suspend flag, this resumes the device with the table just loaded.
    tell::<DEV_SUSPEND>(&control, &mut Message::new(name))?;
    devices::device(&format!("dm-{}", created.minor()))
}

fn tell<const COMMAND: Opcode>(control: &File, message: &mut Message) -> Result<(), GuestError> {
    // SAFETY: the command reads and writes at most the `data_size` bytes that the message states, its own length.
    let told = unsafe { ioctl(control, Updater::<COMMAND, Message>::new(message)) };
    told.map_err(GuestError::at(CONTROL))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(minor: u32, sectors: u64) -> Member {
        Member { kernel_name: format!("vd{minor}"), number: DevId { major: 254, minor }, sectors }
    }

    #[test]
    fn a_table_says_how_long_the_device_is_and_what_it_does() {
        let target = |sectors, parameters: String| Target { sectors, kind: "delay", parameters };
        let message = Message::new("data").with_table(&[target(0x1234, "254:0 0 7".to_owned())]);
        let at = |range: std::ops::Range<usize>| &message.0[range];
        assert_eq!(at(48..53), b"data\0");
        assert_eq!(at(312 + 8..312 + 10), [0x34, 0x12]);
        assert_eq!(at(312 + 24..312 + 30), b"delay\0");
        assert_eq!(at(352..362), b"254:0 0 7\0");
        let long = Message::new(&"x".repeat(600)).with_table(&[target(1, "y".repeat(6000))]);
        assert_eq!(long.0[SIZE - 1], b'y');
    }

    #[test]
    fn the_second_target_begins_where_the_first_one_ends() {
        let table = table(Layout::Linear, &[member(0, 2048), member(16, 4096)]).unwrap();
        let message = Message::new("lv").with_table(&table);
        let number = |at: usize| u64::from_ne_bytes(message.0[at..at + 8].try_into().unwrap());
        // The parameters are 7 bytes with the zero byte, and the next target begins at a multiple of 8.
        let second = HEADER + 48;
        assert_eq!(message.0[HEADER + NEXT], 48);
        assert_eq!((number(HEADER), number(HEADER + 8), number(second), number(second + 8)), (0, 2048, 2048, 4096));
        assert_eq!(message.0[second + 40..second + 49], *b"254:16 0\0");
    }

    #[test]
    fn each_layout_has_the_table_that_its_target_takes() {
        let check = |layout, members: &[Member], expect: Option<(&str, &str, u64)>| {
            let table = table(layout, members);
            let last = table.as_ref().and_then(|table| table.last());
            assert_eq!(last.map(|last| (last.kind, last.parameters.as_str(), last.sectors)), expect);
        };
        let (one, two) = (member(0, 1000), member(16, 3000));
        let both = [one.clone(), two];
        check(Layout::Stripes(64 << 10), &both, Some(("striped", "2 128 254:0 0 254:16 0", 2 * 896)));
        check(Layout::MirroredStripes(64 << 10), &both, None);
        check(Layout::Mirrors, &both, None);
        let key: String = (0..64).map(|byte| format!("{byte:02x}")).collect();
        let expect = format!("aes-xts-plain64 {key} 0 254:0 0");
        check(Layout::Encrypted(1), &[one], Some(("crypt", &expect, 1000)));
    }

    #[test]
    fn the_largest_stacks_fit_into_a_message() {
        let members: Vec<Member> = (0..32).map(|number| member(1_000_000 + number, u64::MAX >> 16)).collect();
        for layout in [Layout::Linear, Layout::Stripes(4096), Layout::Encrypted(1)] {
            let table = table(layout, &members[..if layout == Layout::Encrypted(1) { 1 } else { 32 }]).unwrap();
            let size: usize = table.iter().map(|target| PARAMETERS + target.parameters.len() + 8).sum();
            assert!(HEADER + size <= SIZE, "{layout:?}: {size}");
        }
    }

    #[test]
    fn a_device_number_is_taken_apart_as_the_kernel_put_it_together() {
        let check = |dev: u64, minor: u64| {
            let mut message = Message::new("x");
            message.put(DEV, &dev.to_ne_bytes());
            assert_eq!(message.minor(), minor);
        };
        check(0xfd03, 3);
        check(0x0010_fd01, 0x101);
    }
}
