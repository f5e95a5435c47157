//! The meaning of options: from text to a job's fields.

use super::job::{
    Advice, BlockSizes, Distribution, Extent, Job, Mode, PerDirection, RateLimit, Sequence,
};
use super::options::{Kind, OptionSpec, RW_MODES};
use super::parser::{Place, Settings};
use crate::core::error::JobFileError;
use crate::core::quantity::{parse_bytes, parse_duration_ns};

/// The largest size that is accepted: 4 EiB, so that sums stay within 64 bits.
const MAX_BYTES: u64 = 1 << 62;
/// The largest block: the largest that a kernel transfers with one call.
const MAX_BLOCK: u64 = 1 << 30;
/// A century; longer times are mistakes.
const MAX_DURATION_NS: u64 = 36_500 * 86_400 * 1_000_000_000;

/// Checks one value by its kind.
pub(super) fn check(spec: &OptionSpec, text: &str) -> Result<(), String> {
    match spec.kind {
        Kind::Flag => flag(text).map(drop),
        Kind::Number(min, max) => number(text, min, max).map(drop),
        Kind::Size { percent, zero } => extent(text, percent, zero).map(drop),
        Kind::Duration(unit) => duration(text, unit).map(drop),
        Kind::Choice(words) if words.contains(&text) => Ok(()),
        Kind::Choice(words) => Err(format!("{text:?} is not one of {}", words.join(", "))),
        Kind::Text => Ok(()),
        Kind::Sizes => sizes(text).map(drop),
        Kind::Rates => rates(text).map(drop),
        Kind::Split => splits(text).map(drop),
        Kind::Distribution => distribution(text).map(drop),
        Kind::Mode => sequence(text).map(drop),
    }
}

fn flag(text: &str) -> Result<bool, String> {
    match text {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(format!("{text:?} is not 0 or 1")),
    }
}

fn number(text: &str, min: i64, max: i64) -> Result<i64, String> {
    let value: i64 = match text.parse() {
        Ok(value) => value,
        Err(_) => parse_bytes(text, 1)
            .and_then(|v| i64::try_from(v).ok())
            .ok_or_else(|| format!("{text:?} is not a whole number"))?,
    };
    if value < min || value > max {
        return Err(match max {
            i64::MAX => format!("{text} must be at least {min}"),
            _ => format!("{text} must lie between {min} and {max}"),
        });
    }
    Ok(value)
}

fn bytes(text: &str) -> Result<u64, String> {
    match parse_bytes(text, 1) {
        Some(bytes) if bytes <= MAX_BYTES => Ok(bytes),
        Some(_) => Err(format!("{text} is too large")),
        None => Err(format!("{text:?} is not a size such as 4k or 1g")),
    }
}

fn extent(text: &str, percent: bool, zero: bool) -> Result<Extent, String> {
    if let Some(share) = text.strip_suffix('%') {
        if !percent {
            return Err("a percentage is not possible here".to_owned());
        }
        return match share.trim().parse::<u64>() {
            Ok(share) if share <= 100 && (zero || share > 0) => Ok(Extent::Percent(share)),
            _ => Err(format!(
                "{text:?} is not a whole percentage between {} and 100",
                u8::from(!zero)
            )),
        };
    }
    match bytes(text)? {
        0 if !zero => Err("must be larger than 0".to_owned()),
        bytes => Ok(Extent::Bytes(bytes)),
    }
}

fn duration(text: &str, unit_ns: u64) -> Result<u64, String> {
    match parse_duration_ns(text, unit_ns) {
        Some(ns) if ns <= MAX_DURATION_NS => Ok(ns),
        Some(_) => Err(format!("{text} is too long")),
        None => Err(format!("{text:?} is not a duration such as 500ms or 30s")),
    }
}

/// Fields for reads and writes; a missing second field repeats the first.
fn per_direction<T: Clone>(
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<PerDirection<T>, String> {
    let fields: Vec<&str> = text.split(',').map(str::trim).collect();
    if fields.len() > 3 {
        return Err(format!("{text:?} has more than three fields"));
    }
    let first = read(fields[0])?;
    let second = match fields.get(1) {
        Some(&"") | None => first.clone(),
        Some(field) => read(field)?,
    };
    Ok(PerDirection { read: first, write: second })
}

fn block(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        0 => Err("a block size must be larger than 0".to_owned()),
        size if size % 512 != 0 => {
            Err(format!("a block size must be a multiple of 512 bytes, not {size}"))
        }
        size if size > MAX_BLOCK => {
            Err(format!("{text}: blocks of more than 1 GiB are not supported"))
        }
        size => Ok(size),
    }
}

