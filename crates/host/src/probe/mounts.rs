// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mounts, and the filesystem that receives the writes of each overlay. mountinfo is parsed here: its lines hold names
//! chosen by users and containers, in octal escapes and not necessarily UTF-8.

use super::Prober;
use crate::root::{HostFile, HostRoot, LARGE};
use floodline_record::facts::{HostFacts, Mount, Overlay};
use floodline_record::gap::{Cause, Source};
use floodline_record::id::DevId;
use floodline_record::name::{Name, unescaped};

/// The reader's own mounts. In a captured tree `self` may point to a process that is not in the tree.
const PATHS: [&[u8]; 2] = [b"/proc/self/mountinfo", b"/proc/1/mountinfo"];

pub(super) fn probe(prober: &mut Prober<'_>) {
    let found = PATHS.iter().find_map(|path| prober.root.read(path, LARGE).ok());
    let Some(content) = found.or_else(|| prober.expect(Source::Mountinfo, PATHS[0], LARGE)) else { return };
    let (mounts, flawed) = parsed(&content);
    if flawed > 0 {
        let what = format!("mountinfo lines with ten fields; {flawed} are not");
        prober.gap(Source::Mountinfo, Cause::Malformed { what: what.into() }, PATHS[0]);
    }
    for mount in &mounts {
        if mount.overlay.as_ref().is_some_and(|overlay| overlay.upper_dev.is_none() && overlay.upperdir.is_some()) {
            let cause = Cause::Malformed { what: "an upperdir below a mount that is visible here".into() };
            prober.gap(Source::Mountinfo, cause, mount.mount_point.as_bytes());
        }
    }
    prober.facts.mounts = mounts;
    let debugfs = prober.facts.mounts.iter().any(|mount| mount.fs_type == "debugfs");
    prober.facts.debugfs = Some(debugfs && prober.root.list_dir("/sys/kernel/debug/bdi").is_ok());
}

/// The mounts of a mountinfo with the filesystem below each overlay, and how many lines are flawed.
fn parsed(content: &[u8]) -> (Vec<Mount>, u64) {
    let lines = content.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let mut flawed: u64 = 0;
    let mut mounts: Vec<Mount> = Vec::new();
    for line in lines {
        match parse(line) {
            Some(mount) => mounts.push(mount),
            None => flawed += 1,
        }
    }
    let uppers: Vec<Option<DevId>> = mounts.iter().map(|mount| upper_dev(mount, &mounts)).collect();
    for (mount, upper_dev) in mounts.iter_mut().zip(uppers) {
        if let Some(overlay) = &mut mount.overlay {
            overlay.upper_dev = upper_dev;
        }
    }
    (mounts, flawed)
}

/// Notices overlays that are mounted later, on a filesystem that carried none before: a container that starts after the first
/// sample and is gone before the last one.
#[derive(Debug)]
pub(crate) struct LaterOverlays {
    file: HostFile,
    facts: HostFacts,
    /// Whether the mounts are to be read at the next look: at the first one, and after a change that could not be read.
    is_due: bool,
    /// How often it may tell the facts again.
    left: u8,
}

/// Most filesystems with a first overlay that one recording tells: each costs all of the facts.
const TOLD_MAX: u8 = 16;

impl LaterOverlays {
    /// Begins with the mounts of `facts`. `None` where mountinfo cannot be read, which the probe has said.
    pub(crate) fn after(root: &HostRoot, facts: &HostFacts) -> Option<LaterOverlays> {
        let file = PATHS.iter().find_map(|path| root.open_file(path).ok())?;
        Some(LaterOverlays { file, facts: facts.clone(), is_due: true, left: TOLD_MAX })
    }

    /// The facts with the mounts of now, if one of them is such an overlay. Asks the kernel whether mounts have changed, and reads
    /// them only then.
    pub(crate) fn look(&mut self) -> Option<HostFacts> {
        self.is_due |= self.file.has_changed();
        if !self.is_due || self.left == 0 {
            return None;
        }
        let mut content = Vec::new();
        self.file.read(&mut content, LARGE).ok()?;
        self.is_due = false;
        let facts = self.with(parsed(&content).0)?;
        self.left -= 1;
        Some(facts)
    }

