//! Serves the disks: commands come from the driver, go through the device models,
//! and are answered at the moment that the model says.
//!
//! A server that polled would stop the guest's clock, so that it only ever
//! sleeps: for a command, or for the moment of the models' next event. One process
//! serves all members of an array, so that commands of one moment cost one wake-up.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::SeqCst;

use io_uring::{IoUring, cqueue, opcode, squeue, types};

use super::abi::{self, Numbers};
use super::member::Member;
use crate::board::Shared;
use crate::clock;
use crate::failure::Failure;

/// Marks a completion as that of a timer; others carry a disk's number and a tag.
const TIMER: u64 = 1 << 63;
/// Bits of a tag.
const TAG_BITS: u32 = 16;
/// `IORING_MAX_ENTRIES` of `io_uring/io_uring.c`, Linux 6.1.
const MAX_ENTRIES: u32 = 32_768;

/// The server of all disks.
pub struct Server {
    members: Vec<Member>,
    shared: Shared,
    virtual_time: bool,
    opcodes: Numbers,
    ring: IoUring<squeue::Entry, cqueue::Entry>,
    /// Moments for which a timer is set. Each is that of an event of a model, and
    /// those are never taken back, so that no timer is ever cancelled.
    timers: BTreeSet<u64>,
    /// The newest timer's moment, for the kernel to copy on the next submission.
    timer: Box<types::Timespec>,
    /// The moment that is 0 to the models.
    origin_ns: u64,
    /// The newest moment that is known to have come.
    now_ns: u64,
    /// Scratch: disk and tag; moment and tag.
    arrived: Vec<(usize, u16)>,
    done: Vec<(u64, u32)>,
}

impl Server {
    /// Offers to take commands for the disks.
    pub fn open(
        members: Vec<Member>,
        virtual_time: bool,
        opcodes: Numbers,
        shared: Shared,
    ) -> Result<Self, Failure> {
        // A timer, an answer and a fetch for each tag may be on their way at once.
        let tags: u32 = members.iter().map(|member| u32::from(member.depth)).sum();
        let entries = (tags * 2 + 8).next_power_of_two().min(MAX_ENTRIES);
        let ring = IoUring::builder()
            .build(entries)
            .map_err(|error| Failure::kernel("creating the server's ring", error))?;
        let mut server = Self {
            members,
            shared,
            virtual_time,
            opcodes,
            ring,
            timers: BTreeSet::new(),
            timer: Box::default(),
            origin_ns: 0,
            now_ns: 0,
            arrived: Vec::new(),
            done: Vec::new(),
        };
        for number in 0..server.members.len() {
            for tag in 0..server.members[number].depth {
                server.command(abi::IO_FETCH_REQ, number, tag, 0)?;
            }
        }
        Ok(server)
    }

