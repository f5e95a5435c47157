//! A queue of cfq (`struct cfq_queue`): the requests of one process, or the async requests of all
//! processes at one level, and their statistics.

use super::super::deadline::Side;
use super::super::decaying_mean::DecayingMean;
use super::group::Place;
use crate::block::request::{Priority, PriorityClass, RequestId};

pub(super) type QueueId = u32;

/// 4.19: a request this far from the one before it is a seek; on a device without seeks, a smaller
/// request than this counts as random.
const SEEK_SECTORS: u64 = 800;
const SMALL_SECTORS: u32 = 64;
/// 4.19: a queue is seeky with more seeks than this among its last 32 requests.
const SEEKY_REQUESTS: u32 = 4;
/// 2.6.32: a queue is seeky whose mean seek is longer than this.
const SEEKY_MEAN_SECTORS: u64 = 8192;

/// The think time: from a completion to the next request.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ThinkTime {
    last_end_ns: i64,
    mean: DecayingMean,
}

impl ThinkTime {
    /// Unknown; a first request's time counts from now.
    pub fn since(now_ns: u64) -> Self {
        Self { last_end_ns: now_ns as i64, mean: DecayingMean::default() }
    }

    /// The last completion was long ago.
    pub const LONG_IDLE: i64 = i64::MIN / 2;

    /// A request is done.
    #[inline]
    pub fn ended(&mut self, time_ns: i64) {
        self.last_end_ns = time_ns;
    }

    #[inline]
    pub fn add(&mut self, now_ns: u64, idle_ns: u64) {
        let elapsed_ns = (now_ns as i64).saturating_sub(self.last_end_ns).max(0) as u64;
        self.mean.add(elapsed_ns.min(2 * idle_ns));
    }

    /// True if it is known to be longer than this.
    #[inline]
    pub fn exceeds(&self, ns: u64) -> bool {
        self.mean.is_settled() && self.mean.mean() > ns
    }

    #[inline]
    pub fn is_known(&self) -> bool {
        self.mean.is_settled()
    }
}

#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "independent marks, as in the kernel")]
pub(super) struct Queue {
    pub sync: bool,
    pub priority: Priority,
    pub group: u16,
    pub held: Side,
    pub next: Option<RequestId>,
    /// Requests in the device.
    pub dispatched: u32,
    /// Its place among the queues with requests, if it has any.
    pub place: Option<Place>,
    /// Level and sector under which others find its next request.
    pub found_at: Option<(u8, u64)>,

    /// The slice has had no completion, so its time does not run.
    pub slice_is_new: bool,
    pub chosen_ns: u64,
    pub slice_start_ns: u64,
    pub slice_end_ns: u64,
    pub allocated_ns: u64,
    pub slice_dispatched: u64,
    /// The rest of the last slice, or (negative) its overdraft.
    pub residual_ns: i64,

    /// Its task took a request beyond the limit in this slice (`must_alloc_slice`).
    pub must_alloc_used: bool,
    /// It may dispatch although its slice is over or the device full (`must_dispatch`).
    pub must_dispatch: bool,
    /// Its deadlines were checked in this slice.
    pub fifo_checked: bool,
    /// The disk idles for its next request.
    pub awaited: bool,
    /// Its slice was extended so that its group keeps its place.
    pub extended: bool,

    /// It is worth idling for (`idle_window`).
    pub idle_window: bool,
    /// It has had four requests at once.
    pub deep: bool,
    /// One bit for each of the last 32 requests: 1 for a seek.
    seeks: u32,
    seek_distance: DecayingMean,
    last_sector: Option<u64>,
    /// 2.6.32: the time since which a shared queue has been seeky.
    pub seeky_since_ns: Option<u64>,

    /// Tasks whose sync requests come here, and queues that point here.
    pub tasks: u32,
    pub pointed_at: u32,
    /// The queue that its tasks go to with their next requests (`new_cfqq`).
    pub successor: Option<QueueId>,
    /// It is shared, and its tasks are to be split again.
    pub shared: bool,
    pub to_split: bool,
}

