//! Schedulers that a program registers: they are simulated like any other, and what breaks a rule is an error.
//!
//! The registry belongs to the whole process, so every test takes a name of its own.

use std::collections::VecDeque;
use std::sync::Arc;

use blksim::block::queue_facts::QueueFacts;
use blksim::core::error::{Error, ErrorKind};
use blksim::core::record::JobRecord;
use blksim::elevator;
use blksim::elevator::registered::{RequestFacts, SchedulerCode, register, unregister};
use blksim::live::LiveSimulation;
use blksim::live::change::Change;
use blksim::simulate::{Outcome, Setup, simulate};

use crate::support::{fingerprint, setup};

const DEEP: &str = "[a]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=128\nsize=4g\nnorandommap\n\
                    time_based\nruntime=20\n";

/// A way to choose among held requests: place of the next, oldest first.
type Choose = fn(&mut Held) -> Result<Option<u64>, String>;

#[derive(Debug, Clone)]
struct Held {
    requests: VecDeque<RequestFacts>,
    now_ns: u64,
    timer_ns: Option<u64>,
    done: u64,
    choose: Choose,
}

impl SchedulerCode for Held {
    fn insert(&mut self, now_ns: u64, request: RequestFacts) -> Result<(), String> {
        self.now_ns = now_ns;
        self.requests.push_back(request);
        Ok(())
    }

    fn dispatch(&mut self, now_ns: u64) -> Result<Option<u64>, String> {
        self.now_ns = now_ns;
        (self.choose)(self)
    }

    fn completed(&mut self, now_ns: u64, _number: u64) -> Result<(), String> {
        self.now_ns = now_ns;
        self.done += 1;
        Ok(())
    }

    fn timer(&mut self, now_ns: u64) -> Result<(), String> {
        self.now_ns = now_ns;
        Ok(())
    }

    fn take_timer_ns(&mut self) -> Option<u64> {
        self.timer_ns.take()
    }

    fn copy(&self) -> Result<Box<dyn SchedulerCode>, String> {
        Ok(Box::new(self.clone()))
    }
}

#[expect(clippy::unnecessary_wraps, reason = "a Choose")]
fn first(held: &mut Held) -> Result<Option<u64>, String> {
    Ok(held.requests.pop_front().map(|request| request.number))
}

fn add(name: &str, choose: Choose) {
    let begin = move |_: QueueFacts| -> Result<Box<dyn SchedulerCode>, String> {
        let requests = VecDeque::new();
        Ok(Box::new(Held { requests, now_ns: 0, timer_ns: None, done: 0, choose }))
    };
    register(name, "of a test", Arc::new(begin)).unwrap();
}

fn run(name: &str, choose: Choose, jobs: &str) -> Result<Outcome, Error> {
    add(name, choose);
    simulate(&setup("hdd-7200", name, jobs))
}

