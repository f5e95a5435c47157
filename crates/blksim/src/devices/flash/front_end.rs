//! The front end of a controller: a bounded number of commands in it, fetched in turn from the
//! submission queues.
//!
//! A controller holds each command that it works on in a slot until the command completes. A
//! command that finds no slot stays in its submission queue. The controller fetches from the queues
//! in turn, up to the arbitration burst from each (NVM Express base specification 2.0, 3.4.4.1,
//! "Round Robin Arbitration"; `MQSim`'s host interface does the same). So a write that waits for
//! room in the buffer keeps its slot, and once such writes hold all slots, reads wait behind them.
//!
//! Simplified: fetching takes no time of its own (`command` and `interface` include it), and all
//! queues have the same priority. Few drives offer weighted arbitration, and Linux 6.1 does not ask
//! for it.

use std::collections::VecDeque;

use crate::devices::device::Command;

#[derive(Debug, Clone)]
pub struct FrontEnd {
    /// Commands that the controller holds at most; 0: any number.
    slots: u32,
    used: u32,
    burst: u32,
    /// Submission queues by number.
    queues: Vec<VecDeque<Command>>,
    /// Queues that are not empty, in the order of their turns.
    turns: VecDeque<usize>,
    /// Commands that the first of them may still send in this turn.
    left: u32,
}

impl FrontEnd {
    pub fn new(slots: u32, burst: u32) -> Self {
        let (queues, turns) = (Vec::new(), VecDeque::new());
        Self { slots, used: 0, burst, queues, turns, left: burst }
    }

    /// True if the number of slots is limited. Without a limit nothing need be told.
    #[inline]
    pub fn is_bounded(&self) -> bool {
        self.slots > 0
    }

    /// A command arrives. Returns false if it waits in its submission queue.
    pub fn admit(&mut self, command: Command) -> bool {
        if self.used < self.slots {
            self.used += 1;
            return true;
        }
        let number = usize::from(command.queue);
        if number >= self.queues.len() {
            self.queues.resize_with(number + 1, VecDeque::new);
        }
        if self.queues[number].is_empty() {
            self.turns.push_back(number);
        }
        self.queues[number].push_back(command);
        false
    }

    /// A command completes. Returns the next, which takes its slot.
    pub fn complete(&mut self) -> Option<Command> {
        let Some(&number) = self.turns.front() else {
            self.used -= 1;
            return None;
        };
        let command = self.queues[number].pop_front();
        self.left -= 1;
        let is_empty = self.queues[number].is_empty();
        if is_empty || self.left == 0 {
            self.left = self.burst;
            self.turns.pop_front();
            if !is_empty {
                self.turns.push_back(number);
            }
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::request::Operation;

    fn command(id: u32, queue: u16) -> Command {
        Command { id, operation: Operation::Read, sector: 0, nr_sectors: 8, queue }
    }

    /// The order in which commands of two queues are fetched through one slot.
    fn fetched(burst: u32) -> Vec<u32> {
        let mut front_end = FrontEnd::new(1, burst);
        assert!(front_end.admit(command(0, 0)));
        for id in 1..=4 {
            assert!(!front_end.admit(command(id, 0)));
        }
        for id in 11..=12 {
            assert!(!front_end.admit(command(id, 3)));
        }
        std::iter::from_fn(|| front_end.complete()).map(|command| command.id).collect()
    }

    #[test]
    fn queues_take_turns_of_a_burst() {
        assert_eq!(fetched(1), [1, 11, 2, 12, 3, 4]);
        assert_eq!(fetched(3), [1, 2, 3, 11, 12, 4]);
    }

    #[test]
    fn a_slot_is_free_again_once_no_command_waits() {
        let mut front_end = FrontEnd::new(2, 1);
        assert!(front_end.admit(command(1, 0)) && front_end.admit(command(2, 0)));
        assert!(!front_end.admit(command(3, 0)));
        assert_eq!(front_end.complete().map(|command| command.id), Some(3));
        assert!(front_end.complete().is_none());
        assert!(front_end.admit(command(4, 0)));
        assert!(!front_end.admit(command(5, 0)));
    }
}
