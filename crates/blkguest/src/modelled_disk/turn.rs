//! One turn: a system call that answers commands, announces the next ones to be done, and sleeps.

use std::fs::File;
use std::os::fd::AsRawFd;

use super::abi;
use crate::failure::Failure;

/// Why a turn ended.
#[derive(Debug, Clone, Copy)]
pub struct TurnEnd {
    /// The clock.
    pub now_ns: u64,
    /// The announced moment came: the kernel has answered the commands that were due then.
    pub reached: bool,
}

/// The lists of a turn.
#[derive(Debug)]
pub struct Turns {
    control: File,
    /// Names of commands that are done now.
    pub done: Vec<u32>,
    /// Names of those that are done at the next moment.
    pub due: Vec<u32>,
    /// The models' next event, on the guest's clock.
    pub moment_ns: Option<u64>,
    arrived: Vec<abi::Arrived>,
    nr_arrived: usize,
}

impl Turns {
    /// Turns for disks with this many tags in total.
    pub fn new(control: File, tags: usize) -> Self {
        Self {
            control,
            done: Vec::with_capacity(tags),
            due: Vec::with_capacity(tags),
            moment_ns: None,
            arrived: vec![abi::Arrived::default(); tags],
            nr_arrived: 0,
        }
    }

    /// Takes a turn.
    pub fn take(&mut self) -> Result<TurnEnd, Failure> {
        let mut turn = abi::Turn {
            done: self.done.as_ptr() as u64,
            due: self.due.as_ptr() as u64,
            moment_ns: self.moment_ns.unwrap_or(0),
            arrived: self.arrived.as_mut_ptr() as u64,
            nr_done: self.done.len() as u32,
            nr_due: self.due.len() as u32,
            nr_arrived: self.arrived.len() as u32,
            ..abi::Turn::default()
        };
        // SAFETY: all lists outlive the call, and have the lengths that it is given.
        while unsafe { libc::ioctl(self.control.as_raw_fd(), abi::TURN as _, &raw mut turn) } < 0 {
            let error = std::io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EINTR) {
                return Err(Failure::kernel("serving the disks", error));
            }
            turn.nr_done = 0;
            turn.nr_arrived = self.arrived.len() as u32;
        }
        self.done.clear();
        self.nr_arrived = turn.nr_arrived as usize;
        Ok(TurnEnd { now_ns: turn.now_ns, reached: turn.reached != 0 })
    }

    /// The commands that arrived during the last turn, in order.
    pub fn arrived(&self) -> &[abi::Arrived] {
        &self.arrived[..self.nr_arrived]
    }
}
