//! Control groups: created, set and read back.
//!
//! They are of version 2, with the kernel's attributes (`Documentation/admin-guide/cgroup-v2.rst`, Linux
//! 6.1). Attributes `blkio.…` are of version 1 (`Documentation/cgroup-v1/blkio-controller.txt`, Linux
//! 4.19), and make the groups so. `/` is the root; a leading device number is replaced by the disks'
//! numbers.

use std::collections::BTreeMap;
use std::fs;

use blksim::block::cgroup::{COST_MODEL, COST_QOS, Cgroups, MAX};
use blksim::core::error::ErrorKind;
use blksim::core::params::Param;
use blksim::live::change::Change;
use serde_json::{Map, Value};

use crate::disk::Disk;
use crate::failure::Failure;
use crate::mounts::{CGROUPS, mount, read_line};
use crate::queue::{kernel_text, plain};
use crate::request::Request;

/// Attributes keyed by device, with the options of their values.
const BY_DEVICE: &[(&str, &[Param])] = &[
    ("io.max", MAX),
    ("io.latency", &[]),
    ("io.cost.qos", COST_QOS),
    ("io.cost.model", COST_MODEL),
];
/// Weights that a job's `cgroup_weight` sets where the kernel has them, with their largest value.
const WEIGHTS: &[(&str, u64)] =
    &[("io.bfq.weight", 1000), ("io.weight", 10_000), ("blkio.weight", 1000)];
/// Begins the names of attributes of version 1.
const VERSION_1: &str = "blkio.";

/// Mounts groups of version 1, if a run has them. Call before the scheduler is set: cfq then gives the root
/// group the weight of that version.
pub fn mount_version_1(request: &Request) -> Result<(), Failure> {
    if is_version_1(request) { mount("cgroup", CGROUPS, "cgroup", "blkio") } else { Ok(()) }
}

fn is_version_1(request: &Request) -> bool {
    let mut attributes = request.setup.cgroups.iter().flat_map(|(_, attributes)| attributes);
    attributes.any(|(name, _)| name.starts_with(VERSION_1))
}

/// The groups of a run.
#[derive(Debug, Clone, Default)]
pub struct Groups {
    /// Attributes that were set, by group.
    written: Vec<(String, String)>,
}

impl Groups {
    /// Creates the groups named in the request and sets their attributes.
    pub fn create(request: &Request, disks: &[Disk]) -> Result<Self, Failure> {
        let setup = &request.setup;
        let named = request.jobs.iter().any(|job| job.cgroup.is_some());
        let changed = request.changes.iter().flat_map(|planned| &planned.changes);
        let changed = changed.into_iter().any(|(_, change)| matches!(change, Change::Group { .. }));
        if setup.cgroups.is_empty() && !named && !changed {
            return Ok(Self::default());
        }
        let version_1 = is_version_1(request);
        // Names and tree are checked as in the simulator; the kernel judges the attributes.
        let names: Vec<_> =
            setup.cgroups.iter().map(|(name, _)| (name.clone(), Vec::new())).collect();
        let tree = Cgroups::new(&names, &request.jobs)?;
        if !version_1 {
            mount("cgroup2", CGROUPS, "cgroup2", "")?;
            pass_on_control("/")?;
        }
        let parents: Vec<u16> = tree.groups.iter().skip(1).map(|group| group.parent).collect();
        for (index, group) in tree.groups.iter().enumerate().skip(1) {
            let path = folder(&group.name);
            fs::create_dir(&path).map_err(|error| {
                Failure::kernel(format!("creating the group {}", group.name), error)
            })?;
            if !version_1 && parents.contains(&(index as u16)) {
                pass_on_control(&group.name)?;
            }
        }
        let numbers = numbers_of(disks)?;
        let mut groups = Self::default();
        for (name, attributes) in &setup.cgroups {
            for (attribute, text) in attributes {
                for value in values_for(attribute, text, &numbers) {
                    groups.set(name, attribute, &value)?;
                }
            }
        }
        groups.set_weights_of_jobs(request)?;
        Ok(groups)
    }

    fn set_weights_of_jobs(&mut self, request: &Request) -> Result<(), Failure> {
        let weighted =
            request.jobs.iter().filter_map(|job| Some((job.cgroup.as_ref()?, job.cgroup_weight?)));
        let weights: BTreeMap<_, _> = weighted.collect();
        for (group, weight) in weights {
            let mut any = false;
            for (attribute, largest) in WEIGHTS {
                if fs::metadata(format!("{}/{attribute}", folder(group))).is_ok() {
                    self.set(group, attribute, &weight.min(*largest).to_string())?;
                    any = true;
                }
            }
            if !any {
                let message = format!(
                    "this kernel has no weight of I/O for the control group {group:?}; it needs io.bfq.weight \
                     or io.weight (CONFIG_BFQ_GROUP_IOSCHED or CONFIG_BLK_CGROUP_IOCOST)"
                );
                return Err(Failure::of(ErrorKind::UnknownTunable, "cgroup_weight", message));
            }
        }
        Ok(())
    }

