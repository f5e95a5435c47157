//! What is to happen: events ordered by (time, class, sequence).
//!
//! An event is one 128-bit key: 56 bits of nanoseconds (2.3 years), 4 bits of
//! class, 36 bits of sequence and 32 bits of subject. Ordering the key orders
//! the events, and ties are settled by class, then by order of creation.

/// The last moment that an event can have.
pub const END_OF_TIME_NS: u64 = (1 << 56) - 1;

const SUBJECT_BITS: u32 = 32;
const SEQUENCE_BITS: u32 = 36;
const CLASS_BITS: u32 = 4;

/// What kind of event. At one moment, lower classes go first: a completion
/// frees resources before a new arrival asks for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// A command is finished; the subject is the request.
    Complete = 0,
    /// The device asked to be called; the subject is the device's own.
    DeviceWake = 1,
    /// A scheduler's timer; the subject is the disk.
    SchedulerTimer = 2,
    /// A policy's timer; the subject is the disk.
    PolicyTimer = 3,
    /// The flusher's periodic work.
    Writeback = 4,
    /// A task goes on after it computed or slept; the subject is the task.
    Task = 5,
    /// A job may issue its next I/O; the subject is the clone.
    Issue = 6,
    /// A queue is run again after a while; the subject is the disk.
    QueueRun = 7,
}

impl Class {
    fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Self::Complete,
            1 => Self::DeviceWake,
            2 => Self::SchedulerTimer,
            3 => Self::PolicyTimer,
            4 => Self::Writeback,
            5 => Self::Task,
            6 => Self::Issue,
            _ => Self::QueueRun,
        }
    }
}

/// One event, taken from the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    pub time_ns: u64,
    pub class: Class,
    pub subject: u32,
}

/// The clock and the events still to come: a heap of packed keys with four
/// children a node.
///
/// Most events cause one other. So the place of an event that was taken stays
/// at the root until the next one is entered, which sinks from there: one walk
/// down instead of one down and one up.
#[derive(Debug, Default)]
pub struct Agenda {
    now_ns: u64,
    sequence: u64,
    heap: Vec<u128>,
    /// The root was taken and not yet replaced.
    hollow: bool,
}

impl Agenda {
    pub fn new() -> Self {
        Self::default()
    }

    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    pub fn len(&self) -> usize {
        self.heap.len() - usize::from(self.hollow)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many events were ever entered.
    pub fn nr_entered(&self) -> u64 {
        self.sequence
    }

    /// Enters an event. Moments in the past become now.
    #[inline]
    pub fn at(&mut self, time_ns: u64, class: Class, subject: u32) {
        let time_ns = time_ns.clamp(self.now_ns, END_OF_TIME_NS);
        let key = u128::from(time_ns) << (CLASS_BITS + SEQUENCE_BITS + SUBJECT_BITS)
            | (class as u128) << (SEQUENCE_BITS + SUBJECT_BITS)
            | u128::from(self.sequence & ((1 << SEQUENCE_BITS) - 1)) << SUBJECT_BITS
            | u128::from(subject);
        self.sequence += 1;
        if std::mem::take(&mut self.hollow) {
            self.sift_down(key);
        } else {
            self.heap.push(key);
            self.sift_up(self.heap.len() - 1);
        }
    }

    /// The key of the next event.
    #[inline]
    fn first(&self) -> Option<u128> {
        if self.hollow {
            let children = self.heap.get(1..)?;
            children[..children.len().min(4)].iter().min().copied()
        } else {
            self.heap.first().copied()
        }
    }

    /// When the next event is due.
    pub fn next_ns(&self) -> Option<u64> {
        self.first().map(|key| unpack(key).time_ns)
    }

    /// Whether another event of this class is due at this very moment.
    #[inline]
    pub(crate) fn more_now(&self, class: Class) -> bool {
        self.first().is_some_and(|key| {
            let next = unpack(key);
            next.time_ns == self.now_ns && next.class == class
        })
    }

    /// Takes the next event and moves the clock to it. Only the engine and
    /// the stand-alone device runner call this: nowhere else does time move.
    #[inline]
    pub(crate) fn advance(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.hollow) {
            if let Some(last) = self.heap.pop() {
                if !self.heap.is_empty() {
                    self.sift_down(last);
                }
            }
        }
        let event = unpack(*self.heap.first()?);
        self.hollow = true;
        debug_assert!(event.time_ns >= self.now_ns, "time ran backwards");
        self.now_ns = event.time_ns;
        Some(event)
    }

