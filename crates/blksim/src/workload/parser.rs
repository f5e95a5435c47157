//! Job files: sections of `key=value` lines, as fio reads them.
//!
//! `[global]` sections give defaults to the sections below them. Comments start
//! with `;` or `#`. Every error names the file, the line and the option.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::interpret;
use super::job::{Extent, Job, JobFile, Remark};
use super::options::{self, OptionSpec, Support, host_only};
use super::replay::{JobReplay, KEY, PlanError, TaskPlan, check_together, decode};
use super::values;
use crate::core::error::JobFileError;
use crate::core::params::nearest;
use crate::core::record::Direction;

/// An option as written in the file.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub spec: &'static OptionSpec,
    pub text: String,
    pub line: u32,
}

/// The settings of a section, by canonical name.
pub(super) type Settings = BTreeMap<&'static str, Setting>;

/// The place of an error.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub source: &'a str,
}

impl Place<'_> {
    pub fn error(
        self,
        line: impl Into<Option<u32>>,
        option: Option<&str>,
        message: impl Into<String>,
    ) -> JobFileError {
        JobFileError {
            message: message.into(),
            source_name: self.source.to_owned(),
            line: line.into(),
            option: option.map(str::to_owned),
        }
    }
}

struct Section {
    name: String,
    line: u32,
    settings: Settings,
    /// Its recorded I/Os, with their line.
    replay: Option<(u32, Vec<TaskPlan>)>,
}

/// Reads a job file.
pub fn parse(text: &str, source: &str) -> Result<JobFile, JobFileError> {
    let place = Place { source };
    let sections = split_sections(text, place)?;
    let mut file = JobFile { source: source.to_owned(), ..JobFile::default() };
    let mut global = Settings::new();
    for section in sections {
        if section.name == "global" {
            global.extend(section.settings);
            continue;
        }
        let mut settings = global.clone();
        settings.extend(section.settings);
        note_support(&section.name, &settings, &mut file);
        let mut job = interpret::job(&section.name, section.line, &settings, place)?;
        if let Some((line, plans)) = section.replay {
            replay(&mut job, plans).map_err(|message| place.error(line, Some(KEY), message))?;
        }
        if let Some(waited_for) = &job.wait_for {
            if !file.jobs.iter().any(|job| job.name == *waited_for) {
                let message = format!("wait_for names no section above: {waited_for:?}");
                return Err(place.error(job.option_lines["wait_for"], Some("wait_for"), message));
            }
        }
        file.jobs.push(job);
    }
    if file.jobs.is_empty() {
        return Err(place.error(None, None, "no job: a job file needs a section such as [reader]"));
    }
    let has_replay = |job: &Job| job.replay.is_some();
    if let Some(first) = file.jobs.iter().find(|job| has_replay(job)).map(|job| job.line) {
        connect(&mut file.jobs)
            .map_err(|error| place.error(first, Some(KEY), error.to_string()))?;
    }
    Ok(file)
}

/// Gives a job its recorded I/Os.
fn replay(job: &mut Job, plans: Vec<TaskPlan>) -> Result<(), String> {
    if plans.len() != job.numjobs as usize {
        return Err(format!("it is for {} clones, and numjobs is {}", plans.len(), job.numjobs));
    }
    if !job.direct || !job.asynchronous() || job.mode.trims || job.time_based {
        return Err("a replay needs direct=1 and ioengine=libaio, and is not time_based".to_owned());
    }
    let end = plans.iter().map(TaskPlan::end).max().unwrap_or(0);
    if job.size.and_then(Extent::fixed_bytes).is_none_or(|bytes| bytes < end) {
        return Err(format!("its I/Os end at byte {end}; the job needs a size of at least that"));
    }
    let changes = plans.iter().flat_map(|plan| &plan.ios).any(|io| io.direction != Direction::Read);
    if changes && !job.mode.writes {
        return Err("it writes, and the job does not (readwrite)".to_owned());
    }
    job.replay =
        Some(JobReplay { plans: plans.into_iter().map(Arc::new).collect(), nr_signals: 0 });
    Ok(())
}

/// Checks that the tasks of all jobs wait for each other in a way that ends.
fn connect(jobs: &mut [Job]) -> Result<(), PlanError> {
    let replays = || jobs.iter().filter_map(|job| job.replay.as_ref());
    let plans: Vec<&TaskPlan> =
        replays().flat_map(|replay| &replay.plans).map(AsRef::as_ref).collect();
    let nr_signals = check_together(&plans)?;
    for replay in jobs.iter_mut().filter_map(|job| job.replay.as_mut()) {
        replay.nr_signals = nr_signals;
    }
    Ok(())
}

