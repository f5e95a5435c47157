//! A clone's several files, and whose turn it is (`__get_next_file` in `io_u.c`, fio 3.33).

use super::job::{Distribution, FileOrder, FileService};
use super::layout::Region;
use super::offsets::Offsets;
use crate::core::record::Direction;
use crate::core::rng::Stream;

/// The state of a file; the current one's is the generator's own.
#[derive(Debug, Clone)]
pub(super) struct FileState {
    pub region: Region,
    pub offsets: Offsets,
    /// Next sequential position of reads and of writes, relative to the region.
    pub position: [u64; 2],
    /// Offsets of the last read and the last write.
    pub last_start: [u64; 2],
}

/// The files of a clone that has more than one.
#[derive(Debug, Clone)]
pub(super) struct FileTurns {
    /// All files; the place of the current one is unused.
    pub states: Vec<FileState>,
    pub current: usize,
    /// No I/O is left in this pass.
    done: Vec<bool>,
    nr_done: usize,
    order: FileOrder,
    ios_in_turn: u64,
    /// I/Os left of the turn; `None` before the first.
    left: Option<u64>,
    /// The next file of the round.
    next: usize,
    /// The distribution of files that are drawn by one.
    drawn: Offsets,
    stream: Stream,
}

/// fio draws files in so many steps of each (`FIO_FSERVICE_SHIFT` in `file.h`).
const STEPS_OF_A_FILE: u64 = 1 << 10;

impl FileTurns {
    pub fn new(states: Vec<FileState>, service: &FileService, mut stream: Stream) -> Self {
        let distribution = match &service.order {
            FileOrder::Random(distribution) => distribution.clone(),
            _ => Distribution::Uniform,
        };
        let steps = states.len() as u64 * STEPS_OF_A_FILE;
        let drawn = Offsets::new(&distribution, false, steps, &mut stream);
        Self {
            done: vec![false; states.len()],
            states,
            current: 0,
            nr_done: 0,
            order: service.order.clone(),
            ios_in_turn: service.ios_in_turn,
            left: None,
            next: 0,
            drawn,
            stream,
        }
    }

    /// The file of the next I/O; `None` if all are done.
    pub fn take_turn(&mut self) -> Option<usize> {
        if self.nr_done == self.states.len() {
            return None;
        }
        if !self.done[self.current] {
            match self.left {
                Some(_) if self.order == FileOrder::Sequential => return Some(self.current),
                Some(left @ 1..) => {
                    self.left = Some(left - 1);
                    return Some(self.current);
                }
                _ => {}
            }
        }
        self.left = Some(self.ios_in_turn - 1);
        loop {
            let file = self.propose();
            if !self.done[file] {
                return Some(file);
            }
        }
    }

    fn propose(&mut self) -> usize {
        if !matches!(self.order, FileOrder::Random(_)) {
            let file = self.next;
            self.next = (file + 1) % self.states.len();
            return file;
        }
        let slots = self.states.len() as u64 * STEPS_OF_A_FILE;
        let step = self.drawn.draw(Direction::Read, 1, || slots, &mut self.stream);
        (step.unwrap_or(0) / STEPS_OF_A_FILE) as usize
    }

    /// The current file has come to its end. Returns whether it begins anew at once, as files that
    /// are drawn by a distribution do.
    pub fn file_ended(&mut self) -> bool {
        if matches!(&self.order, FileOrder::Random(d) if *d != Distribution::Uniform) {
            self.left = Some(0);
            return true;
        }
        self.done[self.current] = true;
        self.nr_done += 1;
        false
    }

    /// Begins a pass, in which every file has I/Os again, with the next file of the round.
    pub fn begin_pass(&mut self) {
        self.done.fill(false);
        self.nr_done = 0;
        self.left = None;
    }
}