    fn with(&mut self, mounts: Vec<Mount>) -> Option<HostFacts> {
        let is_known = |upper: &DevId| uppers(&self.facts.mounts).any(|known| known == *upper);
        if uppers(&mounts).all(|upper| is_known(&upper)) {
            return None;
        }
        // An overlay that is gone may have been unmounted in the recording.
        let now: Vec<DevId> = uppers(&mounts).collect();
        let is_last = |mount: &&Mount| {
            mount.overlay.as_ref().is_some_and(|it| it.upper_dev.is_some_and(|dev| !now.contains(&dev)))
        };
        let gone: Vec<Mount> = self.facts.mounts.iter().filter(is_last).cloned().collect();
        self.facts.mounts = mounts.into_iter().chain(gone).collect();
        Some(self.facts.clone())
    }
}

/// The filesystems that carry overlays.
fn uppers(mounts: &[Mount]) -> impl Iterator<Item = DevId> {
    mounts.iter().filter_map(|mount| mount.overlay.as_ref()?.upper_dev)
}

/// One line of mountinfo: id, parent, major:minor, root, mount point, options, optional fields, `-`,
/// type, source, super options.
fn parse(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|&byte| byte == b' ');
    let (_id, _parent) = (fields.next()?, fields.next()?);
    let dev = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let (root, mount_point, options) = (fields.next()?, fields.next()?, fields.next()?);
    fields.find(|field| *field == b"-")?;
    let (fs_type, source, super_options) = (fields.next()?, fields.next()?, fields.next()?);
    let fs_type = Name::new(unescape(fs_type)).to_string();
    let overlay = (fs_type == "overlay").then(|| overlay(super_options));
    Some(Mount {
        dev,
        root: Name::new(unescape(root)),
        mount_point: Name::new(unescape(mount_point)),
        fs_type: fs_type.into(),
        source: Name::new(unescape(source)),
        options: Name::new(unescape(options)),
        super_options: Name::new(unescape(super_options)),
        overlay,
    })
}

/// Parses the options of an overlay. They are split before they are unescaped, because a directory's name may
/// hold a comma: overlayfs writes it as `\,`, and mountinfo writes that backslash as `\134`.
fn overlay(super_options: &[u8]) -> Overlay {
    let mut overlay = Overlay { upperdir: None, upper_dev: None, volatile: false };
    for option in split_options(&unescape(super_options)) {
        if let Some(upperdir) = option.strip_prefix(b"upperdir=") {
            overlay.upperdir = Some(Name::new(upperdir));
        }
        overlay.volatile |= option == b"volatile" || option == b"fsync=volatile";
    }
    overlay
}

/// Splits at commas without a backslash before them, and removes the backslashes before other commas.
fn split_options(options: &[u8]) -> Vec<Vec<u8>> {
    let mut found = vec![Vec::new()];
    let mut bytes = options.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b',' => found.push(Vec::new()),
            b'\\' => {
                if let (Some(option), Some(next)) = (found.last_mut(), bytes.next()) {
                    option.push(next);
                }
            }
            byte => {
                if let Some(option) = found.last_mut() {
                    option.push(byte);
                }
            }
        }
    }
    found
}

/// Decodes octal escapes such as `\040`.
fn unescape(field: &[u8]) -> Vec<u8> {
    unescaped(field, |rest| match rest {
        [b'\\', digits @ ..] => Some((octal(digits.first_chunk()?)?, 4)),
        _ => None,
    })
}

fn octal(digits: &[u8; 3]) -> Option<u8> {
    let number = digits.iter().try_fold(0, |sum, digit| Some(sum << 3 | char::from(*digit).to_digit(8)?));
    u8::try_from(number?).ok()
}

