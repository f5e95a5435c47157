//! The next block of a clone: its direction, its place and its size.

use super::{Generator, PassEnd};
use crate::core::branch::unlikely;
use crate::core::record::Direction;
use crate::core::rng::Stream;
use crate::workload::job::{BlockSizes, PerDirection};
use crate::workload::layout::Region;
use crate::workload::offsets::Offsets;

impl Generator {
    /// The next transfer: direction, offset in the region, bytes.
    #[inline]
    pub(super) fn prepare(&mut self) -> Option<(Direction, u64, u32)> {
        if let Some(prepared) = self.prepared.take() {
            return Some(prepared);
        }
        if unlikely(self.files.is_some()) {
            return self.prepare_in_files();
        }
        self.prepare_in_file()
    }

    /// The next transfer of a clone with several files.
    #[inline(never)]
    fn prepare_in_files(&mut self) -> Option<(Direction, u64, u32)> {
        if self.left_bytes == 0 || self.left_of_pass == 0 {
            // Nobody's turn.
            return self.prepare_in_file();
        }
        loop {
            let Some(file) = self.files.as_mut().and_then(|files| files.take_turn()) else {
                self.pass_ended = Some(PassEnd::File);
                return None;
            };
            self.turn_to(file);
            let prepared = self.prepare_in_file();
            if prepared.is_some() || self.pass_ended != Some(PassEnd::File) {
                return prepared;
            }
            self.pass_ended = None;
            if self.files.as_mut().is_some_and(|files| files.file_ended()) {
                self.rewind(PassEnd::File);
            }
        }
    }

    /// Makes the next file the current one, for a sync. Returns false if no I/O is to come.
    ///
    /// With fio, a sync takes a file's turn as an I/O does (`set_io_u_file` in `io_u.c`, fio 3.33).
    #[inline(never)]
    pub(super) fn turn_to_next_file(&mut self) -> bool {
        let is_last_pass = !self.time_based && self.left_loops == 0 && self.io_size.is_none();
        if self.left_ios == 0 || self.left_bytes == 0 || (self.left_of_pass == 0 && is_last_pass) {
            return false;
        }
        let file = self.files.as_mut().and_then(|files| files.take_turn());
        file.inspect(|file| self.turn_to(*file)).is_some()
    }

    /// A byte of the file whose turn it is: the one that a sync is of.
    pub fn byte_of_file(&self) -> u64 {
        self.region.start
    }

    /// Makes another file the current one.
    pub(super) fn turn_to(&mut self, file: usize) {
        let Some(files) = &mut self.files else { return };
        if file == files.current {
            return;
        }
        let state = &mut files.states[file];
        std::mem::swap(&mut self.region, &mut state.region);
        std::mem::swap(&mut self.offsets, &mut state.offsets);
        std::mem::swap(&mut self.position, &mut state.position);
        std::mem::swap(&mut self.last_start, &mut state.last_start);
        files.states.swap(file, files.current);
        files.current = file;
    }

    /// Prepares all other files for another pass.
    pub(super) fn begin_pass_over_files(&mut self, end: PassEnd) {
        let Some(files) = &mut self.files else { return };
        let (current, nr_files) = (files.current, files.states.len());
        files.begin_pass();
        for file in (0..nr_files).filter(|file| *file != current) {
            self.turn_to(file);
            self.rewind(end);
        }
        self.turn_to(current);
    }

