//! Choosing between two requests for a head at a given sector: the rule that anticipatory, cfq and
//! bfq share.
//!
//! Kernel: `as_choose_req` in `block/as-iosched.c` (2.6.32) and
//! `cfq_choose_req` in `block/cfq-iosched.c` (4.16).
//!
//! Simplified: no request is marked as metadata, so that preference is absent.

use crate::block::request::{RequestId, Requests};
use crate::elevator::sort_list::SortList;

/// The cost of backward seeks compared with forward ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct BackSeek {
    /// Farther back than this counts as the next sweep.
    pub max_sectors: u64,
    /// A sector backwards costs as much as this many forwards.
    pub penalty: u64,
}

impl BackSeek {
    /// The cost of going to `sector`; `None` if it belongs to the next sweep.
    #[inline]
    fn cost(self, head: u64, sector: u64) -> Option<u64> {
        if sector >= head {
            Some(sector - head)
        } else {
            let back = head - sector;
            (back <= self.max_sectors).then(|| back.saturating_mul(self.penalty))
        }
    }

    /// The closer of two requests, the first if they are at one place. Sync goes before async.
    #[inline]
    pub fn closer(self, requests: &Requests, a: RequestId, b: RequestId, head: u64) -> RequestId {
        let (left, right) = (&requests[a], &requests[b]);
        if a == b || left.flags.sync != right.flags.sync {
            return if left.flags.sync { a } else { b };
        }
        if left.sector == right.sector {
            return a;
        }
        let (low, high) = if left.sector <= right.sector { (a, b) } else { (b, a) };
        match (self.cost(head, requests[low].sector), self.cost(head, requests[high].sector)) {
            (Some(lower), Some(higher)) if lower < higher => low,
            (Some(_) | None, None) => low,
            _ => high,
        }
    }

    /// The better of two requests that may not exist.
    #[inline]
    pub fn closer_of(
        self,
        requests: &Requests,
        a: Option<RequestId>,
        b: Option<RequestId>,
        head: u64,
    ) -> Option<RequestId> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.closer(requests, a, b, head)),
            (a, b) => a.or(b),
        }
    }

    /// The request that follows `id`, which is still in `tree`, for a head at `head`: its successor
    /// in sector order (the lowest request after the last), or its predecessor.
    #[inline]
    pub fn following(
        self,
        requests: &Requests,
        tree: &SortList,
        id: RequestId,
        head: u64,
    ) -> Option<RequestId> {
        if tree.len() <= 1 {
            return None;
        }
        let request = &requests[id];
        let after =
            tree.after(request.sector, id).or_else(|| tree.first().filter(|first| *first != id));
        self.closer_of(requests, after, tree.before(request.sector, id), head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::request::{Operation, Purpose, Request};

    const RULE: BackSeek = BackSeek { max_sectors: 1000, penalty: 2 };

    #[test]
    fn forward_is_cheaper_than_back_and_both_than_a_new_sweep() {
        let mut requests = Requests::new();
        let mut at =
            |sector| requests.allocate(Request::new(Operation::Read, sector, 8, Purpose::Direct));
        let (far_back, back, ahead, near) = (at(100), at(1900), at(2150), at(2201));
        let beside = at(2150);
        // Back by 100 costs 200: ahead by 150 is nearer, ahead by 201 is not.
        assert_eq!(RULE.closer(&requests, back, ahead, 2000), ahead);
        assert_eq!(RULE.closer(&requests, back, near, 2000), back);
        assert_eq!(RULE.closer(&requests, far_back, near, 2000), near);
        assert_eq!(RULE.closer(&requests, ahead, beside, 2000), ahead);
        assert_eq!(RULE.closer(&requests, beside, ahead, 2000), beside);
        // Both behind by too much: the sweep restarts at the lower one.
        assert_eq!(RULE.closer(&requests, far_back, back, 9000), far_back);
    }

    #[test]
    fn sync_goes_before_async() {
        let mut requests = Requests::new();
        let read = requests.allocate(Request::new(Operation::Read, 9999, 8, Purpose::Direct));
        let write = requests.allocate(Request::new(Operation::Write, 0, 8, Purpose::Writeback));
        assert_eq!(RULE.closer(&requests, write, read, 0), read);
        assert_eq!(RULE.closer_of(&requests, Some(write), None, 0), Some(write));
    }
}
