//! One option as written: spelled as fio would read it, or the reason why it cannot be used.

use std::collections::BTreeMap;

use super::arithmetic;
use super::options::{self, Kind, OptionSpec, Support, engines};
use super::parser::Place;
use super::values;
use crate::core::error::JobFileError;
use crate::core::params::nearest;

/// An option as written in the file.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub spec: &'static OptionSpec,
    pub text: String,
    pub line: u32,
    /// A value that is not taken as written.
    pub note: Option<String>,
}

/// The settings of a section, by canonical name.
pub(super) type Settings = BTreeMap<&'static str, Setting>;

/// Flags that any number but 0 sets (`FIO_OPT_STR_SET` in `options.c`, fio 3.33); the others take 0 or 1.
const SET_BY_ANY_NUMBER: &[&str] = &[
    "bs_unaligned",
    "exitall",
    "exitall_on_error",
    "group_reporting",
    "new_group",
    "norandommap",
    "refill_buffers",
    "stonewall",
    "thread",
    "time_based",
    "verify_only",
    "zero_buffers",
];

/// Options that are as good as absent if they are 0.
const ABSENT_IF_ZERO: &[&str] =
    &["size", "io_size", "filesize", "number_ios", "loops", "zonesize", "zonerange"];

/// fio's words for facts of the machine that reads the file.
const KEYWORDS: &[&str] = &["$pagesize", "$mb_memory", "$ncpus"];

/// Reads a line of a section.
pub(super) fn read_setting(
    content: &str,
    line: u32,
    place: Place,
) -> Result<Setting, JobFileError> {
    let content = without_comment(content);
    let (key, value) = match content.split_once('=') {
        Some((key, value)) => (key.trim(), Some(value.trim())),
        None => (content, None),
    };
    let Some(spec) = options::find(key) else {
        return Err(place.error(line, Some(key), unknown(content, key)));
    };
    let fail = |message: String| place.error(line, Some(spec.name), message);
    if spec.support == Support::Refused {
        return Err(fail(format!("{key} is not allowed: {}", spec.help)));
    }
    if let Some(message) = value.and_then(variable) {
        return Err(fail(message));
    }
    let (value, note) = match value.map(|value| as_fio_counts(spec, value)) {
        Some(Some((counted, note))) => (Some(counted), Some(note)),
        _ => (value.map(str::to_owned), None),
    };
    let text = match value.as_deref() {
        Some("") => return Err(fail(format!("{key} has no value"))),
        Some(value) => canonical(spec, value).map_err(fail)?,
        None if spec.kind == Kind::Flag => "1".to_owned(),
        None if spec.kind == Kind::LogName => String::new(),
        None => return Err(fail(format!("{key} needs a value: {}", spec.kind.describe()))),
    };
    if !is_absent(spec, &text) {
        values::check(spec, &text).map_err(|message| {
            fail(if is_placeholder(&text) { to_fill_in(&text) } else { message })
        })?;
    }
    Ok(Setting { spec, text, line, note })
}

/// Values of which fio counts something else than they seem to say: the last of several sizes, and a
/// negative weight as an unsigned number of 32 bits (`parse.c` and `flow.c`, fio 3.33).
fn as_fio_counts(spec: &OptionSpec, value: &str) -> Option<(String, String)> {
    if let (Kind::Size { .. }, Some((_, last))) = (spec.kind, value.rsplit_once([':', ','])) {
        let last = last.trim();
        let list = !last.is_empty() && !value.contains(['(', '-']);
        let note = format!("fio counts the last of several values: {value} is taken for {last}");
        return list.then(|| (last.to_owned(), note));
    }
    let weight = value.parse::<i32>().ok().filter(|weight| spec.name == "flow" && *weight < 0)?;
    let counted = (weight as u32).to_string();
    let note = format!(
        "fio 3.33 takes {value} for {counted}, so that the other jobs of the flow hardly get a turn; for \
         shares of 1 to 8, write flow=1 and flow=8"
    );
    Some((counted, note))
}

/// Cuts a comment, which begins anywhere with `;` or `#`, as fio does.
fn without_comment(content: &str) -> &str {
    content.find([';', '#']).map_or(content, |end| content[..end].trim_end())
}

