//! Errors of a recording.

use std::io;
use std::path::{Path, PathBuf};

use crate::lockdown;

/// A recording that cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The kernel refuses: root or a capability is missing, or the kernel is locked down.
    #[error("{what} needs root: {cause}")]
    NotPermitted { what: String, cause: io::Error },
    /// This kernel cannot do it.
    #[error("{0}")]
    Unavailable(String),
    /// The record cannot be written.
    #[error("{path}: {cause}", path = .path.display())]
    Output { path: PathBuf, cause: io::Error },
    /// The request is inconsistent.
    #[error("{0}")]
    Request(String),
}

impl CaptureError {
    /// The error for a file of the kernel.
    pub fn kernel(path: &Path, cause: io::Error) -> Self {
        let what = path.display().to_string();
        match cause.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) if lockdown::is_confidential() => {
                Self::Unavailable(lockdown::reason(&what))
            }
            Some(libc::EPERM | libc::EACCES) => Self::NotPermitted { what, cause },
            _ => Self::Unavailable(format!("{what}: {cause}")),
        }
    }
}
