//! The meaning of options: from settings to a job's fields.

use super::job::{
    Advice, BlockSizes, CommandPriority, Distribution, ExitWhat, Extent, Flow, Job, LatencyGoal,
    Mode, PerDirection, RateLimit, Sequence, Strides, Verify,
};
use super::parser::Place;
use super::setting::Settings;
use super::values::{
    MOST_FILES, PLAIN, ROUND_ROBIN, bytes, distribution, duration, extent, file_service,
    file_sizes, flag, levels, number, percent, priority_splits, ranges, rates, sequence, sizes,
    splits,
};
use crate::core::error::JobFileError;

/// Typed access to checked settings.
struct Reader<'a> {
    settings: &'a Settings,
    place: Place<'a>,
}

impl Reader<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(|s| s.text.as_str())
    }

    fn get<T>(
        &self,
        name: &str,
        default: T,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, JobFileError> {
        match self.settings.get(name) {
            None => Ok(default),
            Some(s) => read(&s.text)
                .map_err(|message| self.place.error(s.line, Some(s.spec.name), message)),
        }
    }

    /// Like [`Self::get`] for a value of each direction. Jobs that trim have the field of trims: the
    /// last one given.
    fn directed<T>(
        &self,
        name: &str,
        default: T,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, JobFileError> {
        let trims = Mode::parse(self.text("readwrite").unwrap_or("read")).trims;
        self.get(name, default, |text| {
            let last = text.rsplit(',').find(|field| !field.trim().is_empty());
            read(last.filter(|_| trims).unwrap_or(text))
        })
    }

    fn flag(&self, name: &str, default: bool) -> Result<bool, JobFileError> {
        self.get(name, default, flag)
    }

    fn number(&self, name: &str, default: u64) -> Result<u64, JobFileError> {
        self.get(name, default, |t| number(t, 0, i64::MAX).map(|v| v as u64))
    }

    fn optional(&self, name: &str) -> Result<Option<i64>, JobFileError> {
        self.get(name, None, |t| number(t, i64::MIN, i64::MAX).map(Some))
    }

    fn duration(&self, name: &str, unit_ns: u64) -> Result<u64, JobFileError> {
        self.get(name, 0, |t| duration(t, unit_ns))
    }

    fn fail(&self, name: &str, message: impl Into<String>) -> JobFileError {
        let line = self.settings.get(name).map(|s| s.line);
        self.place.error(line, Some(name), message)
    }
}

const SECOND: u64 = 1_000_000_000;

/// Builds the job of a section.
pub(super) fn job(
    name: &str,
    line: u32,
    settings: &Settings,
    place: Place,
) -> Result<Job, JobFileError> {
    let r = Reader { settings, place };
    let mode_text = r.text("readwrite").unwrap_or("read").to_owned();
    let mode = Mode::parse(&mode_text);
    let block_sizes = if r.text("bssplit").is_some() {
        r.directed("bssplit", no_split(), splits)?
    } else if r.text("bsrange").is_some() {
        r.directed("bsrange", no_split(), ranges)?
    } else {
        let sizes = r.directed("blocksize", PerDirection { read: 4096, write: 4096 }, sizes)?;
        PerDirection { read: BlockSizes::fixed(sizes.read), write: BlockSizes::fixed(sizes.write) }
    };
    let sequence = Sequence {
        identical: r.text("rw_sequencer") == Some("identical"),
        ..r.get("readwrite", PLAIN, sequence)?
    };
    let io_size = r.get("io_size", None, |t| extent(t, 100, false).map(Some))?;
    let job = Job {
        name: name.to_owned(),
        line,
        options: settings.iter().map(|(name, s)| (*name, s.text.clone())).collect(),
        option_lines: settings.iter().map(|(name, s)| (*name, s.line)).collect(),
        numjobs: r.number("numjobs", 1)? as u32,
        mode,
        mode_text,
        sequence,
        direct: direct(&r)?,
        engine: r.text("ioengine").unwrap_or("psync").to_owned(),
        iodepth: r.number("iodepth", 1)? as u32,
        iodepth_batch: r.number("iodepth_batch", 1)? as u32,
        block_sizes,
        sizes_by_order: r.flag("bs_is_seq_rand", false)?,
        block_align: r.directed("blockalign", None, |t| sizes(t).map(Some))?,
        size: r.get("size", None, |t| extent(t, 100, false).map(Some))?,
        filesize: r.get("filesize", None, |t| file_sizes(t).map(Some))?,
        offset: r.get("offset", Extent::Bytes(0), |t| extent(t, 100, true))?,
        offset_increment: r.get("offset_increment", Extent::Bytes(0), |t| extent(t, 100, true))?,
        io_size: io_size.and_then(Extent::fixed_bytes),
        io_size_percent: match io_size {
            Some(Extent::Percent(percent)) => Some(percent),
            _ => None,
        },
        number_ios: r.optional("number_ios")?.map(|n| n as u64),
        loops: r.number("loops", 1)?.max(1),
        runtime_ns: r.get("runtime", None, |t| duration(t, SECOND).map(Some))?.filter(|ns| *ns > 0),
        time_based: r.flag("time_based", false)?,
        ramp_time_ns: r.duration("ramp_time", SECOND)?,
        startdelay_ns: r.duration("startdelay", SECOND)?,
        stonewall: r.flag("stonewall", false)?,
        new_group: r.flag("new_group", false)?,
        wait_for: r.text("wait_for").map(str::to_owned),
        exitall: r.flag("exitall", false)?,
        exit_what: exit_what(&r),
        filenames: filenames(&r)?,
        nr_files: r.number("nrfiles", 1)?.max(1),
        file_service: r.get("file_service_type", ROUND_ROBIN, file_service)?,
        rwmixread: match r.optional("rwmixwrite")? {
            Some(writes) if r.text("rwmixread").is_none() => 100 - writes as u64,
            _ => r.number("rwmixread", 50)?,
        },
        percentage_random: r.number("percentage_random", 100)?,
        distribution: r.get("random_distribution", Distribution::Uniform, distribution)?,
        norandommap: r.flag("norandommap", false)?,
        randseed: r.optional("randseed")?.map(|n| n as u64),
        fsync: r.number("fsync", 0)?,
        fdatasync: r.number("fdatasync", 0)?,
        end_fsync: r.flag("end_fsync", false)?,
        sync: matches!(r.text("sync"), Some("1" | "sync" | "dsync")),
        invalidate: r.flag("invalidate", true)?,
        pre_read: r.flag("pre_read", false)?,
        advice: match r.text("fadvise_hint") {
            Some("0" | "none") => Advice::None,
            Some("random") => Advice::Random,
            Some("sequential") => Advice::Sequential,
            _ if mode.random => Advice::Random,
            _ => Advice::Sequential,
        },
        thinktime_ns: r.duration("thinktime", 1_000)?,
        thinktime_blocks: r.number("thinktime_blocks", 1)?,
        rate: RateLimit {
            bytes_per_second: r.directed("rate", PerDirection::default(), rates)?,
            ios_per_second: r.directed("rate_iops", PerDirection::default(), rates)?,
            poisson: r.text("rate_process") == Some("poisson"),
        },
        verify: verify(&r, mode)?,
        strides: strides(&r)?,
        flow: flow(&r)?,
        latency_goal: latency_goal(&r)?,
        command_priorities: command_priorities(&r)?,
        prioclass: r.optional("prioclass")?.map(|n| n as u8),
        prio: r.optional("prio")?.map(|n| n as u8),
        nice: r.optional("nice")?.map(|n| n as i32),
        cgroup: r.text("cgroup").map(str::to_owned),
        cgroup_weight: r.optional("cgroup_weight")?.map(|n| n as u64),
        replay: None,
    };
    cross_check(&job, &r)?;
    Ok(job)
}

fn exit_what(r: &Reader) -> ExitWhat {
    match r.text("exit_what") {
        Some("all") => ExitWhat::All,
        Some("stonewall") => ExitWhat::Stonewall,
        _ => ExitWhat::Group,
    }
}

/// `direct` or its opposite, whichever is written last.
fn direct(r: &Reader) -> Result<bool, JobFileError> {
    let line = |name: &str| r.settings.get(name).map(|setting| setting.line);
    if line("buffered") > line("direct") {
        return Ok(!r.flag("buffered", true)?);
    }
    r.flag("direct", false)
}

/// The names of a job's files. A colon separates them unless a backslash stands before it.
fn filenames(r: &Reader) -> Result<Vec<String>, JobFileError> {
    let mut names = vec![String::new()];
    let mut letters = r.text("filename").unwrap_or_default().chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('\\', Some(':')) => names.last_mut().into_iter().for_each(|name| name.push(':')),
            (':', _) => {
                names.push(String::new());
                continue;
            }
            _ => names.last_mut().into_iter().for_each(|name| name.push(letter)),
        }
        if letter == '\\' && letters.peek() == Some(&':') {
            letters.next();
        }
    }
    names.retain(|name| !name.is_empty());
    if let Some(name) = names.iter().find(|name| {
        name.ends_with('/') || name.ends_with("/..") || matches!(name.as_str(), "." | "..")
    }) {
        return Err(r.fail("filename", format!("{name:?} does not name a file")));
    }
    if names.len() as u64 > MOST_FILES {
        return Err(r.fail("filename", format!("more than {MOST_FILES} files of one job")));
    }
    let Some(folder) = r.text("directory") else { return Ok(names) };
    Ok(names.into_iter().map(|name| format!("{folder}/{name}")).collect())
}

