//! Writeback: the flusher (`mm/page-writeback.c` and `fs/fs-writeback.c` of Linux 6.1).
//!
//! Simplified: one flusher for all files. Writeback is charged to the
//! control group that dirtied a file first (the kernel: to the one that dirties
//! most of it), but one flusher serves all groups, so one that a policy puts to
//! sleep holds up the writeback of others.

use crate::block::request::{Flags, Operation, Priority, Purpose, Request};
use crate::core::event::Class;
use crate::core::params::Values;
use crate::machine::Machine;
use crate::mm::dirty_throttle::{DirtyThrottle, Level};
use crate::mm::page_cache::state::{DIRTY, TO_WRITE, WRITEBACK};
use crate::mm::page_cache::{PAGE_BYTES, PAGE_SECTORS};
use crate::task::task_struct::TaskId;

/// Pages of a bio at most, if no two lie next to each other in memory (`BIO_MAX_VECS`).
pub(crate) const BIO_PAGES: u64 = 256;
/// Granularity of the flusher's chunks: 4 MiB.
const CHUNK_PAGES: u64 = 1024;
/// Pages of a `pagevec` (`include/linux/pagevec.h`).
pub(crate) const PAGEVEC_PAGES: usize = 15;

/// Dirty state of a file.
#[derive(Debug, Clone, Copy, Default)]
struct FileState {
    /// Since when it has had dirty pages.
    dirty_since_ns: Option<u64>,
    /// Control group that its writeback is charged to: that of the task which
    /// dirtied it when it was clean.
    owner: u16,
    /// Where the flusher goes on.
    cursor: u64,
}

#[derive(Debug)]
pub struct Writeback {
    period_ns: u64,
    expire_ns: u64,
    background_pages: u64,
    limit_pages: u64,
    files: Vec<FileState>,
    /// Pages of a bio: on a bare device each is written by itself (`blkdev_writepages` of
    /// `block/fops.c`, Linux 6.1), and the plug brings them together again.
    bio_pages: u64,
    /// Pages whose writer sleeps in their submission: it holds their locks meanwhile
    /// (`__block_write_full_page` in `fs/buffer.c`, Linux 6.1).
    held: Vec<(TaskId, u64)>,
    /// Owner of the file that the flusher is writing.
    group: u16,
    /// The file that the flusher looks at next.
    next_file: usize,
    throttle: DirtyThrottle,
    /// The flusher works because data has expired, not only for the threshold.
    expired: bool,
    /// It has to wait for a completion before it can write more.
    stalled: bool,
}

impl Writeback {
    pub fn new(machine: &Values, nr_files: usize) -> Self {
        let pages = machine.get("memory") / PAGE_BYTES;
        let limit_pages = (pages * machine.get("dirty_ratio") / 100).max(CHUNK_PAGES);
        let background = pages * machine.get("dirty_background_ratio") / 100;
        // As in the kernel: a background threshold at or above the limit counts as half of it.
        let background_pages = if background >= limit_pages { limit_pages / 2 } else { background };
        Self {
            period_ns: machine.get_ns("dirty_writeback_centisecs"),
            expire_ns: machine.get_ns("dirty_expire_centisecs"),
            background_pages,
            limit_pages,
            files: vec![FileState::default(); nr_files],
            bio_pages: if machine.flag("bare") { 1 } else { BIO_PAGES },
            held: Vec::new(),
            group: 0,
            next_file: 0,
            throttle: DirtyThrottle::new(machine.get("hz")),
            expired: false,
            stalled: false,
        }
    }

    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// How many pages are looked up at once: on a bare device those of a `pagevec`; a file
    /// system's are looked for again after each bio.
    pub(crate) fn pages_looked_up(&self) -> usize {
        if self.bio_pages == 1 { PAGEVEC_PAGES } else { 1 }
    }

    /// Nobody can change this page for now.
    pub(crate) fn is_held(&self, page: u64) -> bool {
        self.held.iter().any(|(_, held)| *held == page)
    }

