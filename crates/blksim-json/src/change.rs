//! Changes of a run as JSON.
//!
//! ```json
//! {"kind": "scheduler", "scheduler": "bfq", "tunables": {"slice_idle": "0"}}
//! {"kind": "tunable", "name": "slice_idle", "value": "0"}
//! {"kind": "queue", "name": "nr_requests", "value": "64"}
//! {"kind": "priority", "job": "reader", "class": "be", "level": 4}
//! {"kind": "group", "group": "fast", "attribute": "io.bfq.weight", "value": "300"}
//! ```

use std::collections::BTreeMap;

use blksim::live::change::Change;
use blksim::live::planned::PlannedChanges;
use blksim::task::slots::{SlotPlan, SlotTimes};
use serde::Deserialize;

/// One change, as received.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum ChangeRequest {
    Scheduler {
        scheduler: String,
        #[serde(default)]
        tunables: BTreeMap<String, String>,
    },
    Tunable {
        name: String,
        value: String,
    },
    Queue {
        name: String,
        value: String,
    },
    Priority {
        job: String,
        class: ClassRequest,
        level: Option<u8>,
    },
    Group {
        group: String,
        attribute: String,
        value: String,
    },
}

/// A class of I/O priorities, numbered as `IOPRIO_CLASS_*` (`include/uapi/linux/ioprio.h`).
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ClassRequest {
    Rt = 1,
    Be = 2,
    Idle = 3,
}

/// The changes of a run, as received.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlannedRequest {
    planned: Vec<TimedRequest>,
    #[serde(default)]
    phases: Vec<PhaseRequest>,
    #[serde(default)]
    window_ns: u64,
    #[serde(default)]
    focus: Vec<String>,
    #[serde(default)]
    freeze_ns: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TimedRequest {
    at_ns: u64,
    change: ChangeRequest,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PhaseRequest {
    from_ns: u64,
    to_ns: u64,
}

impl ChangeRequest {
    fn change(self) -> Change {
        match self {
            Self::Scheduler { scheduler, tunables } => {
                Change::Scheduler { name: scheduler, tunables: tunables.into_iter().collect() }
            }
            Self::Tunable { name, value } => Change::Tunable { name, value },
            Self::Queue { name, value } => Change::Queue { name, value },
            Self::Priority { job, class, level } => {
                Change::Priority { job, class: class as u8, level }
            }
            Self::Group { group, attribute, value } => Change::Group { group, attribute, value },
        }
    }
}

impl PlannedRequest {
    pub(crate) fn plan(self) -> PlannedChanges {
        let times = |phase: PhaseRequest| SlotTimes {
            start_ns: phase.from_ns,
            end_ns: phase.to_ns,
            kept_from_ns: phase.from_ns,
            kept_to_ns: phase.to_ns,
        };
        let changes = self.planned.into_iter().map(|timed| (timed.at_ns, timed.change.change()));
        PlannedChanges {
            changes: changes.collect(),
            phases: SlotPlan {
                times: self.phases.into_iter().map(times).collect(),
                window_ns: self.window_ns,
                focus: self.focus,
            },
            freeze_ns: self.freeze_ns,
        }
    }
}

/// Reads a change. `None` for one that is not as above.
pub fn change(text: &str) -> Option<Change> {
    serde_json::from_str::<ChangeRequest>(text).ok().map(ChangeRequest::change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_read() {
        let tunables = vec![("slice_idle".to_owned(), "0".to_owned())];
        let read =
            change(r#"{"kind": "scheduler", "scheduler": "bfq", "tunables": {"slice_idle": "0"}}"#);
        assert_eq!(read, Some(Change::Scheduler { name: "bfq".to_owned(), tunables }));
        let read = change(r#"{"kind": "priority", "job": "reader", "class": "rt", "level": 1}"#);
        let expected = Change::Priority { job: "reader".to_owned(), class: 1, level: Some(1) };
        assert_eq!(read, Some(expected));
        let read = change(r#"{"kind": "tunable", "name": "slice_idle", "value": "2"}"#);
        let expected = Change::Tunable { name: "slice_idle".to_owned(), value: "2".to_owned() };
        assert_eq!(read, Some(expected));
        let read = change(r#"{"kind": "queue", "name": "nr_requests", "value": "2"}"#);
        let expected = Change::Queue { name: "nr_requests".to_owned(), value: "2".to_owned() };
        assert_eq!(read, Some(expected));
        assert!(
            change(r#"{"kind": "group", "group": "a", "attribute": "io.weight", "value": "3"}"#)
                .is_some()
        );
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "{}",
            r#"{"kind": "paint"}"#,
            r#"{"kind": "tunable", "name": 3, "value": "2"}"#,
            r#"{"kind": "priority", "job": "a", "class": "none"}"#,
            r#"{"kind": "queue", "name": "nr_requests", "value": "2", "at": 3}"#,
        ] {
            assert_eq!(change(text), None, "{text}");
        }
    }
}
