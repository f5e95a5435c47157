//! The block layer between whoever submits a bio and the device.

pub mod attributes;
pub mod cgroup;
mod complete;
pub mod disk;
pub mod disks;
mod dispatch;
mod extent_index;
pub mod raid;
pub mod request;
pub(crate) mod sbitmap;
pub(crate) mod submit;