    /// Pages that the flusher writes of one file at a time: half a second's worth, and no more than about an
    /// eighth of what may be dirty (`writeback_chunk_size`).
    fn chunk_pages(&self) -> u64 {
        let pages = (self.throttle.average_bandwidth() / 2).min(self.limit_pages / 8);
        (pages + CHUNK_PAGES) / CHUNK_PAGES * CHUNK_PAGES
    }
}

impl Machine {
    /// A task wrote to a page of a file.
    pub(crate) fn note_dirtied(&mut self, task: TaskId, file: u32, group: u16, was_clean: bool) {
        let writeback = &mut self.writeback;
        let dirtier = &mut self.tasks[task as usize].dirtier;
        writeback.throttle.note_touched(dirtier, was_clean, writeback.limit_pages);
        let state = &mut writeback.files[file as usize];
        if state.dirty_since_ns.is_none() {
            state.dirty_since_ns = Some(self.events.now_ns());
            state.owner = group;
        }
    }

    /// Until when a task that dirtied pages must pause, if it must.
    pub(crate) fn balance_dirty_pages(&mut self, task: TaskId) -> Option<u64> {
        let (now_ns, nr_dirty) = (self.events.now_ns(), self.cache.nr_dirty());
        if nr_dirty > self.writeback.background_pages {
            self.run_flusher();
        }
        let writeback = &mut self.writeback;
        let level = Level {
            dirty: self.cache.nr_dirty() + self.cache.nr_writeback(),
            background: writeback.background_pages,
            limit: writeback.limit_pages,
        };
        let dirtier = &mut self.tasks[task as usize].dirtier;
        let until_ns = writeback.throttle.balance(dirtier, level, now_ns);
        if until_ns.is_some() {
            for disk in self.disks.iter_mut() {
                disk.dirtier_paused_ns = Some(now_ns);
            }
        }
        until_ns
    }

    /// The flusher's periodic look.
    pub(crate) fn writeback_tick(&mut self) {
        let now_ns = self.events.now_ns();
        let deadline_ns = now_ns.checked_sub(self.writeback.expire_ns);
        self.writeback.expired = deadline_ns.is_some_and(|deadline_ns| {
            self.writeback.files.iter().any(|f| f.dirty_since_ns.is_some_and(|t| t <= deadline_ns))
        });
        self.run_flusher();
        self.events.at(now_ns + self.writeback.period_ns, Class::Writeback, 0);
    }

    /// Writes until nothing is due or the flusher has to sleep, within one plug (`wb_writeback`).
    pub(crate) fn run_flusher(&mut self) {
        let task = self.flusher;
        if self.tasks[task as usize].blocked {
            return;
        }
        self.plug(task);
        while !self.tasks[task as usize].blocked && !self.writeback.stalled {
            let over = self.cache.nr_dirty() > self.writeback.background_pages;
            let Some(file) = self.next_dirty_file(over) else { break };
            self.write_chunk(task, file);
        }
        if !self.tasks[task as usize].blocked {
            self.unplug(task);
        }
    }

    /// The next file, in turn, of which something is to be written.
    fn next_dirty_file(&mut self, over_threshold: bool) -> Option<usize> {
        if !over_threshold && !self.writeback.expired {
            return None;
        }
        let count = self.writeback.files.len();
        let expired_ns = self.events.now_ns().checked_sub(self.writeback.expire_ns);
        for step in 0..count {
            let file = (self.writeback.next_file + step) % count;
            let Some(since_ns) = self.writeback.files[file].dirty_since_ns else { continue };
            if over_threshold || expired_ns.is_some_and(|t| since_ns <= t) {
                self.writeback.next_file = (file + 1) % count;
                return Some(file);
            }
        }
        self.writeback.expired = false;
        None
    }

