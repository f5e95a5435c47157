//! The link's time for a command beside its data, by direction, and by whether it continues a
//! stream of commands.
//!
//! A controller looks up where data lies. Tables that are not in its memory cost a random command
//! much and one that continues another little; conversely, commands for neighbouring sectors may
//! wait for each other. io.cost's linear model tells the same four kinds of commands apart.
//!
//! Simplified: the controller works on commands of a direction one after the other, and knows a
//! fixed number of streams.

use crate::core::branch::likely;

/// Streams that a controller follows.
const STREAMS: usize = 32;

/// Number of the direction, as of the links.
pub const READ: usize = 0;
pub const WRITE: usize = 1;

#[derive(Debug, Clone)]
pub struct CommandTimes {
    sequential_ns: [u64; 2],
    random_ns: [u64; 2],
    tells_apart: bool,
    /// The sectors at which the latest streams end, by direction.
    ends: [[u64; STREAMS]; 2],
    /// The stream to forget next.
    oldest: [usize; 2],
}

impl CommandTimes {
    /// Times of sequential and of random commands, each by direction.
    pub fn new(sequential_ns: [u64; 2], random_ns: [u64; 2]) -> Self {
        Self {
            sequential_ns,
            random_ns,
            tells_apart: sequential_ns != random_ns,
            ends: [[u64::MAX; STREAMS]; 2],
            oldest: [0; 2],
        }
    }

    /// The time of a command.
    #[inline(always)]
    pub fn of(&mut self, direction: usize, sector: u64, nr_sectors: u32) -> u64 {
        if likely(!self.tells_apart) {
            return self.sequential_ns[direction];
        }
        self.follow(direction, sector, nr_sectors)
    }

    /// The time of a command without data.
    pub fn without_data_ns(&self, direction: usize) -> u64 {
        self.sequential_ns[direction]
    }

    #[inline(never)]
    fn follow(&mut self, direction: usize, sector: u64, nr_sectors: u32) -> u64 {
        let ends = &mut self.ends[direction];
        let end = sector + u64::from(nr_sectors);
        if let Some(stream) = ends.iter_mut().find(|stream| **stream == sector) {
            *stream = end;
            return self.sequential_ns[direction];
        }
        let oldest = &mut self.oldest[direction];
        ends[*oldest] = end;
        *oldest = (*oldest + 1) % STREAMS;
        self.random_ns[direction]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_continues_one_of_several_streams_is_sequential() {
        let mut times = CommandTimes::new([1, 10], [5, 50]);
        let got: Vec<u64> = [0, 800, 8, 808, 16, 800].map(|at| times.of(READ, at, 8)).into();
        assert_eq!(got, [5, 5, 1, 1, 1, 5]);
        assert_eq!(times.of(WRITE, 24, 8), 50, "reads are no stream of writes");
        assert_eq!(times.of(WRITE, 32, 8), 10);
    }

    #[test]
    fn the_oldest_stream_is_forgotten() {
        let mut times = CommandTimes::new([1, 1], [5, 5]);
        for stream in 0..=STREAMS as u64 {
            assert_eq!(times.of(READ, stream * 1000, 8), 5);
        }
        assert_eq!(times.of(READ, 8, 8), 5, "the first of them");
        assert_eq!(times.of(READ, 2008, 8), 1, "the third, which is still known");
    }
}