    fn set(&mut self, group: &str, attribute: &str, value: &str) -> Result<(), Failure> {
        let path = format!("{}/{attribute}", folder(group));
        if attribute.contains('/') || fs::metadata(&path).is_err() {
            let message = format!(
                "this kernel has no control group attribute {attribute} for the group {group}"
            );
            return Err(Failure::of(ErrorKind::UnknownTunable, attribute, message));
        }
        fs::write(&path, value).map_err(|error| {
            let message = format!(
                "control group {group}: the kernel refused {attribute} = {value} ({})",
                plain(&error)
            );
            Failure::of(ErrorKind::OutOfRange, attribute, message)
        })?;
        let written = (group.to_owned(), attribute.to_owned());
        if !self.written.contains(&written) {
            self.written.push(written);
        }
        Ok(())
    }

    /// Writes to an attribute of a group in use.
    pub fn change(
        &mut self,
        (group, attribute, text): (&str, &str, &str),
        disks: &[Disk],
    ) -> Result<(), Failure> {
        for value in values_for(attribute, text, &numbers_of(disks)?) {
            self.set(group, attribute, &value)?;
        }
        Ok(())
    }

    /// The attributes in force: group to attribute to file content.
    pub fn read(&self) -> Value {
        let mut found: Map<String, Value> = Map::new();
        for (group, attribute) in &self.written {
            let content = read_line(&format!("{}/{attribute}", folder(group))).unwrap_or_default();
            let attributes =
                found.entry(group.clone()).or_insert_with(|| Value::Object(Map::new()));
            attributes[attribute] = content.replace('\n', "; ").into();
        }
        Value::Object(found)
    }
}

/// The file that a process writes to in order to join a group.
pub fn processes_file(group: &str) -> String {
    format!("{}/cgroup.procs", folder(group))
}

/// The device numbers of disks, `MAJOR:MINOR`.
fn numbers_of(disks: &[Disk]) -> Result<Vec<String>, Failure> {
    let numbers = disks.iter().map(|disk| read_line(&format!("/sys/block/{}/dev", disk.name)));
    numbers
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Failure::kernel("reading the disk's number", error))
}

fn folder(group: &str) -> String {
    match group.trim_matches('/') {
        "" => CGROUPS.to_owned(),
        name => format!("{CGROUPS}/{name}"),
    }
}

fn pass_on_control(group: &str) -> Result<(), Failure> {
    fs::write(format!("{}/cgroup.subtree_control", folder(group)), "+io").map_err(|error| {
        Failure::Unsupported {
            field: "cgroups".to_owned(),
            message: format!(
                "this kernel's control groups have no I/O controller ({})",
                plain(&error)
            ),
        }
    })
}

/// Values in the kernel's form: one per disk, with the disk's number in front, and plain numbers.
fn values_for(attribute: &str, text: &str, numbers: &[String]) -> Vec<String> {
    let Some((_, table)) = BY_DEVICE.iter().find(|(name, _)| *name == attribute) else {
        return vec![text.trim().to_owned()];
    };
    let mut words: Vec<&str> = text.split_whitespace().collect();
    if words.first().is_some_and(|word| word.contains(':') && !word.contains('=')) {
        words.remove(0);
    }
    let settings = words.iter().map(|word| match word.split_once('=') {
        Some((key, value)) if table.iter().any(|param| param.name == key) => {
            format!("{key}={}", kernel_text(table, key, value))
        }
        _ => (*word).to_owned(),
    });
    let settings = settings.collect::<Vec<_>>().join(" ");
    numbers.iter().map(|number| format!("{number} {settings}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_get_the_disks_numbers_and_lose_suffixes() {
        let numbers = ["259:0".to_owned(), "259:1".to_owned()];
        let values = |attribute, text| values_for(attribute, text, &numbers);
        assert_eq!(
            values("io.max", "8:0 rbps=1m wiops=max"),
            ["259:0 rbps=1048576 wiops=max", "259:1 rbps=1048576 wiops=max"]
        );
        assert_eq!(values("io.cost.qos", "enable=1 rpct=95.00")[0], "259:0 enable=1 rpct=95.00");
        assert_eq!(values("io.bfq.weight", " 300 "), ["300"]);
        assert_eq!(values("io.latency", "target=100")[1], "259:1 target=100");
    }
}
