//! Known behaviours of bfq, each with its reason.

use crate::support::{fixed, given, job, run, setup};
use blksim::core::record::Direction;
use blksim::simulate::{Outcome, Setup};

/// bfq without weight raising: it would take every new process for
/// an interactive one, which hides the effects under test.
fn fair(mut setup: Setup) -> Setup {
    setup.tunables = given(&[("low_latency", "0")]);
    setup
}

/// A device that serves 131 MB/s at 128 KiB, one request at a time, and a
/// queue that holds enough for all.
fn one_at_a_time(rotational: &str, jobs: &str) -> Setup {
    let device = [("latency", "1ms"), ("depth", "1"), ("rotational", rotational)];
    let mut setup = fair(fixed(&device, "bfq", jobs));
    setup.queue = given(&[("nr_requests", "64")]);
    setup
}

fn megabytes(outcome: &Outcome, name: &str) -> f64 {
    job(outcome, name).bytes_per_second() / 1e6
}

fn ratio(outcome: &Outcome, a: &str, b: &str) -> f64 {
    megabytes(outcome, a) / megabytes(outcome, b)
}

const READERS: &str = "[global]\ndirect=1\nrw=read\nbs=128k\nruntime=40\ntime_based\nsize=1g\n";

#[test]
fn bandwidth_follows_the_level_of_priority() {
    // Weight is (8 - level) * 10: levels 0, 4 and 7 weigh 80, 40 and 10.
    let jobs =
        format!("{READERS}[hi]\nprio=0\n[mid]\nprio=4\noffset=20g\n[lo]\nprio=7\noffset=40g\n");
    let outcome = run(&one_at_a_time("1", &jobs));
    for (name, expected) in [("mid", 2.0), ("lo", 8.0)] {
        let share = ratio(&outcome, "hi", name);
        assert!((share / expected - 1.0).abs() < 0.05, "hi to {name}: {share}");
    }
}

#[test]
fn bandwidth_follows_priority_on_a_disk() {
    let jobs = format!("{READERS}[hi]\nprio=0\n[lo]\nprio=7\noffset=500g\n");
    let outcome = run(&fair(setup("hdd-7200", "bfq", &jobs)));
    let share = ratio(&outcome, "hi", "lo");
    assert!((share / 8.0 - 1.0).abs() < 0.1, "{share}");
}

#[test]
fn a_light_queue_on_flash_is_not_waited_for_and_loses() {
    // Where waiting gains no throughput, only queues above the smallest
    // weight are waited for. The lightest one gives up its turn with each
    // request, and what it missed meanwhile counts only within its budget:
    // small budgets restore 8 : 1.
    let jobs = format!("{READERS}[hi]\nprio=0\n[lo]\nprio=7\noffset=20g\n");
    let large = one_at_a_time("0", &jobs);
    let mut small = large.clone();
    small.tunables = given(&[("low_latency", "0"), ("max_budget", "256")]);
    let (large, small) = (ratio(&run(&large), "hi", "lo"), ratio(&run(&small), "hi", "lo"));
    assert!(large > 12.0, "{large}");
    assert!((small / 8.0 - 1.0).abs() < 0.05, "{small}");
}

#[test]
fn equal_processes_are_served_equally() {
    let jobs = format!("{READERS}[a]\n[b]\noffset=20g\n[c]\noffset=40g\n");
    let outcome = run(&one_at_a_time("1", &jobs));
    for name in ["b", "c"] {
        let share = ratio(&outcome, "a", name);
        assert!((share - 1.0).abs() < 0.03, "a to {name}: {share}");
    }
}

#[test]
fn the_idle_class_gets_a_sliver() {
    // One turn in 200 ms, and a turn is one request.
    let jobs = "[global]\ndirect=1\nrw=read\nruntime=20\ntime_based\nsize=1g\n\
        [be]\n[idle]\nprioclass=3\noffset=20g\n";
    let outcome = run(&one_at_a_time("0", jobs));
    let a_second = job(&outcome, "idle").iops();
    assert!((4.0..6.0).contains(&a_second), "{a_second}");
}

#[test]
fn two_sequential_readers_are_nearly_as_fast_as_one() {
    // The disk waits for the next request of the one instead of seeking to
    // the other and back: a seek only once a budget.
    let one = format!("{READERS}[a]\n");
    let two = format!("{READERS}[a]\n[b]\noffset=500g\n");
    let alone = megabytes(&run(&fair(setup("hdd-7200", "bfq", &one))), "a");
    let total = |outcome: &Outcome| megabytes(outcome, "a") + megabytes(outcome, "b");
    let shared = total(&run(&fair(setup("hdd-7200", "bfq", &two))));
    let seeking = total(&run(&setup("hdd-7200", "mq-deadline", &two)));
    assert!(shared > 0.7 * alone, "{shared} MB/s of {alone}");
    assert!(shared > 5.0 * seeking, "{shared} MB/s, mq-deadline {seeking}");
}

