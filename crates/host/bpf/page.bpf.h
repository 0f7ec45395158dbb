/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Finds the file of a page or folio, on every kernel from 5.10 to 7.2, and the path of a file. Only the fields that are
 * read are declared. Their offsets are found at load time (CO-RE). A structure with three underscores in its name is
 * the form of some releases.
 */
#ifndef FLOODLINE_PAGE_BPF_H
#define FLOODLINE_PAGE_BPF_H

#include "floodline.bpf.h"

struct hlist_node {
	struct hlist_node *next;
} KERNEL_TYPE;

struct hlist_head {
	struct hlist_node *first;
} KERNEL_TYPE;

struct qstr {
	__u32 len;
	const unsigned char *name;
} KERNEL_TYPE;

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
} KERNEL_TYPE;

/* Until 7.1: a named union. */
struct dentry___d_u {
	union {
		struct hlist_node d_alias;
	} d_u;
} KERNEL_TYPE;

struct dentry___d_alias {
	struct hlist_node d_alias;
} KERNEL_TYPE;

struct super_block {
	__u32 s_dev;
} KERNEL_TYPE;

struct inode {
	__u16 i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	__u32 i_generation;
	struct hlist_head i_dentry;
	struct bdi_writeback *i_wb;
} KERNEL_TYPE;

struct address_space {
	struct inode *host;
} KERNEL_TYPE;

struct page {
	struct address_space *mapping;
} KERNEL_TYPE;

/* Before folios (5.16). */
struct page___index {
	unsigned long index;
} KERNEL_TYPE;

struct page___compound_nr {
	unsigned int compound_nr;
} KERNEL_TYPE;

struct page___compound_head {
	unsigned long compound_head;
} KERNEL_TYPE;

/* Since 7.1 or so: the head, or a mask that leads to it. */
struct page___compound_info {
	unsigned long compound_info;
} KERNEL_TYPE;

struct folio {
	struct address_space *mapping;
	unsigned long index;
} KERNEL_TYPE;

struct folio___flags {
	unsigned long flags;
} KERNEL_TYPE;

/* Since 6.18: a structure with one word. */
struct folio_flags_word {
	unsigned long f;
} KERNEL_TYPE;

struct folio___flags_word {
	struct folio_flags_word flags;
} KERNEL_TYPE;

struct folio___folio_nr_pages {
	unsigned int _folio_nr_pages;
} KERNEL_TYPE;

/* Since 6.14 or so. */
struct folio___nr_pages {
	unsigned int _nr_pages;
} KERNEL_TYPE;

enum pageflags {
	PG_head = 0xffff,
};

/* Returns the number of pages of a folio, read through a typed pointer. */
static __always_inline __u64 folio_pages(struct folio *folio)
{
	__u64 flags, pages = 1;

	if (bpf_core_field_exists(struct folio___flags_word, flags.f))
		flags = ((struct folio___flags_word *)folio)->flags.f;
	else
		flags = ((struct folio___flags *)folio)->flags;
	if (flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1) {
		if (bpf_core_field_exists(struct folio___nr_pages, _nr_pages))
			pages = ((struct folio___nr_pages *)folio)->_nr_pages;
		else if (bpf_core_field_exists(struct folio___folio_nr_pages, _folio_nr_pages))
			pages = ((struct folio___folio_nr_pages *)folio)->_folio_nr_pages;
		else if (bpf_core_field_exists(struct page___compound_nr, compound_nr))
			/* In the second page of the folio (5.17 and 5.18). */
			pages = BPF_CORE_READ((struct page___compound_nr *)((void *)folio +
					      bpf_core_type_size(struct page)), compound_nr);
	}
	return pages;
}

/* Returns the word of a page that leads to the head of its folio; odd if the page is a tail page. A helper reads it,
 * because the verifier takes the first member of the union, a pointer. */