fn unknown(content: &str, key: &str) -> String {
    if is_placeholder(content) || is_placeholder(key) {
        return to_fill_in(content);
    }
    if key.split_whitespace().next() == Some("include") {
        return "a file is included only where the job file is read from a disk".to_owned();
    }
    let hint = match nearest(key, options::usable_names()) {
        Some(name) => format!("; did you mean {name}?"),
        None => String::new(),
    };
    format!("{key} is not an option that blklab supports{hint}")
}

/// The reason why a value that stands for another cannot be used.
fn variable(value: &str) -> Option<String> {
    if value.contains("${") {
        return Some(
            "variables of the environment are not replaced, so that a stored run can be repeated; \
             write the value, or name the file as env:FILE"
                .to_owned(),
        );
    }
    let keyword = KEYWORDS.iter().find(|keyword| value.contains(**keyword))?;
    Some(format!("{keyword} is a fact of the machine that reads the file; write the value"))
}

/// The text names a value that another program is to fill in.
fn is_placeholder(text: &str) -> bool {
    let text = text.trim();
    let between = |open: &str, close: &str| {
        text.len() > open.len() + close.len() && text.starts_with(open) && text.ends_with(close)
    };
    let shell = text.strip_prefix('$').is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_alphabetic() || "({_@*".contains(c))
    });
    shell
        || ["{{", "{%", "<%", "$("].iter().any(|mark| text.contains(mark))
        || between("{", "}")
        || between("<", ">")
        || between("@", "@")
        || between("%", "%")
        || between("__", "__")
}

fn to_fill_in(text: &str) -> String {
    format!(
        "{text:?} is a placeholder of a template, which another program fills in; write the value"
    )
}

/// The option was given so as to undo an earlier one.
pub(super) fn is_absent(spec: &OptionSpec, text: &str) -> bool {
    let zero = text.bytes().all(|byte| byte == b'0') && !text.is_empty();
    zero && ABSENT_IF_ZERO.contains(&spec.name)
}

/// The text of a value as all readers understand it.
fn canonical(spec: &OptionSpec, value: &str) -> Result<String, String> {
    match (spec.name, spec.kind) {
        ("ioengine", _) => engine(value),
        ("blocksize", _) if value.contains(['-', ':']) && values::ranges(value).is_ok() => {
            Err(format!(
                "{value} is a range, of which fio would take only the beginning; write bsrange={value}"
            ))
        }
        (name, Kind::Flag) if SET_BY_ANY_NUMBER.contains(&name) => {
            let number = value.parse::<i64>();
            Ok(number.map_or_else(|_| value.to_owned(), |number| u8::from(number != 0).to_string()))
        }
        (_, Kind::Size { .. } | Kind::Number(..) | Kind::Sizes | Kind::Rates | Kind::FileSizes) => {
            calculated(value, |text| arithmetic::bytes(text).map(|bytes| bytes.to_string()))
        }
        (_, Kind::Duration(unit_ns)) => calculated(value, |text| {
            arithmetic::microseconds(text, unit_ns / 1_000).map(|time| format!("{time}us"))
        }),
        _ => Ok(value.to_owned()),
    }
}

fn engine(name: &str) -> Result<String, String> {
    let name = engines::canonical(name);
    engines::reason_against(name).map_or_else(|| Ok(name.to_owned()), Err)
}

/// A list of values with those that begin with a parenthesis worked out.
fn calculated(
    value: &str,
    calculate: impl Fn(&str) -> Result<String, String>,
) -> Result<String, String> {
    if !value.contains('(') {
        return Ok(value.to_owned());
    }
    let fields = value.split(',').map(|field| {
        let field = field.trim();
        if field.starts_with('(') { calculate(field) } else { Ok(field.to_owned()) }
    });
    Ok(fields.collect::<Result<Vec<_>, _>>()?.join(","))
}

