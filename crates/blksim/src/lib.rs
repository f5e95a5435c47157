//! A simulated Linux block layer: jobs as fio describes them, a page cache,
//! request queues with the kernel's schedulers, and models of disks.
//!
//! The crate is pure: no clock, no file, no thread. A result depends on the
//! [`simulate::Setup`] alone, to the last bit. Time is in integer nanoseconds
//! and moves only in [`engine`].

pub mod block;
pub mod core;
pub mod devices;
pub mod elevator;
pub mod engine;
pub mod machine;
pub mod machine_parameters;
pub mod mm;
pub mod rqos;
pub mod simulate;
pub mod task;
pub mod timeline;
pub mod workload;
