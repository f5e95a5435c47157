//! The processors of this machine.

use std::{io, mem};

use blksim::workload::replay::TaskPlan;

use crate::failure::{Failure, checked};

/// The processors that this process may use, in order; empty if the kernel does not tell.
pub fn allowed() -> Vec<u16> {
    // SAFETY: a set of no processor is all zeroes.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: the pointer is to a set of that size.
    let result = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
    if result != 0 {
        return Vec::new();
    }
    // SAFETY: all numbers lie within the set.
    (0..libc::CPU_SETSIZE as u16)
        .filter(|number| unsafe { libc::CPU_ISSET((*number).into(), &set) })
        .collect()
}

/// The processor that a task has stayed on, if this machine has as many as the recorded one.
pub fn home(plan: &TaskPlan, allowed: &[u16]) -> Option<u16> {
    let home = plan.home.filter(|home| allowed.len() >= home.of.into())?;
    allowed.contains(&home.processor).then_some(home.processor)
}

/// Keeps this process to one processor.
pub fn keep_to(number: u16) -> Result<(), Failure> {
    // SAFETY: a set of no processor is all zeroes.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    if i32::from(number) >= libc::CPU_SETSIZE {
        let error = io::Error::from_raw_os_error(libc::EINVAL);
        return Err(Failure::kernel(format!("keeping to processor {number}"), error));
    }
    // SAFETY: the number lies within the set.
    unsafe { libc::CPU_SET(number.into(), &mut set) };
    // SAFETY: the pointer is to a set of that size.
    let result = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
    checked(&format!("keeping to processor {number}"), result)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use blksim::workload::replay::Home;

    #[test]
    fn a_task_comes_home_if_there_are_as_many_processors() {
        let plan =
            |processor, of| TaskPlan { home: Some(Home { processor, of }), ..TaskPlan::default() };
        assert_eq!(home(&plan(1, 2), &[0, 1]), Some(1));
        assert_eq!(home(&plan(1, 2), &[0, 1, 2, 3]), Some(1));
        assert_eq!(home(&plan(1, 4), &[0, 1]), None);
        // As many, but not that one.
        assert_eq!(home(&plan(1, 2), &[2, 3]), None);
        assert_eq!(home(&TaskPlan::default(), &[0, 1]), None);
    }

    #[test]
    fn a_process_is_kept_to_a_processor() {
        let before = allowed();
        let last = *before.last().unwrap();
        // Of this thread alone.
        keep_to(last).unwrap();
        assert_eq!(allowed(), [last]);
        assert!(keep_to(u16::MAX).is_err());
    }
}
