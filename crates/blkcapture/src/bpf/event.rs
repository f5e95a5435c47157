//! From the bytes of the ring buffer to I/Os and task events (`struct event` of
//! `kernel/bpf/blkrecord.bpf.c`).

use blkrecord::io::{Flags, Io, Moment, Operation};
use blkrecord::names::Names;
use blkrecord::task_event::{TaskEvent, TaskEventKind};

use super::cgroups::CgroupPaths;

/// Bytes of `struct entry`.
pub const ENTRY_BYTES: usize = 96;
/// Bytes of `struct event`.
pub const EVENT_BYTES: usize = 112;
const COMMAND: std::ops::Range<usize> = 80..96;

/// The subject of an event.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Io(Io),
    Task(TaskEvent),
}

/// Reads an event; `None` for one of an unknown kind.
pub fn read(
    event: &[u8],
    began_ns: u64,
    names: &mut Names,
    cgroups: &mut CgroupPaths,
) -> Option<Kind> {
    let at = |offset| moment(event, offset, began_ns);
    if event.len() < EVENT_BYTES {
        return None;
    }
    let kind = match word(event, 104) {
        0 => {
            let mut io = io_of(event, began_ns, names, cgroups)?;
            io.completed = at(96);
            io.ioprio = word(event, 108) as u16;
            io.error = error_number((word(event, 108) >> 16) as u8);
            return Some(Kind::Io(io));
        }
        1 => TaskEventKind::Fork,
        2 => TaskEventKind::Exit,
        _ => return None,
    };
    let (parent, tid) = (word(event, 64), word(event, 68));
    let command = names.number_of_bytes(&event[COMMAND]);
    Some(Kind::Task(TaskEvent { at: at(0), kind, tid, parent, command }))
}

/// An I/O under way (`struct entry`).
pub fn io_of(
    entry: &[u8],
    began_ns: u64,
    names: &mut Names,
    cgroups: &mut CgroupPaths,
) -> Option<Io> {
    if entry.len() < ENTRY_BYTES {
        return None;
    }
    let at = |offset| moment(entry, offset, began_ns);
    let bytes = word(entry, 56);
    let (mut operation, flags) = operation(word(entry, 60));
    if bytes == 0 && flags.contains(Flags::PREFLUSH) {
        operation = Operation::Flush;
    }
    let mut io = Io::new(at(0), operation, long(entry, 40), u64::from(bytes));
    (io.split, io.merged, io.flags) = (at(8), at(16), flags);
    (io.inserted, io.issued) = (at(24), at(32));
    io.cgroup = cgroups.name_of(long(entry, 48), names);
    (io.tgid, io.tid, io.device) = (word(entry, 64), word(entry, 68), word(entry, 72));
    io.command = names.number_of_bytes(&entry[COMMAND]);
    Some(io)
}

fn long(event: &[u8], offset: usize) -> u64 {
    let bytes = event.get(offset..).and_then(|rest| rest.first_chunk::<8>());
    bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

fn word(event: &[u8], offset: usize) -> u32 {
    let bytes = event.get(offset..).and_then(|rest| rest.first_chunk::<4>());
    bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

fn moment(event: &[u8], offset: usize, began_ns: u64) -> Moment {
    match long(event, offset) {
        0 => Moment::NEVER,
        ns => Moment::at(ns.saturating_sub(began_ns)),
    }
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
        for (offset, value) in [(0, 1500_u64), (40, 2048), (24, 1600), (32, 1700), (96, 1800)] {
            event[offset..offset + 8].copy_from_slice(&value.to_ne_bytes());
        }
        for (offset, value) in
            [(56, 4096_u32), (60, 1 | 1 << 11), (64, 7), (68, 8), (72, 9), (108, 10 << 16 | 0x4003)]
        {
            event[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
        }
        event[80..84].copy_from_slice(b"dd\0x");
        let mut names = Names::default();
        let mut cgroups = CgroupPaths::new(None);
        let Some(Kind::Io(io)) = read(&event, 1000, &mut names, &mut cgroups) else {
            panic!("an I/O")
        };
        assert_eq!(
            (io.queued, io.inserted, io.split),
            (Moment::at(500), Moment::at(600), Moment::NEVER)
        );
        assert_eq!((io.issued, io.completed), (Moment::at(700), Moment::at(800)));
        assert_eq!((io.operation, io.flags), (Operation::Write, Flags::SYNC));
        assert_eq!((io.sector, io.bytes, io.error, io.ioprio), (2048, 4096, 5, 0x4003));
        assert_eq!((io.tgid, io.tid, io.device), (7, 8, 9));
        assert_eq!(names.text(io.command), "dd");
        assert!(read(&event[..100], 0, &mut names, &mut cgroups).is_none());
    }
}
