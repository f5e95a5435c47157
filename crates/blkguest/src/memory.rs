//! Memory available to the page cache.

use std::fs;

use blksim::mm::page_cache::PAGE_BYTES;

/// Memory that free pages and the page cache share (`global_dirtyable_memory` in
/// `mm/page-writeback.c`, Linux 6.1): the kernel reports how many pages `dirty_ratio` percent of it are.
pub fn shared_bytes(dirty_ratio: u64) -> Option<u64> {
    shared_by(&fs::read_to_string("/proc/vmstat").ok()?, dirty_ratio)
}

/// As above, from the text of `vmstat`.
fn shared_by(counters: &str, dirty_ratio: u64) -> Option<u64> {
    let threshold = counters.lines().find_map(|line| line.strip_prefix("nr_dirty_threshold "))?;
    (threshold.parse::<u64>().ok()? * PAGE_BYTES * 100).checked_div(dirty_ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_is_a_share_of_it() {
        let counters =
            "nr_free_pages 120000\nnr_dirty_threshold 24000\nnr_dirty_background_threshold 12000\n";
        assert_eq!(shared_by(counters, 20), Some(120_000 * 4096));
        assert_eq!(shared_by(counters, 0), None);
        assert_eq!(shared_by("nr_free_pages 120000\n", 20), None);
    }
}
