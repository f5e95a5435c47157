//! The job language: fio's options as far as blklab honours them.
//!
//! This table is their only list; the parser, its messages and the documentation follow it.

/// The support for an option in the simulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// Supported.
    Simulated,
    /// Accepted; it cannot change a simulated result.
    Neutral,
    /// Accepted with a warning: it has no counterpart here but may matter on the host.
    IgnoredWithWarning,
    /// Used by the host backend, refused by the simulator.
    HostOnly,
    /// Refused everywhere, because blklab decides about it.
    Refused,
}

impl Support {
    pub fn name(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Neutral => "neutral",
            Self::IgnoredWithWarning => "ignored_with_warning",
            Self::HostOnly => "host_only",
            Self::Refused => "refused",
        }
    }
}

/// The form of an option's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bare key, 0 or 1.
    Flag,
    /// A whole number within bounds.
    Number(i64, i64),
    /// A size; `true` if a percentage is possible.
    Size {
        percent: bool,
        zero: bool,
    },
    /// A duration; a bare number counts this many nanoseconds.
    Duration(u64),
    Choice(&'static [&'static str]),
    Text,
    /// One to three sizes: reads, writes, trims.
    Sizes,
    /// One to three rates: reads, writes, trims. 0 means no limit.
    Rates,
    /// `4k/60:64k/40`, for reads and for writes.
    Split,
    /// `zipf:1.2` and the like.
    Distribution,
    /// `randread`, `randread:8`, `read:-8k`.
    Mode,
}

impl Kind {
    pub fn describe(self) -> String {
        match self {
            Self::Flag => "flag (0 or 1)".to_owned(),
            Self::Number(min, i64::MAX) => format!("whole number from {min}"),
            Self::Number(min, max) => format!("whole number from {min} to {max}"),
            Self::Size { percent: true, .. } => "size (4k, 1g) or percentage".to_owned(),
            Self::Size { percent: false, .. } => "size (4k, 1g)".to_owned(),
            Self::Duration(unit_ns) => {
                let unit = if unit_ns >= 1_000_000_000 { "seconds" } else { "microseconds" };
                format!("duration (a bare number counts {unit})")
            }
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Text => "text".to_owned(),
            Self::Sizes => "size, or read,write sizes".to_owned(),
            Self::Rates => "rate a second, or read,write rates".to_owned(),
            Self::Split => "list such as 4k/60:64k/40, or read,write lists".to_owned(),
            Self::Mode => format!(
                "one of {}; :N after a random one, :SIZE after the others",
                RW_MODES.join(", ")
            ),
            Self::Distribution => "random, zipf:THETA, pareto:H or normal:PERCENT".to_owned(),
        }
    }
}

/// One option.
#[derive(Debug, Clone, Copy)]
pub struct OptionSpec {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub kind: Kind,
    pub default: &'static str,
    pub support: Support,
    pub help: &'static str,
}

const fn option(
    name: &'static str,
    aliases: &'static [&'static str],
    kind: Kind,
    default: &'static str,
    help: &'static str,
) -> OptionSpec {
    OptionSpec { name, aliases, kind, default, support: Support::Simulated, help }
}

const fn neutral(name: &'static str, kind: Kind, help: &'static str) -> OptionSpec {
    OptionSpec { name, aliases: &[], kind, default: "", support: Support::Neutral, help }
}

const fn ignored(name: &'static str, kind: Kind, help: &'static str) -> OptionSpec {
    OptionSpec { name, aliases: &[], kind, default: "", support: Support::IgnoredWithWarning, help }
}

const fn host_only(name: &'static str, kind: Kind, help: &'static str) -> OptionSpec {
    OptionSpec { name, aliases: &[], kind, default: "", support: Support::HostOnly, help }
}

const fn refused(name: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec {
        name,
        aliases: &[],
        kind: Kind::Text,
        default: "",
        support: Support::Refused,
        help,
    }
}

pub const RW_MODES: &[&str] =
    &["read", "write", "randread", "randwrite", "rw", "readwrite", "randrw"];
pub const ENGINES: &[&str] =
    &["psync", "sync", "pvsync", "pvsync2", "vsync", "libaio", "io_uring", "posixaio"];

const SECOND: u64 = 1_000_000_000;
const MICROSECOND: u64 = 1_000;
const COUNT: Kind = Kind::Number(0, i64::MAX);

