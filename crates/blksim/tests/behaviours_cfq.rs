//! Known behaviours of cfq, each with its reason. Requests of the device
//! `fixed` all take a millisecond, so a share of requests is a share of time.

mod support;

use blksim::record::{Direction, JobRecord};
use blksim::simulate::{Outcome, Setup};
use support::{fixed, given, job, run, setup};

const BOTH: [&str; 2] = ["cfq", "cfq-2.6.32"];
const DISK: [(&str, &str); 3] = [("latency", "1ms"), ("depth", "1"), ("rotational", "1")];

/// Sequential readers, one for each level, that always have requests waiting.
fn readers(levels: &[u8], extra: &str) -> String {
    let mut jobs = format!(
        "[global]\nrw=read\ndirect=1\nsize=1g\nioengine=libaio\niodepth=4\nruntime=120\ntime_based\n{extra}"
    );
    for (index, level) in levels.iter().enumerate() {
        jobs += &format!("[r{index}]\nprio={level}\n");
    }
    jobs
}

fn shares(outcome: &Outcome) -> Vec<f64> {
    let ios = |job: &JobRecord| {
        (job.direction(Direction::Read).ios + job.direction(Direction::Write).ios) as f64
    };
    let total: f64 = outcome.jobs.iter().map(ios).sum();
    outcome.jobs.iter().map(|job| ios(job) / total).collect()
}

fn assert_near(shares: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    let fits = shares.iter().zip(expected).all(|(a, b)| (a - b).abs() <= tolerance);
    assert!(fits, "{what}: {shares:.3?}, not {expected:?}");
}

/// A setup whose requests do not merge, so that each takes a millisecond.
fn slices(scheduler: &str, jobs: &str) -> Setup {
    let mut setup = fixed(&DISK, scheduler, jobs);
    setup.queue = given(&[("nomerges", "2")]);
    setup
}

#[test]
fn two_queues_share_the_disk_as_their_slices() {
    // Slices of 180, 100 and 40 ms at levels 0, 4 and 7. With two queues the
    // turns alternate whatever the keys are, so only the slices count.
    for scheduler in BOTH {
        for (levels, ratio) in [([0, 7], 4.5), ([0, 4], 1.8), ([4, 4], 1.0)] {
            let shares = shares(&run(&slices(scheduler, &readers(&levels, ""))));
            let seen = shares[0] / shares[1];
            assert!((seen / ratio - 1.0).abs() < 0.05, "{scheduler} {levels:?}: {seen}");
        }
    }
}

#[test]
fn readers_that_ask_one_by_one_get_the_same_shares() {
    // Each leaves its queue empty whenever a request is under way; the disk
    // waits for the next, so the slice goes on.
    for scheduler in BOTH {
        let jobs = readers(&[0, 7], "").replace("iodepth=4", "iodepth=1");
        let shares = shares(&run(&slices(scheduler, &jobs)));
        let seen = shares[0] / shares[1];
        assert!((seen / 4.5 - 1.0).abs() < 0.05, "{scheduler}: {seen}");
    }
}

#[test]
fn with_a_third_queue_low_levels_skip_rounds() {
    // A key lies (n - 1) x (180 ms - own slice) in the future: with three
    // queues level 7 is set back by more than a round of the others.
    let shares = shares(&run(&slices("cfq", &readers(&[0, 0, 7], ""))));
    assert_near(&shares, &[0.466, 0.465, 0.069], 0.01, "0, 0, 7");
}

#[test]
fn eight_levels_spread_as_the_keys_say() {
    let jobs = readers(&[0, 1, 2, 3, 4, 5, 6, 7], "");
    let with = shares(&run(&slices("cfq", &jobs)));
    assert_near(&[with[0], with[7]], &[0.47, 0.013], 0.02, "low_latency");
    let mut plain = slices("cfq", &jobs);
    plain.tunables = given(&[("low_latency", "0")]);
    let without = shares(&run(&plain));
    assert_near(&[without[0], without[7]], &[0.25, 0.027], 0.02, "no low_latency");
    for shares in [with, without] {
        assert!(shares.is_sorted_by(|a, b| a > b), "{shares:.3?}");
    }
}
