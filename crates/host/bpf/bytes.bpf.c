// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Byte ledger: folios that become dirty, by process, cgroup and file, and writes queued at block devices, by file,
 * cgroup and disk. With waits.bpf.h, also the tasks that waited for stable storage. A write queued by the flusher
 * carries a page, and the page leads to its file: this is the only link between the two.
 *
 * Dirtying is the hottest path of the tracer. Each CPU keeps the sums of its latest key to itself and adds them to the
 * table when the key changes. Sums only grow and user space takes differences, so no event is lost between two
 * readings.
 */
#include "floodline.bpf.h"
#include "page.bpf.h"
/* Programs are loaded in this order: if the kernel forbids programs on functions, loading fails before the long
 * programs below are verified. */
#include "waits.bpf.h"

/* Levels of `shed`, and the detail that each drops. */
#define SHED_FILES 1
#define SHED_AGAIN 2
#define SHED_DIRTIED 3

#define PF_KTHREAD 0x00200000
/* A kernel thread that writes for others, such as that of a loop device: the data it dirties is new. */
#define PF_LOCAL_THROTTLE 0x00100000

struct task_struct___flags {
	unsigned int flags;
} KERNEL_TYPE;

struct css_set;

struct task_struct___identity {
	int tgid;
	struct css_set *cgroups;
} KERNEL_TYPE;

/* Since 5.11. */
enum bpf_func_id___task_btf {
	BPF_FUNC_get_current_task_btf___task_btf = 0xffff,
};

struct dirtied_key {
	/* 0: all files without an entry of their own. */
	__u64 ino;
	__u64 cgroup_ino;
	__u32 dev;
	__u32 tgid;
	/* Of the inode. */
	__u32 generation;
	__u32 zero;
};

struct dirtied_entry {
	__u64 pages;
	__u64 folios;
	__u64 redirtied;
	char comm[TASK_COMM_LEN];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct dirtied_key);
	__type(value, struct dirtied_entry);
} dirtied SEC(".maps");

/* Sums by process and cgroup without files, for files that find no room in `dirtied`. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct dirtied_key);
	__type(value, struct dirtied_entry);
} dirtied_unnamed SEC(".maps");

/* The process that dirtied a file last, for writes whose files are too many for entries of their own. The files dirtied
 * longest ago are evicted. */
struct owner {
	__u64 cgroup_ino;
	__u32 tgid;
	__u32 zero;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct file_key);
	__type(value, struct owner);
} owners SEC(".maps");

/* A cheap identity of one dirtier of one file: addresses, and numbers that detect a reused address. Before 5.11 `task`
 * is 0 and `css_set` is the number of the cgroup. */
struct identity {
	__u64 task;
	__u64 css_set;
	/* The inode, or the superblock if files are not kept apart. */
	__u64 object;
	__u64 ino;
	__u32 tgid;
	__u32 generation;
};

struct latest {
	struct identity asked;
	/* The key it is counted under: a kernel thread's cgroup is that of the file's wb. */
	struct dirtied_key key;
	/* The inode whose owner was kept last, and its number. */
	__u64 owned;
	__u64 owned_ino;
	__u64 pages;
	__u64 folios;
	__u64 redirtied;
	/* First bit of that inode in `seen`. */
	__u64 places;
	/* Runs on this CPU, timed runs, and the sum of their times. */
	__u64 runs;
	__u64 timed;
	__u64 timed_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct latest);
} latest SEC(".maps");

/* One bit for every page of a file that was dirtied, by page index and file, without chains; neighbours share a word.
 * User space clears the table before it fills. Beyond the first SEEN_WHOLE pages of a file one page in
 * 2^SEEN_SAMPLE_BITS is checked and stands for all of them: this table costs most, as random pages miss every cache. */
#define SEEN_WORDS (1 << 16)
#define SEEN_WHOLE 1024
#define SEEN_SAMPLE_BITS 3

/* 2^64 divided by the golden ratio: multiplying by it spreads the bits. */
#define SPREAD 0x9e3779b97f4a7c15ULL

struct seen {
	__u64 words[SEEN_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct seen);
} seen SEC(".maps");

struct seen_count {
	__u64 set;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct seen_count);
} seen_count SEC(".maps");

static __always_inline struct file_key file_of(const struct dirtied_key *key)
{
	struct file_key file = { .ino = key->ino, .dev = key->dev, .generation = key->generation };

	return file;
}

/* Adds the sums that a CPU kept to itself to the table. User space removes entries that have not grown for a while. If
 * this CPU began to count under such a key just then, the entry is made again, without the name of its process. */
