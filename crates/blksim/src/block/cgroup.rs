//! The control groups of the host: a tree of groups with the settings of the
//! I/O controllers.
//!
//! Names and formats are the kernel's (`Documentation/admin-guide/cgroup-v2.rst`,
//! Linux 6.1), with two additions: numbers may have suffixes (`rbps=10m`), and
//! dm-ioband's settings, which its kernel took through `dmsetup`, are
//! attributes `ioband.*`. The root is `/`; `a/b` is a child of `a`. A leading
//! device number (`8:0 rbps=…`) is skipped: there is one device.
//!
//! Groups are numbered in the order in which jobs name them, parents first; those without jobs come
//! last. So the way in which a setting was given, and the name of a group, say nothing about its number.
//!
//! Simplified: a job is in its group from its first to its last moment;
//! `cgroup_weight` sets the weights under io.cost, cfq and bfq, the last at most 1000.

use std::collections::{BTreeMap, BTreeSet};

use crate::core::error::{ErrorKind, SimulationError};
use crate::core::params::{Param, ParamError, Problem, Unit, Values, nearest};
use crate::workload::Job;

/// Settings of groups as the user gave them: name, then attributes and values.
pub type GivenGroups = Vec<(String, Vec<(String, String)>)>;

/// A control group as schedulers see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupWeights {
    /// `io.bfq.weight`, 1 to 1000.
    pub bfq: u32,
    /// cfq's: `io.weight` (v2, default 100) or `blkio.weight` (v1, default 500).
    pub cfq: u32,
    /// Index of the parent; the root is its own.
    pub parent: u16,
}

impl Default for GroupWeights {
    fn default() -> Self {
        Self { bfq: 100, cfq: 100, parent: 0 }
    }
}

const WEIGHT: Param =
    Param::new("io.weight", Unit::Count, 100, (1, 10_000), "share under io.cost and cfq");
const BFQ_WEIGHT: Param =
    Param::new("io.bfq.weight", Unit::Count, 100, (1, 1000), "share under bfq");
const CFQ_WEIGHT: Param =
    Param::new("blkio.weight", Unit::Count, 500, (10, 1000), "share under cfq, cgroup v1");

/// No limit.
pub const UNLIMITED: u64 = u64::MAX;

/// Keys of `io.max`.
pub const MAX: &[Param] = &[
    Param::new("rbps", Unit::BytesPerSecond, UNLIMITED, (1, UNLIMITED), "bytes read a second"),
    Param::new("wbps", Unit::BytesPerSecond, UNLIMITED, (1, UNLIMITED), "bytes written a second"),
    Param::new("riops", Unit::Count, UNLIMITED, (1, 0xffff_ffff), "reads a second"),
    Param::new("wiops", Unit::Count, UNLIMITED, (1, 0xffff_ffff), "writes a second"),
];

/// Keys of `io.latency`.
const LATENCY: &[Param] = &[Param::new(
    "target",
    Unit::Microseconds,
    0,
    (0, 1_000_000_000),
    "latency that the group wants; 0: none",
)];

/// Keys of `io.cost.qos`.
pub const COST_QOS: &[Param] = &[
    Param::flag("enable", 0, "io.cost controls this device"),
    Param::choice("ctrl", &["auto", "user"], 0, "who sets the parameters"),
    Param::new("rpct", Unit::Percent, 0, (0, 100), "percentile of read latency; 0: not looked at"),
    Param::new("rlat", Unit::Microseconds, 0, (0, 1_000_000_000), "target of read latency"),
    Param::new("wpct", Unit::Percent, 0, (0, 100), "percentile of write latency; 0: not looked at"),
    Param::new("wlat", Unit::Microseconds, 0, (0, 1_000_000_000), "target of write latency"),
    Param::new("min", Unit::Percent, 1, (1, 10_000), "slowest device clock"),
    Param::new("max", Unit::Percent, 10_000, (1, 10_000), "fastest device clock"),
];

const RATE: (u64, u64) = (1, 1 << 40);