    /// The next transfer in the current file.
    #[inline]
    fn prepare_in_file(&mut self) -> Option<(Direction, u64, u32)> {
        let direction = match (self.mode.reads, self.mode.writes) {
            (true, false) => Direction::Read,
            (false, _) => self.change,
            (true, true) => {
                if self.mix.percent(self.rwmixread) {
                    Direction::Read
                } else {
                    Direction::Write
                }
            }
        };
        let sizes = self.sizes_of(direction);
        // The size that must fit; of several, one is drawn once the offset is known.
        let (bytes, several) = match sizes.single() {
            Some(bytes) => (bytes, false),
            None => (sizes.smallest(), true),
        };
        if self.left_bytes == 0 {
            return None;
        }
        if self.left_of_pass == 0 {
            self.pass_ended = Some(PassEnd::Bytes);
            return None;
        }
        let between = self.mode.random && !self.random_is_due();
        let random = self.mode.random
            && !between
            && (self.percentage_random == 100 || self.mix.percent(self.percentage_random));
        if let Some(zones) = &mut self.zones {
            if zones.enter(&mut self.position, lane(direction), self.region) {
                self.offsets.forget_visits();
            }
        }
        let offset = if random {
            self.random_offset(direction, bytes)
        } else if between && self.sequence.identical {
            Some(self.last_start[lane(direction)].min(self.region.bytes - bytes))
        } else {
            match self.sequential_offset(direction, bytes) {
                None if self.mode.random => self.random_offset(direction, bytes),
                offset => offset,
            }
        };
        let Some(offset) = offset else {
            self.pass_ended = Some(PassEnd::File);
            return None;
        };
        let mut bytes = bytes;
        if unlikely(self.sizes_by_order) {
            let Some(other) = self.size_by_order(random, offset) else {
                self.pass_ended = Some(PassEnd::File);
                return None;
            };
            bytes = other;
        } else if several {
            let room = self.region.bytes.saturating_sub(offset);
            let sizes = match direction {
                Direction::Read => &self.block_sizes.read,
                _ => &self.block_sizes.write,
            };
            bytes = draw_size(sizes, room, &mut self.mix);
        }
        if random && matches!(self.offsets, Offsets::Marked(_)) {
            let unit = self.sizes_of(direction).smallest();
            let start = self.zones.as_ref().map_or(0, |zones| zones.start);
            bytes = self.offsets.visit((offset - start) / unit, bytes, unit);
        }
        if let Some(zones) = &mut self.zones {
            zones.issued(bytes);
        }
        self.position[lane(direction)] = offset + bytes;
        self.last_start[lane(direction)] = offset;
        Some((direction, offset, bytes as u32))
    }

    /// A size of those for random I/Os or of those for I/Os in order; `None` if the file has no room for
    /// it (`get_next_buflen` and `fill_io_u` of `io_u.c`, fio 3.33).
    #[inline(never)]
    fn size_by_order(&mut self, random: bool, offset: u64) -> Option<u64> {
        let PerDirection { read: in_order, write: at_random } = &self.block_sizes;
        let sizes = if random { at_random } else { in_order };
        let room = self.region.bytes.saturating_sub(offset);
        match sizes.single() {
            _ if sizes.smallest() > room => None,
            Some(bytes) => Some(bytes),
            None => Some(draw_size(sizes, room, &mut self.mix)),
        }
    }

    fn sizes_of(&self, direction: Direction) -> &BlockSizes {
        match direction {
            Direction::Read => &self.block_sizes.read,
            _ => &self.block_sizes.write,
        }
    }

    /// Counts down to the next random offset.
    #[inline]
    fn random_is_due(&mut self) -> bool {
        self.until_random -= 1;
        if self.until_random > 0 {
            return false;
        }
        self.until_random = self.sequence.nr_per_offset;
        true
    }

    /// The offset of the next I/O in order, with the mode's gap; `None` at the end of the file. As
    /// `get_next_seq_offset` of fio 3.33: the first I/O has no gap before it; a gap past the end of
    /// the file leads back to its start; a gap before the start leads as far before the end. If the
    /// region is only a part of its file, fio takes positions within the one for positions within
    /// the other.
    #[inline]
    fn sequential_offset(&mut self, direction: Direction, bytes: u64) -> Option<u64> {
        let Region { begin, file_bytes, bytes: size, .. } = self.region;
        let mut offset = self.position[lane(direction)];
        if self.zones.is_some() {
            return (begin + offset + bytes <= file_bytes).then_some(offset);
        }
        if offset >= size && self.goes_round() {
            offset = 0;
        }
        if begin + offset >= file_bytes {
            return None;
        }
        let gap = self.sequence.gap_bytes;
        if gap != 0 {
            if offset == 0 && begin > 0 && gap < 0 {
                offset = size.wrapping_sub(begin);
            }
            if offset != 0 {
                offset = offset.wrapping_add_signed(gap);
                if offset >= file_bytes {
                    offset = if gap > 0 { begin } else { size.wrapping_add_signed(gap) };
                }
            }
        }
        (offset.checked_add(bytes)? <= size).then_some(offset)
    }

