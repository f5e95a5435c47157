//! The blocks that random I/O of several sizes has not visited in a pass, as fio's map of a file.

use std::collections::BTreeMap;

/// Blocks from 0, free or visited. Visited ones are kept as runs, so that a sparse map of a large
/// device is small.
#[derive(Debug, Clone)]
pub(super) struct FreeBlocks {
    nr_blocks: u64,
    /// First block of each run to the block behind it. Runs do not touch.
    visited: BTreeMap<u64, u64>,
}

impl FreeBlocks {
    pub fn new(nr_blocks: u64) -> Self {
        Self { nr_blocks, visited: BTreeMap::new() }
    }

    pub fn reset(&mut self) {
        self.visited.clear();
    }

    /// The block behind the run that `block` is in, if it was visited.
    fn end_of_run(&self, block: u64) -> Option<u64> {
        let (_, &end) = self.visited.range(..=block).next_back()?;
        (block < end).then_some(end)
    }

    /// `block` if it is free, else the next free one, going round at the end (`axmap_next_free` in
    /// `lib/axmap.c`, fio 3.33). `None` if all were visited.
    pub fn next_free(&self, block: u64) -> Option<u64> {
        let Some(end) = self.end_of_run(block) else { return Some(block) };
        if end < self.nr_blocks {
            return Some(end);
        }
        let first = self.end_of_run(0).unwrap_or(0);
        (first < self.nr_blocks).then_some(first)
    }

    /// Marks up to `wanted` blocks from `block` on, which is free, up to the next visited one.
    /// Returns how many (`axmap_set_nr`).
    pub fn visit(&mut self, block: u64, wanted: u64) -> u64 {
        let next = self.visited.range(block..).next().map(|(&start, &end)| (start, end));
        let limit = next.map_or(self.nr_blocks, |(start, _)| start);
        let mut end = block.saturating_add(wanted).min(limit.max(block + 1));
        let nr = end - block;
        if let Some((start, next_end)) = next.filter(|(start, _)| *start == end) {
            self.visited.remove(&start);
            end = next_end;
        }
        match self.visited.range_mut(..block).next_back() {
            Some((_, before)) if *before == block => *before = end,
            _ => {
                self.visited.insert(block, end);
            }
        }
        nr
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_grow_together_and_end_where_others_begin() {
        let mut blocks = FreeBlocks::new(16);
        assert_eq!(blocks.visit(4, 2), 2);
        assert_eq!(blocks.visit(8, 4), 4);
        assert_eq!((blocks.next_free(5), blocks.next_free(3)), (Some(6), Some(3)));
        assert_eq!(blocks.visit(6, 9), 2);
        assert_eq!(blocks.visited.iter().collect::<Vec<_>>(), [(&4, &12)]);
        assert_eq!(blocks.visit(12, 9), 4);
        assert_eq!(blocks.next_free(15), Some(0));
        assert_eq!(blocks.visit(0, 9), 4);
        assert_eq!(blocks.next_free(7), None);
        blocks.reset();
        assert_eq!(blocks.next_free(7), Some(7));
    }
}
