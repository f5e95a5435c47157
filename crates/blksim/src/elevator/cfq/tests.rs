//! Tests of what jobs cannot cause by themselves: groups, and tasks that read in the same place.

use super::{Cfq, GroupShare};
use crate::block::queue_facts::QueueFacts;
use crate::block::request::{Operation, Purpose, Request, RequestId, Requests};
use crate::core::event::EventQueue;
use crate::core::params::Values;
use crate::elevator::scheduler::{Context, QueueView, Scheduler};

const DISK: QueueFacts =
    QueueFacts { rotational: true, device_depth: 1, nr_requests: 128, ..QueueFacts::TYPICAL };
const MILLISECOND_NS: u64 = 1_000_000;

/// A device of depth 1 that serves a request in a millisecond.
struct Bench<const TREES: bool> {
    cfq: Cfq<TREES>,
    requests: Requests,
    queue: QueueView,
    events: EventQueue,
}

impl<const TREES: bool> Bench<TREES> {
    fn new(tunables: &[(&str, &str)]) -> Self {
        let mut values = Values::defaults(Cfq::<TREES>::INFO.tunables);
        for (name, text) in tunables {
            values.set(name, text).unwrap();
        }
        Self {
            cfq: Cfq::new(&values, DISK),
            requests: Requests::new(),
            queue: QueueView::new(DISK, 0),
            events: EventQueue::new(),
        }
    }

    fn call<R>(&mut self, call: impl FnOnce(&mut Cfq<TREES>, &mut Context) -> R) -> R {
        let mut context = Context {
            requests: &mut self.requests,
            queue: &mut self.queue,
            events: &mut self.events,
        };
        call(&mut self.cfq, &mut context)
    }

    fn read(&mut self, task: u32, group: u16, sector: u64) -> RequestId {
        let mut request = Request::new(Operation::Read, sector, 8, Purpose::Direct);
        request.context = task;
        request.group = group;
        request.inserted_ns = self.events.now_ns();
        let id = self.requests.allocate(request);
        self.call(|cfq, cx| cfq.insert(cx, id));
        id
    }

    /// Serves one request, after idling if the scheduler idles. Returns its task and group.
    fn serve(&mut self) -> (u32, u16) {
        loop {
            let Some(id) = self.call(Cfq::dispatch) else {
                assert!(self.events.advance().is_some(), "the scheduler stands still");
                self.call(Cfq::timer);
                continue;
            };
            let done_ns = self.events.now_ns() + MILLISECOND_NS;
            while self.events.next_ns().is_some_and(|next_ns| next_ns < done_ns) {
                self.events.advance();
                self.call(Cfq::timer);
            }
            self.events.move_to(done_ns);
            self.call(|cfq, cx| cfq.complete(cx, id));
            let request = &self.requests[id];
            let served = (request.context, request.group);
            self.requests.release(id);
            return served;
        }
    }

    fn queue_of(&self, task: u32) -> Option<u32> {
        let mut bio = Request::new(Operation::Read, 0, 8, Purpose::Direct);
        bio.context = task;
        self.cfq.known_queue(&bio)
    }
}

/// Served requests of each task; all tasks always have requests.
fn turns(bench: &mut Bench<true>, groups: &[u16], served: usize) -> Vec<usize> {
    let mut sector = 0;
    let mut counts = vec![0; groups.len()];
    for (task, &group) in groups.iter().enumerate() {
        for _ in 0..4 {
            sector += 8;
            bench.read(task as u32, group, task as u64 * 100_000_000 + sector);
        }
    }
    for _ in 0..served {
        let (task, group) = bench.serve();
        counts[task as usize] += 1;
        sector += 8;
        bench.read(task, group, u64::from(task) * 100_000_000 + sector);
    }
    counts
}

fn share(weight: u32, parent: u16) -> GroupShare {
    GroupShare { parent, weight, ..GroupShare::default() }
}

