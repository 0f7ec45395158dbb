/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Part of bytes.bpf.c: writes queued at block devices (block_bio_queue). A bio to a stacked device passes that device
 * and then those below it: each counts it. Discards are not writes.
 */
#ifndef FLOODLINE_QUEUED_BPF_H
#define FLOODLINE_QUEUED_BPF_H

struct bio_vec {
	struct page *bv_page;
} KERNEL_TYPE;

struct bvec_iter {
	unsigned int bi_size;
} KERNEL_TYPE;

struct gendisk {
	int major;
	int first_minor;
} KERNEL_TYPE;

struct block_device {
	struct gendisk *bd_disk;
} KERNEL_TYPE;

struct blkcg {
	struct cgroup_subsys_state css;
} KERNEL_TYPE;

struct blkcg_gq {
	struct blkcg *blkcg;
} KERNEL_TYPE;

struct bio {
	struct block_device *bi_bdev;
	unsigned int bi_opf;
	struct bvec_iter bi_iter;
	struct blkcg_gq *bi_blkg;
	struct bio_vec *bi_io_vec;
} KERNEL_TYPE;

/* Until 5.11. */
struct bio___bi_disk {
	struct gendisk *bi_disk;
} KERNEL_TYPE;

enum req_flag_bits {
	__REQ_SYNC = 0xfffe,
	__REQ_META = 0xffff,
};

/* Bits of bi_opf that hold the operation; odd operations write. */
#define OPERATION_MASK 0xff
#define OPERATION_DISCARD 3
#define OPERATION_SECURE_ERASE 5

#define S_IFMT 0170000
#define S_IFBLK 0060000

enum class {
	CLASS_DATA,
	CLASS_METADATA,
	CLASS_JOURNAL,
	CLASS_DIRECT,
	CLASS_UNKNOWN,
};

struct queued_key {
	__u32 epoch;
	enum class class;
	__u64 ino;
	__u64 cgroup_ino;
	/* The whole disk. */
	__u32 disk;
	/* The superblock, for data. */
	__u32 dev;
	/* For direct I/O the process; for data without a file, the process that dirtied the file last. */
	__u32 tgid;
	/* Of the inode. */
	__u32 generation;
};

struct queued_entry {
	__u64 bytes;
	__u64 bios;
	/* The process that dirtied the file last, and its cgroup. */
	__u64 owner_cgroup_ino;
	__u32 owner;
	__u32 zero;
	char comm[TASK_COMM_LEN];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct queued_key);
	__type(value, struct queued_entry);
} queued SEC(".maps");

/* Sums without files, for files that find no room in `queued`. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct queued_key);
	__type(value, struct queued_entry);
} queued_unnamed SEC(".maps");

/* Returns whether the thread is one of jbd2. Apart from the data of files these write only the journal. */
static __always_inline int is_jbd2(const char *comm)
{
	return comm[0] == 'j' && comm[1] == 'b' && comm[2] == 'd' && comm[3] == '2' && comm[4] == '/';
}

/* Returns the class of a filesystem's own block without a file: journal writes are synchronous, the others are not. */
static __always_inline __u32 own_class(__u32 opf)
{
	return opf >> bpf_core_enum_value(enum req_flag_bits, __REQ_SYNC) & 1 ? CLASS_JOURNAL : CLASS_METADATA;
}

/* Until 6.17. */
struct page___flags {
	unsigned long flags;
} KERNEL_TYPE;

struct page___flags_word {
	struct folio_flags_word flags;
} KERNEL_TYPE;

enum pageflags___writeback {
	PG_writeback = 0xffff,
};

/* Returns whether a folio is under writeback from the page cache. `head` is its first page. */
static __always_inline int is_under_writeback(struct page *head)
{
	__u64 flags;

	if (bpf_core_field_exists(struct page___flags_word, flags.f))
		flags = BPF_CORE_READ((struct page___flags_word *)head, flags.f);
	else
		flags = BPF_CORE_READ((struct page___flags *)head, flags);
	return flags >> bpf_core_enum_value(enum pageflags___writeback, PG_writeback) & 1;
}