    /// Starts again at the beginning of the file without ending the pass.
    fn goes_round(&self) -> bool {
        let both = self.mode.reads && self.mode.writes;
        // With several files a file that is read to its end is done.
        (self.time_based && self.files.is_none())
            || (both && self.io_size.is_some_and(|bytes| bytes > self.region.bytes))
    }

    /// Starts the next pass over the size, if there is one: as many as `loops` asks for, then
    /// further ones until `io_size` is reached (`keep_running` of fio 3.33).
    pub(super) fn next_pass(&mut self, at_end_of_file: bool) -> bool {
        if !self.time_based {
            if self.left_loops > 0 {
                self.left_loops -= 1;
            } else {
                let limit = self.io_size.unwrap_or(self.pass_bytes);
                let left = limit.saturating_sub(self.issued_bytes);
                if left < self.largest_block || (at_end_of_file && self.io_size.is_none()) {
                    return false;
                }
            }
        }
        self.left_of_pass = self.pass_bytes;
        true
    }

    /// A random offset for an I/O of at least so many bytes; `None` if all were visited.
    fn random_offset(&mut self, direction: Direction, bytes: u64) -> Option<u64> {
        let align = match direction {
            Direction::Read => self.align.read,
            _ => self.align.write,
        };
        // Blocks of one size, none of which reaches beyond the end.
        if let Offsets::Mapped(order) = &mut self.offsets {
            return Some(order.next(&mut self.random) * align);
        }
        let (start, length) = match &self.zones {
            None => (0, self.region.bytes),
            Some(zones) => (zones.start, zones.range()),
        };
        // Blocks at which a transfer may begin (`last_block` in `io_u.c`, fio 3.33).
        let slots = || (length.saturating_sub(bytes.saturating_sub(align)) / align).max(1);
        let mut block = self.offsets.draw(direction, align, slots, &mut self.random);
        if block.is_none() && self.time_based {
            self.offsets.forget_visits();
            block = self.offsets.draw(direction, align, slots, &mut self.random);
        }
        let offset = start + block? * align;
        if self.zones.is_some() {
            return (self.region.begin + offset + bytes <= self.region.file_bytes)
                .then_some(offset);
        }
        // A large block at the very end is pulled back to fit.
        Some(if offset + bytes > self.region.bytes {
            (self.region.bytes - bytes) / align * align
        } else {
            offset
        })
    }
}

/// The place of a direction among the two that a clone keeps apart.
#[inline]
pub(super) fn lane(direction: Direction) -> usize {
    usize::from(direction != Direction::Read)
}

/// A size of at most `room` bytes, which holds the smallest: a multiple of that one.
fn draw_size(sizes: &BlockSizes, room: u64, stream: &mut Stream) -> u64 {
    let (smallest, largest) = (sizes.smallest(), sizes.largest());
    loop {
        let bytes = match sizes {
            BlockSizes::List(list) => draw_weighted(list, stream),
            BlockSizes::Range(..) => smallest + stream.below(largest),
        };
        let bytes = (bytes / smallest * smallest).min(largest);
        if bytes <= room.max(smallest) {
            return bytes;
        }
    }
}

fn draw_weighted(sizes: &[(u64, u64)], stream: &mut Stream) -> u64 {
    let total: u64 = sizes.iter().map(|(_, weight)| weight).sum();
    let mut draw = stream.below(total);
    for (bytes, weight) in sizes {
        if draw < *weight {
            return *bytes;
        }
        draw -= weight;
    }
    sizes[sizes.len() - 1].0
}
