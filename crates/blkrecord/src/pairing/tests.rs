use super::*;

/// Events of one device in the notation of blkparse: letter, sector, sectors.
struct Trace {
    pairing: Pairing,
    batch: Batch,
    now: u64,
}

impl Trace {
    fn new() -> Self {
        Self { pairing: Pairing::new(), batch: Batch::default(), now: 0 }
    }

    fn event(&mut self, action: Action, sector: u64, sectors: u64) -> &mut Self {
        self.now += 10;
        let mut event = Event::new(self.now, action, Operation::Write);
        event.sector = sector;
        event.bytes = sectors * SECTOR_BYTES;
        self.pairing.take(&event, &mut self.batch);
        self
    }

    fn split(&mut self, sector: u64, at: u64) -> &mut Self {
        self.now += 10;
        let mut event = Event::new(self.now, Action::Split, Operation::Write);
        (event.sector, event.split_at) = (sector, at);
        self.pairing.take(&event, &mut self.batch);
        self
    }

    /// Sector and sectors of what has completed, in this order.
    fn completed(&self) -> Vec<(u64, u64)> {
        self.batch.ios.iter().map(|io| (io.sector, io.bytes / SECTOR_BYTES)).collect()
    }
}

#[test]
fn a_merged_bio_completes_with_its_request() {
    let mut trace = Trace::new();
    trace.event(Action::Queue, 100, 8).event(Action::Queue, 108, 8);
    trace.event(Action::BackMerge, 108, 8).event(Action::Queue, 92, 8);
    trace.event(Action::FrontMerge, 92, 8).event(Action::Insert, 92, 24);
    trace.event(Action::Issue, 92, 24).event(Action::Complete, 92, 24);
    assert_eq!(trace.completed(), [(92, 8), (100, 8), (108, 8)]);
    let ios = &trace.batch.ios;
    assert_eq!(ios[0].queued, Moment::at(40));
    assert_eq!(ios[0].merged, Moment::at(50));
    assert_eq!(ios[1].merged, Moment::NEVER);
    assert!(ios.iter().all(|io| {
        (io.inserted, io.issued, io.completed) == (Moment::at(60), Moment::at(70), Moment::at(80))
    }));
    assert_eq!(trace.pairing.counts(), Counts { events: 8, ios: 3, unmatched: 0, incomplete: 0 });
}

#[test]
fn requests_that_merge_complete_together() {
    let mut trace = Trace::new();
    trace.event(Action::Queue, 0, 8).event(Action::Insert, 0, 8);
    trace.event(Action::Queue, 16, 8).event(Action::Insert, 16, 8);
    // The bio fills the gap, and then its request takes in the one behind.
    trace.event(Action::Queue, 8, 8).event(Action::BackMerge, 8, 8).event(Action::BackMerge, 16, 8);
    trace.event(Action::Issue, 0, 24).event(Action::Complete, 0, 24);
    assert_eq!(trace.completed(), [(0, 8), (8, 8), (16, 8)]);
}

#[test]
fn fragments_of_a_split_bio_keep_its_queueing() {
    let mut trace = Trace::new();
    trace.event(Action::Queue, 0, 24).split(0, 8).event(Action::Issue, 0, 8);
    trace.split(8, 16).event(Action::Issue, 8, 8).event(Action::Issue, 16, 8);
    trace.event(Action::Complete, 8, 8).event(Action::Complete, 16, 8).event(
        Action::Complete,
        0,
        8,
    );
    assert_eq!(trace.completed(), [(8, 8), (16, 8), (0, 8)]);
    assert!(trace.batch.ios.iter().all(|io| io.queued == Moment::at(10) && io.split.is_known()));
    assert_eq!(trace.pairing.counts().unmatched, 0);
}

#[test]
fn a_rest_that_is_queued_again_counts_once() {
    let mut trace = Trace::new();
    trace.event(Action::Queue, 0, 16).split(0, 8).event(Action::Queue, 8, 8);
    trace.event(Action::Issue, 0, 8).event(Action::Issue, 8, 8);
    trace.event(Action::Complete, 0, 8).event(Action::Complete, 8, 8);
    assert_eq!(trace.completed(), [(0, 8), (8, 8)]);
    assert_eq!(trace.batch.ios[1].queued, Moment::at(10));
}

#[test]
fn a_request_completes_in_portions() {
    let mut trace = Trace::new();
    trace.event(Action::Queue, 0, 8).event(Action::Queue, 8, 8).event(Action::BackMerge, 8, 8);
    trace.event(Action::Issue, 0, 16).event(Action::Complete, 0, 8);
    assert_eq!(trace.completed(), [(0, 8)]);
    trace.event(Action::Complete, 8, 8);
    assert_eq!(trace.completed(), [(0, 8), (8, 8)]);
    assert_eq!(trace.batch.ios[1].issued, trace.batch.ios[0].issued);
}

