// SPDX-License-Identifier: MIT OR Apache-2.0
//! Laptop mode: some seconds after a disk served its last request, all dirty data is written to it, as it is still
//! spinning then. Mirrors laptop_io_completion, laptop_mode_timer_fn and laptop_sync_completion of
//! mm/page-writeback.c, which existed until 7.0 (`Algorithm::laptop_mode`). In this mode a dirtier wakes no flusher
//! for background work: see `balance_dirty_pages.rs`.

use crate::arena::{BdiId, BlockId};
use crate::engine::Due;
use crate::wb::Reason;
use crate::world::World;

impl World {
    /// Handles a completed request of a device (`blk_mq_free_request`). A mirror has no requests of its own: only
    /// its members have, and no data is dirty on those.
    #[cold]
    pub(crate) fn laptop_io_completion(&mut self, device: BlockId) {
        let block = &self.blocks[device];
        let Some(bdi) = block.bdi.filter(|_| self.behaviour.arithmetic.laptop_mode && block.mirrors.is_empty()) else {
            return;
        };
        let at = self.timer(self.settings.laptop_mode.saturating_mul(1_000_000_000));
        self.queue.set_alarm(&mut self.bdis[bdi].laptop_mode_wb_timer, at, Due::LaptopMode(bdi));
    }

    /// Handles the timer of a disk that has been idle for the laptop mode delay.
    pub(crate) fn laptop_mode_timer(&mut self, bdi: BdiId) {
        for at in 0..self.bdis[bdi].wbs.len() {
            let wb = self.bdis[bdi].wbs[at];
            self.wb_start_writeback(wb, Reason::LaptopTimer);
        }
    }

    /// Stops all timers after a sync of everything, which wrote all that they would write.
    pub(crate) fn laptop_sync_completion(&mut self) {
        for bdi in self.bdis.ids() {
            self.bdis[bdi].laptop_mode_wb_timer.stop();
        }
    }
}
