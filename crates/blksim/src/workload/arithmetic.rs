//! Arithmetic in values: `(4*1024)`, `(2*16k)`, `(1+2m)/4`, as fio's manual describes it.

/// A sum, product or power of whole numbers, in units of a suffix.
struct Expression<'a> {
    rest: &'a str,
    suffix: fn(&str) -> Option<i128>,
    /// Some number had a suffix.
    has_unit: bool,
    /// Parentheses and powers that may still be opened, so that no text can exhaust the stack.
    depth: u32,
}

const MOST_DEPTH: u32 = 64;
/// Beyond any size or time that an option takes.
const LIMIT: i128 = 1 << 80;

/// The value of an expression in bytes, or a plain number.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    evaluate(text, 1, byte_suffix)
}

/// The value of an expression in microseconds; a bare number counts `unit_us`.
pub(super) fn microseconds(text: &str, unit_us: u64) -> Result<u64, String> {
    evaluate(text, unit_us, time_suffix)
}

fn evaluate(text: &str, unit: u64, suffix: fn(&str) -> Option<i128>) -> Result<u64, String> {
    let mut expression = Expression { rest: text, suffix, has_unit: false, depth: MOST_DEPTH };
    let value = expression.sum().and_then(|value| expression.at_end().map(|()| value));
    let unit = if expression.has_unit { 1 } else { i128::from(unit) };
    let value = value.map_err(|message| format!("{text:?}: {message}"))?;
    value
        .checked_mul(unit)
        .and_then(|value| u64::try_from(value).ok())
        .ok_or_else(|| format!("{text:?} is negative or too large"))
}

fn byte_suffix(name: &str) -> Option<i128> {
    Some(match name.to_ascii_lowercase().as_str() {
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        "t" | "tb" => 1 << 40,
        "p" | "pb" => 1 << 50,
        "kib" => 1_000,
        "mib" => 1_000_000,
        "gib" => 1_000_000_000,
        "tib" => 1_000_000_000_000,
        _ => return None,
    })
}

fn time_suffix(name: &str) -> Option<i128> {
    Some(match name.to_ascii_lowercase().as_str() {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return None,
    })
}

impl Expression<'_> {
    fn at_end(&mut self) -> Result<(), String> {
        match self.peek() {
            None => Ok(()),
            Some(c) => Err(format!("{c:?} has no meaning there")),
        }
    }

    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn take(&mut self, symbol: char) -> bool {
        let found = self.peek() == Some(symbol);
        if found {
            self.rest = &self.rest[symbol.len_utf8()..];
        }
        found
    }

    fn sum(&mut self) -> Result<i128, String> {
        let mut value = self.product()?;
        loop {
            if self.take('+') {
                value = bounded(value.checked_add(self.product()?))?;
            } else if self.take('-') {
                value = bounded(value.checked_sub(self.product()?))?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<i128, String> {
        let mut value = self.power()?;
        loop {
            if self.take('*') {
                value = bounded(value.checked_mul(self.power()?))?;
            } else if self.take('/') {
                let divisor = self.power()?;
                value = value.checked_div(divisor).ok_or("divides by zero")?;
            } else if self.take('%') {
                let divisor = self.power()?;
                value = value.checked_rem(divisor).ok_or("divides by zero")?;
            } else {
                return Ok(value);
            }
        }
    }

    fn power(&mut self) -> Result<i128, String> {
        let base = self.factor()?;
        if !self.take('^') {
            return Ok(base);
        }
        self.go_deeper()?;
        let exponent = self.power()?;
        self.depth += 1;
        let exponent = u32::try_from(exponent).map_err(|_| "a power must not be negative")?;
        bounded(base.checked_pow(exponent))
    }

    fn factor(&mut self) -> Result<i128, String> {
        let value = if self.take('-') {
            self.go_deeper()?;
            let value = -self.factor()?;
            self.depth += 1;
            value
        } else if self.take('(') {
            self.go_deeper()?;
            let value = self.sum()?;
            self.depth += 1;
            if !self.take(')') {
                return Err("a parenthesis is not closed".to_owned());
            }
            value
        } else {
            self.number()?
        };
        self.in_unit(value)
    }

    fn go_deeper(&mut self) -> Result<(), String> {
        self.depth = self.depth.checked_sub(1).ok_or("it is nested too deeply")?;
        Ok(())
    }

    fn number(&mut self) -> Result<i128, String> {
        self.peek();
        let (digits, radix) = match self.rest.strip_prefix("0x") {
            Some(digits) => (digits, 16),
            None => (self.rest, 10),
        };
        let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
        let value = i128::from_str_radix(&digits[..end], radix);
        self.rest = &digits[end..];
        bounded(value.ok()).map_err(|_| "a whole number is missing".to_owned())
    }

    /// Multiplies by the unit that follows, if one does.
    fn in_unit(&mut self, value: i128) -> Result<i128, String> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(self.rest.len());
        if end == 0 {
            return Ok(value);
        }
        let (name, rest) = self.rest.split_at(end);
        let unit = (self.suffix)(name).ok_or_else(|| format!("{name:?} is not a unit"))?;
        self.has_unit = true;
        self.rest = rest;
        bounded(value.checked_mul(unit))
    }
}

fn bounded(value: Option<i128>) -> Result<i128, String> {
    value.filter(|value| value.abs() < LIMIT).ok_or_else(|| "too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_follow_precedence_and_units() {
        for (text, expected) in [
            ("(4*1024)", 4096),
            ("(256*4096)", 1 << 20),
            ("(1+2*3)", 7),
            ("((1 + 2) * 3)k", 9 << 10),
            ("(7/2*2)", 6),
            ("(2^3^2)", 512),
            ("(10%4)", 2),
            ("(1m-4k)", (1 << 20) - 4096),
            ("(-1+2)", 1),
            ("(0x10)", 16),
            ("(2 KiB)", 2000),
        ] {
            let value = bytes(&text.replace(" KiB", "KiB"));
            assert_eq!(value, Ok(expected), "{text}");
        }
        assert_eq!(microseconds("(2*3)", 1_000_000), Ok(6_000_000));
        assert_eq!(microseconds("(2*3ms)", 1_000_000), Ok(6_000));
    }

    #[test]
    fn mistakes_are_told() {
        for (text, message) in [
            ("(1", "not closed"),
            ("(1/0)", "zero"),
            ("(1-2)", "negative"),
            ("(9^99)", "too large"),
            ("(4q)", "not a unit"),
            ("()", "missing"),
            ("(1)2", "no meaning"),
            (&"(".repeat(9999), "deeply"),
            (&"-".repeat(9999), "deeply"),
        ] {
            let error = bytes(text).unwrap_err();
            assert!(error.contains(message), "{text:.20}: {error:.200}");
        }
    }
}
