//! Values of options: from text to sizes, times, lists.

use super::file_size_range::FileSizes;
use super::job::{
    BlockSizes, CommandPriority, Distribution, Extent, FileOrder, FileService, Mode, PerDirection,
    Sequence, Zone,
};
use super::options::{Kind, OptionSpec, RW_MODES};
use crate::core::quantity::{parse_bytes, parse_duration_ns};

/// The largest size that is accepted: 4 EiB, so that sums stay within 64 bits.
const MAX_BYTES: u64 = 1 << 62;
/// The largest block: the largest that a kernel transfers with one call.
const MAX_BLOCK: u64 = 1 << 30;
/// Most files of one clone.
pub(super) const MOST_FILES: u64 = 65_536;
/// fio's order of files.
pub(super) const ROUND_ROBIN: FileService =
    FileService { order: FileOrder::RoundRobin, ios_in_turn: 1 };
/// A century; longer times are mistakes.
const MAX_DURATION_NS: u64 = 36_500 * 86_400 * 1_000_000_000;

/// Checks one value by its kind.
pub(super) fn check(spec: &OptionSpec, text: &str) -> Result<(), String> {
    match spec.kind {
        Kind::Flag => flag(text).map(drop),
        Kind::Number(min, max) => number(text, min, max).map(drop),
        Kind::Size { most_percent, zero } => extent(text, most_percent, zero).map(drop),
        Kind::FileService => file_service(text).map(drop),
        Kind::Duration(unit) => duration(text, unit).map(drop),
        Kind::Choice(words) if words.contains(&text) => Ok(()),
        Kind::Choice(words) => Err(format!("{text:?} is not one of {}", words.join(", "))),
        Kind::Text => Ok(()),
        Kind::LogName => log_name(text).map(drop),
        Kind::FileSizes => file_sizes(text).map(drop),
        Kind::Ranges => ranges(text).map(drop),
        Kind::Levels(min, max) => levels(text, min, max).map(drop),
        Kind::PrioritySplit => priority_splits(text, 1, 0).map(drop),
        Kind::Percent => percent(text).map(drop),
        Kind::Sizes => sizes(text).map(drop),
        Kind::Rates => rates(text).map(drop),
        Kind::Split => splits(text).map(drop),
        Kind::Distribution => distribution(text).map(drop),
        Kind::Mode => sequence(text).map(drop),
    }
}

pub(super) fn flag(text: &str) -> Result<bool, String> {
    match text {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(format!("{text:?} is not 0 or 1")),
    }
}

