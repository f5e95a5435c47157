//! The first process of a guest kernel: makes disks of device models, runs one
//! experiment on them, leaves the answer, and ends the guest.
//!
//! The root of the guest is a folder of the host. `/request.json` is read,
//! `/answer.json` written; both are JSON as blksim's own requests and answers.

mod answer;
mod array;
mod board;
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
mod program;
mod progress;
mod queue;
mod request;
mod run;
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
    leave(&answer);
    mounts::power_off()
}

/// Writes the answer so that it is there as a whole or not at all.
fn leave(answer: &Value) {
    let temporary = format!("{ANSWER}.part");
    let written =
        fs::write(&temporary, answer.to_string()).and_then(|()| fs::rename(&temporary, ANSWER));
    if let Err(error) = written {
        // All that is left is the console.
        eprintln!("blkguest: the answer cannot be written: {error}");
    }
}
