//! The errors of the crate: one tree, each with its place and remedy.
//!
//! Everything that a user's input can cause is an error from here; no input panics.

/// A job file that cannot be read or understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", locate(source_name, *line, option.as_deref(), message))]
pub struct JobFileError {
    pub message: String,
    /// Name of the file as the caller gave it.
    pub source_name: String,
    pub line: Option<u32>,
    pub option: Option<String>,
}

/// A device profile or device parameter that cannot be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", locate(source_name, None, field.as_deref(), message))]
pub struct ProfileError {
    pub message: String,
    pub source_name: String,
    pub field: Option<String>,
}

/// The part of a simulation's request that was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    UnknownScheduler,
    UnknownTunable,
    UnknownQueueAttribute,
    UnknownDevice,
    OutOfRange,
    /// An option that only the host backend can honour.
    HostOnly,
    /// Files, offsets or sizes that do not fit the device.
    Layout,
    /// A job that would never end.
    Endless,
    /// The limit on events or on simulated time was reached.
    Limit,
    /// A setting that cannot be changed during a run.
    Unchangeable,
    /// A registered scheduler that broke a rule or failed.
    Scheduler,
    /// A request that is not well formed.
    Request,
    /// A defect of the simulator.
    Internal,
}

impl ErrorKind {
    /// The name that is shown to programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::UnknownScheduler => "unknown_scheduler",
            Self::UnknownTunable => "unknown_tunable",
            Self::UnknownQueueAttribute => "unknown_queue_attribute",
            Self::UnknownDevice => "unknown_device",
            Self::OutOfRange => "out_of_range",
            Self::HostOnly => "host_only",
            Self::Layout => "layout",
            Self::Endless => "endless",
            Self::Limit => "limit",
            Self::Unchangeable => "unchangeable",
            Self::Scheduler => "scheduler",
            Self::Request => "request",
            Self::Internal => "internal",
        }
    }
}

/// A simulation that cannot be set up or cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SimulationError {
    pub kind: ErrorKind,
    /// The tunable, attribute, parameter or option concerned.
    pub field: Option<String>,
    pub message: String,
}

impl SimulationError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, field: None, message: message.into() }
    }

    pub fn of(kind: ErrorKind, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind, field: Some(field.into()), message: message.into() }
    }
}

/// Any error of this crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    JobFile(#[from] JobFileError),
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Simulation(#[from] SimulationError),
}

fn locate(source: &str, line: Option<u32>, field: Option<&str>, message: &str) -> String {
    let line = line.map(|line| format!(":{line}")).unwrap_or_default();
    // A message that begins with the field's name needs it no second time.
    let field = field.filter(|field| !message.starts_with(&format!("{field} ")));
    let field = field.filter(|field| !message.starts_with(&format!("{field}:")));
    let field = field.map(|field| format!(": {field}")).unwrap_or_default();
    format!("{source}{line}{field}: {message}")
}