static __always_inline __u64 compound_info(struct page *page)
{
	if (bpf_core_field_exists(struct page___compound_head, compound_head))
		return BPF_CORE_READ((struct page___compound_head *)page, compound_head);
	return BPF_CORE_READ((struct page___compound_info *)page, compound_info);
}

/* Returns the head of the folio of a tail page. */
static __always_inline struct page *head_of(struct page *page, __u64 info)
{
	info -= 1;
	/* No array of pages has addresses that high: the word is a mask. */
	if (info >> 40 == 0xffffff)
		return (struct page *)((__u64)page & info);
	return (struct page *)info;
}

#define PATH_DEPTH 10
#define PATH_NAME 48

struct file_key {
	__u64 ino;
	__u32 dev;
	/* Of the inode: it changes when the inode number is reused. */
	__u32 generation;
};

struct file_path {
	/* Number of names, the file's own first. */
	__u32 depth;
	/* Whether the last name is in the root directory. */
	__u32 is_whole;
	/* Names that are truncated, one bit each. */
	__u32 cut;
	__u32 zero;
	char names[PATH_DEPTH][PATH_NAME];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct file_key);
	__type(value, struct file_path);
} paths SEC(".maps");

/* Pages dirtied, or bytes queued, from which on the path of a file is kept in a table of its own: ten thousand small
 * files later in the same interval would evict it from `paths`. */
#define LARGE_PAGES 256
#define LARGE_BYTES (1 << 20)

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 512);
	__type(key, struct file_key);
	__type(value, struct file_path);
} large_paths SEC(".maps");

/* Too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct file_path);
} path_of_cpu SEC(".maps");

/* Keeps the path of a file that has become large, if it is still known. */
static __always_inline void keep_large_path(const struct file_key *key)
{
	struct file_path *path = bpf_map_lookup_elem(&paths, key);

	if (path)
		bpf_map_update_elem(&large_paths, key, path, 0);
}

/* Returns whether an amount that has just grown reached `large` by growing. */
static __always_inline int becomes_large(__u64 amount, __u64 grown, __u64 large)
{
	return amount >= large && amount - grown < large;
}

/* Keeps the path of a file under one of its names, as the dentry cache has it: no lookup is made, so nothing can hang.
 * A file removed before the next sample still has its name. */
static __always_inline int remember_path(struct inode *inode, __u64 ino, __u32 dev, __u32 generation, int anew)
{
	struct file_key key = { .ino = ino, .dev = dev, .generation = generation };
	struct hlist_node *alias;
	struct dentry *dentry, *parent;
	struct file_path *path;
	__u32 zero = 0;

	if (!anew && bpf_map_lookup_elem(&paths, &key))
		return 0;
	path = bpf_map_lookup_elem(&path_of_cpu, &zero);
	alias = BPF_CORE_READ(inode, i_dentry.first);
	if (!path || !alias)
		return 0;
	if (bpf_core_field_exists(struct dentry___d_u, d_u.d_alias))
		dentry = (void *)alias - bpf_core_field_offset(struct dentry___d_u, d_u.d_alias);
	else
		dentry = (void *)alias - bpf_core_field_offset(struct dentry___d_alias, d_alias);
	path->depth = 0;
	path->is_whole = 0;
	path->cut = 0;
	for (int i = 0; i < PATH_DEPTH; i++) {
		parent = BPF_CORE_READ(dentry, d_parent);
		if (!parent)
			return 0;
		if (parent == dentry) {
			path->is_whole = 1;
			break;
		}
		if (bpf_probe_read_kernel_str(path->names[i], PATH_NAME, BPF_CORE_READ(dentry, d_name.name)) < 0)
			return 0;
		if (BPF_CORE_READ(dentry, d_name.len) >= PATH_NAME)
			path->cut |= 1u << i;
		path->depth = i + 1;
		dentry = parent;
	}
	bpf_map_update_elem(&paths, &key, path, 0);
	return 0;
}

#endif
