//! Recordings as workloads.

use std::path::PathBuf;

use blkrecord::limits::Bounds;
use blkrecord::readers;
use blkreplay::{KEPT_BYTES, Kind, Options, ReplayError, ScaleTo, workload};
use blksim::block::request::SECTOR_BYTES;
use blksim::core::record::Direction;
use blksim::workload::replay::{Home, ReplayIo, Signal, TaskPlan, encode};
use pyo3::prelude::*;

use crate::{error, interruptible, memory, records};

/// An I/O: whether it writes, its sector and sectors, and the think time before it in nanoseconds.
type PlannedIo = (bool, u64, u32, u64);
/// A signal: the place in the task, and the signal's number.
type PlannedSignal = (u32, u32);

/// The plans of tasks that have one I/O in flight at a time, as the text of the key `replay_plan`.
///
/// A task has its I/Os, the signals that they await (at the number of an I/O), and those that it sets (after so
/// many completions). `home` is the processor of all tasks, and the number of processors of its machine.
#[pyfunction]
#[pyo3(signature = (tasks, home=None))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 gives lists by value")]
pub fn plans_in_turn(
    tasks: Vec<(Vec<PlannedIo>, Vec<PlannedSignal>, Vec<PlannedSignal>)>,
    home: Option<(u16, u16)>,
) -> String {
    let signals = |planned: &[PlannedSignal]| {
        planned.iter().map(|&(at, number)| Signal { at, number }).collect()
    };
    let plan = |(ios, awaits, sets): &(Vec<PlannedIo>, Vec<_>, Vec<_>)| {
        let io = |(index, &(writes, sector, sectors, think_ns)): (u32, &PlannedIo)| {
            let direction = if writes { Direction::Write } else { Direction::Read };
            let (offset, bytes) = (sector * SECTOR_BYTES, sectors * SECTOR_BYTES as u32);
            ReplayIo {
                waits_for: index,
                rank: index,
                think_ns,
                ..ReplayIo::plain(direction, offset, bytes)
            }
        };
        TaskPlan {
            ios: (0..).zip(ios).map(io).collect(),
            awaits: signals(awaits),
            sets: signals(sets),
            home: home.map(|(processor, of)| Home { processor, of }),
            ..TaskPlan::default()
        }
    };
    encode(&tasks.iter().map(plan).collect::<Vec<_>>())
}

/// Makes a job file out of a trace; gives it with a summary as JSON.
///
/// `replay` is empty, `closed` or `open`; `scale_to` is empty, `touched`, `recorded`, or a number of bytes.
#[pyfunction]
#[pyo3(signature = (path, source, replay, speed, scale_to, device=None))]
pub fn replay_workload(
    py: Python<'_>,
    path: PathBuf,
    source: String,
    replay: &str,
    speed: f64,
    scale_to: &str,
    device: Option<String>,
) -> PyResult<(String, String)> {
    let kind = match replay {
        "closed" => Kind::Closed,
        "open" => Kind::Open,
        _ => Kind::Automatic,
    };
    let scale_to = match scale_to {
        "touched" => ScaleTo::Touched,
        "recorded" => ScaleTo::Recorded,
        text => text.parse().map_or(ScaleTo::Automatic, ScaleTo::Bytes),
    };
    let options = Options { source, kind, speed, scale_to, device };
    let done = interruptible::run(py, move |interrupt| {
        let memory = memory::free_for(KEPT_BYTES);
        let bounds = Bounds { interrupt: interrupt.clone(), memory };
        let mut reader = readers::open(&path, None, &bounds)?;
        workload(&mut *reader, &options, interrupt)
    })?;
    match done {
        Ok(made) => Ok((made.job_file, serde_json::to_string(&made.summary).unwrap_or_default())),
        Err(ReplayError::Record(cause)) => Err(records::raise(py, &cause)),
        Err(ReplayError::Unfit { message, hint }) => Err(error::unfit(py, &message, &hint)),
    }
}
