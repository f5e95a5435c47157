//! All integration tests of the crate, as one binary: a subject is a module.

mod between_tasks;
mod depth;
mod fidelity;
mod homes;
mod memory;
mod plugs;
mod properties;
mod samples;
mod splits;
mod think_times;
mod ties;
mod what_fits;
mod worker_pools;
