//! Serves the disks: takes commands from the driver, runs the device models, and commits each
//! command at the time its model gives.
//!
//! Polling would stop the guest's clock, so the server always sleeps: until a command arrives, or
//! until the models' next event. One process serves all members of an array, so that simultaneous
//! commands cost one wake-up.

use std::mem;
use std::sync::atomic::Ordering::SeqCst;

use io_uring::{IoUring, opcode, squeue, types};

use super::abi::{self, Numbers};
use super::member::Member;
use super::ring::Ring;
use super::timers::{self, CommandId, Completion, Timers};
use crate::clock;
use crate::failure::Failure;
use crate::server_turn::ServerTurn;
use crate::shared_memory::SharedMemory;

/// The server of all disks.
pub struct Server {
    pub(super) members: Vec<Member>,
    pub(super) shared: SharedMemory,
    virtual_time: bool,
    opcodes: Numbers,
    pub(super) ring: &'static mut IoUring,
    pub(super) timers: Timers,
    turn: ServerTurn,
    /// Guest time that is 0 for the models.
    pub(super) origin_ns: u64,
    /// The latest time known to have been reached.
    now_ns: u64,
    /// Scratch: disk and tag; time and tag.
    pub(super) arrived: Vec<CommandId>,
    done: Vec<(u64, u32)>,
}

impl Server {
    /// Fetches the first command of every tag.
    ///
    /// # Safety
    ///
    /// No other server may use the ring.
    pub unsafe fn open(
        members: Vec<Member>,
        virtual_time: bool,
        opcodes: Numbers,
        ring: Ring,
        turn: ServerTurn,
        shared: SharedMemory,
    ) -> Result<Self, Failure> {
        let mut server = Self {
            members,
            shared,
            virtual_time,
            opcodes,
            // SAFETY: the caller's duty.
            ring: unsafe { ring.of_server() },
            timers: Timers::default(),
            turn,
            origin_ns: 0,
            now_ns: 0,
            arrived: Vec::new(),
            done: Vec::new(),
        };
        for number in 0..server.members.len() {
            for tag in 0..server.members[number].depth {
                let entry = server.command(abi::IO_FETCH_REQ, (number, tag), 0);
                server.push(&[entry])?;
            }
        }
        Ok(server)
    }

