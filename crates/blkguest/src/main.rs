//! The first process of a guest kernel: makes disks out of device models, runs one experiment on
//! them, writes the answer, and powers the guest off.
//!
//! The guest's root is a folder of the host. The program reads `/request.json` and writes
//! `/answer.json`, both in the JSON of blksim's own requests and answers.

mod answer;
mod array;
mod cgroups;
mod clock;
mod failure;
mod filesystem;
mod fio;
mod load;
mod md;
mod memory;
mod mounts;
mod null_blk;
mod process;
mod processor_time;
mod program;
mod progress;
mod queue;
mod request;
mod run;
mod scheduling;
mod shared_memory;
mod switchback;
mod ublk;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

use failure::Failure;
use request::Request;

const REQUEST: &str = "/request.json";
const ANSWER: &str = "/answer.json";

fn main() {
    // SAFETY: a plain call.
    if unsafe { libc::getpid() } != 1 {
        eprintln!(
            "blkguest {}: the first process of a guest kernel; blklab starts it (targets uml:...)",
            env!("CARGO_PKG_VERSION")
        );
        std::process::exit(2);
    }
    let work = || -> Result<Value, Failure> {
        mounts::mount_basics()?;
        clock::no_slack();
        run::run(&Request::read(REQUEST)?)
    };
    let outcome =
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(process::defect(&*panic)));
    let answer = outcome.unwrap_or_else(|failure| failure.answer());
    write_answer(&answer);
    mounts::power_off()
}

/// Writes the answer atomically.
fn write_answer(answer: &Value) {
    let temporary = format!("{ANSWER}.part");
    let written =
        fs::write(&temporary, answer.to_string()).and_then(|()| fs::rename(&temporary, ANSWER));
    if let Err(error) = written {
        // Only the console is left.
        eprintln!("blkguest: the answer cannot be written: {error}");
    }
}
