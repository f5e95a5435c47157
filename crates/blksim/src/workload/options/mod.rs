//! The job language: every option of fio 3.33's manual, and what blklab does with it.
//!
//! This table is their only list; the parser, its messages and the documentation follow it. A test
//! holds it complete against fio itself.

pub(super) mod engines;
pub(super) mod host_only;
mod modelled;
mod passed;
mod refused;

/// The support for an option. Hosts are the machine's own disks; models are the simulator and
/// guest kernels over modelled devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// Honoured on hosts and in models.
    Modelled,
    /// Hosts only, and without influence on the I/O there either: reports, contents, checks.
    Neutral,
    /// It may change the I/O of hosts; models go without it and say so.
    Noted,
    /// Passed to fio on hosts; models refuse it.
    HostOnly,
    /// Refused everywhere.
    Refused,
}

impl Support {
    pub fn name(self) -> &'static str {
        match self {
            Self::Modelled => "modelled",
            Self::Neutral => "neutral",
            Self::Noted => "noted",
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
    /// A size; or a percentage up to `most_percent`, none if that is 0.
    Size {
        most_percent: u64,
        zero: bool,
    },
    /// A duration; a bare number counts this many nanoseconds.
    Duration(u64),
    Choice(&'static [&'static str]),
    /// `roundrobin:4` and the like.
    FileService,
    Text,
    /// One to three sizes: reads, writes, trims.
    Sizes,
    /// One to three rates: reads, writes, trims. 0 means no limit.
    Rates,
    /// `4k/60:64k/40`, for reads and for writes.
    Split,
    /// One or two ranges of sizes: `4k-64k`.
    Ranges,
    /// A size or a range of sizes: `1k-4m`.
    FileSizes,
    /// One or two numbers within bounds, for reads and writes.
    Levels(i64, i64),
    /// `64k/20/1/0:4k/5`, for reads and for writes.
    PrioritySplit,
    /// A share above 0 and up to 100, with a fraction.
    Percent,
    /// A file name; the folder before it is left out.
    LogName,
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
            Self::Size { most_percent: 0, .. } => "size (4k, 1g)".to_owned(),
            Self::Size { .. } => "size (4k, 1g) or percentage".to_owned(),
            Self::FileService => {
                "random, roundrobin or sequential, with :N for N I/Os at a time; zipf:THETA, pareto:H or \
                 normal:PERCENT"
                    .to_owned()
            }
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
            Self::Ranges => "range of sizes (4k-64k), or read,write ranges".to_owned(),
            Self::FileSizes => "size (64m), or range of sizes (1k-4m)".to_owned(),
            Self::Levels(min, max) => {
                format!("number from {min} to {max}, or one for reads and one for writes")
            }
            Self::PrioritySplit => {
                "list such as 64k/20:4k/5/CLASS/LEVEL, or read,write lists".to_owned()
            }
            Self::Percent => "percentage above 0, up to 100".to_owned(),
            Self::LogName => "name of a file".to_owned(),
            Self::Distribution => {
                "random, zipf:THETA, pareto:H, normal:PERCENT, zoned:ACCESSES/SIZE:… or zoned_abs:…"
                    .to_owned()
            }
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
    OptionSpec { name, aliases, kind, default, support: Support::Modelled, help }
}

const fn unmodelled(
    name: &'static str,
    aliases: &'static [&'static str],
    kind: Kind,
    support: Support,
    help: &'static str,
) -> OptionSpec {
    OptionSpec { name, aliases, kind, default: "", support, help }
}

pub const RW_MODES: &[&str] = &[
    "read",
    "write",
    "randread",
    "randwrite",
    "rw",
    "readwrite",
    "randrw",
    "trim",
    "randtrim",
    "trimwrite",
    "randtrimwrite",
];

const SECOND: u64 = 1_000_000_000;
const MICROSECOND: u64 = 1_000;
const COUNT: Kind = Kind::Number(0, i64::MAX);

/// Every option: modelled, passed on, refused in models, refused everywhere.
pub fn all() -> impl Iterator<Item = &'static OptionSpec> + Clone {
    let parts = [modelled::OPTIONS, passed::OPTIONS, host_only::OPTIONS, refused::OPTIONS];
    parts.into_iter().flatten()
}

/// The option called `name`, by its long name or an alias.
pub fn find(name: &str) -> Option<&'static OptionSpec> {
    all().find(|o| o.name == name || o.aliases.contains(&name))
}

/// All names and aliases that a job file may use.
pub fn usable_names() -> impl Iterator<Item = &'static str> + Clone {
    all()
        .filter(|o| o.support != Support::Refused)
        .flat_map(|o| std::iter::once(o.name).chain(o.aliases.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> =
            all().flat_map(|o| std::iter::once(o.name).chain(o.aliases.iter().copied())).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
}