fn failure(name: &str, choose: Choose) -> String {
    match run(name, choose, DEEP).unwrap_err() {
        Error::Simulation(error) if error.kind == ErrorKind::Scheduler => error.message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_is_simulated_like_any_other() {
    let jobs = "[a]\nrw=randrw\ndirect=1\nioengine=libaio\niodepth=64\nsize=1g\nnumber_ios=3000\n\
                [b]\nrw=write\nsize=16m\nfsync=8\nbs=64k\n\
                [c]\nrw=write\ndirect=1\nioengine=libaio\niodepth=128\nsize=16m\n";
    let mine = run("like-any-other", first, jobs).unwrap();
    assert_eq!(mine.scheduler.name, "like-any-other");
    assert_eq!(mine.scheduler.summary, "of a test");
    let again = simulate(&setup("hdd-7200", "like-any-other", jobs)).unwrap();
    assert_eq!(fingerprint(&mine), fingerprint(&again));
    assert!(mine.merges > 0, "nothing merged");
    let other = simulate(&setup("hdd-7200", "mq-deadline", jobs)).unwrap();
    let ios = |outcome: &Outcome| outcome.jobs.iter().map(JobRecord::ios).sum::<u64>();
    assert_eq!(ios(&mine), ios(&other));
}

#[test]
fn rules_are_kept_by_the_simulator() {
    let twice = failure("twice", |held| Ok(held.requests.front().map(|request| request.number)));
    assert!(twice.contains("request 1 twice"), "{twice}");
    let invents = failure("invents", |_| Ok(Some(1 << 40)));
    assert!(invents.contains("was given only"), "{invents}");
    let stalls = failure("stalls", |_| Ok(None));
    assert!(stalls.contains("for ever"), "{stalls}");
    let starves = failure("starves", |held| Ok(held.requests.pop_back().map(|one| one.number)));
    assert!(starves.contains("lets request") && starves.contains("starve"), "{starves}");
    let fails = failure("fails", |held| {
        if held.done < 100 { first(held) } else { Err("out of ideas".to_owned()) }
    });
    assert_eq!(fails, "out of ideas");
}

#[test]
fn a_scheduler_may_let_the_device_idle_until_a_timer() {
    let waits: Choose = |held| {
        let Some(request) = held.requests.front() else { return Ok(None) };
        // A request goes at the next full 10 ms.
        if held.now_ns.is_multiple_of(10_000_000) {
            let number = request.number;
            held.requests.pop_front();
            return Ok(Some(number));
        }
        held.timer_ns = Some(held.now_ns.next_multiple_of(10_000_000));
        Ok(None)
    };
    add("waits", waits);
    let jobs = "[a]\nrw=randread\ndirect=1\nsize=64m\nnumber_ios=50\n";
    let outcome = simulate(&setup("fixed", "waits", jobs)).unwrap();
    assert_eq!(outcome.jobs[0].ios(), 50);
    assert!(
        (490_000_000..=510_000_000).contains(&outcome.simulated_ns),
        "{}",
        outcome.simulated_ns
    );
}

#[test]
fn a_snapshot_has_code_of_its_own() {
    add("snapshot", first);
    let setup = setup("hdd-7200", "snapshot", DEEP);
    let mut live = LiveSimulation::new(&setup, Vec::new(), 1_000_000).unwrap();
    live.advance_until(500_000_000).unwrap();
    let mut copy = live.clone();
    for one in [&mut live, &mut copy] {
        one.advance_until(900_000_000).unwrap();
    }
    assert_eq!(live.job_records()[0].words(), copy.job_records()[0].words());
    let other = Change::Scheduler { name: "mq-deadline".to_owned(), tunables: Vec::new() };
    live.apply(&other).unwrap();
    let back = Change::Scheduler { name: "snapshot".to_owned(), tunables: Vec::new() };
    live.advance_until(1_500_000_000).unwrap();
    live.apply(&back).unwrap();
    live.advance_until(2_500_000_000).unwrap();
    assert_eq!(live.view().disks[0].scheduler, "snapshot");
}

#[test]
fn names_are_words_that_are_free() {
    let begin =
        |_: QueueFacts| -> Result<Box<dyn SchedulerCode>, String> { Err("never".to_owned()) };
    for name in ["", "Fifo", "two words", "1st", "a/b", "bfq", "none"] {
        let refused = register(name, "", Arc::new(begin)).unwrap_err();
        assert!(refused.to_string().contains("name"), "{refused}");
    }
    register("free_name-2", "", Arc::new(begin)).unwrap();
    assert!(elevator::all().iter().any(|info| info.name == "free_name-2"));
    let refused = simulate(&setup("fixed", "free_name-2", DEEP)).unwrap_err();
    assert_eq!(refused.to_string(), "never");
    assert!(unregister("free_name-2"));
    assert!(!unregister("free_name-2"));
    let gone: Setup = setup("fixed", "free_name-2", DEEP);
    assert!(simulate(&gone).unwrap_err().to_string().contains("is not simulated"));
}
