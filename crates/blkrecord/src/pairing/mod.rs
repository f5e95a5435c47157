//! From events to I/Os: follows every bio from its queueing through merges and splits to its completion.
//!
//! Events name sectors, not bios, so bios are found by device and first sector. The kernel's rules
//! (block/blk-merge.c, block/blk-mq.c, block/blk-flush.c) that matter here:
//!
//! * A merged bio has a Q of its own and then an M or F; from then on events name its request only.
//! * A request that merges with its neighbour gives an M for the one that disappears.
//! * A split gives an X that names the front part and the sector at which the rest begins; the part that
//!   is split off has no Q of its own.
//! * A request may complete in portions, from its front.
//! * A bio that must not wait completes with EAGAIN if there is no tag for it, without a request.
//! * A flush without data completes like any request, but is issued as another one, of the operation
//!   `REQ_OP_FLUSH`, that the flush machinery sends on behalf of all that wait.
//! * A durable write of a disk with a cache and without FUA completes once more, with 0 bytes, after the flush
//!   that follows its data.

mod groups;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::batch::Batch;
use crate::event::{Action, Event};
use crate::io::{Flags, Io, Moment, Operation, SECTOR_BYTES, UNKNOWN_IOPRIO};
use groups::{Bio, Group, Groups, NONE};

/// The error of a bio that must not wait (`REQ_NOWAIT`) and would have to.
const EAGAIN: u16 = 11;
/// I/Os under way at a time: more than the tags of all of a machine's disks. A trace with more has lost
/// their completions.
const MOST_OPEN: usize = 1 << 20;
/// Durable writes that may complete once more: with FUA none of them does, so those of long ago are forgotten.
const MOST_FLUSHED: usize = 1 << 12;

/// Events in, I/Os out.
#[derive(Debug, Default)]
pub struct Pairing {
    groups: Groups,
    /// When each device's flush request was last issued.
    flush_issued: FxHashMap<u32, Moment>,
    /// Devices and sectors of durable writes whose data are complete.
    may_be_flushed: FxHashSet<(u32, u64)>,
    /// Whether an issue without a queued I/O begins one: the trace has no queueing.
    begins_with_issues: bool,
    counts: Counts,
}

/// Counts of events and of the I/Os that they became.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub events: u64,
    pub ios: u64,
    /// Completions of which no part was queued.
    pub unmatched: u64,
    pub incomplete: u64,
}

impl Pairing {
    pub fn new() -> Self {
        Self::default()
    }

