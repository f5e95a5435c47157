//! Failures inside the guest, and the answers that report them.

use std::fmt::Display;
use std::io;

use blksim::core::error::{Error, ErrorKind, ProfileError, SimulationError};
use serde_json::{Value, json};

/// Anything that ends a run. blksim's own kinds of errors keep their names.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Request(#[from] Error),
    /// The kernel refused something every run needs.
    #[error("{doing}: {message}")]
    Kernel { doing: String, message: String },
    /// The kernel lacks something this run needs.
    #[error("{message}")]
    Unsupported { field: String, message: String },
    /// A read, write or sync of a job failed.
    #[error("{message}")]
    Io { message: String },
    /// A program in the guest (mkfs, fio) failed.
    #[error("{program} failed: {message}")]
    Program { program: String, message: String },
    /// A process of the guest ended early.
    #[error("{message}")]
    Died { message: String },
    /// A mistake of the kernel that a torture has found.
    #[error("{message}")]
    Mistake { kind: &'static str, message: String },
    /// A defect of this program.
    #[error("internal error in the guest: {message}; please report it with the request")]
    Internal { message: String },
}

impl From<SimulationError> for Failure {
    fn from(error: SimulationError) -> Self {
        Self::Request(error.into())
    }
}

impl From<ProfileError> for Failure {
    fn from(error: ProfileError) -> Self {
        Self::Request(error.into())
    }
}

impl Failure {
    pub fn of(kind: ErrorKind, field: &str, message: impl Into<String>) -> Self {
        Self::Request(SimulationError::of(kind, field, message).into())
    }

    /// A mistake of the kernel, of a kind that programs can tell.
    pub fn mistake(kind: &'static str, message: impl Into<String>) -> Self {
        Self::Mistake { kind, message: message.into() }
    }

    pub fn kernel(doing: impl Into<String>, error: impl Display) -> Self {
        Self::Kernel { doing: doing.into(), message: error.to_string() }
    }

    /// A failed system call, from `errno`.
    pub fn last(doing: impl Into<String>) -> Self {
        Self::kernel(doing, io::Error::last_os_error())
    }

    /// Its name for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Request(Error::Simulation(error)) => error.kind.name(),
            Self::Request(Error::Profile(_)) => "profile",
            Self::Request(Error::JobFile(_)) => "job_file",
            Self::Kernel { .. } => "guest_kernel",
            Self::Unsupported { .. } => "unsupported",
            Self::Io { .. } => "io",
            Self::Program { .. } => "program",
            Self::Died { .. } => "died",
            Self::Mistake { kind, .. } => kind,
            Self::Internal { .. } => "internal",
        }
    }

    /// The answer of a run that failed.
    pub fn answer(&self) -> Value {
        let (field, line) = match self {
            Self::Request(Error::Simulation(error)) => (error.field.clone(), None),
            Self::Request(Error::Profile(error)) => (error.field.clone(), None),
            Self::Request(Error::JobFile(error)) => (error.option.clone(), error.line),
            Self::Unsupported { field, .. } => (Some(field.clone()), None),
            _ => (None, None),
        };
        let message = self.to_string();
        json!({"error": {"kind": self.kind(), "field": field, "line": line, "message": message}})
    }
}

/// Converts a system call's return value, negative on failure, into a `Result`.
pub fn checked(doing: &str, result: libc::c_int) -> Result<libc::c_int, Failure> {
    if result < 0 { Err(Failure::last(doing)) } else { Ok(result) }
}