/// Keys of `io.cost.model`; 0 stands for the value of the automatic profile.
pub const COST_MODEL: &[Param] = &[
    Param::choice("ctrl", &["auto", "user"], 0, "who sets the parameters"),
    Param::choice("model", &["linear"], 0, "form of the model"),
    Param::new("rbps", Unit::BytesPerSecond, 0, RATE, "sequential reading"),
    Param::new("rseqiops", Unit::Count, 0, RATE, "sequential 4 KiB reads"),
    Param::new("rrandiops", Unit::Count, 0, RATE, "random 4 KiB reads"),
    Param::new("wbps", Unit::BytesPerSecond, 0, RATE, "sequential writing"),
    Param::new("wseqiops", Unit::Count, 0, RATE, "sequential 4 KiB writes"),
    Param::new("wrandiops", Unit::Count, 0, RATE, "random 4 KiB writes"),
];

/// dm-ioband's settings of the device, given to the root as `ioband.NAME`.
pub const BAND: &[Param] = &[
    Param::choice("policy", &["weight", "weight-iosize", "range-bw"], 0, "how bandwidth is shared"),
    Param::new("token", Unit::Count, 0, (0, 1 << 32), "tokens of an epoch; 0: by policy"),
    Param::new(
        "io_throttle",
        Unit::Count,
        4,
        (1, 65_536),
        "bios in flight that hold an epoch back",
    ),
    Param::new("io_limit", Unit::Count, 192, (1, 65_536), "bios in flight, sync and async each"),
    Param::new("carryover", Unit::Count, 2, (1, 65_536), "epochs whose tokens an idle group saves"),
];

/// dm-ioband's settings of a group: `ioband.NAME`. The root's are the default group's.
pub const BAND_GROUP: &[Param] = &[
    Param::new("weight", Unit::Count, 100, (1, 10_000), "share of the tokens"),
    Param::new("min", Unit::Kibibytes, 0, (0, 1 << 32), "range-bw: KB/s that it gets at least"),
    Param::new("max", Unit::Kibibytes, 0, (0, 1 << 32), "range-bw: KB/s at most; 0: no limit"),
];

/// One group.
#[derive(Debug, Clone)]
pub struct Group {
    pub name: String,
    pub parent: u16,
    pub weights: GroupWeights,
    pub io_weight: u64,
    pub max: Values,
    pub latency_target_ns: u64,
    pub band: Values,
}

/// All groups; the first is the root.
#[derive(Debug, Clone)]
pub struct Cgroups {
    pub groups: Vec<Group>,
    numbers: BTreeMap<String, u16>,
    pub cost_qos: Values,
    pub cost_model: Values,
    /// dm-ioband stands above the device.
    pub band: Option<Values>,
}

/// Attributes that only the root has.
const ROOT_ONLY: &[&str] = &["io.cost.qos", "io.cost.model"];
/// All attributes, for hints.
const ATTRIBUTES: &[&str] = &[
    "io.weight",
    "io.bfq.weight",
    "blkio.weight",
    "blkio.bfq.weight",
    "io.max",
    "io.latency",
    "io.cost.qos",
    "io.cost.model",
    "ioband.policy",
    "ioband.token",
    "ioband.io_throttle",
    "ioband.io_limit",
    "ioband.carryover",
    "ioband.weight",
    "ioband.min",
    "ioband.max",
];

impl Cgroups {
    /// Reads settings, and creates the groups that jobs name.
    pub fn new(given: &GivenGroups, jobs: &[Job]) -> Result<Self, SimulationError> {
        let mut tree = Self {
            groups: Vec::new(),
            numbers: BTreeMap::new(),
            cost_qos: Values::defaults(COST_QOS),
            cost_model: Values::defaults(COST_MODEL),
            band: None,
        };
        tree.add("/", 0);
        for name in jobs.iter().filter_map(|job| job.cgroup.as_deref()) {
            tree.find_or_add(name)?;
        }
        for (name, attributes) in given {
            let group = tree.find_or_add(name)?;
            for (attribute, text) in attributes {
                tree.set(group, attribute, strip_device(text))?;
            }
        }
        tree.follow_legacy_defaults(given);
        for job in jobs {
            tree.join(job)?;
        }
        Ok(tree)
    }

