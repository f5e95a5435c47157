//! What the page cache may take.

use std::fs;

const PAGE_BYTES: u64 = 4096;

/// Memory that free pages and the page cache share (`global_dirtyable_memory` in
/// `mm/page-writeback.c`, Linux 6.1): the kernel tells what share of it may be dirty.
pub fn shared_bytes() -> Option<u64> {
    let counters = fs::read_to_string("/proc/vmstat").ok()?;
    let percent = fs::read_to_string("/proc/sys/vm/dirty_ratio").ok()?.trim().parse().ok()?;
    shared_by(&counters, percent)
}

/// The same from the text of `vmstat`, and from the percentage that may be dirty.
fn shared_by(counters: &str, dirty_percent: u64) -> Option<u64> {
    let threshold =
        counters.lines().find_map(|line| line.strip_prefix("nr_dirty_threshold "))?.parse::<u64>();
    (threshold.ok()? * PAGE_BYTES * 100).checked_div(dirty_percent)
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
