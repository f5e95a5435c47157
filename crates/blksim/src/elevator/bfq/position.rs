//! Positions: the next sectors of queues, to find queues close to a sector.
//!
//! Kernel: `bfq_pos_tree_add_move` and `bfqq_find_close` in `block/bfq-iosched.c`, Linux 6.1. The
//! search stops at the first close queue on its way, or at its neighbour.

use super::Bfq;
use super::hierarchy::{GroupId, QueueId};
use super::merge::CLOSE_SECTORS;
use super::queue::Queue;
use super::red_black::{AFTER, BEFORE, Links, NIL, RedBlack};
use crate::block::request::Requests;

/// Queues with requests by the sector of the next one, for each group (`rq_pos_tree`).
#[derive(Debug, Clone, Default)]
pub(super) struct Positions {
    trees: Vec<RedBlack>,
    links: Vec<Links>,
}

fn sector_of(requests: &Requests, queues: &[Queue], q: QueueId) -> u64 {
    // Only queues with a next request are in the tree.
    queues[q as usize].next.map_or(0, |next| requests[next].sector)
}

/// The end of the search for a sector: the queue exactly there, or the one below which it would be,
/// and the side.
enum Found {
    Exactly(QueueId),
    Below(u32, usize),
}

impl Positions {
    fn search(&self, requests: &Requests, queues: &[Queue], group: GroupId, sector: u64) -> Found {
        let (mut parent, mut side) = (NIL, BEFORE);
        let mut at = self.trees.get(usize::from(group)).map_or(NIL, |tree| tree.root);
        while at != NIL {
            let other = sector_of(requests, queues, at);
            if other == sector {
                return Found::Exactly(at);
            }
            parent = at;
            side = if sector > other { AFTER } else { BEFORE };
            at = self.links[at as usize].child[side];
        }
        Found::Below(parent, side)
    }

    /// A queue whose next request is close to a sector.
    pub fn close_to(
        &self,
        requests: &Requests,
        queues: &[Queue],
        group: GroupId,
        sector: u64,
    ) -> Option<QueueId> {
        let nearest = match self.search(requests, queues, group, sector) {
            Found::Exactly(q) => return Some(q),
            Found::Below(NIL, _) => return None,
            Found::Below(parent, _) => parent,
        };
        let is_close =
            |q: QueueId| sector_of(requests, queues, q).abs_diff(sector) <= CLOSE_SECTORS;
        if is_close(nearest) {
            return Some(nearest);
        }
        let side = if sector_of(requests, queues, nearest) < sector { AFTER } else { BEFORE };
        let neighbour = RedBlack::neighbour(&self.links, nearest, side);
        (neighbour != NIL && is_close(neighbour)).then_some(neighbour)
    }

    fn insert(&mut self, requests: &Requests, queues: &[Queue], q: QueueId) -> bool {
        let Queue { group, next: Some(next), .. } = queues[q as usize] else {
            return false;
        };
        let sector = requests[next].sector;
        while self.trees.len() <= usize::from(group) {
            self.trees.push(RedBlack::default());
        }
        if self.links.len() < queues.len() {
            self.links.resize(queues.len(), Links::default());
        }
        let Found::Below(parent, side) = self.search(requests, queues, group, sector) else {
            return false;
        };
        self.trees[usize::from(group)].link(&mut self.links, q, parent, side);
        true
    }

    fn remove(&mut self, group: GroupId, q: QueueId) {
        self.trees[usize::from(group)].remove(&mut self.links, q);
    }
}

impl Bfq {
    /// The next request of a queue has changed or must be looked at again.
    #[inline]
    pub(super) fn note_position(&mut self, requests: &Requests, q: QueueId) {
        if !self.fast {
            self.move_position(requests, q);
        }
    }

    fn move_position(&mut self, requests: &Requests, q: QueueId) {
        self.forget_position(q);
        if !self.is_old(q) && !self.queue(q).is_idle_class() {
            self.queue_mut(q).positioned = self.positions.insert(requests, &self.queues, q);
        }
    }

    #[inline]
    pub(super) fn forget_position(&mut self, q: QueueId) {
        let group = self.queue(q).group;
        if std::mem::take(&mut self.queue_mut(q).positioned) {
            self.positions.remove(group, q);
        }
    }
}
