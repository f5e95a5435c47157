//! blksim's types as JSON, for the Python module and for the program inside guest kernels.

mod answer;
mod catalogue;
mod processors;
mod request;

pub use answer::{checked, device_in_force, job_samples, outcome, slots, tell_members, warnings};
pub use catalogue::{
    devices, job_file, job_options, job_transfers, profile, schedulers, settings, timeline_format,
};
pub use request::{
    Prepared, bad_request, partial_setup, setup, setup_of, setup_with_optional_jobs,
};
