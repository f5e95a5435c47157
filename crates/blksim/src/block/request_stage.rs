//! Where a request is on its way, which debug builds keep to find one that goes a step twice.

use super::request::Request;

/// A step of a request's way (`enum mq_rq_state`, and what comes before).
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
    /// Notes the next step; a debug build panics if the request does not come from one of `from`.
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