    /// Moves the clock forward without an event.
    pub(crate) fn move_to(&mut self, time_ns: u64) {
        self.now_ns = self.now_ns.max(time_ns);
    }

    #[inline]
    fn sift_up(&mut self, mut index: usize) {
        let key = self.heap[index];
        while index > 0 {
            let parent = (index - 1) / 4;
            if self.heap[parent] <= key {
                break;
            }
            self.heap[index] = self.heap[parent];
            index = parent;
        }
        self.heap[index] = key;
    }

    /// Puts a key into the root and lets it sink.
    #[inline]
    fn sift_down(&mut self, key: u128) {
        let heap = self.heap.as_mut_slice();
        let mut index = 0;
        loop {
            let child = 4 * index + 1;
            let Some(least) = least_of_four(heap, child) else { break };
            if heap[least] >= key {
                break;
            }
            heap[index] = heap[least];
            index = least;
        }
        heap[index] = key;
    }
}

/// Where the least of the up to four keys from `first` on is.
#[inline]
fn least_of_four(heap: &[u128], first: usize) -> Option<usize> {
    if let Some(&[a, b, c, d]) = heap.get(first..first + 4) {
        let (left, left_at) = if b < a { (b, first + 1) } else { (a, first) };
        let (right, right_at) = if d < c { (d, first + 3) } else { (c, first + 2) };
        return Some(if right < left { right_at } else { left_at });
    }
    (first..heap.len()).min_by_key(|&at| heap[at])
}

#[inline]
fn unpack(key: u128) -> Event {
    Event {
        time_ns: (key >> (CLASS_BITS + SEQUENCE_BITS + SUBJECT_BITS)) as u64,
        class: Class::from_bits(
            (key >> (SEQUENCE_BITS + SUBJECT_BITS)) as u8 & ((1 << CLASS_BITS) - 1),
        ),
        subject: key as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn events_come_in_order_of_time_class_and_creation() {
        let mut agenda = Agenda::new();
        agenda.at(5, Class::Issue, 1);
        agenda.at(5, Class::Complete, 2);
        agenda.at(3, Class::Issue, 3);
        agenda.at(5, Class::Complete, 4);
        let subjects: Vec<u32> =
            std::iter::from_fn(|| agenda.advance()).map(|e| e.subject).collect();
        assert_eq!(subjects, [3, 2, 4, 1]);
    }

    #[test]
    fn taking_and_entering_by_turns_agrees_with_a_sorted_list() {
        let mut stream = Stream::named(2, "heap");
        let mut agenda = Agenda::new();
        let mut list: Vec<(u64, u32)> = Vec::new();
        for subject in 0..20_000 {
            if stream.below(5) < 3 {
                let time_ns = agenda.now_ns() + stream.below(50);
                agenda.at(time_ns, Class::Task, subject);
                list.push((time_ns, subject));
            } else {
                // Equal moments keep the order in which they were entered.
                let next = (0..list.len()).min_by_key(|&place| list[place]);
                assert_eq!(agenda.next_ns(), next.map(|place| list[place].0));
                let now_ns = agenda.now_ns();
                let due = next.is_some_and(|place| list[place].0 == now_ns);
                assert_eq!(agenda.more_now(Class::Task), due);
                let event = agenda.advance().map(|event| (event.time_ns, event.subject));
                assert_eq!(event, next.map(|place| list.remove(place)));
            }
            assert_eq!((agenda.len(), agenda.is_empty()), (list.len(), list.is_empty()));
        }
    }

    #[test]
    fn a_heap_sorts() {
        let mut stream = Stream::named(1, "heap");
        let mut agenda = Agenda::new();
        for subject in 0..10_000 {
            agenda.at(stream.below(1000), Class::Task, subject);
        }
        let mut last = (0, 0);
        while let Some(event) = agenda.advance() {
            let key = (event.time_ns, event.subject);
            assert!(key >= last);
            last = key;
        }
    }
}
