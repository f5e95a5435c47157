//! Events that wait for a processor that computes.
//!
//! An event that comes for a busy processor happens when that is free. Then one of them goes first, and the
//! processor is busy again: of a thousand, each would be entered anew a thousand times. So they wait here, in
//! lanes, one for each processor and class, and a lane moves to a later time as a whole. Their order is the
//! one that entering each of them anew would give, and they are counted as if it were so.

use std::collections::VecDeque;

use super::{
    CLASS_BITS, Class, END_OF_TIME_NS, Event, NONE, SEQUENCE_BITS, SUBJECT_BITS, key_of, unpack,
};

const NR_CLASSES: usize = 1 << CLASS_BITS;

/// How far the sequence numbers of a batch may lie apart before they are given out anew.
const WIDEST: u64 = 1 << 16;

/// Events of one processor and class, due at one time, in order.
#[derive(Debug, Clone, Default)]
struct Batch {
    time_ns: u64,
    subjects: VecDeque<u32>,
    /// Their sequence numbers, less `shift`, as runs in order: the first, and how many follow it.
    runs: VecDeque<(u64, u64)>,
    shift: u64,
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.subjects.is_empty()
    }

    fn push(&mut self, time_ns: u64, sequence: u64, subject: u32) {
        debug_assert!(self.is_empty() || self.time_ns == time_ns, "one time in a batch");
        if self.is_empty() {
            self.shift = 0;
        }
        self.time_ns = time_ns;
        self.subjects.push_back(subject);
        let stored = sequence.wrapping_sub(self.shift);
        match self.runs.back_mut() {
            Some((first, nr)) if first.wrapping_add(*nr) == stored => *nr += 1,
            _ => self.runs.push_back((stored, 1)),
        }
    }

    fn pop(&mut self) -> Option<u32> {
        let (first, nr) = self.runs.front_mut()?;
        (*first, *nr) = (first.wrapping_add(1), *nr - 1);
        if *nr == 0 {
            self.runs.pop_front();
        }
        self.subjects.pop_front()
    }

    /// The first and the last sequence number.
    fn ends(&self) -> Option<(u64, u64)> {
        let ((first, _), (last, nr)) = (self.runs.front()?, self.runs.back()?);
        Some((first.wrapping_add(self.shift), last.wrapping_add(self.shift).wrapping_add(nr - 1)))
    }

    /// Takes out those with numbers before `bound`.
    fn split_before(&mut self, bound: u64) -> Self {
        if self.ends().is_none_or(|(_, last)| last < bound) {
            return std::mem::take(self);
        }
        let shift = self.shift;
        let number = |first: u64| first.wrapping_add(shift);
        let whole_runs = self.runs.partition_point(|(first, nr)| number(*first) + nr <= bound);
        let rest = self.runs.split_off(whole_runs);
        let mut runs = std::mem::replace(&mut self.runs, rest);
        if let Some((first, nr)) = self.runs.front_mut().filter(|run| number(run.0) < bound) {
            let left = bound - number(*first);
            runs.push_back((*first, left));
            (*first, *nr) = (first.wrapping_add(left), *nr - left);
        }
        let nr_before = runs.iter().map(|(_, nr)| *nr as usize).sum();
        let rest = self.subjects.split_off(nr_before);
        let subjects = std::mem::replace(&mut self.subjects, rest);
        Self { time_ns: self.time_ns, subjects, runs, shift }
    }

    /// Adds another, whose numbers are later.
    fn append(&mut self, mut other: Self) {
        if self.subjects.len() < other.subjects.len() {
            while let Some((first, nr)) = self.runs.pop_back() {
                let stored = first.wrapping_add(self.shift).wrapping_sub(other.shift);
                other.runs.push_front((stored, nr));
            }
            while let Some(subject) = self.subjects.pop_back() {
                other.subjects.push_front(subject);
            }
            *self = other;
        } else {
            let shift = other.shift.wrapping_sub(self.shift);
            let runs = other.runs.into_iter();
            self.runs.extend(runs.map(|(first, nr)| (first.wrapping_add(shift), nr)));
            self.subjects.append(&mut other.subjects);
        }
    }
}

/// A lane. What waits for the processor's next free moment is in `next` as long as some of the last one are
/// still to be looked at.
#[derive(Debug, Clone, Default)]
struct Lane {
    due: Batch,
    next: Batch,
    /// One of its tasks has gone to another processor.
    mixed: bool,
}

impl Lane {
    fn first_key(&self, class: Class) -> u128 {
        match (self.due.ends(), self.due.subjects.front()) {
            (Some((sequence, _)), Some(subject)) => {
                key_of(self.due.time_ns, class, sequence, *subject)
            }
            _ => NONE,
        }
    }

    fn settle(&mut self) {
        if self.due.is_empty() {
            std::mem::swap(&mut self.due, &mut self.next);
            self.mixed &= !self.due.is_empty();
        }
    }
}

