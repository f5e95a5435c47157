//! When garbage collection runs, and on how many dies at a time.
//!
//! In step with the host's writes, each program of the host brings the moves that it owes. Drives
//! collect in bursts instead: free blocks run down to a threshold and are made up for at once (Kim
//! et al., "Towards SLO Complying SSDs Through OPS Isolation", FAST 2015, and Yan et al.,
//! "Tiny-Tail Flash", FAST 2017, show what that does to latencies). The moves of a burst then keep
//! some dies busy, one after the other, while the rest serve the host.
//!
//! Simplified: what a burst moves is decided when it begins; only its time is spread.

use std::collections::VecDeque;

use super::dies::Work;

#[derive(Debug, Clone)]
pub struct Collector {
    /// Host slots between two bursts; 0: collection runs in step.
    burst_slots: u64,
    /// Host slots programmed since the last burst.
    since_burst: u64,
    /// Host writes between two bursts; 0: only slots count.
    burst_commands: u64,
    commands_since: u64,
    /// Host writes wait while moves are not done.
    stops_writes: bool,
    /// Moves that are not done.
    moves: u64,
    /// Dies that collect at a time; 0: any number.
    most_dies: usize,
    /// Moves under way on the dies.
    active: usize,
    /// Moves that wait for their turn, with their dies.
    waiting: VecDeque<(u32, Work)>,
}

impl Collector {
    /// `since_burst` is where between two bursts the drive begins, so that the members of an array
    /// do not collect in step.
    pub fn new(burst_slots: u64, most_dies: usize, since_burst: u64) -> Self {
        Self {
            burst_slots,
            since_burst,
            burst_commands: 0,
            commands_since: 0,
            stops_writes: false,
            moves: 0,
            most_dies,
            active: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Has a burst come after so many host writes, of which `since` are done.
    pub fn count_commands(self, burst_commands: u64, since: u64) -> Self {
        Self { burst_commands, commands_since: since, ..self }
    }

    /// Has host writes wait for collection, or not.
    pub fn stop_writes(self, stops_writes: bool) -> Self {
        Self { stops_writes, ..self }
    }

    /// True if host writes wait now.
    #[inline]
    pub fn is_stopping(&self) -> bool {
        self.stops_writes && self.moves > 0
    }

    /// A move is decided on.
    pub fn begin(&mut self) {
        self.moves += 1;
    }

    /// A move has ended. Returns true if host writes waited for it and may go on.
    pub fn end(&mut self) -> bool {
        self.moves -= 1;
        self.stops_writes && self.moves == 0
    }

    /// The buffer takes a host write.
    #[inline]
    pub fn note_command(&mut self) {
        self.commands_since += 1;
    }

    /// The host has programmed so many slots. Returns the slots for which collection is due now.
    pub fn note_host_slots(&mut self, slots: u64) -> u64 {
        self.since_burst += slots;
        let is_due = if self.burst_commands > 0 {
            self.commands_since >= self.burst_commands
        } else {
            self.since_burst >= self.burst_slots
        };
        if !is_due {
            return 0;
        }
        self.commands_since = 0;
        std::mem::take(&mut self.since_burst)
    }

    #[inline]
    pub fn is_bounded(&self) -> bool {
        self.most_dies > 0
    }

    /// Adds a move. Returns it if its die may begin now.
    pub fn add(&mut self, die: u32, work: Work) -> Option<(u32, Work)> {
        if self.active < self.most_dies {
            self.active += 1;
            return Some((die, work));
        }
        self.waiting.push_back((die, work));
        None
    }

    /// A burst is due while the one before is not over: the space is needed. Returns one of the
    /// moves that wait, all of which now go to their dies.
    pub fn hurry(&mut self) -> Option<(u32, Work)> {
        self.active += usize::from(!self.waiting.is_empty());
        self.waiting.pop_front()
    }

    /// A move is done. Returns the next.
    pub fn done(&mut self) -> Option<(u32, Work)> {
        self.active -= 1;
        let next = if self.active < self.most_dies { self.waiting.pop_front() } else { None };
        self.active += usize::from(next.is_some());
        next
    }
}

#[cfg(test)]
mod tests {
    use super::super::dies::Purpose;
    use super::*;

    const MOVE: Work = Work { duration_ns: 1, slots: 0, purpose: Purpose::Move };

    #[test]
    fn collection_is_due_once_a_burst_was_written() {
        let mut in_step = Collector::new(0, 0, 0);
        assert_eq!([8, 8].map(|slots| in_step.note_host_slots(slots)), [8, 8]);
        let mut bursts = Collector::new(24, 0, 8);
        assert_eq!([8; 5].map(|slots| bursts.note_host_slots(slots)), [0, 24, 0, 0, 24]);
    }

    #[test]
    fn collection_is_due_once_so_many_commands_came() {
        let mut collector = Collector::new(0, 0, 0).count_commands(3, 1);
        let due = [1, 1, 1, 1, 1].map(|commands| {
            (0..commands).for_each(|_| collector.note_command());
            collector.note_host_slots(8)
        });
        assert_eq!(due, [0, 16, 0, 0, 24]);
    }

    #[test]
    fn only_so_many_dies_collect_unless_the_next_burst_is_due() {
        let mut collector = Collector::new(24, 2, 0);
        let begun: Vec<_> = (0..5).filter_map(|die| collector.add(die, MOVE)).collect();
        assert_eq!(begun, [(0, MOVE), (1, MOVE)]);
        assert_eq!(collector.done(), Some((2, MOVE)));
        let hurried: Vec<_> = std::iter::from_fn(|| collector.hurry()).collect();
        assert_eq!(hurried, [(3, MOVE), (4, MOVE)]);
        // Four are under way now: two have to end before another may begin.
        assert_eq!(collector.add(5, MOVE), None);
        assert_eq!([(); 3].map(|()| collector.done()), [None, None, Some((5, MOVE))]);
    }
}
