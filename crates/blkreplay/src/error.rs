//! Recordings that cannot be replayed.

use blkrecord::error::RecordError;
use blkrecord::interrupt::Interrupted;

/// Why a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// It can be read, and holds nothing to replay, or not what was asked for.
    #[error("{message}")]
    Unfit { message: String, hint: String },
}

impl From<Interrupted> for ReplayError {
    fn from(interrupted: Interrupted) -> Self {
        Self::Record(interrupted.into())
    }
}

impl ReplayError {
    pub(crate) fn unfit(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Unfit { message: message.into(), hint: hint.into() }
    }
}