#[test]
fn groups_share_the_disk_by_weight() {
    // Virtual time goes by in inverse proportion to the weight.
    let mut bench = Bench::<true>::new(&[]);
    bench.cfq.set_group(1, share(200, 0));
    bench.cfq.set_group(2, share(400, 0));
    let counts = turns(&mut bench, &[1, 2], 60_000);
    let ratio = counts[1] as f64 / counts[0] as f64;
    assert!((ratio - 2.0).abs() < 0.05, "{counts:?}");
}

#[test]
fn a_group_does_not_gain_by_more_tasks() {
    let mut bench = Bench::<true>::new(&[]);
    bench.cfq.set_group(1, share(500, 0));
    bench.cfq.set_group(2, share(500, 0));
    let counts = turns(&mut bench, &[1, 2, 2, 2], 60_000);
    let ratio = counts[1..].iter().sum::<usize>() as f64 / counts[0] as f64;
    assert!((ratio - 1.0).abs() < 0.05, "{counts:?}");
}

#[test]
fn a_child_group_competes_with_the_tasks_of_its_parent() {
    // Group 1 has half of the disk beside group 2. Inside it, its own tasks
    // (leaf weight 500) and its child (weight 500) get a half of that each.
    let mut bench = Bench::<true>::new(&[]);
    bench.cfq.set_group(1, share(500, 0));
    bench.cfq.set_group(2, share(500, 0));
    bench.cfq.set_group(3, share(500, 1));
    let counts = turns(&mut bench, &[1, 2, 3], 60_000);
    let part = |task: usize| counts[task] as f64 / 60_000.0;
    assert!((part(0) - 0.25).abs() < 0.02, "{counts:?}");
    assert!((part(1) - 0.5).abs() < 0.02, "{counts:?}");
}

#[test]
fn the_old_version_knows_no_groups() {
    let mut bench = Bench::<false>::new(&[]);
    bench.cfq.set_group(1, share(10, 0));
    bench.read(0, 1, 0);
    bench.read(1, 2, 100_000_000);
    assert_eq!(bench.cfq.groups[0].trees[0].len(), 2);
}

/// Two tasks take turns at the requests of one sequential stream.
fn read_together<const TREES: bool>(bench: &mut Bench<TREES>) {
    let mut sector = 1_000_000;
    for _ in 0..8 {
        for task in 0..2 {
            bench.read(task, 0, sector);
            sector += 8;
        }
        bench.serve();
        bench.serve();
    }
}

#[test]
fn tasks_that_read_in_the_same_place_share_a_queue_until_they_part() {
    // Instead of idling for the one, the disk takes the other's request, which
    // is close; from then on both go to one queue. When its requests are far
    // apart, it is split again.
    let mut bench = Bench::<true>::new(&[]);
    read_together(&mut bench);
    assert_eq!(bench.queue_of(0), bench.queue_of(1));
    for step in 0..60 {
        for task in 0..2 {
            bench.read(task, 0, u64::from(task) * 900_000_000 + step * 10_000);
        }
        bench.serve();
        bench.serve();
    }
    assert_ne!(bench.queue_of(0), bench.queue_of(1));
}

#[test]
fn the_old_version_splits_after_a_second() {
    let mut bench = Bench::<false>::new(&[]);
    read_together(&mut bench);
    assert_eq!(bench.queue_of(0), bench.queue_of(1));
    for step in 0..1000 {
        for task in 0..2 {
            bench.read(task, 0, u64::from(task) * 900_000_000 + step * 10_000);
        }
        bench.serve();
        bench.serve();
        if bench.queue_of(0) != bench.queue_of(1) {
            assert!(bench.events.now_ns() > 1_000_000_000);
            return;
        }
    }
    panic!("the queue was not split");
}

#[test]
fn queues_of_ended_tasks_are_used_again() {
    let mut bench = Bench::<true>::new(&[]);
    for task in 0..100 {
        bench.read(task, 0, u64::from(task) * 1_000_000);
        bench.serve();
        bench.call(|cfq, cx| cfq.exit_task(cx, task));
    }
    assert_eq!(bench.cfq.queues.nr_slots(), 1);
    assert_eq!(bench.cfq.busy_queues, 0);
}