    /// With the weight of one group that of cgroup v1, all others have its default.
    fn follow_legacy_defaults(&mut self, given: &GivenGroups) {
        let named: BTreeSet<u16> = given
            .iter()
            .filter(|(_, attributes)| attributes.iter().any(|(name, _)| name == CFQ_WEIGHT.name))
            .filter_map(|(group, _)| self.find(group))
            .collect();
        if named.is_empty() {
            return;
        }
        for (number, group) in (0..).zip(&mut self.groups) {
            if !named.contains(&number) {
                group.weights.cfq = CFQ_WEIGHT.default as u32;
            }
        }
    }

    /// Index of the group of a job.
    pub fn of_job(&self, job: &Job) -> u16 {
        job.cgroup.as_deref().and_then(|name| self.find(name)).unwrap_or(0)
    }

    /// The groups as schedulers see them, by index.
    pub fn weights(&self) -> Vec<GroupWeights> {
        self.groups.iter().map(|group| group.weights).collect()
    }

    fn find(&self, name: &str) -> Option<u16> {
        let name = name.trim_matches('/');
        let name = if name.is_empty() { "/" } else { name };
        self.numbers.get(name).copied()
    }

    /// Writes a file of a group that exists. Returns the group's index.
    pub fn change(
        &mut self,
        name: &str,
        attribute: &str,
        text: &str,
    ) -> Result<u16, SimulationError> {
        let Some(group) = self.find(name) else {
            let names: Vec<_> = self.groups.iter().map(|group| group.name.as_str()).collect();
            let message = format!(
                "there is no control group {name:?}; a run keeps the groups that it began with: {}",
                names.join(", ")
            );
            return Err(SimulationError::of(ErrorKind::Request, "group", message));
        };
        self.set(group, attribute, strip_device(text))?;
        Ok(group)
    }

    fn add(&mut self, name: &str, parent: u16) -> u16 {
        self.groups.push(Group {
            name: name.to_owned(),
            parent,
            weights: GroupWeights { parent, ..GroupWeights::default() },
            io_weight: WEIGHT.default,
            max: Values::defaults(MAX),
            latency_target_ns: 0,
            band: Values::defaults(BAND_GROUP),
        });
        let number = (self.groups.len() - 1) as u16;
        self.numbers.insert(name.to_owned(), number);
        number
    }

    fn find_or_add(&mut self, name: &str) -> Result<u16, SimulationError> {
        if let Some(group) = self.find(name) {
            return Ok(group);
        }
        let name = name.trim_matches('/');
        let good = |part: &str| {
            !part.is_empty()
                && !part.starts_with(['.', '-'])
                && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        };
        if !name.split('/').all(good) {
            let message = format!(
                "{name:?} cannot be the name of a control group; use letters, digits, '_', '-' and '.'"
            );
            return Err(SimulationError::of(ErrorKind::Request, "cgroups", message));
        }
        if self.groups.len() >= 4096 {
            let message = "there may be 4096 control groups at most";
            return Err(SimulationError::of(ErrorKind::OutOfRange, "cgroups", message));
        }
        let parent = match name.rsplit_once('/') {
            Some((parent, _)) => self.find_or_add(parent)?,
            None => 0,
        };
        Ok(self.add(name, parent))
    }

    fn join(&mut self, job: &Job) -> Result<(), SimulationError> {
        let Some(name) = &job.cgroup else {
            if job.cgroup_weight.is_some() {
                let message = format!("job {}: cgroup_weight needs a cgroup", job.name);
                return Err(SimulationError::of(ErrorKind::Request, "cgroup_weight", message));
            }
            return Ok(());
        };
        let group = self.find_or_add(name)?;
        if let Some(weight) = job.cgroup_weight {
            let group = &mut self.groups[group as usize];
            group.io_weight = weight;
            group.weights.cfq = weight as u32;
            group.weights.bfq = weight.min(BFQ_WEIGHT.max) as u32;
        }
        Ok(())
    }

