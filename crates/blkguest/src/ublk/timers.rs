//! The server's timers: the times at which it must wake, and the commands that the kernel then
//! commits by itself.
//!
//! Linking a commit to a timer (`IOSQE_IO_LINK`) saves the server a system call: the kernel commits
//! first and wakes the server afterwards. A link carries one commit only, since a commit is also the
//! next fetch and so does not complete.

use std::collections::BTreeMap;

use io_uring::{opcode, squeue, types};

use crate::clock;

/// Values of `user_data` that are not a disk's number and a tag.
const TIMER: u64 = 1 << 63;
const GUARD: u64 = 1 << 62;
const MOVED: u64 = 1 << 61;
const REMOVED: u64 = 1 << 60;
const MARKS: u64 = TIMER | GUARD | MOVED | REMOVED;
/// Bits of a tag.
const TAG_BITS: u32 = 16;
/// Delay of the guard after the earliest timer. A sleeper due 1 ns after that timer may wake with it
/// (see [`clock::SLACK_NS`]), but not with another timer in between, for which the kernel would wait.
/// Anything that advances the clock during computation advances it further: a failed system call
/// by 1 µs, a charged clock reading by 1,024 ns.
const GUARD_NS: u64 = 1 + clock::SLACK_NS;
/// The guard's time while no timer is armed.
const FAR_NS: u64 = 1 << 60;

/// A command: the disk's number and the tag.
pub type CommandId = (usize, u16);

/// Meaning of a completion on the server's ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// The timer armed for this time fired.
    Fired(u64),
    /// A command arrived.
    Arrived(CommandId),
    /// The kernel commits this command after all.
    NotRemoved(CommandId),
    /// No effect.
    Ignored,
    /// An errno.
    Failed(i32),
}

/// The `user_data` of a command's completions.
pub fn name(place: CommandId) -> u64 {
    (place.0 as u64) << TAG_BITS | u64::from(place.1)
}

/// The time of a fired timer's completion; `None` for any other completion.
pub fn fired(user_data: u64, result: i32) -> Option<u64> {
    (user_data & MARKS == TIMER && result == -libc::ETIME).then_some(user_data & !MARKS)
}

/// The armed timers.
#[derive(Debug, Default)]
pub struct Timers {
    /// Their times, each with the command that the kernel commits then. Each is the time of a model's
    /// event, and events are never cancelled.
    set: BTreeMap<u64, Option<CommandId>>,
    /// A timer [`GUARD_NS`] after the earliest one: until it fires, the clock still shows that timer's
    /// time. Armed when first needed.
    guard_ns: Option<u64>,
    /// Times of a timer and of the guard, for the kernel to copy on the next submission.
    moments: Box<[types::Timespec; 2]>,
}

impl Timers {
    /// Classifies a completion.
    pub fn classify(&mut self, user_data: u64, result: i32) -> Completion {
        let rest = user_data & !MARKS;
        let place = ((rest >> TAG_BITS) as usize, rest as u16);
        match user_data & MARKS {
            TIMER if result == -libc::ETIME => {
                self.set.remove(&rest);
                Completion::Fired(rest)
            }
            GUARD => {
                self.guard_ns = None;
                Completion::Ignored
            }
            REMOVED if result < 0 => Completion::NotRemoved(place),
            TIMER | MOVED | REMOVED => Completion::Ignored,
            _ if result == 0 => Completion::Arrived(place),
            // A commit whose timer was removed.
            _ if result == -libc::ECANCELED => Completion::Ignored,
            _ => Completion::Failed(-result),
        }
    }

    /// Whether the clock still shows the time of a timer that fired.
    pub fn is_still(&self, fired_ns: u64) -> bool {
        self.guard_ns == Some(fired_ns + GUARD_NS)
    }

    /// The earliest timer.
    pub fn earliest(&self) -> Option<(u64, Option<CommandId>)> {
        self.set.first_key_value().map(|(moment_ns, place)| (*moment_ns, *place))
    }

    /// Arms a timer; if it carries a command, the caller must link that command's commit to it.
    pub fn set(&mut self, moment_ns: u64, answered: Option<CommandId>) -> squeue::Entry {
        self.set.insert(moment_ns, answered);
        self.moments[0] = timespec(moment_ns);
        let flags = types::TimeoutFlags::ABS | types::TimeoutFlags::ETIME_SUCCESS;
        let entry = opcode::Timeout::new(&raw const self.moments[0]).flags(flags).build();
        let entry = entry.user_data(TIMER | moment_ns);
        if answered.is_some() { entry.flags(squeue::Flags::IO_LINK) } else { entry }
    }

