//! A clone's I/O by slot: of a switchback, or a phase between planned changes.

use blksim::core::record::JobRecord;
use blksim::task::slots::{SlotPlan, SlotRecord, SlotRecorder, SlotTimes};

use super::words;
use crate::failure::Failure;

/// The name of what a clone leaves.
const SLOTS: &str = "record of slots";

/// Records a clone's slots while it works. Times of I/Os are `CLOCK_MONOTONIC`.
#[derive(Debug)]
pub struct CloneSlots {
    recorder: SlotRecorder,
    start_ns: u64,
}

impl CloneSlots {
    /// Slots whose times count from `start_ns`.
    pub fn new(plan: &SlotPlan, start_ns: u64) -> Self {
        Self { recorder: SlotRecorder::new(plan), start_ns }
    }

    /// All I/Os that completed before this moment are in the record.
    #[inline]
    pub fn advance(&mut self, now_ns: u64, record: &mut JobRecord) {
        let before_ns = now_ns.saturating_sub(self.start_ns).saturating_sub(1);
        if self.recorder.next_ns().is_some_and(|edge_ns| edge_ns <= before_ns) {
            self.recorder.advance(before_ns, std::slice::from_mut(record));
        }
    }

    /// Ends the slots that are left: this clone does nothing more.
    pub fn close(&mut self, record: &mut JobRecord) {
        self.recorder.close(std::slice::from_mut(record));
    }

    /// The record of the whole run, from that since the last slot.
    pub fn whole(&self, record: &JobRecord) -> JobRecord {
        self.recorder.whole(std::slice::from_ref(record)).remove(0)
    }

    /// Leaves the slots that have ended for [`collect_slots`].
    pub fn leave(&self, number: u32) -> Result<(), Failure> {
        words::leave(SLOTS, number, self.words())
    }

    /// For each slot that has ended: both lengths, its windows, and the words of its record.
    fn words(&self) -> Vec<u64> {
        let mut words = Vec::new();
        for slot in self.recorder.ended() {
            let record = slot.jobs[0].words();
            words.extend([slot.ios.len() as u64, record.len() as u64]);
            words.extend(slot.ios.iter().chain(&record));
        }
        words
    }
}

/// Slots without any I/O, to add those of the clones to.
pub fn empty_slots(plan: &SlotPlan, jobs: &[JobRecord]) -> Vec<SlotRecord> {
    let slot = |times: &SlotTimes| {
        let windows = (times.end_ns - times.start_ns) / plan.window_ns;
        SlotRecord { times: *times, jobs: jobs.to_vec(), ios: vec![0; windows as usize] }
    };
    plan.times.iter().map(slot).collect()
}

/// Adds the slots of a clone to those of the run, and drops those that it did not reach.
pub fn collect_slots(number: u32, job: usize, slots: &mut Vec<SlotRecord>) -> Result<(), Failure> {
    add_words(&words::collect(SLOTS, number)?, job, slots).ok_or_else(|| words::broken(SLOTS))
}

fn add_words(mut words: &[u64], job: usize, slots: &mut Vec<SlotRecord>) -> Option<()> {
    let mut ended = 0;
    while let [windows, length, rest @ ..] = words {
        let (ios, rest) = rest.split_at_checked(*windows as usize)?;
        let (record, rest) = rest.split_at_checked(*length as usize)?;
        let slot = slots.get_mut(ended)?;
        for (sum, added) in slot.ios.iter_mut().zip(ios) {
            *sum += added;
        }
        slot.jobs.get_mut(job)?.add_words(record.iter().copied())?;
        ended += 1;
        words = rest;
    }
    slots.truncate(ended);
    words.is_empty().then_some(())
}

#[cfg(test)]
mod tests {
    use blksim::core::record::Direction;

    use super::*;

    fn turns() -> SlotPlan {
        let times = |start_ns| SlotTimes {
            start_ns,
            end_ns: start_ns + 100,
            kept_from_ns: start_ns + 50,
            kept_to_ns: start_ns + 100,
        };
        SlotPlan { times: vec![times(1000), times(1100)], window_ns: 50, focus: Vec::new() }
    }

    #[test]
    fn slots_after_a_clones_end_are_without_its_ios() {
        let turns = turns();
        let mut slots = empty_slots(&turns, &[JobRecord::new("a", 1)]);
        let (mut own, mut record) = (CloneSlots::new(&turns, 0), JobRecord::new("a", 1));
        own.advance(1060, &mut record);
        record.add(Direction::Read, 4096, 7);
        own.close(&mut record);
        add_words(&own.words(), 0, &mut slots).unwrap();
        assert_eq!(slots.iter().map(|slot| slot.jobs[0].ios()).collect::<Vec<_>>(), [1, 0]);
        assert_eq!(own.whole(&record).ios(), 1);
    }

    #[test]
    fn slots_of_clones_add_up() {
        let turns = turns();
        let mut slots = empty_slots(&turns, &[JobRecord::new("a", 2)]);
        for latency_ns in [7, 9] {
            let mut own = CloneSlots::new(&turns, 10_000);
            let mut record = JobRecord::new("a", 1);
            // One I/O in the cut part, two at the edges of the kept part, one in the next slot.
            for now_ns in [11_020, 11_050, 11_099, 11_160, 11_300] {
                own.advance(now_ns, &mut record);
                record.add(Direction::Read, 4096, latency_ns);
            }
            assert_eq!(own.whole(&record).direction(Direction::Read).ios(), 5);
            add_words(&own.words(), 0, &mut slots).unwrap();
        }
        assert_eq!(slots[0].ios, [2, 4]);
        assert_eq!(slots[1].ios, [0, 2]);
        let reads = slots[0].jobs[0].direction(Direction::Read);
        assert_eq!((reads.ios(), reads.latency.sum_ns()), (4, 32));
        assert_eq!(slots[0].jobs[0].runtime_ns, 50);
        assert!(add_words(&[1], 0, &mut slots).is_none());
    }

    #[test]
    fn slots_that_a_clone_did_not_reach_are_dropped() {
        let turns = turns();
        let mut slots = empty_slots(&turns, &[JobRecord::new("a", 1)]);
        add_words(&[], 0, &mut slots).unwrap();
        assert!(slots.is_empty());
    }
}
