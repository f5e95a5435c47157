//! Mistakes of a user, and the messages about them.

use crate::support::{fixed, given, run, setup};
use blksim::block::raid::check;
use blksim::core::error::{Error, ErrorKind, SimulationError};
use blksim::devices::Profile;
use blksim::simulate::{Setup, simulate};
use blksim::workload::parse;

/// Line and option of the error in a job file.
fn job_error(text: &str) -> (Option<u32>, Option<String>, String) {
    let error = parse(text, "bad.fio").expect_err(text);
    assert_eq!(error.source_name, "bad.fio");
    assert!(error.to_string().starts_with("bad.fio"), "{error}");
    (error.line, error.option, error.message)
}

#[test]
fn errors_in_job_files_name_line_and_option() {
    let cases: &[(&str, Option<u32>, Option<&str>, &str)] = &[
        ("", None, None, "no job"),
        ("[global]\nbs=4k\n", None, None, "no job"),
        ("bs=4k\n[a]\n", Some(1), None, "before the first"),
        ("[a\nbs=4k\n", Some(1), None, "closing ]"),
        ("[]\n", Some(1), None, "needs a name"),
        ("[a]\nblocksiz=4k\n", Some(2), Some("blocksiz"), "did you mean blocksize"),
        ("[a]\nzonemodes=1\n", Some(2), Some("zonemodes"), "not an option"),
        ("[a]\nrw=read:1000\ndirect=1\n", Some(2), Some("readwrite"), "multiple of 512"),
        ("[a]\nrw=randread:0\n", Some(2), Some("readwrite"), "at least 1"),
        ("[a]\nrw_sequencer=both\n", Some(2), Some("rw_sequencer"), "not one of"),
        ("[a]\nbs=0\n", Some(2), Some("blocksize"), "larger than 0"),
        ("[a]\nbs=1000\ndirect=1\n", Some(2), Some("blocksize"), "multiple of 512"),
        ("[a]\nbs=1000\nrw=trim\n", Some(2), Some("blocksize"), "buffered I/O"),
        ("[a]\noffset=1000\ndirect=1\n", Some(2), Some("offset"), "buffered I/O"),
        ("[a]\nbs=4k-64k\n", Some(2), Some("blocksize"), "write bsrange=4k-64k"),
        ("[a]\nioengine=rbd\n", Some(2), Some("ioengine"), "drives a cluster"),
        ("[a]\nfilename=x:/tmp/\n", Some(2), Some("filename"), "does not name a file"),
        ("[a]\nfile_service_type=last\n", Some(2), Some("file_service_type"), "not one of"),
        ("[a]\nrw=erase\n", Some(2), Some("readwrite"), "not one of"),
        ("[a]\nsize=120%\n", Some(2), Some("size"), "percentage"),
        ("[a]\nsize\n", Some(2), Some("size"), "needs a value"),
        ("[a]\nsize=\n", Some(2), Some("size"), "no value"),
        ("[a]\niodepth=0\n", Some(2), Some("iodepth"), "between 1"),
        ("[a]\nruntime=soon\n", Some(2), Some("runtime"), "not a duration"),
        ("[a]\nfilename=/tmp/\n", Some(2), Some("filename"), "does not name a file"),
        ("[a]\nopendir=/tmp\n", Some(2), Some("opendir"), "not allowed"),
        ("[a]\nbs=${BS}\n", Some(2), Some("blocksize"), "environment"),
        ("[a]\nwait_for=b\n[b]\n", Some(2), Some("wait_for"), "no section above"),
        ("[a]\nzonemode=strided\n", Some(2), Some("zonemode"), "needs a zonesize"),
        ("[a]\nzonesize=1m\n", Some(2), Some("zonesize"), "needs zonemode"),
        ("[a]\nlatency_target=1\n", Some(2), Some("latency_target"), "latency_window"),
        ("[a]\ncmdprio_percentage=9\n", Some(2), Some("cmdprio_percentage"), "ioengine"),
        ("[a]\ncmdprio_bssplit=4k\n", Some(2), Some("cmdprio_bssplit"), "SIZE/PERCENT"),
        ("[a]\nrandom_distribution=zoned:50/5:30\n", Some(2), Some("random_distribution"), "100"),
        ("[a]\nexec_prerun=ls\n", Some(2), Some("exec_prerun"), "not allowed"),
        ("[a]\nbssplit=4k/50:8k/60\n", Some(2), Some("bssplit"), "add up to 100"),
        ("[a]\nrandom_distribution=zipf:-1\n", Some(2), Some("random_distribution"), "between"),
        ("[a]\nrate=1m\nrate_iops=10\n", Some(3), Some("rate_iops"), "cannot be combined"),
        ("[a]\nbs=1m\nsize=4k\n", Some(3), Some("size"), "smaller than a block"),
        ("[a]\nprio=9\n", Some(2), Some("prio"), "between 0 and 7"),
        ("[global]\nnumjobs=x\n[a]\n", Some(2), Some("numjobs"), "whole number"),
    ];
    for (text, line, option, message) in cases {
        let (found_line, found_option, found) = job_error(text);
        assert_eq!((found_line, found_option.as_deref()), (*line, *option), "{text:?}: {found}");
        assert!(found.contains(message), "{text:?}: {found}");
    }
}

