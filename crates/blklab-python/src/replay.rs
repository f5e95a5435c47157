//! Recordings as workloads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use blkrecord::readers;
use blkreplay::{Kind, Options, ReplayError, ScaleTo, workload};
use blksim::core::record::Direction;
use pyo3::prelude::*;

use crate::{error, records};

/// A job file that replays so many reads or writes in turn, without think time.
#[pyfunction]
pub fn ios_in_turn(count: u32, file_bytes: u64, writes: bool) -> String {
    let direction = if writes { Direction::Write } else { Direction::Read };
    blkreplay::own_path::ios_in_turn(count, file_bytes, direction)
}

/// Makes a job file out of a trace; gives it with a summary as JSON.
///
/// `replay` is empty, `closed` or `open`; `scale_to` is empty, `touched`, `recorded`, or a number of bytes.
#[pyfunction]
#[pyo3(signature = (path, source, replay, speed, scale_to, device=None))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 gives paths by value")]
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
    let done = py.detach(|| {
        catch_unwind(AssertUnwindSafe(|| {
            let mut reader = readers::open(&path, None)?;
            workload(&mut *reader, &options)
        }))
    });
    match done {
        Ok(Ok(made)) => {
            Ok((made.job_file, serde_json::to_string(&made.summary).unwrap_or_default()))
        }
        Ok(Err(ReplayError::Record(cause))) => Err(records::raise(py, &cause)),
        Ok(Err(ReplayError::Unfit { message, hint })) => Err(error::unfit(py, &message, &hint)),
        Err(panic) => Err(error::raise(py, &error::from_panic(panic.as_ref()))),
    }
}
