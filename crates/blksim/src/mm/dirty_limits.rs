//! The thresholds of dirty pages (`domain_dirty_limits` and `global_dirtyable_memory` of
//! `mm/page-writeback.c`, Linux 6.1).

use crate::core::params::Values;
use crate::mm::dirty_throttle::Level;
use crate::mm::page_cache::{PAGE_BYTES, PageCache};

/// Least limit, in pages, where it is a share of the memory.
const LEAST_LIMIT_PAGES: u64 = 1024;
/// Buffer heads in a page of their slab (`struct buffer_head` has 104 bytes on 64-bit machines).
const BUFFERS_OF_SLAB_PAGE: u64 = 39;
/// Nodes of the cache's tree in a slab of four pages (`struct xa_node` has 576 bytes), and pages in a node.
const NODES_OF_SLAB: u64 = 28;
const SLAB_PAGES: u64 = 4;
const PAGES_OF_NODE: u64 = 64;

/// A threshold.
#[derive(Debug, Clone, Copy)]
enum Threshold {
    Pages(u64),
    /// Percent of the memory that is free or holds file pages.
    Percent(u64),
}

impl Threshold {
    fn new(bytes: u64, percent: u64) -> Self {
        match bytes {
            0 => Self::Percent(percent),
            bytes => Self::Pages(bytes.div_ceil(PAGE_BYTES)),
        }
    }

    fn pages(self, memory_pages: u64) -> u64 {
        match self {
            Self::Pages(pages) => pages,
            Self::Percent(percent) => memory_pages * percent / 100,
        }
    }
}

/// The thresholds, which shrink as the cache's own administration takes memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DirtyLimits {
    memory_pages: u64,
    background: Threshold,
    limit: Threshold,
    /// Buffers of a page that was written to; 0 where the cache takes no memory but its pages.
    buffers_of_page: u64,
}

impl DirtyLimits {
    /// The limits of a machine whose pages have so many buffers.
    pub(crate) fn new(machine: &Values, buffers_of_page: u64) -> Self {
        let of = |name: &str| {
            Threshold::new(
                machine.get(&format!("{name}_bytes")),
                machine.get(&format!("{name}_ratio")),
            )
        };
        Self {
            memory_pages: machine.get("memory") / PAGE_BYTES,
            background: of("dirty_background"),
            limit: of("dirty"),
            buffers_of_page,
        }
    }

    /// Dirty pages and those under writeback, with the thresholds now.
    ///
    /// The hard limit follows them slowly; it is given as far as it has come.
    pub(crate) fn level(&self, cache: &PageCache, hard_limit: u64) -> Level {
        let memory_pages = self.memory_pages.saturating_sub(self.administration_pages(cache));
        let limit = self.limit_of(memory_pages);
        let background = self.background.pages(memory_pages);
        Level {
            dirty: cache.nr_dirty() + cache.nr_writeback(),
            // As in the kernel: a background threshold at or above the limit counts as half of it.
            background: if background >= limit { limit / 2 } else { background },
            limit,
            hard_limit: limit.max(hard_limit),
        }
    }

    /// The limit of an empty cache.
    pub(crate) fn first_limit(&self) -> u64 {
        self.limit_of(self.memory_pages)
    }

    /// The kernel takes no limit in bytes below two pages (`dirty_bytes_min`).
    fn limit_of(&self, memory_pages: u64) -> u64 {
        let least = match self.limit {
            Threshold::Percent(_) => LEAST_LIMIT_PAGES,
            Threshold::Pages(_) => 2,
        };
        self.limit.pages(memory_pages).max(least)
    }

    fn administration_pages(&self, cache: &PageCache) -> u64 {
        if self.buffers_of_page == 0 {
            return 0;
        }
        let buffers = cache.nr_with_buffers() * self.buffers_of_page;
        let nodes = cache.nr_pages() / PAGES_OF_NODE;
        buffers / BUFFERS_OF_SLAB_PAGE + nodes * SLAB_PAGES / NODES_OF_SLAB
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mm::page_cache::state::{DIRTY, PRESENT};

    fn limits(buffers_of_page: u64) -> DirtyLimits {
        DirtyLimits {
            memory_pages: 100_000,
            background: Threshold::Percent(10),
            limit: Threshold::Percent(20),
            buffers_of_page,
        }
    }

    #[test]
    fn buffers_take_memory_from_the_thresholds() {
        let mut cache = PageCache::new(1 << 20);
        for page in 0..3900 {
            cache.change(page, PRESENT | DIRTY, 0);
        }
        let nodes = 3900 / 64 * 4 / 28;
        for (buffers, taken) in [(0, 0), (1, 100 + nodes), (4, 400 + nodes)] {
            let level = limits(buffers).level(&cache, 0);
            assert_eq!(level.background, (100_000 - taken) / 10, "{buffers}");
            assert_eq!(level.limit, (100_000 - taken) / 5);
        }
        assert_eq!(limits(4).first_limit(), 20_000);
    }
}
