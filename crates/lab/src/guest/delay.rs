// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latency of a device in a guest: a device-mapper target `delay` over it, which holds every request for so
//! many milliseconds (`Documentation/admin-guide/device-mapper/delay.rst`). QEMU limits rates and has no
//! such thing. The one place of the guest that calls an ioctl of its own.
#![allow(unsafe_code)]

use super::{GuestError, devices};
use floodline_record::id::DevId;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

const CONTROL: &str = "/dev/mapper/control";

/// `struct dm_ioctl` of `linux/dm-ioctl.h`: how long it is and where its fields are.
const HEADER: usize = 312;
const DATA_SIZE: usize = 12;
const DATA_START: usize = 16;
const TARGET_COUNT: usize = 20;
const DEV: usize = 40;
const NAME: std::ops::Range<usize> = 48..176;
/// `struct dm_target_spec`, behind the header.
const LENGTH: usize = HEADER + 8;
const NEXT: usize = HEADER + 20;
const TYPE: usize = HEADER + 24;
const PARAMETERS: usize = HEADER + 40;
/// Header, one target and its parameters.
const SIZE: usize = 512;

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
        // The version of the interface that we speak: 4.0.0.
        message.put(0, &4_u32.to_ne_bytes());
        message.put(DATA_SIZE, &u32::try_from(SIZE).unwrap_or(0).to_ne_bytes());
        message.put(DATA_START, &u32::try_from(HEADER).unwrap_or(0).to_ne_bytes());
        // With room for the zero byte at its end.
        message.put(NAME.start, name.as_bytes().get(..NAME.len() - 1).unwrap_or(name.as_bytes()));
        message
    }

    /// With a table of one target over the whole device.
    fn with_table(mut self, sectors: u64, kind: &str, parameters: &str) -> Message {
        self.put(TARGET_COUNT, &1_u32.to_ne_bytes());
        self.put(LENGTH, &sectors.to_ne_bytes());
        self.put(NEXT, &u32::try_from(SIZE - HEADER).unwrap_or(0).to_ne_bytes());
        self.put(TYPE, kind.as_bytes());
        self.put(PARAMETERS, parameters.as_bytes());
        self
    }

    /// Puts bytes somewhere; what would be beyond the end is left out.
    fn put(&mut self, at: usize, bytes: &[u8]) {
        for (to, from) in self.0.iter_mut().skip(at).zip(bytes) {
            *to = *from;
        }
    }

    /// Minor number of the device that the answer names, as `new_decode_dev()` takes it apart.
    fn minor(&self) -> u64 {
        let bytes = self.0.get(DEV..DEV + 8).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; 8]);
        let dev = u64::from_ne_bytes(bytes);
        (dev & 0xff) | ((dev >> 12) & 0xf_ff00)
    }
}

/// Lays a delay over a device. Returns what is used instead of it.
pub(super) fn make(
    name: &str,
    (node, number): &(PathBuf, DevId),
    milliseconds: u64,
) -> Result<(PathBuf, DevId), GuestError> {
    let control = File::options().read(true).write(true).open(CONTROL).map_err(GuestError::at(CONTROL))?;
    let missing = || GuestError::Missing { what: format!("the size of {}", node.display()) };
    let kernel_name = node.file_name().ok_or_else(missing)?;
    let path = Path::new("/sys/class/block").join(kernel_name).join("size");
    let sectors = fs::read_to_string(&path).map_err(GuestError::at(path))?;
    let sectors = sectors.trim().parse().map_err(|_| missing())?;
    let mut created = Message::new(name);
    tell::<DEV_CREATE>(&control, &mut created)?;
    let table = format!("{number} 0 {milliseconds}");
    tell::<TABLE_LOAD>(&control, &mut Message::new(name).with_table(sectors, "delay", &table))?;
    // Without the flag of suspending it resumes, with the table just loaded.
    tell::<DEV_SUSPEND>(&control, &mut Message::new(name))?;
    devices::device(&format!("dm-{}", created.minor()))
}

fn tell<const COMMAND: Opcode>(control: &File, message: &mut Message) -> Result<(), GuestError> {
    // SAFETY: the command reads and writes as many bytes as the message says of itself, and these are its own.
    let told = unsafe { ioctl(control, Updater::<COMMAND, Message>::new(message)) };
    told.map_err(GuestError::at(CONTROL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_says_how_long_the_device_is_and_what_it_does() {
        let message = Message::new("data").with_table(0x1234, "delay", "254:0 0 7");
        let at = |range: std::ops::Range<usize>| &message.0[range];
        assert_eq!(at(48..53), b"data\0");
        assert_eq!(at(312 + 8..312 + 10), [0x34, 0x12]);
        assert_eq!(at(312 + 24..312 + 30), b"delay\0");
        assert_eq!(at(352..362), b"254:0 0 7\0");
        let long = Message::new(&"x".repeat(600)).with_table(1, "delay", &"y".repeat(600));
        assert_eq!(long.0[511], b'y');
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
