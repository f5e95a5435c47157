//! fio as the load generator, for comparison with this program's own.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::SeqCst;

use crate::clock;
use crate::disk::Disk;
use crate::failure::Failure;
use crate::shared_memory::SharedMemory;

/// The job file with the guest's paths, fio's report, and its other output.
const JOBS: &str = "/job.fio";
const REPORT: &str = "/output.json";
const LOG: &str = "/fio.log";
/// A fixed name for the disk.
const DISK_LINK: &str = "/dev/blklab";

/// Runs fio; returns its exit code, negative for a signal.
pub fn run(disk: &Disk, shared: SharedMemory) -> Result<i32, Failure> {
    let failed = |error: std::io::Error| Failure::Program {
        program: "fio".to_owned(),
        message: error.to_string(),
    };
    symlink(disk.path(), DISK_LINK).map_err(failed)?;
    let log = File::create(LOG).map_err(failed)?;
    shared.start_ns.store(clock::now_ns(), SeqCst);
    shared.modelled.store(1, SeqCst);
    let status = Command::new("/bin/fio")
        .args(["--output-format=json+", &format!("--output={REPORT}"), "--eta=never"])
        // fio's default clock is the processor's time-stamp counter, which runs in host time.
        .args(["--clocksource=clock_gettime", JOBS])
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(failed)?)
        .stderr(log)
        .status()
        .map_err(failed)?;
    shared.end_ns.store(clock::now_ns(), SeqCst);
    Ok(status.code().or_else(|| status.signal().map(|signal| -signal)).unwrap_or(-1))
}
