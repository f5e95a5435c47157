//! What is to happen: events ordered by (time, class, sequence).
//!
//! An event is one 128-bit key: 56 bits of nanoseconds (2.3 years), 4 bits of
//! class, 36 bits of sequence and 32 bits of subject. Ordering the key orders
//! the events, and ties are settled by class, then by order of creation.

use crate::branch::{likely, unlikely};

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
    /// All, by their number.
    const ALL: [Self; 8] = [
        Self::Complete,
        Self::DeviceWake,
        Self::SchedulerTimer,
        Self::PolicyTimer,
        Self::Writeback,
        Self::Task,
        Self::Issue,
        Self::QueueRun,
    ];

    #[inline]
    fn from_bits(bits: u8) -> Self {
        Self::ALL[bits as usize % Self::ALL.len()]
    }
}

/// One event, taken from the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    pub time_ns: u64,
    pub class: Class,
    pub subject: u32,
}

/// From here on keys are later than every event: what free places hold.
const NEVER: u128 = (u64::MAX as u128 - 3) << 64;

/// Four keys with the same parent: one line of the processor's cache. They are
/// told apart by their upper halves but for events of one class at one moment,
/// so that most comparisons take half the instructions.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Siblings {
    upper: [u64; 4],
    lower: [u64; 4],
}

impl Siblings {
    /// Free places differ in their upper halves too.
    const FREE: Self =
        Self { upper: [u64::MAX - 3, u64::MAX - 2, u64::MAX - 1, u64::MAX], lower: [0; 4] };

    #[inline]
    fn get(&self, number: usize) -> u128 {
        u128::from(self.upper[number]) << 64 | u128::from(self.lower[number])
    }

    #[inline]
    fn set(&mut self, number: usize, key: u128) {
        self.upper[number] = (key >> 64) as u64;
        self.lower[number] = key as u64;
    }

    /// Number of the least key.
    #[inline]
    fn least(&self) -> usize {
        let [a, b, c, d] = self.upper;
        let (left, left_number) = if b < a { (b, 1) } else { (a, 0) };
        let (right, right_number) = if d < c { (d, 3) } else { (c, 2) };
        if a == b || c == d || left == right {
            return self.least_of_alike();
        }
        if right < left { right_number } else { left_number }
    }

    /// The same if upper halves are equal.
    #[cold]
    fn least_of_alike(&self) -> usize {
        (1..4).fold(0, |least, other| if self.get(other) < self.get(least) { other } else { least })
    }

    fn keys(self) -> [u128; 4] {
        std::array::from_fn(|number| self.get(number))
    }
}

/// The place of the root. Place p is number p % 4 of the siblings p / 4, and
/// its children are the siblings p - 2.
const ROOT: usize = 3;

/// The clock and the events still to come: a heap of packed keys with four
/// children a node.
///
/// Most events cause one other. So the place of an event that was taken stays
/// at the root until the next one is entered, which sinks from there: one walk
/// down instead of one down and one up.
#[derive(Debug)]
pub struct Agenda {
    now_ns: u64,
    sequence: u64,
    /// The heap from [`ROOT`] on; beyond its end all places are free.
    heap: Vec<Siblings>,
    /// Place behind the last key; [`ROOT`] if there is none.
    end: usize,
    /// The root was taken and not yet replaced.
    hollow: bool,
}

impl Default for Agenda {
    fn default() -> Self {
        Self { now_ns: 0, sequence: 0, heap: vec![Siblings::FREE], end: ROOT, hollow: false }
    }
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
        self.end - ROOT - usize::from(self.hollow)
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
        let time_ns = time_ns.max(self.now_ns).min(END_OF_TIME_NS);
        let key = u128::from(time_ns) << (CLASS_BITS + SEQUENCE_BITS + SUBJECT_BITS)
            | (class as u128) << (SEQUENCE_BITS + SUBJECT_BITS)
            | u128::from(self.sequence & ((1 << SEQUENCE_BITS) - 1)) << SUBJECT_BITS
            | u128::from(subject);
        self.sequence += 1;
        if likely(std::mem::take(&mut self.hollow)) {
            self.sift_down(key);
        } else {
            self.push(key);
        }
    }

    /// The key of the next event, [`NEVER`] if there is none.
    #[inline]
    fn first(&self) -> u128 {
        if likely(self.hollow) {
            self.heap.get(ROOT - 2).map_or(NEVER, |children| children.get(children.least()))
        } else {
            self.heap[0].get(ROOT)
        }
    }

    /// When the next event is due.
    pub fn next_ns(&self) -> Option<u64> {
        let first = self.first();
        (first < NEVER).then(|| unpack(first).time_ns)
    }

    /// Subjects of the events of this class at one moment, in no particular order.
    pub(crate) fn subjects_at(&self, time_ns: u64, class: Class) -> impl Iterator<Item = u32> + '_ {
        let first = ROOT + usize::from(self.hollow);
        let keys = self.heap.iter().flat_map(|siblings| siblings.keys()).skip(first);
        keys.filter(|key| *key < NEVER)
            .map(unpack)
            .filter(move |event| event.time_ns == time_ns && event.class == class)
            .map(|event| event.subject)
    }

    /// Whether another event of this class is due at this very moment.
    #[inline]
    pub(crate) fn more_now(&self, class: Class) -> bool {
        let first = unpack(self.first());
        first.time_ns == self.now_ns && first.class == class
    }

    /// Takes the next event and moves the clock to it. Only the engine and
    /// the stand-alone device runner call this: nowhere else does time move.
    #[inline]
    pub(crate) fn advance(&mut self) -> Option<Event> {
        if unlikely(std::mem::take(&mut self.hollow)) {
            self.fill_root();
        }
        let first = self.heap[0].get(ROOT);
        if first >= NEVER {
            return None;
        }
        let event = unpack(first);
        self.hollow = true;
        debug_assert!(event.time_ns >= self.now_ns, "time ran backwards");
        self.now_ns = event.time_ns;
        Some(event)
    }

    /// Moves the clock forward without an event.
    pub(crate) fn move_to(&mut self, time_ns: u64) {
        self.now_ns = self.now_ns.max(time_ns);
    }

    /// Puts a key behind the last one and lets it rise.
    fn push(&mut self, key: u128) {
        let mut place = self.end;
        self.end += 1;
        if place / 4 == self.heap.len() {
            self.heap.push(Siblings::FREE);
        }
        while place > ROOT {
            let parent = place / 4 + 2;
            let above = self.heap[parent / 4].get(parent % 4);
            if above <= key {
                break;
            }
            self.heap[place / 4].set(place % 4, above);
            place = parent;
        }
        self.heap[place / 4].set(place % 4, key);
    }

    /// Fills the root, whose event was taken, with the last key.
    fn fill_root(&mut self) {
        self.end -= 1;
        let (siblings, number) = (&mut self.heap[self.end / 4], self.end % 4);
        let last = siblings.get(number);
        siblings.upper[number] = Siblings::FREE.upper[number];
        if self.end > ROOT {
            self.sift_down(last);
        }
    }

    /// Puts a key into the root and lets it sink.
    #[inline]
    fn sift_down(&mut self, key: u128) {
        let heap = self.heap.as_mut_slice();
        let mut place = ROOT;
        while let Some(children) = heap.get(place - 2) {
            let number = children.least();
            let least = children.get(number);
            if least >= key {
                break;
            }
            heap[place / 4].set(place % 4, least);
            place = 4 * (place - 2) + number;
        }
        heap[place / 4].set(place % 4, key);
    }
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
