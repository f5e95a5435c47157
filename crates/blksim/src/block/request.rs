//! Requests (`struct request`), each in a slot of a slab and addressed by a `u32`.
//!
//! A submitted piece of I/O (`struct bio`) and a request are the same slot: a bio that merges into
//! a request stays chained to it until completion.

use super::request_stage::{RequestStage, StageRecord};

/// Index of a request in the slab.
pub type RequestId = u32;

/// Index of a task: of a job's process or of a kernel thread that submits I/O.
pub type TaskId = u32;

/// No request.
pub const NONE: RequestId = u32::MAX;

/// Sectors of the largest discard of modelled disks: 2 GiB.
pub const MAX_DISCARD_SECTORS: u32 = 1 << 22;

/// The time of what has not happened.
pub const NEVER_NS: u64 = u64::MAX;

/// Bytes of a sector, the unit of all positions.
pub const SECTOR_BYTES: u64 = 512;

/// Bytes of a page of memory.
pub const PAGE_BYTES: u64 = 4096;

/// The operation that the device carries out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    Read,
    Write,
    /// Empties the device's volatile write cache (`REQ_OP_FLUSH`).
    Flush,
    /// Tells the device that it may forget data (`REQ_OP_DISCARD`).
    Discard,
}

impl Operation {
    /// It changes data: a write or a discard (`op_is_write`, whose lowest bit says so).
    #[inline]
    pub fn is_write(self) -> bool {
        self as u8 & 1 != 0
    }
}

/// Class of an I/O priority, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum PriorityClass {
    RealTime = 0,
    BestEffort = 1,
    Idle = 2,
}

impl PriorityClass {
    pub const ALL: [Self; 3] = [Self::RealTime, Self::BestEffort, Self::Idle];

    pub fn name(self) -> &'static str {
        match self {
            Self::RealTime => "real-time",
            Self::BestEffort => "best-effort",
            Self::Idle => "idle",
        }
    }
}

/// I/O priority with the class resolved (`block/ioprio.c` of Linux 6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Priority {
    pub class: PriorityClass,
    /// 0 (best) to 7.
    pub level: u8,
}

impl Priority {
    pub const DEFAULT: Self = Self { class: PriorityClass::BestEffort, level: 4 };

    /// The priority of a process: `prioclass` as ioprio numbers it (0 none, 1
    /// real time, 2 best effort, 3 idle); without a class it follows from nice.
    pub fn resolve(prioclass: Option<u8>, level: Option<u8>, nice: Option<i32>) -> Self {
        let from_nice = ((nice.unwrap_or(0) + 20) / 5) as u8;
        match (prioclass.unwrap_or(0), level) {
            (1, level) => Self { class: PriorityClass::RealTime, level: level.unwrap_or(4) },
            (3, _) => Self { class: PriorityClass::Idle, level: 7 },
            (2, level) => Self { class: PriorityClass::BestEffort, level: level.unwrap_or(4) },
            // fio: a level without a class means best effort.
            (_, Some(level)) => Self { class: PriorityClass::BestEffort, level },
            (_, None) => Self { class: PriorityClass::BestEffort, level: from_nice },
        }
    }
}

/// The side on which a bio joins a request (`ELEVATOR_BACK_MERGE`, `ELEVATOR_FRONT_MERGE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// It follows the request.
    Back,
    /// It precedes the request, whose start moves.
    Front,
}

/// The purpose of a request, which decides where its completion goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// Part of a direct I/O; the owner is the I/O.
    Direct,
    /// Fills pages of the cache.
    PageRead,
    /// Writes pages of the cache back.
    Writeback,
    /// A cache flush of the device; no owner.
    CacheFlush,
}

/// The flags of a request of which it has at most one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Hint {
    #[default]
    Plain,
    /// A direct write: worth idling for (`REQ_IDLE`).
    Idle,
    /// Background or throttled writeback (`REQ_BACKGROUND`).
    Background,
    /// Readahead, which may never be used (`REQ_RAHEAD`).
    Readahead,
}

/// Flags of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// Somebody waits for it: reads, direct writes, data-integrity writes (`REQ_SYNC`).
    pub sync: bool,
    pub hint: Hint,
}

/// The progress of a bio through policies and merging, and whether it may still grow.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Progress(u8);