fn verify(r: &Reader, mode: Mode) -> Result<Option<Verify>, JobFileError> {
    let method = r.text("verify").unwrap_or("0");
    if matches!(method, "0" | "none") || !mode.writes || mode.trims || !r.flag("do_verify", true)? {
        return Ok(None);
    }
    let backlog = r.number("verify_backlog", 0)?;
    let batch = match r.number("verify_backlog_batch", 0)? {
        0 => backlog,
        batch => batch,
    };
    Ok(Some(Verify { backlog, batch }))
}

fn strides(r: &Reader) -> Result<Option<Strides>, JobFileError> {
    let mode = r.text("zonemode").unwrap_or("none");
    let whole_sectors = |name: &str| {
        let value = r.get(name, 0, bytes)?;
        if value % 512 == 0 {
            Ok(value)
        } else {
            Err(r.fail(name, "must be a multiple of 512 bytes"))
        }
    };
    let (zone_bytes, skip) = (whole_sectors("zonesize")?, whole_sectors("zoneskip")?);
    let range = match whole_sectors("zonerange")? {
        0 => zone_bytes,
        range => range,
    };
    if mode == "none" {
        let zones = ["zonesize", "zonerange", "zoneskip"];
        return match zones.into_iter().find(|name| r.text(name).is_some()) {
            Some(name) => Err(r.fail(name, format!("{name} needs zonemode=strided"))),
            None => Ok(None),
        };
    }
    if mode == "zbd" {
        // The disk itself says how large its zones are; fio takes a size only for a disk without zones.
        return Ok(None);
    }
    if zone_bytes == 0 {
        return Err(r.fail("zonemode", format!("zonemode={mode} needs a zonesize")));
    }
    Ok(Some(Strides { zone_bytes, range, skip }))
}

