//! The load: one process per clone of a job, driven by blksim's generator.

mod aio;
mod buffer;
mod contexts;
pub mod identity;
mod io_log;
mod job_process;
mod page_frames;
mod real_replay;
mod run_delay;
mod slots;
mod synchronous;
mod target;
mod words;

pub use buffer::{MostBuffers, SegmentLimits};
pub use io_log::{AskedIo, collect_ios};
pub use job_process::{JobProcess, Timing, collect_record, run_clone};
pub use real_replay::RealReplay;
pub use slots::{CloneSlots, collect_slots, empty_slots};
pub use target::{Place, Target};
pub use words::keep_in;
