// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Inode ownership: inodes that move between wbs, folios dirtied in another cgroup's inodes, flushes on behalf of
 * another cgroup, and removals of cgroups, which trigger moves. Workers of several CPUs count in the same entries, so
 * counting is atomic. Reads the arguments of the tracepoints (include/trace/events/writeback.h and cgroup.h) from 5.10
 * to 7.2. inode_switch_wbs_queue exists since 6.18.
 */
#include "floodline.bpf.h"

struct cgroup_root {
	int hierarchy_id;
} KERNEL_TYPE;

struct cgroup___root {
	struct kernfs_node *kn;
	struct cgroup_root *root;
} KERNEL_TYPE;

struct mem_cgroup {
	struct cgroup_subsys_state css;
} KERNEL_TYPE;

struct inode {
	unsigned long i_ino;
} KERNEL_TYPE;

struct address_space {
	struct inode *host;
} KERNEL_TYPE;

struct page {
	struct address_space *mapping;
} KERNEL_TYPE;

/* Until 5.10. */
struct page___mem_cgroup {
	struct mem_cgroup *mem_cgroup;
} KERNEL_TYPE;

struct page___memcg_data {
	unsigned long memcg_data;
} KERNEL_TYPE;

struct folio___memcg_data {
	unsigned long memcg_data;
} KERNEL_TYPE;

/* Since 7.0 or so a folio is charged to one of these, which leads to the cgroup. */
struct obj_cgroup___is_root {
	struct mem_cgroup *memcg;
	_Bool is_root;
} KERNEL_TYPE;

/* Bits of `memcg_data` that are flags, not address. */
#define MEMCG_DATA_MASK 7

/* Two cgroups on a device: old and new owner of an inode, or owner of the inode and of the folio. */
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

static __always_inline int switched(struct bdi_writeback *from, struct bdi_writeback *to)
{
	struct control *now = begin();
	struct switch_entry *sum;
	struct pair_key key = {};

	if (!now)
		return 0;
	key.epoch = now->epoch;
	key.one = cgroup_of(from);
	key.other = cgroup_of(to);
	name_of(from, key.bdi);
	sum = moved(&key);
	if (!sum)
		return drop();
	add(&sum->switched, 1);
	return 0;
}

static __always_inline int waits(struct bdi_writeback *from, struct bdi_writeback *to, __u32 count)
{
	struct control *now = begin();
	struct switch_entry *sum;
	struct pair_key key = {};

	if (!now)
		return 0;
	key.epoch = now->epoch;
	key.one = cgroup_of(from);
	key.other = cgroup_of(to);
	name_of(from, key.bdi);
	sum = moved(&key);
	if (!sum)
		return drop();
	add(&sum->queued, count);
	return 0;
}

/* Returns the cgroup that a page or folio is charged to. */
static __always_inline __u64 charged_to(void *folio)
{
	struct mem_cgroup *memcg;
	__u64 data;

	if (bpf_core_field_exists(struct page___mem_cgroup, mem_cgroup))
		return BPF_CORE_READ((struct page___mem_cgroup *)folio, mem_cgroup, css.cgroup, kn, id);
	if (bpf_core_field_exists(struct folio___memcg_data, memcg_data))
		data = BPF_CORE_READ((struct folio___memcg_data *)folio, memcg_data);
	else
		data = BPF_CORE_READ((struct page___memcg_data *)folio, memcg_data);
	data &= ~(__u64)MEMCG_DATA_MASK;
	memcg = (struct mem_cgroup *)data;
	if (bpf_core_field_exists(struct obj_cgroup___is_root, is_root))
		memcg = BPF_CORE_READ((struct obj_cgroup___is_root *)data, memcg);
	return BPF_CORE_READ(memcg, css.cgroup, kn, id);
}

static __always_inline int is_foreign(struct page *folio, struct bdi_writeback *wb)
{
	struct foreign_entry *sum, empty = {};
	struct control *now = begin();
	struct pair_key key = {};

	if (!now)
		return 0;
	key.epoch = now->epoch;
	key.one = cgroup_of(wb);
	key.other = charged_to(folio);
	name_of(wb, key.bdi);
	sum = entry(&foreign, &key, &empty);
	if (!sum)
		return drop();
	add(&sum->count, 1);
	/* A folio's `mapping` is at the same offset as that of its first page. */
	sum->last_ino = BPF_CORE_READ(folio, mapping, host, i_ino);
	return 0;
}

static __always_inline int flushed(struct bdi_writeback *wb, __u32 frn_memcg_id)
{
	struct foreign_entry *sum, empty = {};
	struct control *now = begin();
	struct pair_key key = {};

	if (!now)
		return 0;
	key.epoch = now->epoch;
	key.number = frn_memcg_id;
	key.one = cgroup_of(wb);
	name_of(wb, key.bdi);
	sum = entry(&foreign_flushes, &key, &empty);
	if (!sum)
		return drop();
	add(&sum->count, 1);
	return 0;
}

static __always_inline int removed(struct cgroup___root *cgroup, const char *path)
{
	struct control *now = begin();
	struct removal_entry gone = {};
	struct removal_key key = {};

	/* Hierarchy 0 is the unified one. */
	if (!now || BPF_CORE_READ(cgroup, root, hierarchy_id))
		return 0;
	key.epoch = now->epoch;
	key.cgroup_ino = BPF_CORE_READ(cgroup, kn, id);
	gone.at_ns = bpf_ktime_get_boot_ns();
	bpf_probe_read_kernel_str(&gone.path, sizeof(gone.path), path);
	if (bpf_map_update_elem(&removals, &key, &gone, 0))
		return drop();
	return 0;
}

SEC("raw_tp/inode_switch_wbs")
int on_inode_switch_wbs(__u64 *arguments)
{
	RUN(switched((struct bdi_writeback *)arguments[1], (struct bdi_writeback *)arguments[2]));
}

SEC("raw_tp/inode_switch_wbs_queue")
int on_inode_switch_wbs_queue(__u64 *arguments)
{
	RUN(waits((struct bdi_writeback *)arguments[0], (struct bdi_writeback *)arguments[1], arguments[2]));
}

SEC("raw_tp/track_foreign_dirty")
int on_track_foreign_dirty(__u64 *arguments)
{
	RUN(is_foreign((struct page *)arguments[0], (struct bdi_writeback *)arguments[1]));
}

SEC("raw_tp/flush_foreign")
int on_flush_foreign(__u64 *arguments)
{
	RUN(flushed((struct bdi_writeback *)arguments[0], arguments[2]));
}

SEC("raw_tp/cgroup_rmdir")
int on_cgroup_rmdir(__u64 *arguments)
{
	RUN(removed((struct cgroup___root *)arguments[0], (const char *)arguments[1]));
}