#[test]
fn readers_started_together_and_raised_end_in_one_queue() {
    // With low_latency, readers that are both raised are not waited for, so
    // that after 600 ms they are merged for good. Started a second apart they
    // stay two queues, and are fast once they count normally.
    let together = format!("{READERS}ramp_time=25\n[a]\n[b]\noffset=500g\n");
    let apart = format!("{together}startdelay=1\n");
    let total = |jobs: &str| {
        let outcome = run(&setup("hdd-7200", "bfq", jobs));
        megabytes(&outcome, "a") + megabytes(&outcome, "b")
    };
    let (together, apart) = (total(&together), total(&apart));
    assert!(together * 5.0 < apart, "{together} and {apart} MB/s");
}

#[test]
fn waiting_costs_throughput() {
    // Readers that pause for 4 ms: while the device waits for one, it does
    // nothing, although others have work. Without slice_idle it is used.
    let jobs = "[global]\ndirect=1\nrw=randread\nthinktime=4ms\nruntime=20\ntime_based\nsize=1g\n\
        [hi]\nprio=0\nnumjobs=2\n[lo]\nprio=7\nnumjobs=8\n";
    let waiting = one_at_a_time("1", jobs);
    let mut busy = waiting.clone();
    busy.tunables = given(&[("low_latency", "0"), ("slice_idle", "0")]);
    let total = |outcome: &Outcome| {
        outcome.jobs.iter().map(blksim::core::record::JobRecord::iops).sum::<f64>()
    };
    let (waiting, busy) = (total(&run(&waiting)), total(&run(&busy)));
    assert!(waiting < 0.7 * busy, "{waiting} of {busy} a second");
}

#[test]
fn a_new_process_is_fast_beside_writers() {
    // It counts thirty times; writes get fewer tags meanwhile.
    for (writers, gain) in [("", 2.0), ("direct=1\nioengine=libaio\niodepth=8\n", 2.5)] {
        let jobs = format!(
            "[global]\nruntime=20\ntime_based\nsize=2g\n[w]\nrw=write\nbs=1m\nnumjobs=2\n{writers}\
             [new]\nstartdelay=10\nruntime=5\nrw=randread\ndirect=1\noffset=100g\n"
        );
        let mean_ms = |setup: &Setup| {
            job(&run(setup), "new").direction(Direction::Read).latency.mean_ns() / 1e6
        };
        let raised = mean_ms(&setup("hdd-7200", "bfq", &jobs));
        let plain = mean_ms(&fair(setup("hdd-7200", "bfq", &jobs)));
        assert!(raised < 10.0, "{writers}: {raised} ms");
        assert!(raised * gain < plain, "{writers}: {raised} ms and {plain} ms");
    }
}

#[test]
fn async_writers_are_squeezed_by_a_reader() {
    // Writeback is one queue whose sectors count three times, with half of
    // the tags, and the sequential reader is waited for. Others let the
    // writers fill the drive.
    let jobs = "[global]\nruntime=20\ntime_based\nsize=8g\n\
        [w]\nrw=write\nbs=1m\nnumjobs=2\n[r]\nrw=read\ndirect=1\nbs=128k\noffset=500g\n";
    let bfq = run(&fair(setup("hdd-7200", "bfq", jobs)));
    let none = run(&setup("hdd-7200", "none", jobs));
    assert!(megabytes(&bfq, "r") > 40.0, "{} MB/s", megabytes(&bfq, "r"));
    assert!(megabytes(&none, "r") < 10.0, "{} MB/s", megabytes(&none, "r"));
    assert!(ratio(&none, "w", "r") > 10.0 * ratio(&bfq, "w", "r"));
}

#[test]
fn strict_guarantees_serve_one_request_at_a_time() {
    let jobs = "[a]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=32\nnumber_ios=2000\n";
    let mut strict = setup("nvme-tlc", "bfq", jobs);
    let open = run(&strict);
    strict.tunables = given(&[("strict_guarantees", "1")]);
    let strict = run(&strict);
    assert_eq!(strict.peak_in_flight, 1);
    assert!(open.peak_in_flight > 8, "{}", open.peak_in_flight);
}

#[test]
fn processes_started_together_share_a_queue_on_flash() {
    // Nothing would be gained by keeping them apart: no waiting, so the
    // device stays full.
    let jobs = "[a]\nrw=randread\ndirect=1\nnumjobs=32\nruntime=1\ntime_based\nsize=1g\n";
    let outcome = run(&fixed(&[("latency", "100us"), ("depth", "8")], "bfq", jobs));
    let iops = outcome.jobs[0].iops();
    assert!((iops / 80_000.0 - 1.0).abs() < 0.01, "{iops}");
}

#[test]
fn the_tunables_of_slice_idle_are_one() {
    let jobs = "[a]\nrw=randread\ndirect=1\nnumber_ios=10\n";
    let mut setup = setup("fixed", "bfq", jobs);
    setup.tunables = given(&[("slice_idle_us", "2500")]);
    let outcome = run(&setup);
    assert_eq!(outcome.tunables.get("slice_idle_us"), 2500);
    assert_eq!(outcome.tunables.get("slice_idle"), 2);
    setup.tunables = given(&[("slice_idle", "3")]);
    assert_eq!(run(&setup).tunables.get("slice_idle_us"), 3000);
}