    fn set(&mut self, index: u16, attribute: &str, text: &str) -> Result<(), SimulationError> {
        let wrong = |error: ParamError| {
            SimulationError::of(
                ErrorKind::OutOfRange,
                attribute,
                format!("control group attribute {attribute}: {}", error.message),
            )
        };
        if ROOT_ONLY.contains(&attribute) && index != 0 {
            let message = format!("{attribute} belongs to the root group, \"/\"");
            return Err(SimulationError::of(ErrorKind::UnknownTunable, attribute, message));
        }
        let group = &mut self.groups[index as usize];
        let bare = text.strip_prefix("default").unwrap_or(text).trim();
        match attribute {
            "io.weight" => {
                group.io_weight = WEIGHT.parse(bare).map_err(wrong)?;
                group.weights.cfq = group.io_weight as u32;
            }
            "io.bfq.weight" | "blkio.bfq.weight" => {
                group.weights.bfq = BFQ_WEIGHT.parse(bare).map_err(wrong)? as u32;
            }
            "blkio.weight" => group.weights.cfq = CFQ_WEIGHT.parse(bare).map_err(wrong)? as u32,
            "io.max" => assign(&mut group.max, text).map_err(wrong)?,
            "io.latency" => {
                let mut values = Values::defaults(LATENCY);
                assign(&mut values, text).map_err(wrong)?;
                group.latency_target_ns = values.get_ns("target");
            }
            "io.cost.qos" => assign(&mut self.cost_qos, text).map_err(wrong)?,
            "io.cost.model" => assign(&mut self.cost_model, text).map_err(wrong)?,
            _ => return self.set_band(index, attribute, text),
        }
        Ok(())
    }

    fn set_band(&mut self, index: u16, attribute: &str, text: &str) -> Result<(), SimulationError> {
        let unknown = || {
            let hint = match nearest(attribute, ATTRIBUTES.iter().copied()) {
                Some(name) => format!("did you mean {name}?"),
                None => format!("there are {}", ATTRIBUTES.join(", ")),
            };
            let message =
                format!("the simulator has no control group attribute {attribute}; {hint}");
            SimulationError::of(ErrorKind::UnknownTunable, attribute, message)
        };
        let name = attribute.strip_prefix("ioband.").ok_or_else(unknown)?;
        let of_device = BAND.iter().any(|p| p.name == name);
        if (of_device && index != 0) || !(of_device || BAND_GROUP.iter().any(|p| p.name == name)) {
            return Err(unknown());
        }
        let band = self.band.get_or_insert_with(|| Values::defaults(BAND));
        let values = if of_device { band } else { &mut self.groups[index as usize].band };
        values.set(name, text.trim()).map_err(|error| {
            let message = format!("control group attribute {attribute}: {}", error.message);
            SimulationError::of(ErrorKind::OutOfRange, attribute, message)
        })
    }
}

/// `8:0 rbps=1` means the same as `rbps=1`.
fn strip_device(text: &str) -> &str {
    let text = text.trim();
    let Some((first, rest)) = text.split_once(char::is_whitespace) else { return text };
    let number = first.split_once(':').is_some_and(|(major, minor)| {
        [major, minor].iter().all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    });
    if number { rest.trim() } else { text }
}

/// Reads `key=value key=value`; `max` takes a limit away.
fn assign(values: &mut Values, text: &str) -> Result<(), ParamError> {
    for word in text.split_whitespace() {
        let Some((key, value)) = word.split_once('=') else {
            return Err(ParamError {
                name: word.to_owned(),
                problem: Problem::Malformed,
                message: format!("{word:?} is not KEY=VALUE"),
            });
        };
        if value == "max" && values.iter().any(|(p, _)| p.name == key && p.default == UNLIMITED) {
            values.put(key, UNLIMITED);
            continue;
        }
        // The kernel shows percentages with two decimals.
        let value = value.strip_suffix(".00").unwrap_or(value);
        values.set(key, value)?;
    }
    Ok(())
}
