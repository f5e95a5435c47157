//! Random jobs, tunables and queues: whatever is accepted runs to its end and
//! keeps the contract; whatever is not is a typed error.

use crate::support::{Auditor, fingerprint, given, run, setup};
use blksim::core::params::Shown;
use blksim::elevator::ALL;
use blksim::engine::Limits;
use blksim::simulate::simulate_with;
use blksim::workload::parse;
use proptest::prelude::*;

fn names() -> Vec<&'static str> {
    ALL.iter().map(|info| info.name).collect()
}

fn job() -> impl Strategy<Value = String> {
    let mode = prop::sample::select(vec!["read", "write", "randread", "randwrite", "rw", "randrw"]);
    let engine = prop::sample::select(vec!["psync", "libaio", "io_uring"]);
    let block = prop::sample::select(vec!["512", "4k", "6k", "64k", "1m", "4k,16k"]);
    let extra = prop::sample::select(vec![
        "",
        "fsync=3",
        "fdatasync=1",
        "sync=1",
        "rate_iops=2000",
        "rate=4m",
        "thinktime=50us",
        "bssplit=4k/30:32k/70",
        "random_distribution=zipf:0.9",
        "random_distribution=pareto:0.3",
        "random_distribution=normal:20",
        "percentage_random=50",
        "prioclass=1",
        "prioclass=3",
        "stonewall",
        "offset=64k\noffset_increment=128k",
        "end_fsync=1",
        "iodepth_batch=4",
        "loops=2",
        "startdelay=1ms\nramp_time=1ms",
        "norandommap",
        "pre_read=1",
        "filename=shared",
    ]);
    (mode, engine, block, any::<bool>(), 1..70_u32, 1..4_u32, prop::collection::vec(extra, 0..4)).prop_map(
        |(mode, engine, block, direct, depth, clones, mut extra)| {
            extra.sort_unstable();
            extra.dedup_by_key(|line| line.split('=').next().unwrap_or_default().to_owned());
            if extra.iter().any(|line| line.starts_with("bssplit")) {
                extra.retain(|line| !line.starts_with("loops"));
            }
            format!(
                "rw={mode}\nioengine={engine}\nbs={block}\ndirect={}\niodepth={depth}\nnumjobs={clones}\n\
                 size=4m\nnumber_ios=60\n{}\n",
                u8::from(direct),
                extra.join("\n")
            )
        },
    )
}

