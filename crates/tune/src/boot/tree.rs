// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files below the folders of `sysctl.d`: a name in a stronger folder hides it in all weaker ones, a link to
//! `/dev/null` hides it everywhere, and names decide the order.

use crate::host::Host;
use std::collections::BTreeMap;
use std::path::Path;

/// A folder of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Folder {
    /// `/etc/sysctl.d`.
    Etc,
    /// `/run/sysctl.d`.
    Run,
    /// `/usr/local/lib/sysctl.d`.
    Local,
    /// `/usr/lib/sysctl.d`.
    Usr,
    /// `/lib/sysctl.d`, where it is another folder than that below `/usr`.
    Lib,
}

impl Folder {
    /// All, the strongest first.
    pub const ALL: [Folder; 5] = [Folder::Etc, Folder::Run, Folder::Local, Folder::Usr, Folder::Lib];

    /// Path below the root.
    pub fn path(self) -> &'static str {
        match self {
            Folder::Etc => "etc/sysctl.d",
            Folder::Run => "run/sysctl.d",
            Folder::Local => "usr/local/lib/sysctl.d",
            Folder::Usr => "usr/lib/sysctl.d",
            Folder::Lib => "lib/sysctl.d",
        }
    }
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its folder; `None` for `/etc/sysctl.conf`.
    pub folder: Option<Folder>,
    /// Its name.
    pub name: String,
    /// Its text; `None` for a link to `/dev/null`.
    pub text: Option<String>,
}

impl File {
    /// Path on the host.
    pub fn path(&self) -> String {
        match self.folder {
            Some(folder) => format!("/{}/{}", folder.path(), self.name),
            None => format!("/etc/{}", self.name),
        }
    }
}

/// Every file of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// In any order.
    pub files: Vec<File>,
}

impl Tree {
    /// Reads the files of a host. A file that cannot be read counts as empty, as it does at boot.
    pub fn read(host: &Host) -> Tree {
        let mut tree = Tree::default();
        let real = |folder: Folder| std::fs::canonicalize(host.path(folder.path())).ok();
        for folder in Folder::ALL {
            if folder == Folder::Lib && real(Folder::Lib) == real(Folder::Usr) {
                continue;
            }
            let Ok(entries) = std::fs::read_dir(host.path(folder.path())) else { continue };
            for entry in entries.flatten() {
                let Ok(name) = entry.file_name().into_string() else { continue };
                if name.ends_with(".conf") && !entry.path().is_dir() {
                    let is_mask = std::fs::read_link(entry.path()).is_ok_and(|to| to == Path::new("/dev/null"));
                    let text = (!is_mask).then(|| host.read(&format!("{}/{name}", folder.path())).unwrap_or_default());
                    tree.files.push(File { folder: Some(folder), name, text });
                }
            }
        }
        if let Ok(text) = host.read("etc/sysctl.conf") {
            tree.files.push(File { folder: None, name: "sysctl.conf".to_owned(), text: Some(text) });
        }
        tree
    }

    /// The tree with the file of a confirmed change.
    #[must_use]
    pub fn with(&self, path: &str, text: &str) -> Tree {
        let mut tree = self.clone();
        let name = path.rsplit('/').next().unwrap_or_default();
        tree.files.retain(|file| file.path().trim_start_matches('/') != path);
        tree.files.push(File { folder: Some(Folder::Etc), name: name.to_owned(), text: Some(text.to_owned()) });
        tree
    }

    /// Files of these folders, given from the strongest, in the order of their names. Masked ones are left out.
    pub(super) fn ordered(&self, folders: &[Folder]) -> Vec<&File> {
        let mut by_name: BTreeMap<&str, &File> = BTreeMap::new();
        for folder in folders {
            for file in self.files.iter().filter(|file| file.folder == Some(*folder)) {
                by_name.entry(&file.name).or_insert(file);
            }
        }
        by_name.into_values().filter(|file| file.text.is_some()).collect()
    }

    /// `/etc/sysctl.conf`.
    pub(super) fn conf(&self) -> Option<&File> {
        self.files.iter().find(|file| file.folder.is_none())
    }
}
