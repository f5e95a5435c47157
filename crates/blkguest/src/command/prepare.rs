//! Brings the command's files and the page cache into their state, before the clock counts.

use std::os::unix::fs::symlink;

use super::{ARCHIVE, Command, ROOT, archive, processes, runner};
use crate::clock;
use crate::failure::Failure;
use crate::filesystem::Filesystem;
use crate::mounts::{self, mount};
use crate::process;
use crate::request::TimeKind;
use crate::shared_memory::SharedMemory;

/// Wall clock of a command in virtual time: 18 May 2033. It is later than the times of all files that come from
/// the host: programs such as git and make compare these with the clock.
const WALL_CLOCK_S: i64 = 2_000_000_000;
/// File systems of the kernel's in the command's root.
const OWN_MOUNTS: [(&str, &str); 2] = [("proc", "/proc"), ("devtmpfs", "/dev")];

/// Unpacks the command's files, runs what comes before it, and makes the page cache cold or warm.
pub fn prepare(
    command: &Command,
    filesystem: &Filesystem,
    time: TimeKind,
    shared: SharedMemory,
) -> Result<(), Failure> {
    if time == TimeKind::Virtual {
        clock::set_wall_clock(WALL_CLOCK_S)?;
    }
    archive::unpack(ARCHIVE, ROOT)?;
    // The kernel makes no such links.
    for (target, name) in [("/proc/self/fd", "/dev/fd"), ("/proc/self/fd/2", "/dev/stderr")] {
        let _ = symlink(target, name);
    }
    enter()?;
    let warm_up = [&command.repeat_set_up, &command.run];
    let lines = if command.cold { &[][..] } else { &warm_up[..] };
    let lines: Vec<&String> = lines.iter().copied().chain([&command.repeat_set_up]).collect();
    for line in lines.into_iter().filter(|line| !line.is_empty()) {
        run_unmeasured(command, line, shared)?;
    }
    if command.cold {
        leave()?;
        filesystem.mount_again()?;
        enter()?;
    }
    // SAFETY: a plain call.
    unsafe { libc::sync() };
    Ok(())
}

fn run_unmeasured(command: &Command, line: &str, shared: SharedMemory) -> Result<(), Failure> {
    let done = shared.lines_ended.load(std::sync::atomic::Ordering::SeqCst);
    process::spawn("a set-up", shared, || {
        processes::become_parent()?;
        let ended = processes::run(command, line)?;
        if let Some(reason) = runner::complaint(&ended) {
            let message = format!("before the run, at `{line}`: {reason}");
            return Err(Failure::Program { program: "the command".to_owned(), message });
        }
        shared.line_ended();
        Ok(())
    })?;
    shared.wait_for(&shared.lines_ended, done + 1, || process::look(shared))
}

/// Mounts the kernel's own file systems in the command's root.
fn enter() -> Result<(), Failure> {
    OWN_MOUNTS.iter().try_for_each(|(kind, place)| mount(kind, &format!("{ROOT}{place}"), kind, ""))
}

fn leave() -> Result<(), Failure> {
    OWN_MOUNTS.iter().try_for_each(|(_, place)| mounts::unmount(&format!("{ROOT}{place}")))
}