impl Progress {
    const MERGE_TRIED: u8 = 0x80;
    const NO_MERGE: u8 = 0x40;

    /// Policies that have let it pass.
    #[inline]
    pub fn policies_passed(self) -> usize {
        usize::from(self.0 & !(Self::MERGE_TRIED | Self::NO_MERGE))
    }

    /// It was too large for a bio that touched it and is not merged any more (`REQ_NOMERGE`).
    #[inline]
    pub fn no_merge(self) -> bool {
        self.0 & Self::NO_MERGE != 0
    }

    /// Takes it out of merging.
    pub fn set_no_merge(&mut self) {
        self.0 |= Self::NO_MERGE;
    }

    /// One more policy has let it pass.
    pub fn pass(&mut self) {
        self.0 += 1;
    }

    /// A merge was tried: a bio that slept for its tag does not try again.
    #[inline]
    pub fn merge_tried(self) -> bool {
        self.0 & Self::MERGE_TRIED != 0
    }

    /// Notes that a merge was tried.
    pub fn set_merge_tried(&mut self) {
        self.0 |= Self::MERGE_TRIED;
    }
}

/// A request's tag, or its limit while it waits for one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tag(u32);

impl Default for Tag {
    fn default() -> Self {
        Self(NONE)
    }
}

impl Tag {
    /// Values from here on are no tag but a limit: the `shallow_depth`, how many tags of each word
    /// it may have.
    const LIMIT: u32 = 1 << 31;
    const UNLIMITED: u32 = NONE - 1;

    /// The tag of that number, below 2³¹; any number on the legacy path.
    #[inline]
    pub fn of(number: u32) -> Self {
        Self(number)
    }

    /// The tag, if there is one.
    #[inline]
    pub fn number(self) -> Option<u32> {
        (self.0 < Self::LIMIT).then_some(self.0)
    }

    /// Takes the tag away, if there is one.
    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        let number = self.number()?;
        *self = Self::default();
        Some(number)
    }

    /// No tag yet, but a known limit.
    pub fn one_of(limit: Option<u32>) -> Self {
        Self(limit.map_or(Self::UNLIMITED, |most| Self::LIMIT + most))
    }

    /// Its limit in each word of the sbitmap; `ask` is called if it is not known.
    #[inline]
    pub fn limit(self, ask: impl FnOnce() -> Option<u32>) -> Option<u32> {
        match self.0 {
            NONE => ask(),
            Self::UNLIMITED => None,
            limit => Some(limit - Self::LIMIT),
        }
    }
}

/// One request, with the links of the lists that it may be on.
#[derive(Debug, Clone)]
pub struct Request {
    /// Extent, which grows by merges.
    pub sector: u64,
    pub nr_sectors: u32,
    /// Extent as it was submitted.
    pub own_sectors: u32,
    pub first_sector: u64,
    pub operation: Operation,
    pub purpose: Purpose,
    pub flags: Flags,
    pub priority: Priority,
    /// The disk's number in the machine.
    pub disk: u8,
    pub(crate) progress: Progress,
    /// The processor that submits it, which decides about its hardware queue (`rq->mq_ctx`).
    pub cpu: u16,
    pub(crate) tag: Tag,
    /// The I/O context: the task on whose behalf it was submitted.
    pub context: u32,
    /// The direct I/O that it is part of, if that has several parts.
    pub owner: u32,
    /// The bio of an array that it is a piece of.
    pub(crate) array_part: u32,
    /// Control group; 0 is the root.
    pub group: u16,
    /// For schedulers: the number of the queue that it is on; `NONE` before insertion.
    pub queue: u32,
    /// Time at which the I/O that it is part of was issued.
    pub issued_ns: u64,
    /// Times at which it was submitted, inserted into the scheduler, and given to the device; the last
    /// two are [`NEVER_NS`] before.
    pub submitted_ns: u64,
    pub inserted_ns: u64,
    pub dispatched_ns: u64,
    /// Time by which a scheduler wants to dispatch it (`fifo_time`).
    pub deadline_ns: u64,
    /// Neighbours in a scheduler's list, or in `previous` the place in a
    /// [`FifoQueue`](crate::elevator::fifo::FifoQueue); before insertion, neighbours in a task's
    /// list (pending, plug).
    pub previous: RequestId,
    pub next: RequestId,
    /// Next in the chain of bios merged into a request.
    pub chain: RequestId,
    /// Last of the chain of bios merged into this request.
    pub chain_tail: RequestId,
    /// Neighbours in the hash of extent ends and of extent starts.
    pub(crate) hashed: [(RequestId, RequestId); 2],
    pub(crate) stage: StageRecord,
}