impl Queue {
    pub fn new(sync: bool, priority: Priority, group: u16) -> Self {
        Self {
            sync,
            priority,
            group,
            held: Side::default(),
            next: None,
            dispatched: 0,
            place: None,
            found_at: None,
            slice_is_new: false,
            chosen_ns: 0,
            slice_start_ns: 0,
            slice_end_ns: 0,
            allocated_ns: 0,
            slice_dispatched: 0,
            residual_ns: 0,
            must_alloc_used: false,
            must_dispatch: false,
            fifo_checked: false,
            awaited: false,
            extended: false,
            idle_window: sync && priority.class != PriorityClass::Idle,
            deep: false,
            seeks: 0,
            seek_distance: DecayingMean::default(),
            last_sector: None,
            seeky_since_ns: None,
            tasks: 0,
            pointed_at: 0,
            successor: None,
            shared: false,
            to_split: false,
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.held.fifo.is_empty()
    }

    #[inline]
    pub fn is_idle_class(&self) -> bool {
        self.priority.class == PriorityClass::Idle
    }

    #[inline]
    pub fn is_real_time(&self) -> bool {
        self.priority.class == PriorityClass::RealTime
    }

    /// The slice has run out.
    #[inline]
    pub fn slice_is_used(&self, now_ns: u64) -> bool {
        !self.slice_is_new && now_ns >= self.slice_end_ns
    }

    #[inline]
    pub fn slice_left_ns(&self, now_ns: u64) -> u64 {
        self.slice_end_ns.saturating_sub(now_ns)
    }

    /// Starts a turn; its slice starts with the first completion.
    pub fn begin_turn(&mut self, now_ns: u64) {
        self.chosen_ns = now_ns;
        self.slice_start_ns = 0;
        self.slice_end_ns = 0;
        self.allocated_ns = 0;
        self.slice_dispatched = 0;
        self.slice_is_new = true;
        self.awaited = false;
        self.must_alloc_used = false;
        self.must_dispatch = false;
        self.fifo_checked = false;
    }

    /// Disk time of this turn, charged to its group.
    pub fn used_ns(&self, now_ns: u64, tick_ns: u64) -> u64 {
        if self.slice_is_new || self.slice_start_ns == now_ns {
            now_ns.saturating_sub(self.chosen_ns).max(tick_ns)
        } else {
            (now_ns - self.slice_start_ns).min(self.allocated_ns)
        }
    }

    /// Updates the queue's seeks with a new request.
    #[inline]
    pub fn learn_seek(&mut self, sector: u64, nr_sectors: u32, rotational: bool) {
        let distance = self.last_sector.map_or(0, |last| last.abs_diff(sector));
        let random = if rotational { distance > SEEK_SECTORS } else { nr_sectors < SMALL_SECTORS };
        self.seeks = self.seeks << 1 | u32::from(random);
        self.last_sector = Some(sector + u64::from(nr_sectors));
    }

    /// The same in 2.6.32, by mean distance.
    #[inline]
    pub fn learn_seek_distance(&mut self, sector: u64, nr_sectors: u32, now_ns: u64) {
        let distance = self.last_sector.map_or(0, |last| last.abs_diff(sector));
        self.seek_distance.add_seek(distance);
        self.last_sector = Some(sector + u64::from(nr_sectors));
        if self.shared {
            if !self.has_long_seeks() {
                self.seeky_since_ns = None;
            } else if self.seeky_since_ns.is_none() {
                self.seeky_since_ns = Some(now_ns);
            }
        }
    }

    /// 4.19: it seeks often (`CFQQ_SEEKY`).
    #[inline]
    pub fn has_many_seeks(&self) -> bool {
        self.seeks.count_ones() > SEEKY_REQUESTS
    }

    /// 2.6.32: it seeks far.
    #[inline]
    pub fn has_long_seeks(&self) -> bool {
        self.seek_distance.mean() > SEEKY_MEAN_SECTORS
    }

    #[inline]
    pub fn seek_distance_is_known(&self) -> bool {
        self.seek_distance.is_settled()
    }

    /// Largest distance to another request that counts as close: in 2.6.32 the mean seek once it is
    /// known.
    #[inline]
    pub fn expected_seek(&self) -> u64 {
        if self.seek_distance.is_settled() { self.seek_distance.mean() } else { SEEKY_MEAN_SECTORS }
    }

    /// True if nothing refers to it.
    pub fn is_forgotten(&self) -> bool {
        self.tasks == 0
            && self.pointed_at == 0
            && self.dispatched == 0
            && self.place.is_none()
            && self.is_empty()
    }
}

/// All queues; slots of forgotten ones are used again.
#[derive(Debug, Clone, Default)]
pub(super) struct Queues {
    slots: Vec<Queue>,
    free: Vec<QueueId>,
}

impl Queues {
    pub fn allocate(&mut self, queue: Queue) -> QueueId {
        if let Some(id) = self.free.pop() {
            self.slots[id as usize] = queue;
            return id;
        }
        self.slots.push(queue);
        (self.slots.len() - 1) as QueueId
    }

    #[cfg(test)]
    pub fn nr_slots(&self) -> usize {
        self.slots.len()
    }

    pub fn release(&mut self, id: QueueId) {
        self.free.push(id);
    }
}

impl std::ops::Index<QueueId> for Queues {
    type Output = Queue;

    #[inline]
    fn index(&self, id: QueueId) -> &Queue {
        &self.slots[id as usize]
    }
}

impl std::ops::IndexMut<QueueId> for Queues {
    #[inline]
    fn index_mut(&mut self, id: QueueId) -> &mut Queue {
        &mut self.slots[id as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_seeky_after_five_seeks_in_thirty_two() {
        let mut queue = Queue::new(true, Priority::DEFAULT, 0);
        for i in 0..5 {
            queue.learn_seek(i * 1_000_000, 8, true);
        }
        assert!(!queue.has_many_seeks(), "the first request is no seek");
        queue.learn_seek(9_000_000, 8, true);
        assert!(queue.has_many_seeks());
        for i in 0..32 {
            queue.learn_seek(9_000_008 + i * 8, 8, true);
        }
        assert!(!queue.has_many_seeks());
        for i in 0..5 {
            queue.learn_seek(i * 8, 8, false);
        }
        assert!(queue.has_many_seeks(), "small requests count where there are no seeks");
    }

    #[test]
    fn a_turn_without_a_completion_costs_a_tick() {
        let mut queue = Queue::new(true, Priority::DEFAULT, 0);
        queue.begin_turn(5_000_000);
        assert_eq!(queue.used_ns(5_000_100, 1_000_000), 1_000_000);
        queue.slice_is_new = false;
        queue.slice_start_ns = 6_000_000;
        queue.allocated_ns = 2_000_000;
        assert_eq!(queue.used_ns(7_000_000, 1_000_000), 1_000_000);
        assert_eq!(queue.used_ns(9_000_000, 1_000_000), 2_000_000);
    }
}
