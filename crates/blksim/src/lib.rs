//! A simulated Linux block layer: jobs as fio describes them, a page cache, request queues with
//! the kernel's schedulers, and models of disks.
//!
//! The crate is pure: no clock, no file, no thread. A result depends on the [`simulate::Setup`]
//! alone, to the last bit. Time is in integer nanoseconds and moves only in [`engine`].
//!
//! # Map
//!
//! The rooms are the kernel's. An I/O goes through them from the top to the bottom and back:
//!
//! | Room | The kernel's object | Here |
//! |---|---|---|
//! | [`simulate`] | | from a request to a result |
//! | [`live`] | sysfs, `ionice`, cgroup files; blktrace | a run that somebody watches and changes |
//! | [`switchback`] | `elevator_switch` under load | schedulers that take turns within a run |
//! | [`engine`] | | takes events off the queue; time moves here |
//! | [`machine`] | | the parts below, and what crosses them |
//! | [`workload`] | fio | job files; each clone's stream of I/Os |
//! | [`task`] | `struct task_struct`, its plug, CFS | processes of jobs: direct, buffered, sync; the run queue |
//! | [`mm`] | `mm/`: page cache, `file_ra_state`, flusher, `balance_dirty_pages` | buffered I/O below the call |
//! | [`block`] | `block/`: `struct request`, `request_queue`, hctx, plug, sbitmap, `blk_flush_queue`, `drivers/md` | submit, merge, plug, dispatch, complete, flush; arrays; cgroups |
//! | [`rqos`] | `struct rq_qos`: iocost, iolatency, wbt; blk-throttle, dm-ioband | policies above and beside the scheduler |
//! | [`elevator`] | `struct elevator_type`: mq-deadline, kyber, bfq; noop, deadline, anticipatory, cfq | the trait, and one file or folder for each |
//! | [`devices`] | the drive | fixed, hdd, flash; profiles |
//! | [`timeline`] | blktrace | a row for every request and I/O |
//! | [`core`] | | event queue, random streams, parameters, errors, records |
//!
//! The path of a direct read is `task/issue.rs`, `task/direct.rs`, `block/submit.rs`,
//! `block/merge.rs`, `block/plug.rs`, the elevator, `block/dispatch.rs`, the device, and back by
//! `block/complete.rs`.
//!
//! A room uses only rooms below it; `tests/suite/layers.rs` holds the order. To add a scheduler,
//! see [`elevator`].

pub mod block;
pub mod core;
pub mod devices;
pub mod elevator;
pub mod engine;
pub mod live;
pub mod machine;
pub mod machine_parameters;
pub mod mm;
pub mod rqos;
pub mod simulate;
pub mod switchback;
pub mod task;
pub mod timeline;
pub mod workload;
