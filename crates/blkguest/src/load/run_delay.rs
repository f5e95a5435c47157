//! The time that a thread was ready and had no processor.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// `/proc/thread-self/schedstat` (`proc_pid_schedstat` in fs/proc/base.c, Linux 6.18); kernels without `CONFIG_SCHED_INFO`
/// have none.
#[derive(Debug)]
pub struct RunDelay(File);

impl RunDelay {
    /// Of the calling thread, whichever asks later.
    pub fn of_this_thread() -> Option<Self> {
        File::open("/proc/thread-self/schedstat").ok().map(Self)
    }

    /// In all so far; 0 if the kernel does not say.
    pub fn so_far_ns(&self) -> u64 {
        let mut text = [0; 64];
        let length = self.0.read_at(&mut text, 0).unwrap_or(0);
        second_number(&text[..length])
    }
}

fn second_number(text: &[u8]) -> u64 {
    let digits = text.split(|byte| *byte == b' ').nth(1).unwrap_or(&[]);
    digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0, |number: u64, byte| number.wrapping_mul(10).wrapping_add(u64::from(byte - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_second_of_three_numbers() {
        assert_eq!(second_number(b"479514 58377 1\n"), 58377);
        assert_eq!(second_number(b"5 7\n"), 7);
        assert_eq!(second_number(b""), 0);
    }

    #[test]
    fn it_grows() {
        let Some(delay) = RunDelay::of_this_thread() else { return };
        let before_ns = delay.so_far_ns();
        assert!(delay.so_far_ns() >= before_ns);
    }
}
