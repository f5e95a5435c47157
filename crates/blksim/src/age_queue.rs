//! Requests in order of age, of which any may leave at any time.
//!
//! A list through the requests would do, but taking one out of its middle
//! touches both neighbours, and which those are is chance: with ten thousand
//! requests held, two lines from main memory for each that goes. Here the
//! order is an array of its own; whoever leaves frees its place, and free
//! places are skipped at the front and closed up when they outnumber the rest.

use std::collections::VecDeque;

use crate::request::{NONE, RequestId, Requests};

/// Arrays shorter than this are never closed up.
const LEAST_PLACES: usize = 64;

/// Requests from the oldest to the newest. A request on it keeps its place in
/// [`Request::previous`](crate::request::Request::previous).
#[derive(Debug, Default)]
pub struct AgeQueue {
    /// `NONE` in places whose request has left; never at the front.
    places: VecDeque<RequestId>,
    /// Number of the first place; numbers wrap.
    first: u32,
    len: u32,
}

impl AgeQueue {
    /// The oldest request.
    #[inline]
    pub fn head(&self) -> Option<RequestId> {
        self.places.front().copied()
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
        if self.places.len() >= LEAST_PLACES && self.places.len() / 4 > self.len as usize {
            self.close_up(requests);
        }
        requests[id].previous = self.first.wrapping_add(self.places.len() as u32);
        self.places.push_back(id);
        self.len += 1;
    }

    #[inline]
    fn place(&self, requests: &Requests, id: RequestId) -> usize {
        let place = requests[id].previous.wrapping_sub(self.first) as usize;
        debug_assert_eq!(self.places.get(place), Some(&id), "request {id} is elsewhere");
        place
    }

    #[inline]
    pub fn remove(&mut self, requests: &Requests, id: RequestId) {
        let place = self.place(requests, id);
        self.places[place] = NONE;
        self.len -= 1;
        while self.places.front() == Some(&NONE) {
            self.places.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }

    /// Puts `id`, on no list, in the place of `other`, which leaves.
    pub fn replace(&mut self, requests: &mut Requests, other: RequestId, id: RequestId) {
        let place = self.place(requests, other);
        requests[id].previous = requests[other].previous;
        self.places[place] = id;
    }

    fn close_up(&mut self, requests: &mut Requests) {
        self.places.retain(|id| *id != NONE);
        for (place, &id) in self.places.iter().enumerate() {
            requests[id].previous = self.first.wrapping_add(place as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Operation, Purpose, Request};
    use crate::rng::Stream;

    #[test]
    fn it_agrees_with_a_list_whatever_leaves() {
        let mut stream = Stream::named(1, "ages");
        let mut requests = Requests::new();
        let mut queue = AgeQueue { first: u32::MAX - 1000, ..AgeQueue::default() };
        let mut list: Vec<RequestId> = Vec::new();
        let new = |requests: &mut Requests| {
            requests.allocate(Request::new(Operation::Read, 0, 8, Purpose::Direct))
        };
        for step in 0..40_000 {
            // Full and nearly empty by turns; the oldest stays long.
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
            assert!(queue.places.len() <= LEAST_PLACES.max(list.len() * 4 + 2000));
        }
        for id in list {
            assert_eq!(queue.head(), Some(id));
            queue.remove(&requests, id);
        }
        assert!(queue.is_empty() && queue.head().is_none());
    }
}
