//! The request to a guest.

use std::fs;

use blksim::block::request::SECTOR_BYTES;
use blksim::core::error::{ErrorKind, SimulationError};
use blksim::devices::device::Facts;
use blksim::live::planned::PlannedChanges;
use blksim::simulate::{Setup, check_trims};
use blksim::switchback::Switchback;
use blksim::task::slots::SlotPlan;
use blksim::workload::layout::{Layout, lay_out};
use blksim::workload::order::JobOrder;
use blksim::workload::{Job, covers_device};
use blksim_json::{bad_request, setup_of, setup_with_optional_jobs};
use serde::Deserialize;
use serde_json::Value;

use crate::array::Array;
use crate::command::Command;
use crate::failure::Failure;
use crate::shared_memory::MAX_DISKS;
use crate::torture::Torture;

/// The driver that serves the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Driver {
    /// Any device model, in this program (Linux 6.0 and later).
    #[default]
    Ublk,
    /// Any device model, in this program, through blklab's own driver: for kernels without ublk.
    ModelledDisk,
    /// The kernel's `null_blk`: a fixed latency only.
    NullBlk,
}

impl Driver {
    /// Its name in requests and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ublk => "ublk",
            Self::ModelledDisk => "modelled_disk",
            Self::NullBlk => "null_blk",
        }
    }
}

/// The load generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    #[default]
    Blkguest,
    Fio,
}

/// A file system on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilesystemKind {
    Ext4,
    Xfs,
    Btrfs,
}

/// The clock of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeKind {
    /// Time travel: the clock advances only while every process sleeps.
    #[default]
    Virtual,
    Host,
}

/// The part of the request for guests only.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    pub driver: Driver,
    pub generator: Load,
    pub filesystem: Option<FilesystemKind>,
    pub time: TimeKind,
    /// Whether the answer has each I/O with its times.
    pub recording: bool,
}

/// A request, resolved as far as possible without a kernel.
#[derive(Debug)]
pub struct Request {
    pub setup: Setup,
    pub options: Options,
    /// The turns of schedulers; `None` if the only one stays.
    pub turns: Option<Switchback>,
    /// The changes beneath the load; `None` if everything stays as it is.
    pub changes: Option<PlannedChanges>,
    /// Parts of the run that are recorded apart.
    pub slots: Option<SlotPlan>,
    /// Profile of the disk, or of each member of the array.
    pub facts: Facts,
    pub array: Option<Array>,
    pub capacity_bytes: u64,
    pub jobs: Vec<Job>,
    /// The command that is measured, and whose end ends the jobs; `None` if the jobs are measured.
    pub command: Option<Command>,
    pub layout: Layout,
}

/// The contents of a request file.
#[derive(Debug)]
pub enum Asked {
    Run(Box<Request>),
    Torture(Torture),
}

impl Asked {
    pub fn read(path: &str) -> Result<Self, Failure> {
        #[derive(Deserialize)]
        struct Tortured {
            torture: Torture,
        }

        let text =
            fs::read_to_string(path).map_err(|e| Failure::kernel("reading the request", e))?;
        match serde_json::from_str(&text) {
            Ok(Tortured { torture }) => Ok(Self::Torture(torture)),
            Err(error) if text.starts_with("{\"torture\"") => {
                Err(bad_request(format!("the request: {error}")).into())
            }
            Err(_) => Ok(Self::Run(Box::new(Request::parse(&text)?))),
        }
    }
}

/// Most clones of a guest; each is a process.
pub const MAX_CLONES: u64 = 4096;

