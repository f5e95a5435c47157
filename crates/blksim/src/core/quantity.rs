//! Sizes and durations as people write them: `4k`, `1.5GiB`, `200us`, `2m`.
//!
//! Arithmetic is exact (decimal fractions included), so that a profile gives
//! the same numbers on every machine.

/// Multiplies a decimal number such as `1.25` by `factor`, exactly, rounding half up.
///
/// Returns `None` if the text is not a plain decimal number or does not fit.
fn scaled_decimal(text: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 15 {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let scale = 10_u128.pow(fraction.len() as u32);
    let fraction: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let factor = u128::from(factor);
    let part = (fraction * factor + scale / 2) / scale;
    u64::try_from(whole.checked_mul(factor)?.checked_add(part)?).ok()
}

/// Splits `12.5ms` into `12.5` and `ms`.
fn split_suffix(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

/// Bytes of a size with an optional suffix, in units of 1024 as fio's default `kb_base`.
///
/// A bare number counts `bare_unit` bytes.
pub fn parse_bytes(text: &str, bare_unit: u64) -> Option<u64> {
    let (number, suffix) = split_suffix(text);
    let suffix = suffix.to_ascii_lowercase();
    let factor = match suffix.strip_suffix("ib").or(suffix.strip_suffix('b')).unwrap_or(&suffix) {
        "" if suffix.is_empty() => bare_unit,
        "" => 1,
        "k" | "ki" => 1 << 10,
        "m" | "mi" => 1 << 20,
        "g" | "gi" => 1 << 30,
        "t" | "ti" => 1 << 40,
        "p" | "pi" => 1 << 50,
        _ => return None,
    };
    scaled_decimal(number, factor)
}

/// Nanoseconds of a duration with an optional suffix; a bare number counts `bare_unit_ns`.
pub fn parse_duration_ns(text: &str, bare_unit_ns: u64) -> Option<u64> {
    let (number, suffix) = split_suffix(text);
    let factor = match suffix.to_ascii_lowercase().as_str() {
        "" => bare_unit_ns,
        "ns" | "nsec" => 1,
        "us" | "usec" | "µs" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" | "hour" => 3_600_000_000_000,
        "d" | "day" => 86_400_000_000_000,
        _ => return None,
    };
    scaled_decimal(number, factor)
}

/// A duration for a message: the largest unit that needs no more than three decimals.
pub fn format_duration(ns: u64) -> String {
    let (unit, name) = match ns {
        0..1_000 => return format!("{ns}ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    if ns % unit == 0 {
        format!("{}{name}", ns / unit)
    } else {
        format!("{:.3}{name}", ns as f64 / unit as f64)
    }
}

/// A size for a message.
pub fn format_bytes(bytes: u64) -> String {
    for (shift, name) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        let unit = 1_u64 << shift;
        if bytes >= unit {
            return if bytes % unit == 0 {
                format!("{} {name}", bytes / unit)
            } else {
                format!("{:.1} {name}", bytes as f64 / unit as f64)
            };
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_fio() {
        assert_eq!(parse_bytes("4k", 1), Some(4096));
        assert_eq!(parse_bytes("4KiB", 1), Some(4096));
        assert_eq!(parse_bytes("1.5m", 1), Some(1_572_864));
        assert_eq!(parse_bytes("512", 1), Some(512));
        assert_eq!(parse_bytes("128", 1024), Some(131_072));
        assert_eq!(parse_bytes("128b", 1024), Some(128));
        for wrong in ["", "k", "4x", "-1", "1..2", "99999999999999999999", "20000000t"] {
            assert_eq!(parse_bytes(wrong, 1), None, "{wrong}");
        }
    }

    #[test]
    fn durations_are_exact() {
        assert_eq!(parse_duration_ns("200us", 1), Some(200_000));
        assert_eq!(parse_duration_ns("4.167ms", 1), Some(4_167_000));
        assert_eq!(parse_duration_ns("2", 1_000_000_000), Some(2_000_000_000));
        assert_eq!(parse_duration_ns("1m", 1), Some(60_000_000_000));
        assert_eq!(parse_duration_ns("1 fortnight", 1), None);
    }
}
