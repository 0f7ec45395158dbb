/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What every program of the tracer shares: the kernel's basic types, how two intervals are kept apart, how
 * much was counted and how much was not, what that cost. Programs read the arguments of tracepoints and functions,
 * never records: a record needs perf_event_open, which many kernels deny to all but root, and closing it waits for all
 * CPUs. Where a tracepoint is passed often they are `tp_btf`, whose arguments have types, so that no helper is called to
 * read them; elsewhere `raw_tp`, for which the loader need not look through all types of the kernel. Of a structure only the fields that are read are declared; where they are is found at
 * load time (CO-RE), so that no kernel header is needed.
 *
 * Every table is a bounded hash whose keys begin with the epoch, a u32. User space reads and clears it once per
 * interval: the epoch says which of two sets of entries is being filled, so that the other one stands still
 * while it is read. Structures of keys and entries have no holes: the build
 * makes Rust types of them, and refuses a hole.
 */
#ifndef FLOODLINE_BPF_H
#define FLOODLINE_BPF_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/* Of enum bpf_map_type and of the flags of a map update, which are part of the kernel's interface. */
#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_PERCPU_HASH 5
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_LRU_HASH 9
#define BPF_NOEXIST 1

#define BDI_NAME_LEN 32
#define TASK_COMM_LEN 16

/* Tracing programs may call most helpers only under a licence that the kernel knows as compatible. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* No program calls another function: all of them are inlined. A load through a pointer that the verifier knows by its
 * type may fault, and the kernel then looks for the place in a table of the program. Before commit 0108a4e9f358 ("bpf:
 * ensure main program has an extable"), v6.4, a program with functions of its own may have none, and the machine dies:
 * seen on 5.10.223. For the same reason what may be NULL is asked before. */

/* What user space tells the programs. */
struct control {
	/* Which set of entries is being filled: 0 or 1. */
	__u32 epoch;
	/* How much detail to keep: 0 is all; each level drops more, as the part has it. */
	__u32 shed;
	/* The machine-wide domain's freerun ceiling, pages, as last computed: a ceiling between these two is the
	 * machine's. Both 0: not known. */
	__u64 machine_freerun_min;
	__u64 machine_freerun_max;
	/* KiB of a page. */
	__u64 page_kib;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct control);
} control SEC(".maps");

/* What one CPU counted since the program was loaded. */
struct counted {
	/* Runs of the part's programs. */
	__u64 runs;
	/* Events that are in no table, because it was full. */
	__u64 dropped;
	/* Runs whose time was taken, and their time. */
	__u64 timed;
	__u64 timed_ns;
	/* Events that a spare program took, as the first one was skipped for them. */
	__u64 taken;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counted);
} counted SEC(".maps");

/* The time of one run in this many is taken, a power of two. */
#define TIMED_OF 64
/* No run takes longer than this, nanoseconds: the task was preempted, or an interrupt came. */
#define TIMED_MAX 20000

/* Counts a run. Its beginning if its time is taken, else 0. */
static __always_inline __u64 run_begins(void)
{
	__u32 zero = 0;
	struct counted *counts = bpf_map_lookup_elem(&counted, &zero);

	if (!counts)
		return 0;
	counts->runs += 1;
	return counts->runs & (TIMED_OF - 1) ? 0 : bpf_ktime_get_ns();
}

/* Ends a run that began then. The answer of a program is 0. */
static __always_inline int run_ends(__u64 since)
{
	__u64 lasted;
	__u32 zero = 0;
	struct counted *counts;

	if (!since)
		return 0;
	lasted = bpf_ktime_get_ns() - since;
	counts = bpf_map_lookup_elem(&counted, &zero);
	if (counts) {
		counts->timed += 1;
		counts->timed_ns += lasted < TIMED_MAX ? lasted : TIMED_MAX;
	}
	return 0;
}

/* A program around `work`. */
#define RUN(work) \
	do { \
		__u64 since = run_begins(); \
		(void)(work); \
		return run_ends(since); \
	} while (0)

/* What user space wants; NULL cannot happen. */
static __always_inline struct control *begin(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&control, &zero);
}

/* Ends a program whose table is full. */
static __always_inline int drop(void)
{
	__u32 zero = 0;
	struct counted *counts = bpf_map_lookup_elem(&counted, &zero);

	if (counts)
		counts->dropped += 1;
	return 0;
}

/* The entry of a key, made from `empty` where there is none; NULL when the table is full. */
static __always_inline void *entry(void *table, const void *key, const void *empty)
{
	void *value = bpf_map_lookup_elem(table, key);

	if (value)
		return value;
	/* Another CPU may have made it meanwhile, which is as good. */
	bpf_map_update_elem(table, key, empty, BPF_NOEXIST);
	return bpf_map_lookup_elem(table, key);
}

/* Entries that several CPUs may count in at once. */
static __always_inline void add(__u64 *counter, __u64 n)
{
	__sync_fetch_and_add(counter, n);
}

#define KERNEL_TYPE __attribute__((preserve_access_index))

struct kernfs_node {
	__u64 id;
} KERNEL_TYPE;

struct cgroup {
	struct kernfs_node *kn;
} KERNEL_TYPE;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
} KERNEL_TYPE;

struct backing_dev_info {
	void *dev;
	char dev_name[64];
} KERNEL_TYPE;

struct bdi_writeback {
	struct backing_dev_info *bdi;
	struct cgroup_subsys_state *memcg_css;
} KERNEL_TYPE;

/* The cgroup that a wb belongs to; the root where the kernel was built without writeback by cgroup. */
static __always_inline __u64 cgroup_of(struct bdi_writeback *wb)
{
	if (!bpf_core_field_exists(wb->memcg_css))
		return 1;
	return BPF_CORE_READ(wb, memcg_css, cgroup, kn, id);
}

/* The name of a wb's device, as the kernel prints it. */
static __always_inline void name_of(struct bdi_writeback *wb, char *name)
{
	struct backing_dev_info *bdi = BPF_CORE_READ(wb, bdi);

	if (!bdi || !BPF_CORE_READ(bdi, dev))
		__builtin_memcpy(name, "(unknown)", 10);
	else
		bpf_probe_read_kernel_str(name, BDI_NAME_LEN, &bdi->dev_name);
}

static __always_inline void raise_to(__u64 *max, __u64 value)
{
	/* Two CPUs may race; the loser's value was as real, and the next one is compared again. */
	if (value > *max)
		*max = value;
}

#endif
