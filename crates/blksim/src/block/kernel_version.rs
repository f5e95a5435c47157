//! The kernel release that the block layer follows, as the changes that alter results.
//!
//! A change is a capability of [`Behaviours`], and code asks for the capability, never for a release. A
//! release is one function that says which of them it has. Schedulers of the legacy path are the same under
//! each.

/// The machine's parameter, and the option of a target, that names the release.
pub const KERNEL: &str = "kernel";
/// Releases that are modelled, as they are written.
pub const RELEASES: &[&str] = &["6.1", "6.12", "7.2", "7.3"];

/// The changes since Linux 6.1 that a release has. Each was read in the sources: 6.1.192, 6.12.95, 7.2.12 and
/// 7.3.4. Stable releases have some changes earlier than the mainline release that brought them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Behaviours {
    /// A plug is a list with a tail, so that requests issued straight from it go oldest first
    /// (`blk_add_rq_to_plug`, `blk_mq_issue_direct` of `block/blk-mq.c`; e70c301faece, 6.13).
    pub plug_issues_oldest_first: bool,
    /// A write to a block device has a plug, in which a synchronous one waits; later it is as a read
    /// (`blkdev_write_iter` of `block/fops.c`).
    pub plugs_device_writes: bool,
    /// Each bio has a plug of its own, so that the task that submits a read dispatches it too, and not the
    /// queue's worker (`__submit_bio` of `block/blk-core.c`; 060406c61c7c, 6.10). 7.2 has no such plug any
    /// more.
    pub plugs_each_bio: bool,
    /// A sweep of mq-deadline continues at the sector of its last request, at whatever is there now;
    /// before, at the request that followed when that one was taken (`deadline_from_pos` and
    /// `latest_pos` of `block/mq-deadline.c`).
    pub sweep_continues_at_sector: bool,
    /// A shallow depth counts tags of the whole map, in proportion of which each word has its share;
    /// before, tags of each word (`__map_depth_with_shallow` of `lib/sbitmap.c`).
    pub shallow_depth_of_map: bool,
    /// The depth for all but synchronous reads is the queue's `async_depth`, which follows `nr_requests` in
    /// proportion; before, each scheduler has its own (`blk_mq_update_nr_requests` of `block/blk-mq.c`,
    /// `kyber_limit_depth`, `bfq_depth_updated`; 7.0).
    pub async_depth_of_queue: bool,
    /// A batch of freed tags wakes as many sleepers as it may, of several wait queues if one has too few
    /// (`__sbitmap_queue_wake_up` of `lib/sbitmap.c`).
    pub batch_wakes_across_lists: bool,
    /// bfq counts the groups, the root among them, that have a queue with requests of its own, and one
    /// such group is no reason to keep the queues apart; before, any group below the root was one
    /// (`bfq_add_bfqq_in_groups_with_pending_reqs` of `block/bfq-wf2q.c`, `bfq_asymmetric_scenario`).
    pub one_busy_group_is_symmetric: bool,
    /// The worker that runs a queue goes before every task that is ready, since its weight gives it the
    /// earliest virtual deadline, and a task keeps the processor until it sleeps; tasks run in the order of
    /// waking. Before, the task with the least virtual runtime went first (`pick_eevdf` and `protect_slice`
    /// of `kernel/sched/fair.c`).
    pub workers_go_first: bool,
    /// By default requests are at most 4 MiB, before 1,280 KiB (`BLK_DEF_MAX_SECTORS_CAP` of `block/blk.h`).
    pub requests_of_4_mib: bool,
    /// A rotational disk reads ahead twice its largest request by default, before 128 KiB
    /// (`blk_apply_bdi_limits` of `block/blk-settings.c`).
    pub rotational_reads_far_ahead: bool,
    /// A reader that finds a page missing begins a new window, even where the next one was expected; only
    /// the marker moves a window on (`page_cache_sync_ra` and `page_cache_async_ra` of `mm/readahead.c`).
    pub only_marker_moves_window: bool,
    /// A window that a marker moved on ends at a multiple of four pages, and one that reaches the end of
    /// the file has no marker (`page_cache_async_ra` and `do_page_cache_ra` of `mm/readahead.c`).
    pub windows_end_aligned: bool,
    /// A bio holds a whole readahead window, since its pages lie next to each other in memory, as those of
    /// large folios do; before, 256 pages. If it is larger than a request, it is split, and none of its
    /// pages is there before the last part is (`mpage_readahead` of `fs/mpage.c`, `bio_add_folio` and
    /// `bio_chain` of `block/bio.c`).
    pub bio_holds_window: bool,
    /// A request to a guest's disk has at most 128 segments; later as many as a request can have
    /// (`ublk_ctrl_start_dev` of `drivers/block/ublk_drv.c`).
    pub guests_disk_limits_segments: bool,
}

impl Behaviours {
    /// Linux 6.1.
    pub const V6_1: Self = Self {
        plug_issues_oldest_first: false,
        plugs_device_writes: true,
        plugs_each_bio: false,
        sweep_continues_at_sector: false,
        shallow_depth_of_map: false,
        async_depth_of_queue: false,
        batch_wakes_across_lists: false,
        one_busy_group_is_symmetric: false,
        workers_go_first: false,
        requests_of_4_mib: false,
        rotational_reads_far_ahead: false,
        only_marker_moves_window: false,
        windows_end_aligned: false,
        bio_holds_window: false,
        guests_disk_limits_segments: true,
    };

    /// Linux 6.12.
    pub const V6_12: Self = Self {
        plugs_each_bio: true,
        async_depth_of_queue: false,
        requests_of_4_mib: false,
        rotational_reads_far_ahead: false,
        windows_end_aligned: false,
        ..Self::V7_3
    };

    /// Linux 7.2 and 7.3, which do not differ in any of them.
    pub const V7_3: Self = Self {
        plug_issues_oldest_first: true,
        plugs_device_writes: false,
        plugs_each_bio: false,
        sweep_continues_at_sector: true,
        shallow_depth_of_map: true,
        async_depth_of_queue: true,
        batch_wakes_across_lists: true,
        one_busy_group_is_symmetric: true,
        workers_go_first: true,
        requests_of_4_mib: true,
        rotational_reads_far_ahead: true,
        only_marker_moves_window: true,
        windows_end_aligned: true,
        bio_holds_window: true,
        guests_disk_limits_segments: false,
    };

    /// Those of one of [`RELEASES`].
    pub fn of(release: &str) -> Self {
        match release {
            "6.12" => Self::V6_12,
            "7.2" | "7.3" => Self::V7_3,
            _ => Self::V6_1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_release_has_its_behaviours() {
        let all: Vec<_> = RELEASES.iter().map(|release| Behaviours::of(release)).collect();
        let newest = Behaviours::V7_3;
        assert_eq!(all, [Behaviours::V6_1, Behaviours::V6_12, newest, newest]);
    }
}
