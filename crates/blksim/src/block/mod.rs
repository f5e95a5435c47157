//! The block layer between the submitters of bios and the device (the kernel's `block/`).

mod array;
pub mod attributes;
pub mod cgroup;
mod complete;
pub mod disk;
pub mod disks;
mod dispatch;
pub mod elevator_switch;
mod extent_index;
mod flush;
pub(crate) mod flush_queue;
pub(crate) mod hw_queue;
pub mod kernel_version;
pub mod layer;
mod merge;
pub mod per_hctx;
pub(crate) mod plug;
pub mod queue_change;
mod queue_enter;
pub mod queue_facts;
pub(crate) mod queue_usage;
pub mod raid;
pub mod request;
pub mod request_list;
mod request_stage;
pub(crate) mod sbitmap;
mod submit;