#[test]
fn the_last_issue_of_a_requeued_request_counts() {
    let mut trace = Trace::new();
    trace.event(Action::Queue, 0, 8).event(Action::Issue, 0, 8).event(Action::Requeue, 0, 8);
    trace.event(Action::Issue, 0, 8).event(Action::Complete, 0, 8);
    assert_eq!(trace.batch.ios[0].issued, Moment::at(40));
}

#[test]
fn equal_ios_are_told_apart_by_their_order() {
    let mut trace = Trace::new();
    trace.event(Action::Queue, 0, 8).event(Action::Issue, 0, 8);
    trace.event(Action::Queue, 0, 8).event(Action::Issue, 0, 8);
    trace.event(Action::Complete, 0, 8).event(Action::Complete, 0, 8);
    assert_eq!(trace.batch.ios[0].queued, Moment::at(10));
    assert_eq!(trace.batch.ios[1].queued, Moment::at(30));
}

#[test]
fn flushes_are_issued_by_the_flush_machinery() {
    let mut trace = Trace::new();
    let flush = |trace: &mut Trace, action, operation, flags| {
        trace.now += 10;
        let mut event = Event::new(trace.now, action, operation);
        event.flags = flags;
        trace.pairing.take(&event, &mut trace.batch);
    };
    flush(&mut trace, Action::Queue, Operation::Write, Flags::PREFLUSH);
    flush(&mut trace, Action::Issue, Operation::Flush, Flags::default());
    flush(&mut trace, Action::Complete, Operation::Flush, Flags::default());
    flush(&mut trace, Action::Complete, Operation::Write, Flags::PREFLUSH);
    assert_eq!(trace.batch.ios.len(), 1);
    let io = trace.batch.ios[0];
    assert_eq!((io.operation, io.issued), (Operation::Flush, Moment::at(20)));
    assert_eq!(io.completed, Moment::at(40));
}

#[test]
fn a_durable_write_completes_once_more_after_its_flush() {
    let mut trace = Trace::new();
    for flags in [Flags::FUA, Flags::PREFLUSH, Flags::SYNC] {
        trace.now += 10;
        let mut queued = Event::new(trace.now, Action::Queue, Operation::Write);
        (queued.sector, queued.bytes, queued.flags) = (8, 4096, flags);
        trace.pairing.take(&queued, &mut trace.batch);
        trace.event(Action::Issue, 8, 8).event(Action::Complete, 8, 8).event(
            Action::Complete,
            8,
            0,
        );
    }
    assert_eq!(trace.completed(), [(8, 8); 3]);
    // No flush follows the last one.
    assert_eq!(trace.pairing.counts(), Counts { events: 12, ios: 3, unmatched: 1, incomplete: 0 });
}

#[test]
fn what_never_completes_is_given_at_the_end() {
    let mut trace = Trace::new();
    trace.event(Action::Queue, 8, 8).event(Action::Issue, 8, 8).event(Action::Queue, 0, 8);
    trace.event(Action::Complete, 500, 8);
    trace.pairing.finish(&mut trace.batch);
    assert_eq!(trace.completed(), [(8, 8), (0, 8)]);
    assert_eq!(trace.batch.ios[0].issued, Moment::at(20));
    assert_eq!(trace.pairing.counts(), Counts { events: 4, ios: 2, unmatched: 1, incomplete: 2 });
}

#[test]
fn a_trace_without_completions_stays_bounded() {
    let mut trace = Trace::new();
    for _ in 0..100_000 {
        trace.event(Action::Queue, 0, 8);
    }
    assert!(trace.pairing.open() <= 512);
}

#[test]
fn a_refused_bio_is_no_io() {
    let mut trace = Trace::new();
    trace.event(Action::Queue, 0, 8).event(Action::Issue, 0, 8).event(Action::Queue, 0, 8);
    let mut refusal = Event::new(35, Action::Complete, Operation::Write);
    (refusal.bytes, refusal.error) = (8 * SECTOR_BYTES, EAGAIN);
    trace.pairing.take(&refusal, &mut trace.batch);
    assert!(trace.batch.ios.is_empty());
    trace.event(Action::Complete, 0, 8);
    assert_eq!(trace.batch.ios[0].queued, Moment::at(10));
    trace.pairing.finish(&mut trace.batch);
    assert_eq!(trace.pairing.counts(), Counts { events: 5, ios: 1, unmatched: 0, incomplete: 0 });
}
