// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records every bio of some disks from its queueing to its completion.
 *
 * A bio is found by its address, so nothing has to be guessed from sectors: its entry is made when it is
 * queued (block_bio_queue) or split off (block_split), and goes to the ring buffer when the request that
 * holds it completes (block_rq_complete); of a durable write, when the flush after its data has completed.
 * When a request is inserted and issued is noted in the entry of its first bio, from which the others take
 * it: a second table, of requests, would cost as much as the first.
 *
 * These programs run several times for every I/O, so they call the kernel as little as they can: entries are in a
 * hash table of our own in arrays, which the JIT compiler accesses without a call. The kernel's hash map took two
 * thirds of the time.
 *
 * Only the fields that are used are declared below; the loader adjusts their offsets to the running kernel
 * (CO-RE). Build with `scripts/build-bpf`.
 */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define CORE __attribute__((preserve_access_index))
#define FIELD_EXISTS(field) __builtin_preserve_field_info(field, 2)
#define INLINE static inline __attribute__((always_inline))

/* Of include/uapi/linux/bpf.h. */
enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_PERCPU_ARRAY = 6, MAP_RINGBUF = 27 };
enum { BPF_ANY = 0, BPF_RB_NO_WAKEUP = 1 };

static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static long (*map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static u64 (*ktime_get_ns)(void) = (void *)5;
static u32 (*processor_id)(void) = (void *)8;
static long (*read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static void *(*ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*ringbuf_submit)(void *data, u64 flags) = (void *)132;
static void *(*current_task)(void) = (void *)158;
/* Since Linux 5.17. */
static long (*loop)(u32 iterations, void *callback, void *context, u64 flags) = (void *)181;

char LICENSE[] SEC("license") = "GPL";

/* The kernel's types. */
struct gendisk { int major; int first_minor; } CORE;
struct block_device { struct gendisk *bd_disk; } CORE;
struct kernfs_node { u64 id; } CORE;
struct cgroup { struct kernfs_node *kn; } CORE;
struct cgroup_subsys_state { struct cgroup *cgroup; } CORE;
struct blkcg { struct cgroup_subsys_state css; } CORE;
struct blkcg_gq { struct blkcg *blkcg; } CORE;
struct bvec_iter { u64 bi_sector; u32 bi_size; } CORE;
struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	u32 bi_opf;
	u16 bi_ioprio;
	u8 bi_status;
	struct bvec_iter bi_iter;
	void *bi_private;
	struct blkcg_gq *bi_blkg;
} CORE;
struct request_queue { struct gendisk *disk; } CORE;
struct request {
	struct request_queue *q;
	u32 cmd_flags;
	u32 __data_len;
	struct bio *bio;
	u16 nr_phys_segments;
	u16 ioprio;
	void *end_io;
} CORE;
struct task_struct { int pid; int tgid; char comm[16]; } CORE;

#define REQ_OP_MASK 0xff
#define REQ_OP_FLUSH 2
#define REQ_OP_DRV_IN 34
#define REQ_OP_DRV_OUT 35
#define REQ_FUA (1u << 17)
#define REQ_PREFLUSH (1u << 18)
#define BLK_STS_AGAIN 12
#define IOPRIO_UNKNOWN 0xffff
#define MOST_DEVICES 32
/* More bios than a request has: 256 segments of one page each. */
#define MOST_BIOS 1024

/* Set by the loader: numbers as in MKDEV. */
const volatile u32 nr_devices = 1;
const volatile u32 devices[MOST_DEVICES] = {};

/* A bio under way. All times are of CLOCK_MONOTONIC; 0 is never. */
struct entry {
	u64 queued;
	u64 split;
	u64 merged;
	/* Of its request, in the entry of the request's first bio. */
	u64 inserted;
	u64 issued;
	u64 sector;
	u64 cgroup;
	u64 comm[2];
	u32 bytes;
	u32 opf;
	u32 tgid;
	u32 tid;
	u32 device;
	/* The processor that queued it. */
	u32 processor;
	/* Bytes of it that are complete, where a driver completes a request piece by piece. */
	u32 done;
	/* Pieces of memory that lie apart, of a bio that is a request by itself; 0 if nobody knows. */
	u32 segments;
};

enum kind { KIND_IO = 0, KIND_FORK = 1, KIND_EXIT = 2 };

/* What goes to user space; crates/blkcapture/src/bpf/event.rs reads it. With its header in the ring: two cache lines. */
struct event {
	struct entry entry;
	u64 completed;
	u16 kind;
	u16 ioprio;
	u16 error;
	u16 unused;
};

enum counter { LOST = 0, UNMATCHED = 1, COUNTERS = 2 };

#define MAP(name, map_type, key_type, value_type, entries)                                             \
	struct {                                                                                       \
		int (*type)[map_type];                                                                 \
		key_type *key;                                                                         \
		value_type *value;                                                                     \
		int (*max_entries)[entries];                                                           \
	} name SEC(".maps")

/*
 * The table of bios: each is in one of the places of the bucket that its address gives. With 32,768 bios under way one
 * bucket in a million has too few places.
 */
#define BUCKETS_LOG2 13
#define BUCKETS (1 << BUCKETS_LOG2)
#define PLACES 16

/* The keys of bios; 0 is a free place. */
struct bucket {
	u64 keys[PLACES];
};

MAP(buckets, MAP_ARRAY, u32, struct bucket, BUCKETS);
/* Of all places, bucket by bucket. */
MAP(entries, MAP_ARRAY, u32, struct entry, BUCKETS * PLACES);
MAP(flushes, MAP_HASH, u32, u64, 64);
MAP(counters, MAP_PERCPU_ARRAY, u32, u64, COUNTERS);

struct {
	int (*type)[MAP_RINGBUF];
	int (*max_entries)[1 << 24];
} ring SEC(".maps");

INLINE void count(u32 counter)
{
	u64 *value = map_lookup(&counters, &counter);

	if (value)
		*value += 1;
}

/* The number of a disk that is to be recorded, or 0. */
INLINE u32 recorded(struct gendisk *disk)
{
	u32 number = (u32)disk->major << 20 | (u32)disk->first_minor;

	for (u32 index = 0; index < MOST_DEVICES; index++) {
		if (index >= nr_devices)
			break;
		if (devices[index] == number)
			return number;
	}
	return 0;
}

/*
 * The key of a bio, or of none: its address, negated. The verifier lets nobody multiply an address, but takes the
 * negative of one for a number. So do those of all kernels with these tracepoints, whether they know the address as one
 * (an argument) or as a number (a field of type void *). The compiler must not undo it.
 */
INLINE u64 key_of(const void *bio)
{
	u64 key = (u64)bio;

	asm("%0 = -%0" : "+r"(key));
	return key;
}

INLINE u32 bucket_of(u64 key)
{
	/* 2⁶⁴ over the golden ratio: addresses differ in their middle bits. */
	return key * 0x9e3779b97f4a7c15 >> (64 - BUCKETS_LOG2);
}

INLINE struct entry *entry_at(u32 bucket, u32 place)
{
	u32 index = bucket * PLACES + place;

	return map_lookup(&entries, &index);
}

/* The entry of a bio, or null. */
INLINE struct entry *find(u64 key)
{
	u32 number = bucket_of(key);
	struct bucket *bucket = map_lookup(&buckets, &number);

	if (!key || !bucket)
		return 0;
	for (u32 place = 0; place < PLACES; place++)
		if (bucket->keys[place] == key)
			return entry_at(number, place);
	return 0;
}

/* A place for a bio that has none; null if there is no room. Its entry has what the bio before has left. */
INLINE struct entry *add(u64 key)
{
	u32 number = bucket_of(key);
	struct bucket *bucket = map_lookup(&buckets, &number);

	if (!bucket)
		return 0;
	for (u32 place = 0; place < PLACES; place++) {
		u64 *there = &bucket->keys[place];

		if (!*there && !__sync_val_compare_and_swap(there, 0, key))
			return entry_at(number, place);
	}
	return 0;
}

/* Frees a bio's place. Its entry has been read by then: ringbuf_submit is a full barrier. */
INLINE void forget(u64 key)
{
	u32 number = bucket_of(key);
	struct bucket *bucket = map_lookup(&buckets, &number);

	if (!bucket)
		return;
	for (u32 place = 0; place < PLACES; place++) {
		if (bucket->keys[place] == key) {
			bucket->keys[place] = 0;
			return;
		}
	}
}

INLINE void give_unfinished(struct entry *entry)
{
	struct event *event = ringbuf_reserve(&ring, sizeof(*event), 0);

	if (!event)
		return;
	event->entry = *entry;
	event->completed = 0;
	event->kind = KIND_IO;
	event->ioprio = IOPRIO_UNKNOWN;
	event->error = 0;
	ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

/* The entry of a bio that begins; null if there is no room. */
INLINE struct entry *begin(u64 key)
{
	struct entry *entry = find(key);

	if (entry) {
		/* The end of the bio that had this address before was missed. */
		count(LOST);
		give_unfinished(entry);
		return entry;
	}
	entry = add(key);
	if (!entry)
		count(LOST);
	return entry;
}

SEC("tp_btf/block_bio_queue")
int bio_queue(u64 *ctx)
{
	struct bio *bio = (struct bio *)ctx[0];
	struct task_struct *task;
	struct entry *entry;
	u32 device = recorded(bio->bi_bdev->bd_disk);
	u64 *comm;

	if (!device)
		return 0;
	entry = begin(key_of(bio));
	if (!entry)
		return 0;
	task = current_task();
	comm = (u64 *)task->comm;
	entry->queued = ktime_get_ns();
	entry->split = 0;
	entry->merged = 0;
	entry->inserted = 0;
	entry->issued = 0;
	entry->sector = bio->bi_iter.bi_sector;
	entry->cgroup = bio->bi_blkg->blkcg->css.cgroup->kn->id;
	entry->comm[0] = comm[0];
	entry->comm[1] = comm[1];
	entry->bytes = bio->bi_iter.bi_size;
	entry->opf = bio->bi_opf;
	entry->tgid = task->tgid;
	entry->tid = task->pid;
	entry->device = device;
	entry->processor = processor_id();
	entry->done = 0;
	entry->segments = 0;
	return 0;
}

/* The front part of a bio gets an address of its own; the rest keeps the one that was queued. */
SEC("tp_btf/block_split")
int bio_split(u64 *ctx)
{
	struct bio *bio = (struct bio *)ctx[0];
	struct entry *rest = find(key_of(bio->bi_private)), *front;
	u32 bytes;

	if (!rest)
		return 0;
	front = begin(key_of(bio));
	rest->split = ktime_get_ns();
	bytes = bio->bi_iter.bi_size;
	if (front) {
		*front = *rest;
		front->bytes = bytes;
	}
	rest->sector += bytes >> 9;
	rest->bytes -= bytes;
	return 0;
}

INLINE int merged(struct bio *bio)
{
	struct entry *entry = find(key_of(bio));

	if (entry && !entry->merged)
		entry->merged = ktime_get_ns();
	return 0;
}

SEC("tp_btf/block_bio_backmerge")
int bio_backmerge(u64 *ctx)
{
	return merged((struct bio *)ctx[0]);
}

SEC("tp_btf/block_bio_frontmerge")
int bio_frontmerge(u64 *ctx)
{
	return merged((struct bio *)ctx[0]);
}

SEC("tp_btf/block_rq_insert")
int rq_insert(u64 *ctx)
{
	struct request *request = (struct request *)ctx[0];
	struct entry *entry;

	if (!recorded(request->q->disk))
		return 0;
	entry = find(key_of(request->bio));
	if (entry)
		entry->inserted = ktime_get_ns();
	return 0;
}

SEC("tp_btf/block_rq_issue")
int rq_issue(u64 *ctx)
{
	struct request *request = (struct request *)ctx[0];
	u32 device = recorded(request->q->disk);
	struct entry *entry, *next;
	u64 now;

	if (!device)
		return 0;
	if ((request->cmd_flags & REQ_OP_MASK) == REQ_OP_FLUSH) {
		now = ktime_get_ns();
		map_update(&flushes, &device, &now, BPF_ANY);
		return 0;
	}
	entry = find(key_of(request->bio));
	if (!entry)
		return 0;
	entry->issued = ktime_get_ns();
	entry->segments = request->bio->bi_next ? 0 : request->nr_phys_segments;
	if (!entry->inserted && entry->merged) {
		/* A bio that was put in front of a request after the request's insertion. */
		next = find(key_of(request->bio->bi_next));
		if (next)
			entry->inserted = next->inserted;
	}
	return 0;
}

INLINE void give(struct entry *entry, u16 ioprio, u16 error)
{
	struct event *event = ringbuf_reserve(&ring, sizeof(*event), 0);
	u64 *flush;

	if (!event) {
		count(LOST);
		return;
	}
	if (!entry->issued && !entry->bytes) {
		/* A flush without data is issued as a request of the flush machinery. */
		flush = map_lookup(&flushes, &entry->device);
		if (flush && *flush >= entry->queued)
			entry->issued = *flush;
	}
	event->entry = *entry;
	event->completed = ktime_get_ns();
	event->kind = KIND_IO;
	event->ioprio = ioprio;
	event->error = error;
	ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

/* The bios of a request that complete. */
struct walk {
	/* The address of the next one. */
	u64 bio;
	u64 left;
	u64 inserted;
	u64 issued;
	u16 error;
	/* Of the request; Linux 6.14 leaves it to its bios. */
	u16 ioprio;
};

/* Takes the request's times from an entry that has them, and gives them to one that lacks them. */
INLINE void share_times(struct walk *walk, struct entry *entry)
{
	if (entry->issued)
		walk->issued = entry->issued;
	else
		entry->issued = walk->issued;
	if (entry->inserted)
		walk->inserted = entry->inserted;
	else
		entry->inserted = walk->inserted;
}

/*
 * Whether this completion is that of the data of a durable bio, which ends later. Where the disk has a cache and makes
 * no write durable by itself, the flush machinery (block/blk-flush.c) completes the request twice: at the end of the
 * data, while its own function is in end_io, and with 0 bytes after the last flush, when it has put back the old one.
 * Only then the bio ends. No other request of bios that were queued has an end_io.
 */
INLINE int flush_follows(const struct request *request)
{
	return request->end_io != 0;
}

/* One bio, with its priority, and its request if it is the first one there; 1 ends the walk. */
INLINE long give_bio(struct walk *walk, struct bio *bio, u64 key, u16 ioprio, struct request *request)
{
	struct entry *entry = find(key);
	u32 bytes = 0;

	if (entry) {
		share_times(walk, entry);
		bytes = entry->bytes - entry->done;
		/* Such bios are never merged, so one is the first of its request; of others nothing more is read. */
		if (request && entry->opf & (REQ_FUA | REQ_PREFLUSH)) {
			if (flush_follows(request))
				return 1;
			/* After the flush. A driver that tries a request again completes 0 bytes too, but has data left. */
			if (!walk->left && !request->__data_len)
				bytes = 0;
		}
		/* The rest of the request completes later. */
		if (bytes > walk->left) {
			entry->done += walk->left;
			return 1;
		}
		give(entry, FIELD_EXISTS(((struct request *)0)->ioprio) ? walk->ioprio : ioprio, walk->error);
		forget(key);
	} else {
		/* Its queueing was missed; after the flush of a durable one nothing is left to miss. */
		if (!walk->left)
			return 1;
		read_kernel(&bytes, sizeof(bytes), &bio->bi_iter.bi_size);
		if (bytes > walk->left)
			return 1;
		count(UNMATCHED);
	}
	walk->left -= bytes;
	return 0;
}

static long give_next(u64 index, struct walk *walk)
{
	struct bio *bio = (struct bio *)walk->bio;
	u16 ioprio = 0;

	(void)index;
	if (!FIELD_EXISTS(((struct request *)0)->ioprio))
		read_kernel(&ioprio, sizeof(ioprio), &bio->bi_ioprio);
	if (give_bio(walk, bio, key_of(bio), ioprio, 0))
		return 1;
	if (read_kernel(&walk->bio, sizeof(walk->bio), &bio->bi_next))
		return 1;
	return !walk->bio;
}

SEC("tp_btf/block_rq_complete")
int rq_complete(u64 *ctx)
{
	struct request *request = (struct request *)ctx[0];
	struct bio *bio = request->bio;
	struct walk walk = {};
	u32 op;

	if (!bio || !recorded(request->q->disk))
		return 0;
	op = request->cmd_flags & REQ_OP_MASK;
	/* Commands to the device have bios too, which nobody queues. */
	if (op == REQ_OP_FLUSH || op == REQ_OP_DRV_IN || op == REQ_OP_DRV_OUT)
		return 0;
	/* A blk_status_t; before Linux 5.17 a negative error number. */
	walk.error = (u8)ctx[1];
	walk.left = (u32)ctx[2];
	if (FIELD_EXISTS(request->ioprio))
		walk.ioprio = request->ioprio;
	/* Most requests have one bio, and the kernel's loop costs more than that one. */
	if (give_bio(&walk, bio, key_of(bio), bio->bi_ioprio, request) || !bio->bi_next)
		return 0;
	if (read_kernel(&walk.bio, sizeof(walk.bio), &bio->bi_next))
		return 0;
	loop(MOST_BIOS, give_next, &walk, 0);
	return 0;
}

/*
 * Bios that rq_complete has not given. Those that ended without a request: refused (REQ_NOWAIT without a free tag, to be
 * tried again) or failed. And those of a request that completed in an interrupt while rq_complete ran for another one: the
 * kernel does not run a program within itself. If they were merged, the times of their request's insertion and issue are
 * known of the first one only.
 */
SEC("tp_btf/block_bio_complete")
int bio_complete(u64 *ctx)
{
	struct bio *bio = (struct bio *)ctx[1];
	u64 key = key_of(bio);
	struct entry *entry = find(key);

	if (!entry)
		return 0;
	if (bio->bi_status != BLK_STS_AGAIN)
		give(entry, bio->bi_ioprio, bio->bi_status);
	forget(key);
	return 0;
}

INLINE int task_event(u32 kind, struct task_struct *task, u32 parent)
{
	struct event *event = ringbuf_reserve(&ring, sizeof(*event), 0);

	if (!event) {
		count(LOST);
		return 0;
	}
	event->kind = kind;
	event->entry.queued = ktime_get_ns();
	event->entry.tid = task->pid;
	event->entry.tgid = parent;
	read_kernel(event->entry.comm, sizeof(event->entry.comm), task->comm);
	ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int process_fork(u64 *ctx)
{
	struct task_struct *parent = (struct task_struct *)ctx[0];

	return task_event(KIND_FORK, (struct task_struct *)ctx[1], parent->pid);
}

SEC("tp_btf/sched_process_exit")
int process_exit(u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];

	return task_event(KIND_EXIT, task, task->pid);
}
