//! The event queue: events ordered by (time, class, sequence).
//!
//! An event is one 128-bit key: 56 bits of nanoseconds (2.3 years), 4 bits of class, 36 bits of
//! sequence and 32 bits of subject. Ordering the keys orders the events; events of one moment go by
//! class, then by order of creation.

mod heap;
mod postponed;
mod sorted_array;

use heap::Heap;
use postponed::Postponed;
use sorted_array::SortedArray;

/// The last time that an event can have.
pub const END_OF_TIME_NS: u64 = (1 << 56) - 1;

const SUBJECT_BITS: u32 = 32;
const SEQUENCE_BITS: u32 = 36;
const CLASS_BITS: u32 = 4;

/// Bits of the sequence in the upper half of a key.
const UPPER_SEQUENCE_BITS: u32 = SEQUENCE_BITS + SUBJECT_BITS - 64;

/// No key.
const NONE: u128 = u128::MAX;

/// The class of an event. At one moment, lower classes go first: a completion frees resources
/// before a new arrival asks for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// A command is finished; the subject is the request.
    Complete = 0,
    /// A processor that was busy takes the interrupt of a command that was finished meanwhile; the
    /// subject is the processor.
    Interrupt = 1,
    /// The device asked to be called; the subject is the device's own.
    DeviceWake = 2,
    /// A scheduler's timer; the subject is the disk.
    SchedulerTimer = 3,
    /// A policy's timer; the subject is the disk.
    PolicyTimer = 4,
    /// The flusher's periodic work.
    Writeback = 5,
    /// A task continues after computing or sleeping; the subject is the task.
    Task = 6,
    /// A job may issue its next I/O; the subject is the process.
    Issue = 7,
    /// A delayed run of a queue; the subject is the disk.
    QueueRun = 8,
    /// A processor runs what is ready; the subject is the processor.
    Processor = 9,
    /// A slot of the record begins or ends: behind everything at its moment.
    Slot = 10,
}

impl Class {
    /// All, by their number; the last up to a power of two, so that no number is without.
    const ALL: [Self; 1 << CLASS_BITS] = [
        Self::Complete,
        Self::Interrupt,
        Self::DeviceWake,
        Self::SchedulerTimer,
        Self::PolicyTimer,
        Self::Writeback,
        Self::Task,
        Self::Issue,
        Self::QueueRun,
        Self::Processor,
        Self::Slot,
        Self::Slot,
        Self::Slot,
        Self::Slot,
        Self::Slot,
        Self::Slot,
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

/// A lock that processors wait for, and when it is free.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lock {
    free_ns: u64,
}

/// The clock and the future events. A sorted array has those that are next, or all while they are few; a heap
/// has the later ones. So an event that is due soon, as most calls of processors are, never enters the heap.
#[derive(Debug, Clone)]
pub struct EventQueue {
    now_ns: u64,
    /// Processors have clocks of their own, so that `now_ns` is that of the one that computes.
    several_clocks: bool,
    sequence: u64,
    array: SortedArray,
    heap: Heap,
    /// Keys before it are in the array, the others in the heap.
    bound: u128,
    /// Those that wait for a processor; `None` if computing takes no time.
    postponed: Option<Box<Postponed>>,
}

/// Events that stay in a full array; the later ones go to the heap.
const KEPT: usize = sorted_array::MOST / 2;

/// Events that come back from the heap at once, when the array is empty.
const REFILL: usize = 32;

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            now_ns: 0,
            several_clocks: false,
            sequence: 0,
            array: SortedArray::default(),
            heap: Heap::default(),
            bound: NONE,
            postponed: None,
        }
    }
}

