//! Decimal fractions of a unit (`1.5g`, `0.5m`) as whole numbers. A fio that was built without arithmetic, as Debian's
//! is, takes only the digits before the point, and one with it takes the fraction.

use super::options::Kind;
use super::setting::Setting;
use crate::core::quantity::{parse_bytes, parse_duration_ns};

/// The text of a setting without fractions. Returns `None` if it has none.
pub(super) fn in_whole_numbers(setting: &Setting, decimal_base: bool) -> Option<String> {
    let text = &setting.text;
    if !text.contains('.') {
        return None;
    }
    let rewritten = match setting.spec.kind {
        Kind::Duration(unit_ns) => {
            format!("{}us", parse_duration_ns(text, unit_ns)?.div_ceil(1_000))
        }
        Kind::Size { .. }
        | Kind::Sizes
        | Kind::Split
        | Kind::Ranges
        | Kind::FileSizes
        | Kind::Rates
        | Kind::PrioritySplit
        | Kind::Distribution
        | Kind::Mode
        | Kind::Number(..) => sizes_in_bytes(text, decimal_base),
        _ => return None,
    };
    (rewritten != *text).then_some(rewritten)
}

/// Rewrites every fraction that has a unit of size.
fn sizes_in_bytes(text: &str, decimal_base: bool) -> String {
    let mut rewritten = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit() || c == '.') {
        let (before, number) = rest.split_at(start);
        let end = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
        let (number, after) = number.split_at(end);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        rewritten.push_str(before);
        let bytes = number.contains('.').then(|| bytes_of(number, unit, decimal_base)).flatten();
        match bytes {
            Some(bytes) => rewritten.push_str(&bytes.to_string()),
            None => rewritten.extend([number, unit]),
        }
        rest = after;
    }
    rewritten.push_str(rest);
    rewritten
}

fn bytes_of(number: &str, unit: &str, decimal_base: bool) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let power = 1 + "kmgtp".find(unit.chars().next()?)? as u32;
    // KiB is 1000 bytes for fio and k is 1024, or with kb_base=1000 the other way round.
    let is_decimal = match &unit[1..] {
        "ib" => !decimal_base,
        "" | "b" => decimal_base,
        _ => return None,
    };
    let factor = if is_decimal { 1_000_u64 } else { 1_024 }.checked_pow(power)?;
    parse_bytes(number, factor)
}

#[cfg(test)]
mod tests {
    use super::super::parser::Place;
    use super::super::setting::read_setting;
    use super::*;

    fn whole(line: &str, decimal_base: bool) -> Option<String> {
        let setting = read_setting(line, 1, Place { source: "x" }).unwrap();
        in_whole_numbers(&setting, decimal_base)
    }

    #[test]
    fn fractions_become_whole_numbers() {
        for (line, text) in [
            ("size=1.5g", "1610612736"),
            ("bs=1.5k", "1536"),
            ("bs=1.5k,4k", "1536,4k"),
            ("bssplit=1.5k/50:4k/50", "1536/50:4k/50"),
            ("rate=0.5m", "524288"),
            ("runtime=1.5", "1500000us"),
            ("runtime=0.5m", "30000000us"),
            ("thinktime=1.5ms", "1500us"),
        ] {
            assert_eq!(whole(line, false).as_deref(), Some(text), "{line}");
        }
        assert_eq!(whole("bs=1.5k", true).as_deref(), Some("1500"));
        assert_eq!(whole("bs=1.5KiB", false).as_deref(), Some("1500"));
    }

    #[test]
    fn other_points_stay() {
        for line in ["random_distribution=zipf:1.2", "filename=a.5k", "size=4k", "runtime=5"] {
            assert_eq!(whole(line, false), None, "{line}");
        }
    }
}
