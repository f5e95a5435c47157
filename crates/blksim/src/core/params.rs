//! Option tables: each plug-in states its options once, and validation, defaults, help texts and
//! the tuner's search space follow from that table.

use crate::core::quantity::{parse_bytes, parse_duration_ns};

/// The unit of an option's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Centiseconds,
    Bytes,
    Kibibytes,
    BytesPerSecond,
    Sectors,
    Count,
    Percent,
    /// 0 or 1.
    Boolean,
    /// One of these words; the value is its index.
    Choice(&'static [&'static str]),
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Microseconds => "us",
            Self::Milliseconds => "ms",
            Self::Centiseconds => "cs",
            Self::Bytes => "B",
            Self::Kibibytes => "KiB",
            Self::BytesPerSecond => "B/s",
            Self::Sectors => "sectors",
            Self::Count => "",
            Self::Percent => "%",
            Self::Boolean => "bool",
            Self::Choice(_) => "choice",
        }
    }

    fn duration_ns(self) -> Option<u64> {
        match self {
            Self::Nanoseconds => Some(1),
            Self::Microseconds => Some(1_000),
            Self::Milliseconds => Some(1_000_000),
            Self::Centiseconds => Some(10_000_000),
            _ => None,
        }
    }

    /// Reads a number of this unit. A bare number counts the unit itself.
    fn parse(self, text: &str) -> Option<u64> {
        let text = text.trim();
        if let Some(unit_ns) = self.duration_ns() {
            let ns = parse_duration_ns(text, unit_ns)?;
            return Some(ns.saturating_add(unit_ns / 2) / unit_ns);
        }
        match self {
            Self::Bytes => parse_bytes(text, 1),
            Self::BytesPerSecond => parse_bytes(text.strip_suffix("/s").unwrap_or(text), 1),
            Self::Kibibytes => Some(parse_bytes(text, 1024)? / 1024),
            Self::Boolean => match text {
                "1" | "true" | "yes" | "on" => Some(1),
                "0" | "false" | "no" | "off" => Some(0),
                _ => None,
            },
            Self::Percent => text.strip_suffix('%').unwrap_or(text).trim().parse().ok(),
            Self::Choice(words) => words.iter().position(|w| *w == text).map(|i| i as u64),
            _ => text.parse().ok(),
        }
    }

    fn expectation(self) -> String {
        match self {
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Boolean => "0 or 1".to_owned(),
            Self::Count | Self::Sectors => "a whole number".to_owned(),
            Self::Percent => "a whole percentage such as 90 or 90%".to_owned(),
            _ if self.duration_ns().is_some() => {
                format!("a duration such as 200us (a bare number counts {})", self.name())
            }
            _ => format!("a size such as 128k (a bare number counts {})", self.name()),
        }
    }
}

/// One option of a plug-in.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    pub name: &'static str,
    pub unit: Unit,
    pub default: u64,
    pub min: u64,
    pub max: u64,
    pub help: &'static str,
}

impl Param {
    pub const fn new(
        name: &'static str,
        unit: Unit,
        default: u64,
        bounds: (u64, u64),
        help: &'static str,
    ) -> Self {
        Self { name, unit, default, min: bounds.0, max: bounds.1, help }
    }

    pub const fn flag(name: &'static str, default: u64, help: &'static str) -> Self {
        Self::new(name, Unit::Boolean, default, (0, 1), help)
    }

    pub const fn choice(
        name: &'static str,
        words: &'static [&'static str],
        default: u64,
        help: &'static str,
    ) -> Self {
        Self::new(name, Unit::Choice(words), default, (0, words.len() as u64 - 1), help)
    }

    /// Reads and checks a value.
    pub fn parse(&self, text: &str) -> Result<u64, ParamError> {
        let value = self.unit.parse(text).ok_or_else(|| ParamError {
            name: self.name.to_owned(),
            problem: Problem::Malformed,
            message: format!("{} = {text:?}: expected {}", self.name, self.unit.expectation()),
        })?;
        if value < self.min || value > self.max {
            return Err(ParamError {
                name: self.name.to_owned(),
                problem: Problem::OutOfRange,
                message: format!(
                    "{} = {text}: must lie between {} and {} {}",
                    self.name,
                    self.min,
                    self.max,
                    self.unit.name()
                )
                .trim_end()
                .to_owned(),
            });
        }
        Ok(value)
    }

    /// The value as it is shown: a word for choices, a number otherwise.
    pub fn show(&self, value: u64) -> Shown {
        match self.unit {
            Unit::Choice(words) => {
                Shown::Word(words.get(value as usize).copied().unwrap_or_default())
            }
            _ => Shown::Number(value),
        }
    }
}

/// A value for a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    Number(u64),
    Word(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    Unknown,
    Malformed,
    OutOfRange,
}