    /// Serves until the guest ends.
    pub fn run(mut self) -> Result<(), Failure> {
        if self.virtual_time {
            self.turn.prepare();
        }
        self.ring.submit().map_err(|error| Failure::kernel("fetching commands", error))?;
        self.shared.server_ready.store(1, SeqCst);
        self.shared.notify();
        loop {
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(error) => return Err(Failure::kernel("waiting for commands", error)),
            }
            let fired_ns = self.take_completions()?;
            if self.shared.modelled.load(SeqCst) == 0 {
                self.answer_at_once()?;
            } else if self.turn == ServerTurn::First {
                self.interrupt()?;
            } else if fired_ns.is_some() || !self.arrived.is_empty() {
                self.pass_through_models(fired_ns)?;
            }
        }
    }

    /// Collects arrived commands; returns the time of the last timer that fired.
    pub(super) fn take_completions(&mut self) -> Result<Option<u64>, Failure> {
        let mut fired_ns = None;
        for entry in self.ring.completion() {
            match self.timers.classify(entry.user_data(), entry.result()) {
                Completion::Fired(moment_ns) => {
                    fired_ns = fired_ns.max(Some(moment_ns));
                    // At once: clones cannot read completions that were already seen.
                    self.shared.device_now_ns.fetch_max(moment_ns, SeqCst);
                }
                Completion::Arrived(place) => self.arrived.push(place),
                Completion::NotRemoved((number, tag)) => {
                    self.members[number].set_self_answered(tag, true);
                }
                Completion::Ignored => {}
                Completion::Failed(errno) => {
                    let error = std::io::Error::from_raw_os_error(errno);
                    return Err(Failure::kernel("fetching a command", error));
                }
            }
        }
        Ok(fired_ns)
    }

    /// During preparation the disks take no time.
    fn answer_at_once(&mut self) -> Result<(), Failure> {
        let mut arrived = mem::take(&mut self.arrived);
        for (number, tag) in arrived.drain(..) {
            self.members[number].transfer(tag);
            self.answer((number, tag))?;
        }
        self.arrived = arrived;
        Ok(())
    }

    fn pass_through_models(&mut self, fired_ns: Option<u64>) -> Result<(), Failure> {
        if self.origin_ns == 0 {
            self.origin_ns = self.shared.start_ns.load(SeqCst);
            if self.virtual_time {
                self.turn.begin();
            }
        }
        // A fired timer gives the time; a command may have arrived at any time after it, unless the
        // clock has not moved since.
        let known_ns = fired_ns.unwrap_or(self.now_ns);
        let fired_alone = fired_ns.is_some() && self.arrived.is_empty();
        let now_ns =
            if fired_alone || self.timers.is_still(known_ns) { known_ns } else { clock::now_ns() };
        self.now_ns = self.now_ns.max(now_ns);
        self.shared.device_now_ns.store(self.now_ns, SeqCst);
        let now_ns = self.now_ns.saturating_sub(self.origin_ns);
        let mut done = mem::take(&mut self.done);
        for number in 0..self.members.len() {
            self.members[number].model.runner.advance(now_ns, &mut done);
            for (done_ns, tag) in done.drain(..) {
                self.members[number].model.done(tag, done_ns);
                let tag = tag as u16;
                if self.members[number].is_self_answered(tag) {
                    self.members[number].set_self_answered(tag, false);
                } else {
                    self.answer((number, tag))?;
                }
            }
        }
        self.done = done;
        let mut arrived = mem::take(&mut self.arrived);
        for (number, tag) in arrived.drain(..) {
            self.members[number].take(tag, now_ns)?;
        }
        self.arrived = arrived;
        for member in &self.members {
            member.model.publish();
        }
        self.set_timer()?;
        self.guard()
    }

    /// Arms the guard behind the earliest timer. In host time the timer's moment has always passed by
    /// the time the server runs, so there is no guard, and no timer counts as giving the time.
    fn guard(&mut self) -> Result<(), Failure> {
        if !self.virtual_time {
            return Ok(());
        }
        match self.timers.guard() {
            Some(entry) => self.push(&[entry]),
            None => Ok(()),
        }
    }

    /// Arms a timer for the models' next event, unless an earlier one is armed.
    fn set_timer(&mut self) -> Result<(), Failure> {
        let next_ns = self.members.iter().filter_map(|member| member.model.runner.next_ns()).min();
        let Some(next_ns) = next_ns else { return Ok(()) };
        let moment_ns = self.origin_ns + next_ns;
        let alone = if self.virtual_time { self.completing_alone(next_ns) } else { None };
        match self.timers.earliest() {
            Some((earliest_ns, Some(place))) if earliest_ns == moment_ns => {
                if alone == Some(place) {
                    return Ok(());
                }
                // Another command completes at the same time: both are committed together, before any
                // process is woken.
                self.members[place.0].set_self_answered(place.1, false);
                let removal = self.timers.remove(moment_ns, place);
                self.push(&[removal])?;
                let timer = self.timers.set(moment_ns, None);
                self.push(&[timer])
            }
            Some((earliest_ns, _)) if earliest_ns <= moment_ns => Ok(()),
            _ => {
                let timer = self.timers.set(moment_ns, alone);
                let Some(place) = alone else { return self.push(&[timer]) };
                self.members[place.0].set_self_answered(place.1, true);
                let answer = self.answer_entry(place);
                self.push(&[timer, answer])
            }
        }
    }

    /// The command that completes at this time, if there is exactly one.
    fn completing_alone(&self, time_ns: u64) -> Option<CommandId> {
        let members = self.members.iter().enumerate();
        let mut completing = members.flat_map(|(number, member)| {
            member.model.runner.completing_at(time_ns).map(move |tag| (number, tag as u16))
        });
        let place = completing.next()?;
        completing.next().is_none().then_some(place)
    }

    /// Commits a command and fetches the next one on its tag.
    pub(super) fn answer(&mut self, place: CommandId) -> Result<(), Failure> {
        let entry = self.answer_entry(place);
        self.push(&[entry])
    }

    fn answer_entry(&self, place: CommandId) -> squeue::Entry {
        let bytes = self.members[place.0].moved_bytes(place.1);
        self.command(abi::IO_COMMIT_AND_FETCH_REQ, place, bytes as i32)
    }

    fn command(&self, operation: u32, place: CommandId, result: i32) -> squeue::Entry {
        let (number, tag) = place;
        let member = &self.members[number];
        let opcode = self.opcodes.io(operation);
        opcode::UringCmd16::new(types::Fd(member.descriptor_of_file()), opcode)
            .cmd(abi::io_command(tag, result, member.buffer(tag) as u64))
            .build()
            .user_data(timers::name(place))
    }

    /// Pushes linked entries into the ring.
    pub(super) fn push(&mut self, entries: &[squeue::Entry]) -> Result<(), Failure> {
        // SAFETY: entries point to memory that lives as long as the server.
        if unsafe { self.ring.submission().push_multiple(entries) }.is_ok() {
            return Ok(());
        }
        // The ring is full with many deep disks: submit first.
        self.ring.submit().map_err(|error| Failure::kernel("answering commands", error))?;
        // SAFETY: as above.
        unsafe { self.ring.submission().push_multiple(entries) }
            .map_err(|_| Failure::Internal { message: "the server's ring is full".to_owned() })
    }
}