static __always_inline void settle(struct latest *last)
{
	struct dirtied_entry *sum, empty = {};

	sum = last->key.ino ? entry(&dirtied, &last->key, &empty) : entry(&dirtied_unnamed, &last->key, &empty);
	if (!sum) {
		drop();
		return;
	}
	add(&sum->pages, last->pages);
	add(&sum->folios, last->folios);
	if (last->redirtied)
		add(&sum->redirtied, last->redirtied);
	if (last->key.ino && becomes_large(sum->pages, last->pages, LARGE_PAGES)) {
		struct file_key file = file_of(&last->key);

		keep_large_path(&file);
	}
}

/* Makes the entry of a new key, and keeps the path of its file. The process name is known only for the current task. */
static __always_inline void make_entry(struct latest *last, struct inode *inode, int is_current)
{
	struct file_key file = file_of(&last->key);
	struct dirtied_entry empty = {}, *sum = 0;

	if (file.ino)
		sum = bpf_map_lookup_elem(&dirtied, &last->key);
	if (sum && (sum->pages < LARGE_PAGES || bpf_map_lookup_elem(&large_paths, &file)))
		return;
	if (is_current)
		bpf_get_current_comm(&empty.comm, sizeof(empty.comm));
	if (sum || (file.ino && !bpf_map_update_elem(&dirtied, &last->key, &empty, BPF_NOEXIST))) {
		remember_path(inode, file.ino, file.dev, file.generation, 0);
		if (sum)
			keep_large_path(&file);
		return;
	}
	last->key.ino = 0;
	last->key.generation = 0;
	bpf_map_update_elem(&dirtied_unnamed, &last->key, &empty, BPF_NOEXIST);
}

/* Switches to another process or file: rare compared with folios of the same file. */
static __always_inline int turn_to(struct latest *last, struct inode *inode, struct identity *asked)
{
	struct task_struct___flags *task = (void *)bpf_get_current_task();
	struct file_key file = {};
	struct owner *owner = NULL;
	__u32 flags;

	if (!last || !asked)
		return 0;
	if (last->folios)
		settle(last);
	last->asked = *asked;
	last->key.ino = asked->ino;
	last->key.generation = asked->generation;
	last->key.dev = BPF_CORE_READ(inode, i_sb, s_dev);
	last->key.tgid = bpf_get_current_pid_tgid() >> 32;
	last->pages = last->folios = last->redirtied = 0;
	last->owned = 0;
	flags = BPF_CORE_READ(task, flags);
	if (flags & PF_KTHREAD && !(flags & PF_LOCAL_THROTTLE)) {
		/* The flusher, or with data=journal the jbd2 thread: it passes on data that another process wrote. */
		file.ino = BPF_CORE_READ(inode, i_ino);
		file.dev = last->key.dev;
		file.generation = BPF_CORE_READ(inode, i_generation);
		owner = bpf_map_lookup_elem(&owners, &file);
	}
	if (owner) {
		last->key.tgid = owner->tgid;
		last->key.cgroup_ino = owner->cgroup_ino;
	} else if (flags & PF_KTHREAD) {
		last->key.cgroup_ino = BPF_CORE_READ(inode, i_wb, memcg_css, cgroup, kn, id);
	} else {
		last->key.cgroup_ino = bpf_get_current_cgroup_id();
	}
	make_entry(last, inode, !owner);
	return 0;
}

/* Returns the number of pages that this page index stands for if it was dirty before, else 0. */
static __always_inline __u64 again(const struct latest *last, __u64 index, __u64 pages)
{
	struct seen_count *count;
	struct seen *table;
	__u64 bit, mask, *word;
	__u32 zero = 0;

	if (index >= SEEN_WHOLE) {
		if (index * SPREAD >> (64 - SEEN_SAMPLE_BITS))
			return 0;
		pages <<= SEEN_SAMPLE_BITS;
	}
	table = bpf_map_lookup_elem(&seen, &zero);
	if (!table)
		return 0;
	bit = last->places + index;
	word = &table->words[bit >> 6 & (SEEN_WORDS - 1)];
	mask = 1ULL << (bit & 63);
	if (*word & mask)
		return pages;
	*word |= mask;
	count = bpf_map_lookup_elem(&seen_count, &zero);
	if (count)
		count->set += 1;
	return 0;
}

/* Switches to another inode: keeps the process that dirtied it last, even if files are not kept apart. */
static __always_inline int keep_owner(struct latest *last, struct inode *inode)
{
	struct owner owner = { .cgroup_ino = last->key.cgroup_ino, .tgid = last->key.tgid };
	struct file_key file = { .ino = inode->i_ino, .dev = last->key.dev, .generation = inode->i_generation };

	last->owned = (__u64)inode;
	last->owned_ino = file.ino;
	/* A hash of the file gives its first bit. It uses the inode's own number, as the key has none if files are not
	 * kept apart. It uses the generation, as another file may have had the number. */
	last->places = (file.ino ^ (__u64)file.dev << 32 ^ (__u64)file.generation * SPREAD >> 8) * SPREAD >> 20;
	return bpf_map_update_elem(&owners, &file, &owner, 0);
}