static __always_inline int is_kernel_thread(void)
{
	struct task_struct___flags *task = (void *)bpf_get_current_task();

	return !!(BPF_CORE_READ(task, flags) & PF_KTHREAD);
}

/* Finds the class of a write from its first page. Returns the inode of data. That page and the structures it leads to
 * are typed pointers, read without a helper. Computed addresses are read with one. */
static __always_inline struct inode *classify(struct bio *bio, __u32 opf, const char *comm, struct queued_key *key)
{
	struct bio_vec *first = bio->bi_io_vec;
	struct page *page = NULL, *tail = NULL;
	struct inode *inode;
	__u64 mapping = 0, info = 0;
	int is_writeback = 0;
	__u16 mode;

	/* A request for zeroes carries no page. */
	if (first)
		page = first->bv_page;
	if (page)
		info = compound_info(page);
	if (page && !(info & 1)) {
		bpf_core_read(&mapping, sizeof(mapping), &page->mapping);
		is_writeback = is_under_writeback(page);
	} else if (page) {
		bpf_core_read(&tail, sizeof(tail), &bio->bi_io_vec->bv_page);
		mapping = (__u64)BPF_CORE_READ(head_of(tail, info), mapping);
		is_writeback = is_under_writeback(head_of(tail, info));
	}
	key->class = CLASS_UNKNOWN;
	/* Pages of the jbd2 thread that are not under writeback go to the log: blocks of the device, copies of them in
	 * any memory, and pages of files whose data is journalled. */
	if (page && !is_writeback && is_jbd2(comm)) {
		key->class = CLASS_JOURNAL;
		return NULL;
	}
	/* If one of the two lowest bits is set, it is not a mapping: memory of a process. */
	if (mapping & 3) {
		key->class = CLASS_DIRECT;
		key->tgid = bpf_get_current_pid_tgid() >> 32;
		return NULL;
	}
	if (!mapping) {
		if (is_jbd2(comm))
			key->class = CLASS_JOURNAL;
		else if (opf >> bpf_core_enum_value(enum req_flag_bits, __REQ_META) & 1)
			key->class = own_class(opf);
		return NULL;
	}
	if (page && !tail) {
		inode = page->mapping->host;
		mode = inode->i_mode;
		key->dev = inode->i_sb->s_dev;
		key->ino = inode->i_ino;
		key->generation = inode->i_generation;
	} else {
		inode = BPF_CORE_READ((struct address_space *)mapping, host);
		mode = BPF_CORE_READ(inode, i_mode);
		key->dev = BPF_CORE_READ(inode, i_sb, s_dev);
		key->ino = BPF_CORE_READ(inode, i_ino);
		key->generation = BPF_CORE_READ(inode, i_generation);
	}
	/* A block device, or an inode without a type, in which a filesystem keeps its own blocks (btrfs, f2fs). */
	if ((mode & S_IFMT) == S_IFBLK || !(mode & S_IFMT)) {
		key->class = CLASS_METADATA;
	} else if (!is_writeback && !is_kernel_thread()) {
		/* Direct I/O from memory that is mapped from a file, such as a pool shared by processes. */
		key->class = CLASS_DIRECT;
		key->tgid = bpf_get_current_pid_tgid() >> 32;
	} else {
		key->class = CLASS_DATA;
		return inode;
	}
	key->dev = 0;
	key->ino = 0;
	key->generation = 0;
	return NULL;
}

/* Fills in the process that dirtied a file last, if it was seen. */
static __always_inline void own(const struct file_key *file, struct queued_entry *entry)
{
	struct owner *owner = bpf_map_lookup_elem(&owners, file);

	if (!owner)
		return;
	entry->owner = owner->tgid;
	entry->owner_cgroup_ino = owner->cgroup_ino;
}

