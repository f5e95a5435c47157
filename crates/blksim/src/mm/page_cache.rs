//! The page cache: the pages of the device that are in memory, and their state.
//!
//! Pages are kept in chunks of 4 MiB, made on first use. Reclaim passes over the chunks in a
//! second-chance order and frees their clean pages.

use std::collections::{BTreeMap, VecDeque};

/// Bytes of a page.
pub use crate::block::request::PAGE_BYTES;
/// Sectors of a page.
pub(crate) const PAGE_SECTORS: u64 = PAGE_BYTES / 512;
const CHUNK_PAGES: u64 = 1024;

/// State of a page, as bits.
pub(crate) mod state {
    /// Holds the device's contents.
    pub const PRESENT: u8 = 1;
    /// Newer than the device.
    pub const DIRTY: u8 = 2;
    /// Being written to the device.
    pub const WRITEBACK: u8 = 4;
    /// Being read from the device.
    pub const LOCKED: u8 = 8;
    /// Touching it starts the next readahead window (`PG_readahead`).
    pub const MARKER: u8 = 16;
    /// It was dirty when a writer of the whole range began (`PAGECACHE_TAG_TOWRITE`).
    pub const TO_WRITE: u8 = 32;
    /// It was written to, and has buffer heads until it is freed.
    pub const BUFFERS: u8 = 64;
}
use state::{BUFFERS, DIRTY, LOCKED, MARKER, PRESENT, TO_WRITE, WRITEBACK};

#[derive(Debug, Clone)]
struct Chunk {
    pages: Box<[u8; CHUNK_PAGES as usize]>,
    /// Pages with any state bit.
    used: u32,
    dirty: u32,
    writeback: u32,
    referenced: bool,
}

/// All cached pages, addressed by their number on the device.
#[derive(Debug, Clone)]
pub struct PageCache {
    chunks: Vec<Chunk>,
    index: BTreeMap<u64, u32>,
    /// The chunk that was used last: (number, slot).
    recent: (u64, u32),
    order: VecDeque<u64>,
    capacity_pages: u64,
    nr_pages: u64,
    nr_dirty: u64,
    nr_writeback: u64,
    nr_with_buffers: u64,
}

