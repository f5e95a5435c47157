//! Disks of the guest kernel, served by this program (ublk, Linux 6.0 and later).
//!
//! The interface is the one of `include/uapi/linux/ublk_cmd.h`, Linux 6.1.

mod abi;
mod control;
mod interrupts;
mod member;
mod ring;
mod server;
mod store;
mod timers;

pub use control::Ublk;
