//! Merging: a bio joins a request in the plug or in the scheduler (`block/blk-merge.c`, Linux 6.1).

use super::disk::Merging;
use super::layer::BlockLayer;
use super::per_hctx::{HctxNumber, OnlyHctx};
use super::request::{
    Fifo, MAX_DISCARD_SECTORS, Merge, NONE, Operation, Purpose, RequestId, Requests,
};
use crate::block::request_stage::RequestStage;
use crate::elevator::scheduler::Family;

impl BlockLayer {
    /// Joins a bio to a request that it touches, if there is one.
    #[inline]
    pub(crate) fn try_merge(&mut self, plug: Fifo, disk: usize, id: RequestId) -> bool {
        let plugged = !plug.is_empty();
        let held = self.disks[disk].nr_held > 0;
        (plugged || held)
            && self.disks[disk].merging != Merging::Never
            && ((plugged && self.merge_into_plug(plug, disk, id))
                || (held && self.merge_into_held(disk, id)))
    }

    /// Joins a bio to a request that the scheduler holds.
    #[inline(never)]
    pub(crate) fn merge_into_held(&mut self, disk: usize, id: RequestId) -> bool {
        let queue = &mut self.disks[disk];
        let hctx = queue.hctx_of(&self.requests[id]);
        queue.compute_hook(hctx, &mut self.events, |costs| costs.merge_ns);
        let Some((request, side)) = self.find_merge(disk, id) else { return false };
        let joins = self.has_room(disk, request, id);
        if joins {
            self.join_held(disk, request, id, side);
        }
        joins
    }

    #[inline(never)]
    pub(crate) fn merge_into_plug(&mut self, plug: Fifo, disk: usize, id: RequestId) -> bool {
        // 6.1 looks at the newest plugged request only; 4.16 at all of them.
        let newest_only = self.disks[disk].family == Family::MultiQueue;
        let mut candidate = if newest_only { plug.tail() } else { plug.head() };
        while let Some(request) = candidate {
            if let Some(side) = joining_side(&self.requests, request, id) {
                if self.alike(disk, request, id) && self.has_room(disk, request, id) {
                    self.join(disk, request, id, side);
                    return true;
                }
            }
            let next = self.requests[request].next;
            candidate = (!newest_only && next != NONE).then_some(next);
        }
        false
    }

    /// The held request that a bio would join: the one-entry cache first, then by extent, then the
    /// scheduler's own candidates. The limits on size are checked afterwards: if they forbid the
    /// merge, the other candidates are not tried (`elv_merge`).
    #[inline]
    pub(crate) fn find_merge(&mut self, disk: usize, id: RequestId) -> Option<(RequestId, Merge)> {
        if let Some(last) = self.disks[disk].last_merge {
            if let Some(side) = joining_side(&self.requests, last, id) {
                if self.may_join(disk, last, id) {
                    return Some((last, side));
                }
            }
        }
        if self.disks[disk].merging != Merging::Full {
            return None;
        }
        let (sector, end) = (self.requests[id].sector, self.requests[id].end());
        let queue = &self.disks[disk];
        if queue.indexed {
            if let Some(request) = self.ending_at(disk, sector) {
                if self.may_join(disk, request, id) {
                    return Some((request, Merge::Back));
                }
            }
            if queue.scheduler.front_merges() {
                let front = queue.extents.find(&self.requests, Merge::Front, end, |request| {
                    self.may_join(disk, request, id)
                });
                if let Some(request) = front {
                    return Some((request, Merge::Front));
                }
            }
            return None;
        }
        let found = queue.scheduler.merge_candidate(&self.requests, id);
        found.filter(|(request, _)| self.may_join(disk, *request, id))
    }

    /// The newest held request that ends at a sector. It hides older ones (`elv_rqhash_find`).
    #[inline]
    pub(crate) fn ending_at(&self, disk: usize, sector: u64) -> Option<RequestId> {
        let extents = &self.disks[disk].extents;
        extents.find(&self.requests, Merge::Back, sector, |held| {
            !self.requests[held].progress.no_merge()
        })
    }

    /// True if the bio, or a request, is of the kind that may join the request.
    #[inline]
    pub(crate) fn alike(&self, disk: usize, request: RequestId, id: RequestId) -> bool {
        let (a, b) = (&self.requests[request], &self.requests[id]);
        a.operation == b.operation
            && a.disk == b.disk
            && a.flags.sync == b.flags.sync
            && a.group == b.group
            && !(a.progress.no_merge() || b.progress.no_merge())
            && (self.disks[disk].family == Family::Legacy || a.priority == b.priority)
    }

    #[inline]
    pub(crate) fn may_join(&self, disk: usize, request: RequestId, id: RequestId) -> bool {
        self.alike(disk, request, id)
            && self.disks[disk].scheduler.allow_merge(&self.requests, request, id)
    }

    /// True if the two together do not exceed the limit.
    #[inline]
    pub(crate) fn fit(&self, disk: usize, a: RequestId, b: RequestId) -> bool {
        let (queue, (a, b)) = (&self.disks[disk], (&self.requests[a], &self.requests[b]));
        let limit = match (a.operation, a.purpose) {
            (Operation::Discard, _) => MAX_DISCARD_SECTORS,
            (_, Purpose::Writeback) => queue.max_written_sectors,
            _ => queue.max_sectors,
        };
        a.nr_sectors + b.nr_sectors <= limit
    }

