//! The base of the simulator: time, random numbers, parameters, errors and records.
//!
//! Nothing here knows a disk.

pub(crate) mod branch;
pub(crate) mod divisor;
pub mod error;
pub mod event;
pub(crate) mod jiffies;
pub mod params;
pub mod quantity;
pub mod record;
pub mod rng;