fn sizes(text: &str) -> Result<PerDirection<u64>, String> {
    per_direction(text, block)
}

fn rates(text: &str) -> Result<PerDirection<u64>, String> {
    let field = |field: &str| if field.is_empty() { Ok(0) } else { bytes(field) };
    let fields: Vec<&str> = text.split(',').map(str::trim).collect();
    match fields.as_slice() {
        // `rate=,1m` limits writes only; `rate=1m,` reads only.
        [read, write] | [read, write, _] => {
            Ok(PerDirection { read: field(read)?, write: field(write)? })
        }
        [both] => field(both).map(|rate| PerDirection { read: rate, write: rate }),
        _ => Err(format!("{text:?} has more than three fields")),
    }
}

fn split_list(text: &str) -> Result<BlockSizes, String> {
    let mut sizes = Vec::new();
    let (mut given, mut without) = (0, 0);
    for entry in text.split(':') {
        let (size, share) = match entry.split_once('/') {
            Some((size, "")) => (size, None),
            Some((size, share)) => {
                let share: u64 =
                    share.parse().map_err(|_| format!("{share:?} is not a percentage"))?;
                (size, Some(share))
            }
            None => (entry, None),
        };
        given += share.unwrap_or(0);
        without += u64::from(share.is_none());
        sizes.push((block(size)?, share));
    }
    if given > 100 || (without == 0 && given != 100) {
        return Err(format!("the shares of {text:?} must add up to 100, not {given}"));
    }
    // Entries without a share divide the rest, as in fio. Hundredths of a percent
    // divide more finely.
    let rest = ((100 - given) * 100).checked_div(without).unwrap_or(0);
    let weighted = sizes.into_iter().map(|(size, share)| (size, share.map_or(rest, |s| s * 100)));
    Ok(BlockSizes(weighted.filter(|(_, weight)| *weight > 0).collect()))
}

fn splits(text: &str) -> Result<PerDirection<BlockSizes>, String> {
    let splits = per_direction(text, split_list)?;
    if splits.read.0.is_empty() || splits.write.0.is_empty() {
        return Err(format!("{text:?} leaves no block size"));
    }
    Ok(splits)
}

/// Independent random offsets, none left out.
const PLAIN: Sequence = Sequence { nr_per_offset: 1, identical: false, gap_bytes: 0 };

/// The part of a mode after its colon: a number of I/Os for random modes, a size (which may be
/// negative) for the others.
fn sequence(text: &str) -> Result<Sequence, String> {
    let (mode, modifier) = match text.split_once(':') {
        Some((mode, modifier)) => (mode, Some(modifier)),
        None => (text, None),
    };
    if !RW_MODES.contains(&mode) {
        return Err(format!("{mode:?} is not one of {}", RW_MODES.join(", ")));
    }
    let Some(modifier) = modifier else { return Ok(PLAIN) };
    if Mode::parse(mode).random {
        let nr_per_offset = number(modifier, 1, i64::MAX)? as u64;
        return Ok(Sequence { nr_per_offset, ..PLAIN });
    }
    let (size, back) = match modifier.strip_prefix('-') {
        Some(size) => (size, true),
        None => (modifier, false),
    };
    let size = bytes(size)?;
    if size % 512 != 0 {
        return Err(format!("{size} is not a multiple of 512 bytes"));
    }
    let gap_bytes = if back { -(size as i64) } else { size as i64 };
    Ok(Sequence { gap_bytes, ..PLAIN })
}

