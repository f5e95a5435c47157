//! The plug (`struct blk_plug`): requests that a task collects before they go to
//! the scheduler (`blk_flush_plug_list` of `block/blk-mq.c`, Linux 6.1).

use super::disk::Merging;
use super::layer::BlockLayer;
use super::per_hctx::{Hctx, HctxNumber, OnlyHctx};
use super::request::{Fifo, Merge, RequestId};
use crate::elevator::scheduler::Family;

/// Requests after which a plug is flushed (6.1; 16 in 4.16).
const PLUG_REQUESTS: u32 = 32;
const PLUG_REQUESTS_LEGACY: u32 = 16;
/// A plug is flushed once its newest request is this large: 128 KiB.
const PLUG_FLUSH_SECTORS: u32 = 256;

/// The reason for flushing a plug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlugFlush {
    /// The task has submitted all it wants, or the plug is full.
    AtEnd,
    /// The task goes to sleep: the queue's worker runs the queue.
    ForSleep,
}

impl BlockLayer {
    pub(crate) fn add_to_plug(&mut self, plug: &mut Fifo, disk: usize, id: RequestId) {
        let limit = match self.disks[disk].family {
            Family::Legacy => PLUG_REQUESTS_LEGACY,
            Family::MultiQueue => PLUG_REQUESTS,
        };
        let newest_is_large = self.disks[disk].merging != Merging::Never
            && plug.tail().is_some_and(|tail| self.requests[tail].nr_sectors >= PLUG_FLUSH_SECTORS);
        if plug.len() >= limit || newest_is_large {
            self.flush_plug(std::mem::take(plug), PlugFlush::AtEnd);
        }
        plug.push_back(&mut self.requests, id);
    }

    /// Hands the requests of a plug to the scheduler.
    pub(crate) fn flush_plug(&mut self, mut plug: Fifo, why: PlugFlush) {
        if plug.is_empty() {
            return;
        }
        let mut touched = 0_u64;
        let cpu = plug.head().map_or(self.cpu, |head| self.requests[head].cpu);
        if plug
            .head()
            .is_some_and(|id| self.disks[self.requests[id].disk as usize].family == Family::Legacy)
        {
            self.flush_sorted(plug, &mut touched);
        } else {
            let mut order = std::mem::take(&mut self.scratch);
            order.clear();
            while let Some(id) = plug.pop_front(&mut self.requests) {
                order.push(id);
            }
            // The members of an array may switch their schedulers one after the other.
            let direct = |&id: &RequestId| self.disks[self.requests[id].disk as usize].direct;
            if why == PlugFlush::AtEnd && order.iter().all(direct) {
                // Requests issued to the driver straight from the plug went newest first once.
                if !self.plug_issues_oldest_first(&order) {
                    order.reverse();
                }
                for id in order.drain(..) {
                    let disk = self.requests[id].disk as usize;
                    if self.disks[disk].view.facts.has_one_hctx() {
                        self.issue_directly(disk, OnlyHctx, id);
                    } else {
                        let hctx = self.disks[disk].hctx_of(&self.requests[id]);
                        self.issue_directly(disk, HctxNumber(hctx), id);
                    }
                }
            }
            for id in order.drain(..) {
                let disk = self.requests[id].disk as usize;
                touched |= 1 << disk;
                if self.disks[disk].view.facts.has_one_hctx() {
                    self.insert_or_merge(disk, OnlyHctx, id);
                    continue;
                }
                let moved = self.requests[id].cpu != cpu;
                let hctx = HctxNumber(self.disks[disk].hctx_of(&self.requests[id]));
                self.insert_or_merge(disk, hctx, id);
                if moved {
                    // The task has moved to another processor with its plug.
                    self.run_soon(disk, hctx);
                }
            }
            self.scratch = order;
        }
        while touched != 0 {
            let disk = touched.trailing_zeros() as usize;
            touched &= touched - 1;
            let hctx = self.disks[disk].view.facts.hctx_of(cpu);
            if why == PlugFlush::ForSleep {
                self.run_queue_soon(disk, hctx);
            } else {
                self.run_queue(disk, hctx);
            }
        }
    }

    fn plug_issues_oldest_first(&self, order: &[RequestId]) -> bool {
        order.first().is_some_and(|&id| {
            let disk = &self.disks[self.requests[id].disk as usize];
            disk.view.facts.behaviours.plug_issues_oldest_first
        })
    }

    /// Flushes a plug as legacy kernels do: by disk and sector, trying a back merge for each
    /// request.
    pub(crate) fn flush_sorted(&mut self, mut plug: Fifo, touched: &mut u64) {
        let mut order = std::mem::take(&mut self.scratch);
        order.clear();
        while let Some(id) = plug.pop_front(&mut self.requests) {
            order.push(id);
        }
        order.sort_unstable_by_key(|&id| (self.requests[id].disk, self.requests[id].sector, id));
        for &id in &order {
            let disk = self.requests[id].disk as usize;
            *touched |= 1 << disk;
            self.insert_or_merge(disk, OnlyHctx, id);
        }
        self.scratch = order;
    }

    /// Joins a request to the held one that it follows, or puts it into the scheduler.
    #[inline(never)]
    pub(crate) fn insert_or_merge(&mut self, disk: usize, hctx: impl Hctx, id: RequestId) {
        let queue = &self.disks[disk];
        let before = if queue.indexed && queue.nr_held > 0 && queue.merging == Merging::Full {
            self.ending_at(disk, self.requests[id].sector)
                .filter(|&held| self.fit(disk, held, id) && self.may_join(disk, held, id))
        } else {
            None
        };
        if let Some(request) = before {
            self.give_tag_back(disk, id);
            self.join_held(disk, request, id, Merge::Back);
        } else {
            self.disks[disk].insert(hctx, &mut self.requests, &mut self.events, id);
            let queue = &self.disks[disk];
            if queue.family == Family::Legacy && queue.view.kicked {
                // At once, before the plug's next request (`cfq_rq_enqueued`).
                self.run_queue_of(disk, hctx);
            }
        }
    }
}
