/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Part of bytes.bpf.c: how long tasks wait for stable storage, measured in the functions that all such waits pass:
 * fsync and its like, sync, and the sync of a whole filesystem, which an unmount and the sync of an overlay also call.
 * If the kernel allows no programs on functions, ext4's own tracepoints cover its files. The tracepoints of the system
 * calls are not used: while a single one of them is enabled, every system call of every task takes the kernel's slow
 * path. All waits are added up. A wait longer than the threshold also has a record of its own.
 */
#ifndef FLOODLINE_WAITS_BPF_H
#define FLOODLINE_WAITS_BPF_H

enum operation {
	OPERATION_FSYNC,
	OPERATION_FDATASYNC,
	OPERATION_RANGE,
	OPERATION_SYNC,
	OPERATION_SYNC_FILESYSTEM,
};

struct file {
	struct inode *f_inode;
} KERNEL_TYPE;

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} KERNEL_TYPE;

struct files_struct {
	struct fdtable *fdt;
} KERNEL_TYPE;

struct task_struct___files {
	struct files_struct *files;
} KERNEL_TYPE;

#define UNUSED __attribute__((unused))

/* Waits at least this long have a record each. */
#define SLOW_NS 100000000

struct waited_key {
	__u32 epoch;
	enum operation operation;
	__u64 cgroup_ino;
	__u32 tgid;
	__u32 zero;
};

struct waited_entry {
	__u64 count;
	__u64 total_ns;
	__u64 longest_ns;
	char comm[TASK_COMM_LEN];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct waited_key);
	__type(value, struct waited_entry);
} waited SEC(".maps");

/* A long wait that has ended; the clock is CLOCK_MONOTONIC. */
struct slow_key {
	__u32 epoch;
	__u32 tid;
	__u64 since;
};

struct slow_entry {
	__u64 lasted;
	__u64 queued;
	__u64 own;
	__u64 ino;
	__u64 cgroup_ino;
	__u32 dev;
	__u32 tgid;
	enum operation operation;
	/* Of the inode, where that is known. */
	__u32 generation;
	char comm[TASK_COMM_LEN];
};

/* A table, not a ring: too many of them are dropped, not queued. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct slow_key);
	__type(value, struct slow_entry);
} slow SEC(".maps");

/* Bytes of data queued since the program was loaded, by superblock, for tasks that wait for it. Superblocks come and
 * go: the least recently used one is evicted. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u64);
} data_of_superblock SEC(".maps");

/* Waits in progress, by thread. */
struct wait {
	__u64 since;
	/* Data of the superblock queued until the wait began. */
	__u64 queued;
	/* Bytes that the thread queued itself. */
	__u64 own;
	__u64 ino;
	__u32 dev;
	__u32 operation;
	/* Nested waits that have not ended. */
	__u32 inner;
	/* Of the inode, where that is known. */
	__u32 generation;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct wait);
} waiting SEC(".maps");

/* Syncs of whole filesystems nested in another wait, such as that of an overlay's upper filesystem: only the nested
 * sync has the lower superblock and the bytes queued there. */
struct sync_key {
	__u64 superblock;
	__u32 tid;
	__u32 zero;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct sync_key);
	__type(value, struct wait);
} syncing SEC(".maps");

/* Counts queued data for its superblock, and for the wait of the current thread. */
static __always_inline void count_for_waiters(__u32 dev, __u64 bytes)
{
	__u32 tid = bpf_get_current_pid_tgid();
	struct wait *wait = bpf_map_lookup_elem(&waiting, &tid);
	__u64 zero = 0, *sum = entry(&data_of_superblock, &dev, &zero);

	if (sum)
		add(sum, bytes);
	if (wait)
		wait->own += bytes;
}

static __always_inline __u64 data_queued(__u32 dev)
{
	__u64 *sum = bpf_map_lookup_elem(&data_of_superblock, &dev);

	return sum ? *sum : 0;
}

/* Begins a wait. One nested in another, such as that of an overlay's upper file, is part of it: returns the outer
 * wait. */