impl Request {
    pub fn new(operation: Operation, sector: u64, nr_sectors: u32, purpose: Purpose) -> Self {
        Self {
            sector,
            nr_sectors,
            own_sectors: nr_sectors,
            first_sector: sector,
            operation,
            purpose,
            flags: Flags { sync: operation != Operation::Write, ..Flags::default() },
            priority: Priority::DEFAULT,
            disk: 0,
            cpu: 0,
            stage: StageRecord::default(),
            progress: Progress::default(),
            tag: Tag::default(),
            context: 0,
            owner: NONE,
            array_part: NONE,
            group: 0,
            queue: NONE,
            issued_ns: 0,
            submitted_ns: 0,
            inserted_ns: NEVER_NS,
            dispatched_ns: NEVER_NS,
            deadline_ns: 0,
            previous: NONE,
            next: NONE,
            chain: NONE,
            chain_tail: NONE,
            hashed: [(NONE, NONE); 2],
        }
    }

    /// The sector after its last one.
    #[inline]
    pub fn end(&self) -> u64 {
        self.sector + u64::from(self.nr_sectors)
    }

    #[inline]
    pub fn is_write(&self) -> bool {
        self.operation.is_write()
    }

    /// The device has it.
    pub fn is_in_flight(&self) -> bool {
        self.dispatched_ns != NEVER_NS
    }

    /// It was inserted into the scheduler and did not go to the device since. One without a tag is a
    /// bio that waits for one or has joined a request.
    pub fn is_held(&self) -> bool {
        self.tag.number().is_some() && self.inserted_ns != NEVER_NS && !self.is_in_flight()
    }
}

/// All requests that exist. Freed slots are reused, so a steady load
/// allocates nothing.
#[derive(Debug, Clone, Default)]
pub struct Requests {
    slots: Vec<Request>,
    free: Vec<RequestId>,
    created: u64,
}

impl Requests {
    pub fn new() -> Self {
        Self::default()
    }

    #[inline]
    pub fn allocate(&mut self, request: Request) -> RequestId {
        self.created += 1;
        if let Some(id) = self.free.pop() {
            self.slots[id as usize] = request;
            return id;
        }
        self.slots.push(request);
        (self.slots.len() - 1) as RequestId
    }

    /// Moves a request to its next stage, in debug builds.
    #[inline(always)]
    pub(crate) fn step(&mut self, id: RequestId, from: &[RequestStage], to: RequestStage) {
        #[cfg(debug_assertions)]
        self.slots[id as usize].stage.step(from, to);
        #[cfg(not(debug_assertions))]
        let _ = (id, from, to);
    }

    #[inline]
    pub fn release(&mut self, id: RequestId) {
        debug_assert!(
            !self.free.contains(&id) || self.free.len() > 64,
            "request {id} released twice"
        );
        self.free.push(id);
    }

    /// Requests in existence.
    pub fn nr_live(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// All requests in existence, with the bios that wait or have joined one, by number.
    pub fn live(&self) -> impl Iterator<Item = (RequestId, &Request)> + '_ {
        let mut free = vec![false; self.slots.len()];
        for &id in &self.free {
            free[id as usize] = true;
        }
        let all = self.slots.iter().enumerate().zip(free);
        all.filter(|(_, free)| !free).map(|((id, request), _)| (id as RequestId, request))
    }

    /// Requests that were ever allocated.
    pub fn nr_created(&self) -> u64 {
        self.created
    }
}

impl std::ops::Index<RequestId> for Requests {
    type Output = Request;

    #[inline]
    fn index(&self, id: RequestId) -> &Request {
        &self.slots[id as usize]
    }
}

impl std::ops::IndexMut<RequestId> for Requests {
    #[inline]
    fn index_mut(&mut self, id: RequestId) -> &mut Request {
        &mut self.slots[id as usize]
    }
}

