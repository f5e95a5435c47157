//! Shallow depths (`limit_depth`): limits on tags, so that requests without waiters do not fill the
//! device's queue.
//!
//! Kernel: `bfq_update_depths` and `bfq_limit_depth` in `block/bfq-iosched.c`,
//! Linux 6.1.

use super::Bfq;
use crate::block::queue_facts::{QueueFacts, in_proportion};
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
    ///
    /// Since 6.12 these are parts of the whole map. Until 7.0 the kernel notifies the scheduler of a new
    /// `nr_requests` just before it is set: it sees `known_requests` (`blk_mq_update_nr_requests`).
    pub fn new(queue: &QueueFacts, known_requests: u32) -> Self {
        if queue.behaviours.async_depth_of_queue {
            return Self::of_queue(queue);
        }
        if queue.behaviours.shallow_depth_of_map {
            let depth = |sixteenths: u32| {
                let all = (known_requests * sixteenths / 16).max(1);
                Depth { word: all, all }
            };
            let shares = [[depth(8), depth(12)], [depth(3), depth(6)]];
            return Self { nr_requests: queue.nr_requests, shares };
        }
        let (nr_requests, bits_per_word) = (queue.nr_requests, queue.bits_per_word);
        let depth = |sixteenths: u32| {
            let word = (bits_per_word * sixteenths / 16).max(1);
            Depth { word, all: nr_requests * word / bits_per_word }
        };
        Self { nr_requests, shares: [[depth(8), depth(12)], [depth(3), depth(6)]] }
    }

    /// Shares of the queue's `async_depth`, three quarters of its requests (`bfq_depth_updated`, Linux 7.3).
    fn of_queue(queue: &QueueFacts) -> Self {
        let (initial, nr_requests) = (queue.initial_requests, queue.nr_requests);
        let async_depth = in_proportion(initial * 3 / 4, initial, nr_requests);
        let depth = |all: u32| Depth { word: all.max(1), all: all.max(1) };
        Self {
            nr_requests,
            shares: [
                [depth(async_depth * 2 / 3), depth(async_depth)],
                [depth(async_depth / 4), depth(async_depth / 2)],
            ],
        }
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
    use crate::block::kernel_version::Behaviours;

    #[test]
    fn depths_are_shares_of_each_word() {
        let depths = Depths::new(&QueueFacts::TYPICAL, 64);
        let all = depths.shares.map(|raised| raised.map(|depth| (depth.word, depth.all)));
        assert_eq!(all, [[(8, 32), (12, 48)], [(3, 12), (6, 24)]]);
        // Words of two tags always allow one.
        let few = QueueFacts { nr_requests: 4, bits_per_word: 2, ..QueueFacts::TYPICAL };
        let few = Depths::new(&few, 4).shares.map(|raised| raised.map(|depth| depth.word));
        assert_eq!(few, [[1, 1], [1, 1]]);
    }

    #[test]
    fn later_depths_are_shares_of_the_queues() {
        let queue = QueueFacts { behaviours: Behaviours::V7_3, ..QueueFacts::TYPICAL };
        let all = Depths::new(&queue, 64).shares.map(|raised| raised.map(|depth| depth.all));
        assert_eq!(all, [[32, 48], [12, 24]]);
    }

    /// In 6.12 bfq learns of 64 requests while the queue still has 8.
    #[test]
    fn depths_of_6_12_are_shares_of_the_map_as_it_was() {
        let queue = QueueFacts { behaviours: Behaviours::V6_12, ..QueueFacts::TYPICAL };
        let all = Depths::new(&queue, 8).shares.map(|raised| raised.map(|depth| depth.all));
        assert_eq!(all, [[4, 6], [1, 3]]);
    }
}