/// Rewrites sizes with a decimal unit in bytes: fio takes KiB for 1000 bytes and k for 1024, or, with
/// `kb_base=1000`, the other way round. Returns `None` if there are none.
pub(super) fn in_binary_units(setting: &Setting, decimal_base: bool) -> Option<String> {
    let has_sizes = matches!(
        setting.spec.kind,
        Kind::Size { .. }
            | Kind::Sizes
            | Kind::Split
            | Kind::Ranges
            | Kind::FileSizes
            | Kind::Rates
            | Kind::PrioritySplit
            | Kind::Distribution
            | Kind::Mode
            | Kind::Number(..)
    );
    if !has_sizes {
        return None;
    }
    let text = &setting.text;
    let mut rewritten = String::new();
    let mut rest = text.as_str();
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(start);
        let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        let (number, after) = number.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        rewritten.push_str(before);
        match decimal_bytes(number, unit, decimal_base) {
            Some(bytes) => rewritten.push_str(&bytes.to_string()),
            None if decimal_base && unit.len() == 3 => {
                rewritten.push_str(number);
                rewritten.push_str(&unit[..1]);
            }
            None => {
                rewritten.push_str(number);
                rewritten.push_str(unit);
            }
        }
        rest = after;
    }
    rewritten.push_str(rest);
    (rewritten != *text).then_some(rewritten)
}

/// The bytes of a number if its unit is a power of 1000.
fn decimal_bytes(number: &str, unit: &str, decimal_base: bool) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let power = "kmgtp".find(unit.chars().next()?)? as u32 + 1;
    let decimal = match &unit[1..] {
        "ib" => !decimal_base,
        "" | "b" => decimal_base,
        _ => return None,
    };
    let bytes = number.parse::<u64>().ok()?.checked_mul(1_000_u64.checked_pow(power)?)?;
    decimal.then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(line: &str) -> Result<String, String> {
        let setting = read_setting(line, 1, Place { source: "x" });
        setting.map(|setting| setting.text).map_err(|error| error.message)
    }

    #[test]
    fn spellings_become_one() {
        for (line, text) in [
            ("thread=2", "1"),
            ("time_based=0", "0"),
            ("ioengine=aio", "libaio"),
            ("ioengine=linuxaio", "libaio"),
            ("size=(256*4096)", "1048576"),
            ("bs=(4*1k),8k", "4096,8k"),
            ("runtime=(2*30)", "60000000us"),
            ("thinktime=(2*5ms)", "10000us"),
            ("rw=read#comment", "read"),
            ("numjobs = (2*4)", "8"),
            ("size=0", "0"),
        ] {
            assert_eq!(text_of(line).as_deref(), Ok(text), "{line}");
        }
    }

    #[test]
    fn what_cannot_be_used_has_its_reason() {
        for (line, message) in [
            ("direct=2", "not 0 or 1"),
            (
                "ioengine=rados",
                "drives a cluster; for the same I/O on a disk write ioengine=libaio",
            ),
            ("ioengine=external:/opt/spdk/build/fio/spdk_nvme", "passes commands by"),
            ("ioengine=null", "no I/O to a disk"),
            ("bs=4k-64k", "write bsrange=4k-64k"),
            ("filesize=8m-16k", "the smaller size first"),
            ("filesize=50%", "a percentage is not possible"),
            ("size={{ size }}", "template"),
            ("iodepth=$DEPTH", "template"),
            ("bs=@BS@", "template"),
            ("size=$@", "template"),
            ("{% if direct %}", "template"),
            ("size=256*$pagesize", "fact of the machine"),
            ("size=(4*)", "missing"),
            ("include other.fio", "read from a disk"),
        ] {
            let error = text_of(line).unwrap_err();
            assert!(error.contains(message), "{line}: {error}");
        }
    }

    #[test]
    fn decimal_units_are_rewritten() {
        let rewritten = |line: &str, decimal: bool| {
            in_binary_units(&read_setting(line, 1, Place { source: "x" }).unwrap(), decimal)
        };
        assert_eq!(rewritten("bs=4KiB", false).as_deref(), Some("4000"));
        assert_eq!(rewritten("bs=4k", false), None);
        assert_eq!(rewritten("bs=4k,8KiB", true).as_deref(), Some("4000,8K"));
        assert_eq!(rewritten("rw=read:4KiB", false).as_deref(), Some("read:4000"));
        assert_eq!(rewritten("filename=4KiB", false), None);
    }
}