fn flow(r: &Reader) -> Result<Option<Flow>, JobFileError> {
    let (id, weight) = (r.number("flow_id", 0)?, r.number("flow", 0)?);
    let sleep_ns = r.duration("flow_sleep", 1_000)?;
    if weight > u64::from(u32::MAX) {
        return Err(r.fail("flow", "flow must be less than 4294967296"));
    }
    Ok((weight > 0).then_some(Flow { id, weight, sleep_ns }))
}

fn latency_goal(r: &Reader) -> Result<Option<LatencyGoal>, JobFileError> {
    let target_ns = r.duration("latency_target", 1_000)?;
    if target_ns == 0 {
        return Ok(None);
    }
    let window_ns = r.duration("latency_window", 1_000)?;
    if window_ns == 0 {
        return Err(r.fail("latency_target", "latency_target needs a latency_window"));
    }
    let percentile = r.get("latency_percentile", 100.0, percent)?;
    Ok(Some(LatencyGoal { target_ns, window_ns, percentile, run: r.flag("latency_run", false)? }))
}

fn command_priorities(r: &Reader) -> Result<PerDirection<Vec<CommandPriority>>, JobFileError> {
    let class = r.get("cmdprio_class", PerDirection { read: 1, write: 1 }, |t| levels(t, 1, 3))?;
    let level = r.get("cmdprio", PerDirection::default(), |t| levels(t, 0, 7))?;
    let percent = r.get("cmdprio_percentage", PerDirection::default(), |t| levels(t, 0, 100))?;
    let any = |percent: u8, class: u8, level: u8| match percent {
        0 => Vec::new(),
        percent => vec![CommandPriority { bytes: None, percent: percent.into(), class, level }],
    };
    let mut shares = PerDirection {
        read: any(percent.read, class.read, level.read),
        write: any(percent.write, class.write, level.write),
    };
    let by_percentage = !shares.read.is_empty() || !shares.write.is_empty();
    if r.text("cmdprio_bssplit").is_some() {
        if by_percentage {
            let message = "cmdprio_bssplit and cmdprio_percentage cannot be combined";
            return Err(r.fail("cmdprio_bssplit", message));
        }
        let read = |t: &str| priority_splits(t, class.read, level.read);
        let write = |t: &str| priority_splits(t, class.write, level.write);
        shares.read = r.get("cmdprio_bssplit", PerDirection::default(), read)?.read;
        shares.write = r.get("cmdprio_bssplit", PerDirection::default(), write)?.write;
    }
    let options = ["cmdprio_percentage", "cmdprio_bssplit", "cmdprio_class", "cmdprio"];
    if let Some(name) = options.into_iter().find(|name| r.text(name).is_some()) {
        if !matches!(r.text("ioengine"), Some("libaio" | "io_uring")) {
            return Err(r.fail(name, format!("{name} needs ioengine=libaio or io_uring")));
        }
    }
    Ok(shares)
}