impl EventQueue {
    pub fn new() -> Self {
        Self::default()
    }

    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    pub fn len(&self) -> usize {
        let postponed = self.postponed.as_ref().map_or(0, |postponed| postponed.len());
        self.array.len() + self.heap.len() + postponed
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of events ever entered.
    pub fn nr_entered(&self) -> u64 {
        self.sequence
    }

    /// Enters an event. Moments in the past become now.
    #[inline]
    pub fn at(&mut self, time_ns: u64, class: Class, subject: u32) {
        let time_ns = time_ns.max(self.now_ns).min(END_OF_TIME_NS);
        let key = key_of(time_ns, class, self.sequence, subject);
        debug_assert!(self.sequence < 1 << SEQUENCE_BITS, "too many events for their order");
        self.sequence += 1;
        self.enter(key);
    }

    #[inline(always)]
    fn enter(&mut self, key: u128) {
        if key < self.bound && self.array.has_room() {
            self.array.enter(key);
        } else {
            self.enter_cold(key);
        }
    }

    /// The same if the key belongs to the heap or the array has no room. The function is cold, as
    /// everything about the heap is, for the code layout of its callers; the heap's own functions are not.
    #[cold]
    fn enter_cold(&mut self, key: u128) {
        if key < self.bound && !self.array.make_room() {
            for &late in &self.array.keys()[KEPT..] {
                self.heap.enter(late);
            }
            self.bound = self.array.keys()[KEPT];
            self.array.keep(KEPT);
        }
        if key < self.bound {
            self.array.enter(key);
        } else {
            self.heap.enter(key);
        }
    }

    /// Upper half of the key of the next event, later than every event's if there is none.
    #[inline]
    fn first_upper(&self) -> u64 {
        if self.array.is_empty() { self.first_upper_of_heap() } else { self.array.first_upper() }
    }

    #[cold]
    fn first_upper_of_heap(&self) -> u64 {
        self.heap.first_upper()
    }

    /// The same with those that wait for a processor.
    #[inline]
    fn first_upper_of_all(&self) -> u64 {
        let first = self.first_upper();
        match &self.postponed {
            Some(postponed) => first.min((postponed.first_key() >> 64) as u64),
            None => first,
        }
    }

    /// The time of the next event.
    pub fn next_ns(&self) -> Option<u64> {
        (!self.is_empty()).then(|| self.first_upper_of_all() >> (UPPER_SEQUENCE_BITS + CLASS_BITS))
    }

    /// Subjects of the events of this class at one moment, in no particular order.
    pub(crate) fn subjects_at(&self, time_ns: u64, class: Class) -> impl Iterator<Item = u32> + '_ {
        self.array
            .keys()
            .iter()
            .copied()
            .chain(self.heap.keys())
            .chain(self.postponed.iter().flat_map(|postponed| postponed.keys()))
            .map(unpack)
            .filter(move |event| event.time_ns == time_ns && event.class == class)
            .map(|event| event.subject)
    }

    /// True if another event of this class is due now.
    #[inline]
    pub(crate) fn more_now(&self, class: Class) -> bool {
        let moment = self.now_ns << CLASS_BITS | class as u64;
        self.first_upper() >> UPPER_SEQUENCE_BITS == moment
    }

    /// Takes the next event, also of those that wait for a processor.
    #[inline]
    pub(crate) fn advance_any(&mut self) -> Option<Event> {
        let waiting = self.postponed.as_ref().map_or(NONE, |postponed| postponed.first_key());
        if waiting == NONE { self.advance() } else { self.advance_either(waiting) }
    }

    #[inline(never)]
    fn advance_either(&mut self, waiting: u128) -> Option<Event> {
        if self.first_key() < waiting {
            return self.advance();
        }
        let event = self.postponed.as_mut()?.take();
        self.now_ns = event.time_ns;
        Some(event)
    }

    /// Key of the next event, apart from those that wait for a processor.
    fn first_key(&self) -> u128 {
        if self.array.is_empty() { self.heap.first_key() } else { self.array.first_key() }
    }

    /// An event that was taken now waits until its processor is free; `free_ns` says when that is.
    pub(crate) fn postpone(
        &mut self,
        processor: usize,
        class: Class,
        subject: u32,
        free_ns: impl Fn(usize) -> u64,
    ) {
        let (time_ns, other) = (self.now_ns, self.first_key());
        match &mut self.postponed {
            Some(waiting) => {
                let event = Event { time_ns, class, subject };
                waiting.postpone(processor, event, free_ns, &mut self.sequence, other);
            }
            None => self.at(free_ns(processor), class, subject),
        }
    }

    /// A task goes from one processor to another.
    pub(crate) fn task_moves(&mut self, task: u32, from: usize) {
        if let Some(postponed) = &mut self.postponed {
            postponed.task_moves(task, from);
        }
    }

    /// Events that count as handled although they only waited on, together with others.
    pub(crate) fn nr_spared(&self) -> u64 {
        self.postponed.as_ref().map_or(0, |postponed| postponed.nr_spared)
    }

    /// Takes the next event and moves the clock to it. Only the engine and the stand-alone device
    /// runner call this.
    #[inline]
    pub(crate) fn advance(&mut self) -> Option<Event> {
        let key = if self.array.is_empty() { self.take_from_heap()? } else { self.array.take() };
        let event = unpack(key);
        debug_assert!(self.several_clocks || event.time_ns >= self.now_ns, "time ran backwards");
        self.now_ns = event.time_ns;
        Some(event)
    }

    /// True if an event goes before one of this class at this moment.
    #[inline]
    pub(crate) fn is_before(&self, time_ns: u64, class: Class) -> bool {
        self.first_upper_of_all() >> UPPER_SEQUENCE_BITS <= time_ns << CLASS_BITS | class as u64
    }

    /// Handles an event that never was in the queue: moves the clock to it.
    #[inline]
    pub(crate) fn advance_to(&mut self, time_ns: u64) {
        self.now_ns = time_ns;
    }

    /// Puts back the event that was taken last, and turns the clock back to a moment before it. The
    /// event was the first of its moment and class, so that with the lowest sequence it is so again.
    #[cold]
    pub(crate) fn put_back(&mut self, event: Event, now_ns: u64) {
        self.now_ns = now_ns;
        self.enter(key_of(event.time_ns, event.class, 0, event.subject));
    }