static __always_inline void identify(struct identity *asked)
{
	struct task_struct___identity *task;

	if (bpf_core_enum_value_exists(enum bpf_func_id___task_btf, BPF_FUNC_get_current_task_btf___task_btf)) {
		task = (void *)bpf_get_current_task_btf();
		asked->task = (__u64)task;
		asked->css_set = (__u64)task->cgroups;
		asked->tgid = task->tgid;
	} else {
		asked->task = 0;
		asked->css_set = bpf_get_current_cgroup_id();
		asked->tgid = bpf_get_current_pid_tgid() >> 32;
	}
}

static __always_inline int dirty(struct inode *inode, __u64 index, __u64 pages)
{
	struct identity asked = {};
	struct control *now;
	struct latest *last;
	__u64 since = 0;
	__u32 zero = 0;

	last = bpf_map_lookup_elem(&latest, &zero);
	now = bpf_map_lookup_elem(&control, &zero);
	if (!last || !now)
		return 0;
	/* Like run_begins(), with the entry at hand. */
	last->runs += 1;
	if (!(last->runs & (TIMED_OF - 1)))
		since = bpf_ktime_get_ns();
	if (now->shed >= SHED_DIRTIED)
		return 0;
	identify(&asked);
	if (now->shed >= SHED_FILES) {
		asked.object = (__u64)inode->i_sb;
	} else {
		asked.object = (__u64)inode;
		asked.ino = inode->i_ino;
		asked.generation = inode->i_generation;
	}
	if (last->asked.object != asked.object || last->asked.ino != asked.ino || last->asked.task != asked.task ||
	    last->asked.css_set != asked.css_set || last->asked.tgid != asked.tgid ||
	    last->asked.generation != asked.generation)
		turn_to(last, inode, &asked);
	/* If files are kept apart, turn_to() has already handled an inode with another number. */
	if (last->owned != (__u64)inode || (!asked.ino && last->owned_ino != inode->i_ino))
		keep_owner(last, inode);
	last->pages += pages;
	last->folios += 1;
	if (now->shed < SHED_AGAIN)
		last->redirtied += again(last, index, pages);
	if (since) {
		since = bpf_ktime_get_ns() - since;
		last->timed += 1;
		last->timed_ns += since < TIMED_MAX ? since : TIMED_MAX;
	}
	return 0;
}

/* Arguments: a folio and its mapping. Since 5.18. */
SEC("tp_btf/writeback_dirty_folio")
int on_dirty_folio(__u64 *arguments)
{
	struct folio *folio = (struct folio *)arguments[0];
	struct address_space *mapping = (struct address_space *)arguments[1];

	struct inode *inode = mapping ? mapping->host : 0;

	return inode ? dirty(inode, folio->index, folio_pages(folio)) : 0;
}

/* Arguments: a page and its mapping. Before 5.18, when no filesystem with writeback had large folios. */
SEC("tp_btf/writeback_dirty_page")
int on_dirty_page(__u64 *arguments)
{
	struct page___index *page = (struct page___index *)arguments[0];
	struct address_space *mapping = (struct address_space *)arguments[1];

	struct inode *inode = mapping ? mapping->host : 0;

	return inode ? dirty(inode, page->index, 1) : 0;
}

static __always_inline int journalled(struct inode *inode)
{
	struct owner owner = { .cgroup_ino = bpf_get_current_cgroup_id(), .tgid = bpf_get_current_pid_tgid() >> 32 };
	struct dirtied_key key = { .cgroup_ino = owner.cgroup_ino, .tgid = owner.tgid };
	struct dirtied_entry empty = {};
	struct file_key file = {};

	file.ino = BPF_CORE_READ(inode, i_ino);
	file.dev = BPF_CORE_READ(inode, i_sb, s_dev);
	file.generation = BPF_CORE_READ(inode, i_generation);
	bpf_map_update_elem(&owners, &file, &owner, 0);
	/* Keeps the name of the process. */
	key.dev = file.dev;
	if (!bpf_map_lookup_elem(&dirtied_unnamed, &key)) {
		bpf_get_current_comm(&empty.comm, sizeof(empty.comm));
		bpf_map_update_elem(&dirtied_unnamed, &key, &empty, BPF_NOEXIST);
	}
	return 0;
}

/* The jbd2 thread marks journalled data dirty after logging it: the writing process is recorded here. */
SEC("raw_tp/ext4_journalled_write_end")
int on_journalled_write(__u64 *arguments)
{
	RUN(journalled((struct inode *)arguments[0]));
}

#include "cancelled.bpf.h"
#include "queued.bpf.h"