    /// Writes one chunk of a file's dirty pages, from where the flusher was.
    fn write_chunk(&mut self, task: TaskId, file: usize) {
        let first = self.files[file].start / PAGE_BYTES;
        let end = (self.files[file].start + self.files[file].bytes).div_ceil(PAGE_BYTES);
        let (now_ns, under_way) = (self.events.now_ns(), self.cache.nr_writeback() > 0);
        self.writeback.throttle.writeback_begins(now_ns, under_way);
        let chunk = self.writeback.chunk_pages();
        self.writeback.group = self.writeback.files[file].owner;
        let mut left = chunk;
        let mut page = self.writeback.files[file].cursor.max(first);
        let mut wrapped = page == first;
        while left > 0 && !self.tasks[task as usize].blocked {
            let Some(dirty) = self.next_writable(page, end) else {
                if wrapped {
                    break;
                }
                wrapped = true;
                page = first;
                continue;
            };
            let written = self.write_dirty_run(task, dirty, end.min(dirty + left), false);
            page = dirty + written;
            left = left.saturating_sub(written);
        }
        let state = &mut self.writeback.files[file];
        state.cursor = page;
        if self.cache.next_with(DIRTY, first, end).is_none() {
            state.dirty_since_ns = None;
        }
        // Nothing could be written although something is dirty: all of it is
        // on its way already. The next completion calls again.
        self.writeback.stalled = left == chunk && !self.tasks[task as usize].blocked;
    }

    /// The next page that is dirty and not being written.
    fn next_writable(&mut self, from: u64, end: u64) -> Option<u64> {
        let mut page = from;
        loop {
            page = self.cache.next_with(DIRTY, page, end)?;
            if self.cache.get(page) & WRITEBACK == 0 {
                return Some(page);
            }
            page += 1;
        }
    }

    /// Writes the contiguous dirty pages from `first` on, at most one bio's
    /// worth; tells how many.
    pub(crate) fn write_dirty_run(
        &mut self,
        task: TaskId,
        first: u64,
        end: u64,
        sync: bool,
    ) -> u64 {
        let of_queue = (u64::from(self.disks[0].max_sectors) / PAGE_SECTORS).max(1);
        let max_pages = self.writeback.bio_pages.min(of_queue);
        let wanted = if sync { TO_WRITE } else { DIRTY };
        let mut page = first;
        while page < end && page - first < max_pages {
            let page_state = self.cache.get(page);
            if page_state & wanted == 0 || page_state & WRITEBACK != 0 {
                break;
            }
            self.cache.change(page, WRITEBACK, DIRTY | TO_WRITE);
            page += 1;
        }
        let sector = first * PAGE_SECTORS;
        let sectors = ((page - first) * PAGE_SECTORS).min(self.capacity_sectors - sector);
        let mut bio = Request::new(Operation::Write, sector, sectors as u32, Purpose::Writeback);
        // The flusher is a kernel thread of ordinary priority, whoever dirtied the pages.
        (bio.priority, bio.group) = if sync {
            let clone = &self.clones[Self::clone_of(task) as usize];
            (clone.priority, clone.group)
        } else {
            (Priority::DEFAULT, self.writeback.group)
        };
        bio.flags = Flags { sync, background: !sync, ..Flags::default() };
        bio.context = task;
        let id = self.requests.allocate(bio);
        self.submit(task, id);
        if self.writeback.bio_pages == 1 && self.tasks[task as usize].blocked {
            self.writeback.held.push((task, first));
        }
        page - first
    }

    /// A task's submission is through: it lets go of the page that it wrote.
    pub(crate) fn release_page(&mut self, task: TaskId) {
        let held = &mut self.writeback.held;
        if let Some(place) = held.iter().position(|(holder, _)| *holder == task) {
            let (_, page) = held.remove(place);
            self.wake_page_waiters(page, page + 1);
        }
    }

    /// A write of cached pages is done.
    pub(crate) fn pages_written(&mut self, sector: u64, nr_sectors: u32) {
        let first = sector / PAGE_SECTORS;
        let end = (sector + u64::from(nr_sectors)).div_ceil(PAGE_SECTORS);
        for page in first..end {
            self.cache.change(page, 0, WRITEBACK);
        }
        self.writeback.throttle.note_written(end - first);
        self.wake_page_waiters(first, end);
        if std::mem::take(&mut self.writeback.stalled) {
            self.run_flusher();
        }
    }
}