fn jobs() -> impl Strategy<Value = String> {
    prop::collection::vec(job(), 1..4).prop_map(|jobs| {
        let sections = jobs.iter().enumerate().map(|(index, job)| format!("[job{index}]\n{job}"));
        sections.collect::<Vec<_>>().concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_accepted_runs_to_its_end(
        jobs in jobs(),
        scheduler in prop::sample::select(names()),
        device in prop::sample::select(vec!["fixed", "hdd-7200", "nvme-tlc", "ssd-sata"]),
        nr_requests in 4..40_u32,
        nomerges in 0..3_u32,
        read_ahead_kb in prop::sample::select(vec![0, 4, 128, 4096]),
        max_sectors_kb in prop::sample::select(vec![4, 64, 1280]),
        seed in any::<u64>(),
    ) {
        // Options may clash (rate with rate_iops): then an error is right.
        if let Ok(file) = parse(&jobs, "random") {
            let mut setup = setup(device, scheduler, "[x]\n");
            setup.jobs = file;
            setup.seed = seed;
            setup.limits = Limits { events: 5_000_000, ..Limits::default() };
            setup.queue = given(&[
                ("nr_requests", &nr_requests.min(32).to_string()),
                ("nomerges", &nomerges.to_string()),
                ("read_ahead_kb", &read_ahead_kb.to_string()),
                ("max_sectors_kb", &max_sectors_kb.to_string()),
            ]);
            let auditor = Auditor::default();
            let outcome = simulate_with(&setup, vec![Box::new(auditor.clone())])
                .unwrap_or_else(|error| panic!("{error}\n{jobs}"));
            auditor.verify(&outcome, &jobs);
            prop_assert_eq!(fingerprint(&outcome), fingerprint(&run(&setup)));
        }
    }

    #[test]
    fn tunables_at_their_bounds_keep_the_contract(
        scheduler in prop::sample::select(names()),
        device in prop::sample::select(vec!["fixed", "hdd-7200", "nvme-tlc"]),
        choices in prop::collection::vec(0..4_usize, 32),
    ) {
        let jobs = "[global]\ndirect=1\nsize=64m\nnumber_ios=60\n[a]\nrw=randread\n[b]\nrw=read\nprio=0\n\
            [c]\nrw=randrw\nioengine=libaio\niodepth=16\nprio=7\n[d]\nprioclass=3\n[e]\nprioclass=1\nrw=write\n";
        let mut setup = setup(device, scheduler, jobs);
        let table = ALL.iter().find(|info| info.name == scheduler).map_or(&[][..], |i| i.tunables);
        for (param, choice) in table.iter().zip(choices) {
            let value = [param.min, param.default, param.max, param.min + 1][choice];
            let shown = match param.show(value.min(param.max)) {
                Shown::Number(number) => number.to_string(),
                Shown::Word(word) => word.to_owned(),
            };
            // A default of 0 may stand for one that the queue decides.
            if value != param.default {
                setup.tunables.push((param.name.to_owned(), shown));
            }
        }
        let auditor = Auditor::default();
        match simulate_with(&setup, vec![Box::new(auditor.clone())]) {
            Ok(outcome) => {
                auditor.verify(&outcome, scheduler);
                prop_assert_eq!(auditor.nr_under_way(), 0);
            }
            // Told to wait for weeks, a scheduler does.
            Err(error) => {
                prop_assert!(error.to_string().contains("simulated time"), "{}", error);
            }
        }
    }

    #[test]
    fn tunables_of_any_value_keep_the_contract(
        fifo_batch in 0..40_u32,
        writes_starved in 0..5_u32,
        read_expire in 0..2000_u32,
        front_merges in 0..2_u32,
        ageing in 0..50_u32,
        async_depth in 0..20_u32,
    ) {
        let jobs = "[global]\ndirect=1\nioengine=libaio\niodepth=20\nnumber_ios=150\nsize=1m\nrw=randrw\n\
                    [a]\n[b]\nprioclass=1\n[c]\nprioclass=3\n";
        for scheduler in ["deadline", "mq-deadline"] {
            let mut setup = setup("hdd-7200", scheduler, jobs);
            setup.tunables = given(&[
                ("fifo_batch", &fifo_batch.to_string()),
                ("writes_starved", &writes_starved.to_string()),
                ("read_expire", &read_expire.to_string()),
                ("front_merges", &front_merges.to_string()),
            ]);
            if scheduler == "mq-deadline" {
                setup.tunables.extend(given(&[
                    ("prio_aging_expire", &ageing.to_string()),
                    ("async_depth", &async_depth.to_string()),
                ]));
            }
            let auditor = Auditor::default();
            let outcome = simulate_with(&setup, vec![Box::new(auditor.clone())]).unwrap();
            auditor.verify(&outcome, scheduler);
            prop_assert_eq!(auditor.nr_under_way(), 0);
        }
    }

    #[test]
    fn no_text_makes_the_job_parser_panic(text in "\\PC{0,200}") {
        let _ = parse(&text, "fuzz");
    }

    #[test]
    fn no_options_make_the_job_parser_panic(
        lines in prop::collection::vec(("[a-z_]{2,12}", "[-0-9a-z%:/,.]{0,12}"), 0..12)
    ) {
        let mut text = String::from("[a]\n");
        for (key, value) in lines {
            text = format!("{text}{key}={value}\n");
        }
        let _ = parse(&text, "fuzz");
    }
}
