// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Throttle ledger: the pauses of balance_dirty_pages, added up by task, cgroup, wb and domain. The tracepoint comes
 * before the sleep and has its intended length. The entry keeps the numbers behind the longest pause. The actual sleep
 * is measured if programs may be attached to functions: it ends when io_schedule_timeout returns. The program reads the
 * arguments of the tracepoint, which needs only the right to load programs. It computes the setpoint and the pause in
 * milliseconds as the kernel's event record does (include/trace/events/writeback.h).
 */
#include "floodline.bpf.h"

/* Declared to detect the form of the arguments: since commit f1ab2831e2a4, v6.15, which renamed `bdi_dirty` to
 * `wb_dirty`, the numbers come in a structure. */
struct trace_event_raw_balance_dirty_pages {
	unsigned long wb_dirty;
} KERNEL_TYPE;

struct wb_domain {
	unsigned long dirty_limit;
} KERNEL_TYPE;

struct dirty_throttle_control {
	struct wb_domain *dom;
	unsigned long thresh;
	unsigned long bg_thresh;
	unsigned long dirty;
	unsigned long wb_thresh;
	unsigned long wb_dirty;
} KERNEL_TYPE;

/* The arguments of the tracepoint, in one form for all kernels. */
struct pause {
	__u64 thresh;
	__u64 bg_thresh;
	__u64 dirty;
	__u64 wb_thresh;
	__u64 wb_dirty;
	__u64 dirty_ratelimit;
	__u64 task_ratelimit;
	__s64 jiffies;
	/* The smoothed limit of the domain. Before 6.15 the arguments do not have it: then the domain's threshold,
	 * which the limit follows up at once and down within seconds. */
	__u64 limit;
};

enum domain { DOMAIN_UNKNOWN, DOMAIN_GLOBAL, DOMAIN_MEMCG };

/* Only the task itself changes its entry: no update needs to be atomic. */
struct throttle_key {
	__u32 epoch;
	enum domain domain;
	__u64 wb_cgroup_ino;
	__u64 task_cgroup_ino;
	__u32 pid;
	__u32 tgid;
	char bdi[BDI_NAME_LEN];
};

struct throttle_entry {
	__u64 pauses;
	__u64 pause_ms;
	/* Events without a sleep: the task had already used up the time of its pause. */
	__u64 unpaused;
	/* The longest pause and the numbers of its event. */
	__u64 pause_ms_max;
	__u64 limit_pages;
	__u64 setpoint_pages;
	__u64 dirty_pages;
	__u64 wb_setpoint_pages;
	__u64 wb_dirty_pages;
	__u64 dirty_ratelimit_kib;
	__u64 task_ratelimit_kib;
	/* From the event to the end of the sleep; 0 if no program is attached to io_schedule_timeout. */
	__u64 slept_ns;
	__u64 slept_ns_max;
	char comm[TASK_COMM_LEN];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct throttle_key);
	__type(value, struct throttle_entry);
} pauses SEC(".maps");

/* Pauses in progress, by thread. If no program is attached to their end, new pauses evict the oldest. */
struct asleep {
	__u64 since;
	struct throttle_key key;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct asleep);
} asleep SEC(".maps");

/* The tick rate (HZ), ticks per second; 0 until it is known. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} tick_rate SEC(".maps");

/* The kernel starts counting ticks five minutes before 32 bits overflow (INITIAL_JIFFIES). Of the tick rates that
 * kernels are built with, only one turns the ticks since then into the uptime. */
static __always_inline void consider(__u64 *best, __u64 *off, __u64 rate)
{
	__u64 up = bpf_ktime_get_ns() / 1000000, ticks = bpf_jiffies64() - (0x100000000ULL - 300 * rate);
	__u64 by_ticks = ticks * 1000 / rate, differs = by_ticks > up ? by_ticks - up : up - by_ticks;

	if (differs < *off) {
		*off = differs;
		*best = rate;
	}
}

static __always_inline __u64 hz(void)
{
	__u64 *known, best = 250, off = ~0ULL;
	__u32 zero = 0;

	known = bpf_map_lookup_elem(&tick_rate, &zero);
	if (!known)
		return best;
	if (!*known) {
		consider(&best, &off, 100);
		consider(&best, &off, 250);
		consider(&best, &off, 300);
		consider(&best, &off, 1000);
		*known = best;
	}
	return *known;
}

/* Returns the domain that was chosen. The root cgroup has no domain of its own. For other cgroups the arguments do not
 * name the domain, but they give its freerun ceiling. */
static __always_inline enum domain domain_of(const struct control *now, __u64 cgroup_ino, __u64 freerun)
{
	if (cgroup_ino <= 1)
		return DOMAIN_GLOBAL;
	if (!now->machine_freerun_max)
		return DOMAIN_UNKNOWN;
	if (freerun >= now->machine_freerun_min && freerun <= now->machine_freerun_max)
		return DOMAIN_GLOBAL;
	return DOMAIN_MEMCG;
}

