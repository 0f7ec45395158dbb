// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Inode ownership: inodes that move between wbs, folios dirtied in another cgroup's inodes, flushes on behalf
 * of another cgroup, and removals of cgroups, which set moving off. Workers of several CPUs count in the same
 * entries, so that counting is atomic. Mirrors the records of include/trace/events/{writeback,cgroup}.h from
 * 5.10 to 7.2; inode_switch_wbs_queue is there since 6.18.
 */
#include "floodline.bpf.h"

struct trace_event_raw_inode_switch_wbs {
	char name[BDI_NAME_LEN];
	unsigned long old_cgroup_ino;
	unsigned long new_cgroup_ino;
} TRACEPOINT_RECORD;

struct trace_event_raw_inode_switch_wbs_queue {
	char name[BDI_NAME_LEN];
	unsigned long old_cgroup_ino;
	unsigned long new_cgroup_ino;
	unsigned int count;
} TRACEPOINT_RECORD;

struct trace_event_raw_track_foreign_dirty {
	char name[BDI_NAME_LEN];
	unsigned long ino;
	unsigned long cgroup_ino;
	unsigned long page_cgroup_ino;
} TRACEPOINT_RECORD;

struct trace_event_raw_flush_foreign {
	char name[BDI_NAME_LEN];
	unsigned long cgroup_ino;
	unsigned int frn_memcg_id;
} TRACEPOINT_RECORD;

struct trace_event_raw_cgroup {
	int root;
	__u64 id;
	__u32 __data_loc_path;
} TRACEPOINT_RECORD;

/* Two cgroups on a device: from and to, owner of the inode and of the folio. */
struct pair_key {
	__u32 epoch;
	__u32 number;
	__u64 one;
	__u64 other;
	char bdi[BDI_NAME_LEN];
};

struct switch_entry {
	__u64 switched;
	__u64 queued;
	__u64 first_ns;
	__u64 last_ns;
};

struct foreign_entry {
	__u64 count;
	__u64 last_ino;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2048);
	__type(key, struct pair_key);
	__type(value, struct switch_entry);
} switches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2048);
	__type(key, struct pair_key);
	__type(value, struct foreign_entry);
} foreign SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct pair_key);
	__type(value, struct foreign_entry);
} foreign_flushes SEC(".maps");

#define PATH_LEN 128

struct removal_key {
	__u32 epoch;
	__u32 unused;
	__u64 cgroup_ino;
};

struct removal_entry {
	__u64 at_ns;
	char path[PATH_LEN];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct removal_key);
	__type(value, struct removal_entry);
} removals SEC(".maps");

static __always_inline struct switch_entry *moved(struct pair_key *key)
{
	struct switch_entry *sum, empty = {};
	__u64 at = bpf_ktime_get_boot_ns();

	empty.first_ns = at;
	sum = entry(&switches, key, &empty);
	if (sum)
		raise_to(&sum->last_ns, at);
	return sum;
}

SEC("tp/writeback/inode_switch_wbs")
int on_inode_switch_wbs(struct trace_event_raw_inode_switch_wbs *event)
{
	struct control *now = begin();
	struct switch_entry *sum;
	struct pair_key key = {};

	if (!now)
		return 0;
	key.epoch = now->epoch;
	key.one = event->old_cgroup_ino;
	key.other = event->new_cgroup_ino;
	bpf_core_read(&key.bdi, sizeof(key.bdi), &event->name);
	sum = moved(&key);
	if (!sum)
		return drop();
	add(&sum->switched, 1);
	return 0;
}

SEC("tp/writeback/inode_switch_wbs_queue")
int on_inode_switch_wbs_queue(struct trace_event_raw_inode_switch_wbs_queue *event)
{
	struct control *now = begin();
	struct switch_entry *sum;
	struct pair_key key = {};

	if (!now)
		return 0;
	key.epoch = now->epoch;
	key.one = event->old_cgroup_ino;
	key.other = event->new_cgroup_ino;
	bpf_core_read(&key.bdi, sizeof(key.bdi), &event->name);
	sum = moved(&key);
	if (!sum)
		return drop();
	add(&sum->queued, event->count);
	return 0;
}

SEC("tp/writeback/track_foreign_dirty")
int on_track_foreign_dirty(struct trace_event_raw_track_foreign_dirty *event)
{
	struct foreign_entry *sum, empty = {};
	struct control *now = begin();
	struct pair_key key = {};

	if (!now)
		return 0;
	key.epoch = now->epoch;
	key.one = event->cgroup_ino;
	key.other = event->page_cgroup_ino;
	bpf_core_read(&key.bdi, sizeof(key.bdi), &event->name);
	sum = entry(&foreign, &key, &empty);
	if (!sum)
		return drop();
	add(&sum->count, 1);
	sum->last_ino = event->ino;
	return 0;
}

SEC("tp/writeback/flush_foreign")
int on_flush_foreign(struct trace_event_raw_flush_foreign *event)
{
	struct foreign_entry *sum, empty = {};
	struct control *now = begin();
	struct pair_key key = {};

	if (!now)
		return 0;
	key.epoch = now->epoch;
	key.number = event->frn_memcg_id;
	key.one = event->cgroup_ino;
	bpf_core_read(&key.bdi, sizeof(key.bdi), &event->name);
	sum = entry(&foreign_flushes, &key, &empty);
	if (!sum)
		return drop();
	add(&sum->count, 1);
	return 0;
}

SEC("tp/cgroup/cgroup_rmdir")
int on_cgroup_rmdir(struct trace_event_raw_cgroup *event)
{
	struct control *now = begin();
	struct removal_entry gone = {};
	struct removal_key key = {};
	__u32 path;

	/* Hierarchy 0 is the unified one. */
	if (!now || event->root != 0)
		return 0;
	key.epoch = now->epoch;
	key.cgroup_ino = event->id;
	gone.at_ns = bpf_ktime_get_boot_ns();
	/* Where the text is in the record, and how long. */
	path = event->__data_loc_path;
	bpf_probe_read_kernel_str(&gone.path, sizeof(gone.path), (void *)event + (path & 0xffff));
	if (bpf_map_update_elem(&removals, &key, &gone, 0))
		return drop();
	return 0;
}
