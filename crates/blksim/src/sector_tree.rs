//! Requests in sector order.

use std::collections::BTreeSet;

use crate::request::RequestId;

/// A set of requests ordered by (sector, id).
#[derive(Debug, Default)]
pub struct SectorTree {
    set: BTreeSet<(u64, RequestId)>,
}

impl SectorTree {
    #[inline]
    pub fn insert(&mut self, sector: u64, id: RequestId) {
        self.set.insert((sector, id));
    }

    #[inline]
    pub fn remove(&mut self, sector: u64, id: RequestId) {
        let present = self.set.remove(&(sector, id));
        debug_assert!(present, "request {id} is not at sector {sector}");
    }

    /// The request that follows this one, if any: no wrapping.
    #[inline]
    pub fn after(&self, sector: u64, id: RequestId) -> Option<RequestId> {
        self.set.range((sector, id + 1)..).next().map(|(_, id)| *id)
    }

    /// The request before this one, if any: no wrapping.
    #[inline]
    pub fn before(&self, sector: u64, id: RequestId) -> Option<RequestId> {
        self.set.range(..(sector, id)).next_back().map(|(_, id)| *id)
    }

    /// The lowest request.
    #[inline]
    pub fn first(&self) -> Option<RequestId> {
        self.set.first().map(|(_, id)| *id)
    }

    pub fn len(&self) -> usize {
        self.set.len()
    }

    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }
}