#[test]
fn the_syntax_is_fios() {
    let text = "; comment\n# another\n[global]\n  rw = randread ; trailing\ntime_based\nruntime=2m\n\
                [one]\nbs=4k,64k\nsize=1G\n[two] ; also\nrw=write\nstonewall\nioengine=libaio\n";
    let file = parse(text, "ok.fio").unwrap();
    let [one, two] = file.jobs.as_slice() else { panic!() };
    assert_eq!((one.mode_text.as_str(), two.mode_text.as_str()), ("randread", "write"));
    assert!(one.time_based && two.stonewall && two.asynchronous());
    assert_eq!(one.runtime_ns, Some(120_000_000_000));
    assert_eq!((one.block_sizes.read.largest(), one.block_sizes.write.largest()), (4096, 65_536));
    assert_eq!((one.line, two.line, one.option_lines["readwrite"]), (7, 10, 4));
    assert_eq!(one.options["size"], "1G");
}

#[test]
fn repeated_sections_and_options_are_taken_as_fio_takes_them() {
    let text = "[global-defaults]\nfilename=x\nsize=1g\n[step]\nfilename=y:z\\:1\nbs=4k\nbs=8k\n\
                [step]\nsize=0\nthread=2\ntime_based\n";
    let file = parse(text, "ok.fio").unwrap();
    let [one, two] = file.jobs.as_slice() else { panic!() };
    assert_eq!((one.name.as_str(), two.name.as_str()), ("step", "step-2"));
    assert_eq!(one.filenames, ["x", "y", "z:1"]);
    assert_eq!(two.filenames, ["x"]);
    assert_eq!((one.block_sizes.read.largest(), two.size), (8192, None));
    assert!(two.time_based && !two.repeats());
    let notes: Vec<_> = file.notes.iter().map(|note| (note.option.as_str(), note.line)).collect();
    assert_eq!(notes, [("blocksize", 7), ("[step]", 8), ("time_based", 11)]);
}

#[test]
fn a_depth_without_effect_is_noted() {
    let notes = |text: &str| parse(text, "x").unwrap().notes;
    let [sync] = &notes("[a]\niodepth=32\ndirect=1\n")[..] else { panic!() };
    assert!(sync.option == "iodepth" && sync.message.contains("psync does one I/O at a time"));
    let [buffered] = &notes("[a]\niodepth=32\nioengine=aio\n")[..] else { panic!() };
    assert!(buffered.message.contains("libaio without direct=1"), "{}", buffered.message);
    assert!(notes("[a]\niodepth=32\nioengine=libaio\ndirect=1\n").is_empty());
}

#[test]
fn units_are_those_of_fio() {
    let bytes = |text: &str| {
        let file = parse(&format!("[a]\nsize=1g\n{text}\n"), "x").unwrap();
        (file.jobs[0].block_sizes.read.largest(), file.notes.len())
    };
    assert_eq!(bytes("bs=4k"), (4096, 0));
    assert_eq!(bytes("bs=4KiB"), (4000, 1));
    assert_eq!(bytes("kb_base=1000\nbs=4k"), (4000, 0));
    assert_eq!(bytes("kb_base=1000\nbs=4KiB"), (4096, 0));
}

#[test]
fn options_without_effect_are_remarked_on() {
    let file = parse("[a]\ncpus_allowed=1\ngroup_reporting\natomic=1\n", "x").unwrap();
    assert_eq!((file.warnings.len(), file.host_only.len()), (1, 1));
    assert_eq!((file.warnings[0].option.as_str(), file.warnings[0].line), ("cpus_allowed", 2));
    assert_eq!((file.host_only[0].option.as_str(), file.host_only[0].line), ("atomic", 4));
}

#[test]
fn zones_of_zoned_disks_need_no_size() {
    let file = parse("[a]\nrw=write\nzonemode=zbd\nsize=128m\n", "zoned.fio").unwrap();
    let [zoned] = file.host_only.as_slice() else { panic!() };
    assert_eq!((zoned.option.as_str(), zoned.line), ("zonemode", 3));
    assert_eq!(file.jobs[0].options["zonemode"], "zbd");
}

/// The error of a simulation that cannot run.
fn refused(setup: &Setup) -> SimulationError {
    match simulate(setup) {
        Err(Error::Simulation(error)) => error,
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("it ran"),
    }
}