/// A first-in-first-out list through `previous` and `next`.
#[derive(Debug, Clone, Copy)]
pub struct Fifo {
    head: RequestId,
    tail: RequestId,
    len: u32,
}

impl Default for Fifo {
    fn default() -> Self {
        Self { head: NONE, tail: NONE, len: 0 }
    }
}

impl Fifo {
    #[inline]
    pub fn head(&self) -> Option<RequestId> {
        (self.head != NONE).then_some(self.head)
    }

    #[inline]
    pub fn tail(&self) -> Option<RequestId> {
        (self.tail != NONE).then_some(self.tail)
    }

    pub fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }

    /// All, from the oldest to the newest.
    pub fn iter(self, requests: &Requests) -> impl Iterator<Item = RequestId> + '_ {
        std::iter::successors(self.head(), |id| Some(requests[*id].next).filter(|id| *id != NONE))
    }

    #[inline]
    pub fn push_back(&mut self, requests: &mut Requests, id: RequestId) {
        let request = &mut requests[id];
        request.previous = self.tail;
        request.next = NONE;
        if self.tail == NONE {
            self.head = id;
        } else {
            requests[self.tail].next = id;
        }
        self.tail = id;
        self.len += 1;
    }

    pub fn push_front(&mut self, requests: &mut Requests, id: RequestId) {
        let request = &mut requests[id];
        request.previous = NONE;
        request.next = self.head;
        if self.head == NONE {
            self.tail = id;
        } else {
            requests[self.head].previous = id;
        }
        self.head = id;
        self.len += 1;
    }

    #[inline]
    pub fn remove(&mut self, requests: &mut Requests, id: RequestId) {
        let (previous, next) = (requests[id].previous, requests[id].next);
        if previous == NONE {
            self.head = next;
        } else {
            requests[previous].next = next;
        }
        if next == NONE {
            self.tail = previous;
        } else {
            requests[next].previous = previous;
        }
        self.len -= 1;
    }

    #[inline]
    pub fn pop_front(&mut self, requests: &mut Requests) -> Option<RequestId> {
        let id = self.head()?;
        self.head = requests[id].next;
        if self.head == NONE {
            self.tail = NONE;
        } else {
            requests[self.head].previous = NONE;
        }
        self.len -= 1;
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_no_larger_than_two_cache_lines() {
        // Debug builds also store its stage.
        let kept = if cfg!(debug_assertions) { align_of::<Request>() } else { 0 };
        assert!(size_of::<Request>() <= 128 + kept);
    }

    #[test]
    fn priorities_resolve_as_the_kernel_does() {
        assert_eq!(Priority::resolve(None, None, None), Priority::DEFAULT);
        assert_eq!(Priority::resolve(None, None, Some(-20)).level, 0);
        assert_eq!(Priority::resolve(None, None, Some(19)).level, 7);
        assert_eq!(Priority::resolve(Some(3), Some(1), None).class, PriorityClass::Idle);
        let real_time = Priority { class: PriorityClass::RealTime, level: 2 };
        assert_eq!(Priority::resolve(Some(1), Some(2), Some(5)), real_time);
    }

    #[test]
    fn a_fifo_keeps_order_and_lets_go_anywhere() {
        let mut requests = Requests::new();
        let mut fifo = Fifo::default();
        let ids: Vec<_> = (0..4)
            .map(|i| requests.allocate(Request::new(Operation::Read, i, 1, Purpose::Direct)))
            .collect();
        for &id in &ids {
            fifo.push_back(&mut requests, id);
        }
        fifo.remove(&mut requests, ids[1]);
        fifo.remove(&mut requests, ids[3]);
        assert_eq!(fifo.len(), 2);
        assert_eq!(fifo.pop_front(&mut requests), Some(ids[0]));
        assert_eq!(fifo.pop_front(&mut requests), Some(ids[2]));
        assert!(fifo.is_empty());
        for &id in &ids[..3] {
            fifo.push_back(&mut requests, id);
        }
        assert_eq!((fifo.len(), fifo.tail()), (3, Some(ids[2])));
        fifo.remove(&mut requests, ids[0]);
        fifo.push_front(&mut requests, ids[0]);
        for &id in &ids[..3] {
            assert_eq!(fifo.pop_front(&mut requests), Some(id));
        }
    }
}
