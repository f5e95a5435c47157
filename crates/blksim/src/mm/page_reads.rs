//! Reading pages into the cache, on demand and ahead.

use crate::block::request::{Flags, Hint, Operation, Purpose, Request, TaskId};
use crate::machine::Machine;
use crate::mm::memory::SplitRead;
use crate::mm::page_cache::state::{LOCKED, MARKER, PRESENT};
use crate::mm::page_cache::{PAGE_BYTES, PAGE_SECTORS};
use crate::mm::readahead::{Next, Touched};
use crate::mm::writeback::BIO_PAGES;
use crate::task::tasks::Tasks;
use crate::workload::job::Advice;

impl Machine {
    /// A reader touched a page that is missing (`marker` is false) or the marker of its window. The
    /// call still wants `wanted` pages.
    pub(crate) fn read_ahead(&mut self, task: TaskId, page: u64, wanted: u64, marker: bool) {
        let process = &mut self.tasks.processes[Tasks::process_of(task) as usize];
        let file = self.mm.files[process.region.file as usize];
        let base = file.start / PAGE_BYTES;
        let file_pages = file.bytes.div_ceil(PAGE_BYTES);
        let ra_pages = self.mm.window_pages(process.advice);
        if ra_pages == 0 || process.advice == Advice::Random {
            if !marker {
                // Without a window the kernel reads page by page.
                let wanted = if ra_pages == 0 { 1 } else { wanted };
                self.read_pages(task, page, wanted.min(base + file_pages - page), 0);
            }
            return;
        }
        let max = if wanted > ra_pages {
            wanted.min(self.mm.max_io_pages).max(ra_pages)
        } else {
            ra_pages
        };
        let touched = Touched { page, base, wanted, marker };
        let (window, cache) = (&mut process.window, &mut self.mm.cache);
        let behaviours = self.mm.behaviours;
        let aligned = behaviours.windows_end_aligned;
        let next = match (behaviours.only_marker_moves_window, marker) {
            (false, _) => window.next(cache, touched, max),
            (true, false) => window.miss(cache, touched, max),
            (true, true) => window.reach_marker(cache, touched, max, aligned),
        };
        match next {
            // A random read: exactly what was asked for.
            Next::Wanted => self.read_pages(task, page, wanted.min(file_pages - (page - base)), 0),
            Next::Window { start, size, async_size } if start < file_pages => {
                let count = size.min(file_pages - start);
                // A window that reaches the end of the file has no marker (`do_page_cache_ra`, Linux 7.3).
                let ends = aligned && count == file_pages - start;
                let async_size = if ends { 0 } else { async_size };
                let cut = size - count;
                self.read_pages(task, base + start, count, async_size.saturating_sub(cut));
            }
            Next::Nothing | Next::Window { .. } => {}
        }
    }

    /// A fault in a mapped file found its page missing (`do_sync_mmap_readahead` of `mm/filemap.c`, Linux
    /// 6.1): in order, the readahead of a read of a whole window; at random, the page alone; without
    /// advice, the pages around it.
    pub(crate) fn read_for_fault(&mut self, task: TaskId, page: u64) {
        let process = &mut self.tasks.processes[Tasks::process_of(task) as usize];
        let advice = process.advice;
        let window_pages = self.mm.window_pages(advice);
        if window_pages == 0 || advice == Advice::Random {
            self.read_pages(task, page, 1, 0);
            return;
        }
        if advice == Advice::Sequential {
            self.read_ahead(task, page, window_pages, false);
            return;
        }
        let file = self.mm.files[process.region.file as usize];
        let base = file.start / PAGE_BYTES;
        let end = base + file.bytes.div_ceil(PAGE_BYTES);
        let first = page.saturating_sub(window_pages / 2).max(base);
        process.window.surround(first - base, window_pages);
        let count = window_pages.min(end - first);
        let cut = window_pages - count;
        self.read_pages(task, first, count, (window_pages / 4).saturating_sub(cut));
    }

    /// Reads the missing ones of `count` pages and sets the marker `lookahead`
    /// pages before their end.
    pub(crate) fn read_pages(&mut self, task: TaskId, first: u64, count: u64, lookahead: u64) {
        let end = first + count;
        let marker = if lookahead == 0 { u64::MAX } else { end.saturating_sub(lookahead) };
        self.plug(task);
        let mut run = first;
        for page in first..=end {
            let missing = page < end && self.mm.cache.get(page) & (PRESENT | LOCKED) == 0;
            if missing {
                let set = if page == marker { LOCKED | MARKER } else { LOCKED };
                self.mm.cache.change(page, set, 0);
                continue;
            }
            self.submit_page_reads(task, run, page);
            run = page + 1;
        }
        self.unplug(task);
    }

    fn submit_page_reads(&mut self, task: TaskId, mut first: u64, end: u64) {
        let max_pages = (u64::from(self.block.disks[0].max_sectors) / PAGE_SECTORS).max(1);
        let bio_pages = if self.mm.behaviours.bio_holds_window { end - first } else { BIO_PAGES };
        let device_sectors = self.block.capacity_sectors;
        let mut bio_end = first;
        while first < end {
            if first == bio_end {
                bio_end = end.min(first + bio_pages);
                let parts = (bio_end - first).div_ceil(max_pages);
                if parts > 1 && self.mm.behaviours.bio_holds_window {
                    self.mm.split_reads.push(SplitRead { pages: first..bio_end, parts });
                }
            }
            // Pages that do not fit in one request are split off the bio.
            let pages = (bio_end - first).min(max_pages);
            let sector = first * PAGE_SECTORS;
            // The device's last page may be cut.
            let sectors = (pages * PAGE_SECTORS).min(device_sectors - sector);
            let mut bio = Request::new(Operation::Read, sector, sectors as u32, Purpose::PageRead);
            let process = &self.tasks.processes[Tasks::process_of(task) as usize];
            bio.priority = process.priority;
            bio.group = process.group;
            bio.flags = Flags { sync: true, hint: Hint::Readahead };
            bio.context = task;
            let id = self.block.requests.allocate(bio);
            self.submit(task, id);
            first += pages;
        }
    }

    /// A read into the cache is done.
    pub(crate) fn pages_read(&mut self, sector: u64, nr_sectors: u32) {
        let mut first = sector / PAGE_SECTORS;
        let mut end = (sector + u64::from(nr_sectors)).div_ceil(PAGE_SECTORS);
        let split = &mut self.mm.split_reads;
        if let Some(place) = split.iter().position(|bio| bio.pages.contains(&first)) {
            split[place].parts -= 1;
            if split[place].parts > 0 {
                return;
            }
            let whole = split.swap_remove(place).pages;
            (first, end) = (whole.start, whole.end);
        }
        for page in first..end {
            self.mm.cache.change(page, PRESENT, LOCKED);
        }
        self.mm.wake_page_waiters(&mut self.block.ready, first, end);
    }
}
