//! The state of memory management: the page cache, its writeback, and the tasks that wait for
//! pages.

use std::ops::Range;

use super::page_cache::{PAGE_BYTES, PageCache};
use super::writeback::Writeback;
use crate::block::kernel_version::Behaviours;
use crate::block::request::TaskId;
use crate::core::params::Values;
use crate::task::ready::{Ready, ReadyList};
use crate::workload::job::Advice;
use crate::workload::layout::File;

/// Costs of processor time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Costs {
    pub(crate) system_call_ns: u64,
    /// Copying one page during the call.
    pub(crate) page_ns: u64,
    /// In a guest in virtual time, copying is paid for before the call, at so many bytes a second.
    pub(crate) ahead: Option<u64>,
}

impl Costs {
    /// Where a cost table says what computing costs, calls pay before they begin.
    pub(crate) const NONE: Self = Self { system_call_ns: 0, page_ns: 0, ahead: None };

    /// The costs of a machine with these parameters.
    fn new(machine: &Values) -> Self {
        let bandwidth = machine.get("copy_bandwidth");
        let zero_cpu_time = machine.flag("zero_cpu_time");
        Self {
            system_call_ns: machine.get_ns("system_call"),
            page_ns: if zero_cpu_time {
                0
            } else {
                (PAGE_BYTES * 1_000_000_000).div_ceil(bandwidth)
            },
            ahead: zero_cpu_time.then_some(bandwidth),
        }
    }

    /// The cost that a buffered call of so many bytes pays before it copies.
    pub(crate) fn first_ns(&self, bytes: u32) -> u64 {
        match self.ahead {
            Some(bandwidth) => paid_ahead_ns(self.system_call_ns, bandwidth, bytes),
            None => self.system_call_ns,
        }
    }
}

/// The cost that a program in a guest pays before a buffered call: the call itself and copying its
/// bytes.
pub fn paid_ahead_ns(system_call_ns: u64, bytes_per_second: u64, bytes: u32) -> u64 {
    let copying_ns = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_second);
    system_call_ns + copying_ns as u64
}

/// A bio that reads pages and was split into several requests. Its pages are read once the last part is
/// (`bio_split` and `bio_chain` of `block/bio.c`).
#[derive(Debug, Clone)]
pub(crate) struct SplitRead {
    pub(crate) pages: Range<u64>,
    /// Parts that are not done.
    pub(crate) parts: u64,
}

/// The files, the page cache over them, and its writeback.
#[derive(Debug, Clone)]
pub struct Memory {
    pub(crate) files: Vec<File>,
    pub(crate) cache: PageCache,
    pub(crate) writeback: Writeback,
    pub(crate) costs: Costs,
    pub(crate) read_ahead_pages: u64,
    pub(crate) max_io_pages: u64,
    pub(crate) behaviours: Behaviours,
    pub(crate) split_reads: Vec<SplitRead>,
    /// Tasks that sleep until a page is read or written back.
    pub(crate) page_waiters: Vec<(u64, TaskId)>,
}

impl Memory {
    /// The largest readahead of a file that was opened with this advice: `POSIX_FADV_SEQUENTIAL`
    /// doubles it.
    pub(crate) fn window_pages(&self, advice: Advice) -> u64 {
        self.read_ahead_pages * if advice == Advice::Sequential { 2 } else { 1 }
    }

    /// Memory whose pages have so many buffers when they are written to.
    pub fn new(
        files: Vec<File>,
        queue: &Values,
        machine: &Values,
        behaviours: Behaviours,
        buffers_of_page: u64,
    ) -> Self {
        Self {
            writeback: Writeback::new(machine, files.len(), buffers_of_page),
            files,
            cache: PageCache::new(machine.get("memory") / PAGE_BYTES),
            costs: Costs::new(machine),
            read_ahead_pages: queue.get("read_ahead_kb") * 1024 / PAGE_BYTES,
            max_io_pages: queue.get("max_sectors_kb") * 1024 / PAGE_BYTES,
            behaviours,
            split_reads: Vec::new(),
            page_waiters: Vec::new(),
        }
    }

    /// Wakes tasks that sleep for one of these pages.
    pub(crate) fn wake_page_waiters(&mut self, ready: &mut ReadyList, first: u64, end: u64) {
        self.page_waiters.retain(|&(page, task)| {
            let wakes = (first..end).contains(&page);
            if wakes {
                ready.make_ready(Ready::Call(task));
            }
            !wakes
        });
    }
}