/// All lanes.
#[derive(Debug, Clone, Default)]
pub(super) struct Postponed {
    lanes: Vec<Lane>,
    /// Lanes that are not empty, each with the key of its first event, and the first event of all.
    waiting: Vec<(u128, usize)>,
    first: (u128, usize),
    nr_events: usize,
    /// By task: events of its own that wait here.
    of_task: Vec<u32>,
    /// Events that were not taken and entered one by one.
    pub nr_spared: u64,
}

impl Postponed {
    /// Lanes of so many processors.
    pub fn new(nr_processors: usize) -> Self {
        Self {
            lanes: vec![Lane::default(); nr_processors * NR_CLASSES],
            first: (NONE, 0),
            ..Self::default()
        }
    }

    pub fn len(&self) -> usize {
        self.nr_events
    }

    /// Key of the first event; [`NONE`] if there is none.
    #[inline]
    pub fn first_key(&self) -> u128 {
        self.first.0
    }

    pub fn keys(&self) -> impl Iterator<Item = u128> + '_ {
        self.waiting.iter().flat_map(|&(_, number)| {
            let (class, lane) = (class_of(number), &self.lanes[number]);
            [&lane.due, &lane.next].into_iter().flat_map(move |batch| {
                batch.subjects.iter().map(move |subject| key_of(batch.time_ns, class, 0, *subject))
            })
        })
    }

    /// Takes the first event. There must be one.
    pub fn take(&mut self) -> Event {
        let (key, number) = self.first;
        let event = unpack(key);
        let lane = &mut self.lanes[number];
        lane.due.pop();
        lane.settle();
        self.nr_events -= 1;
        self.count(event.class, event.subject, |nr| nr - 1);
        let key = self.lanes[number].first_key(event.class);
        if let Some(place) = self.waiting.iter().position(|&(_, waiting)| waiting == number) {
            if key == NONE {
                self.waiting.swap_remove(place);
            } else {
                self.waiting[place].0 = key;
            }
        }
        self.find_first();
        event
    }

    /// Lets an event wait, which was taken now, until its processor is free; `free_ns` says when that is.
    /// With it go all that would be taken next and would wait as well. `sequence` counts on as if each were
    /// entered anew, or further; `other` is the key of the first event elsewhere.
    pub fn postpone(
        &mut self,
        processor: usize,
        event: Event,
        free_ns: impl Fn(usize) -> u64,
        sequence: &mut u64,
        other: u128,
    ) {
        let number = lane_of(processor, event.class);
        let lane = &mut self.lanes[number];
        let until_ns = free_ns(processor);
        if lane.due.is_empty() {
            let key = key_of(until_ns, event.class, *sequence, event.subject);
            self.waiting.push((key, number));
        }
        let earlier = !lane.due.is_empty() && lane.due.time_ns != until_ns;
        let batch = if earlier { &mut lane.next } else { &mut lane.due };
        batch.push(until_ns, *sequence, event.subject);
        *sequence += 1;
        self.nr_events += 1;
        self.count(event.class, event.subject, |nr| nr + 1);
        self.postpone_others(event, free_ns, sequence, other);
        self.find_first();
    }

    /// Moves the events that are next, at the moment and of the class of one, as long as they wait for busy
    /// processors too: nothing happens between them. Their order stays, and they go behind all that were
    /// entered before.
    fn postpone_others(
        &mut self,
        event: Event,
        free_ns: impl Fn(usize) -> u64,
        sequence: &mut u64,
        other: u128,
    ) {
        let Event { time_ns, class, .. } = event;
        // The first that does not wait, or comes with others of which some may not.
        let mut bound =
            if moment_of(other) == Some((time_ns, class)) { sequence_of(other) } else { u64::MAX };
        let (mut first, mut last, mut nr_lanes) = (u64::MAX, 0, 0);
        for &(key, number) in &self.waiting {
            if moment_of(key) != Some((time_ns, class)) {
                continue;
            }
            let lane = &self.lanes[number];
            let Some(ends) = lane.due.ends() else { continue };
            if lane.mixed || free_ns(number / NR_CLASSES) <= time_ns {
                bound = bound.min(ends.0);
            } else {
                (first, last) = (first.min(ends.0), last.max(ends.1));
                nr_lanes += 1;
            }
        }
        let last = last.min(bound.saturating_sub(1));
        if first > last || last - first > WIDEST {
            return;
        }
        for (key, number) in &mut self.waiting {
            if moment_of(*key) != Some((time_ns, class)) {
                continue;
            }
            let lane = &mut self.lanes[*number];
            let until_ns = free_ns(*number / NR_CLASSES).min(END_OF_TIME_NS);
            if until_ns <= time_ns {
                continue;
            }
            let mut moved = lane.due.split_before(bound);
            if moved.is_empty() {
                continue;
            }
            self.nr_spared += moved.subjects.len() as u64;
            moved.time_ns = until_ns;
            moved.shift = moved.shift.wrapping_add(*sequence - first);
            if nr_lanes == 1 {
                // No other's events are between its own.
                moved.shift = *sequence;
                moved.runs.clear();
                moved.runs.push_back((0, moved.subjects.len() as u64));
            }
            if lane.next.is_empty() {
                lane.next = moved;
            } else {
                debug_assert_eq!(lane.next.time_ns, until_ns, "one free moment");
                lane.next.append(moved);
            }
            lane.settle();
            *key = lane.first_key(class);
        }
        *sequence += last - first + 1;
    }

    /// A task goes to another processor than the one for which its events may wait.
    pub fn task_moves(&mut self, task: u32, from: usize) {
        if self.of_task.get(task as usize).is_some_and(|nr| *nr > 0) {
            for class in [Class::Issue, Class::Task] {
                self.lanes[lane_of(from, class)].mixed = true;
            }
        }
    }

    fn count(&mut self, class: Class, task: u32, change: impl FnOnce(u32) -> u32) {
        if matches!(class, Class::Issue | Class::Task) {
            let index = task as usize;
            if self.of_task.len() <= index {
                self.of_task.resize(index + 1, 0);
            }
            self.of_task[index] = change(self.of_task[index]);
        }
    }

    fn find_first(&mut self) {
        let mut first = (NONE, 0);
        for &(key, number) in &self.waiting {
            if key < first.0 {
                first = (key, number);
            }
        }
        self.first = first;
    }
}