static __always_inline struct wait *wait_begins(__u32 operation, __u32 dev, __u64 ino, __u32 generation)
{
	struct wait wait = { .since = bpf_ktime_get_ns(), .operation = operation, .dev = dev, .ino = ino };
	__u32 tid = bpf_get_current_pid_tgid();
	struct wait *outer = bpf_map_lookup_elem(&waiting, &tid);

	/* Waits never nest 8 deep: the end of one was missed. */
	if (outer && outer->inner < 8) {
		outer->inner += 1;
		return outer;
	}
	wait.generation = generation;
	if (dev)
		wait.queued = data_queued(dev);
	bpf_map_update_elem(&waiting, &tid, &wait, 0);
	return NULL;
}

/* Records a wait that has ended if it was long. */
static __always_inline int tell(const struct wait *wait, __u32 epoch)
{
	__u64 lasted = bpf_ktime_get_ns() - wait->since, task = bpf_get_current_pid_tgid();
	struct slow_key key = { .epoch = epoch, .tid = task, .since = wait->since };
	struct slow_entry one = {};

	if (lasted < SLOW_NS)
		return 0;
	one.lasted = lasted;
	one.queued = wait->dev ? data_queued(wait->dev) : 0;
	/* If it is less than before, the superblock was evicted meanwhile and counts from 0 again. */
	if (one.queued >= wait->queued)
		one.queued -= wait->queued;
	one.own = wait->own;
	one.ino = wait->ino;
	one.cgroup_ino = bpf_get_current_cgroup_id();
	one.dev = wait->dev;
	one.tgid = task >> 32;
	one.operation = wait->operation;
	one.generation = wait->generation;
	bpf_get_current_comm(&one.comm, sizeof(one.comm));
	return bpf_map_update_elem(&slow, &key, &one, BPF_NOEXIST) ? drop() : 0;
}

/* Adds a wait that has ended, and was not nested, to its process. */
static __always_inline int account(const struct wait *wait)
{
	__u64 lasted = bpf_ktime_get_ns() - wait->since;
	struct waited_entry *sum, none = {};
	struct waited_key key = {};
	struct control *now = begin();

	if (!now)
		return 0;
	bpf_get_current_comm(&none.comm, sizeof(none.comm));
	key.epoch = now->epoch;
	key.operation = wait->operation;
	key.cgroup_ino = bpf_get_current_cgroup_id();
	key.tgid = bpf_get_current_pid_tgid() >> 32;
	sum = entry(&waited, &key, &none);
	if (!sum)
		drop();
	if (sum) {
		add(&sum->count, 1);
		add(&sum->total_ns, lasted);
		raise_to(&sum->longest_ns, lasted);
	}
	return tell(wait, now->epoch);
}

/* Ends the wait of the current thread, or a nested wait: then returns the outer wait, which goes on. */
static __always_inline struct wait *wait_ends(void)
{
	__u32 tid = bpf_get_current_pid_tgid();
	struct wait *wait = bpf_map_lookup_elem(&waiting, &tid), ended;

	if (!wait)
		return NULL;
	if (wait->inner) {
		wait->inner -= 1;
		return wait;
	}
	ended = *wait;
	bpf_map_delete_elem(&waiting, &tid);
	account(&ended);
	return NULL;
}

#define WHOLE_FILE 0x7fffffffffffffffULL

static __always_inline int fsync_begins(struct inode *inode, __u64 end, __u64 datasync)
{
	__u32 operation = datasync & 1 ? OPERATION_FDATASYNC : OPERATION_FSYNC;

	if (end != WHOLE_FILE)
		operation = OPERATION_RANGE;
	wait_begins(operation, inode->i_sb->s_dev, inode->i_ino, inode->i_generation);
	return 0;
}

/* fsync, fdatasync, msync, and writes that must be stable when they return. */
SEC("fentry/vfs_fsync_range")
int on_fsync(__u64 *arguments)
{
	RUN(fsync_begins(((struct file *)arguments[0])->f_inode, arguments[2], arguments[3]));
}

SEC("fexit/vfs_fsync_range")
int on_fsync_done(__u64 *arguments UNUSED)
{
	RUN(wait_ends());
}

static __always_inline int file_begins(struct file *file, int datasync)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);

	wait_begins(datasync ? OPERATION_FDATASYNC : OPERATION_FSYNC, BPF_CORE_READ(inode, i_sb, s_dev),
		    BPF_CORE_READ(inode, i_ino), BPF_CORE_READ(inode, i_generation));
	return 0;
}

