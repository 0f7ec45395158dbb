/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What every program of the tracer shares: the kernel's basic types, how two intervals are kept apart, how
 * much was counted and how much was not. Not here: records of tracepoints, which each program declares with
 * the fields it reads; where they are is found at load time (CO-RE), so that no kernel header is needed.
 *
 * Every table is a bounded hash whose keys begin with the epoch, a u32. User space reads and clears it once per
 * interval: the epoch says which of two sets of entries is being filled, so that the other one stands still
 * while it is read. Structures of keys and entries have no holes: `src/trace` reads them field by field.
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
#define BPF_NOEXIST 1

#define BDI_NAME_LEN 32
#define TASK_COMM_LEN 16

/* A record of a tracepoint: what is declared of it is found by name in the kernel that runs. */
#define TRACEPOINT_RECORD __attribute__((preserve_access_index))

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
	__u64 events;
	/* Events that are in no table, because it was full. */
	__u64 dropped;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counted);
} counted SEC(".maps");

/* Begins a program: counts the event, and answers what user space wants; NULL cannot happen. */
static __always_inline struct control *begin(void)
{
	__u32 zero = 0;
	struct counted *counts = bpf_map_lookup_elem(&counted, &zero);

	if (counts)
		counts->events += 1;
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

static __always_inline void raise_to(__u64 *max, __u64 value)
{
	/* Two CPUs may race; the loser's value was as real, and the next one is compared again. */
	if (value > *max)
		*max = value;
}

#endif
