//! The page cache, what it reads ahead, and how it writes back.

pub(crate) mod dirty_throttle;
pub mod page_cache;
pub(crate) mod readahead;
pub(crate) mod writeback;