fn lane_of(processor: usize, class: Class) -> usize {
    processor * NR_CLASSES + class as usize
}

fn class_of(lane: usize) -> Class {
    Class::from_bits((lane % NR_CLASSES) as u8)
}

fn sequence_of(key: u128) -> u64 {
    (key >> SUBJECT_BITS) as u64 & ((1 << SEQUENCE_BITS) - 1)
}

fn moment_of(key: u128) -> Option<(u64, Class)> {
    let Event { time_ns, class, .. } = unpack(key);
    (key != NONE).then_some((time_ns, class))
}

#[cfg(test)]
mod tests {
    use super::super::EventQueue;
    use super::*;
    use crate::core::rng::Stream;

    const NR_TASKS: u32 = 300;
    const NR_PROCESSORS: u64 = 3;
    const CLASSES: [Class; 3] = [Class::Issue, Class::QueueRun, Class::Task];

    /// Events of a few processors that are busy for random times; `anew`: what comes for a busy one is
    /// entered anew for when it is free. Returns what happened on which, and the number of events.
    fn happened(seed: u64, anew: bool) -> (Vec<(Event, usize)>, u64) {
        let mut stream = Stream::named(seed, "postponed");
        let mut events = EventQueue::new();
        events.split_clocks(NR_PROCESSORS as usize);
        // Few different times, so that many events meet at one moment.
        let spread = 1 + seed % 7;
        for task in 0..NR_TASKS {
            events.at(stream.below(30), CLASSES[task as usize % 3], task);
        }
        let mut of_task: Vec<u64> = (0..NR_TASKS).map(|_| stream.below(NR_PROCESSORS)).collect();
        let mut free_ns = [0; NR_PROCESSORS as usize];
        let (mut order, mut nr_taken) = (Vec::new(), 0);
        while let Some(event) = events.advance_any() {
            nr_taken += 1;
            let Event { time_ns, class, subject } = event;
            let processor = of_task[subject as usize] as usize;
            if free_ns[processor] > time_ns {
                if anew {
                    events.at(free_ns[processor], class, subject);
                } else {
                    events.postpone(processor, class, subject, |processor| free_ns[processor]);
                }
                continue;
            }
            order.push((event, processor));
            free_ns[processor] = time_ns + stream.below(spread);
            // A hardware queue stays where it is.
            let (task, to) = (stream.below(NR_TASKS.into()) as usize, stream.below(NR_PROCESSORS));
            if task % 3 != 1 && stream.below(4) == 0 && to != of_task[task] {
                events.task_moves(task as u32, of_task[task] as usize);
                of_task[task] = to;
            }
        }
        (order, nr_taken + events.nr_spared())
    }

    #[test]
    fn the_order_is_that_of_entering_each_event_anew() {
        for seed in 0..100 {
            let (one_by_one, together) = (happened(seed, true), happened(seed, false));
            assert_eq!(one_by_one.0.len(), NR_TASKS as usize);
            assert_eq!(one_by_one, together, "seed {seed}");
        }
    }

    #[test]
    fn many_that_wait_for_one_processor_move_together() {
        let mut events = EventQueue::new();
        events.split_clocks(1);
        for queue in 0..1000 {
            events.at(0, Class::QueueRun, queue);
        }
        let (mut free_ns, mut taken) = (0, 0);
        while let Some(Event { time_ns, class, subject }) = events.advance_any() {
            taken += 1;
            if free_ns > time_ns {
                events.postpone(0, class, subject, |_| free_ns);
            } else {
                free_ns = time_ns + 10;
            }
        }
        assert_eq!(taken + events.nr_spared(), 1000 * 1001 / 2);
        // Each is taken when it came, and when it goes, and now and then one for all.
        assert!(taken < 4000, "{taken}");
    }
}
