// SPDX-License-Identifier: GPL-2.0
/*
 * fifo-deadline: two queues in order of arrival, one for reads and one for
 * writes. The request whose deadline comes first goes first. Reads have the
 * nearer deadline, so they overtake writes, but never for longer than the
 * difference of the two. No request is sorted by its place or merged here.
 *
 * An example for `blklab kernel build --scheduler-file`: see the README.
 */

#include <linux/blkdev.h>
#include <linux/blk-mq.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/version.h>

#include "elevator.h"
#include "blk-mq.h"
#include "blk-mq-sched.h"

#define READ_EXPIRE_MS 20
#define WRITE_EXPIRE_MS 1000

struct fifo_deadline {
	spinlock_t lock;
	/* requests that the block layer wants to go first */
	struct list_head first;
	/* by data direction, in order of arrival */
	struct list_head fifo[2];
	unsigned int expire_ms[2];
};

static int fifo_deadline_init(struct request_queue *q, struct elevator_type *e)
{
	struct elevator_queue *eq = elevator_alloc(q, e);
	struct fifo_deadline *fd;

	if (!eq)
		return -ENOMEM;
	fd = kzalloc_node(sizeof(*fd), GFP_KERNEL, q->node);
	if (!fd) {
		kobject_put(&eq->kobj);
		return -ENOMEM;
	}
	spin_lock_init(&fd->lock);
	INIT_LIST_HEAD(&fd->first);
	INIT_LIST_HEAD(&fd->fifo[READ]);
	INIT_LIST_HEAD(&fd->fifo[WRITE]);
	fd->expire_ms[READ] = READ_EXPIRE_MS;
	fd->expire_ms[WRITE] = WRITE_EXPIRE_MS;
	eq->elevator_data = fd;
	/* one queue for all processors, whatever the hardware has */
	blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, q);
	q->elevator = eq;
	return 0;
}

static void fifo_deadline_exit(struct elevator_queue *eq)
{
	kfree(eq->elevator_data);
}

static void fifo_deadline_add(struct fifo_deadline *fd, struct request *rq,
			      bool at_head)
{
	int dir = rq_data_dir(rq);

	if (at_head) {
		list_add(&rq->queuelist, &fd->first);
		return;
	}
	rq->fifo_time = jiffies + msecs_to_jiffies(fd->expire_ms[dir]);
	list_add_tail(&rq->queuelist, &fd->fifo[dir]);
}

static void fifo_deadline_insert_all(struct blk_mq_hw_ctx *hctx,
				     struct list_head *list, bool at_head)
{
	struct fifo_deadline *fd = hctx->queue->elevator->elevator_data;
	struct request *rq, *next;

	spin_lock(&fd->lock);
	list_for_each_entry_safe(rq, next, list, queuelist) {
		list_del_init(&rq->queuelist);
		fifo_deadline_add(fd, rq, at_head);
	}
	spin_unlock(&fd->lock);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
static void fifo_deadline_insert(struct blk_mq_hw_ctx *hctx,
				 struct list_head *list, blk_insert_t flags)
{
	fifo_deadline_insert_all(hctx, list, flags & BLK_MQ_INSERT_AT_HEAD);
}
#else
static void fifo_deadline_insert(struct blk_mq_hw_ctx *hctx,
				 struct list_head *list, bool at_head)
{
	fifo_deadline_insert_all(hctx, list, at_head);
}
#endif

static struct request *fifo_deadline_next(struct fifo_deadline *fd)
{
	struct request *read, *write;

	if (!list_empty(&fd->first))
		return list_first_entry(&fd->first, struct request, queuelist);
	read = list_first_entry_or_null(&fd->fifo[READ], struct request,
					queuelist);
	write = list_first_entry_or_null(&fd->fifo[WRITE], struct request,
					 queuelist);
	if (!read || !write)
		return read ?: write;
	return time_before((unsigned long)write->fifo_time,
			   (unsigned long)read->fifo_time) ? write : read;
}

static struct request *fifo_deadline_dispatch(struct blk_mq_hw_ctx *hctx)
{
	struct fifo_deadline *fd = hctx->queue->elevator->elevator_data;
	struct request *rq;

	spin_lock(&fd->lock);
	rq = fifo_deadline_next(fd);
	if (rq) {
		list_del_init(&rq->queuelist);
		rq->rq_flags |= RQF_STARTED;
	}
	spin_unlock(&fd->lock);
	return rq;
}

static bool fifo_deadline_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct fifo_deadline *fd = hctx->queue->elevator->elevator_data;

	return !list_empty_careful(&fd->first) ||
		!list_empty_careful(&fd->fifo[READ]) ||
		!list_empty_careful(&fd->fifo[WRITE]);
}

static ssize_t fifo_deadline_show(struct elevator_queue *eq, char *page,
				  int dir)
{
	struct fifo_deadline *fd = eq->elevator_data;

	return sysfs_emit(page, "%u\n", READ_ONCE(fd->expire_ms[dir]));
}

static ssize_t fifo_deadline_store(struct elevator_queue *eq, const char *page,
				   size_t count, int dir)
{
	struct fifo_deadline *fd = eq->elevator_data;
	unsigned int value_ms;
	int error = kstrtouint(page, 10, &value_ms);

	if (error)
		return error;
	WRITE_ONCE(fd->expire_ms[dir], value_ms);
	return count;
}

#define TUNABLE(name, dir)						\
static ssize_t name##_show(struct elevator_queue *eq, char *page)	\
{									\
	return fifo_deadline_show(eq, page, dir);			\
}									\
static ssize_t name##_store(struct elevator_queue *eq,			\
			    const char *page, size_t count)		\
{									\
	return fifo_deadline_store(eq, page, count, dir);		\
}

TUNABLE(read_expire, READ)
TUNABLE(write_expire, WRITE)

static struct elv_fs_entry fifo_deadline_attrs[] = {
	__ATTR(read_expire, 0644, read_expire_show, read_expire_store),
	__ATTR(write_expire, 0644, write_expire_show, write_expire_store),
	__ATTR_NULL
};

static struct elevator_type fifo_deadline = {
	.ops = {
		.init_sched		= fifo_deadline_init,
		.exit_sched		= fifo_deadline_exit,
		.insert_requests	= fifo_deadline_insert,
		.dispatch_request	= fifo_deadline_dispatch,
		.has_work		= fifo_deadline_has_work,
	},
	.elevator_attrs = fifo_deadline_attrs,
	.elevator_name = "fifo-deadline",
	.elevator_owner = THIS_MODULE,
};

static int __init fifo_deadline_register(void)
{
	return elv_register(&fifo_deadline);
}

static void __exit fifo_deadline_unregister(void)
{
	elv_unregister(&fifo_deadline);
}

module_init(fifo_deadline_register);
module_exit(fifo_deadline_unregister);

MODULE_AUTHOR("the blklab contributors");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("reads and writes in order of arrival, by deadline");