/// Every option, in alphabetical order within its group.
pub const OPTIONS: &[OptionSpec] = &[
    option("blocksize", &["bs"], Kind::Sizes, "4k", "bytes of one I/O"),
    option(
        "blockalign",
        &["ba"],
        Kind::Sizes,
        "",
        "alignment of random offsets; default: the block size",
    ),
    option("bssplit", &[], Kind::Split, "", "block sizes with their shares in percent"),
    option("cgroup", &[], Kind::Text, "", "control group of the job; default: the root"),
    option(
        "cgroup_weight",
        &[],
        Kind::Number(1, 10_000),
        "",
        "weight of that group (io.weight and bfq's)",
    ),
    option("direct", &[], Kind::Flag, "0", "bypass the page cache (O_DIRECT)"),
    option("fdatasync", &[], COUNT, "0", "fdatasync after this many writes; 0: never"),
    option(
        "fadvise_hint",
        &[],
        Kind::Choice(&["0", "1", "none", "random", "sequential"]),
        "1",
        "tell the kernel what to expect of buffered I/O: sequential doubles the readahead, random disables it",
    ),
    option(
        "filename",
        &[],
        Kind::Text,
        "",
        "logical name of a file; jobs that name the same file share it",
    ),
    option("fsync", &[], COUNT, "0", "fsync after this many writes; 0: never"),
    option("end_fsync", &[], Kind::Flag, "0", "fsync when the job ends"),
    option(
        "invalidate",
        &[],
        Kind::Flag,
        "1",
        "drop the file's cached pages before the job starts",
    ),
    option(
        "iodepth",
        &[],
        Kind::Number(1, 1 << 20),
        "1",
        "I/Os kept in flight by an asynchronous engine",
    ),
    option(
        "iodepth_batch",
        &["iodepth_batch_submit"],
        Kind::Number(1, 1 << 20),
        "1",
        "I/Os submitted at once",
    ),
    option(
        "ioengine",
        &[],
        Kind::Choice(ENGINES),
        "psync",
        "how I/O is issued; libaio, io_uring and posixaio are asynchronous",
    ),
    option(
        "io_size",
        &["io_limit"],
        Kind::Size { percent: false, zero: false },
        "",
        "bytes to transfer, if other than the size",
    ),
    option("loops", &[], Kind::Number(1, i64::MAX), "1", "how often to run through the size"),
    option(
        "nice",
        &[],
        Kind::Number(-20, 19),
        "0",
        "CPU priority, from which the I/O priority follows if none is given",
    ),
    option(
        "norandommap",
        &[],
        Kind::Flag,
        "0",
        "random offsets may repeat before all were visited",
    ),
    option(
        "number_ios",
        &[],
        Kind::Number(1, i64::MAX),
        "",
        "stop after this many I/Os, unless the job is time-based",
    ),
    option("numjobs", &[], Kind::Number(1, 65_536), "1", "clones of the job"),
    option(
        "offset",
        &[],
        Kind::Size { percent: true, zero: true },
        "0",
        "where in the file to start",
    ),
    option(
        "offset_increment",
        &[],
        Kind::Size { percent: false, zero: true },
        "0",
        "added to the offset for each further clone",
    ),
    option(
        "percentage_random",
        &[],
        Kind::Number(0, 100),
        "100",
        "share of random offsets in a random job",
    ),
    option(
        "pre_read",
        &[],
        Kind::Flag,
        "0",
        "read the file into the page cache before the job starts",
    ),
    option("prio", &[], Kind::Number(0, 7), "", "I/O priority level, 0 is best"),
    option(
        "prioclass",
        &[],
        Kind::Number(0, 3),
        "",
        "I/O priority class: 1 real time, 2 best effort, 3 idle",
    ),
    option(
        "ramp_time",
        &[],
        Kind::Duration(SECOND),
        "0",
        "run this long before anything is measured",
    ),
    option("randseed", &[], COUNT, "", "seed of this job's random numbers"),
    option(
        "random_distribution",
        &[],
        Kind::Distribution,
        "random",
        "distribution of random offsets",
    ),
    option("rate", &[], Kind::Rates, "", "bytes a second, for each clone"),
    option("rate_iops", &[], Kind::Rates, "", "I/Os a second, for each clone"),
    option(
        "rate_process",
        &[],
        Kind::Choice(&["linear", "poisson"]),
        "linear",
        "spacing of a limited rate",
    ),
    option(
        "readwrite",
        &["rw"],
        Kind::Mode,
        "read",
        "kind of I/O; randread:8 takes a new offset for every eighth I/O, read:8k leaves 8k out after \
         each, read:-8k with blocks of 4k goes backwards",
    ),
    option(
        "rw_sequencer",
        &[],
        Kind::Choice(&["sequential", "identical"]),
        "sequential",
        "what a random job with :N does in between: go on in order, or repeat the offset",
    ),
    option("runtime", &["timeout"], Kind::Duration(SECOND), "", "end after this time"),
    option(
        "rwmixread",
        &[],
        Kind::Number(0, 100),
        "50",
        "share of reads in a mixed job, in percent",
    ),
    option(
        "rwmixwrite",
        &[],
        Kind::Number(0, 100),
        "50",
        "share of writes in a mixed job, in percent",
    ),
    option(
        "size",
        &["filesize"],
        Kind::Size { percent: true, zero: false },
        "",
        "bytes of the file that the job covers; default: the whole device",
    ),
    option("startdelay", &["start_delay"], Kind::Duration(SECOND), "0", "start this much later"),
    option(
        "stonewall",
        &["wait_for_previous"],
        Kind::Flag,
        "0",
        "wait until all jobs before this one have ended",
    ),
    option(
        "sync",
        &[],
        Kind::Choice(&["0", "1", "none", "sync", "dsync"]),
        "0",
        "every write is durable before it completes (O_SYNC)",
    ),
    option("thinktime", &[], Kind::Duration(MICROSECOND), "0", "pause between I/Os"),
    option("thinktime_blocks", &[], Kind::Number(1, i64::MAX), "1", "I/Os between two pauses"),
    option("time_based", &[], Kind::Flag, "0", "repeat until the runtime is over"),
    // Reporting, and how fio itself works: without influence on a simulated result.
    neutral("allrandrepeat", Kind::Flag, "simulated runs always repeat"),
    neutral("clocksource", Kind::Text, "the simulator has its own clock"),
    neutral("description", Kind::Text, "a note"),
    neutral("disable_clat", Kind::Flag, "reporting"),
    neutral("disable_lat", Kind::Flag, "reporting"),
    neutral("disable_slat", Kind::Flag, "reporting"),
    neutral("do_verify", Kind::Flag, "nothing is verified"),
    neutral("group_reporting", Kind::Flag, "clones are always reported together"),
    neutral("gtod_reduce", Kind::Flag, "reporting"),
    neutral("log_avg_msec", COUNT, "reporting"),
    neutral("log_hist_msec", COUNT, "reporting"),
    neutral("new_group", Kind::Flag, "reporting"),
    neutral("percentile_list", Kind::Text, "reporting"),
    neutral("clat_percentiles", Kind::Flag, "reporting"),
    neutral("lat_percentiles", Kind::Flag, "reporting"),
    neutral("randrepeat", Kind::Flag, "simulated runs always repeat"),
    neutral("refill_buffers", Kind::Flag, "contents are not simulated"),
    neutral("thread", Kind::Flag, "threads and processes are alike here"),
    neutral("zero_buffers", Kind::Flag, "contents are not simulated"),
    // Real effects on a host that the simulator does not have.
    ignored("cpus_allowed", Kind::Text, "the simulator's processor is never busy"),
    ignored("fallocate", Kind::Text, "files are laid out beforehand"),
    ignored("hipri", Kind::Flag, "polling is not simulated"),
    ignored("iodepth_batch_complete", COUNT, "completions are reaped one by one"),
    ignored("iodepth_batch_complete_min", COUNT, "completions are reaped one by one"),
    ignored("iodepth_low", COUNT, "the depth is kept full"),
    ignored("random_generator", Kind::Text, "the simulator has its own"),
    ignored("sqthread_poll", Kind::Flag, "polling is not simulated"),
    // Only the host backend.
    host_only("cgroup_nodelete", Kind::Flag, "keep the control group"),
    // blklab decides these.
    refused("directory", "blklab decides where files are laid out"),
    refused("exec_prerun", "blklab runs no commands of a job file"),
    refused("exec_postrun", "blklab runs no commands of a job file"),
];

/// The option called `name`, by its long name or an alias.
pub fn find(name: &str) -> Option<&'static OptionSpec> {
    OPTIONS.iter().find(|o| o.name == name || o.aliases.contains(&name))
}

/// All names and aliases that a job file may use.
pub fn usable_names() -> impl Iterator<Item = &'static str> + Clone {
    OPTIONS
        .iter()
        .filter(|o| o.support != Support::Refused)
        .flat_map(|o| std::iter::once(o.name).chain(o.aliases.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = OPTIONS
            .iter()
            .flat_map(|o| std::iter::once(o.name).chain(o.aliases.iter().copied()))
            .collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
}