    /// For a trace without queueing: an I/O begins when its request is issued.
    pub fn beginning_with_issues() -> Self {
        Self { begins_with_issues: true, ..Self::default() }
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// I/Os that are under way.
    pub fn open(&self) -> usize {
        self.groups.len()
    }

    /// Takes an event in; I/Os that it completes are appended to the batch.
    #[inline]
    pub fn take(&mut self, event: &Event, batch: &mut Batch) {
        self.counts.events += 1;
        match event.action {
            Action::Queue => self.queue(event, batch),
            Action::BackMerge => self.back_merge(event),
            Action::FrontMerge => self.front_merge(event),
            Action::Insert => self.insert(event),
            Action::Issue => self.issue(event, batch),
            Action::Requeue => self.requeue(event),
            Action::Complete => self.complete(event, batch),
            Action::Split => self.split(event),
        }
    }

    /// Gives what is under way, without completions, in the order of queueing.
    pub fn finish(&mut self, batch: &mut Batch) {
        let first = batch.ios.len();
        self.groups.drain(|io| batch.ios.push(io));
        let rest = &mut batch.ios[first..];
        rest.sort_unstable_by_key(|io| (io.queued, io.order, io.sector));
        self.counts.incomplete += rest.len() as u64;
        self.counts.ios += rest.len() as u64;
    }

    fn queue(&mut self, event: &Event, batch: &mut Batch) {
        if self.groups.len() >= MOST_OPEN {
            self.finish(batch);
        }
        self.begin(event, Moment::NEVER);
    }

    /// Begins an I/O with its queueing, or with its issue where the trace has nothing before it.
    fn begin(&mut self, event: &Event, issued: Moment) {
        let mut io = Io::new(Moment::at(event.at_ns), event.operation, event.sector, event.bytes);
        io.flags = event.flags;
        if event.bytes == 0 && event.flags.contains(Flags::PREFLUSH) {
            io.operation = Operation::Flush;
        } else if event.operation == Operation::Passthrough {
            // Passthrough requests have no Q: before Linux 6.19 this is how writes of zeroes look.
            io.operation = Operation::WriteZeroes;
        }
        io.ioprio = event.ioprio;
        (io.tgid, io.tid) = (event.tgid, event.tid);
        (io.command, io.cgroup) = (event.command, event.cgroup);
        (io.device, io.processor) = (event.device, event.processor);
        // Places are compared within a moment only, so the lower bits do.
        io.order = self.counts.events as u32;
        // Before Linux 4.15 the rest of a split bio is queued a second time.
        let again = self.groups.newest(event.device, event.sector, |group| {
            !group.issued.is_known() && group.bytes == event.bytes
        });
        if again.is_some_and(|group| self.groups.first_io(group).split.is_known()) {
            return;
        }
        io.issued = issued;
        self.groups.add(io);
    }

    /// The bio or request that is about to disappear into another one.
    fn merging(&self, event: &Event) -> Option<u32> {
        self.groups.newest(event.device, event.sector, |group| {
            !group.issued.is_known() && group.bytes == event.bytes
        })
    }

    fn back_merge(&mut self, event: &Event) {
        let Some(guest) = self.merging(event) else { return };
        self.groups.mark_merged(guest, Moment::at(event.at_ns));
        if let Some(host) = self.groups.ending_at(event.device, event.sector, guest) {
            self.groups.append(host, guest);
        }
    }

    fn front_merge(&mut self, event: &Event) {
        let Some(guest) = self.merging(event) else { return };
        self.groups.mark_merged(guest, Moment::at(event.at_ns));
        let end = event.sector.saturating_add(event.bytes.div_ceil(SECTOR_BYTES));
        let host = self.groups.newest(event.device, end, |group| !group.issued.is_known());
        if let Some(host) = host.filter(|host| *host != guest) {
            self.groups.prepend(host, guest);
        }
    }

    fn insert(&mut self, event: &Event) {
        let found = self.groups.oldest(event.device, event.sector, |group| {
            (!group.inserted.is_known() && !group.issued.is_known())
                .then_some(u8::from(group.bytes == event.bytes))
        });
        if let Some(index) = found {
            let group = self.groups.group_mut(index);
            group.inserted = Moment::at(event.at_ns);
            note_priority(group, event);
        }
    }

    fn issue(&mut self, event: &Event, batch: &mut Batch) {
        let at = Moment::at(event.at_ns);
        if event.operation == Operation::Flush {
            self.flush_issued.insert(event.device, at);
            return;
        }
        let found = self.groups.oldest(event.device, event.sector, |group| {
            (!group.issued.is_known()).then_some(u8::from(group.bytes == event.bytes))
        });
        if let Some(index) = found {
            let group = self.groups.group_mut(index);
            group.issued = at;
            note_priority(group, event);
        } else if self.begins_with_issues && event.operation != Operation::Passthrough {
            if self.groups.len() >= MOST_OPEN {
                self.finish(batch);
            }
            self.begin(event, at);
        }
    }

    fn requeue(&mut self, event: &Event) {
        let found = self.groups.oldest(event.device, event.sector, |group| {
            group.issued.is_known().then_some(u8::from(group.bytes == event.bytes))
        });
        if let Some(index) = found {
            self.groups.group_mut(index).issued = Moment::NEVER;
        }
    }

    fn split(&mut self, event: &Event) {
        let at = Moment::at(event.at_ns);
        // The kernel splits a bio before it can merge or be issued.
        let found = self.groups.newest(event.device, event.sector, |group| {
            !group.issued.is_known() && group.first == group.last
        });
        let Some(index) = found else { return };
        let Some(front_sectors) = event.split_at.checked_sub(event.sector) else { return };
        let Some(front_bytes) = front_sectors.checked_mul(SECTOR_BYTES) else { return };
        let whole = *self.groups.first_io(index);
        if front_bytes == 0 || front_bytes >= whole.bytes {
            return;
        }
        self.groups.remove(index);
        let front = Io { split: at, bytes: front_bytes, ..whole };
        let rest =
            Io { split: at, sector: event.split_at, bytes: whole.bytes - front_bytes, ..whole };
        self.groups.add(front);
        self.groups.add(rest);
    }

    fn complete(&mut self, event: &Event, batch: &mut Batch) {
        // The flush machinery's own request, and commands to the device: no bio of ours is in them.
        let bare = event.operation == Operation::Passthrough && event.bytes == 0;
        if event.operation == Operation::Flush || bare {
            return;
        }
        // Without a free tag the kernel refuses a bio that must not wait; its task tries again.
        let refused = event.error == EAGAIN;
        if refused && self.drop_refused(event) {
            return;
        }
        let before = batch.ios.len();
        let (mut sector, mut left) = (event.sector, event.bytes);
        loop {
            let found = self.groups.oldest(event.device, sector, |group| {
                // An I/O that was issued, is of the right size and of the right kind, in this order.
                let kind = self.groups.first_io_of(group).operation;
                Some(
                    u8::from(group.issued.is_known()) * 4
                        + u8::from(group.bytes == left) * 2
                        + u8::from(same_kind(kind, event.operation, left)),
                )
            });
            let Some(index) = found else { break };
            let done = self.complete_group(index, left, event, batch);
            left -= done;
            sector = sector.saturating_add(done.div_ceil(SECTOR_BYTES));
            if left == 0 || done == 0 {
                break;
            }
        }
        let given = batch.ios.len() - before;
        self.counts.ios += given as u64;
        let place = (event.device, event.sector);
        if given == 0 && !(event.bytes == 0 && self.may_be_flushed.remove(&place)) {
            self.counts.unmatched += 1;
        }
    }

    /// Drops an I/O that was refused before it was issued; false if there is none.
    fn drop_refused(&mut self, event: &Event) -> bool {
        let found = self.groups.newest(event.device, event.sector, |group| {
            !group.issued.is_known() && group.bytes == event.bytes
        });
        if let Some(index) = found {
            self.groups.remove(index);
        }
        found.is_some()
    }

    /// Completes the first `bytes` of a group; gives how many of them were its.
    fn complete_group(&mut self, index: u32, bytes: u64, event: &Event, batch: &mut Batch) -> u64 {
        let at = Moment::at(event.at_ns);
        let group = *self.groups.group(index);
        self.groups.unlink(index);
        let mut done = 0;
        let mut next = group.first;
        while next != NONE {
            let Bio { mut io, next: after } = *self.groups.bio(next);
            if done + io.bytes > bytes {
                break;
            }
            done += io.bytes;
            io.completed = at;
            io.inserted = group.inserted;
            io.issued = group.issued;
            if io.operation == Operation::Flush && !io.issued.is_known() {
                let flush = self.flush_issued.get(&io.device).copied();
                io.issued = flush.filter(|flush| *flush >= io.queued).unwrap_or(Moment::NEVER);
            }
            if group.ioprio != UNKNOWN_IOPRIO {
                io.ioprio = group.ioprio;
            } else if event.ioprio != UNKNOWN_IOPRIO {
                io.ioprio = event.ioprio;
            }
            io.error = event.error;
            if io.bytes > 0 && io.flags.is_durable() {
                if self.may_be_flushed.len() >= MOST_FLUSHED {
                    self.may_be_flushed.clear();
                }
                self.may_be_flushed.insert((io.device, io.sector));
            }
            batch.ios.push(io);
            self.groups.free_bio(next);
            next = after;
        }
        if next == NONE {
            self.groups.free_group(index);
        } else {
            self.groups.relink(index, next);
        }
        done
    }
}

fn note_priority(group: &mut Group, event: &Event) {
    if event.ioprio != UNKNOWN_IOPRIO {
        group.ioprio = event.ioprio;
    }
}

/// Whether a completion of `event` may be that of an I/O of `kind`.
fn same_kind(kind: Operation, event: Operation, bytes: u64) -> bool {
    kind == event
        || (kind == Operation::Flush && bytes == 0)
        || (kind == Operation::WriteZeroes && event == Operation::Passthrough)
}

#[cfg(test)]
mod tests;