    /// Takes the key of the next event from the heap, and moves those that follow to the empty array.
    #[cold]
    fn take_from_heap(&mut self) -> Option<u128> {
        let first = self.heap.take();
        self.array.open();
        for _ in 0..REFILL.min(self.heap.len()) {
            self.array.enter(self.heap.take());
        }
        self.bound = self.heap.first_key();
        (first != NONE).then_some(first)
    }

    /// From now on each processor has a clock of its own.
    pub(crate) fn split_clocks(&mut self, nr_processors: usize) {
        self.several_clocks = true;
        self.postponed = Some(Box::new(Postponed::new(nr_processors)));
    }

    /// Moves the clock of the processor that computes.
    #[inline]
    pub(crate) fn compute(&mut self, cost_ns: u64) {
        self.now_ns += cost_ns;
    }

    /// Computes under a lock. If another has it, this waits for it, spinning, and takes `handover_ns`
    /// longer: lock and data come from the other's cache. Work of no time needs no lock.
    #[inline]
    pub(crate) fn compute_locked(&mut self, lock: &mut Lock, cost_ns: u64, handover_ns: u64) {
        if cost_ns == 0 {
            return;
        }
        if lock.free_ns > self.now_ns {
            self.now_ns = lock.free_ns + handover_ns;
        }
        self.now_ns += cost_ns;
        lock.free_ns = self.now_ns;
    }

    /// Moves the clock forward without an event: to a moment that another clock has reached.
    #[inline]
    pub(crate) fn move_to(&mut self, time_ns: u64) {
        self.now_ns = self.now_ns.max(time_ns);
    }
}

#[inline(always)]
fn key_of(time_ns: u64, class: Class, sequence: u64, subject: u32) -> u128 {
    u128::from(time_ns) << (CLASS_BITS + SEQUENCE_BITS + SUBJECT_BITS)
        | (class as u128) << (SEQUENCE_BITS + SUBJECT_BITS)
        | u128::from(sequence & ((1 << SEQUENCE_BITS) - 1)) << SUBJECT_BITS
        | u128::from(subject)
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
    use crate::core::rng::Stream;

    #[test]
    fn events_come_in_order_of_time_class_and_creation() {
        let mut events = EventQueue::new();
        events.at(5, Class::Issue, 1);
        events.at(5, Class::Complete, 2);
        events.at(3, Class::Issue, 3);
        events.at(5, Class::Complete, 4);
        let subjects: Vec<u32> =
            std::iter::from_fn(|| events.advance()).map(|e| e.subject).collect();
        assert_eq!(subjects, [3, 2, 4, 1]);
    }

    #[test]
    fn taking_and_entering_by_turns_agrees_with_a_sorted_list() {
        let mut stream = Stream::named(2, "heap");
        let mut events = EventQueue::new();
        let mut list: Vec<(u64, u32)> = Vec::new();
        let (mut most, mut emptied) = (0, 0);
        for subject in 0..40_000 {
            // Their number rises for a while, then falls to none, and so on: from the array into
            // the heap and back.
            let entered_of_5 = if subject / 2_000 % 2 == 0 { 3 } else { 2 };
            if stream.below(5) < entered_of_5 {
                let time_ns = events.now_ns() + stream.below(50);
                events.at(time_ns, Class::Task, subject);
                list.push((time_ns, subject));
            } else {
                // Equal moments keep the order in which they were entered.
                let next = (0..list.len()).min_by_key(|&place| list[place]);
                assert_eq!(events.next_ns(), next.map(|place| list[place].0));
                let now_ns = events.now_ns();
                let due = next.is_some_and(|place| list[place].0 == now_ns);
                assert_eq!(events.more_now(Class::Task), due);
                let event = events.advance().map(|event| (event.time_ns, event.subject));
                assert_eq!(event, next.map(|place| list.remove(place)));
            }
            most = most.max(list.len());
            emptied += u32::from(list.is_empty() && most > sorted_array::PLACES);
            assert_eq!((events.len(), events.is_empty()), (list.len(), list.is_empty()));
            let due_now = events.subjects_at(events.now_ns(), Class::Task).count();
            let now_ns = events.now_ns();
            assert_eq!(due_now, list.iter().filter(|event| event.0 == now_ns).count());
        }
        assert!(emptied > 0, "the heap was filled and emptied: {most} {emptied}");
    }

    #[test]
    fn a_heap_sorts() {
        let mut stream = Stream::named(1, "heap");
        let mut events = EventQueue::new();
        for subject in 0..10_000 {
            events.at(stream.below(1000), Class::Task, subject);
        }
        let mut last = (0, 0);
        while let Some(event) = events.advance() {
            let key = (event.time_ns, event.subject);
            assert!(key >= last);
            last = key;
        }
    }
}
