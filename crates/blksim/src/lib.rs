//! A simulated Linux block layer: jobs as fio describes them, a page cache,
//! request queues with the kernel's schedulers, and models of disks.
//!
//! The crate is pure: no clock, no file, no thread. A result depends on the
//! [`simulate::Setup`] alone, to the last bit. Time is in integer nanoseconds
//! and moves only in [`engine`].

mod age_queue;
mod branch;
pub mod device;
pub mod devices;
mod divisor;
pub mod engine;
pub mod error;
pub mod event;
mod extent_index;
pub mod host;
mod jiffies;
pub mod params;
pub mod policies;
pub mod policy;
pub mod quantity;
pub mod record;
pub mod request;
pub mod rng;
pub mod scheduler;
pub mod schedulers;
pub mod sector_tree;
pub mod simulate;
mod tag_map;
pub mod timeline;
pub mod workload;
