// SPDX-License-Identifier: MIT OR Apache-2.0
//! What boot will set: a simulation of every program that applies `sysctl.d`. `line` reads the lines, `tree` chooses and
//! orders the files, `applier` has the rules in which the programs differ, `pair` does what the kernel does with the
//! writes. Pure but for [`Tree::read`].

mod applier;
mod line;
mod pair;
mod tree;

pub use applier::{Applier, Assignment};
pub use pair::Boot;
pub use tree::{File, Folder, Tree};

use crate::host::Host;

/// What one program sets at boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The program.
    pub applier: Applier,
    /// Values after its last write.
    pub boot: Boot,
}

/// Outcome of every program that may apply settings on a host.
pub fn outcomes(host: &Host, tree: &Tree) -> Vec<Outcome> {
    let present = |applier: &Applier| applier.programs().iter().any(|program| host.path(program).exists());
    let mut appliers: Vec<Applier> = Applier::ALL.into_iter().filter(present).collect();
    if !appliers.iter().any(|applier| *applier != Applier::Tuned) {
        // Some program will apply the files, and which one is not known.
        appliers.extend([Applier::Systemd, Applier::Procps]);
    }
    appliers.into_iter().map(|applier| Outcome { applier, boot: Boot::after(&applier.assignments(tree)) }).collect()
}

#[cfg(test)]
mod tests;
