//! Disks of the guest kernel, served by this program (ublk, Linux 6.0 and later).
//!
//! The interface is the one of `include/uapi/linux/ublk_cmd.h`, Linux 6.1.

mod abi;
mod control;
mod member;
mod server;
mod store;

pub use control::{Disk, start};