pub(super) fn number(text: &str, min: i64, max: i64) -> Result<i64, String> {
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

pub(super) fn bytes(text: &str) -> Result<u64, String> {
    match parse_bytes(text, 1) {
        Some(bytes) if bytes <= MAX_BYTES => Ok(bytes),
        Some(_) => Err(format!("{text} is too large")),
        None => Err(format!("{text:?} is not a size such as 4k or 1g")),
    }
}

/// A size, or a percentage up to `most`; 0 for none.
pub(super) fn extent(text: &str, most: u64, zero: bool) -> Result<Extent, String> {
    if let Some(share) = text.strip_suffix('%') {
        if most == 0 {
            return Err("a percentage is not possible here; write bytes, such as 512m".to_owned());
        }
        // fio reads the number and looks at the last sign: a template's `100%%` is 100 % to it.
        return match share.trim_end_matches('%').trim().parse::<u64>() {
            Ok(share) if share <= most && (zero || share > 0) => Ok(Extent::Percent(share)),
            _ => Err(format!(
                "{text:?} is not a whole percentage between {} and {most}",
                u8::from(!zero)
            )),
        };
    }
    match bytes(text)? {
        0 if !zero => Err("must be larger than 0".to_owned()),
        bytes => Ok(Extent::Bytes(bytes)),
    }
}

/// The order in which files take turns: `random:4` does four I/Os to each.
pub(super) fn file_service(text: &str) -> Result<FileService, String> {
    let (name, parameter) = text.split_once(':').map_or((text, None), |(n, p)| (n, Some(p)));
    let order = match name {
        "roundrobin" => FileOrder::RoundRobin,
        "sequential" => FileOrder::Sequential,
        "random" => FileOrder::Random(Distribution::Uniform),
        "zipf" | "pareto" => return distributed(text),
        // fio's other word for it.
        "gauss" | "normal" => {
            let deviation = parameter.map_or("normal".to_owned(), |p| format!("normal:{p}"));
            return distributed(&deviation);
        }
        _ => {
            return Err(format!(
                "{name:?} is not one of random, roundrobin, sequential, zipf, pareto, normal, gauss"
            ));
        }
    };
    let ios_in_turn = parameter.map_or(Ok(1), |nr| number(nr, 1, i64::MAX))? as u64;
    Ok(FileService { order, ios_in_turn })
}

fn distributed(text: &str) -> Result<FileService, String> {
    Ok(FileService { order: FileOrder::Random(distribution(text)?), ios_in_turn: 1 })
}

pub(super) fn duration(text: &str, unit_ns: u64) -> Result<u64, String> {
    match parse_duration_ns(text, unit_ns) {
        Some(ns) if ns <= MAX_DURATION_NS => Ok(ns),
        Some(_) => Err(format!("{text} is too long")),
        None => Err(format!("{text:?} is not a duration such as 500ms or 30s")),
    }
}

/// Fields for reads and writes; a missing second field repeats the first.
pub(super) fn per_direction<T: Clone>(
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

pub(super) fn block(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        0 => Err("a block size must be larger than 0".to_owned()),
        size if size > MAX_BLOCK => {
            Err(format!("{text}: blocks of more than 1 GiB are not supported"))
        }
        size => Ok(size),
    }
}

pub(super) fn sizes(text: &str) -> Result<PerDirection<u64>, String> {
    per_direction(text, block)
}

pub(super) fn rates(text: &str) -> Result<PerDirection<u64>, String> {
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

pub(super) fn split_list(text: &str) -> Result<BlockSizes, String> {
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
    Ok(BlockSizes::List(weighted.filter(|(_, weight)| *weight > 0).collect()))
}

pub(super) fn splits(text: &str) -> Result<PerDirection<BlockSizes>, String> {
    let splits = per_direction(text, split_list)?;
    let empty = |sizes: &BlockSizes| matches!(sizes, BlockSizes::List(list) if list.is_empty());
    if empty(&splits.read) || empty(&splits.write) {
        return Err(format!("{text:?} leaves no block size"));
    }
    Ok(splits)
}

/// Independent random offsets, none left out.
pub(super) const PLAIN: Sequence = Sequence { nr_per_offset: 1, identical: false, gap_bytes: 0 };

/// The part of a mode after its colon: a number of I/Os for random modes, a size (which may be
/// negative) for the others.
pub(super) fn sequence(text: &str) -> Result<Sequence, String> {
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
    let gap_bytes = if back { -(size as i64) } else { size as i64 };
    Ok(Sequence { gap_bytes, ..PLAIN })
}

pub(super) fn distribution(text: &str) -> Result<Distribution, String> {
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
        "zoned" | "zoned_abs" => {
            let list = value.ok_or_else(|| format!("{name} needs its zones: 60/10:40/90"))?;
            let zones = |list: &str| zones(list, name == "zoned_abs");
            per_direction(list, zones).map(Distribution::Zoned)
        }
        _ => Err(format!("{name:?} is not one of random, zipf, pareto, normal, zoned, zoned_abs")),
    }
}

/// Zones with their shares of the accesses and their lengths, one behind the other. A missing share
/// or length divides the rest (`zone_split_ddir` of fio 3.33).
fn zones(text: &str, absolute: bool) -> Result<Vec<Zone>, String> {
    let optional = |text: &str| match text.trim() {
        "" => Ok(None),
        share => number(share, 0, 100).map(|share| Some(share as u64)),
    };
    let mut entries = Vec::new();
    for entry in text.split(':') {
        let (accesses, length) = entry.split_once('/').unwrap_or((entry, ""));
        let length = match (absolute, length.trim()) {
            (_, "") => None,
            (true, length) => Some(bytes(length)?),
            (false, share) => optional(share)?,
        };
        entries.push((optional(accesses)?, length));
    }
    if entries.len() > 256 {
        return Err("more than 256 zones are not supported".to_owned());
    }
    let accesses: u64 = entries.iter().filter_map(|(accesses, _)| *accesses).sum();
    if accesses != 100 {
        return Err(format!("the accesses of {text:?} must add up to 100, not {accesses}"));
    }
    let given: u64 = if absolute { 0 } else { entries.iter().filter_map(|(_, size)| *size).sum() };
    if given > 100 {
        return Err(format!("the zones of {text:?} are longer than 100 percent"));
    }
    let without = entries.iter().filter(|(_, size)| size.is_none()).count() as u64;
    if absolute && without > 0 {
        return Err(format!("every zone of {text:?} needs its length"));
    }
    let rest =
        if entries.len() == 1 { 100 } else { (100 - given).checked_div(without).unwrap_or(0) };
    let mut end = 0_u64;
    let mut zones = Vec::new();
    for (accesses, size) in entries {
        let start = end;
        end = end.saturating_add(size.unwrap_or(rest));
        let accesses = accesses.unwrap_or(0);
        if accesses > 0 && end == start {
            return Err(format!("a zone of {text:?} has accesses, but no length"));
        }
        let end = if absolute { Extent::Bytes(end) } else { Extent::Percent(end) };
        zones.push(Zone { accesses, end });
    }
    Ok(zones)
}

/// Ranges of block sizes for reads and writes.
pub(super) fn ranges(text: &str) -> Result<PerDirection<BlockSizes>, String> {
    per_direction(text, |range| {
        let bounds = range.split_once('-').or_else(|| range.split_once(':'));
        let (one, other) = bounds.unwrap_or((range, range));
        let (one, other) = (block(one.trim())?, block(other.trim())?);
        // fio swaps bounds in the wrong order.
        Ok(BlockSizes::Range(one.min(other), one.max(other)))
    })
}

/// One number, or one for reads and one for writes.
pub(super) fn levels(text: &str, min: i64, max: i64) -> Result<PerDirection<u8>, String> {
    per_direction(text, |level| number(level, min, max).map(|level| level as u8))
}

/// A percentage with a fraction.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').unwrap_or(text).parse::<f64>() {
        Ok(share) if share > 0.0 && share <= 100.0 => Ok(share),
        _ => Err(format!("{text:?} is not a percentage above 0, up to 100")),
    }
}

