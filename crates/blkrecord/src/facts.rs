//! The conditions of a recording, and its counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// An entry of [`Facts::missing`]: a trace in which I/Os begin with their issue.
pub const NO_QUEUEING: &str = "queueing: I/Os begin when they are issued";

/// Known before the first I/O.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Facts {
    /// The format that it was read from: the name of a reader.
    pub format: String,
    /// How blklab recorded it: `bpf` or `tracefs`; empty for other programs' traces.
    pub capture: String,
    /// The target as the user named it.
    pub target: String,
    /// `uname -r`; empty if unknown.
    pub kernel: String,
    /// Start of the record, nanoseconds since 1970; `None` if unknown.
    pub started_unix_ns: Option<u64>,
    /// Processors of the machine; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<u32>,
    /// Version of the control group hierarchy with the I/O controller, 1 or 2.
    pub cgroup_version: Option<u32>,
    /// The program that was recorded: the command's name, or all of its arguments if that was asked for.
    pub command: Vec<String>,
    pub devices: Vec<DeviceFacts>,
    /// Control groups that did I/O and those above them; a file has them in blocks of their own.
    pub cgroups: Vec<CgroupFacts>,
    /// Facts that the record lacks, for people.
    pub missing: Vec<String>,
}

/// A recorded device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeviceFacts {
    /// As in [`crate::io::Io::device`].
    pub number: u32,
    pub name: String,
    pub model: String,
    /// 0 if unknown.
    pub size_bytes: u64,
    pub rotational: Option<bool>,
    /// The active scheduler; empty if unknown.
    pub scheduler: String,
    /// Attributes of the queue and, as `iosched/…`, of the scheduler.
    pub settings: BTreeMap<String, String>,
}

/// A control group when its first I/O was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CgroupFacts {
    /// As in the names of the record.
    pub path: String,
    /// Contents of the I/O controller's files by name, such as `io.weight`; files that it lacks are left out.
    pub settings: BTreeMap<String, String>,
}

/// Counted while recording or reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    /// I/Os in the record.
    pub ios: u64,
    /// Events that became I/Os; 0 for formats without events.
    pub events: u64,
    /// Events that the kernel dropped because its buffer was full.
    pub lost: u64,
    /// Completions without a queued I/O: those under way when the recording began, or after a loss.
    pub unmatched: u64,
    /// I/Os without a completion.
    pub incomplete: u64,
    /// Length of the record.
    pub span_ns: u64,
    /// Whether the file has its end; not so if the recorder was killed.
    pub whole: bool,
}
