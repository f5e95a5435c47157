//! The process that runs the measured command and reports on it.

use std::fs;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::SeqCst;

use serde_json::{Value, json};

use super::Command;
use super::processes::{self, Ended};
use crate::answer::Counters;
use crate::clock;
use crate::disk::Disk;
use crate::failure::Failure;
use crate::process;
use crate::processor_time;
use crate::shared_memory::SharedMemory;

/// The runner's report.
const REPORT: &str = "/run/command.json";

/// Of a failed command's errors.
const LAST_LINES: usize = 4;
/// Words of programs that want a socket: ENOSYS's, and the resolver's.
const WITHOUT_NETWORK: [&str; 2] = ["Function not implemented", "name resolution"];

/// Makes the process that waits for the start and runs the command; the load beside it ends with it.
///
/// # Arguments
///
/// `disks` hold its files, `delay_ns` is the time from the start to its own, `paid` says that computing takes
/// time.
pub fn start(
    command: &Command,
    disks: &[Disk],
    delay_ns: u64,
    paid: bool,
    shared: SharedMemory,
) -> Result<(), Failure> {
    process::spawn("the command", shared, || {
        processes::become_parent()?;
        SharedMemory::await_value(&shared.open_phases, 1);
        clock::sleep_until(shared.start_ns.load(SeqCst) + delay_ns);
        let busy = || if paid { processor_time::busy_ns().map(Some) } else { Ok(None) };
        let before = (Counters::read_all(disks)?, busy()?);
        let ended = processes::run(command, &command.run)?;
        let after = (Counters::read_all(disks)?, busy()?);
        let moved = |bytes: fn(&Counters) -> u64| -> u64 {
            let all = before.0.iter().zip(&after.0);
            all.map(|(before, after)| bytes(after).saturating_sub(bytes(before))).sum()
        };
        let usage = usage_of_children();
        let report = json!({
            "wall_ns": ended.end_ns - ended.start_ns,
            "complaint": complaint(&ended),
            "busy_ns": after.1.zip(before.1).map(|(after, before)| after - before),
            "disk_read_bytes": moved(|counters| counters.read_bytes),
            "disk_written_bytes": moved(|counters| counters.written_bytes),
            "major_faults": usage.ru_majflt,
            "context_switches": usage.ru_nvcsw + usage.ru_nivcsw,
        });
        fs::write(REPORT, report.to_string())
            .map_err(|error| Failure::kernel("leaving the command's report", error))?;
        shared.end_ns.fetch_max(ended.end_ns, SeqCst);
        shared.terminate_clones();
        shared.line_ended();
        Ok(())
    })?;
    Ok(())
}

/// The reason why a line has failed; none if it has not.
pub fn complaint(ended: &Ended) -> Option<String> {
    match ended.exit_code {
        _ if ended.timed_out => Some("it exceeded its time limit and was killed".to_owned()),
        0 => None,
        code if code < 0 => Some(format!("it was killed by signal {}", -code)),
        code => Some(format!("its exit code is {code}: {}", last_words(&ended.errors))),
    }
}

/// The last lines of what a command says, with the reason where it lacks a network.
fn last_words(errors: &str) -> String {
    let lines: Vec<&str> = errors.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("; ");
    if WITHOUT_NETWORK.iter().any(|words| errors.contains(words)) {
        return format!("{last} (guests have no network, and no sockets either)");
    }
    last
}

/// The report that the runner left.
pub fn answer() -> Result<Value, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Internal {
        message: format!("the command's report cannot be read: {error}"),
    };
    let text = fs::read_to_string(REPORT).map_err(|error| failed(&error))?;
    serde_json::from_str(&text).map_err(|error| failed(&error))
}

fn usage_of_children() -> libc::rusage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: zero is a valid value of the structure, which the call fills in.
    unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_its_last_lines_and_the_lack_of_sockets() {
        let ended = |exit_code, errors: &str| Ended {
            start_ns: 0,
            end_ns: 1,
            exit_code,
            timed_out: false,
            errors: errors.to_owned(),
        };
        assert_eq!(complaint(&ended(0, "a warning")), None);
        assert_eq!(complaint(&ended(-9, "")).unwrap(), "it was killed by signal 9");
        let said = complaint(&ended(2, "1\n2\n\n3\n4\n 5\n")).unwrap();
        assert_eq!(said, "its exit code is 2: 2; 3; 4; 5");
        let said = complaint(&ended(1, "socket: Function not implemented")).unwrap();
        assert!(said.ends_with("(guests have no network, and no sockets either)"), "{said}");
    }
}