    /// Cancels a timer that carries a command.
    pub fn remove(&mut self, moment_ns: u64, answered: CommandId) -> squeue::Entry {
        self.set.remove(&moment_ns);
        opcode::TimeoutRemove::new(TIMER | moment_ns).build().user_data(REMOVED | name(answered))
    }

    /// Moves the guard behind the earliest timer, if it is elsewhere. Call after each batch of completions,
    /// so that the guard never fires first: sleepers with slack would wake with it.
    pub fn guard(&mut self) -> Option<squeue::Entry> {
        let moment_ns = self.earliest().map_or(FAR_NS, |(moment_ns, _)| moment_ns + GUARD_NS);
        if self.guard_ns == Some(moment_ns) {
            return None;
        }
        self.moments[1] = timespec(moment_ns);
        let moment = &raw const self.moments[1];
        let flags = types::TimeoutFlags::ABS;
        // The update fails only if the guard has fired meanwhile, and then the guard's own completion says so.
        Some(match self.guard_ns.replace(moment_ns) {
            Some(_) => opcode::TimeoutUpdate::new(GUARD, moment)
                .flags(flags)
                .build()
                .user_data(MOVED)
                .flags(squeue::Flags::SKIP_SUCCESS),
            None => opcode::Timeout::new(moment).flags(flags).build().user_data(GUARD),
        })
    }
}

fn timespec(moment_ns: u64) -> types::Timespec {
    types::Timespec::new().sec(moment_ns / 1_000_000_000).nsec((moment_ns % 1_000_000_000) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRED: i32 = -libc::ETIME;
    const MOMENT_NS: u64 = 500;

    #[test]
    fn completions_are_classified() {
        let mut timers = Timers::default();
        timers.set(MOMENT_NS, None);
        assert_eq!(timers.classify(name((31, 4095)), 0), Completion::Arrived((31, 4095)));
        assert_eq!(timers.classify(name((0, 7)), -libc::EIO), Completion::Failed(libc::EIO));
        assert_eq!(timers.classify(TIMER | MOMENT_NS, FIRED), Completion::Fired(MOMENT_NS));
        assert_eq!((timers.earliest(), fired(TIMER | MOMENT_NS, FIRED)), (None, Some(MOMENT_NS)));
        assert_eq!((fired(name((0, 7)), 0), fired(GUARD, FIRED)), (None, None));
    }

    #[test]
    fn a_removed_timer_takes_its_answer_with_it() {
        let mut timers = Timers::default();
        timers.set(MOMENT_NS, Some((1, 2)));
        timers.remove(MOMENT_NS, (1, 2));
        timers.set(MOMENT_NS, None);
        for (user_data, result) in [
            (REMOVED | name((1, 2)), 0),
            (TIMER | MOMENT_NS, -libc::ECANCELED),
            (name((1, 2)), -libc::ECANCELED),
        ] {
            assert_eq!(timers.classify(user_data, result), Completion::Ignored);
            assert_eq!(fired(user_data, result), None);
        }
        assert_eq!(timers.earliest(), Some((MOMENT_NS, None)));
    }

    #[test]
    fn a_timer_that_fired_before_its_removal_still_commits() {
        let mut timers = Timers::default();
        timers.set(MOMENT_NS, Some((1, 2)));
        timers.remove(MOMENT_NS, (1, 2));
        let said = timers.classify(REMOVED | name((1, 2)), -libc::ENOENT);
        assert_eq!(said, Completion::NotRemoved((1, 2)));
    }

    #[test]
    fn the_guard_detects_that_the_clock_has_moved() {
        let mut timers = Timers::default();
        timers.set(MOMENT_NS, None);
        timers.set(900, None);
        assert!(timers.guard().is_some());
        assert!(timers.is_still(MOMENT_NS) && !timers.is_still(900));
        assert!(timers.guard().is_none(), "it is there already");
        timers.classify(TIMER | MOMENT_NS, FIRED);
        assert!(timers.is_still(MOMENT_NS), "only the guard itself says that time has passed");
        timers.classify(GUARD, FIRED);
        assert!(!timers.is_still(MOMENT_NS));
        assert!(timers.guard().is_some() && timers.is_still(900));
    }
}
