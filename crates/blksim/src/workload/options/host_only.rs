//! Options that fio gets on hosts and that models refuse, with the reason. Some values of modelled
//! options belong here too.

use super::{COUNT, Kind, OptionSpec, SECOND, Support, unmodelled};

const fn host_only(
    name: &'static str,
    aliases: &'static [&'static str],
    kind: Kind,
    help: &'static str,
) -> OptionSpec {
    unmodelled(name, aliases, kind, Support::HostOnly, help)
}

pub const OPTIONS: &[OptionSpec] = &[
    host_only("atomic", &[], Kind::Flag, "models have no atomic writes"),
    host_only(
        "bs_unaligned",
        &["blocksize_unaligned"],
        Kind::Flag,
        "models transfer whole sectors",
    ),
    host_only("experimental_verify", &[], Kind::Flag, "models know the usual verification"),
    host_only("verify_only", &[], Kind::Flag, "models know the usual verification"),
    host_only("trim_percentage", &[], COUNT, "models trim by jobs of their own, not to verify"),
    host_only("trim_backlog", &[], COUNT, "models trim by jobs of their own, not to verify"),
    host_only("trim_backlog_batch", &[], COUNT, "models trim by jobs of their own, not to verify"),
    host_only(
        "trim_verify_zero",
        &[],
        Kind::Flag,
        "models trim by jobs of their own, not to verify",
    ),
    host_only("lockfile", &[], Kind::Text, "models have no locks on files"),
    host_only("nowait", &[], Kind::Flag, "a submission of models waits while the queue is full"),
    host_only("offset_align", &[], COUNT, "models align offsets to the block size only"),
    host_only("serialize_overlap", &[], Kind::Flag, "models do not look for I/Os that overlap"),
    host_only("sync_file_range", &[], Kind::Text, "models write back by fsync and by age only"),
    host_only("write_barrier", &[], COUNT, "models have no barriers but fsync"),
    host_only(
        "thinktime_blocks_type",
        &[],
        Kind::Text,
        "models count completed I/Os between pauses",
    ),
    host_only(
        "thinktime_iotime",
        &[],
        Kind::Duration(SECOND),
        "models count I/Os between pauses, not time",
    ),
    host_only("zonecapacity", &[], Kind::Text, "models have no zoned devices"),
    host_only("zone_reset_threshold", &[], Kind::Text, "models have no zoned devices"),
    host_only("zone_reset_frequency", &[], Kind::Text, "models have no zoned devices"),
    host_only("max_open_zones", &[], COUNT, "models have no zoned devices"),
    host_only("job_max_open_zones", &[], COUNT, "models have no zoned devices"),
    host_only("ignore_zone_limits", &[], Kind::Flag, "models have no zoned devices"),
    host_only("read_beyond_wp", &[], Kind::Flag, "models have no zoned devices"),
];

/// Values of modelled options that only hosts have: option, beginning of the value, reason.
pub const VALUES: &[(&str, &str, &str)] = &[
    ("readwrite", "trimwrite", NO_MIX),
    ("readwrite", "randtrimwrite", NO_MIX),
    ("ioengine", "splice", "models do not move data through pipes"),
    ("ioengine", "falloc", "models do not allocate and free space of files"),
    ("zonemode", "zbd", "models have no zoned devices"),
];

const NO_MIX: &str = "models do not alternate trims and writes";
