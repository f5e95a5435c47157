//! Results that can be worked out on paper.

use crate::support::{SCHEDULERS, fixed, job, profile, run, setup};
use blksim::core::record::Direction;
use blksim::core::rng::Stream;
use blksim::devices;

fn within(what: &str, found: f64, expected: f64, tolerance: f64) {
    assert!((found / expected - 1.0).abs() <= tolerance, "{what}: {found}, expected {expected}");
}

#[test]
fn fixed_serves_exactly_depth_over_latency() {
    for scheduler in SCHEDULERS {
        for (depth, latency_us) in [(1, 200), (4, 200), (32, 1000)] {
            let parameters =
                [("latency", &*format!("{latency_us}us")), ("depth", &*depth.to_string())];
            let jobs =
                format!("[a]\nrw=randread\ndirect=1\nnumjobs={depth}\nruntime=2\ntime_based\n");
            let outcome = run(&fixed(&parameters, scheduler, &jobs));
            let expected = f64::from(depth) * 1e6 / latency_us as f64;
            within(scheduler, outcome.jobs[0].iops(), expected, 1e-12);
            let latency = &outcome.jobs[0].direction(Direction::Read).latency;
            assert_eq!(
                (latency.min_ns(), latency.max_ns()),
                (latency_us * 1000, latency_us * 1000)
            );
        }
    }
}

#[test]
fn stalls_take_their_share_and_hold_up_all_commands() {
    // 20 ms in which nothing is done, then 80 ms of work on average.
    for depth in [1, 8] {
        let depth_text = depth.to_string();
        let parameters = [
            ("latency", "1ms"),
            ("depth", &*depth_text),
            ("stall", "20ms"),
            ("stall_every", "80ms"),
        ];
        let jobs =
            format!("[a]\nrw=randread\ndirect=1\nnumjobs={depth}\nruntime=400\ntime_based\n");
        let outcome = run(&fixed(&parameters, "none", &jobs));
        within("rate", outcome.jobs[0].iops(), f64::from(depth) * 1000.0 * 0.8, 0.02);
        let latency = &outcome.jobs[0].direction(Direction::Read).latency;
        assert_eq!(latency.min_ns(), 1_000_000);
        // Now and then a second stall begins before a command is done that the first one held up.
        assert!((21_000_000..=61_000_000).contains(&latency.max_ns()), "{}", latency.max_ns());
        // Each stall holds up every command that is under way, and those are all but always `depth`.
        let stalls = 400.0 / 0.1;
        let mean_ns = 1_000_000.0 + 20_000_000.0 * stalls / (0.8 * 1000.0 * 400.0);
        within("mean latency", latency.mean_ns(), mean_ns, 0.02);
    }
}

#[test]
fn waiting_adds_up_by_littles_law() {
    for scheduler in SCHEDULERS {
        let jobs = "[a]\nrw=randread\ndirect=1\nnumjobs=12\nruntime=2\ntime_based\n";
        let outcome = run(&fixed(&[("latency", "300us"), ("depth", "4")], scheduler, jobs));
        let mean_ns = outcome.jobs[0].direction(Direction::Read).latency.mean_ns();
        within(scheduler, mean_ns, 12.0 / 4.0 * 300_000.0, 0.002);
    }
}

#[test]
fn rates_are_kept() {
    let jobs = "[a]\nrw=randread\ndirect=1\nrate_iops=250\nruntime=4\ntime_based\n\
                [b]\nrw=write\nbs=64k\nrate=1m\nruntime=4\ntime_based\ndirect=1\n";
    let outcome = run(&fixed(&[], "none", jobs));
    within("rate_iops", job(&outcome, "a").iops(), 250.0, 0.005);
    within("rate", job(&outcome, "b").bytes_per_second(), 1_048_576.0, 0.02);
}

#[test]
fn thinktime_stretches_the_loop() {
    let jobs = "[a]\nrw=randread\ndirect=1\nthinktime=300us\nruntime=2\ntime_based\n";
    let outcome = run(&fixed(&[("latency", "200us")], "none", jobs));
    within("thinktime", outcome.jobs[0].iops(), 2000.0, 0.001);
}

#[test]
fn mixed_jobs_keep_their_shares() {
    let jobs =
        "[a]\nrw=randrw\nrwmixread=70\ndirect=1\nioengine=libaio\niodepth=8\nnumber_ios=20000\n";
    let outcome = run(&fixed(&[], "none", jobs));
    within("reads", outcome.jobs[0].direction(Direction::Read).ios() as f64, 14_000.0, 0.02);
}

#[test]
fn stonewall_startdelay_and_ramp_shape_time() {
    let jobs = "[a]\ndirect=1\nruntime=1\ntime_based\nramp_time=500ms\n[b]\nstonewall\ndirect=1\nstartdelay=2\nruntime=1\ntime_based\n";
    let outcome = run(&fixed(&[("latency", "1ms")], "none", jobs));
    assert_eq!(outcome.simulated_ns, 4_500_000_000);
    for record in &outcome.jobs {
        assert_eq!(record.runtime_ns, 1_000_000_000, "{}", record.name);
        assert_eq!(record.direction(Direction::Read).ios(), 1000, "{}", record.name);
    }
}

/// The disk's geometry, and the mean seek over random pairs of sectors, by sampling.
fn hdd() -> (devices::AnyDevice, f64) {
    let device = profile("hdd-7200").build(1).unwrap();
    let devices::AnyDevice::Hdd(disk) = &device else { panic!("hdd-7200 is not an hdd") };
    let geometry = disk.geometry();
    let mut stream = Stream::named(1, "pairs");
    let mut draw = || geometry.locate(stream.below(geometry.capacity_sectors)).cylinder;
    let total: u64 = (0..200_000).map(|_| geometry.seek_ns(draw().abs_diff(draw()))).sum();
    (device, total as f64 / 200_000.0)
}

