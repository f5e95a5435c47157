//! All integration tests of the crate, as one binary: a subject is a module.
//!
//! `cargo test -p blksim --test suite SUBJECT::` runs one of them.

mod arrangement;
mod behaviours;
mod behaviours_anticipatory;
mod behaviours_batches;
mod behaviours_bfq;
mod behaviours_bfq_groups;
mod behaviours_cfq;
mod behaviours_ioband;
mod behaviours_iocost;
mod behaviours_iolatency;
mod behaviours_kyber;
mod behaviours_raid;
mod behaviours_throttle;
mod behaviours_wbt;
mod behaviours_writeback;
mod closed_forms;
mod conformance;
mod conformance_groups;
mod conformance_policies;
mod determinism;
mod front_end;
mod fuzz;
mod hardware_queues;
mod input;
mod kernel_versions;
mod layers;
mod live;
mod one_more_scheduler;
mod processors;
mod properties;
mod ram_disk;
mod registered;
mod support;
mod switchback;
mod timeline;