/// The file of a log, without the folder before it.
pub(super) fn log_name(text: &str) -> Result<&str, String> {
    match text.rsplit('/').next() {
        Some(name) if !matches!(name, "." | ".." | "") || text.is_empty() => Ok(name),
        _ => Err(format!("{text:?} does not name a file")),
    }
}

/// Shares of prioritised I/Os by block size (`cmdprio_bssplit`), for reads and writes; without a
/// class and level of their own they have the given ones.
pub(super) fn priority_splits(
    text: &str,
    class: u8,
    level: u8,
) -> Result<PerDirection<Vec<CommandPriority>>, String> {
    per_direction(text, |list| {
        let mut shares: Vec<CommandPriority> = Vec::new();
        for entry in list.split(':') {
            let fields: Vec<&str> = entry.split('/').map(str::trim).collect();
            let (size, share, class, level) = match fields.as_slice() {
                [size, share] => (*size, *share, class, level),
                [size, share, class, level] => {
                    (*size, *share, number(class, 1, 3)? as u8, number(level, 0, 7)? as u8)
                }
                _ => {
                    return Err(format!(
                        "{entry:?} is neither SIZE/PERCENT nor SIZE/PERCENT/CLASS/LEVEL"
                    ));
                }
            };
            let (bytes, percent) = (Some(block(size)?), number(share, 0, 100)? as u64);
            let before: u64 = shares.iter().filter(|s| s.bytes == bytes).map(|s| s.percent).sum();
            if before + percent > 100 {
                return Err(format!("the shares of {size} add up to more than 100"));
            }
            shares.push(CommandPriority { bytes, percent, class, level });
        }
        Ok(shares)
    })
}

/// Reads one length or a range.
pub(super) fn file_sizes(text: &str) -> Result<FileSizes, String> {
    let bounds = text.split_once(['-', ':', ',']).unwrap_or((text, text));
    let (least, most) =
        (bound_of_file_sizes(bounds.0.trim())?, bound_of_file_sizes(bounds.1.trim())?);
    if least > most {
        return Err(format!(
            "the range {text} begins with its end, at which fio fails; write the smaller size first"
        ));
    }
    Ok(FileSizes::within(least, most))
}

fn bound_of_file_sizes(text: &str) -> Result<u64, String> {
    match extent(text, 0, false)? {
        Extent::Bytes(bytes) => Ok(bytes),
        Extent::Percent(_) => Err(format!("{text:?} is not a size such as 4k or 1g")),
    }
}
