// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's own arithmetic, by version: integers, with the kernel's rounding. Files are named
//! after the kernel functions they follow (mm/page-writeback.c, lib/flex_proportions.c,
//! fs/fs-writeback.c); `vX_Y.rs` holds what changed in that release. Pure, allocation-free, and
//! defined for every input. Written from documented behaviour and traced rows.

mod algorithm;
mod cgroup_writeback;
mod constants;
mod dirty_limit;
mod dirty_poll_interval;
mod dirty_ratelimit;
mod dirty_throttle_control;
mod domain_dirty_limits;
mod foreign_dirty;
mod foreign_history;
mod fprop;
mod global_dirtyable_memory;
#[cfg(test)]
mod golden;
mod large_folio;
mod mdtc_calc_avail;
mod pause;
mod percpu_counter;
mod position_ratio;
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
mod wb_calc_thresh;
mod wb_dirty;
mod wb_over_bg_thresh;
mod write_bandwidth;
mod writeback_chunk;

pub use algorithm::{Algorithm, MdtcAvail, MemcgStats, RatioUnit};
pub use cgroup_writeback::{CgroupWriteback, WhyNot, cgroup_writeback};
pub use constants::{Build, FRAC, RATELIMIT_ONE};
pub use dirty_limit::update_dirty_limit;
pub use dirty_poll_interval::dirty_poll_interval;
pub use dirty_ratelimit::{DirtyRatelimit, RatelimitSample, task_ratelimit};
pub use dirty_throttle_control::DirtyThrottleControl;
pub use domain_dirty_limits::{
    DirtyTunables, DomainLimits, TaskClass, domain_dirty_limits, freerun_ceiling, memcg_units, percent_units,
    uncorrected_limits,
};
pub use floodline_record::version::{KernelVersion, NotAVersion};
pub use foreign_dirty::{FOREIGN_SLOTS, ForeignDirty, ForeignSlot, foreign_flush_pages};
pub use foreign_history::{ForeignHistory, ForeignOutcome, ForeignTally, MemcgId};
pub use fprop::{FpropGlobal, FpropLocal, max_frac};
pub use global_dirtyable_memory::{DirtyableMemory, ZoneReserve, global_dirtyable_memory, totalreserve_pages};
pub use large_folio::{FolioMaker, LargestFolio, largest_folio};
pub use mdtc_calc_avail::{MdtcAvailInput, mdtc_calc_avail};
pub use pause::{Pause, PauseArithmetic};
pub use percpu_counter::{Cpu, PercpuCounter};
pub use position_ratio::wb_position_ratio;
pub use wb_calc_thresh::{WbShare, wb_bg_thresh, wb_calc_thresh, wb_min_max_ratio};
pub use wb_dirty::wb_dirty_is_exact;
pub use wb_over_bg_thresh::{BackgroundDomain, wb_over_bg_thresh};
pub use write_bandwidth::WriteBandwidth;
pub use writeback_chunk::{CHUNK_UNLIMITED, ChunkMode, writeback_chunk_size};
