//! fio as the generator, to compare it with this program's own.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::SeqCst;

use crate::board::Shared;
use crate::clock;
use crate::failure::Failure;
use crate::ublk::Disk;

/// The job file, with the guest's paths in it, fio's report and its other words.
const JOBS: &str = "/job.fio";
const REPORT: &str = "/output.json";
const LOG: &str = "/fio.log";
/// The disk, whatever it is really called.
const DISK_LINK: &str = "/dev/blklab";

/// Runs fio; gives its exit code, below 0 for a signal.
pub fn run(disk: &Disk, shared: Shared) -> Result<i32, Failure> {
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
        // fio's default clock is the processor's counter, which runs in the host's time.
        .args(["--clocksource=clock_gettime", JOBS])
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(failed)?)
        .stderr(log)
        .status()
        .map_err(failed)?;
    shared.end_ns.store(clock::now_ns(), SeqCst);
    Ok(status.code().or_else(|| status.signal().map(|signal| -signal)).unwrap_or(-1))
}