fn distribution(text: &str) -> Result<Distribution, String> {
    let (name, value) = match text.split_once(':') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    let parameter = |default: f64, low: f64, high: f64| -> Result<f64, String> {
        let Some(value) = value else { return Ok(default) };
        match value.parse::<f64>() {
            Ok(v) if v > low && v < high => Ok(v),
            _ => Err(format!("{value:?} must be a number between {low} and {high}")),
        }
    };
    match name {
        "random" => Ok(Distribution::Uniform),
        "zipf" => match parameter(1.1, 0.0, 10.0)? {
            1.0 => Err("zipf needs an exponent other than 1".to_owned()),
            theta => Ok(Distribution::Zipf(theta)),
        },
        "pareto" => Ok(Distribution::Pareto(parameter(0.2, 0.0, 1.0)?)),
        "normal" => Ok(Distribution::Normal(parameter(10.0, 0.0, 100.0)?)),
        _ => Err(format!("{name:?} is not one of random, zipf, pareto, normal")),
    }
}

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
        r.get("bssplit", no_split(), splits)?
    } else {
        let sizes = r.get("blocksize", PerDirection { read: 4096, write: 4096 }, sizes)?;
        PerDirection { read: BlockSizes::fixed(sizes.read), write: BlockSizes::fixed(sizes.write) }
    };
    let sequence = Sequence {
        identical: r.text("rw_sequencer") == Some("identical"),
        ..r.get("readwrite", PLAIN, sequence)?
    };
    let job = Job {
        name: name.to_owned(),
        line,
        options: settings.iter().map(|(name, s)| (*name, s.text.clone())).collect(),
        option_lines: settings.iter().map(|(name, s)| (*name, s.line)).collect(),
        numjobs: r.number("numjobs", 1)? as u32,
        mode,
        mode_text,
        sequence,
        direct: r.flag("direct", false)?,
        engine: r.text("ioengine").unwrap_or("psync").to_owned(),
        iodepth: r.number("iodepth", 1)? as u32,
        iodepth_batch: r.number("iodepth_batch", 1)? as u32,
        block_sizes,
        block_align: r.get("blockalign", None, |t| sizes(t).map(Some))?,
        size: r.get("size", None, |t| extent(t, true, false).map(Some))?,
        offset: r.get("offset", Extent::Bytes(0), |t| extent(t, true, true))?,
        offset_increment: r.get("offset_increment", 0, bytes)?,
        io_size: r.get("io_size", None, |t| bytes(t).map(Some))?,
        number_ios: r.optional("number_ios")?.map(|n| n as u64),
        loops: r.number("loops", 1)?,
        runtime_ns: r.get("runtime", None, |t| duration(t, SECOND).map(Some))?.filter(|ns| *ns > 0),
        time_based: r.flag("time_based", false)?,
        ramp_time_ns: r.duration("ramp_time", SECOND)?,
        startdelay_ns: r.duration("startdelay", SECOND)?,
        stonewall: r.flag("stonewall", false)?,
        filename: r.text("filename").map(str::to_owned),
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
            bytes_per_second: r.get("rate", PerDirection::default(), rates)?,
            ios_per_second: r.get("rate_iops", PerDirection::default(), rates)?,
            poisson: r.text("rate_process") == Some("poisson"),
        },
        prioclass: r.optional("prioclass")?.map(|n| n as u8),
        prio: r.optional("prio")?.map(|n| n as u8),
        nice: r.optional("nice")?.map(|n| n as i32),
        cgroup: r.text("cgroup").map(str::to_owned),
        cgroup_weight: r.optional("cgroup_weight")?.map(|n| n as u64),
    };
    cross_check(&job, &r)?;
    Ok(job)
}

fn no_split() -> PerDirection<BlockSizes> {
    PerDirection { read: BlockSizes::fixed(4096), write: BlockSizes::fixed(4096) }
}

/// Rules that concern several options.
fn cross_check(job: &Job, r: &Reader) -> Result<(), JobFileError> {
    if let Some(name) = &job.filename {
        if name.contains(['/', ':']) || name == "." || name == ".." {
            let message = format!(
                "{name:?} is not a plain name; blklab decides where the I/O goes, so a file name must not contain / or :"
            );
            return Err(r.fail("filename", message));
        }
    }
    if job.time_based && job.runtime_ns.is_none() {
        return Err(r.fail("time_based", "time_based needs a runtime"));
    }
    let bandwidth = job.rate.bytes_per_second;
    let ios = job.rate.ios_per_second;
    if bandwidth != PerDirection::default() && ios != PerDirection::default() {
        return Err(r.fail("rate_iops", "rate and rate_iops cannot be combined"));
    }
    let block = job.largest_block();
    if let Some(size) = job.size.and_then(Extent::fixed_bytes) {
        if size < block {
            let message =
                format!("a size of {size} bytes is smaller than a block of {block} bytes");
            return Err(r.fail("size", message));
        }
    }
    for (name, value) in [
        ("offset", job.offset.fixed_bytes().unwrap_or(0)),
        ("offset_increment", job.offset_increment),
    ] {
        if value % 512 != 0 {
            return Err(r.fail(name, format!("{value} is not a multiple of 512 bytes")));
        }
    }
    Ok(())
}