    /// True if a request can take in a bio that it touches. One that cannot is never merged again
    /// (`req_set_nomerge`).
    #[inline]
    pub(crate) fn has_room(&mut self, disk: usize, request: RequestId, id: RequestId) -> bool {
        let fit = self.fit(disk, request, id);
        if !fit {
            self.requests[request].progress.set_no_merge();
            let queue = &mut self.disks[disk];
            if queue.last_merge == Some(request) {
                queue.last_merge = None;
            }
        }
        fit
    }

    /// Joins a bio to a request that the scheduler holds, then the grown request to its neighbour
    /// if they touch now.
    pub(crate) fn join_held(
        &mut self,
        disk: usize,
        request: RequestId,
        id: RequestId,
        side: Merge,
    ) {
        let old_sector = self.requests[request].sector;
        let indexed = self.disks[disk].indexed;
        if indexed {
            self.disks[disk].extents.remove(&mut self.requests, request);
        }
        self.join(disk, request, id, side);
        if indexed {
            self.disks[disk].extents.insert(&mut self.requests, request);
        }
        let hctx = self.disks[disk].hctx_of(&self.requests[request]);
        self.disks[disk].schedule(hctx, &mut self.requests, &mut self.events, |s, cx| {
            s.request_merged(cx, request, side, old_sector);
        });
        self.disks[disk].last_merge = Some(request);
        if indexed {
            self.coalesce(disk, request, side);
        }
    }

    /// Joins two requests that have become neighbours (`attempt_merge`).
    pub(crate) fn coalesce(&mut self, disk: usize, request: RequestId, side: Merge) {
        let grown = &self.requests[request];
        let (search, key) = match side {
            Merge::Back => (Merge::Front, grown.end()),
            Merge::Front => (Merge::Back, grown.sector),
        };
        let neighbour = self.disks[disk].extents.find(&self.requests, search, key, |other| {
            other != request
                && self.fit(disk, request, other)
                && self.may_join(disk, request, other)
        });
        let Some(neighbour) = neighbour else { return };
        // The lower of the two stays, as in the kernel.
        let (kept, gone) =
            if side == Merge::Back { (request, neighbour) } else { (neighbour, request) };
        self.absorb(disk, kept, gone);
    }

    pub(crate) fn absorb(&mut self, disk: usize, kept: RequestId, gone: RequestId) {
        self.disks[disk].extents.remove(&mut self.requests, kept);
        self.disks[disk].extents.remove(&mut self.requests, gone);
        let hctx = self.disks[disk].hctx_of(&self.requests[kept]);
        self.disks[disk].schedule(hctx, &mut self.requests, &mut self.events, |s, cx| {
            s.requests_merged(cx, kept, gone);
        });
        let queue = &mut self.disks[disk];
        if queue.view.facts.has_one_hctx() {
            queue.holds_no_longer::<OnlyHctx>(&self.requests[gone]);
        } else {
            queue.holds_no_longer::<HctxNumber>(&self.requests[gone]);
        }
        self.give_tag_back(disk, gone);
        self.join(disk, kept, gone, Merge::Back);
        self.disks[disk].extents.insert(&mut self.requests, kept);
        self.disks[disk].last_merge = Some(kept);
    }

    /// Chains `id`, with its own chain, to `request`, whose extent grows.
    pub(crate) fn join(&mut self, disk: usize, request: RequestId, id: RequestId, side: Merge) {
        let added = &self.requests[id];
        let (sectors, sector, priority) = (added.nr_sectors, added.sector, added.priority);
        let tail = if added.chain_tail == NONE { id } else { added.chain_tail };
        let kept = &mut self.requests[request];
        debug_assert!(
            if side == Merge::Back {
                kept.end() == sector
            } else {
                sector + u64::from(sectors) == kept.sector
            },
            "a bio joins a request that it does not touch"
        );
        kept.nr_sectors += sectors;
        if side == Merge::Front {
            kept.sector = sector;
        }
        // 2.6 and 4.x keep the better of two priorities.
        if (priority.class, priority.level) < (kept.priority.class, kept.priority.level) {
            kept.priority = priority;
        }
        let last = if kept.chain_tail == NONE { request } else { kept.chain_tail };
        kept.chain_tail = tail;
        self.requests[last].chain = id;
        self.requests.step(
            id,
            &[RequestStage::Submitted, RequestStage::Inserted],
            RequestStage::Merged,
        );
        self.disks[disk].counters.merges += 1;
        self.tell_policies(disk, |policy, cx| policy.merged(cx, id, request));
    }
}

/// The side of `request` that the bio touches, if they touch.
#[inline]
fn joining_side(requests: &Requests, request: RequestId, id: RequestId) -> Option<Merge> {
    let (a, b) = (&requests[request], &requests[id]);
    if a.end() == b.sector {
        Some(Merge::Back)
    } else if b.end() == a.sector {
        Some(Merge::Front)
    } else {
        None
    }
}