/// Returns the superblock that holds an overlay's upper directory: that of the mount with the longest mount point on
/// its path. Of several mounts in the same place the last one counts.
fn upper_dev(mount: &Mount, mounts: &[Mount]) -> Option<DevId> {
    let upperdir = mount.overlay.as_ref()?.upperdir.as_ref()?.as_bytes();
    let leads_to = |point: &[u8]| {
        let point = point.strip_suffix(b"/").unwrap_or(point);
        upperdir.strip_prefix(point).is_some_and(|rest| rest.first() == Some(&b'/'))
    };
    mounts
        .iter()
        .filter(|other| leads_to(other.mount_point.as_bytes()))
        .max_by_key(|other| other.mount_point.as_bytes().len())
        // An overlay cannot hold the upper directory of another. Inside a container the path is that of the host.
        .filter(|holder| holder.fs_type != "overlay")
        .map(|holder| holder.dev)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVERLAY: &str = "35 31 0:27 / /srv/merged rw,relatime shared:1 - overlay overlay \
                           rw,lowerdir=/srv/lower,upperdir=/srv/upper,workdir=/srv/work,uuid=on";

    #[test]
    fn a_line_is_read_with_optional_fields_and_escapes() {
        let mount =
            parse(b"36 1 7:0 / /mnt/with\\040space rw shared:2 master:1 - ext4 /dev/loop0 rw,data=journal").unwrap();
        assert_eq!(mount.dev, DevId { major: 7, minor: 0 });
        assert_eq!(mount.mount_point, Name::from("/mnt/with space"));
        assert!(mount.has_option("data=journal"));
    }

    #[test]
    fn the_first_overlay_on_a_filesystem_is_told_once() {
        const ROOT: &str = "20 1 8:1 / / rw - ext4 /dev/sda1 rw";
        let mounts = |lines: &[&str]| parsed(lines.join("\n").as_bytes()).0;
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("proc/self")).unwrap();
        std::fs::write(tree.path().join("proc/self/mountinfo"), ROOT).unwrap();
        let facts = HostFacts { mounts: mounts(&[ROOT]), ..HostFacts::default() };
        let mut later = LaterOverlays::after(&HostRoot::at(tree.path()).unwrap(), &facts).expect("a mountinfo");
        assert_eq!((later.look(), later.look()), (None, None), "a file of a captured tree does not change");
        assert_eq!(later.with(mounts(&[ROOT])), None);
        let told = later.with(mounts(&[ROOT, OVERLAY])).expect("an overlay");
        assert_eq!(uppers(&told.mounts).collect::<Vec<_>>(), [DevId { major: 8, minor: 1 }]);
        // It is unmounted, and another one comes on the same filesystem.
        let another = OVERLAY.replace("/srv/merged", "/srv/other");
        assert_eq!((later.with(mounts(&[ROOT])), later.with(mounts(&[ROOT, &another]))), (None, None));
        // One on another filesystem: the first, which is gone, stays known.
        let disk = "21 1 8:17 / /data rw - ext4 /dev/sdb1 rw";
        let on_disk = OVERLAY.replace("upperdir=/srv", "upperdir=/data");
        let told = later.with(mounts(&[ROOT, disk, &on_disk])).expect("an overlay");
        assert_eq!(uppers(&told.mounts).count(), 2);
    }

    #[test]
    fn an_overlay_says_where_its_writes_go() {
        let overlay = parse(OVERLAY.as_bytes()).unwrap().overlay.unwrap();
        assert_eq!(overlay.upperdir, Some(Name::from("/srv/upper")));
        assert!(!overlay.volatile);
        let volatile = format!("{OVERLAY},volatile");
        assert!(parse(volatile.as_bytes()).unwrap().overlay.unwrap().volatile);
    }

    #[test]
    fn a_comma_in_a_directory_name_does_not_end_it() {
        let line = b"1 1 0:9 / /m rw - overlay o rw,upperdir=/a\\134,volatile,workdir=/w";
        let overlay = parse(line).unwrap().overlay.unwrap();
        assert_eq!(overlay.upperdir, Some(Name::from("/a,volatile")));
        assert!(!overlay.volatile);
    }

    #[test]
    fn the_upper_superblock_is_that_of_the_longest_mount_point() {
        let lines = [
            "1 1 254:0 / / rw - ext4 /dev/vda rw",
            "2 1 254:16 / /srv rw - xfs /dev/vdb rw",
            "3 1 254:32 / /srv/up rw - xfs /dev/vdc rw",
            OVERLAY,
        ];
        let mounts: Vec<Mount> = lines.iter().map(|line| parse(line.as_bytes()).unwrap()).collect();
        assert_eq!(upper_dev(&mounts[3], &mounts), Some(DevId { major: 254, minor: 16 }));
    }

    #[test]
    fn lines_that_are_none_are_refused() {
        for line in ["", "1 2 3", "1 1 x:y / / rw - ext4 a rw", "1 1 8:0 / / rw ext4 a rw"] {
            assert_eq!(parse(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn any_bytes_are_survived() {
        bolero::check!().for_each(|bytes: &[u8]| {
            let _ = parse(bytes);
        });
    }
}
