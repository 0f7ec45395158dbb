/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Part of bytes.bpf.c: dirty pages dropped before they were written, because their file is truncated or removed. No
 * tracepoint reports them: they are counted only if programs may be attached to functions. They count for the process
 * that dirtied the file last, which need not be the one that drops them.
 */
#ifndef FLOODLINE_CANCELLED_BPF_H
#define FLOODLINE_CANCELLED_BPF_H

struct cancelled_key {
	__u32 epoch;
	__u32 dev;
	/* 0: all files without an entry of their own. */
	__u64 ino;
	/* Of the inode. */
	__u32 generation;
	/* The process that dirtied the file last. */
	__u32 tgid;
};

struct cancelled_entry {
	__u64 pages;
	/* Of that process. */
	__u64 cgroup_ino;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct cancelled_key);
	__type(value, struct cancelled_entry);
} cancelled SEC(".maps");

/* Sums by process without files, for files that find no room in `cancelled`. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct cancelled_key);
	__type(value, struct cancelled_entry);
} cancelled_unnamed SEC(".maps");

static __always_inline int cancel(struct inode *inode, __u64 pages)
{
	struct cancelled_entry *sum = NULL, empty = {};
	struct cancelled_key key = {};
	struct file_key file = {};
	struct control *now;
	struct owner *owner;

	now = begin();
	if (!inode || !now || now->shed >= SHED_DIRTIED)
		return 0;
	file.ino = inode->i_ino;
	file.dev = inode->i_sb->s_dev;
	file.generation = inode->i_generation;
	/* Skip files that were not seen to become dirty, such as those of a filesystem in memory. */
	owner = bpf_map_lookup_elem(&owners, &file);
	if (!owner)
		return 0;
	key.epoch = now->epoch;
	key.dev = file.dev;
	key.tgid = owner->tgid;
	empty.cgroup_ino = owner->cgroup_ino;
	if (now->shed < SHED_FILES) {
		key.ino = file.ino;
		key.generation = file.generation;
		sum = entry(&cancelled, &key, &empty);
	}
	if (!sum) {
		key.ino = key.generation = 0;
		sum = entry(&cancelled_unnamed, &key, &empty);
	}
	if (!sum)
		return drop();
	add(&sum->pages, pages);
	return 0;
}

/* Returns whether `place` holds the mapping of a file: if one of its two lowest bits is set, it is not a mapping. A
 * helper reads it, because the verifier takes the first member of the union, a pointer. */
static __always_inline int is_of_file(const void *place)
{
	__u64 mapping = 0;

	bpf_probe_read_kernel(&mapping, sizeof(mapping), place);
	return mapping && !(mapping & 3);
}

/* Argument: a folio. Since 5.16. */
SEC("fentry/__folio_cancel_dirty")
int on_cancelled_folio(__u64 *arguments)
{
	struct folio *folio = (struct folio *)arguments[0];

	RUN(is_of_file(__builtin_preserve_access_index(&folio->mapping)) ? cancel(folio->mapping->host, folio_pages(folio)) : 0);
}

/* Argument: a page. Before 5.16. */
SEC("fentry/__cancel_dirty_page")
int on_cancelled_page(__u64 *arguments)
{
	struct page *page = (struct page *)arguments[0];

	RUN(is_of_file(__builtin_preserve_access_index(&page->mapping)) ? cancel(page->mapping->host, 1) : 0);
}

#endif