    /// Serves until the guest ends.
    pub fn run(mut self) -> Result<(), Failure> {
        if self.virtual_time {
            be_last();
        }
        self.ring.submit().map_err(|error| Failure::kernel("fetching commands", error))?;
        self.shared.server_ready.store(1, SeqCst);
        self.shared.ring();
        loop {
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(error) => return Err(Failure::kernel("waiting for commands", error)),
            }
            let fired_ns = self.take_completions()?;
            if self.shared.modelled.load(SeqCst) == 0 {
                self.answer_at_once()?;
            } else {
                self.pass_through_models(fired_ns)?;
            }
        }
    }

    /// Collects commands that arrived; returns the moment of the last timer that fired.
    fn take_completions(&mut self) -> Result<Option<u64>, Failure> {
        let mut fired_ns = None;
        for entry in self.ring.completion() {
            let (subject, result) = (entry.user_data(), entry.result());
            if subject & TIMER != 0 {
                let moment_ns = subject & !TIMER;
                self.timers.remove(&moment_ns);
                fired_ns = fired_ns.max(Some(moment_ns));
            } else if result == 0 {
                self.arrived.push(((subject >> TAG_BITS) as usize, subject as u16));
            } else {
                let error = std::io::Error::from_raw_os_error(-result);
                return Err(Failure::kernel("fetching a command", error));
            }
        }
        Ok(fired_ns)
    }

    /// While the experiment is being prepared, the disks take no time.
    fn answer_at_once(&mut self) -> Result<(), Failure> {
        let mut arrived = std::mem::take(&mut self.arrived);
        for (number, tag) in arrived.drain(..) {
            self.members[number].transfer(tag);
            self.answer(number, tag)?;
        }
        self.arrived = arrived;
        Ok(())
    }

    fn pass_through_models(&mut self, fired_ns: Option<u64>) -> Result<(), Failure> {
        if self.origin_ns == 0 {
            self.origin_ns = self.shared.start_ns.load(SeqCst);
        }
        // A timer that fired tells the time; anything else may come at any moment.
        let now_ns = match fired_ns {
            Some(moment_ns) if self.arrived.is_empty() => moment_ns,
            _ => clock::now_ns(),
        };
        self.now_ns = self.now_ns.max(now_ns);
        self.shared.device_now_ns.store(self.now_ns, SeqCst);
        let now_ns = self.now_ns.saturating_sub(self.origin_ns);
        let mut done = std::mem::take(&mut self.done);
        for number in 0..self.members.len() {
            self.members[number].runner.advance(now_ns, &mut done);
            for (_, tag) in done.drain(..) {
                self.members[number].done();
                self.answer(number, tag as u16)?;
            }
        }
        self.done = done;
        let mut arrived = std::mem::take(&mut self.arrived);
        for (number, tag) in arrived.drain(..) {
            self.members[number].take(tag, now_ns)?;
        }
        self.arrived = arrived;
        for member in &self.members {
            member.publish();
        }
        self.set_timer()
    }

    /// Sets a timer for the models' next event, unless there is an earlier one.
    fn set_timer(&mut self) -> Result<(), Failure> {
        let next_ns = self.members.iter().filter_map(|member| member.runner.next_ns()).min();
        let Some(next_ns) = next_ns else { return Ok(()) };
        let moment_ns = self.origin_ns + next_ns;
        if self.timers.first().is_some_and(|earliest| *earliest <= moment_ns) {
            return Ok(());
        }
        self.timers.insert(moment_ns);
        *self.timer = types::Timespec::new()
            .sec(moment_ns / 1_000_000_000)
            .nsec((moment_ns % 1_000_000_000) as u32);
        let entry = opcode::Timeout::new(&raw const *self.timer)
            .flags(types::TimeoutFlags::ABS)
            .build()
            .user_data(TIMER | moment_ns);
        self.push(&entry)
    }

    /// Answers a command and asks for the next one on its tag.
    fn answer(&mut self, number: usize, tag: u16) -> Result<(), Failure> {
        let bytes = self.members[number].moved_bytes(tag);
        self.command(abi::IO_COMMIT_AND_FETCH_REQ, number, tag, bytes as i32)
    }

    fn command(
        &mut self,
        operation: u32,
        number: usize,
        tag: u16,
        result: i32,
    ) -> Result<(), Failure> {
        let member = &self.members[number];
        let opcode = self.opcodes.io(operation);
        let entry = opcode::UringCmd16::new(types::Fd(member.descriptor_of_file()), opcode)
            .cmd(abi::io_command(tag, result, member.buffer(tag) as u64))
            .build()
            .user_data((number as u64) << TAG_BITS | u64::from(tag));
        self.push(&entry)
    }

    fn push(&mut self, entry: &squeue::Entry) -> Result<(), Failure> {
        // SAFETY: entries point to memory that lives as long as the server.
        if unsafe { self.ring.submission().push(entry) }.is_ok() {
            return Ok(());
        }
        // Many deep disks: what is in the ring goes first.
        self.ring.submit().map_err(|error| Failure::kernel("answering commands", error))?;
        // SAFETY: as above.
        unsafe { self.ring.submission().push(entry) }
            .map_err(|_| Failure::Internal { message: "the server's ring is full".to_owned() })
    }
}

/// Lets everybody else run first, so that commands of one moment come together: fewer wake-ups,
/// each of which is dear. No guest time passes meanwhile, and the order stays that of arrival.
fn be_last() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is valid for the call. Without it everything is slower, no more.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
}