fn split_sections(text: &str, place: Place) -> Result<Vec<Section>, JobFileError> {
    let mut sections: Vec<Section> = Vec::new();
    for (index, raw) in text.lines().enumerate() {
        let line = index as u32 + 1;
        let content = raw.trim();
        if content.is_empty() || content.starts_with([';', '#']) {
            continue;
        }
        if let Some(rest) = content.strip_prefix('[') {
            let Some((name, after)) = rest.split_once(']') else {
                return Err(place.error(line, None, "a section header needs a closing ]"));
            };
            let after = after.trim();
            if !after.is_empty() && !after.starts_with([';', '#']) {
                return Err(place.error(
                    line,
                    None,
                    format!("unexpected text after the header: {after}"),
                ));
            }
            let name = name.trim();
            if name.is_empty() {
                return Err(place.error(line, None, "a section needs a name"));
            }
            if name != "global" {
                if let Some(first) = sections.iter().find(|s| s.name == name) {
                    let message =
                        format!("section [{name}] occurs twice (first in line {})", first.line);
                    return Err(place.error(line, None, message));
                }
            }
            let (name, settings) = (name.to_owned(), Settings::new());
            sections.push(Section { name, line, settings, replay: None });
            continue;
        }
        let Some(section) = sections.last_mut() else {
            return Err(place.error(line, None, "an option stands before the first [section]"));
        };
        if let Some((KEY, text)) = content.split_once('=').map(|(key, text)| (key.trim(), text)) {
            if section.name == "global" || section.replay.is_some() {
                let message = "each section that replays has one plan, and [global] has none";
                return Err(place.error(line, Some(KEY), message));
            }
            let plans = decode(text.trim())
                .map_err(|error| place.error(line, Some(KEY), error.to_string()))?;
            section.replay = Some((line, plans));
            continue;
        }
        let setting = read_setting(content, line, place)?;
        let name = setting.spec.name;
        if let Some(first) = section.settings.get(name) {
            let message = format!(
                "{name} is given twice in [{}] (first in line {})",
                section.name, first.line
            );
            return Err(place.error(line, Some(name), message));
        }
        section.settings.insert(name, setting);
    }
    Ok(sections)
}

/// Cuts a trailing comment: `;` or `#` after a space.
fn without_comment(content: &str) -> &str {
    let mut previous_is_space = false;
    for (index, c) in content.char_indices() {
        if previous_is_space && (c == ';' || c == '#') {
            return content[..index].trim_end();
        }
        previous_is_space = c.is_whitespace();
    }
    content
}

fn read_setting(content: &str, line: u32, place: Place) -> Result<Setting, JobFileError> {
    let content = without_comment(content);
    let (key, value) = match content.split_once('=') {
        Some((key, value)) => (key.trim(), Some(value.trim())),
        None => (content, None),
    };
    let Some(spec) = options::find(key) else {
        let hint = match nearest(key, options::usable_names()) {
            Some(name) => format!("; did you mean {name}?"),
            None => String::new(),
        };
        return Err(place.error(
            line,
            Some(key),
            format!("{key} is not an option that blklab supports{hint}"),
        ));
    };
    if spec.support == Support::Refused {
        return Err(place.error(
            line,
            Some(spec.name),
            format!("{key} is not allowed: {}", spec.help),
        ));
    }
    if value.is_some_and(|value| value.contains("${")) {
        let message = "variables of the environment are not replaced, so that a stored run can be repeated; \
                       write the value";
        return Err(place.error(line, Some(spec.name), message));
    }
    let text = match value {
        Some("") => {
            return Err(place.error(line, Some(spec.name), format!("{key} has no value")));
        }
        Some(value) => value.to_owned(),
        None if spec.kind == options::Kind::Flag => "1".to_owned(),
        None if spec.kind == options::Kind::LogName => String::new(),
        None => {
            let message = format!("{key} needs a value: {}", spec.kind.describe());
            return Err(place.error(line, Some(spec.name), message));
        }
    };
    values::check(spec, &text).map_err(|message| place.error(line, Some(spec.name), message))?;
    Ok(Setting { spec, text, line })
}

/// Notes the options of a job that are not followed to the letter. What concerns the whole file is
/// said once.
fn note_support(job: &str, settings: &Settings, file: &mut JobFile) {
    for setting in settings.values() {
        let spec = setting.spec;
        let remark = |message: String| Remark {
            job: job.to_owned(),
            option: spec.name.to_owned(),
            line: setting.line,
            message,
        };
        let only_value = host_only::VALUES
            .iter()
            .find(|(option, value, _)| *option == spec.name && setting.text.starts_with(value));
        match spec.support {
            Support::HostOnly => file.host_only.push(remark(spec.help.to_owned())),
            Support::Modelled if only_value.is_some() => {
                let reason = only_value.map_or("", |(_, _, reason)| reason);
                file.host_only.push(remark(format!("{}: {reason}", setting.text)));
            }
            Support::Noted => {
                note_once(&mut file.warnings, remark(format!("not modelled: {}", spec.help)));
            }
            _ => {}
        }
        if let Some(message) = mapped_to(setting) {
            note_once(&mut file.notes, remark(message));
        }
    }
}

/// The note about a path that is not taken as written.
fn mapped_to(setting: &Setting) -> Option<String> {
    let text = &setting.text;
    match setting.spec.name {
        "directory" => Some(format!("{text} is mapped into scratch space")),
        "filename" if text.contains('/') => Some(format!("{text} is mapped into scratch space")),
        "fill_device" if text != "0" => {
            Some("the job fills its part of the scratch space".to_owned())
        }
        "io_submit_mode" if text == "offload" => {
            Some("fio 3.33 may never end with offload; I/O is submitted inline".to_owned())
        }
        "write_iolog" => Some("fio's log is kept with the run".to_owned()),
        _ if setting.spec.kind == options::Kind::LogName => {
            Some("fio's log is kept with the run, averaged over windows".to_owned())
        }
        _ => None,
    }
}

/// Adds a remark unless the same was made before.
fn note_once(remarks: &mut Vec<Remark>, remark: Remark) {
    let known =
        |other: &Remark| (&other.option, &other.message) == (&remark.option, &remark.message);
    if !remarks.iter().any(known) {
        remarks.push(remark);
    }
}