/* Compilers inline vfs_fsync_range into fdatasync, and may inline it into fsync: then no call of it is seen. These
 * programs are on the system calls themselves. If these call vfs_fsync_range, that call is nested in the same wait. */
#if defined(TARGET_x86_64)
struct pt_regs {
	unsigned long di;
} KERNEL_TYPE;
#define SYSTEM_CALL(name) "__x64_sys_" name
#define FIRST_ARGUMENT(registers) BPF_CORE_READ(registers, di)
#elif defined(TARGET_aarch64)
struct pt_regs {
	__u64 regs[31];
} KERNEL_TYPE;
#define SYSTEM_CALL(name) "__arm64_sys_" name
#define FIRST_ARGUMENT(registers) BPF_CORE_READ(registers, regs[0])
#endif

#ifdef SYSTEM_CALL
static __always_inline int descriptor_begins(struct pt_regs *registers, int datasync)
{
	struct task_struct___files *task = (void *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	__u32 number = FIRST_ARGUMENT(registers);
	struct file *file = NULL;

	if (number < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + number);
	return file ? file_begins(file, datasync) : 0;
}

SEC("fentry/" SYSTEM_CALL("fsync"))
int on_fsync_call(__u64 *arguments)
{
	RUN(descriptor_begins((struct pt_regs *)arguments[0], 0));
}

SEC("fexit/" SYSTEM_CALL("fsync"))
int on_fsync_call_done(__u64 *arguments UNUSED)
{
	RUN(wait_ends());
}

SEC("fentry/" SYSTEM_CALL("fdatasync"))
int on_fdatasync_call(__u64 *arguments)
{
	RUN(descriptor_begins((struct pt_regs *)arguments[0], 1));
}

SEC("fexit/" SYSTEM_CALL("fdatasync"))
int on_fdatasync_call_done(__u64 *arguments UNUSED)
{
	RUN(wait_ends());
}
#endif

SEC("fentry/ksys_sync")
int on_sync(__u64 *arguments UNUSED)
{
	RUN(wait_begins(OPERATION_SYNC, 0, 0, 0));
}

SEC("fexit/ksys_sync")
int on_sync_done(__u64 *arguments UNUSED)
{
	RUN(wait_ends());
}

/* This tracepoint does not distinguish a range from a whole file. */
SEC("raw_tp/ext4_sync_file_enter")
int on_ext4_sync_file(__u64 *arguments)
{
	RUN(file_begins((struct file *)arguments[0], arguments[1]));
}

SEC("raw_tp/ext4_sync_file_exit")
int on_ext4_sync_file_done(__u64 *arguments UNUSED)
{
	RUN(wait_ends());
}

/* An unmount is timed here, not in its system call, which returns before the work is done. */
static __always_inline int sync_begins(struct super_block *sb)
{
	struct sync_key key = { .superblock = (__u64)sb, .tid = bpf_get_current_pid_tgid() };
	struct wait part = { .since = bpf_ktime_get_ns(), .operation = OPERATION_SYNC_FILESYSTEM };
	struct wait *outer = wait_begins(OPERATION_SYNC_FILESYSTEM, sb->s_dev, 0, 0);

	if (!outer)
		return 0;
	part.dev = sb->s_dev;
	part.queued = data_queued(part.dev);
	part.own = outer->own;
	bpf_map_update_elem(&syncing, &key, &part, 0);
	return 0;
}

static __always_inline int sync_ends(__u64 superblock)
{
	struct sync_key key = { .superblock = superblock, .tid = bpf_get_current_pid_tgid() };
	struct wait *outer = wait_ends(), *part, ended;
	struct control *now;

	if (!outer)
		return 0;
	part = bpf_map_lookup_elem(&syncing, &key);
	now = begin();
	if (!part || !now)
		return 0;
	ended = *part;
	ended.own = outer->own - part->own;
	bpf_map_delete_elem(&syncing, &key);
	return tell(&ended, now->epoch);
}

SEC("fentry/sync_filesystem")
int on_sync_filesystem(__u64 *arguments)
{
	RUN(sync_begins((struct super_block *)arguments[0]));
}

SEC("fexit/sync_filesystem")
int on_sync_filesystem_done(__u64 *arguments)
{
	RUN(sync_ends(arguments[0]));
}

#endif
