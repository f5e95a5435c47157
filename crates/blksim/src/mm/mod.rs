//! Memory management (the kernel's `mm/`): the page cache, readahead and writeback.

pub(crate) mod dirty_limits;
pub(crate) mod dirty_throttle;
mod flusher;
pub mod memory;
pub mod page_cache;
mod page_reads;
pub(crate) mod readahead;
pub(crate) mod writeback;