static __always_inline void falls_asleep(const struct throttle_key *key)
{
	struct asleep pause = { .since = bpf_ktime_get_ns() };

	pause.key = *key;
	bpf_map_update_elem(&asleep, &key->pid, &pause, 0);
}

/* Ends a sleep. It counts in the interval in which it ends. */
static __always_inline int wakes_up(void)
{
	__u32 tid = bpf_get_current_pid_tgid();
	struct asleep *pause = bpf_map_lookup_elem(&asleep, &tid);
	struct throttle_entry *sum, empty = {};
	struct control *now = begin();
	struct throttle_key key;
	__u64 slept;

	/* Most callers of io_schedule_timeout sleep for other reasons. */
	if (!pause || !now)
		return 0;
	slept = bpf_ktime_get_ns() - pause->since;
	key = pause->key;
	key.epoch = now->epoch;
	bpf_map_delete_elem(&asleep, &tid);
	bpf_get_current_comm(&empty.comm, sizeof(empty.comm));
	sum = entry(&pauses, &key, &empty);
	if (!sum)
		return drop();
	sum->slept_ns += slept;
	raise_to(&sum->slept_ns_max, slept);
	return 0;
}

static __always_inline int paused(struct bdi_writeback *wb, const struct pause *pause)
{
	__u64 task = bpf_get_current_pid_tgid(), freerun = (pause->thresh + pause->bg_thresh) / 2, setpoint;
	struct throttle_entry *sum, empty = {};
	struct control *now = begin();
	struct throttle_key key = {};
	__u64 pause_ms;

	if (!now)
		return 0;
	key.epoch = now->epoch;
	key.wb_cgroup_ino = cgroup_of(wb);
	key.task_cgroup_ino = bpf_get_current_cgroup_id();
	key.pid = (__u32)task;
	key.tgid = task >> 32;
	key.domain = domain_of(now, key.wb_cgroup_ino, freerun);
	name_of(wb, key.bdi);

	sum = entry(&pauses, &key, &empty);
	if (!sum)
		return drop();
	if (!sum->pauses && !sum->unpaused)
		bpf_get_current_comm(&sum->comm, sizeof(sum->comm));
	pause_ms = pause->jiffies > 0 ? (__u64)pause->jiffies * 1000 / hz() : 0;
	if (!pause_ms) {
		sum->unpaused += 1;
		return 0;
	}
	sum->pauses += 1;
	sum->pause_ms += pause_ms;
	falls_asleep(&key);
	if (pause_ms <= sum->pause_ms_max)
		return 0;
	setpoint = (pause->limit + freerun) / 2;
	sum->pause_ms_max = pause_ms;
	sum->limit_pages = pause->limit;
	sum->setpoint_pages = setpoint;
	sum->dirty_pages = pause->dirty;
	sum->wb_setpoint_pages = setpoint * pause->wb_thresh / (pause->thresh + 1);
	sum->wb_dirty_pages = pause->wb_dirty;
	/* Convert from pages per second. */
	sum->dirty_ratelimit_kib = pause->dirty_ratelimit * now->page_kib;
	sum->task_ratelimit_kib = pause->task_ratelimit * now->page_kib;
	return 0;
}

/* Keeps the compiler from merging two loads of the arguments into one with a variable offset, which the verifier
 * rejects. */
#define barrier() asm volatile("" ::: "memory")

static __always_inline int balance(__u64 *arguments)
{
	struct pause pause = {};

	if (bpf_core_field_exists(struct trace_event_raw_balance_dirty_pages, wb_dirty)) {
		struct dirty_throttle_control *dtc = (struct dirty_throttle_control *)arguments[1];

		pause.thresh = BPF_CORE_READ(dtc, thresh);
		pause.bg_thresh = BPF_CORE_READ(dtc, bg_thresh);
		pause.dirty = BPF_CORE_READ(dtc, dirty);
		pause.wb_thresh = BPF_CORE_READ(dtc, wb_thresh);
		pause.wb_dirty = BPF_CORE_READ(dtc, wb_dirty);
		pause.limit = BPF_CORE_READ(dtc, dom, dirty_limit);
		pause.dirty_ratelimit = arguments[2];
		pause.task_ratelimit = arguments[3];
		pause.jiffies = arguments[6];
		barrier();
	} else {
		barrier();
		pause.thresh = arguments[1];
		pause.bg_thresh = arguments[2];
		pause.dirty = arguments[3];
		pause.wb_thresh = arguments[4];
		pause.wb_dirty = arguments[5];
		pause.limit = pause.thresh;
		pause.dirty_ratelimit = arguments[6];
		pause.task_ratelimit = arguments[7];
		barrier();
		pause.jiffies = arguments[10];
	}
	return paused((struct bdi_writeback *)arguments[0], &pause);
}

#define UNUSED __attribute__((unused))

SEC("fexit/io_schedule_timeout")
int on_pause_done(__u64 *arguments UNUSED)
{
	RUN(wakes_up());
}

SEC("raw_tp/balance_dirty_pages")
int on_balance_dirty_pages(__u64 *arguments)
{
	RUN(balance(arguments));
}
