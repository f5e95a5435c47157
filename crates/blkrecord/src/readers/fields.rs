//! Numbers and fields of text formats.

use crate::io::Operation;

/// An integer of decimal digits.
#[inline]
pub fn integer(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let mut value: u64 = 0;
    if text.len() < 19 {
        // Too short to overflow.
        for byte in text {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value * 10 + u64::from(digit);
        }
        return Some(value);
    }
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// An integer that fits into 32 bits.
#[inline]
pub fn integer32(text: &[u8]) -> Option<u32> {
    u32::try_from(integer(text)?).ok()
}

/// Seconds with a decimal fraction as nanoseconds; digits beyond them are dropped.
#[inline]
pub fn seconds_as_ns(text: &[u8]) -> Option<u64> {
    let point = memchr::memchr(b'.', text);
    let (whole, fraction) = match point {
        Some(point) => (&text[..point], &text[point + 1..]),
        None => (text, &b""[..]),
    };
    let mut ns: u64 = 0;
    for index in 0..9 {
        let digit = match fraction.get(index) {
            Some(byte) if byte.is_ascii_digit() => byte - b'0',
            Some(_) => return None,
            None => 0,
        };
        ns = ns * 10 + u64::from(digit);
    }
    if !fraction.iter().skip(9).all(u8::is_ascii_digit) {
        return None;
    }
    integer(whole)?.checked_mul(1_000_000_000)?.checked_add(ns)
}

/// Fields between separators, without the blanks around them. `N` fields at most; missing ones are empty,
/// further ones are counted.
#[inline]
pub fn separated<const N: usize>(line: &[u8], separator: u8) -> ([&[u8]; N], usize) {
    let mut fields: [&[u8]; N] = [b""; N];
    let (mut count, mut start) = (0, 0);
    for end in memchr::memchr_iter(separator, line).chain(std::iter::once(line.len())) {
        if let Some(field) = fields.get_mut(count) {
            *field = line[start..end].trim_ascii();
        }
        count += 1;
        start = end + 1;
    }
    (fields, count)
}

/// The next word, and what follows it.
#[inline]
pub fn word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii_start();
    if line.is_empty() {
        return None;
    }
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    Some(line.split_at(end))
}

/// An operation as one letter, `R` or `W`.
pub fn read_or_write(text: &[u8]) -> Option<Operation> {
    match text {
        b"R" => Some(Operation::Read),
        b"W" => Some(Operation::Write),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        assert_eq!(integer(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(integer(b"18446744073709551616"), None);
        assert_eq!(integer(b"-1"), None);
        assert_eq!(integer(b""), None);
        assert_eq!(integer32(b"4294967296"), None);
        assert_eq!(seconds_as_ns(b"1.5"), Some(1_500_000_000));
        assert_eq!(seconds_as_ns(b"0.0000000019"), Some(1));
        assert_eq!(seconds_as_ns(b"3"), Some(3_000_000_000));
        assert_eq!(seconds_as_ns(b"99999999999999"), None);
        assert_eq!(seconds_as_ns(b"1e5"), None);
        assert_eq!(seconds_as_ns(b"."), None);
    }

    #[test]
    fn fields_are_counted() {
        let (fields, count) = separated::<3>(b" a ;b", b';');
        assert_eq!((fields, count), ([&b"a"[..], b"b", b""], 2));
        assert_eq!(separated::<1>(b"a,b,c", b',').1, 3);
    }
}
