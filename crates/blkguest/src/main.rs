//! The first process of a guest kernel: makes disks out of device models, runs one experiment on
//! them, writes the answer, and powers the guest off.
//!
//! The guest's root is a folder of the host. The program reads `/request.json` and writes
//! `/answer.json`, both in the JSON of blksim's own requests and answers.
//!
//! On this machine itself, `blkguest replay REQUEST ANSWER` replays a recording.

mod aio_abi;
mod answer;
mod array;
mod cgroups;
mod changes;
mod clock;
mod clock_page;
mod command;
mod command_log;
mod disk;
mod failure;
mod filesystem;
mod fio;
mod host_replay;
mod load;
mod md;
mod memory;
mod modelled_disk;
mod mounts;
mod null_blk;
mod process;
mod processor_time;
mod processors;
mod program;
mod progress;
mod queue;
mod recording;
mod request;
mod run;
mod scheduling;
mod served_model;
mod server_turn;
mod shared_memory;
mod switchback;
mod torture;
mod transport;
mod ublk;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde_json::Value;

use failure::Failure;
use request::Asked;

const REQUEST: &str = "/request.json";
const ANSWER: &str = "/answer.json";

fn main() {
    // First of all: on a host this may be the first process of a PID namespace.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["replay", request, answer] => {
            std::process::exit(replay(Path::new(request), Path::new(answer)))
        }
        ["replay", ..] => usage(),
        _ => {}
    }
    // SAFETY: a plain call.
    if unsafe { libc::getpid() } != 1 {
        usage();
    }
    let work = || -> Result<Value, Failure> {
        mounts::mount_basics()?;
        clock::no_slack();
        match Asked::read(REQUEST)? {
            Asked::Run(request) => run::run(&request),
            Asked::Torture(torture) => torture::run(&torture),
        }
    };
    let outcome =
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(process::defect(&*panic)));
    let answer = outcome.unwrap_or_else(|failure| failure.answer());
    write_answer(&answer, Path::new(ANSWER));
    mounts::power_off()
}

fn usage() -> ! {
    eprintln!(
        "blkguest {}: the first process of a guest kernel; blklab starts it (targets uml:...)\n\
         blkguest replay REQUEST ANSWER: replays a recording on this machine",
        env!("CARGO_PKG_VERSION")
    );
    std::process::exit(2);
}

/// Replays a recording on this machine; gives the exit code.
fn replay(request: &Path, answer: &Path) -> i32 {
    let folder = match answer.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    load::keep_in(folder.display().to_string());
    let outcome = catch_unwind(AssertUnwindSafe(|| host_replay::run(request)))
        .unwrap_or_else(|panic| Err(process::defect(&*panic)));
    let failed = outcome.is_err();
    write_answer(&outcome.unwrap_or_else(|failure| failure.answer()), answer);
    i32::from(failed)
}

/// Writes the answer atomically.
fn write_answer(answer: &Value, path: &Path) {
    let temporary = format!("{}.part", path.display());
    let written =
        fs::write(&temporary, answer.to_string()).and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = written {
        // Only the console is left.
        eprintln!("blkguest: the answer cannot be written: {error}");
    }
}
