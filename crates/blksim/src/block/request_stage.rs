//! The stage of a request, kept by debug builds to catch one that is inserted, dispatched or
//! completed twice.

use super::request::Request;

/// A stage (`enum mq_rq_state`, with the stages before it).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum RequestStage {
    /// Submitted: it may be on a plug, or wait for a tag.
    #[default]
    Submitted,
    /// The scheduler holds it.
    Inserted,
    /// The scheduler has handed it out.
    Dispatched,
    /// The device has it.
    InFlight,
    /// The device is done with it.
    Completed,
    /// It is part of another request.
    Merged,
}

impl Request {
    /// Moves the request to its next stage. A debug build panics if it does not come from one of
    /// `from`.
    #[inline(always)]
    pub(crate) fn step(&mut self, from: &[RequestStage], to: RequestStage) {
        #[cfg(debug_assertions)]
        {
            assert!(
                from.contains(&self.stage),
                "a request at sector {} becomes {to:?} from {:?}",
                self.sector,
                self.stage
            );
            self.stage = to;
        }
        #[cfg(not(debug_assertions))]
        let _ = (from, to);
    }
}
