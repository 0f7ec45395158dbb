// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Flusher ledger: rounds by wb and reason, with pages and time. A round lasts from writeback_start to the next
 * writeback_written of the same worker. Its pages are the decrease of the work's nr_pages. Reads the arguments of the
 * tracepoints (include/trace/events/writeback.h) from 5.10 to 7.2.
 */
#include "floodline.bpf.h"

/* From fs/fs-writeback.c. */
enum writeback_sync_modes {
	WB_SYNC_NONE,
};

enum wb_reason {
	WB_REASON_BACKGROUND,
};

struct wb_writeback_work {
	long nr_pages;
	enum writeback_sync_modes sync_mode;
	enum wb_reason reason;
} KERNEL_TYPE;

/* A round in progress, by worker. */
struct round {
	__u64 started_ns;
	__s64 nr_pages;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct round);
} rounds SEC(".maps");

/* A wb has one worker at a time: no update needs to be atomic. */
struct flusher_key {
	__u32 epoch;
	__u32 reason;
	__u64 wb_cgroup_ino;
	char bdi[BDI_NAME_LEN];
};

struct flusher_entry {
	__u64 rounds;
	__u64 sync_rounds;
	__u64 pages;
	__u64 busy_ns;
	__u64 busy_ns_max;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct flusher_key);
	__type(value, struct flusher_entry);
} flushes SEC(".maps");

static __always_inline int started(struct wb_writeback_work *work)
{
	__u32 worker = (__u32)bpf_get_current_pid_tgid();
	struct round round = {};

	round.started_ns = bpf_ktime_get_ns();
	round.nr_pages = BPF_CORE_READ(work, nr_pages);
	if (bpf_map_update_elem(&rounds, &worker, &round, 0))
		return drop();
	return 0;
}

static __always_inline int written(struct bdi_writeback *wb, struct wb_writeback_work *work)
{
	__u32 worker = (__u32)bpf_get_current_pid_tgid();
	struct flusher_entry *sum, empty = {};
	struct control *now = begin();
	struct flusher_key key = {};
	struct round *round;
	__s64 wrote;
	__u64 busy;

	round = bpf_map_lookup_elem(&rounds, &worker);
	/* Skip a round that began before this program was attached. */
	if (!now || !round)
		return 0;
	wrote = round->nr_pages - BPF_CORE_READ(work, nr_pages);
	busy = bpf_ktime_get_ns() - round->started_ns;
	bpf_map_delete_elem(&rounds, &worker);

	key.epoch = now->epoch;
	key.reason = BPF_CORE_READ(work, reason);
	key.wb_cgroup_ino = cgroup_of(wb);
	name_of(wb, key.bdi);
	sum = entry(&flushes, &key, &empty);
	if (!sum)
		return drop();
	sum->rounds += 1;
	if (BPF_CORE_READ(work, sync_mode))
		sum->sync_rounds += 1;
	if (wrote > 0)
		sum->pages += wrote;
	sum->busy_ns += busy;
	raise_to(&sum->busy_ns_max, busy);
	return 0;
}

SEC("raw_tp/writeback_start")
int on_writeback_start(__u64 *arguments)
{
	RUN(started((struct wb_writeback_work *)arguments[1]));
}

SEC("raw_tp/writeback_written")
int on_writeback_written(__u64 *arguments)
{
	RUN(written((struct bdi_writeback *)arguments[0], (struct wb_writeback_work *)arguments[1]));
}
