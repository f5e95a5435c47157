//! Readahead: which pages to read before they are asked for
//! (`mm/readahead.c` of Linux 6.1).

use crate::block::request::{Flags, Operation, Purpose, Request};
use crate::machine::Machine;
use crate::mm::page_cache::state::{LOCKED, MARKER, PRESENT};
use crate::mm::page_cache::{PAGE_BYTES, PAGE_SECTORS};
use crate::mm::writeback::BIO_PAGES;
use crate::task::ready::Ready;
use crate::task::task_struct::TaskId;
use crate::workload::job::Advice;

/// Readahead state of a file descriptor; pages count from the file's start.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    start: u64,
    size: u64,
    /// How long before its end the next window is begun.
    async_size: u64,
    /// Page that was read last.
    pub(crate) previous: u64,
}

impl Default for Window {
    fn default() -> Self {
        Self { start: 0, size: 0, async_size: 0, previous: u64::MAX - 1 }
    }
}

fn initial_size(wanted: u64, max: u64) -> u64 {
    let size = wanted.next_power_of_two();
    if size <= max / 32 {
        size * 4
    } else if size <= max / 4 {
        size * 2
    } else {
        max
    }
}

fn next_size(current: u64, max: u64) -> u64 {
    if current < max / 16 {
        4 * current
    } else if current <= max / 2 {
        2 * current
    } else {
        max
    }
}

impl Window {
    fn begin(&mut self, page: u64, wanted: u64, max: u64) {
        self.start = page;
        self.size = initial_size(wanted, max);
        self.async_size = if self.size > wanted { self.size - wanted } else { self.size };
    }

    /// If the reader is already where the next window would be begun, that one is taken along.
    fn settle(&mut self, page: u64, max: u64) {
        if page == self.start && self.size == self.async_size {
            let more = next_size(self.size, max);
            if self.size + more <= max {
                self.async_size = more;
                self.size += more;
            } else {
                self.size = max;
                self.async_size = max / 2;
            }
        }
    }
}

impl Machine {
    /// A reader touched a page that is missing (`marker` false) or the marker
    /// of its window; `wanted` pages are still to be read by this call.
    pub(crate) fn read_ahead(&mut self, task: TaskId, page: u64, wanted: u64, marker: bool) {
        let clone = &self.clones[Self::clone_of(task) as usize];
        let file = self.files[clone.region.file as usize];
        let base = file.start / PAGE_BYTES;
        let file_pages = file.bytes.div_ceil(PAGE_BYTES);
        let (advice, mut window) = (clone.advice, clone.window);
        // POSIX_FADV_SEQUENTIAL doubles the window.
        let factor = if advice == Advice::Sequential { 2 } else { 1 };
        let ra_pages = self.read_ahead_pages * factor;
        if ra_pages == 0 || advice == Advice::Random {
            if !marker {
                // Without a window the kernel reads page by page.
                let wanted = if ra_pages == 0 { 1 } else { wanted };
                self.read_pages(task, page, wanted.min(base + file_pages - page), 0);
            }
            return;
        }
        let max =
            if wanted > ra_pages { wanted.min(self.max_io_pages).max(ra_pages) } else { ra_pages };
        let index = page - base;
        let next_expected = window.start + window.size;
        if index == 0 {
            window.begin(index, wanted, max);
            window.settle(index, max);
        } else if window.size > 0
            && (index == next_expected || index == next_expected - window.async_size)
        {
            window.start += window.size;
            // The window of a call that has little left to read does not shrink.
            window.size = window.size.max(next_size(window.size, max));
            window.async_size = window.size;
            window.settle(index, max);
        } else if marker {
            // A marker of somebody else's window: go on after what is cached.
            let missing = self.cache.next_missing(page + 1, max) - base;
            if missing - index > max {
                return;
            }
            window.start = missing;
            window.size = next_size(missing - index + wanted, max);
            window.async_size = window.size;
            window.settle(index, max);
        } else if wanted > max || index.wrapping_sub(window.previous) <= 1 {
            window.begin(index, wanted, max);
            window.settle(index, max);
        } else {
            let history = self.cache.history(page, max);
            if history <= wanted {
                // A random read: exactly what was asked for.
                self.read_pages(task, page, wanted.min(file_pages - index), 0);
                return;
            }
            let size = (if history >= index { history * 2 } else { history } + wanted).min(max);
            window.start = index;
            window.size = size;
            window.async_size = 1;
        }
        self.clones[Self::clone_of(task) as usize].window = window;
        if window.start < file_pages {
            let count = window.size.min(file_pages - window.start);
            let cut = window.size - count;
            self.read_pages(
                task,
                base + window.start,
                count,
                window.async_size.saturating_sub(cut),
            );
        }
    }

    /// Reads the missing ones of `count` pages and sets the marker `lookahead`
    /// pages before their end.
    pub(crate) fn read_pages(&mut self, task: TaskId, first: u64, count: u64, lookahead: u64) {
        let end = first + count;
        let marker = if lookahead == 0 { u64::MAX } else { end.saturating_sub(lookahead) };
        self.plug(task);
        let mut run = first;
        for page in first..=end {
            let missing = page < end && self.cache.get(page) & (PRESENT | LOCKED) == 0;
            if missing {
                let set = if page == marker { LOCKED | MARKER } else { LOCKED };
                self.cache.change(page, set, 0);
                continue;
            }
            self.submit_page_reads(task, run, page);
            run = page + 1;
        }
        self.unplug(task);
    }

    fn submit_page_reads(&mut self, task: TaskId, mut first: u64, end: u64) {
        let max_pages = (u64::from(self.disks[0].max_sectors) / PAGE_SECTORS).max(1);
        let device_sectors = self.capacity_sectors;
        let mut bio_end = first;
        while first < end {
            if first == bio_end {
                bio_end = end.min(first + BIO_PAGES);
            }
            // What the queue cannot take at once is split off the bio.
            let pages = (bio_end - first).min(max_pages);
            let sector = first * PAGE_SECTORS;
            // The device's last page may be cut.
            let sectors = (pages * PAGE_SECTORS).min(device_sectors - sector);
            let mut bio = Request::new(Operation::Read, sector, sectors as u32, Purpose::PageRead);
            let clone = &self.clones[Self::clone_of(task) as usize];
            bio.priority = clone.priority;
            bio.group = clone.group;
            bio.flags = Flags { sync: true, readahead: true, ..Flags::default() };
            bio.context = task;
            let id = self.requests.allocate(bio);
            self.submit(task, id);
            first += pages;
        }
    }

    /// A read into the cache is done.
    pub(crate) fn pages_read(&mut self, sector: u64, nr_sectors: u32) {
        let first = sector / PAGE_SECTORS;
        let end = (sector + u64::from(nr_sectors)).div_ceil(PAGE_SECTORS);
        for page in first..end {
            self.cache.change(page, PRESENT, LOCKED);
        }
        self.wake_page_waiters(first, end);
    }

    /// Wakes tasks that sleep for one of these pages.
    pub(crate) fn wake_page_waiters(&mut self, first: u64, end: u64) {
        let mut woken = std::mem::take(&mut self.woken);
        self.page_waiters.retain(|&(page, task)| {
            let wakes = (first..end).contains(&page);
            if wakes {
                woken.push(task);
            }
            !wakes
        });
        for task in woken.drain(..) {
            self.make_ready(Ready::Call(task));
        }
        self.woken = woken;
    }
}