static __always_inline int queue(struct bio *bio)
{
	__u32 opf = bio->bi_opf, operation = opf & OPERATION_MASK;
	__u64 bytes = bio->bi_iter.bi_size;
	struct queued_entry *sum, empty = {};
	struct queued_key key = {};
	struct file_key file = {};
	struct blkcg_gq *group;
	struct gendisk *disk;
	struct inode *inode;
	struct control *now;

	if (!(operation & 1) || operation == OPERATION_DISCARD || operation == OPERATION_SECURE_ERASE || !bytes)
		return 0;
	now = begin();
	if (!now)
		return 0;
	/* Pointers from an argument are typed and need no helper. */
	if (bpf_core_field_exists(struct bio___bi_disk, bi_disk))
		disk = ((struct bio___bi_disk *)bio)->bi_disk;
	else
		disk = bio->bi_bdev->bd_disk;
	bpf_get_current_comm(&empty.comm, sizeof(empty.comm));
	key.epoch = now->epoch;
	key.disk = (__u32)disk->major << 20 | disk->first_minor;
	group = bio->bi_blkg;
	if (group)
		key.cgroup_ino = group->blkcg->css.cgroup->kn->id;
	inode = classify(bio, opf, empty.comm, &key);
	if (key.class == CLASS_DATA) {
		count_for_waiters(key.dev, bytes);
		file.ino = key.ino;
		file.dev = key.dev;
		file.generation = key.generation;
	}
	if (now->shed >= SHED_FILES)
		key.ino = key.generation = 0;
	sum = NULL;
	if (key.ino) {
		sum = bpf_map_lookup_elem(&queued, &key);
		if (!sum) {
			/* First write of this key in the interval. */
			own(&file, &empty);
			sum = entry(&queued, &key, &empty);
			/* The file may have been renamed. */
			remember_path(inode, key.ino, key.dev, key.generation, 1);
		}
	}
	if (!sum) {
		key.ino = key.generation = 0;
		if (file.ino) {
			own(&file, &empty);
			key.tgid = empty.owner;
		}
		sum = entry(&queued_unnamed, &key, &empty);
	}
	if (!sum)
		return drop();
	add(&sum->bytes, bytes);
	add(&sum->bios, 1);
	if (key.ino && becomes_large(sum->bytes, bytes, LARGE_BYTES))
		keep_large_path(&file);
	return 0;
}

/* Since 7.0 a task may be preempted within a tracepoint. While a program is interrupted this way, the kernel skips it
 * for other tasks of that CPU. Spare programs behind the first one handle the events that it was skipped for: a program
 * that runs leaves a mark for its task. */
#define MARKS_BITS 13

struct marks {
	__u64 of_task[1 << MARKS_BITS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct marks);
} marks SEC(".maps");

enum place { FIRST, BETWEEN, LAST };

static __always_inline int queue_once(struct bio *bio, enum place place)
{
	__u64 task = bpf_get_current_task(), mark = (__u64)bio, *marked;
	struct counted *counts;
	struct marks *all;
	__u32 zero = 0;

	all = bpf_map_lookup_elem(&marks, &zero);
	if (!all)
		return 0;
	marked = &all->of_task[task * SPREAD >> (64 - MARKS_BITS)];
	if (place != FIRST && *marked == mark) {
		if (place == LAST)
			*marked = 0;
		return 0;
	}
	if (place != LAST)
		*marked = mark;
	if (place != FIRST) {
		counts = bpf_map_lookup_elem(&counted, &zero);
		if (counts)
			add(&counts->taken, 1);
	}
	return queue(bio);
}

static __always_inline int queued_at(__u64 *arguments, enum place place)
{
	/* Until 5.10 the first argument was the queue. */
	if (bpf_core_field_exists(struct bio___bi_disk, bi_disk))
		return queue_once((struct bio *)arguments[1], place);
	return queue_once((struct bio *)arguments[0], place);
}

SEC("tp_btf/block_bio_queue")
int on_block_bio_queue(__u64 *arguments)
{
	RUN(queued_at(arguments, FIRST));
}

SEC("tp_btf/block_bio_queue")
int on_block_bio_queue_spare1(__u64 *arguments)
{
	RUN(queued_at(arguments, BETWEEN));
}

SEC("tp_btf/block_bio_queue")
int on_block_bio_queue_spare2(__u64 *arguments)
{
	RUN(queued_at(arguments, LAST));
}

#endif
