//! The page cache, what it reads ahead, and how it writes back.

pub(crate) mod dirty_throttle;
mod flusher;
pub mod memory;
pub mod page_cache;
mod page_reads;
pub(crate) mod readahead;
pub(crate) mod writeback;