#[test]
fn random_reads_at_depth_one_take_seek_plus_half_a_turn_plus_transfer() {
    let (_, seek_ns) = hdd();
    let turn_ns = 60e9 / 7200.0;
    // 4 KiB on a track of 2304 sectors on average.
    let transfer_ns = turn_ns * 8.0 / 2304.0;
    let jobs = "[a]\nrw=randread\ndirect=1\nnumber_ios=40000\n";
    for scheduler in SCHEDULERS {
        let outcome = run(&setup("hdd-7200", scheduler, jobs));
        let mean_ns = outcome.jobs[0].direction(Direction::Read).latency.mean_ns();
        within(scheduler, mean_ns, seek_ns + turn_ns / 2.0 + transfer_ns, 0.01);
    }
}

#[test]
fn sequential_reads_run_at_the_rate_of_their_zone() {
    let (device, _) = hdd();
    let devices::AnyDevice::Hdd(disk) = &device else { return };
    let capacity = disk.geometry().capacity_sectors * 512;
    for percent in [0, 50, 95] {
        let start = capacity / 100 * percent / 4096 * 4096;
        let expected = disk.geometry().media_rate(start / 512);
        for (bs, extra) in [("128k", ""), ("1m", ""), ("64k", "ioengine=libaio\niodepth=8\n")] {
            let jobs = format!(
                "[a]\nrw=read\nbs={bs}\ndirect=1\noffset={start}\nruntime=4\ntime_based\n{extra}"
            );
            let outcome = run(&setup("hdd-7200", "mq-deadline", &jobs));
            within(
                &format!("{percent} %, {bs}"),
                outcome.jobs[0].bytes_per_second(),
                expected,
                0.01,
            );
        }
        let jobs = format!("[a]\nrw=read\nbs=2m\noffset={start}\nruntime=4\ntime_based\n");
        let outcome = run(&setup("hdd-7200", "mq-deadline", &jobs));
        within(
            &format!("{percent} %, buffered"),
            outcome.jobs[0].bytes_per_second(),
            expected,
            0.02,
        );
    }
}

#[test]
fn what_memory_answers_passes_the_interface_one_command_at_a_time() {
    let jobs = "[a]\nrw=randwrite\nbs=512k\ndirect=1\nioengine=libaio\niodepth=8\nnumber_ios=8\n";
    let outcome = run(&setup("hdd-7200", "none", jobs));
    let latency = &outcome.jobs[0].direction(Direction::Write).latency;
    // 512 KiB at 600 MB/s each, and 66 us of the drive's before the first.
    let transfer_ns = 524_288.0 / 0.6;
    within("the first", latency.min_ns() as f64, 66_000.0 + transfer_ns, 1e-3);
    within("the last", latency.max_ns() as f64, 66_000.0 + 8.0 * transfer_ns, 1e-3);
}

#[test]
fn queueing_32_commands_gives_2_to_2_7_times_depth_1() {
    let iops = |depth: u32| {
        let jobs = format!(
            "[a]\nrw=randread\ndirect=1\nioengine=libaio\niodepth={depth}\nnumber_ios=20000\n"
        );
        run(&setup("hdd-7200", "none", &jobs)).jobs[0].iops()
    };
    let gain = iops(32) / iops(1);
    assert!((2.0..=2.7).contains(&gain), "{gain}");
}

#[test]
fn flash_meets_its_published_figures() {
    let rate = |device, rw: &str, bs: &str, depth: u32| {
        let jobs = format!(
            "[a]\nrw={rw}\nbs={bs}\ndirect=1\nioengine=libaio\niodepth={depth}\nruntime=1\ntime_based\n"
        );
        run(&setup(device, "none", &jobs)).jobs[0].clone()
    };
    // 970 EVO Plus class, published figures; the tolerance is what one set of figures leaves open.
    within("nvme read 1", rate("nvme-tlc", "randread", "4k", 1).iops(), 19_000.0, 0.1);
    within("nvme write 1", rate("nvme-tlc", "randwrite", "4k", 1).iops(), 60_000.0, 0.05);
    within("nvme read 32", rate("nvme-tlc", "randread", "4k", 32).iops(), 600_000.0, 0.2);
    within("nvme write 32", rate("nvme-tlc", "randwrite", "4k", 32).iops(), 550_000.0, 0.1);
    within("nvme read", rate("nvme-tlc", "read", "128k", 32).bytes_per_second(), 3.5e9, 0.03);
    within("nvme write", rate("nvme-tlc", "write", "128k", 32).bytes_per_second(), 3.3e9, 0.03);
    // 870 EVO: io.cost coefficients measured by iocost-benchmarks.
    within("sata read 32", rate("ssd-sata", "randread", "4k", 32).iops(), 98_000.0, 0.05);
    within("sata write 32", rate("ssd-sata", "randwrite", "4k", 32).iops(), 91_000.0, 0.1);
    within("sata read", rate("ssd-sata", "read", "128k", 32).bytes_per_second(), 5.6e8, 0.03);
}

#[test]
fn a_full_slc_cache_leaves_the_rate_of_tlc() {
    let jobs = "[a]\nrw=write\nbs=1m\ndirect=1\nioengine=libaio\niodepth=8\nruntime=4\nramp_time=4\ntime_based\n";
    let outcome = run(&setup("nvme-tlc", "none", jobs));
    within("after the cache", outcome.jobs[0].bytes_per_second(), 1.7e9, 0.05);
}
