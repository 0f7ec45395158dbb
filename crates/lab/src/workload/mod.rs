// SPDX-License-Identifier: MIT OR Apache-2.0
//! The workload of a scenario with real system calls: what the guest's init runs, and what is tested on
//! the build machine in a temporary directory.
//!
//! Memory is charged to a process's cgroup, so every copy of a task is a process of its own: this program
//! again, as a worker. [`Director`] starts the workers, puts them into their cgroups, lets them meet, and
//! turns what they report into events of the recording. A [`worker`] runs one task. Neither makes the
//! machine: mounts and cgroups are there before, except where a step asks for them.

mod client;
mod clock;
mod director;
mod error;
mod family;
mod files;
mod flights;
mod io;
mod mapping;
mod measure;
mod meeting;
mod process;
mod program;
mod runner;
mod stop;
mod system;
mod wire;
mod worker;

pub use clock::now;
pub use director::{Directed, Director, Hire, Worker};
pub use error::{Failure, StepError};
pub use family::inherit_orphans;
pub(crate) use mapping::Anonymous;
pub use meeting::{Alone, Meeting};
pub use runner::{Run, run_task};
pub use stop::Stop;
pub use system::{Place, limit_writes, mount, mount_arguments, move_process, set_limits, set_sysctls, sysctl_path};
pub use worker::worker;
