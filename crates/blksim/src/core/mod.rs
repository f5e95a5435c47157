//! The base of the simulator: events, random numbers, parameters, errors and records.
//!
//! No module here knows about disks.

pub(crate) mod branch;
pub(crate) mod divisor;
pub mod error;
pub mod event;
pub(crate) mod jiffies;
pub mod params;
pub mod processor_table;
pub mod quantity;
pub mod record;
pub mod rng;
