// SPDX-License-Identifier: MIT OR Apache-2.0
//! Open attributes: reads and writes without a path look-up and without taking memory, so that a storm on the disks
//! cannot block them. The only file that writes to an attribute. In an imitated host it does what the kernel does
//! besides: a write to a member of a pair zeroes the other one.
#![allow(unsafe_code)]

use crate::host::Host;
use crate::knob::{Access, Attribute};
use rustix::io::Errno;
use rustix::ioctl::{IntegerSetter, ioctl};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

/// Longest value of an attribute.
pub const VALUE_MAX: usize = 64;

/// `LOOP_SET_DIRECT_IO` of `linux/loop.h`.
const LOOP_SET_DIRECT_IO: u32 = 0x4C08;

/// A value that was read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Value {
    bytes: [u8; VALUE_MAX / 2],
    len: usize,
}

impl Value {
    /// First line, without spaces around it.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// As text. Takes memory.
    pub fn to_text(&self) -> String {
        String::from_utf8_lossy(self.as_bytes()).into_owned()
    }
}

/// An open attribute.
#[derive(Debug)]
pub struct Port {
    file: File,
    /// The loop device that takes the ioctl.
    device: Option<File>,
    is_imitated: bool,
}

impl Port {
    /// Opens an attribute for reading and writing.
    pub fn open(host: &Host, attribute: &Attribute) -> io::Result<Port> {
        let path = host.path(&attribute.path);
        let is_imitated = host.is_imitated();
        let open = |write| OpenOptions::new().read(true).write(write).open(&path);
        match attribute.access {
            Access::File => Ok(Port { file: open(true)?, device: None, is_imitated }),
            Access::LoopDirectIo if is_imitated => Ok(Port { file: open(true)?, device: None, is_imitated }),
            Access::LoopDirectIo => {
                let name = attribute.path.split('/').nth(2).unwrap_or_default();
                let device = OpenOptions::new().read(true).write(true).open(host.path(&format!("dev/{name}")))?;
                Ok(Port { file: open(false)?, device: Some(device), is_imitated })
            }
        }
    }

    /// A file that exists in memory only.
    pub fn rehearsal() -> io::Result<Port> {
        let file = rustix::fs::memfd_create("rehearsal", rustix::fs::MemfdFlags::CLOEXEC)?;
        Ok(Port { file: File::from(file), device: None, is_imitated: true })
    }

    /// Reads the value.
    pub fn read(&self) -> io::Result<Value> {
        let mut buffer = [0; VALUE_MAX];
        let count = self.file.read_at(&mut buffer, 0)?;
        let line = buffer.get(..count).unwrap_or_default().split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = line.trim_ascii();
        let mut value = Value { len: line.len(), ..Value::default() };
        match value.bytes.get_mut(..line.len()) {
            Some(bytes) => bytes.copy_from_slice(line),
            None => return Err(io::ErrorKind::InvalidData.into()),
        }
        Ok(value)
    }

    /// Writes a value. A system call that a signal interrupts is made again.
    pub fn write(&self, value: &[u8]) -> io::Result<()> {
        if let Some(device) = &self.device {
            let on = usize::from(value == b"1");
            // SAFETY: LOOP_SET_DIRECT_IO takes an integer, 0 or 1, and no pointer.
            return Ok(unsafe { ioctl(device, IntegerSetter::<LOOP_SET_DIRECT_IO>::new_usize(on)) }?);
        }
        let mut line = [b'\n'; VALUE_MAX];
        let len = value.len().min(VALUE_MAX - 1);
        let (Some(to), Some(from)) = (line.get_mut(..len), value.get(..len)) else { return Err(Errno::INVAL.into()) };
        to.copy_from_slice(from);
        let line = line.get(..=len).unwrap_or_default();
        loop {
            match self.file.write_at(line, 0) {
                Ok(count) if count == line.len() => break,
                Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.is_imitated {
            self.file.set_len(u64::try_from(line.len()).unwrap_or(u64::MAX))?;
        }
        Ok(())
    }
}

/// Writes one attribute of several that are open, and in an imitated host zeroes the other member of its pair.
pub fn write(ports: &[Port], is_pair: bool, at: usize, value: &[u8]) -> io::Result<()> {
    let port = ports.get(at).ok_or(io::ErrorKind::NotFound)?;
    if port.is_imitated && is_pair {
        // Kernels do both under one call. Here the other member is zeroed first: of no member it can be said that
        // an administrator wrote it.
        for other in ports.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, port)| port) {
            other.write(b"0")?;
        }
    }
    port.write(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> (tempfile::TempDir, Host) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("proc/sys/vm")).unwrap();
        for (name, value) in [("dirty_bytes", "0\n"), ("dirty_ratio", "20\n")] {
            std::fs::write(folder.path().join("proc/sys/vm").join(name), value).unwrap();
        }
        let host = Host::below(folder.path());
        (folder, host)
    }

    #[test]
    fn a_shorter_value_leaves_nothing_of_the_longer_one() {
        let (folder, host) = host();
        let knob = crate::knob::Knob::resolve(&host, "vm.dirty_bytes").unwrap();
        let ports: Vec<Port> = knob.state.iter().map(|attribute| Port::open(&host, attribute).unwrap()).collect();
        write(&ports, true, 0, b"1073741824").unwrap();
        write(&ports, true, 0, b"8192").unwrap();
        let read = |name| std::fs::read_to_string(folder.path().join("proc/sys/vm").join(name)).unwrap();
        assert_eq!((read("dirty_bytes").as_str(), read("dirty_ratio").as_str()), ("8192\n", "0\n"));
        assert_eq!(ports[0].read().unwrap().as_bytes(), b"8192");
    }
}
