//! A command as the load: a program of the host's, with all that it needs, on the modelled disk.
//!
//! ```text
//! /command.cpio ─▶ unpack ─▶ /mnt/root on the disk ─▶ set-up ─▶ unmount, mount ─▶ the command, measured
//! (from the host)                                               (cold)             with chroot
//! ```
//!
//! All but the last step comes before the device model's latencies apply.

mod archive;
mod prepare;
mod processes;
mod runner;

use std::collections::BTreeMap;

use serde::Deserialize;

pub use prepare::prepare;
pub use runner::{answer, start};

/// The files of the command, from the host.
const ARCHIVE: &str = "/command.cpio";
/// The command's root: a folder of the file system on the disk.
const ROOT: &str = "/mnt/root";

/// The part of the request for a command.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// The line for the shell that is measured.
    pub run: String,
    /// The line before it; may be empty.
    pub repeat_set_up: String,
    /// The working directory in the command's root.
    pub directory: String,
    pub environment: BTreeMap<String, String>,
    /// Whether its file system is unmounted and mounted again before the run.
    pub cold: bool,
    /// Longest time for each line.
    pub time_limit_ns: u64,
    /// Time that the load beside it has to itself before.
    pub lead_ns: u64,
}
