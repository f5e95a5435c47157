//! Records what reaches the block layer of the running machine.
//!
//! ```text
//! kernel ──▶ a source (BPF or tracefs) ──▶ I/Os and task events ──▶ blkrecord::file::Writer
//! ```
//!
//! | Module | Contents |
//! |---|---|
//! | [`recording`] | one recording: begin, poll, finish |
//! | [`attendant`] | a recording with a thread that takes what the kernel has |
//! | [`live`] | the same without a file, window by window |
//! | [`request`] | the devices to record, and the file to write |
//! | [`source`] | sources of I/Os |
//! | [`bpf`] | programs in the kernel |
//! | [`tracefs`] | the kernel's tracepoints, read from an own tracefs instance |
//! | [`tasks`] | processes and control groups of tasks, from `/proc` |
//! | [`cgroup_settings`] | the weights of the control groups that were seen |
//! | [`support`] | ways of capturing that work here, and why others do not |
//! | [`error`] | errors |
//!
//! A recording changes nothing but what it makes itself, and removes it at its end. What a killed recorder
//! left is removed by the next one, or by [`support::left_over`].

pub mod attendant;
pub mod bpf;
pub mod cgroup_settings;
pub mod clock;
pub mod error;
pub mod live;
mod lockdown;
pub mod recording;
pub mod request;
pub mod source;
pub mod support;
pub mod tasks;
pub mod tracefs;
