// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's own arithmetic, by version: integers, with the kernel's rounding. Files are named
//! after the kernel functions they follow (mm/page-writeback.c, lib/flex_proportions.c,
//! fs/fs-writeback.c); `vX_Y.rs` holds what changed in that release. Pure, allocation-free, and
//! defined for every input. Written from documented behaviour and traced rows.

mod algorithm;
mod constants;
mod domain_dirty_limits;
mod global_dirtyable_memory;
#[cfg(test)]
mod golden;
mod mdtc_calc_avail;
mod product;
mod v3_12;
mod v3_2;
mod v4_2;
mod v4_4;
mod v4_8;
mod v5_15;
mod v5_16;
mod v5_8;
mod v6_0;
mod v6_10;
mod v6_14;
mod v6_2;
mod v6_5;
mod v6_9;
mod v7_0;
mod v7_1;
mod version;
mod wb_calc_thresh;

pub use algorithm::{Algorithm, MdtcAvail, MemcgStats, RatioUnit};
pub use constants::{Build, FRAC, RATELIMIT_ONE};
pub use domain_dirty_limits::{DirtyTunables, DomainLimits, TaskClass, domain_dirty_limits, freerun_ceiling};
pub(crate) use domain_dirty_limits::{memcg_units, percent_units, uncorrected_limits};
pub use global_dirtyable_memory::{DirtyableMemory, ZoneReserve, global_dirtyable_memory, totalreserve_pages};
pub use mdtc_calc_avail::{MdtcAvailInput, mdtc_calc_avail};
pub use version::{KernelVersion, NotAVersion};
pub use wb_calc_thresh::{WbShare, wb_bg_thresh, wb_calc_thresh, wb_min_max_ratio};
