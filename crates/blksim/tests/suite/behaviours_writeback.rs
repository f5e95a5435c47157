//! Known behaviours of writeback, as a guest's kernel shows them. The numbers of I/Os are those of
//! Linux 6.1 in virtual time.

use crate::support::{fixed, given, job, run, setup};
use blksim::simulate::Setup;

/// A device without a file system in a guest.
fn in_a_guest(mut setup: Setup) -> Setup {
    setup.machine = given(&[
        ("zero_cpu_time", "1"),
        ("raw_device", "1"),
        ("hide_queue_depth", "1"),
        ("memory", "507207680"),
    ]);
    setup
}

fn writers(number: u32, options: &str) -> String {
    format!("[w]\nrw=write\nsize=1g\ntime_based\nnumjobs={number}\n{options}\n")
}

fn nr_writes(setup: Setup) -> u64 {
    job(&run(&in_a_guest(setup)), "w").direction(blksim::core::record::Direction::Write).ios()
}

#[test]
fn two_tasks_in_fsync_do_not_wait_for_what_the_other_begins() {
    // The second flush finds nothing to write and takes as long as its way. Whoever looks through the pages
    // under writeback does so once: it does not wait for those that were put there since.
    let on_nvme = |number| {
        nr_writes(setup(
            "nvme-tlc",
            "mq-deadline",
            &writers(number, "bs=4k\nfsync=1\nruntime=100ms"),
        ))
    };
    assert_eq!((on_nvme(1), on_nvme(2), on_nvme(4)), (301, 602, 1204));
}

#[test]
fn a_request_of_single_pages_holds_128() {
    let jobs = writers(1, "bs=1m\nfsync=16\nruntime=10ms");
    let device = [("latency", "200us"), ("depth", "4")];
    let outcome = run(&in_a_guest(fixed(&device, "mq-deadline", &jobs)));
    // Each a mebibyte of 256 pages; 96 requests for 48 of them.
    assert_eq!(outcome.disks[0].requests, 2 * 48);
}

#[test]
fn a_shallow_device_takes_as_many_writes_of_fsync_as_it_can() {
    // Told nothing, the kernel goes by the queue's eight requests, not by the device's four commands.
    let jobs = writers(1, "bs=1m\nfsync=4\nruntime=200ms");
    let device = [("latency", "200us"), ("depth", "4")];
    assert_eq!(nr_writes(fixed(&device, "mq-deadline", &jobs)), 1012);
    let jobs = writers(2, "bs=512k\nfsync=4\nruntime=50ms");
    assert_eq!(nr_writes(fixed(&device, "mq-deadline", &jobs)), 672);
}

#[test]
fn a_writer_waits_for_the_page_that_the_flusher_is_about_to_write() {
    // It writes 64 MiB over and over; the flusher, which sleeps while it holds a page, blocks it.
    // Otherwise it would write at the speed of memory (1,001); the kernel does 367.
    let jobs = "[w]\nrw=write\nbs=1m\nsize=64m\ntime_based\nruntime=100ms\n";
    let done = nr_writes(setup("nvme-tlc", "mq-deadline", jobs));
    assert!((330..=400).contains(&done), "{done}");
}

#[test]
fn buffered_writers_get_on_as_in_a_guest() {
    // Free running first, then pauses of whole ticks; what they leave behind goes out in whole requests.
    let fast = [("latency", "200us"), ("depth", "16")];
    let cases = [
        (fixed(&fast, "mq-deadline", &writers(1, "bs=1m\nruntime=100ms")), 1020),
        (setup("ssd-sata", "mq-deadline", &writers(1, "bs=1m\nruntime=1s")), 592),
        (setup("ssd-sata", "mq-deadline", &writers(2, "bs=1m\nruntime=100ms")), 117),
    ];
    for (setup, on_linux) in cases {
        let done = nr_writes(setup);
        assert!(done.abs_diff(on_linux) * 50 <= on_linux, "{done} of {on_linux}");
    }
}