impl PageCache {
    pub fn new(capacity_pages: u64) -> Self {
        Self {
            chunks: Vec::new(),
            index: BTreeMap::new(),
            recent: (u64::MAX, 0),
            order: VecDeque::new(),
            capacity_pages,
            nr_pages: 0,
            nr_dirty: 0,
            nr_writeback: 0,
            nr_with_buffers: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.nr_pages == 0
    }

    pub fn nr_dirty(&self) -> u64 {
        self.nr_dirty
    }

    pub fn nr_writeback(&self) -> u64 {
        self.nr_writeback
    }

    pub fn nr_pages(&self) -> u64 {
        self.nr_pages
    }

    /// Cached pages that were written to.
    pub fn nr_with_buffers(&self) -> u64 {
        self.nr_with_buffers
    }

    #[inline]
    fn slot(&mut self, page: u64) -> Option<u32> {
        let number = page / CHUNK_PAGES;
        if self.recent.0 != number {
            self.recent = (number, *self.index.get(&number)?);
        }
        Some(self.recent.1)
    }

    /// State of a page; 0 if it is not cached.
    #[inline]
    pub fn get(&mut self, page: u64) -> u8 {
        match self.slot(page) {
            Some(slot) => {
                let chunk = &mut self.chunks[slot as usize];
                chunk.referenced = true;
                chunk.pages[(page % CHUNK_PAGES) as usize]
            }
            None => 0,
        }
    }

    /// Changes a page's state: sets and clears bits.
    pub fn change(&mut self, page: u64, set: u8, clear: u8) {
        let slot = match self.slot(page) {
            Some(slot) => slot,
            None if set == 0 => return,
            None => self.add_chunk(page / CHUNK_PAGES),
        };
        let chunk = &mut self.chunks[slot as usize];
        let page_state = &mut chunk.pages[(page % CHUNK_PAGES) as usize];
        let old = *page_state;
        let mut new = (old | set) & !clear;
        if new & DIRTY != 0 {
            new |= BUFFERS;
        } else if new == BUFFERS {
            new = 0;
        }
        *page_state = new;
        let counts = |bit: u8| (i64::from(new & bit != 0) - i64::from(old & bit != 0)) as i32;
        let used = i32::from(new != 0) - i32::from(old != 0);
        let (dirty, writeback) = (counts(DIRTY), counts(WRITEBACK));
        chunk.used = chunk.used.wrapping_add_signed(used);
        chunk.dirty = chunk.dirty.wrapping_add_signed(dirty);
        chunk.writeback = chunk.writeback.wrapping_add_signed(writeback);
        self.nr_pages = self.nr_pages.wrapping_add_signed(i64::from(used));
        self.nr_dirty = self.nr_dirty.wrapping_add_signed(i64::from(dirty));
        self.nr_writeback = self.nr_writeback.wrapping_add_signed(i64::from(writeback));
        self.nr_with_buffers = self.nr_with_buffers.wrapping_add_signed(i64::from(counts(BUFFERS)));
        debug_assert!(
            self.nr_dirty <= self.nr_pages && self.nr_writeback <= self.nr_pages,
            "counters of the page cache"
        );
        if used > 0 && self.nr_pages > self.capacity_pages {
            self.reclaim(page / CHUNK_PAGES);
        }
    }

    fn add_chunk(&mut self, number: u64) -> u32 {
        let slot = self.chunks.len() as u32;
        self.chunks.push(Chunk {
            pages: Box::new([0; CHUNK_PAGES as usize]),
            used: 0,
            dirty: 0,
            writeback: 0,
            referenced: true,
        });
        self.index.insert(number, slot);
        self.order.push_back(number);
        self.recent = (number, slot);
        slot
    }

    /// Frees clean pages of the least recently used chunk, sparing `current`.
    fn reclaim(&mut self, current: u64) {
        for _ in 0..2 * self.order.len() {
            let Some(number) = self.order.pop_front() else { return };
            self.order.push_back(number);
            let Some(&slot) = self.index.get(&number) else { continue };
            let chunk = &mut self.chunks[slot as usize];
            if number == current || std::mem::take(&mut chunk.referenced) {
                continue;
            }
            let before = self.nr_pages;
            self.drop_clean(slot, 0, CHUNK_PAGES);
            if self.nr_pages < before {
                return;
            }
        }
    }

    /// Forgets clean, idle pages of a part of a chunk.
    fn drop_clean(&mut self, slot: u32, from: u64, to: u64) {
        let chunk = &mut self.chunks[slot as usize];
        for page in &mut chunk.pages[from as usize..to as usize] {
            if *page != 0 && *page & (DIRTY | WRITEBACK | LOCKED) == 0 {
                self.nr_with_buffers -= u64::from(*page & BUFFERS != 0);
                *page = 0;
                chunk.used -= 1;
                self.nr_pages -= 1;
            }
        }
    }

    /// Drops the clean pages of a range of bytes.
    pub fn invalidate(&mut self, start: u64, bytes: u64) {
        let (first, end) = (start / PAGE_BYTES, (start + bytes).div_ceil(PAGE_BYTES));
        let slots: Vec<_> = self
            .index
            .range(first / CHUNK_PAGES..end.div_ceil(CHUNK_PAGES))
            .map(|(number, slot)| (*number, *slot))
            .collect();
        for (number, slot) in slots {
            let base = number * CHUNK_PAGES;
            let from = first.max(base) - base;
            let to = end.min(base + CHUNK_PAGES) - base;
            self.drop_clean(slot, from, to);
        }
    }

    /// Makes a range of bytes present without I/O, as far as memory allows.
    pub fn load(&mut self, start: u64, bytes: u64) {
        let first = start / PAGE_BYTES;
        let end = (start + bytes).div_ceil(PAGE_BYTES).min(first + self.capacity_pages);
        for page in first..end {
            self.change(page, PRESENT, MARKER);
        }
    }

    /// Marks the dirty pages of a range as to be written.
    pub fn tag_dirty(&mut self, from: u64, end: u64) {
        let mut page = from;
        while let Some(dirty) = self.next_with(DIRTY, page, end) {
            self.change(dirty, TO_WRITE, 0);
            page = dirty + 1;
        }
    }

    /// The first page in `from..end` with one of the bits `DIRTY`, `TO_WRITE` (which only dirty
    /// pages have) or `WRITEBACK`.
    pub fn next_with(&self, bit: u8, from: u64, end: u64) -> Option<u64> {
        if from >= end {
            return None;
        }
        for (&number, &slot) in self.index.range(from / CHUNK_PAGES..end.div_ceil(CHUNK_PAGES)) {
            let chunk = &self.chunks[slot as usize];
            let count = if bit == WRITEBACK { chunk.writeback } else { chunk.dirty };
            if count == 0 {
                continue;
            }
            let base = number * CHUNK_PAGES;
            let first = from.max(base) - base;
            let last = end.min(base + CHUNK_PAGES) - base;
            let found = (first..last).find(|&page| chunk.pages[page as usize] & bit != 0);
            if let Some(page) = found {
                return Some(base + page);
            }
        }
        None
    }

    /// The next page that is dirty and not being written.
    pub(crate) fn next_writable(&mut self, from: u64, end: u64) -> Option<u64> {
        let mut page = from;
        loop {
            page = self.next_with(DIRTY, page, end)?;
            if self.get(page) & WRITEBACK == 0 {
                return Some(page);
            }
            page += 1;
        }
    }

    /// The first page at or after `from`, within `limit`, that is neither present nor being read.
    pub fn next_missing(&mut self, from: u64, limit: u64) -> u64 {
        let mut page = from;
        while page < from + limit && self.get(page) & (PRESENT | LOCKED) != 0 {
            page += 1;
        }
        page
    }

    /// The number of pages before `page` that are cached without a gap, up to `limit`
    /// (`count_history_pages`).
    pub fn history(&mut self, page: u64, limit: u64) -> u64 {
        let mut count = 0;
        while count < limit && count < page && self.get(page - 1 - count) & (PRESENT | LOCKED) != 0
        {
            count += 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_follow_states() {
        let mut cache = PageCache::new(1 << 20);
        cache.change(5, PRESENT | DIRTY, 0);
        cache.change(5000, PRESENT, 0);
        assert_eq!((cache.nr_dirty(), cache.nr_writeback()), (1, 0));
        assert_eq!(cache.next_with(DIRTY, 0, 10_000), Some(5));
        assert_eq!(cache.next_with(DIRTY, 6, 10_000), None);
        cache.change(5, WRITEBACK, DIRTY);
        assert_eq!(cache.next_with(WRITEBACK, 0, 10_000), Some(5));
        cache.invalidate(0, 1 << 30);
        assert_eq!((cache.get(5), cache.get(5000)), (PRESENT | WRITEBACK | BUFFERS, 0));
        cache.change(5, 0, WRITEBACK);
        assert_eq!(cache.nr_with_buffers(), 1);
        cache.invalidate(0, 1 << 30);
        assert_eq!((cache.get(5), cache.nr_with_buffers(), cache.nr_pages()), (0, 0, 0));
    }

    #[test]
    fn what_is_dirtied_later_is_not_to_be_written() {
        let mut cache = PageCache::new(1 << 20);
        cache.change(5, PRESENT | DIRTY, 0);
        cache.tag_dirty(0, 100);
        cache.change(7, PRESENT | DIRTY, 0);
        assert_eq!(cache.next_with(TO_WRITE, 0, 100), Some(5));
        assert_eq!(cache.next_with(TO_WRITE, 6, 100), None);
        cache.change(5, WRITEBACK, DIRTY | TO_WRITE);
        assert_eq!(cache.next_with(TO_WRITE, 0, 100), None);
    }

    #[test]
    fn reclaim_keeps_within_memory_and_spares_dirty_pages() {
        let mut cache = PageCache::new(4096);
        cache.change(0, PRESENT | DIRTY, 0);
        for page in 1..20_000 {
            cache.change(page, PRESENT, 0);
        }
        assert!(cache.nr_pages <= 4096 + CHUNK_PAGES, "{}", cache.nr_pages);
        assert_eq!(cache.get(0), PRESENT | DIRTY | BUFFERS);
        assert_eq!(cache.get(19_999), PRESENT);
    }
}
