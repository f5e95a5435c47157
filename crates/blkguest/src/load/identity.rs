//! A clone's I/O priority, nice value, control group and processor.

use std::fs;

use blksim::workload::Job;

use crate::failure::{Failure, checked};
use crate::processors;

/// `IOPRIO_WHO_PROCESS`, and the shift of the class (`include/uapi/linux/ioprio.h`).
const WHO_PROCESS: libc::c_int = 1;
const CLASS_SHIFT: u32 = 13;
const BEST_EFFORT: u8 = 2;
const IDLE: u8 = 3;
const DEFAULT_LEVEL: u8 = 4;

/// Applies the job's priorities and control group to this process, and keeps it to a processor.
///
/// # Arguments
///
/// `group_file` is the file of the job's group that takes processes (`cgroup.procs`).
pub fn assume(job: &Job, group_file: Option<&str>, processor: Option<u16>) -> Result<(), Failure> {
    if let (Some(group), Some(file)) = (&job.cgroup, group_file) {
        fs::write(file, "0").map_err(|error| {
            Failure::kernel(format!("joining the control group {group}"), error)
        })?;
    }
    if let Some(nice) = job.nice {
        // SAFETY: a plain call with numbers.
        let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
        checked("setting the nice value", result)?;
    }
    if let Some((class, level)) = priority(job) {
        set_priority(0, class, level)?;
    }
    if let Some(number) = processor {
        processors::keep_to(number)?;
    }
    Ok(())
}

/// Gives a process an I/O priority; process 0 is the calling one.
pub fn set_priority(process: libc::pid_t, class: u8, level: u8) -> Result<(), Failure> {
    let priority = libc::c_int::from(class) << CLASS_SHIFT | libc::c_int::from(level);
    // SAFETY: a plain call with numbers.
    let result = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, process, priority) };
    checked("setting the I/O priority", result as libc::c_int)?;
    Ok(())
}

/// Class and level as the kernel takes them.
pub fn settled(class: u8, level: Option<u8>) -> (u8, u8) {
    // The idle class has one level.
    (class, if class == IDLE { 0 } else { level.unwrap_or(DEFAULT_LEVEL) })
}

/// Class and level of a job's own I/O priority; `None` if it follows from nice.
fn priority(job: &Job) -> Option<(u8, u8)> {
    match (job.prioclass.unwrap_or(0), job.prio) {
        (0, None) => None,
        // As in fio, a level without a class is best effort.
        (0, Some(level)) => Some((BEST_EFFORT, level)),
        (class, level) => Some(settled(class, level)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_job(options: &str) -> Option<(u8, u8)> {
        priority(&blksim::workload::parse(&format!("[a]\n{options}\n"), "test").unwrap().jobs[0])
    }

    #[test]
    fn priorities_are_the_kernels() {
        assert_eq!(of_job(""), None);
        assert_eq!(of_job("nice=10"), None);
        assert_eq!(of_job("prio=3"), Some((2, 3)));
        assert_eq!(of_job("prioclass=1"), Some((1, 4)));
        assert_eq!(of_job("prioclass=3\nprio=2"), Some((3, 0)));
    }
}
