use super::*;
use crate::batch::Batch;
use crate::error::Warnings;
use crate::io::{Io, Moment, Operation};
use crate::names::Names;

/// A trace of I/Os that are given.
#[derive(Debug, Default)]
struct Given {
    ios: Vec<Io>,
    names: Names,
    facts: Facts,
    warnings: Warnings,
    begin_ns: u64,
}

impl RecordReader for Given {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn read(&mut self, batch: &mut Batch) -> Result<bool, RecordError> {
        batch.ios.append(&mut self.ios);
        Ok(!batch.is_empty())
    }

    fn tally(&self) -> Tally {
        Tally::default()
    }

    fn begin_ns(&self) -> u64 {
        self.begin_ns
    }

    fn warnings(&self) -> &Warnings {
        &self.warnings
    }
}

impl Given {
    fn io(&mut self, command: &str, sector: u64, times: [u64; 3]) {
        let [queued, issued, completed] = times.map(Moment::at);
        let mut io = Io::new(queued, Operation::Read, sector, 4096);
        (io.issued, io.completed) = (issued, completed);
        io.command = self.names.number_of(command);
        io.tgid = io.command;
        self.ios.push(io);
    }
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-6
}

#[test]
fn a_part_of_a_record_has_depths_of_its_own_time() {
    let mut trace = Given { begin_ns: 1000, ..Given::default() };
    // Queued and issued before the part begins; its waits count whole.
    trace.io("early", 0, [850, 900, 1050]);
    trace.io("late", 8, [1020, 1040, 1100]);
    let waits = of(&mut trace, &Interrupt::default()).unwrap();
    let [device] = &waits.devices[..] else { panic!("{waits:?}") };
    assert_eq!(device.busy_ns, Some(100));
    assert!(near(device.in_device.unwrap().mean, (50.0 + 60.0) / 100.0));
    assert!(near(device.in_queue.unwrap().mean, 20.0 / 100.0));
    let early = waits.tasks.iter().find(|task| task.command == "early").unwrap();
    assert_eq!((early.queue_ns.max, early.device_ns.max), (50, 150));
}

#[test]
fn waits_are_charged_to_who_held_the_device() {
    let mut trace = Given::default();
    trace.io("writer", 0, [0, 0, 100]);
    trace.io("writer", 8, [0, 50, 150]);
    // Waits in the queue while the writer has one I/O in the device, then two, then one; then in the idle
    // device's queue; then it is alone.
    trace.io("reader", 800, [20, 160, 200]);
    let waits = of(&mut trace, &Interrupt::default()).unwrap();
    let [writer, reader] = &waits.tasks[..] else { panic!("{waits:?}") };
    assert_eq!((writer.command.as_str(), reader.command.as_str()), ("writer", "reader"));
    let [(0, held)] = reader.held_in_queue.tasks[..] else { panic!("{reader:?}") };
    assert!(near(held, 130.0) && near(reader.held_in_queue.idle_ns, 10.0));
    let [(1, held)] = reader.held_in_device.tasks[..] else { panic!("{reader:?}") };
    assert!(near(held, 40.0));
    // The writer's second I/O waited for its first.
    let [(0, held)] = writer.held_in_queue.tasks[..] else { panic!("{writer:?}") };
    assert!(near(held, 50.0));
    assert_eq!((reader.queue_ns.max, reader.device_ns.max, reader.latency_ns.max), (140, 40, 180));
    assert_eq!((writer.sequential, reader.sequential, waits.all.sequential), (1, 0, 1));
    assert_eq!(waits.devices[0].busy_ns, Some(190));
    let [device] = &waits.devices[..] else { panic!("{waits:?}") };
    assert_eq!((device.in_device.unwrap().max, device.in_queue.unwrap().max), (2, 2));
}

#[test]
fn every_nanosecond_of_waiting_is_charged_once() {
    let mut trace = Given::default();
    let mut state = 1_u64;
    let mut random = |most: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    for number in 0..3000 {
        let queued = random(1_000_000);
        let issued = queued + random(1000);
        let command = format!("task {}", random(12));
        trace.io(&command, number * 8, [queued, issued, issued + random(5000)]);
    }
    let waits = of(&mut trace, &Interrupt::default()).unwrap();
    for task in &waits.tasks {
        let held: f64 = task.held_in_queue.tasks.iter().map(|(_, ns)| ns).sum();
        let total = held + task.held_in_queue.others_ns + task.held_in_queue.idle_ns;
        assert!((total - task.queue_ns.sum).abs() < 1.0, "{total} of {}", task.queue_ns.sum);
        let held: f64 = task.held_in_device.tasks.iter().map(|(_, ns)| ns).sum();
        assert!((held + task.held_in_device.others_ns - task.device_ns.sum).abs() < 1.0);
    }
    assert_eq!(waits.all.ios, 3000);
    let mapped: u64 = waits.over_time.counts.iter().flatten().sum();
    assert_eq!(mapped, 3000);
}

#[test]
fn many_tasks_share_the_last_account() {
    let mut trace = Given::default();
    for number in 0..40 {
        trace.io(&format!("task {number}"), number, [number * 5, number * 5 + 2, number * 5 + 300]);
    }
    let waits = of(&mut trace, &Interrupt::default()).unwrap();
    assert_eq!(waits.tasks.len(), 40);
    let charged = waits.tasks.iter().filter(|task| !task.held_in_device.tasks.is_empty()).count();
    assert_eq!(charged, 15);
    assert!(waits.tasks.iter().any(|task| task.held_in_device.others_ns > 0.0));
}

#[test]
fn traces_without_completions_have_no_waits() {
    let mut trace = Given::default();
    trace.ios.push(Io::new(Moment::at(5), Operation::Write, 0, 512));
    let waits = of(&mut trace, &Interrupt::default()).unwrap();
    assert!(!waits.completions_known && !waits.issues_known);
    assert_eq!((waits.all.ios, waits.all.latency_ns.count), (1, 0));
    let empty = of(&mut Given::default(), &Interrupt::default()).unwrap();
    assert_eq!((empty.all.ios, empty.tasks.len()), (0, 0));
}
