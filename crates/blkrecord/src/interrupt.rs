//! A way to end long work from outside.
//!
//! Readers ask before they read on, analyses between their steps, so that an answer comes within a fraction of a second;
//! what asks the person (a signal, a button) is the caller's.

use std::fmt;
use std::sync::Arc;

/// Asked now and then during long work. By default nobody ends it.
#[derive(Clone, Default)]
pub struct Interrupt {
    is_wanted: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
}

/// The work was ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

impl Interrupt {
    /// Ends work once `is_wanted` gives true. It is called for every block or some thousand I/Os, and so must be quick.
    pub fn when(is_wanted: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { is_wanted: Some(Arc::new(is_wanted)) }
    }

    /// An error once the work is to end.
    #[inline]
    pub fn check(&self) -> Result<(), Interrupted> {
        match &self.is_wanted {
            Some(is_wanted) if is_wanted() => Err(Interrupted),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Interrupt").finish_non_exhaustive()
    }
}
