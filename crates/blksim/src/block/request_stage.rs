//! The stage of a request, kept by debug builds to catch one that is inserted, dispatched or
//! completed twice.

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

/// The stage of a request in debug builds; empty in others.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StageRecord {
    #[cfg(debug_assertions)]
    stage: RequestStage,
}

impl StageRecord {
    /// Moves the request to its next stage. A debug build panics if it does not come from one of
    /// `from`.
    #[inline(always)]
    pub(crate) fn step(&mut self, from: &[RequestStage], to: RequestStage) {
        #[cfg(debug_assertions)]
        {
            let stage = self.stage;
            assert!(from.contains(&stage), "a request becomes {to:?}, but it is {stage:?}");
            self.stage = to;
        }
        #[cfg(not(debug_assertions))]
        let _ = (from, to);
    }
}
