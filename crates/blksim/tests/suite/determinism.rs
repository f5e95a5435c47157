//! The same request gives the same bits, and seeds matter where they should.

use crate::support::{SCHEDULERS, fingerprint, fixed, run, setup};
use blksim::elevator::ALL;

const JOBS: &str = "[a]\nrw=randrw\ndirect=1\nioengine=libaio\niodepth=16\nnumber_ios=2000\n\
    bssplit=4k/60:64k/40\nrandom_distribution=zipf:1.2\nsize=1g\n\
    [b]\nrw=write\nfdatasync=4\nnumber_ios=100\nsize=16m\n[c]\nrw=read\nbs=256k\nsize=64m\n";

#[test]
fn the_same_seed_gives_the_same_bits() {
    for device in ["fixed", "hdd-7200", "nvme-tlc", "ssd-sata"] {
        for scheduler in ALL.iter().map(|info| info.name) {
            let setup = setup(device, scheduler, JOBS);
            assert_eq!(
                fingerprint(&run(&setup)),
                fingerprint(&run(&setup)),
                "{scheduler} on {device}"
            );
        }
    }
}

#[test]
fn runs_side_by_side_do_not_disturb_each_other() {
    let setup = setup("hdd-7200", "mq-deadline", JOBS);
    let alone = fingerprint(&run(&setup));
    let together: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| fingerprint(&run(&setup)))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(together.iter().all(|print| *print == alone));
}

#[test]
fn another_seed_gives_another_run() {
    let mut other = setup("hdd-7200", "none", JOBS);
    let first = fingerprint(&run(&other));
    other.seed = 2;
    assert_ne!(fingerprint(&run(&other)), first);
}

#[test]
fn randseed_fixes_the_workload_whatever_the_seed() {
    let jobs = "[a]\nrw=randread\ndirect=1\nnumber_ios=200\nrandseed=7\n";
    let mut setup = setup("hdd-7200", "none", jobs);
    let first = fingerprint(&run(&setup));
    setup.seed = 99;
    assert_eq!(fingerprint(&run(&setup)), first);
}

#[test]
fn jitter_follows_the_seed() {
    let jobs = "[a]\nrw=randread\ndirect=1\nnumber_ios=100\n";
    let mut setup = fixed(&[("jitter", "50us")], "none", jobs);
    let first = fingerprint(&run(&setup));
    assert_eq!(fingerprint(&run(&setup)), first);
    setup.seed = 2;
    assert_ne!(fingerprint(&run(&setup)), first);
}

#[test]
fn stalls_follow_the_seed() {
    let jobs = "[a]\nrw=randread\ndirect=1\nnumber_ios=1000\n";
    let mut setup = fixed(&[("stall", "5ms"), ("stall_every", "10ms")], "none", jobs);
    let first = fingerprint(&run(&setup));
    assert_eq!(fingerprint(&run(&setup)), first);
    setup.seed = 2;
    assert_ne!(fingerprint(&run(&setup)), first);
}

/// Results that must not change by accident. After a change that is meant,
/// `BLKSIM_GOLDEN=refresh cargo test -p blksim --test suite determinism::` writes them anew.
#[test]
fn results_are_the_golden_ones() {
    let mut lines = Vec::new();
    for device in ["fixed", "hdd-7200", "nvme-tlc", "ssd-sata"] {
        for scheduler in SCHEDULERS {
            let outcome = run(&setup(device, scheduler, JOBS));
            lines.push(format!("{device} {scheduler}"));
            for job in &outcome.jobs {
                for direction in blksim::core::record::Direction::ALL {
                    let record = job.direction(direction);
                    if record.ios() > 0 {
                        let (count, mean) = (record.ios(), record.latency.sum_ns() / record.ios());
                        let max = record.latency.max_ns();
                        lines.push(format!(
                            "  {} {}: {count} I/Os, mean {mean} ns, longest {max} ns",
                            job.name,
                            direction.name()
                        ));
                    }
                }
            }
            lines.push(format!(
                "  {} requests, {} merges, {} events, {} ns",
                outcome.requests, outcome.merges, outcome.events, outcome.simulated_ns
            ));
        }
    }
    let text = lines.join("\n") + "\n";
    let path = format!("{}/tests/golden/mixed.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var("BLKSIM_GOLDEN").as_deref() == Ok("refresh") {
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    for (number, (expected, found)) in golden.lines().zip(text.lines()).enumerate() {
        assert_eq!(expected, found, "{path}, line {}", number + 1);
    }
    assert_eq!(golden.lines().count(), text.lines().count(), "{path}");
}
