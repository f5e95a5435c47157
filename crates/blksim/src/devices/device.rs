//! The device trait: commands go in, completions come out.
//!
//! A device never moves time. It receives the time, and enters its future into an [`Outbox`]:
//! completions of commands, and calls to itself. The engine keeps one event queue for everything;
//! [`Runner`] drives a device alone, for a user with its own clock.

use crate::block::request::Operation;
use crate::core::event::{Class, Event, EventQueue};

/// One command to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// The user's number for it, returned on completion.
    pub id: u32,
    pub operation: Operation,
    pub sector: u64,
    pub nr_sectors: u32,
    /// The submission queue that it comes from: the hardware queue's number.
    pub queue: u16,
}

/// The properties of a device that the host may know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    pub capacity_bytes: u64,
    pub rotational: bool,
    /// Commands that it takes at once from each hardware queue, or from all if they share tags. The
    /// host never has more in flight.
    pub queue_depth: u32,
    /// Hardware queues; by default, a device with several runs without a scheduler. A machine uses at
    /// most one for each processor.
    pub nr_hw_queues: u32,
    /// All of them have the tags of one (`BLK_MQ_F_TAG_HCTX_SHARED`), as SCSI host adapters do.
    pub shares_tags: bool,
    /// It takes bios, not requests: it has no request queue and no scheduler, and the submitting task
    /// does its work.
    pub bio_based: bool,
    /// It has a volatile write cache, which a flush empties.
    pub volatile_cache: bool,
    /// It takes discards.
    pub discards: bool,
    /// Largest command in KiB.
    pub max_hw_sectors_kb: u32,
}

/// The outbox for a device's completions and timers.
#[derive(Debug)]
pub struct Outbox<'a> {
    events: &'a mut EventQueue,
    disk: u8,
}

/// Bits of a device's own event numbers; the rest tells the disk.
const WAKE_BITS: u32 = 24;

impl<'a> Outbox<'a> {
    #[inline]
    pub fn new(events: &'a mut EventQueue, disk: u8) -> Self {
        Self { events, disk }
    }

    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.events.now_ns()
    }

    /// Command `id` completes at `time_ns`.
    #[inline]
    pub fn complete_at(&mut self, time_ns: u64, id: u32) {
        // Every command takes time: a device that answered at once could
        // hold a closed loop at one moment for ever.
        self.events.at(time_ns.max(self.events.now_ns() + 1), Class::Complete, id);
    }

    /// The device wants [`Device::wake`] with this number (below 2^24) at `time_ns`.
    #[inline]
    pub fn wake_at(&mut self, time_ns: u64, number: u32) {
        debug_assert!(number < 1 << WAKE_BITS);
        self.events.at(time_ns, Class::DeviceWake, u32::from(self.disk) << WAKE_BITS | number);
    }

    /// Disk and number of a wake event's subject.
    pub(crate) fn split_wake(subject: u32) -> (u8, u32) {
        ((subject >> WAKE_BITS) as u8, subject & ((1 << WAKE_BITS) - 1))
    }
}

/// Until when a unit of a device, such as a flash drive's die, is busy, as far as is known now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitTimes {
    pub reads_end_ns: u64,
    /// End of its programs and erases, which reads suspend.
    pub work_end_ns: u64,
}

/// A model of a device.
pub trait Device {
    /// Its properties.
    fn facts(&self) -> &Facts;

    /// Takes a command. The device must complete it exactly once, through the outbox.
    fn submit(&mut self, command: Command, outbox: &mut Outbox);

    /// A completion that it entered is due.
    fn completed(&mut self, _id: u32, _outbox: &mut Outbox) {}

    /// A timer that it asked for is due.
    fn wake(&mut self, _number: u32, _outbox: &mut Outbox) {}

    /// True if a thread of the machine itself serves it.
    fn is_served_by_thread(&self) -> bool {
        false
    }

