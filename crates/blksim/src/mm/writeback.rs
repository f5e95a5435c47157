//! The state of writeback (`mm/page-writeback.c` and `fs/fs-writeback.c` of Linux 6.1).
//!
//! Simplified: one flusher for all files. Writeback is charged to the control group that dirtied a
//! file first (the kernel charges the one that dirties most of it). One flusher serves all groups,
//! so a policy that puts it to sleep for one group holds up the writeback of others.

use crate::block::request::TaskId;
use crate::core::params::Values;
use crate::mm::dirty_limits::DirtyLimits;
use crate::mm::dirty_throttle::{Dirtier, DirtyThrottle, Level};
use crate::mm::page_cache::PageCache;

/// Pages of a bio at most, if no two lie next to each other in memory (`BIO_MAX_VECS`).
pub(crate) const BIO_PAGES: u64 = 256;
/// Granularity of the flusher's chunks: 4 MiB.
const CHUNK_PAGES: u64 = 1024;
/// Pages of a `pagevec` (`include/linux/pagevec.h`).
pub(crate) const PAGEVEC_PAGES: usize = 15;

/// Dirty state of a file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FileState {
    /// The time since which it has had dirty pages.
    pub(crate) dirty_since_ns: Option<u64>,
    /// The control group that pays for its writeback: the group of the task that dirtied it when it
    /// was clean.
    pub(crate) owner: u16,
    /// The flusher's position.
    pub(crate) cursor: u64,
}

#[derive(Debug, Clone)]
pub struct Writeback {
    pub(crate) period_ns: u64,
    pub(crate) expire_ns: u64,
    limits: DirtyLimits,
    pub(crate) files: Vec<FileState>,
    /// Pages of a bio. On a raw device each page is a bio of its own (`blkdev_writepages` of
    /// `block/fops.c`, Linux 6.1), and the plug merges them.
    pub(crate) bio_pages: u64,
    /// Pages whose writer sleeps in their submission and holds their locks
    /// (`__block_write_full_page` in `fs/buffer.c`, Linux 6.1).
    pub(crate) held: Vec<(TaskId, u64)>,
    /// Owner of the file that the flusher is writing.
    pub(crate) group: u16,
    /// The file that the flusher looks at next.
    pub(crate) next_file: usize,
    pub(crate) throttle: DirtyThrottle,
    /// Data has expired; otherwise the flusher works for the threshold only.
    pub(crate) expired: bool,
    /// It has to wait for a completion before it can write more.
    pub(crate) stalled: bool,
    /// The file of the chunk within which the flusher fell asleep, and the pages that are left of it.
    pub(crate) unfinished: Option<(usize, u64)>,
}

impl Writeback {
    pub fn new(machine: &Values, nr_files: usize, buffers_of_page: u64) -> Self {
        let limits = DirtyLimits::new(machine, buffers_of_page);
        Self {
            period_ns: machine.get_ns("dirty_writeback_centisecs"),
            expire_ns: machine.get_ns("dirty_expire_centisecs"),
            limits,
            files: vec![FileState::default(); nr_files],
            bio_pages: if machine.flag("raw_device") { 1 } else { BIO_PAGES },
            held: Vec::new(),
            group: 0,
            next_file: 0,
            throttle: DirtyThrottle::new(machine.get("hz"), limits.first_limit()),
            expired: false,
            stalled: false,
            unfinished: None,
        }
    }

    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// Pages that fsync looks up at once: a `pagevec` on a raw device; one on a file system, which
    /// looks again after each bio.
    pub(crate) fn pages_looked_up(&self) -> usize {
        if self.bio_pages == 1 { PAGEVEC_PAGES } else { 1 }
    }

    /// True if the page is locked by its writer.
    pub(crate) fn is_held(&self, page: u64) -> bool {
        self.held.iter().any(|(_, held)| *held == page)
    }

    /// Pages of one file that the flusher writes at a time: half a second's worth, but no more than
    /// about an eighth of the dirty limit (`writeback_chunk_size`).
    pub(crate) fn chunk_pages(&self) -> u64 {
        let pages = (self.throttle.average_bandwidth() / 2).min(self.throttle.hard_limit() / 8);
        (pages + CHUNK_PAGES) / CHUNK_PAGES * CHUNK_PAGES
    }

    /// Dirty pages and their limits.
    pub(crate) fn level(&self, cache: &PageCache) -> Level {
        self.limits.level(cache, self.throttle.hard_limit())
    }

    /// Whether the flusher has to write (`wb_over_bg_thresh`). Before its first page is written, a guest's new disk has no
    /// share of the threshold.
    pub(crate) fn is_over_background(&self, cache: &PageCache) -> bool {
        let has_share = self.bio_pages > 1 || self.throttle.has_written();
        cache.nr_dirty() > if has_share { self.level(cache).background } else { 0 }
    }

    /// A task wrote to a page of a file.
    pub(crate) fn note_dirtied(
        &mut self,
        dirtier: &mut Dirtier,
        file: u32,
        group: u16,
        was_clean: bool,
        now_ns: u64,
    ) {
        self.throttle.note_touched(dirtier, was_clean, self.limits.first_limit());
        let state = &mut self.files[file as usize];
        if state.dirty_since_ns.is_none() {
            state.dirty_since_ns = Some(now_ns);
            state.owner = group;
        }
    }

    /// The next file with pages to write, in turn.
    pub(crate) fn next_dirty_file(&mut self, over_threshold: bool, now_ns: u64) -> Option<usize> {
        if !over_threshold && !self.expired {
            return None;
        }
        let count = self.files.len();
        let expired_ns = now_ns.checked_sub(self.expire_ns);
        for step in 0..count {
            let file = (self.next_file + step) % count;
            let Some(since_ns) = self.files[file].dirty_since_ns else { continue };
            if over_threshold || expired_ns.is_some_and(|t| since_ns <= t) {
                self.next_file = (file + 1) % count;
                return Some(file);
            }
        }
        self.expired = false;
        None
    }
}
