// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel by version. `changes` is the one table of what changed in which release; [`Behaviour`] is what it makes
//! of one kernel, and all code branches on its fields. The other files are the kernel's own arithmetic: integers, with
//! the kernel's rounding, named after the kernel functions they follow (mm/page-writeback.c, lib/flex_proportions.c,
//! fs/fs-writeback.c). Pure, and defined for every input. Written from documented behaviour and traced rows.

mod algorithm;
mod behaviour;
mod cgroup_writeback;
mod change;
mod changes;
mod constants;
mod difference;
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
mod planned;
mod position_ratio;
mod product;
mod release;
mod wb_calc_thresh;
mod wb_dirty;
mod wb_over_bg_thresh;
mod write_bandwidth;
mod writeback_chunk;

pub use algorithm::{Algorithm, FLUSH_TIME, MdtcAvail, MemcgStats, RatioUnit};
pub use behaviour::{
    Behaviour, CgroupFilesystems, Files, Flusher, Folios, IoendSize, Ioends, Journals, Knobs, Memcg, Stacks, Switching,
    SyncPath, Timers, WbtPresence,
};
pub use cgroup_writeback::{CgroupWriteback, WhyNot, cgroup_writeback};
pub use change::{
    Area, Backport, Change, Commit, OLDEST_KNOWN, OLDEST_MODELLED, Presence, Weight, change, changes, is_known,
    is_modelled, is_newer_than_modelled, newest_modelled,
};
pub use constants::{Build, FRAC, RATELIMIT_ONE};
pub use difference::{Difference, Uncertain, difference, instead};
pub use dirty_limit::update_dirty_limit;
pub use dirty_poll_interval::dirty_poll_interval;
pub use dirty_ratelimit::{DirtyRatelimit, RatelimitSample, task_ratelimit};
pub use dirty_throttle_control::DirtyThrottleControl;
pub use domain_dirty_limits::{
    DirtyTunables, DomainLimits, TaskClass, domain_dirty_limits, freerun_ceiling, memcg_units, percent_units,
    uncorrected_limits,
};
pub use floodline_record::version::{KernelVersion, NotAVersion, Series};
pub use foreign_dirty::{FOREIGN_SLOTS, ForeignDirty, ForeignSlot, foreign_flush_pages};
pub use foreign_history::{ForeignHistory, ForeignOutcome, ForeignTally, MemcgId};
pub use fprop::{FpropGlobal, FpropLocal, max_frac};
pub use global_dirtyable_memory::{DirtyableMemory, ZoneReserve, global_dirtyable_memory, totalreserve_pages};
pub use large_folio::{FolioMaker, LargestFolio, largest_folio};
pub use mdtc_calc_avail::{MdtcAvailInput, mdtc_calc_avail};
pub use pause::{Pause, PauseArithmetic};
pub use percpu_counter::{Cpu, PercpuCounter};
pub use planned::{Planned, newest_of};
pub use position_ratio::wb_position_ratio;
pub use release::{Certainty, NotARelease, Release, Vendor};
pub use wb_calc_thresh::{WbShare, wb_bg_thresh, wb_calc_thresh, wb_min_max_ratio};
pub use wb_dirty::wb_dirty_is_exact;
pub use wb_over_bg_thresh::{BackgroundDomain, wb_over_bg_thresh, wb_reclaimable_is_exact};
pub use write_bandwidth::WriteBandwidth;
pub use writeback_chunk::{CHUNK_UNLIMITED, ChunkMode, writeback_chunk_size};
