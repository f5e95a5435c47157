//! Records of what reached the block layer, and readers of traces in other formats.
//!
//! ```text
//! events of a trace ──▶ pairing ──┐
//! (blktrace, blkparse, tracefs)   ├──▶ Io, TaskEvent ──▶ file::Writer ──▶ file::Reader ──▶ analysis, replay
//! lines of a trace ───────────────┘
//! (fio iolog, MSR, SYSTOR, Alibaba, blkreplay)
//! ```
//!
//! | Module | Contents |
//! |---|---|
//! | [`io`] | one bio from its queueing to its completion |
//! | [`task_event`] | forks and exits |
//! | [`facts`] | the machine, the devices and the conditions of a recording; its counts |
//! | [`event`], [`rwbs`] | one event of the block layer, and the kernel's notation for operations |
//! | [`pairing`] | events to I/Os |
//! | [`file`] | the format `.blkrecord` |
//! | [`readers`] | one file per format, and the detection of formats |
//! | [`limits`] | limits of the memory that a trace may take |
//! | [`interrupt`] | ending long work from outside |
//! | [`waits`] | where I/Os wait, and who held the device meanwhile |
//!
//! The crate reads and writes files, and has no other effect. Bad input gives a [`error::RecordError`] or a
//! warning with its place, and never a panic; `tests/` damages every format in many ways.

pub mod batch;
pub mod error;
pub mod event;
pub mod facts;
pub mod file;
pub mod interrupt;
pub mod io;
pub mod limits;
pub mod names;
pub mod pairing;
pub mod readers;
pub mod rwbs;
pub mod task_event;
pub mod waits;
