//! The time of the dies: reads go at once; programs and erases go one after the other and are
//! suspended by reads, or hold them.

use std::collections::VecDeque;

use crate::core::branch::unlikely;
use crate::devices::device::{Outbox, UnitTimes};

/// The purpose of a die's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A program of the host's data.
    Host,
    /// A program of data that garbage collection moves, with its reads.
    Move,
    Erase,
}

/// A program or an erase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    pub duration_ns: u64,
    /// Buffer slots that it frees at its end.
    pub slots: u64,
    pub purpose: Purpose,
}

/// The work that a read does not suspend: it waits for the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    Nothing,
    Programs,
    All,
}

impl Hold {
    pub fn named(name: &str) -> Self {
        match name {
            "program" => Self::Programs,
            "all" => Self::All,
            _ => Self::Nothing,
        }
    }

    fn covers(self, purpose: Purpose) -> bool {
        match self {
            Self::Nothing => false,
            Self::Programs => purpose != Purpose::Erase,
            Self::All => true,
        }
    }
}

#[derive(Debug, Clone, Default)]
struct Die {
    /// End of the last read.
    reads_end_ns: u64,
    /// End of the work under way; reads push it back.
    work_end_ns: u64,
    active: Option<Work>,
    queue: VecDeque<Work>,
    /// End of all queued work, as far as is known.
    all_end_ns: u64,
}

#[derive(Debug, Clone)]
pub struct Dies {
    each: Vec<Die>,
    suspend_ns: u64,
    hold: Hold,
}

impl Dies {
    pub fn new(count: usize, suspend_ns: u64, hold: Hold) -> Self {
        Self { each: (0..count).map(|_| Die::default()).collect(), suspend_ns, hold }
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.each.len()
    }

    /// The end of each die's reads and of its work, as far as is known.
    pub fn times(&self) -> impl Iterator<Item = UnitTimes> + '_ {
        self.each.iter().map(|die| UnitTimes {
            reads_end_ns: die.reads_end_ns,
            work_end_ns: if die.active.is_some() { die.all_end_ns.max(die.work_end_ns) } else { 0 },
        })
    }

    /// Reads for `read_ns` from `ready_ns` on. Returns the end of the read.
    #[inline]
    pub fn read(&mut self, die: usize, ready_ns: u64, read_ns: u64) -> u64 {
        let die = &mut self.each[die];
        let mut start_ns = ready_ns.max(die.reads_end_ns);
        if unlikely(die.active.is_some()) {
            if die.active.is_some_and(|work| self.hold.covers(work.purpose)) {
                die.reads_end_ns = start_ns.max(die.work_end_ns) + read_ns;
                return die.reads_end_ns;
            }
            if die.reads_end_ns <= ready_ns && start_ns < die.work_end_ns {
                start_ns += self.suspend_ns;
            }
            let from_ns = ready_ns.max(die.reads_end_ns);
            let taken_ns = start_ns + read_ns - from_ns;
            die.work_end_ns += taken_ns;
            die.all_end_ns += taken_ns;
        }
        die.reads_end_ns = start_ns + read_ns;
        die.reads_end_ns
    }

    /// Adds work. Returns the expected end of all the die's work.
    pub fn add(&mut self, index: usize, work: Work, outbox: &mut Outbox) -> u64 {
        let die = &mut self.each[index];
        if die.active.is_some() {
            die.queue.push_back(work);
            die.all_end_ns += work.duration_ns;
        } else {
            die.all_end_ns = start(die, index, work, outbox);
        }
        die.all_end_ns
    }

    /// The end of a die's work may have come. Returns the work that is done.
    pub fn wake(&mut self, index: usize, outbox: &mut Outbox) -> Option<Work> {
        let die = &mut self.each[index];
        let done = die.active?;
        if die.work_end_ns > outbox.now_ns() {
            // Reads came in between.
            outbox.wake_at(die.work_end_ns, index as u32);
            return None;
        }
        die.active = None;
        if let Some(work) = die.queue.pop_front() {
            start(die, index, work, outbox);
        }
        Some(done)
    }
}

fn start(die: &mut Die, index: usize, work: Work, outbox: &mut Outbox) -> u64 {
    let start_ns = outbox.now_ns().max(die.reads_end_ns);
    die.work_end_ns = start_ns + work.duration_ns;
    die.active = Some(work);
    outbox.wake_at(die.work_end_ns, index as u32);
    die.work_end_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::event::EventQueue;

    const PROGRAM: Work = Work { duration_ns: 1000, slots: 4, purpose: Purpose::Host };
    const ERASE: Work = Work { duration_ns: 2000, slots: 0, purpose: Purpose::Erase };

    #[test]
    fn a_read_suspends_a_program_and_the_program_ends_later() {
        let mut events = EventQueue::new();
        let mut outbox = Outbox::new(&mut events, 0);
        let mut dies = Dies::new(1, 20, Hold::Nothing);
        assert_eq!(dies.add(0, PROGRAM, &mut outbox), 1000);
        assert_eq!(dies.read(0, 100, 50), 170);
        assert_eq!(dies.read(0, 100, 50), 220, "already suspended");
        let times: Vec<_> = dies.times().collect();
        assert_eq!(times, [UnitTimes { reads_end_ns: 220, work_end_ns: 1120 }]);
        let event = events.advance().unwrap();
        assert_eq!(event.time_ns, 1000);
        assert_eq!(dies.wake(0, &mut Outbox::new(&mut events, 0)), None);
        assert_eq!(events.advance().unwrap().time_ns, 1120);
        assert_eq!(dies.wake(0, &mut Outbox::new(&mut events, 0)), Some(PROGRAM));
    }

    #[test]
    fn a_held_read_waits_for_the_program_under_way_and_goes_before_the_next() {
        let mut events = EventQueue::new();
        let mut outbox = Outbox::new(&mut events, 0);
        let mut dies = Dies::new(1, 20, Hold::Programs);
        dies.add(0, PROGRAM, &mut outbox);
        dies.add(0, ERASE, &mut outbox);
        assert_eq!(dies.read(0, 100, 50), 1050);
        assert_eq!(dies.read(0, 100, 50), 1100);
        assert_eq!(events.advance().unwrap().time_ns, 1000);
        assert_eq!(dies.wake(0, &mut Outbox::new(&mut events, 0)), Some(PROGRAM));
        // The erase begins at 1100, and a read suspends it.
        assert_eq!(dies.read(0, 1500, 50), 1570);
        assert_eq!(events.advance().unwrap().time_ns, 3100);
        assert_eq!(dies.wake(0, &mut Outbox::new(&mut events, 0)), None);
        assert_eq!(events.advance().unwrap().time_ns, 3170);
        assert_eq!(dies.wake(0, &mut Outbox::new(&mut events, 0)), Some(ERASE));
    }
}
