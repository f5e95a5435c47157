//! Shallow depths (`limit_depth`): limits on tags, so that requests without waiters do not fill the
//! device's queue.
//!
//! Kernel: `bfq_update_depths` and `bfq_limit_depth` in `block/bfq-iosched.c`,
//! Linux 6.1.

use super::Bfq;
use crate::block::request::{Operation, Request};

/// The limits, for each word of the sbitmap and for all tags.
#[derive(Debug, Clone, Copy)]
struct Depth {
    word: u32,
    all: u32,
}

/// Fractions for async requests and sync writes, without and with raised queues.
#[derive(Debug, Clone)]
pub(super) struct Depths {
    nr_requests: u32,
    /// Indexed by whether a queue is raised, and whether the request is sync.
    shares: [[Depth; 2]; 2],
}

impl Depths {
    /// Async requests get half of each word, sync writes three quarters, and both much less while a
    /// queue is raised.
    pub fn new(nr_requests: u32, bits_per_word: u32) -> Self {
        let depth = |sixteenths: u32| {
            let word = (bits_per_word * sixteenths / 16).max(1);
            Depth { word, all: nr_requests * word / bits_per_word }
        };
        Self { nr_requests, shares: [[depth(8), depth(12)], [depth(3), depth(6)]] }
    }
}

impl Bfq {
    /// Tags of each word that a request may use, if not all: sync reads may use all; a queue above
    /// its share by weight gets one.
    #[inline]
    pub(super) fn limit_depth(&self, bio: &Request) -> Option<u32> {
        let sync = bio.flags.sync;
        let limited = !sync || bio.operation != Operation::Read;
        let depth =
            limited.then(|| self.depths.shares[usize::from(self.nr_raised > 0)][usize::from(sync)]);
        let limit = depth.map_or(self.depths.nr_requests, |depth| depth.all);
        let over = self
            .queue_for_merge(bio)
            .is_some_and(|q| self.hierarchy.over_share(self.queue(q).entity, limit));
        if over { Some(1) } else { depth.map(|depth| depth.word) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_are_shares_of_each_word() {
        let depths = Depths::new(64, 16);
        let all = depths.shares.map(|raised| raised.map(|depth| (depth.word, depth.all)));
        assert_eq!(all, [[(8, 32), (12, 48)], [(3, 12), (6, 24)]]);
        // Words of two tags always allow one.
        let few = Depths::new(4, 2).shares.map(|raised| raised.map(|depth| depth.word));
        assert_eq!(few, [[1, 1], [1, 1]]);
    }
}
