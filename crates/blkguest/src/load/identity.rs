//! A clone's I/O priority, nice value and control group.

use std::fs;

use blksim::workload::Job;

use crate::failure::{Failure, checked};

/// `IOPRIO_WHO_PROCESS`, and the shift of the class (`include/uapi/linux/ioprio.h`).
const WHO_PROCESS: libc::c_int = 1;
const CLASS_SHIFT: u32 = 13;
const BEST_EFFORT: u8 = 2;
const IDLE: u8 = 3;

/// Applies the job's priorities and control group to this process.
///
/// # Arguments
///
/// `group_file` is the file of the job's group that takes processes (`cgroup.procs`).
pub fn assume(job: &Job, group_file: Option<&str>) -> Result<(), Failure> {
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
    if let Some(priority) = priority(job) {
        // SAFETY: a plain call with numbers.
        let result = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, priority) };
        checked("setting the I/O priority", result as libc::c_int)?;
    }
    Ok(())
}

/// The I/O priority in the kernel's encoding; `None` if it follows from nice.
fn priority(job: &Job) -> Option<libc::c_int> {
    let (class, level) = match (job.prioclass.unwrap_or(0), job.prio) {
        (0, None) => return None,
        // As in fio, a level without a class is best effort.
        (0, Some(level)) => (BEST_EFFORT, level),
        // The idle class has one level.
        (IDLE, _) => (IDLE, 0),
        (class, level) => (class, level.unwrap_or(4)),
    };
    Some(libc::c_int::from(class) << CLASS_SHIFT | libc::c_int::from(level))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(options: &str) -> Option<libc::c_int> {
        priority(&blksim::workload::parse(&format!("[a]\n{options}\n"), "test").unwrap().jobs[0])
    }

    #[test]
    fn priorities_are_the_kernels() {
        assert_eq!(encoded(""), None);
        assert_eq!(encoded("nice=10"), None);
        assert_eq!(encoded("prio=3"), Some(2 << 13 | 3));
        assert_eq!(encoded("prioclass=1"), Some(1 << 13 | 4));
        assert_eq!(encoded("prioclass=3\nprio=2"), Some(3 << 13));
    }
}
