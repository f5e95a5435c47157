//! From the bytes of the ring buffer to I/Os and task events (`struct event` of
//! `kernel/bpf/blkrecord.bpf.c`).

use blkrecord::io::{Flags, Io, Moment, Operation, UNKNOWN_PROCESSOR, UNKNOWN_SEGMENTS};
use blkrecord::names::Names;
use blkrecord::task_event::{TaskEvent, TaskEventKind};

use rustc_hash::FxHashMap;

use super::cgroups::CgroupPaths;

/// Bytes of `struct entry`.
pub const ENTRY_BYTES: usize = 104;
/// Bytes of `struct event`.
pub const EVENT_BYTES: usize = 120;

/// Commands that are remembered; a program can give its threads any number of them.
const MOST_COMMANDS: usize = 1 << 16;

/// The subject of an event.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Io(Io),
    Task(TaskEvent),
}

/// Reads events: knows the names that they refer to.
#[derive(Debug)]
pub struct Decoder {
    began_ns: u64,
    cgroups: CgroupPaths,
    /// Numbers of commands, by the kernel's 16 bytes of them.
    commands: FxHashMap<[u8; 16], u32>,
}

impl Decoder {
    /// Moments count from `began_ns`.
    pub fn new(began_ns: u64, cgroups: CgroupPaths) -> Self {
        Self { began_ns, cgroups, commands: FxHashMap::default() }
    }

    /// Reads an event; `None` for one of an unknown kind.
    #[inline]
    pub fn read(&mut self, event: &[u8], names: &mut Names) -> Option<Kind> {
        let event: &[u8; EVENT_BYTES] = event.first_chunk()?;
        let kind = match short(event, 112) {
            0 => {
                let mut io = self.io(event.first_chunk()?, names);
                io.completed = self.moment(long(event, 104));
                io.ioprio = short(event, 114);
                io.error = error_number(short(event, 116) as u8);
                return Some(Kind::Io(io));
            }
            1 => TaskEventKind::Fork,
            2 => TaskEventKind::Exit,
            _ => return None,
        };
        let (parent, tid) = (word(event, 80), word(event, 84));
        let command = self.command(chunk(event, 56), names);
        Some(Kind::Task(TaskEvent { at: self.moment(long(event, 0)), kind, tid, parent, command }))
    }

    /// An I/O under way (`struct entry`).
    #[inline]
    pub fn io(&mut self, entry: &[u8; ENTRY_BYTES], names: &mut Names) -> Io {
        let at = |offset| self.moment(long(entry, offset));
        let bytes = word(entry, 72);
        let (mut operation, flags) = operation(word(entry, 76));
        if bytes == 0 && flags.contains(Flags::PREFLUSH) {
            operation = Operation::Flush;
        }
        let mut io = Io::new(at(0), operation, long(entry, 40), u64::from(bytes));
        (io.split, io.merged, io.flags) = (at(8), at(16), flags);
        (io.inserted, io.issued) = (at(24), at(32));
        io.cgroup = self.cgroups.name_of(long(entry, 48), names);
        io.command = self.command(chunk(entry, 56), names);
        (io.tgid, io.tid, io.device) = (word(entry, 80), word(entry, 84), word(entry, 88));
        io.processor = u16::try_from(word(entry, 92)).unwrap_or(UNKNOWN_PROCESSOR);
        io.segments = u16::try_from(word(entry, 100)).unwrap_or(UNKNOWN_SEGMENTS);
        io
    }

    fn moment(&self, ns: u64) -> Moment {
        match ns {
            0 => Moment::NEVER,
            ns => Moment::at(ns.saturating_sub(self.began_ns)),
        }
    }

    fn command(&mut self, command: [u8; 16], names: &mut Names) -> u32 {
        if let Some(number) = self.commands.get(&command) {
            return *number;
        }
        let number = names.number_of_bytes(&command);
        if self.commands.len() < MOST_COMMANDS {
            self.commands.insert(command, number);
        }
        number
    }
}

/// Bytes of an event; the length of both is known where this is inlined, so nothing is checked at runtime.
#[inline(always)]
fn chunk<const N: usize, const OF: usize>(event: &[u8; OF], offset: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&event[offset..offset + N]);
    bytes
}

