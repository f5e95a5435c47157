//! The FIFO queue: requests in order of age, each of which may leave at any time (`fifo_list`).
//!
//! A list through the requests would do, but taking one out of its middle touches both neighbours,
//! which are random ones: with ten thousand requests held, each removal costs two cache misses.
//! Here the order is a ring of its own. A request that leaves frees its place; free places are
//! skipped at the front, and closed up when the ring is full.

use crate::block::request::{NONE, RequestId, Requests};

/// Places at first; a power of two, as all sizes are.
const FIRST_PLACES: usize = 64;

/// Requests from the oldest to the newest. Each keeps the number of its place in
/// [`Request::previous`](crate::block::request::Request::previous).
#[derive(Debug, Clone)]
pub struct FifoQueue {
    /// A ring, indexed by the lower bits of a place's number; `NONE` in places whose request has
    /// left.
    places: Vec<RequestId>,
    /// Numbers of the oldest request's place and of the one behind the newest; they wrap.
    first: u32,
    end: u32,
    len: u32,
}

impl Default for FifoQueue {
    fn default() -> Self {
        Self { places: vec![NONE; FIRST_PLACES], first: 0, end: 0, len: 0 }
    }
}

impl FifoQueue {
    /// The oldest request.
    #[inline]
    pub fn head(&self) -> Option<RequestId> {
        (self.len > 0).then(|| self.places[self.place(self.first)])
    }

    /// All, from the oldest to the newest.
    pub fn iter(&self) -> impl Iterator<Item = RequestId> + '_ {
        let numbers = (0..self.end.wrapping_sub(self.first)).map(|n| self.first.wrapping_add(n));
        numbers.map(|number| self.places[self.place(number)]).filter(|id| *id != NONE)
    }

    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub fn push_back(&mut self, requests: &mut Requests, id: RequestId) {
        if self.end.wrapping_sub(self.first) as usize == self.places.len() {
            self.make_room(requests);
        }
        self.append(requests, id);
        self.len += 1;
    }

    #[inline]
    fn append(&mut self, requests: &mut Requests, id: RequestId) {
        let place = self.place(self.end);
        self.places[place] = id;
        requests[id].previous = self.end;
        self.end = self.end.wrapping_add(1);
    }

    #[inline]
    fn place(&self, number: u32) -> usize {
        number as usize & (self.places.len() - 1)
    }

    #[inline]
    fn place_of(&self, requests: &Requests, id: RequestId) -> usize {
        let place = self.place(requests[id].previous);
        debug_assert_eq!(self.places[place], id, "request {id} is elsewhere");
        place
    }

    #[inline]
    pub fn remove(&mut self, requests: &Requests, id: RequestId) {
        let place = self.place_of(requests, id);
        self.places[place] = NONE;
        self.len -= 1;
        if self.len == 0 {
            self.first = self.end;
            return;
        }
        while self.places[self.place(self.first)] == NONE {
            self.first = self.first.wrapping_add(1);
        }
    }

    /// Puts `id`, on no list, in the place of `other`, which leaves.
    pub fn replace(&mut self, requests: &mut Requests, other: RequestId, id: RequestId) {
        let place = self.place_of(requests, other);
        requests[id].previous = requests[other].previous;
        self.places[place] = id;
    }

    /// Closes the ring up, and doubles it unless most of its places are free.
    #[cold]
    fn make_room(&mut self, requests: &mut Requests) {
        let nr_places = self.places.len();
        let larger = if self.len as usize > nr_places / 4 { nr_places * 2 } else { nr_places };
        let begin = self.place(self.first);
        let old = std::mem::replace(&mut self.places, vec![NONE; larger]);
        self.end = self.first;
        let (newer, older) = old.split_at(begin);
        for &id in older.iter().chain(newer).filter(|id| **id != NONE) {
            self.append(requests, id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::request::{Operation, Purpose, Request};
    use crate::core::rng::Stream;

    #[test]
    fn it_agrees_with_a_list_whatever_leaves() {
        let mut stream = Stream::named(1, "ages");
        let mut requests = Requests::new();
        let mut queue =
            FifoQueue { first: u32::MAX - 1000, end: u32::MAX - 1000, ..FifoQueue::default() };
        let mut list: Vec<RequestId> = Vec::new();
        let mut most = 0;
        let new = |requests: &mut Requests| {
            requests.allocate(Request::new(Operation::Read, 0, 8, Purpose::Direct))
        };
        for step in 0..40_000 {
            // Alternates between full and nearly empty; the oldest stays long.
            let filling = step / 2000 % 2 == 0;
            if list.is_empty() || stream.below(4) < if filling { 3 } else { 1 } {
                let id = new(&mut requests);
                queue.push_back(&mut requests, id);
                list.push(id);
            } else {
                let keep = usize::from(list.len() > 1 && stream.below(50) > 0);
                let place = keep + stream.below((list.len() - keep) as u64) as usize;
                if stream.below(5) == 0 {
                    let id = new(&mut requests);
                    queue.replace(&mut requests, list[place], id);
                    list[place] = id;
                } else {
                    queue.remove(&requests, list.remove(place));
                }
            }
            assert_eq!(queue.head(), list.first().copied());
            assert_eq!(queue.len() as usize, list.len());
            assert!(queue.iter().eq(list.iter().copied()));
            most = most.max(list.len());
            assert!(queue.places.len() <= FIRST_PLACES.max(8 * most));
        }
        for id in list {
            assert_eq!(queue.head(), Some(id));
            queue.remove(&requests, id);
        }
        assert!(queue.is_empty() && queue.head().is_none());
    }
}
