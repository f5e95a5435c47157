//! A hardware queue of a disk (`struct blk_mq_hw_ctx`, the hctx): its tags, and its way to the device.
//!
//! A disk has one unless its device has several and the machine has several processors. Each then
//! serves some of the processors: the one that a request is submitted on decides
//! ([`QueueFacts::hctx_of`]).
//!
//! [`QueueFacts::hctx_of`]: crate::block::queue_facts::QueueFacts::hctx_of

use std::collections::VecDeque;

use crate::block::queue_facts::QueueFacts;
use crate::block::request::RequestId;
use crate::block::sbitmap::SbitmapQueue;
use crate::core::event::Lock;

#[derive(Debug, Clone)]
pub(crate) struct HwQueue {
    /// blk-mq: the tags (`hctx->sched_tags`, or `hctx->tags` without a scheduler).
    pub tags: SbitmapQueue,
    /// Requests that go before the scheduler's (`hctx->dispatch`).
    pub ahead: VecDeque<RequestId>,
    pub in_flight: u32,
    /// Requests of it that the scheduler holds; counted only where there are several queues.
    pub nr_held: u32,
    /// A request waits for the device to have room: the next completion runs the queue
    /// (`BLK_MQ_S_SCHED_RESTART`).
    pub restart: bool,
    /// The queue's worker is about to run it.
    pub run_pending: bool,
    /// Time at which the worker runs it, if nothing runs it before.
    pub run_at_ns: Option<u64>,
    /// The scheduler's lock, and the time of its last hook, if computing takes time. A scheduler that
    /// does not work by hardware queues has those of the first.
    pub scheduler_lock: Lock,
    pub hook_ns: u64,
    /// The driver's lock, under which it takes a request (`nvmeq->sq_lock`, `vq->lock`, `ap->lock`).
    pub driver_lock: Lock,
}

impl HwQueue {
    pub fn new(facts: QueueFacts, min_shallow_depth: u32) -> Self {
        Self {
            tags: new_tags(facts, min_shallow_depth),
            ahead: VecDeque::new(),
            in_flight: 0,
            nr_held: 0,
            restart: false,
            run_pending: false,
            run_at_ns: None,
            scheduler_lock: Lock::default(),
            hook_ns: 0,
            driver_lock: Lock::default(),
        }
    }

    /// Gives it other tags, none of which is in use.
    pub fn new_tags(&mut self, facts: QueueFacts, min_shallow_depth: u32) {
        self.tags = new_tags(facts, min_shallow_depth);
    }

    /// True if it has no request.
    pub fn is_drained(&self) -> bool {
        self.in_flight == 0 && self.ahead.is_empty() && self.tags.nr_used() == 0
    }
}

fn new_tags(facts: QueueFacts, min_shallow_depth: u32) -> SbitmapQueue {
    SbitmapQueue::new(facts.nr_requests, facts.bits_per_word, min_shallow_depth)
        .with_behaviours(facts.behaviours)
}

/// A hardware queue of a machine, as one number: of a worker, or of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HwQueueId(pub u32);

impl HwQueueId {
    const DISK_BITS: u32 = 8;

    #[inline]
    pub fn new(disk: usize, hctx: usize) -> Self {
        Self(disk as u32 | (hctx as u32) << Self::DISK_BITS)
    }

    #[inline]
    pub fn disk(self) -> usize {
        (self.0 & ((1 << Self::DISK_BITS) - 1)) as usize
    }

    #[inline]
    pub fn hctx(self) -> usize {
        (self.0 >> Self::DISK_BITS) as usize
    }
}
