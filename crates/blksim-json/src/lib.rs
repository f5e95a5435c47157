//! blksim's types as JSON, for the Python module and for the program inside guest kernels.

mod answer;
mod catalogue;
mod change;
mod processors;
mod request;

pub use answer::{
    checked, device_in_force, job_samples, outcome, phases, slots, tell_members, warnings,
};
pub use catalogue::{
    devices, job_file, job_options, job_transfers, profile, schedulers, settings, timeline_format,
};
pub use change::change;
pub use request::{
    Partial, Prepared, bad_request, partial, setup, setup_of, setup_with_optional_jobs,
};
