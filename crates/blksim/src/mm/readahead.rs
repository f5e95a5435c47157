//! Readahead: the window of pages to read before they are asked for (`mm/readahead.c` of Linux
//! 6.1).

use crate::mm::page_cache::PageCache;

/// The readahead state of a file descriptor (`struct file_ra_state`); pages count from the file's
/// start.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    start: u64,
    size: u64,
    /// Distance from its end at which the next window begins.
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

/// The page that a reader found missing, or its marker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Touched {
    pub(crate) page: u64,
    /// First page of the file.
    pub(crate) base: u64,
    /// Pages that the call still wants.
    pub(crate) wanted: u64,
    /// It is the marker of a window.
    pub(crate) marker: bool,
}

/// The pages to read next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Nothing,
    /// Only the pages that the call wants.
    Wanted,
    /// A window that begins at this page of the file.
    Window {
        start: u64,
        size: u64,
        async_size: u64,
    },
}

impl Window {
    fn begin(&mut self, page: u64, wanted: u64, max: u64) {
        self.start = page;
        self.size = initial_size(wanted, max);
        self.async_size = if self.size > wanted { self.size - wanted } else { self.size };
    }

    /// If the reader is already where the next window would begin, reads that one too.
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

    /// Moves the window on (`ondemand_readahead`).
    pub(crate) fn next(&mut self, cache: &mut PageCache, touched: Touched, max: u64) -> Next {
        let Touched { page, base, wanted, marker } = touched;
        let index = page - base;
        let next_expected = self.start + self.size;
        if index == 0 {
            self.begin(index, wanted, max);
            self.settle(index, max);
        } else if self.size > 0
            && (index == next_expected || index == next_expected - self.async_size)
        {
            self.start += self.size;
            // The window of a call that has little left to read does not shrink.
            self.size = self.size.max(next_size(self.size, max));
            self.async_size = self.size;
            self.settle(index, max);
        } else if marker {
            // The marker of another window: continue after the cached pages.
            let missing = cache.next_missing(page + 1, max) - base;
            if missing - index > max {
                return Next::Nothing;
            }
            self.start = missing;
            self.size = next_size(missing - index + wanted, max);
            self.async_size = self.size;
            self.settle(index, max);
        } else if wanted > max || index.wrapping_sub(self.previous) <= 1 {
            self.begin(index, wanted, max);
            self.settle(index, max);
        } else {
            let history = cache.history(page, max);
            if history <= wanted {
                return Next::Wanted;
            }
            self.start = index;
            self.size = (if history >= index { history * 2 } else { history } + wanted).min(max);
            self.async_size = 1;
        }
        Next::Window { start: self.start, size: self.size, async_size: self.async_size }
    }
}