#[inline(always)]
fn long<const OF: usize>(event: &[u8; OF], offset: usize) -> u64 {
    u64::from_ne_bytes(chunk(event, offset))
}

#[inline(always)]
fn word<const OF: usize>(event: &[u8; OF], offset: usize) -> u32 {
    u32::from_ne_bytes(chunk(event, offset))
}

#[inline(always)]
fn short<const OF: usize>(event: &[u8; OF], offset: usize) -> u16 {
    u16::from_ne_bytes(chunk(event, offset))
}

/// Operation and flags of `bi_opf`: numbers of `linux/blk_types.h`, in which those of zones differ
/// between kernels.
fn operation(opf: u32) -> (Operation, Flags) {
    let operation = match opf & 0xff {
        0 => Operation::Read,
        1 => Operation::Write,
        2 => Operation::Flush,
        3 => Operation::Discard,
        5 => Operation::SecureErase,
        9 => Operation::WriteZeroes,
        7 => Operation::ZoneAppend,
        10..=19 => Operation::ZoneManagement,
        32.. => Operation::Passthrough,
        _ => Operation::Other,
    };
    let bits = [
        (11, Flags::SYNC),
        (12, Flags::META),
        (13, Flags::PRIO),
        (15, Flags::IDLE),
        (17, Flags::FUA),
        (18, Flags::PREFLUSH),
        (19, Flags::AHEAD),
        (20, Flags::BACKGROUND),
        (21, Flags::NOWAIT),
        (22, Flags::POLLED),
    ];
    let flags = bits.iter().filter(|(bit, _)| opf >> bit & 1 == 1);
    (operation, flags.fold(Flags::default(), |flags, (_, flag)| flags.with(*flag)))
}

/// The error number of a `blk_status_t` (`blk_errors` in block/blk-core.c); before Linux 5.17 the
/// completion has a negative error number itself.
fn error_number(status: u8) -> u16 {
    match status {
        0 => 0,
        1 => libc::EOPNOTSUPP as u16,
        2 => libc::ETIMEDOUT as u16,
        3 => libc::ENOSPC as u16,
        4 => libc::ENOLINK as u16,
        5 => libc::EREMOTEIO as u16,
        6 => libc::EBADE as u16,
        7 => libc::ENODATA as u16,
        8 => libc::EILSEQ as u16,
        9 => libc::ENOMEM as u16,
        12 => libc::EAGAIN as u16,
        128.. => u16::from(status.wrapping_neg()),
        _ => libc::EIO as u16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_the_kernel() {
        let mut event = [0_u8; EVENT_BYTES];
        for (offset, value) in [(0, 1500_u64), (40, 2048), (24, 1600), (32, 1700), (104, 1800)] {
            event[offset..offset + 8].copy_from_slice(&value.to_ne_bytes());
        }
        for (offset, value) in [
            (72, 4096_u32),
            (76, 1 | 1 << 11),
            (80, 7),
            (84, 8),
            (88, 9),
            (92, 3),
            (100, 2),
            (112, 0x4003 << 16),
            (116, 10),
        ] {
            event[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
        }
        event[56..60].copy_from_slice(b"dd\0x");
        let mut names = Names::default();
        let mut decoder = Decoder::new(1000, CgroupPaths::new(None));
        let Some(Kind::Io(io)) = decoder.read(&event, &mut names) else { panic!("an I/O") };
        assert_eq!(
            (io.queued, io.inserted, io.split),
            (Moment::at(500), Moment::at(600), Moment::NEVER)
        );
        assert_eq!((io.issued, io.completed), (Moment::at(700), Moment::at(800)));
        assert_eq!((io.operation, io.flags), (Operation::Write, Flags::SYNC));
        assert_eq!((io.sector, io.bytes, io.error, io.ioprio), (2048, 4096, 5, 0x4003));
        assert_eq!((io.tgid, io.tid, io.device, io.processor), (7, 8, 9, 3));
        assert_eq!(io.segments, 2);
        assert_eq!(names.text(io.command), "dd");
        assert!(decoder.read(&event[..110], &mut names).is_none());
    }
}
