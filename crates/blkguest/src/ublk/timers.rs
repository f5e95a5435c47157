//! The timers of the server: when it must look again, and which command the kernel answers
//! by itself when the moment has come.
//!
//! A timer with an answer linked to it (`IOSQE_IO_LINK`) saves the server a system call: the kernel
//! answers and wakes the server afterwards, which then finds what came of it. A link carries one
//! answer only, since an answer is also the next fetch and so does not end.

use std::collections::BTreeMap;

use io_uring::{opcode, squeue, types};

use crate::clock;

/// Marks of completions; others carry a disk's number and a tag.
const TIMER: u64 = 1 << 63;
const GUARD: u64 = 1 << 62;
const MOVED: u64 = 1 << 61;
const REMOVED: u64 = 1 << 60;
const MARKS: u64 = TIMER | GUARD | MOVED | REMOVED;
/// Bits of a tag.
const TAG_BITS: u32 = 16;
/// How long after the earliest timer the guard comes. A sleeper whose moment is 1 ns after that timer may
/// wake with it (see [`clock::SLACK_NS`]), but would not if there were a timer in between, for which
/// the kernel would wait. Whatever moves the clock while somebody computes moves it further: a system call
/// that fails by 1 µs, a reading of the clock that is paid for by 1,024 ns.
const GUARD_NS: u64 = 1 + clock::SLACK_NS;
/// Where the guard is when it watches nothing.
const FAR_NS: u64 = 1 << 60;

/// A command: the disk's number, and the tag.
pub type Place = (usize, u16);

/// What a completion of the server's ring says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// A timer fired that was set for this moment.
    Fired(u64),
    /// A command came.
    Arrived(Place),
    /// The kernel will answer this one after all.
    NotRemoved(Place),
    /// Nothing that matters.
    Nothing,
    /// An errno.
    Failed(i32),
}

/// The name that a command's completions carry.
pub fn name(place: Place) -> u64 {
    (place.0 as u64) << TAG_BITS | u64::from(place.1)
}

/// The moment of a completion that is a timer's which fired.
pub fn fired(user_data: u64, result: i32) -> Option<u64> {
    (user_data & MARKS == TIMER && result == -libc::ETIME).then_some(user_data & !MARKS)
}

/// The timers that are set.
#[derive(Debug, Default)]
pub struct Timers {
    /// Their moments, each with the command that the kernel answers then. Each moment is that of an
    /// event of a model, and those are never taken back.
    set: BTreeMap<u64, Option<Place>>,
    /// A timer [`GUARD_NS`] after the earliest one: as long as it has not fired, the clock still shows
    /// the moment of that one. It is there once it is needed.
    guard_ns: Option<u64>,
    /// For the kernel to copy on the next submission: a timer's moment and the guard's.
    moments: Box<[types::Timespec; 2]>,
}

impl Timers {
    /// Understands a completion.
    pub fn hear(&mut self, user_data: u64, result: i32) -> Said {
        let rest = user_data & !MARKS;
        let place = ((rest >> TAG_BITS) as usize, rest as u16);
        match user_data & MARKS {
            TIMER if result == -libc::ETIME => {
                self.set.remove(&rest);
                Said::Fired(rest)
            }
            GUARD => {
                self.guard_ns = None;
                Said::Nothing
            }
            REMOVED if result < 0 => Said::NotRemoved(place),
            TIMER | MOVED | REMOVED => Said::Nothing,
            _ if result == 0 => Said::Arrived(place),
            // An answer whose timer was removed.
            _ if result == -libc::ECANCELED => Said::Nothing,
            _ => Said::Failed(-result),
        }
    }

    /// Whether the clock still shows the moment of a timer that fired.
    pub fn is_still(&self, fired_ns: u64) -> bool {
        self.guard_ns == Some(fired_ns + GUARD_NS)
    }

    /// The earliest timer.
    pub fn earliest(&self) -> Option<(u64, Option<Place>)> {
        self.set.first_key_value().map(|(moment_ns, place)| (*moment_ns, *place))
    }

    /// Sets a timer; where it carries a command, that one's answer is to follow in a link.
    pub fn set(&mut self, moment_ns: u64, answered: Option<Place>) -> squeue::Entry {
        self.set.insert(moment_ns, answered);
        self.moments[0] = timespec(moment_ns);
        let flags = types::TimeoutFlags::ABS | types::TimeoutFlags::ETIME_SUCCESS;
        let entry = opcode::Timeout::new(&raw const self.moments[0]).flags(flags).build();
        let entry = entry.user_data(TIMER | moment_ns);
        if answered.is_some() { entry.flags(squeue::Flags::IO_LINK) } else { entry }
    }

    /// Takes back a timer that carries a command.
    pub fn remove(&mut self, moment_ns: u64, answered: Place) -> squeue::Entry {
        self.set.remove(&moment_ns);
        opcode::TimeoutRemove::new(TIMER | moment_ns).build().user_data(REMOVED | name(answered))
    }

    /// Moves the guard behind the earliest timer, if it is elsewhere. To be called after each look at
    /// what came, so that the guard never fires by itself: sleepers with slack would wake with it.
    pub fn guard(&mut self) -> Option<squeue::Entry> {
        let moment_ns = self.earliest().map_or(FAR_NS, |(moment_ns, _)| moment_ns + GUARD_NS);
        if self.guard_ns == Some(moment_ns) {
            return None;
        }
        self.moments[1] = timespec(moment_ns);
        let moment = &raw const self.moments[1];
        let flags = types::TimeoutFlags::ABS;
        // Moving it says something only if it had fired meanwhile, which it says itself too.
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
    fn completions_say_what_happened() {
        let mut timers = Timers::default();
        timers.set(MOMENT_NS, None);
        assert_eq!(timers.hear(name((31, 4095)), 0), Said::Arrived((31, 4095)));
        assert_eq!(timers.hear(name((0, 7)), -libc::EIO), Said::Failed(libc::EIO));
        assert_eq!(timers.hear(TIMER | MOMENT_NS, FIRED), Said::Fired(MOMENT_NS));
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
            assert_eq!(timers.hear(user_data, result), Said::Nothing);
            assert_eq!(fired(user_data, result), None);
        }
        assert_eq!(timers.earliest(), Some((MOMENT_NS, None)));
    }

    #[test]
    fn a_timer_that_fired_before_its_removal_answers_all_the_same() {
        let mut timers = Timers::default();
        timers.set(MOMENT_NS, Some((1, 2)));
        timers.remove(MOMENT_NS, (1, 2));
        let said = timers.hear(REMOVED | name((1, 2)), -libc::ENOENT);
        assert_eq!(said, Said::NotRemoved((1, 2)));
    }

    #[test]
    fn the_guard_tells_whether_the_clock_has_moved() {
        let mut timers = Timers::default();
        timers.set(MOMENT_NS, None);
        timers.set(900, None);
        assert!(timers.guard().is_some());
        assert!(timers.is_still(MOMENT_NS) && !timers.is_still(900));
        assert!(timers.guard().is_none(), "it is there already");
        timers.hear(TIMER | MOMENT_NS, FIRED);
        assert!(timers.is_still(MOMENT_NS), "only the guard itself says that time has passed");
        timers.hear(GUARD, FIRED);
        assert!(!timers.is_still(MOMENT_NS));
        assert!(timers.guard().is_some() && timers.is_still(900));
    }
}
