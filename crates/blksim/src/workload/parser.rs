//! Job files: sections of `key=value` lines, as fio reads them.
//!
//! `[global]` sections give defaults to the sections below them. Comments start
//! with `;` or `#`. Every error names the file, the line and the option.

use std::sync::Arc;

use super::file_sizes;
use super::fractions::in_whole_numbers;
use super::interpret;
use super::job::{Distribution, Extent, Job, JobFile, PerDirection, Remark};
use super::options::{Kind, Support, host_only};
use super::replay::{JobReplay, KEY, PlanError, TaskPlan, check_together, decode};
use super::setting::{Setting, Settings, in_binary_units, is_absent, read_setting};
use crate::core::error::JobFileError;
use crate::core::record::Direction;

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
    /// Options that were given again, with the line of each.
    repeated: Vec<(&'static str, u32)>,
    /// Its recorded I/Os, with their line.
    replay: Option<(u32, Vec<TaskPlan>)>,
    /// Its header lacks the `]`.
    unclosed: bool,
    text_after_header: Option<String>,
}

impl Section {
    fn new(name: String, line: u32) -> Self {
        Self {
            name,
            line,
            settings: Settings::new(),
            repeated: Vec::new(),
            replay: None,
            unclosed: false,
            text_after_header: None,
        }
    }

    /// A section whose header lacks its `]`, in whose place fio takes the last character.
    fn unclosed(rest: &str, line: u32, place: Place) -> Result<Self, JobFileError> {
        let mut name = rest.trim_end().to_owned();
        name.pop();
        if name.is_empty() {
            return Err(place.error(line, None, "a section header needs a name and a closing ]"));
        }
        Ok(Self { unclosed: true, ..Self::new(name, line) })
    }

    /// fio takes every section whose name begins so for one of defaults.
    fn is_global(&self) -> bool {
        self.name.starts_with("global")
    }

    /// Adds an option. The last one counts; file names add up.
    fn add(&mut self, setting: Setting) {
        let (name, line) = (setting.spec.name, setting.line);
        if !join_files(&mut self.settings, &setting)
            && self.settings.insert(name, setting).is_some()
        {
            self.repeated.push((name, line));
        }
    }
}

/// Adds file names to those that there are; a job works on all of them (`str_filename_cb` in
/// `options.c`, fio 3.33). Returns false if it is another option, or the first.
fn join_files(settings: &mut Settings, setting: &Setting) -> bool {
    if setting.spec.name != "filename" {
        return false;
    }
    let Some(names) = settings.get_mut("filename") else { return false };
    names.text = format!("{}:{}", names.text, setting.text);
    names.line = setting.line;
    true
}

/// Adds a section's settings to the defaults above it.
fn extend(settings: &mut Settings, section: &Settings) {
    for (name, setting) in section {
        if !join_files(settings, setting) {
            settings.insert(name, setting.clone());
        }
    }
}

/// Reads a job file.
pub fn parse(text: &str, source: &str) -> Result<JobFile, JobFileError> {
    let place = Place { source };
    let sections = split_sections(text, place)?;
    let mut file = JobFile { source: source.to_owned(), ..JobFile::default() };
    let mut global = Settings::new();
    for section in sections {
        note_repeated(&section, &mut file);
        note_header(&section, &mut file);
        if section.is_global() {
            extend(&mut global, &section.settings);
            continue;
        }
        let mut settings = global.clone();
        extend(&mut settings, &section.settings);
        settings.retain(|_, setting| !is_absent(setting.spec, &setting.text));
        let name = note_name(&section, &mut file);
        rewrite_units(&name, &mut settings, &mut file);
        note_support(&name, &settings, &mut file);
        let mut job = interpret::job(&name, section.line, &settings, place)?;
        note_effects(&job, &mut file);
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
    file_sizes::draw(&mut file.jobs, place)?;
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
                sections.push(Section::unclosed(rest, line, place)?);
                continue;
            };
            let name = name.trim();
            if name.is_empty() {
                return Err(place.error(line, None, "a section needs a name"));
            }
            let mut section = Section::new(name.to_owned(), line);
            let after = after.trim();
            if !after.is_empty() && !after.starts_with([';', '#']) {
                section.text_after_header = Some(after.to_owned());
            }
            sections.push(section);
            continue;
        }
        let Some(section) = sections.last_mut() else {
            return Err(place.error(line, None, before_sections(content)));
        };
        if let Some((KEY, text)) = content.split_once('=').map(|(key, text)| (key.trim(), text)) {
            if section.is_global() || section.replay.is_some() {
                let message = "each section that replays has one plan, and [global] has none";
                return Err(place.error(line, Some(KEY), message));
            }
            let plans = decode(text.trim())
                .map_err(|error| place.error(line, Some(KEY), error.to_string()))?;
            section.replay = Some((line, plans));
            continue;
        }
        section.add(read_setting(content, line, place)?);
    }
    Ok(sections)
}