impl Request {
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let mut value: Value = serde_json::from_str(text)
            .map_err(|error| bad_request(format!("the request is not JSON: {error}")))?;
        let options = match value.as_object_mut().and_then(|object| object.remove("guest")) {
            None | Some(Value::Null) => Options::default(),
            Some(options) => serde_json::from_value(options)
                .map_err(|error| bad_request(format!("the request's guest: {error}")))?,
        };
        let command: Option<Command> =
            match value.as_object_mut().and_then(|object| object.remove("command")) {
                None | Some(Value::Null) => None,
                Some(command) => serde_json::from_value(command)
                    .map_err(|error| bad_request(format!("the request's command: {error}")))?,
            };
        let prepared =
            if command.is_some() { setup_with_optional_jobs(value)? } else { setup_of(value)? };
        let (mut setup, turns, changes) = (prepared.setup, prepared.switchback, prepared.changes);
        let phases = changes.as_ref().map(|changes| changes.phases.clone());
        let slots = turns.as_ref().map(Switchback::slot_plan).or(phases);
        let slots = slots.filter(|slots| !slots.times.is_empty());
        if let Some(slots) = &slots {
            slots.check()?;
        }
        let device = setup.profile.build(setup.seed)?;
        let mut facts = blksim::devices::device::Device::facts(&device).clone();
        let array = Array::of(&mut setup.profile, options.filesystem)?;
        let raid = blksim::block::raid::array(&setup.profile, &facts)?;
        let capacity_bytes =
            raid.as_ref().map_or(facts.capacity_bytes, |raid| raid.capacity_sectors * SECTOR_BYTES);
        facts.discards &= raid.is_none_or(|raid| raid.takes_discards());
        let mut jobs = setup.timed_jobs()?;
        if let Some(command) = &command {
            let longest_ns = command.lead_ns.saturating_add(command.time_limit_ns);
            for job in &mut jobs {
                job.run_without_end(longest_ns.saturating_mul(2));
            }
        }
        check_trims(&jobs, &facts)?;
        let clones: u64 = jobs.iter().map(|job| u64::from(job.numjobs)).sum();
        if clones > MAX_CLONES {
            let message =
                format!("a guest holds {MAX_CLONES} clones of jobs at most, not {clones}");
            return Err(Failure::of(ErrorKind::OutOfRange, "numjobs", message));
        }
        let layout = lay_out(&jobs, capacity_bytes, setup.arrangement)?;
        let request = Self {
            setup,
            options,
            turns,
            changes,
            slots,
            facts,
            array,
            capacity_bytes,
            jobs,
            command,
            layout,
        };
        request.refuse_what_cannot_be()?;
        Ok(request)
    }

    /// Number of disks of the guest.
    pub fn nr_disks(&self) -> u32 {
        self.array.map_or(1, |array| array.members)
    }

    fn refuse_what_cannot_be(&self) -> Result<(), SimulationError> {
        let wrong = |field: &str, message: String| {
            Err(SimulationError::of(ErrorKind::OutOfRange, field, message))
        };
        let trims = self.jobs.iter().any(|job| job.mode.trims);
        if trims && self.options.filesystem.is_some() {
            let message = "fio trims block devices only, not files: leave filesystem= out";
            return wrong("filesystem", message.to_owned());
        }
        if self.nr_disks() as usize > MAX_DISKS {
            let message = format!("a guest holds {MAX_DISKS} disks at most");
            return wrong("members", message);
        }
        if self.options.driver == Driver::NullBlk {
            if self.array.is_some() {
                return wrong(
                    "raid",
                    "null_blk keeps nothing, so that no array can be made".to_owned(),
                );
            }
            if self.setup.profile.kind.name != "fixed" {
                let kind = self.setup.profile.kind.name;
                return wrong("driver", format!("null_blk cannot be a device of kind {kind}"));
            }
            if self.setup.profile.values.get("jitter") > 0 {
                return wrong("jitter", "null_blk has no jitter; use the driver ublk".to_owned());
            }
        }
        if self.setup.costly_processors().is_some() {
            if self.options.time == TimeKind::Host {
                let message = "in the host's time computing takes the host's own time; leave out the cost table";
                return wrong("processors", message.to_owned());
            }
            if self.options.driver != Driver::Ublk {
                let message = "only the driver ublk knows when the driver got a command";
                return wrong("processors", message.to_owned());
            }
        }
        if self.command.is_some() {
            if self.options.filesystem.is_none() || self.options.driver == Driver::NullBlk {
                let message = "a command needs a file system, on a disk that keeps its contents";
                return wrong("filesystem", message.to_owned());
            }
            if self.options.generator == Load::Fio {
                return wrong("generator", "fio is not a command's".to_owned());
            }
            if self.turns.is_some() {
                let message = "schedulers cannot take turns within a command's run";
                return wrong("switchback", message.to_owned());
            }
            if let Some(job) = self.jobs.iter().find(|job| job.stonewall || job.wait_for.is_some())
            {
                let message =
                    format!("job {} would never begin: beside a command none ends", job.name);
                return wrong("stonewall", message);
            }
        }
        if self.options.recording {
            let served = self.options.driver != Driver::NullBlk && self.array.is_none();
            let bare = self.options.filesystem.is_none() && self.command.is_none();
            let own = self.options.generator == Load::Blkguest;
            if !(served && bare && own && self.jobs.iter().all(|job| job.direct)) {
                let message = "a guest records direct I/O of its own load on one bare disk that its program serves";
                return wrong("recording", message.to_owned());
            }
            // With costs, its program learns of a completion after the disk.
            if self.setup.costly_processors().is_some() {
                let message = "a guest records only where computing takes no time";
                return wrong("recording", message.to_owned());
            }
        }
        if self.turns.is_some() && self.options.generator == Load::Fio {
            return wrong("switchback", "fio does not record its I/O by slot".to_owned());
        }
        if self.changes.is_some() && self.options.generator == Load::Fio {
            let message = "changes are planned for the guest's own load, not for fio's processes";
            return wrong("changes", message.to_owned());
        }
        let several = self.layout.regions.iter().position(|clones| clones[0].len() > 1);
        let on_disk = self.options.filesystem.is_none() && self.options.generator == Load::Fio;
        if let Some(index) = several.filter(|_| on_disk) {
            let name = &self.jobs[index].name;
            let message = format!("job {name}: fio has several files only on a file system");
            return wrong("nrfiles", message);
        }
        if self.options.filesystem.is_some() {
            let whole = |job: &&Job| covers_device(&self.jobs, job);
            if let Some(job) = self.jobs.iter().find(whole) {
                let message = format!("job {}: on a file system a job needs a size", job.name);
                return wrong("size", message);
            }
        }
        Ok(())
    }

    /// When jobs begin, and when one ends others.
    pub fn order(&self) -> JobOrder {
        JobOrder::new(&self.jobs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(extra: &str) -> String {
        format!(
            r#"{{"device": {{"kind": "fixed", "parameters": {{"latency": "100us"}}}},
                "scheduler": "none", "seed": 3,
                "jobs": {{"text": "[a]\nsize=1m\n[b]\nstonewall\nsize=1m\n[c]\nsize=1m\n", "source": "t"}},
                "guest": {{{extra}}}}}"#
        )
    }

    #[test]
    fn options_have_defaults_and_are_checked() {
        let read = Request::parse(&request("")).unwrap();
        assert_eq!((read.options.driver, read.options.generator), (Driver::Ublk, Load::Blkguest));
        assert_eq!(read.order().phases, [0, 1, 1]);
        let failure = Request::parse(&request(r#""driver": "floppy""#)).unwrap_err();
        assert_eq!(failure.kind(), "request");
        assert!(failure.to_string().contains("floppy"), "{failure}");
    }

    #[test]
    fn an_array_has_members_and_a_capacity() {
        let text =
            request("").replace("\"100us\"", "\"100us\", \"raid\": \"10\", \"capacity\": \"1g\"");
        let read = Request::parse(&text).unwrap();
        assert_eq!((read.nr_disks(), read.capacity_bytes), (4, 2 << 30));
        let failure =
            Request::parse(&text.replace("\"guest\": {", "\"guest\": {\"driver\": \"null_blk\""));
        assert!(failure.unwrap_err().to_string().contains("no array"));
        let failure = Request::parse(&text.replace("\"10\"", "\"10\", \"members\": \"5\""));
        assert!(failure.unwrap_err().to_string().contains("even number"));
    }

    #[test]
    fn a_command_needs_no_jobs_but_a_disk_that_keeps_it() {
        let command = r#""scheduler": "none", "command": {"run": "true", "repeat_set_up": "",
            "directory": "/d", "environment": {}, "cold": true, "time_limit_ns": 5, "lead_ns": 1}"#;
        let alone = r#"{"device": {"kind": "fixed"}, "guest": {"filesystem": "ext4"}, COMMAND}"#
            .replace("COMMAND", command);
        let read = Request::parse(&alone).unwrap();
        assert_eq!((read.jobs.len(), read.command.map(|command| command.cold)), (0, Some(true)));
        let failure = Request::parse(&alone.replace(r#""filesystem": "ext4""#, "")).unwrap_err();
        assert!(failure.to_string().contains("keeps its contents"), "{failure}");
        let beside = request(r#""filesystem": "ext4""#)
            .replace(r#""scheduler": "none""#, command)
            .replace("stonewall", "number_ios=5");
        let jobs = Request::parse(&beside).unwrap().jobs;
        assert!(jobs.iter().all(|job| job.number_ios.is_none() && job.runtime_ns == Some(12)));
        let failure = Request::parse(&beside.replace("number_ios=5", "stonewall")).unwrap_err();
        assert!(failure.to_string().contains("would never begin"), "{failure}");
    }

    #[test]
    fn null_blk_serves_a_fixed_latency_only() {
        let text = request(r#""driver": "null_blk""#);
        assert!(Request::parse(&text).is_ok());
        let failure = Request::parse(
            &text.replace("fixed", "flash").replace("latency", "channels").replace("100us", "2"),
        )
        .unwrap_err();
        assert!(failure.to_string().contains("null_blk"), "{failure}");
    }

    #[test]
    fn a_recording_is_of_direct_io_on_a_bare_disk() {
        let text = request(r#""recording": true"#);
        let direct = text.replace("[a]", "[global]\\ndirect=1\\n[a]");
        assert!(Request::parse(&direct).unwrap().options.recording);
        let others = [
            "",
            r#", "driver": "null_blk""#,
            r#", "filesystem": "ext4""#,
            r#", "generator": "fio""#,
        ];
        for (jobs, more) in [&text, &direct, &direct, &direct].into_iter().zip(others) {
            let text = jobs.replace("true}", &format!("true{more}}}"));
            let failure = Request::parse(&text).unwrap_err();
            assert!(failure.to_string().contains("a guest records"), "{failure}");
        }
    }

    #[test]
    fn failures_carry_kind_and_field() {
        let answer = Request::parse("{").unwrap_err().answer();
        assert_eq!(answer["error"]["kind"], "request");
        let text = request("").replace("size=1m", "siez=1m");
        let answer = Request::parse(&text).unwrap_err().answer();
        assert_eq!(
            (&answer["error"]["kind"], &answer["error"]["line"]),
            (&"job_file".into(), &2.into())
        );
    }
}
