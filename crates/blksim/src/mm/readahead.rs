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

/// A window ends at a multiple of so many pages (Linux 7.3).
const WINDOW_ALIGN_PAGES: u64 = 4;

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

    /// A fault read these pages, with the wanted one in their middle.
    pub(crate) fn surround(&mut self, start: u64, size: u64) {
        (self.start, self.size, self.async_size) = (start, size, size / 4);
    }

    /// A reader found a page missing (`page_cache_sync_ra`, Linux 6.12).
    pub(crate) fn miss(&mut self, cache: &mut PageCache, touched: Touched, max: u64) -> Next {
        let Touched { page, base, wanted, .. } = touched;
        let index = page - base;
        if index == 0 || wanted > max || index.wrapping_sub(self.previous) <= 1 {
            self.start = index;
            self.size = initial_size(wanted, max);
            self.async_size = if self.size > wanted { self.size - wanted } else { self.size / 2 };
        } else {
            let history = cache.history(page, max);
            if history <= wanted {
                return Next::Wanted;
            }
            self.follow(index, history, wanted, max);
        }
        self.read()
    }

    /// A reader touched a marker (`page_cache_async_ra`, Linux 6.12 and 7.3). The new window's end may be
    /// `aligned`.
    pub(crate) fn reach_marker(
        &mut self,
        cache: &mut PageCache,
        touched: Touched,
        max: u64,
        aligned: bool,
    ) -> Next {
        let index = touched.page - touched.base;
        if self.size > 0 && index == self.start + self.size - self.async_size {
            self.move_on(max);
        } else if !self.take_over(cache, touched, max) {
            return Next::Nothing;
        }
        // The order of a folio grows by two with each window; where folios have one page, from 0 each time.
        let align = (max & max.wrapping_neg()).min(WINDOW_ALIGN_PAGES);
        let aligned_end = (self.start + self.size) / align * align;
        if aligned && aligned_end > self.start {
            self.size = aligned_end - self.start;
        }
        self.async_size = self.size;
        self.read()
    }

    fn read(&self) -> Next {
        Next::Window { start: self.start, size: self.size, async_size: self.async_size }
    }

    fn move_on(&mut self, max: u64) {
        self.start += self.size;
        // The window of a call that has little left to read does not shrink.
        self.size = self.size.max(next_size(self.size, max));
    }

    /// The marker is another window's: continues after the cached pages. False if there are too many.
    fn take_over(&mut self, cache: &mut PageCache, touched: Touched, max: u64) -> bool {
        let Touched { page, base, wanted, .. } = touched;
        let (index, missing) = (page - base, cache.next_missing(page + 1, max) - base);
        if missing - index > max {
            return false;
        }
        self.start = missing;
        self.size = next_size(missing - index + wanted, max);
        true
    }

    /// The pages before it are cached, so it looks like a stream that another window has read.
    fn follow(&mut self, index: u64, history: u64, wanted: u64, max: u64) {
        self.start = index;
        self.size = (if history >= index { history * 2 } else { history } + wanted).min(max);
        self.async_size = 1;
    }

    /// Moves the window on (`ondemand_readahead`, Linux 6.1).
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
            self.move_on(max);
            self.async_size = self.size;
            self.settle(index, max);
        } else if marker {
            if !self.take_over(cache, touched, max) {
                return Next::Nothing;
            }
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
            self.follow(index, history, wanted, max);
        }
        self.read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mm::page_cache::state::PRESENT;

    const MAX: u64 = 32;

    fn touched(page: u64, wanted: u64, marker: bool) -> Touched {
        Touched { page, base: 0, wanted, marker }
    }

    fn window(start: u64, size: u64, async_size: u64) -> Next {
        Next::Window { start, size, async_size }
    }

    #[test]
    fn a_marker_moves_the_window_on_and_grows_it() {
        let (mut cache, mut state) = (PageCache::new(1 << 20), Window::default());
        assert_eq!(state.miss(&mut cache, touched(0, 1, false), MAX), window(0, 4, 3));
        assert_eq!(state.reach_marker(&mut cache, touched(1, 1, true), MAX, true), window(4, 8, 8));
        assert_eq!(
            state.reach_marker(&mut cache, touched(4, 1, true), MAX, true),
            window(12, 16, 16)
        );
    }

    /// In 6.1 a miss where the next window was expected continues that window; in 7.3 it begins a new one.
    #[test]
    fn a_miss_begins_a_window() {
        let first = touched(0, 1, false);
        let (mut cache, mut old, mut new) =
            (PageCache::new(1 << 20), Window::default(), Window::default());
        assert_eq!(old.next(&mut cache, first, MAX), window(0, 4, 3));
        assert_eq!(new.miss(&mut cache, first, MAX), window(0, 4, 3));
        old.previous = 3;
        new.previous = 3;
        let behind = touched(4, 1, false);
        assert_eq!(old.next(&mut cache, behind, MAX), window(4, 24, 16));
        assert_eq!(new.miss(&mut cache, behind, MAX), window(4, 4, 3));
    }

    /// A call that wants the whole window: half of it in 7.3 is ahead of the marker.
    #[test]
    fn a_window_that_the_call_fills_has_its_marker_in_the_middle() {
        let (mut cache, mut state) = (PageCache::new(1 << 20), Window::default());
        assert_eq!(state.miss(&mut cache, touched(0, MAX, false), MAX), window(0, MAX, MAX / 2));
    }

    #[test]
    fn a_window_ends_at_a_multiple_of_four_pages() {
        let (mut cache, mut state) = (PageCache::new(1 << 20), Window::default());
        for page in 1..7 {
            cache.change(page, PRESENT, 0);
        }
        // The marker of another window at page 1: the next missing page is 7. Twice the 6 pages up to it and the
        // wanted one are 14.
        let mut reach = |aligned| state.reach_marker(&mut cache, touched(1, 1, true), MAX, aligned);
        assert_eq!(reach(false), window(7, 14, 14));
        assert_eq!(reach(true), window(7, 13, 13));
    }
}
