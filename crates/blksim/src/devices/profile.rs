//! Device profiles: a kind, a name, a line of summary and the kind's parameters.

use super::raid::RAID;
use super::{AnyDevice, Kind, build_kind, kind};
use crate::core::error::ProfileError;
use crate::core::params::Values;

/// An array has at most so many members.
const MOST_MEMBERS: usize = 32;
/// Parameters that no member has of its own.
const OF_ALL_MEMBERS: &[&str] =
    &["capacity", "queue_depth", "hw_queues", "shared_tags", "max_sectors_kb", "rotational"];

/// A profile, read and checked parameter by parameter.
#[derive(Debug, Clone)]
pub struct Profile {
    pub name: String,
    pub kind: &'static Kind,
    pub summary: String,
    pub values: Values,
    /// The parameters of an array of such devices.
    pub raid: Values,
    /// Parameters of single members: number, name, value.
    members: Vec<(usize, String, String)>,
    pub(crate) source: String,
}

impl Profile {
    /// The kind itself, with all its defaults.
    pub fn of_kind(name: &str, source: &str) -> Result<Self, ProfileError> {
        let kind = kind(name, source)?;
        Ok(Self {
            name: name.to_owned(),
            kind,
            summary: kind.summary.to_owned(),
            values: Values::defaults(kind.parameters),
            raid: Values::defaults(RAID),
            members: Vec::new(),
            source: source.to_owned(),
        })
    }

    /// Reads a profile file: `name`, `kind`, `summary`, parameters of the kind, and perhaps a table
    /// `calibration` about how these were found.
    pub fn parse(text: &str, source: &str) -> Result<Self, ProfileError> {
        let fail = |field: Option<&str>, message: String| ProfileError {
            message,
            source_name: source.to_owned(),
            field: field.map(str::to_owned),
        };
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            fail(None, format!("not valid TOML: {}", error.message()))
        })?;
        let word = |field: &str| match table.get(field) {
            Some(toml::Value::String(text)) if !text.trim().is_empty() => {
                Ok(text.trim().to_owned())
            }
            Some(_) => Err(fail(Some(field), "must be a non-empty string".to_owned())),
            None => Err(fail(Some(field), "is missing".to_owned())),
        };
        let mut profile = Self::of_kind(&word("kind")?, source)?;
        profile.name = word("name")?;
        profile.summary = word("summary")?;
        for (key, value) in &table {
            if matches!(key.as_str(), "name" | "kind" | "summary") {
                continue;
            }
            // What calibration says of itself; the model does not need it.
            if key == "calibration" && value.is_table() {
                continue;
            }
            let text = match value {
                toml::Value::String(text) => text.clone(),
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Float(number) => number.to_string(),
                toml::Value::Boolean(flag) => u8::from(*flag).to_string(),
                _ => {
                    return Err(fail(Some(key), "must be a number, a flag or a string".to_owned()));
                }
            };
            profile.set(key, &text)?;
        }
        Ok(profile)
    }

    /// Overrides one parameter; `member3.NAME` that of one member of an array.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), ProfileError> {
        if let Some((member, name)) = name.strip_prefix("member").and_then(|n| n.split_once('.')) {
            return self.set_of_member(member, name, text);
        }
        let of_array = RAID.iter().any(|p| p.name == name);
        let values = if of_array { &mut self.raid } else { &mut self.values };
        values.set(name, text).map_err(|error| ProfileError {
            message: error.message,
            source_name: self.source.clone(),
            field: Some(error.name),
        })
    }

    fn set_of_member(&mut self, member: &str, name: &str, text: &str) -> Result<(), ProfileError> {
        let full_name = format!("member{member}.{name}");
        let fail = |message: String| ProfileError {
            message,
            source_name: self.source.clone(),
            field: Some(full_name.clone()),
        };
        let number = member.parse().ok().filter(|number| *number < MOST_MEMBERS);
        let Some(number) = number else {
            return Err(fail(format!("members have numbers from 0 to {}", MOST_MEMBERS - 1)));
        };
        if OF_ALL_MEMBERS.contains(&name) {
            let message = format!("{name} is the same for all members: the host's queues have it");
            return Err(fail(message));
        }
        self.values.clone().set(name, text).map_err(|error| fail(error.message))?;
        self.members.push((number, name.to_owned(), text.to_owned()));
        Ok(())
    }

    /// Builds the device, which checks the parameters against each other.
    pub fn build(&self, seed: u64) -> Result<AnyDevice, ProfileError> {
        build_kind(self.kind.name, &self.values, &self.source, seed)
    }

    /// Builds a member of an array, with what it has instead of the others' parameters. Each has its
    /// own random numbers; the first has those of a single device.
    pub fn build_member(&self, seed: u64, index: usize) -> Result<AnyDevice, ProfileError> {
        let mut profile = self.clone();
        for (_, name, text) in self.members.iter().filter(|(number, ..)| *number == index) {
            profile.set(name, text)?;
        }
        profile.build(seed.wrapping_add(index as u64))
    }

    /// The first parameter given for a member that an array of so many has not.
    pub fn beyond(&self, nr_members: usize) -> Option<String> {
        let (number, name, _) = self.members.iter().find(|(number, ..)| *number >= nr_members)?;
        Some(format!("member{number}.{name}"))
    }
}
