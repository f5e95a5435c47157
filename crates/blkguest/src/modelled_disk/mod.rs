//! Disks of kernels without ublk, served by this program through blklab's own driver.
//!
//! The driver is an instrument of such kernels (`kernel/legacy/modelled-disk`). It gives a disk the
//! queue that its scheduler needs: of the legacy path, or of blk-mq.

mod abi;
mod server;
mod start;
mod turn;

pub use start::ModelledDisk;
