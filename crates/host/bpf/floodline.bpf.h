/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Shared by all programs of the tracer: the kernel's basic types, the epoch, and the counts of runs, dropped events and
 * run time. Programs read the arguments of tracepoints and functions, never event records: a record needs
 * perf_event_open, which many kernels deny to all but root, and closing it waits for all CPUs. Frequent tracepoints use
 * `tp_btf`: its arguments have types and are read without a helper. The others use `raw_tp`, for which the loader need
 * not search all types of the kernel. Of a structure only the fields that are read are declared. Their offsets are
 * found at load time (CO-RE), so no kernel header is needed.
 *
 * Every table is a bounded hash whose keys begin with the epoch, a u32. User space reads and clears it once per
 * interval. The epoch selects which of two sets of entries is being filled. The other set does not change while it is
 * read. Structures of keys and entries have no holes: the build generates Rust types from them and rejects a hole.
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

/* From enum bpf_map_type and the flags of a map update. Both are part of the kernel's interface. */
#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_PERCPU_HASH 5
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_LRU_HASH 9
#define BPF_NOEXIST 1

#define BDI_NAME_LEN 32
#define TASK_COMM_LEN 16

/* The kernel allows most tracing helpers only to programs with a GPL-compatible licence. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* All functions are inlined into their program. A load through a typed pointer may fault, and the kernel then looks up
 * the instruction in the program's exception table. Before commit 0108a4e9f358 ("bpf: ensure main program has an
 * extable"), v6.4, a program with functions of its own may lack that table, and the machine crashes: seen on 5.10.223.
 * For the same reason pointers that may be NULL are checked first. */

/* Settings that user space writes for the programs. */
struct control {
	/* Set of entries that is being filled: 0 or 1. */
	__u32 epoch;
	/* Level of detail to drop: 0 keeps all. Each part defines what a higher level drops. */
	__u32 shed;
	/* Bounds of the machine-wide domain's freerun ceiling, pages, as last computed: a ceiling within them is the
	 * machine's. Both 0: not known. */
	__u64 machine_freerun_min;
	__u64 machine_freerun_max;
	/* Page size, KiB. */
	__u64 page_kib;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct control);
} control SEC(".maps");

/* Counts of one CPU since the program was loaded. */
struct counted {
	/* Runs of the part's programs. */
	__u64 runs;
	/* Events dropped because their table was full. */
	__u64 dropped;
	/* Timed runs, and the sum of their times. */
	__u64 timed;
	__u64 timed_ns;
	/* Events that a spare program handled because the kernel skipped the first program. */
	__u64 taken;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counted);
} counted SEC(".maps");

/* One run in this many is timed; a power of two. */
#define TIMED_OF 64
/* Longest time that counts for a run, nanoseconds: beyond it the task was preempted, or an interrupt came. */
#define TIMED_MAX 20000

/* Counts a run. Returns its start time if it is timed, else 0. */
static __always_inline __u64 run_begins(void)
{
	__u32 zero = 0;
	struct counted *counts = bpf_map_lookup_elem(&counted, &zero);

	if (!counts)
		return 0;
	counts->runs += 1;
	return counts->runs & (TIMED_OF - 1) ? 0 : bpf_ktime_get_ns();
}

/* Ends a run that began at `since`. Returns 0, the return value of every program. */
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

/* Body of a program: counts the run and does `work`. */
#define RUN(work) \
	do { \
		__u64 since = run_begins(); \
		(void)(work); \
		return run_ends(since); \
	} while (0)

/* Returns the settings from user space. Never NULL. */
static __always_inline struct control *begin(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&control, &zero);
}

/* Counts an event that is dropped because a table is full. */
static __always_inline int drop(void)
{
	__u32 zero = 0;
	struct counted *counts = bpf_map_lookup_elem(&counted, &zero);

	if (counts)
		counts->dropped += 1;
	return 0;
}

/* Returns the entry of a key. Adds it from `empty` if it is missing. Returns NULL when the table is full. */
static __always_inline void *entry(void *table, const void *key, const void *empty)
{
	void *value = bpf_map_lookup_elem(table, key);

	if (value)
		return value;
	/* Another CPU may have added it meanwhile: the lookup returns that entry. */
	bpf_map_update_elem(table, key, empty, BPF_NOEXIST);
	return bpf_map_lookup_elem(table, key);
}

/* Adds to a counter that several CPUs may change at once. */
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

/* Returns the cgroup of a wb, or the root if the kernel was built without cgroup writeback. */
static __always_inline __u64 cgroup_of(struct bdi_writeback *wb)
{
	if (!bpf_core_field_exists(wb->memcg_css))
		return 1;
	return BPF_CORE_READ(wb, memcg_css, cgroup, kn, id);
}

/* Writes the name of a wb's device, as the kernel prints it. */
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
	/* Two CPUs may race: the maximum may then miss the larger of two real values. Later values are compared
	 * again. */
	if (value > *max)
		*max = value;
}

#endif
