//! Replays on real processors, where calls take time.

use blksim::workload::own_priority::OwnPriority;
use blksim::workload::replay::{OwnPath, TaskPlan};

use super::buffer::{MostBuffers, SegmentLimits};

/// A replay on real processors, where calls take time.
#[derive(Debug, Clone, Copy)]
pub struct RealReplay {
    /// Of a task that calls for one I/O after the other.
    pub synchronous: OwnPath,
    /// Of one that submits several.
    pub asynchronous: OwnPath,
    /// Has no task make synchronous calls.
    pub always_asynchronous: bool,
    /// There are more tasks than processors, or several on one.
    pub shares_processors: bool,
    /// Those of the disk's driver, if they are known.
    pub segment_limits: Option<SegmentLimits>,
    pub most_buffers: MostBuffers,
}

impl RealReplay {
    /// Whether an I/O is a synchronous call, as it can be if its task has no other in flight, at the task's own
    /// priority: those take less time, and a file system ends an asynchronous direct write in a worker
    /// (`iomap_dio_bio_end_io` in fs/iomap/direct-io.c, Linux 6.18).
    pub fn is_call(&self, alone: bool, priority: Option<OwnPriority>) -> bool {
        alone && priority.is_none() && !self.always_asynchronous
    }

    /// Whether all I/Os of a task are such calls.
    pub fn only_calls(&self, plan: &TaskPlan) -> bool {
        (0..).zip(&plan.ios).all(|(index, io)| self.is_call(plan.is_alone(index), io.priority))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blksim::core::record::Direction;
    use blksim::workload::replay::ReplayIo;

    fn io(waits_for: u32, priority: Option<OwnPriority>) -> ReplayIo {
        ReplayIo {
            priority,
            waits_for,
            rank: waits_for,
            ..ReplayIo::plain(Direction::Read, 0, 4096)
        }
    }

    #[test]
    fn a_task_with_one_io_at_a_time_and_one_priority_makes_synchronous_calls() {
        let path = OwnPath::default();
        let real = RealReplay {
            synchronous: path,
            asynchronous: path,
            always_asynchronous: false,
            shares_processors: false,
            segment_limits: None,
            most_buffers: MostBuffers { number: 1, bytes: 0 },
        };
        let plan = |ios: &[ReplayIo]| TaskPlan { ios: ios.to_vec(), ..TaskPlan::default() };
        assert!(real.only_calls(&plan(&[io(0, None), io(1, None)])));
        assert!(!real.only_calls(&plan(&[io(0, None), io(0, None)])));
        // A call cannot say which priority its I/O has.
        let other = Some(OwnPriority { class: 1, level: 4 });
        assert!(!real.only_calls(&plan(&[io(0, None), io(1, other)])));
        // The first and the last I/O of such a task are calls, and the two between them not.
        let mixed = plan(&[io(0, None), io(1, None), io(1, None), io(3, None)]);
        assert!(!real.only_calls(&mixed));
        let alone = [0, 1, 2, 3].map(|index| real.is_call(mixed.is_alone(index), None));
        assert_eq!(alone, [true, false, false, true]);
        let real = RealReplay { always_asynchronous: true, ..real };
        assert!(!real.only_calls(&plan(&[io(0, None), io(1, None)])));
    }
}