/// An option that is unknown, malformed, or out of bounds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParamError {
    pub name: String,
    pub problem: Problem,
    pub message: String,
}

/// The values of a table's options, in the table's order.
#[derive(Debug, Clone)]
pub struct Values {
    table: &'static [Param],
    numbers: Vec<u64>,
    /// True if the user gave the value, even if it is the default.
    given: Vec<bool>,
}

impl Values {
    pub fn defaults(table: &'static [Param]) -> Self {
        let numbers = table.iter().map(|p| p.default).collect();
        Self { table, numbers, given: vec![false; table.len()] }
    }

    pub fn set(&mut self, name: &str, text: &str) -> Result<(), ParamError> {
        let index = self.index(name)?;
        self.numbers[index] = self.table[index].parse(text)?;
        self.given[index] = true;
        Ok(())
    }

    /// Sets a value that the program derived.
    pub fn put(&mut self, name: &str, value: u64) {
        if let Ok(index) = self.index(name) {
            self.numbers[index] = value;
        }
    }

    /// The value of an option of the table.
    ///
    /// # Panics
    /// If the plug-in asks for an option that its own table lacks; the
    /// conformance suite builds every plug-in, so this cannot reach a user.
    pub fn get(&self, name: &str) -> u64 {
        match self.index(name) {
            Ok(index) => self.numbers[index],
            Err(error) => panic!("{error}"),
        }
    }

    /// True if the user gave the value.
    pub fn is_given(&self, name: &str) -> bool {
        self.index(name).is_ok_and(|index| self.given[index])
    }

    pub fn flag(&self, name: &str) -> bool {
        self.get(name) != 0
    }

    /// The word of a choice.
    pub fn word(&self, name: &str) -> &'static str {
        let value = self.get(name);
        match self.index(name).map(|index| self.table[index].unit) {
            Ok(Unit::Choice(words)) => words.get(value as usize).copied().unwrap_or_default(),
            _ => "",
        }
    }

    /// A duration in nanoseconds, whatever the option's unit.
    pub fn get_ns(&self, name: &str) -> u64 {
        let unit = self.index(name).ok().and_then(|index| self.table[index].unit.duration_ns());
        self.get(name).saturating_mul(unit.unwrap_or(1))
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static Param, u64)> + '_ {
        self.table.iter().zip(self.numbers.iter().copied())
    }

    fn index(&self, name: &str) -> Result<usize, ParamError> {
        self.table.iter().position(|p| p.name == name).ok_or_else(|| {
            let names = self.table.iter().map(|p| p.name);
            ParamError {
                name: name.to_owned(),
                problem: Problem::Unknown,
                message: format!("{name}: {}", unknown(name, names)),
            }
        })
    }
}

/// "no such option", with the nearest name or all names as a hint.
pub fn unknown(name: &str, known: impl Iterator<Item = &'static str> + Clone) -> String {
    if let Some(hint) = nearest(name, known.clone()) {
        return format!("no such option; did you mean {hint}?");
    }
    let all: Vec<_> = known.collect();
    match all.len() {
        0 => "no such option; there are none here".to_owned(),
        _ => format!("no such option; there are {}", all.join(", ")),
    }
}

/// The known name that is closest to `name` in edits, if it is close enough to be a slip.
pub fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let limit = (name.chars().count() / 3).max(1);
    known.map(|k| (edit_distance(name, k), k)).filter(|(d, _)| *d <= limit).min().map(|(_, k)| k)
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Param] = &[
        Param::new("read_expire", Unit::Milliseconds, 500, (0, 10_000), "deadline of reads"),
        Param::choice("mode", &["slow", "fast"], 0, "how"),
    ];

    #[test]
    fn values_are_parsed_in_their_unit() {
        let mut values = Values::defaults(TABLE);
        values.set("read_expire", "250").unwrap();
        assert_eq!(values.get_ns("read_expire"), 250_000_000);
        values.set("read_expire", "2s").unwrap();
        assert_eq!(values.get("read_expire"), 2000);
        values.set("mode", "fast").unwrap();
        assert_eq!(values.word("mode"), "fast");
    }

    #[test]
    fn errors_name_the_option_and_help() {
        let mut values = Values::defaults(TABLE);
        let error = values.set("read_expires", "1").unwrap_err();
        assert_eq!(error.problem, Problem::Unknown);
        assert!(error.message.contains("did you mean read_expire?"), "{error}");
        assert_eq!(values.set("read_expire", "x").unwrap_err().problem, Problem::Malformed);
        assert_eq!(values.set("read_expire", "11s").unwrap_err().problem, Problem::OutOfRange);
        assert!(values.set("mode", "odd").unwrap_err().message.contains("slow, fast"));
    }
}
