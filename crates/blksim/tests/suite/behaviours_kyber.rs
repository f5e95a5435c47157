//! Known behaviours of kyber, each with its reason.

use crate::support::{fixed, given, job, run, setup};
use blksim::core::record::Direction;
use blksim::simulate::Setup;

const KYBERS: [&str; 2] = ["kyber", "kyber-4.12"];

/// Random readers beside deep direct writers.
const READERS_AND_WRITERS: &str = "[global]\ndirect=1\nioengine=libaio\nruntime=20\ntime_based\n\
    [r]\nrw=randread\niodepth=4\n[w]\nrw=randwrite\niodepth=128\n";

#[test]
fn writers_of_a_disk_are_squeezed_while_reads_miss_their_target() {
    // On a disk a random read takes longer than 2 ms whatever is done. Writes
    // that meet their own target, here a lax one, lose their tokens down to
    // the last, and the drive's queue is left to the readers. (With 10 ms, 128
    // waiting writers miss their target too, and keep their tokens.)
    let jobs = "[global]\ndirect=1\nioengine=libaio\nramp_time=20\nruntime=40\ntime_based\n\
        [r]\nrw=randread\niodepth=4\n[w]\nrw=randwrite\niodepth=64\n";
    let mut squeezed = setup("hdd-7200", "kyber", jobs);
    squeezed.tunables = given(&[("write_lat_nsec", "10s")]);
    // What the drive's own write cache does to reads is not the host's to say.
    squeezed.profile.set("write_cache_sectors", "0").unwrap();
    let mut open = squeezed.clone();
    open.tunables = given(&[("read_lat_nsec", "10s"), ("write_lat_nsec", "10s")]);
    let read_ms =
        |setup: &Setup| job(&run(setup), "r").direction(Direction::Read).latency.mean_ns() / 1e6;
    let (squeezed, open) = (read_ms(&squeezed), read_ms(&open));
    assert!(squeezed * 2.0 < open, "{squeezed} ms, without targets {open} ms");
}

#[test]
fn both_heuristics_cut_writes_that_meet_a_lax_target() {
    // 16 slots of 1 ms: reads miss 1.5 ms as long as writes fill the queue;
    // writes are far below 100 ms.
    for scheduler in KYBERS {
        let mut tight = fixed(
            &[("latency", "1ms"), ("depth", "16"), ("jitter", "2ms")],
            scheduler,
            READERS_AND_WRITERS,
        );
        tight.tunables = given(&[("read_lat_nsec", "1500us"), ("write_lat_nsec", "1s")]);
        tight.queue = given(&[("nr_requests", "256")]);
        let mut lax = tight.clone();
        lax.tunables = given(&[("read_lat_nsec", "1s"), ("write_lat_nsec", "1s")]);
        let (squeezed, open) = (run(&tight), run(&lax));
        let (few, many) = (job(&squeezed, "w").iops(), job(&open, "w").iops());
        assert!(few * 3.0 < many, "{scheduler}: {few} and {many} writes a second");
        assert!(job(&squeezed, "r").iops() >= job(&open, "r").iops() * 0.99, "{scheduler}");
    }
}

#[test]
fn a_fast_device_is_left_alone() {
    // Targets are met, so no tokens are taken away.
    for scheduler in KYBERS {
        let jobs = "[global]\ndirect=1\nioengine=libaio\niodepth=16\nruntime=2\ntime_based\n\
            [r]\nrw=randread\n[w]\nrw=randwrite\n";
        let outcome = run(&fixed(&[("latency", "100us"), ("depth", "32")], scheduler, jobs));
        for name in ["r", "w"] {
            let iops = job(&outcome, name).iops();
            assert!((iops / 160_000.0 - 1.0).abs() < 0.01, "{scheduler}: {name} {iops}");
        }
    }
}

#[test]
fn priorities_make_no_difference() {
    for scheduler in KYBERS {
        let jobs = "[global]\ndirect=1\nrw=randread\nruntime=5\ntime_based\nnumjobs=4\n\
            [high]\nprio=0\n[low]\nprio=7\n[idle]\nprioclass=3\n";
        let mut setup = fixed(&[("latency", "1ms"), ("depth", "1")], scheduler, jobs);
        setup.queue = given(&[("nr_requests", "16")]);
        let outcome = run(&setup);
        for name in ["low", "idle"] {
            let ratio = job(&outcome, "high").iops() / job(&outcome, name).iops();
            assert!((ratio - 1.0).abs() < 0.02, "{scheduler}: high to {name} {ratio}");
        }
    }
}