fn no_split() -> PerDirection<BlockSizes> {
    PerDirection { read: BlockSizes::fixed(4096), write: BlockSizes::fixed(4096) }
}

/// Rules that concern several options.
fn cross_check(job: &Job, r: &Reader) -> Result<(), JobFileError> {
    let bandwidth = job.rate.bytes_per_second;
    let ios = job.rate.ios_per_second;
    if bandwidth != PerDirection::default() && ios != PerDirection::default() {
        return Err(r.fail("rate_iops", "rate and rate_iops cannot be combined"));
    }
    check_blocks(job, r)?;
    let block = job.largest_block();
    let longest = job.filesize.as_ref().map(|sizes| sizes.most);
    if let Some(size) = job.size.and_then(Extent::fixed_bytes).or(longest) {
        if size < block {
            let message =
                format!("a size of {size} bytes is smaller than a block of {block} bytes");
            return Err(r.fail("size", message));
        }
    }
    for (name, value) in [
        ("offset", job.offset.fixed_bytes().unwrap_or(0)),
        ("offset_increment", job.offset_increment.fixed_bytes().unwrap_or(0)),
    ] {
        if value % 512 != 0 && !job.buffered() {
            return Err(r.fail(name, format!("{value} is not a multiple of 512 bytes: {ALIGNED}")));
        }
    }
    Ok(())
}

const ALIGNED: &str =
    "direct I/O and trims move whole sectors; buffered I/O (direct=0) takes any size";

/// Only the page cache takes I/Os of any length.
fn check_blocks(job: &Job, r: &Reader) -> Result<(), JobFileError> {
    if job.buffered() {
        return Ok(());
    }
    let named = ["bssplit", "bsrange", "blocksize"].into_iter().find(|name| r.text(name).is_some());
    for (name, sizes) in [
        (named.unwrap_or("blocksize"), job.block_sizes.read.all()),
        (named.unwrap_or("blocksize"), job.block_sizes.write.all()),
        ("blockalign", job.block_align.map_or(Vec::new(), |align| vec![align.read, align.write])),
    ] {
        if let Some(bytes) = sizes.into_iter().find(|bytes| bytes % 512 != 0) {
            let message =
                format!("a block size must be a multiple of 512 bytes, not {bytes}: {ALIGNED}");
            return Err(r.fail(name, message));
        }
    }
    if job.sequence.gap_bytes % 512 != 0 {
        let gap = job.sequence.gap_bytes;
        return Err(r.fail("readwrite", format!("{gap} is not a multiple of 512 bytes: {ALIGNED}")));
    }
    Ok(())
}