#[test]
fn errors_in_requests_name_the_field() {
    let jobs = "[a]\ndirect=1\nnumber_ios=10\n";
    let expect = |setup: &Setup, kind: ErrorKind, field: &str, text: &str| {
        let error = refused(setup);
        assert_eq!((error.kind, error.field.as_deref()), (kind, Some(field)), "{error}");
        assert!(error.message.contains(text), "{error}");
    };
    expect(&setup("fixed", "cfq2", jobs), ErrorKind::UnknownScheduler, "scheduler", "mq-deadline");
    let mut wrong = setup("fixed", "deadline", jobs);
    wrong.tunables = given(&[("fifo_bach", "1")]);
    expect(&wrong, ErrorKind::UnknownTunable, "fifo_bach", "did you mean fifo_batch");
    wrong.tunables = given(&[("read_expire", "-1")]);
    expect(&wrong, ErrorKind::OutOfRange, "read_expire", "expected");
    wrong.tunables = Vec::new();
    wrong.queue = given(&[("nr_requests", "3")]);
    expect(&wrong, ErrorKind::OutOfRange, "nr_requests", "between 4");
    wrong.queue = given(&[("nr_request", "3")]);
    expect(&wrong, ErrorKind::UnknownQueueAttribute, "nr_request", "did you mean nr_requests");
    let mut none = setup("fixed", "none", jobs);
    none.queue = given(&[("nr_requests", "64")]);
    expect(&none, ErrorKind::OutOfRange, "nr_requests", "between 1 and 32");
    let host = setup("fixed", "none", "[a]\natomic=1\n");
    expect(&host, ErrorKind::HostOnly, "atomic", "test.fio:2");
    let far = setup("fixed", "none", "[a]\noffset=1t\n");
    expect(&far, ErrorKind::Layout, "offset", "past the end");
    let mut zero = setup("fixed", "none", "[a]\ntime_based\nruntime=1\n");
    zero.runtime_ns = Some(0);
    expect(&zero, ErrorKind::OutOfRange, "runtime_ns", "larger than 0");
}

#[test]
fn limits_stop_what_would_take_too_long() {
    let mut endless = fixed(&[], "none", "[a]\ndirect=1\nruntime=1000000\ntime_based\n");
    endless.limits.events = 10_000;
    let error = refused(&endless);
    assert_eq!((error.kind, error.field.as_deref()), (ErrorKind::Limit, Some("events")));
    endless.limits.events = u64::MAX;
    endless.limits.simulated_ns = 1_000_000_000;
    let error = refused(&endless);
    assert_eq!((error.kind, error.field.as_deref()), (ErrorKind::Limit, Some("simulated_ns")));
    assert!(error.message.contains("1s"), "{error}");
    // A rate so low that nothing ever happens is no hang either.
    let idle = fixed(&[], "none", "[a]\ndirect=1\nrate_iops=1\nthinktime=400d\nnumber_ios=3\n");
    assert_eq!(refused(&idle).kind, ErrorKind::Limit);
}

#[test]
fn runtime_can_be_overridden_for_time_based_jobs_only() {
    let jobs =
        "[a]\ndirect=1\nruntime=60\ntime_based\n[b]\ndirect=1\nnumber_ios=5000\nruntime=60\n";
    let mut setup = fixed(&[("latency", "1ms")], "none", jobs);
    setup.runtime_ns = Some(100_000_000);
    let outcome = run(&setup);
    assert_eq!(outcome.jobs[0].runtime_ns, 100_000_000);
    assert_eq!(outcome.jobs[1].runtime_ns, 5_000_000_000);
}

#[test]
fn profiles_with_impossible_numbers_name_the_field() {
    let cases = [
        ("", Some("kind"), "missing"),
        ("kind = 3", Some("kind"), "string"),
        ("kind = \"tape\"", Some("kind"), "no such"),
        ("kind = \"hdd\"\nsummary = \"s\"", Some("name"), "missing"),
        (
            "name = \"n\"\nkind = \"hdd\"\nsummary = \"s\"\nrpms = 1",
            Some("rpms"),
            "did you mean rpm",
        ),
        ("name = \"n\"\nkind = \"hdd\"\nsummary = \"s\"\nrpm = 0", Some("rpm"), "between"),
        ("name = \"n\"\nkind = \"hdd\"\nsummary = \"s\"\nrpm = [1]", Some("rpm"), "number"),
        (
            "name = \"n\"\nkind = \"hdd\"\nsummary = \"s\"\ninner_sectors = 9000",
            Some("inner_sectors"),
            "exceeds",
        ),
        (
            "name = \"n\"\nkind = \"hdd\"\nsummary = \"s\"\ncylinders = 20",
            Some("zones"),
            "do not fit",
        ),
        (
            "name = \"n\"\nkind = \"flash\"\nsummary = \"s\"\nchannels = 200",
            Some("channels"),
            "dies",
        ),
        ("name = \"n\"\nkind = \"flash\"\nsummary = \"s\"\npage = 5000", Some("page"), "multiple"),
        (
            "name = \"n\"\nkind = \"flash\"\nsummary = \"s\"\ncapacity = \"1g\"",
            Some("capacity"),
            "superblocks",
        ),
        (
            "name = \"n\"\nkind = \"flash\"\nsummary = \"s\"\ncondition = \"new\"",
            Some("condition"),
            "fresh",
        ),
        ("not toml", None, "TOML"),
    ];
    for (text, field, message) in cases {
        let error = Profile::parse(text, "bad.toml").and_then(|p| check(&p)).expect_err(text);
        assert_eq!(
            (error.source_name.as_str(), error.field.as_deref()),
            ("bad.toml", field),
            "{text}"
        );
        assert!(error.message.contains(message), "{text}: {error}");
    }
}
