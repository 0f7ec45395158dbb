// SPDX-License-Identifier: MIT OR Apache-2.0
//! Open attributes: reads and writes without a path look-up and without taking memory, so that a storm on the disks
//! cannot block them. The only file that writes to an attribute. In an imitated host it does what the kernel does
//! besides: a write to a member of a pair zeroes the other one.
#![allow(unsafe_code)]

use crate::host::Host;
use crate::journald;
use crate::knob::{Access, Attribute};
use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;
use rustix::ioctl::{IntegerSetter, ioctl};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

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

/// Longest `io.max` or drop-in that is read.
const TEXT_MAX: usize = 4096;

/// An open attribute.
#[derive(Debug)]
pub struct Port {
    file: File,
    kind: Kind,
    is_imitated: bool,
}

/// How a value is in the file, and how it gets there.
#[derive(Debug)]
enum Kind {
    /// The file holds the value.
    Plain,
    /// A loop device takes an ioctl.
    Loop(File),
    /// A drop-in of journald, and the host whose journald is started again.
    Journald(Host),
    /// The line of a device, and its limit.
    IoMax { device: Vec<u8>, limit: Vec<u8> },
}

impl Kind {
    fn io_max(attribute: &Attribute) -> Kind {
        let mut words = attribute.name.rsplit('/');
        let mut word = || words.next().unwrap_or_default().as_bytes().to_vec();
        let (limit, device) = (word(), word());
        Kind::IoMax { device, limit }
    }
}

/// The device node of a loop device.
fn device_of(host: &Host, attribute: &Attribute) -> PathBuf {
    host.path(&format!("dev/{}", attribute.path.split('/').nth(2).unwrap_or_default()))
}

/// Whether this process, with its effective user, may open a file for reading and writing.
fn may_open(path: &Path) -> io::Result<()> {
    use rustix::fs::Access as Wanted;
    Ok(rustix::fs::accessat(CWD, path, Wanted::READ_OK | Wanted::WRITE_OK, AtFlags::EACCESS)?)
}

impl Port {
    /// Opens an attribute for reading and writing.
    pub fn open(host: &Host, attribute: &Attribute) -> io::Result<Port> {
        let path = host.path(&attribute.path);
        let is_imitated = host.is_imitated();
        let open = |write| OpenOptions::new().read(true).write(write).open(&path);
        let (file, kind) = match attribute.access {
            Access::File => (open(true)?, Kind::Plain),
            Access::LoopDirectIo if is_imitated => (open(true)?, Kind::Plain),
            Access::LoopDirectIo => {
                let device = OpenOptions::new().read(true).write(true).open(device_of(host, attribute))?;
                (open(false)?, Kind::Loop(device))
            }
            Access::Journald => {
                if let Some(folder) = path.parent() {
                    std::fs::create_dir_all(folder)?;
                }
                // An empty drop-in sets nothing.
                let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
                (file, Kind::Journald(host.clone()))
            }
            Access::IoMax => (open(true)?, Kind::io_max(attribute)),
        };
        Ok(Port { file, kind, is_imitated })
    }

    /// A value as it is now, of an attribute that this process may write. Nothing is made on the host or opened for writing: to open
    /// some files for writing is an event for other programs.
    pub fn look(host: &Host, attribute: &Attribute) -> io::Result<String> {
        if attribute.access == Access::Journald {
            if !host.is_imitated() && journald::process(host).is_none() {
                return Err(io::ErrorKind::NotFound.into());
            }
            let text = match host.read(&attribute.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
                text => text?,
            };
            let value = journald::storage_in(text.as_bytes()).unwrap_or(journald::UNSET.as_bytes());
            return Ok(String::from_utf8_lossy(value).into_owned());
        }
        Port::may_write(host, attribute)?;
        let file = File::open(host.path(&attribute.path))?;
        let kind = if attribute.access == Access::IoMax { Kind::io_max(attribute) } else { Kind::Plain };
        Ok(Port { file, kind, is_imitated: host.is_imitated() }.read()?.to_text())
    }

    /// The error that [`Port::open`] would return, without opening anything.
    pub fn may_write(host: &Host, attribute: &Attribute) -> io::Result<()> {
        let is_imitated = host.is_imitated();
        match attribute.access {
            // Its drop-in is made when it is written.
            Access::Journald => Ok(()),
            Access::LoopDirectIo if !is_imitated => may_open(&device_of(host, attribute)),
            Access::File | Access::IoMax | Access::LoopDirectIo => {
                let path = host.path(&attribute.path);
                let metadata = path.metadata()?;
                if metadata.is_dir() {
                    return Err(Errno::ISDIR.into());
                }
                // sysfs refuses a file without a writer also to root, and access(2) does not tell.
                if !is_imitated && metadata.permissions().mode() & 0o222 == 0 {
                    return Err(Errno::ACCESS.into());
                }
                may_open(&path)
            }
        }
    }

    /// A file that exists in memory only.
    pub fn rehearsal() -> io::Result<Port> {
        let file = rustix::fs::memfd_create("rehearsal", rustix::fs::MemfdFlags::CLOEXEC)?;
        Ok(Port { file: File::from(file), kind: Kind::Plain, is_imitated: true })
    }