    /// The thread's work on a command, of which the machine's cost table says what it takes without the copying,
    /// and what the copying of its data takes.
    fn thread_work_ns(&self, _operation: Operation, command_ns: u64, copying_ns: u64) -> u64 {
        command_ns + copying_ns
    }

    /// The thread has worked for so long on a command.
    fn worked(&mut self, _work_ns: u64) {}

    /// Position of the head, for the timeline.
    fn head_sector(&self) -> Option<u64> {
        None
    }

    /// For each unit that works beside the others (a flash drive's die): until when it is busy.
    /// Empty if there is only one.
    fn units(&self) -> Vec<UnitTimes> {
        Vec::new()
    }

    /// Nanoseconds for which at least part of the medium was busy.
    fn busy_ns(&self) -> u64;
}

/// A device alone: submit, ask for the next event, advance.
///
/// ```
/// use blksim::block::request::Operation;
/// use blksim::devices;
/// use blksim::devices::device::{Command, Runner};
///
/// let device = devices::build("fixed", &[("latency", "200us")], "example", 1)?;
/// let mut runner = Runner::new(device);
/// runner.submit(1_000, Command { id: 7, operation: Operation::Read, sector: 0, nr_sectors: 8, queue: 0 });
/// assert_eq!(runner.next_ns(), Some(201_000));
/// let mut done = Vec::new();
/// runner.advance(201_000, &mut done);
/// assert_eq!(done, [(201_000, 7)]);
/// # Ok::<(), blksim::core::error::ProfileError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Runner<D> {
    device: D,
    events: EventQueue,
}

impl<D: Device> Runner<D> {
    pub fn new(device: D) -> Self {
        Self { device, events: EventQueue::new() }
    }

    pub fn device(&self) -> &D {
        &self.device
    }

    /// Submits a command at `now_ns`, which must not be before the last time given, nor after the
    /// next event.
    pub fn submit(&mut self, now_ns: u64, command: Command) {
        self.events.move_to(now_ns);
        self.device.submit(command, &mut Outbox::new(&mut self.events, 0));
    }

    /// The time of the next event.
    pub fn next_ns(&self) -> Option<u64> {
        self.events.next_ns()
    }

    /// Commands that complete at exactly `time_ns`, as far as is certain now, in no particular
    /// order. They stay certain; a later command may join them.
    pub fn completing_at(&self, time_ns: u64) -> impl Iterator<Item = u32> + '_ {
        self.events.subjects_at(time_ns, Class::Complete)
    }

    /// Runs up to and including `now_ns` and appends (moment, id) of completed commands.
    pub fn advance(&mut self, now_ns: u64, done: &mut Vec<(u64, u32)>) {
        while self.events.next_ns().is_some_and(|next| next <= now_ns) {
            let Some(Event { time_ns, class, subject }) = self.events.advance() else { break };
            let mut outbox = Outbox::new(&mut self.events, 0);
            match class {
                Class::Complete => {
                    self.device.completed(subject, &mut outbox);
                    done.push((time_ns, subject));
                }
                _ => self.device.wake(Outbox::split_wake(subject).1, &mut outbox),
            }
        }
        self.events.move_to(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices;

    #[test]
    fn commands_tell_when_they_will_be_completed() {
        let device = devices::build("fixed", &[("latency", "100us")], "test", 1).unwrap();
        let mut runner = Runner::new(device);
        let read =
            |id| Command { id, operation: Operation::Read, sector: 0, nr_sectors: 8, queue: 0 };
        runner.submit(0, read(1));
        runner.submit(0, read(2));
        runner.submit(5, read(3));
        let at = |runner: &Runner<_>, time_ns| {
            let mut ids: Vec<u32> = runner.completing_at(time_ns).collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!((at(&runner, 100_000), at(&runner, 100_005)), (vec![1, 2], vec![3]));
        runner.advance(100_000, &mut Vec::new());
        assert_eq!((at(&runner, 100_000), at(&runner, 100_005)), (vec![], vec![3]));
    }
}