/// The mistake of a line before the first section.
fn before_sections(content: &str) -> &'static str {
    if content.split_whitespace().any(|word| word.starts_with("--")) {
        "a command line, not a job file: write [name], and below it each option in a line of its \
         own, without its --"
    } else {
        "an option stands before the first [section]"
    }
}

/// Notes options that were given more than once in a section.
fn note_repeated(section: &Section, file: &mut JobFile) {
    for &(option, line) in &section.repeated {
        let message = format!("given more than once in [{}]; the last one counts", section.name);
        let (job, option) = (section.name.clone(), option.to_owned());
        file.notes.push(Remark { job, option, line, message });
    }
}

/// Notes a header without its `]`, or with text behind that.
fn note_header(section: &Section, file: &mut JobFile) {
    if let Some(text) = &section.text_after_header {
        let (job, option) = (section.name.clone(), format!("[{}]{text}", section.name));
        let message = format!(
            "{text} stands after the header; fio makes it a part of the job's name, blklab leaves it out"
        );
        file.notes.push(Remark { job, option, line: section.line, message });
    }
    if section.unclosed {
        let (job, option) = (section.name.clone(), format!("[{}", section.name));
        let message = format!(
            "the header lacks its ]; fio takes the last character for it, and the job is called {}",
            section.name
        );
        file.notes.push(Remark { job, option, line: section.line, message });
    }
}

/// The name of a section's job: its own, or one with a number if another job has that.
fn note_name(section: &Section, file: &mut JobFile) -> String {
    let Section { name, line, .. } = section;
    let taken = |name: &str| file.jobs.iter().any(|job| job.name == name);
    if !taken(name) {
        return name.clone();
    }
    let free = (2..=u32::MAX).map(|number| format!("{name}-{number}")).find(|name| !taken(name));
    let free = free.unwrap_or_default();
    let message = format!("another section has this name; its job is called {free} here");
    let (job, option) = (free.clone(), format!("[{name}]"));
    file.notes.push(Remark { job, option, line: *line, message });
    free
}

/// Rewrites fractions and sizes in units of 1000 as whole numbers, with a note where they are easily overlooked.
fn rewrite_units(job: &str, settings: &mut Settings, file: &mut JobFile) {
    let decimal_base = settings.get("kb_base").is_some_and(|base| base.text == "1000");
    for setting in settings.values_mut() {
        if let Some(text) = in_whole_numbers(setting, decimal_base) {
            let message = format!(
                "{} is taken for {text}; a fio without arithmetic, such as Debian's, reads it up to the point only",
                setting.text
            );
            let (option, line) = (setting.spec.name.to_owned(), setting.line);
            note_once(&mut file.notes, Remark { job: job.to_owned(), option, line, message });
            setting.text = text;
        }
        let Some(text) = in_binary_units(setting, decimal_base) else { continue };
        if !decimal_base {
            let message = format!(
                "fio takes {} for {text}: KiB and its like are powers of 1000 unless kb_base=1000, k and \
                 its like are powers of 1024",
                setting.text
            );
            let option = setting.spec.name.to_owned();
            let line = setting.line;
            note_once(&mut file.notes, Remark { job: job.to_owned(), option, line, message });
        }
        setting.text = text;
    }
}

/// Notes options that have no effect beside others, as fio itself warns of some.
fn note_effects(job: &Job, file: &mut JobFile) {
    let mut note = |option: &str, message: String| {
        let line = job.option_lines.get(option).copied().unwrap_or(job.line);
        let (job, option) = (job.name.clone(), option.to_owned());
        note_once(&mut file.notes, Remark { job, option, line, message });
    };
    if job.time_based && job.runtime_ns.is_none() {
        note("time_based", "it counts only with a runtime; --runtime gives one".to_owned());
    }
    if job.iodepth > 1 && !job.asynchronous() {
        let message = format!(
            "{} does one I/O at a time, so a depth of {} has no effect; libaio and io_uring keep more in \
             flight",
            job.engine, job.iodepth
        );
        note("iodepth", message);
    }
    if job.iodepth > 1 && job.engine == "libaio" && !job.direct && !job.mode.trims {
        let message =
            "libaio without direct=1 waits for each I/O in the kernel, so the depth has no effect";
        note("iodepth", message.to_owned());
    }
    let PerDirection { read, write } = &job.block_sizes;
    let mixes = job.mode.random && job.mode.reads && job.mode.writes;
    let maps = !job.norandommap
        && job.block_align.is_none()
        && !job.sizes_by_order
        && matches!(job.distribution, Distribution::Uniform);
    if mixes && maps && !job.time_based && read.smallest() != write.smallest() {
        let message = "reads and writes of different sizes share one map of visited blocks, so the \
                       job may end long before its size, as with fio; norandommap=1 leaves the map out";
        note("readwrite", message.to_owned());
    }
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
        for message in mapped_to(setting).into_iter().chain(setting.note.clone()) {
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
        "ioscheduler" => {
            Some(format!("{text} is not set; blklab sets the schedulers that it compares"))
        }
        "write_iolog" => Some("fio's log is kept with the run".to_owned()),
        _ if setting.spec.kind == Kind::LogName => {
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