    /// Reads the value.
    pub fn read(&self) -> io::Result<Value> {
        let mut buffer = [0; TEXT_MAX];
        let count = self.file.read_at(&mut buffer, 0)?;
        let text = buffer.get(..count).unwrap_or_default();
        let found = match &self.kind {
            Kind::Plain | Kind::Loop(_) => text.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii(),
            Kind::Journald(_) => journald::storage_in(text).unwrap_or(journald::UNSET.as_bytes()),
            // A device without a line has no limit.
            Kind::IoMax { device, limit } => limit_in(text, device, limit).unwrap_or(b"max"),
        };
        let mut value = Value { len: found.len(), ..Value::default() };
        match value.bytes.get_mut(..found.len()) {
            Some(bytes) => bytes.copy_from_slice(found),
            None => return Err(io::ErrorKind::InvalidData.into()),
        }
        Ok(value)
    }

    /// Writes a value. A system call that a signal interrupts is made again.
    pub fn write(&self, value: &[u8]) -> io::Result<()> {
        let mut line = Line::default();
        match &self.kind {
            Kind::Loop(device) => {
                let on = usize::from(value == b"1");
                // SAFETY: LOOP_SET_DIRECT_IO takes an integer, 0 or 1, and no pointer.
                return Ok(unsafe { ioctl(device, IntegerSetter::<LOOP_SET_DIRECT_IO>::new_usize(on)) }?);
            }
            Kind::Journald(host) => {
                if value != journald::UNSET.as_bytes() {
                    line.add(&[b"[Journal]\nStorage=", value, b"\n"])?;
                }
                self.put(line.as_bytes())?;
                self.shorten(line.as_bytes())?;
                journald::restart(host);
                return Ok(());
            }
            Kind::Plain => line.add(&[value, b"\n"])?,
            Kind::IoMax { device, limit } => line.add(&[device, b" ", limit, b"=", value, b"\n"])?,
        }
        self.put(line.as_bytes())?;
        if self.is_imitated { self.shorten(line.as_bytes()) } else { Ok(()) }
    }

    fn shorten(&self, line: &[u8]) -> io::Result<()> {
        self.file.set_len(u64::try_from(line.len()).unwrap_or(u64::MAX))
    }

    fn put(&self, line: &[u8]) -> io::Result<()> {
        while !line.is_empty() {
            match self.file.write_at(line, 0) {
                Ok(count) if count == line.len() => break,
                Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A line that takes no memory.
struct Line {
    bytes: [u8; VALUE_MAX],
    len: usize,
}

impl Default for Line {
    fn default() -> Line {
        Line { bytes: [0; VALUE_MAX], len: 0 }
    }
}

impl Line {
    fn add(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        for part in parts {
            let to = self.bytes.get_mut(self.len..self.len + part.len()).ok_or(Errno::INVAL)?;
            to.copy_from_slice(part);
            self.len += part.len();
        }
        Ok(())
    }

    fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// A limit in the line of a device: `8:0 rbps=max wbps=1048576 riops=max wiops=max`.
fn limit_in<'a>(text: &'a [u8], device: &[u8], limit: &[u8]) -> Option<&'a [u8]> {
    let mut lines = text.split(|byte| *byte == b'\n');
    let line = lines.find_map(|line| line.strip_prefix(device)?.strip_prefix(b" "))?;
    line.split(|byte| *byte == b' ').find_map(|word| word.strip_prefix(limit)?.strip_prefix(b"="))
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
    #[test]
    fn a_limit_of_a_device_is_one_word_of_its_line() {
        let text = b"8:0 rbps=max wbps=1048576 riops=max wiops=120\n8:16 rbps=1 wbps=max riops=max wiops=max\n";
        let check = |device: &str, limit: &str, expect: Option<&str>| {
            let found = limit_in(text, device.as_bytes(), limit.as_bytes());
            assert_eq!(found, expect.map(str::as_bytes), "{device} {limit}");
        };
        check("8:0", "wbps", Some("1048576"));
        check("8:0", "wiops", Some("120"));
        check("8:16", "rbps", Some("1"));
        check("8:1", "rbps", None);
        check("8:16", "idle", None);
    }

    #[test]
    fn a_drop_in_of_journald_is_empty_where_it_sets_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let knob = crate::knob::Knob::resolve(&host, journald::KNOB).unwrap();
        assert_eq!(Port::look(&host, &knob.written).unwrap(), "unset");
        assert!(!folder.path().join("run").exists());
        let port = Port::open(&host, &knob.written).unwrap();
        assert_eq!(port.read().unwrap().as_bytes(), b"unset");
        for (value, text) in
            [("persistent", "[Journal]\nStorage=persistent\n"), ("none", "[Journal]\nStorage=none\n"), ("unset", "")]
        {
            port.write(value.as_bytes()).unwrap();
            assert_eq!(port.read().unwrap().as_bytes(), value.as_bytes());
            assert_eq!(host.read(journald::NOW).unwrap(), text);
        }
    }

    #[test]
    fn what_may_be_written_is_what_can_be_opened() {
        let (folder, host) = host();
        let knob = crate::knob::Knob::resolve(&host, "vm.dirty_ratio").unwrap();
        let path = folder.path().join("proc/sys/vm/dirty_ratio");
        let check = |expect: Option<io::ErrorKind>| {
            let of = |outcome: io::Result<()>| outcome.err().map(|error| error.kind());
            assert_eq!(of(Port::may_write(&host, &knob.written)), expect);
            assert_eq!(of(Port::open(&host, &knob.written).map(drop)), expect);
            assert_eq!(of(Port::look(&host, &knob.written).map(drop)), expect);
        };
        check(None);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).unwrap();
        let is_root = rustix::process::geteuid().is_root();
        check((!is_root).then_some(io::ErrorKind::PermissionDenied));
        std::fs::remove_file(&path).unwrap();
        check(Some(io::ErrorKind::NotFound));
        std::fs::create_dir(&path).unwrap();
        check(Some(io::ErrorKind::IsADirectory));
    }
}
