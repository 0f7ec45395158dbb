// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Throttle ledger: every pause of balance_dirty_pages, added up by task, cgroup, wb and domain. The event
 * comes before the sleep and says how long it will be; the longest one keeps the numbers that caused it.
 * Mirrors the record of include/trace/events/writeback.h from 5.10 to 7.2: `wb_setpoint` and `wb_dirty` were
 * called `bdi_setpoint` and `bdi_dirty` until some release between 6.12 and 6.18.
 */
#include "floodline.bpf.h"

struct trace_event_raw_balance_dirty_pages {
	char bdi[BDI_NAME_LEN];
	unsigned long limit;
	unsigned long setpoint;
	unsigned long dirty;
	unsigned long wb_setpoint;
	unsigned long wb_dirty;
	unsigned long dirty_ratelimit;
	unsigned long task_ratelimit;
	long pause;
	unsigned long cgroup_ino;
} TRACEPOINT_RECORD;

struct trace_event_raw_balance_dirty_pages___bdi {
	unsigned long bdi_setpoint;
	unsigned long bdi_dirty;
} TRACEPOINT_RECORD;

enum domain { DOMAIN_UNKNOWN, DOMAIN_GLOBAL, DOMAIN_MEMCG };

/* Only its own task changes an entry, so that nothing here needs to be atomic. */
struct throttle_key {
	__u32 epoch;
	__u32 domain;
	__u64 wb_cgroup_ino;
	__u64 task_cgroup_ino;
	__u32 pid;
	__u32 tgid;
	char bdi[BDI_NAME_LEN];
};

struct throttle_entry {
	__u64 pauses;
	__u64 pause_ms;
	/* Events without a sleep: the task was behind its time already. */
	__u64 unpaused;
	/* The longest pause and what was in its record. */
	__u64 pause_ms_max;
	__u64 limit_pages;
	__u64 setpoint_pages;
	__u64 dirty_pages;
	__u64 wb_setpoint_pages;
	__u64 wb_dirty_pages;
	__u64 dirty_ratelimit_kib;
	__u64 task_ratelimit_kib;
	char comm[TASK_COMM_LEN];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct throttle_key);
	__type(value, struct throttle_entry);
} pauses SEC(".maps");

/* The root cgroup has no domain of its own. Elsewhere the record does not say which domain was chosen, but
 * its freerun ceiling, 2 * setpoint - limit, is that domain's on every kernel, whichever limit is printed. */
static __always_inline enum domain domain_of(const struct control *now, __u64 cgroup_ino, __u64 limit,
					     __u64 setpoint)
{
	__u64 freerun = 2 * setpoint - limit;

	if (cgroup_ino <= 1)
		return DOMAIN_GLOBAL;
	if (!now->machine_freerun_max)
		return DOMAIN_UNKNOWN;
	if (freerun >= now->machine_freerun_min && freerun <= now->machine_freerun_max)
		return DOMAIN_GLOBAL;
	return DOMAIN_MEMCG;
}

SEC("tp/writeback/balance_dirty_pages")
int on_balance_dirty_pages(struct trace_event_raw_balance_dirty_pages *event)
{
	struct trace_event_raw_balance_dirty_pages___bdi *before = (void *)event;
	struct control *now = begin();
	__u64 task = bpf_get_current_pid_tgid();
	struct throttle_entry *sum, empty = {};
	struct throttle_key key = {};
	__s64 pause = event->pause;

	if (!now)
		return 0;
	key.epoch = now->epoch;
	key.wb_cgroup_ino = event->cgroup_ino;
	key.task_cgroup_ino = bpf_get_current_cgroup_id();
	key.pid = (__u32)task;
	key.tgid = task >> 32;
	key.domain = domain_of(now, key.wb_cgroup_ino, event->limit, event->setpoint);
	bpf_core_read(&key.bdi, sizeof(key.bdi), &event->bdi);

	sum = entry(&pauses, &key, &empty);
	if (!sum)
		return drop();
	if (!sum->pauses && !sum->unpaused)
		bpf_get_current_comm(&sum->comm, sizeof(sum->comm));
	if (pause <= 0) {
		sum->unpaused += 1;
		return 0;
	}
	sum->pauses += 1;
	sum->pause_ms += pause;
	if ((__u64)pause <= sum->pause_ms_max)
		return 0;
	sum->pause_ms_max = pause;
	sum->limit_pages = event->limit;
	sum->setpoint_pages = event->setpoint;
	sum->dirty_pages = event->dirty;
	/* By helper: of two loads of the context the compiler would make one with a variable offset, which the
	 * verifier refuses. */
	if (bpf_core_field_exists(event->wb_dirty)) {
		bpf_core_read(&sum->wb_setpoint_pages, sizeof(__u64), &event->wb_setpoint);
		bpf_core_read(&sum->wb_dirty_pages, sizeof(__u64), &event->wb_dirty);
	} else {
		bpf_core_read(&sum->wb_setpoint_pages, sizeof(__u64), &before->bdi_setpoint);
		bpf_core_read(&sum->wb_dirty_pages, sizeof(__u64), &before->bdi_dirty);
	}
	sum->dirty_ratelimit_kib = event->dirty_ratelimit;
	sum->task_ratelimit_kib = event->task_ratelimit;
	return 0;
}
