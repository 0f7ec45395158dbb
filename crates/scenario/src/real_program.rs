// SPDX-License-Identifier: MIT OR Apache-2.0
//! A real program of a scenario: what it is made of, how it is started, and how it ends. The lab runs it; the simulator has none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Shell that runs scripts.
pub const SHELL: &str = "dash";
/// Packages that every script has: the shell and the programs that most scripts call.
const SCRIPT_PACKAGES: &[&str] = &[SHELL, "coreutils"];

/// A real program from packages of a distribution: a server that runs until the workload's duration is over, or a program
/// that ends by itself. `{i}` and `{j}` are filled in in its arguments, environment, files and their text, as they are in
/// steps. A script has them as the variables `i` and `j`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RealProgram {
    /// Package of the machine's own distribution that has it; it and the libraries it depends on are given to
    /// the guest, nothing of it is installed or configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// Further packages, such as the programs that it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<String>,
    /// Program and arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Or: a shell script. It ends at the first command that fails. It has dash and coreutils without naming them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Files written before it starts, by path. They belong to its user.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// A path that exists once it is ready, e.g. its socket; tasks start after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
    /// Exit code of a program that ends by itself, which starts at the task's `start` and is the task's end. Another
    /// code, and a program that still runs when the workload's duration is over, are failures. Without it the program
    /// is a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
    /// User that it runs as; root where missing. The lab creates the user. Directories of the setup's `mkdir` steps
    /// belong to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

impl RealProgram {
    /// All packages that it needs.
    pub fn all_packages(&self) -> impl Iterator<Item = &str> {
        let of_script = self.script.iter().flat_map(|_| SCRIPT_PACKAGES.iter().copied());
        self.package.iter().chain(&self.packages).map(String::as_str).chain(of_script)
    }

    /// Program and arguments; those of the shell for a script.
    pub fn arguments(&self) -> Vec<String> {
        match &self.script {
            Some(script) => [SHELL, "-e", "-c", script].map(str::to_owned).to_vec(),
            None => self.command.clone(),
        }
    }

    /// The program with the numbers of a copy filled in by a function: in arguments, environment, files and their text.
    pub(super) fn numbered(&self, numbers: &[(&str, u32)], fill: impl Fn(&String) -> String) -> RealProgram {
        let filled = |texts: &BTreeMap<String, String>| -> BTreeMap<String, String> {
            texts.iter().map(|(name, value)| (fill(name), fill(value))).collect()
        };
        let mut env: BTreeMap<String, String> =
            self.env.iter().map(|(name, value)| (name.clone(), fill(value))).collect();
        if self.script.is_some() {
            for (name, number) in numbers {
                env.entry((*name).to_owned()).or_insert_with(|| number.to_string());
            }
        }
        RealProgram {
            command: self.command.iter().map(&fill).collect(),
            env,
            files: filled(&self.files),
            ready: self.ready.as_ref().map(&fill),
            ..self.clone()
        }
    }
}
