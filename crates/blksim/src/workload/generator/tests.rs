use super::*;
use crate::workload::{layout, parse};

fn generator(text: &str) -> Generator {
    let file = parse(text, "test").unwrap();
    let layout = layout::lay_out(&file.jobs, 1 << 30, None).unwrap();
    let mut generator = Generator::new(&file.jobs[0], 0, &layout.regions[0][0], 1);
    generator.start(0);
    generator
}

fn offsets(generator: &mut Generator) -> Vec<u64> {
    std::iter::from_fn(|| match generator.next(0) {
        Step::Transfer(transfer) => Some(transfer.offset),
        _ => None,
    })
    .collect()
}

#[test]
fn a_random_pass_visits_each_block_once() {
    let mut seen = offsets(&mut generator("[a]\nrw=randread\nsize=1m\n"));
    assert_eq!(seen.len(), 256);
    assert!(seen.windows(2).any(|w| w[1] != w[0] + 4096));
    seen.sort_unstable();
    assert!(seen.windows(2).all(|w| w[1] == w[0] + 4096));
}

#[test]
fn loops_and_limits_count() {
    assert_eq!(offsets(&mut generator("[a]\nsize=64k\nloops=3\n")).len(), 48);
    assert_eq!(offsets(&mut generator("[a]\nsize=64k\nio_size=16k\n")).len(), 4);
    // A rest smaller than a block ends each pass.
    assert_eq!(offsets(&mut generator("[a]\nsize=50k\nloops=2\n")).len(), 24);
    assert_eq!(offsets(&mut generator("[a]\nsize=50k\nio_size=150k\n")).len(), 38);
    assert_eq!(offsets(&mut generator("[a]\nnumber_ios=7\n")).len(), 7);
    let mut endless = generator("[a]\nsize=64k\nnumber_ios=7\ntime_based\nruntime=1\n");
    let issued = (0..100).filter(|_| matches!(endless.next(0), Step::Transfer(_))).count();
    assert_eq!(issued, 100);
    assert_eq!(endless.next(1_000_000_000), Step::Finished);
}

fn blocks(size: &str, text: &str) -> Vec<u64> {
    let text = format!("[a]\nsize={size}\n{text}\n");
    offsets(&mut generator(&text)).iter().map(|offset| offset / 4096).collect()
}

/// The offsets of fio 3.33 with these options on a file of 64 KiB (`--write_iolog`, `--bs=4k`).
#[test]
fn sequences_are_those_of_fio() {
    let all: Vec<u64> = (0..16).collect();
    let back: Vec<u64> = std::iter::once(0).chain((0..15).rev()).collect();
    let thirds = [0, 3, 6, 9, 12, 15];
    let cases: &[(&str, Vec<u64>)] = &[
        ("rw=read", all.clone()),
        ("rw=read\nloops=2", [all.clone(), all.clone()].concat()),
        ("rw=read\nloops=2\nio_size=128k", [all.clone(), all.clone()].concat()),
        ("rw=read:4k", [0, 2, 4, 6, 8, 10, 12, 14].repeat(2)),
        ("rw=read:4k\nloops=2", [0, 2, 4, 6, 8, 10, 12, 14].repeat(4)),
        ("rw=read:8k", thirds.to_vec()),
        ("rw=write:8k", thirds.to_vec()),
        ("rw=read:8k\nio_size=64k", [&thirds[..], &thirds, &thirds[..4]].concat()),
        ("rw=read:8k\nio_size=16k", thirds[..4].to_vec()),
        ("rw=read:8k\nloops=2", thirds.repeat(2)),
        ("rw=read:8k\nloops=2\nio_size=96k", thirds.repeat(4)),
        ("rw=read:8k\nloops=3\nio_size=32k", thirds.repeat(3)),
        ("rw=read:8k\nloops=2\nnumber_ios=5", [&thirds[..], &thirds[..4]].concat()),
        ("rw=read:8k\nnumber_ios=10", thirds.to_vec()),
        ("rw=read:12k", [0, 4, 8, 12].repeat(4)),
        ("rw=read:20k", [[0, 6, 12].repeat(5), vec![0]].concat()),
        ("rw=read:60k", vec![0; 16]),
        ("rw=read:100k", vec![0; 16]),
        ("rw=read:-4k", vec![0; 16]),
        ("rw=read:-8k", back.clone()),
        ("rw=write:-8k", back.clone()),
        ("rw=read:-8k\nio_size=128k", [&back[..], &back[1..], &[14]].concat()),
        ("rw=read:-8k\nloops=2\nio_size=32k", back.clone()),
        ("rw=read:-12k", vec![0, 13, 11, 9, 7, 5, 3, 1, 13, 11, 9, 7, 5, 3, 1, 13]),
        ("rw=read:-100k", vec![0]),
    ];
    for (text, expected) in cases {
        assert_eq!(&blocks("64k", text), expected, "{text}");
    }
}

/// The same for a part of a file: one of 64 KiB, or of 96 KiB for the first.
#[test]
fn sequences_within_a_part_of_a_file_are_those_of_fio() {
    let part = |file: &str, text: &str| -> Vec<u64> {
        let text = format!("[a]\nfilename=x\n{text}\n[b]\nfilename=x\nsize={file}\n");
        offsets(&mut generator(&text)).iter().map(|offset| offset / 4096).collect()
    };
    let whole = part("96k", "rw=read:-8k\noffset=32k\nsize=64k");
    assert_eq!(whole, [14, 13, 12, 11, 10, 9, 8, 22, 21, 20, 19, 18, 17, 16, 15, 14]);
    assert_eq!(part("64k", "rw=read:8k\noffset=32k\nsize=32k"), [8, 11, 14]);
    assert_eq!(part("96k", "rw=read:8k\nsize=32k"), [0, 3, 6]);
    assert_eq!(part("96k", "rw=read:-8k\nsize=32k"), [0, 6, 5, 4, 3, 2, 1, 0]);
    assert_eq!(part("64k", "rw=read:12k\noffset=16k\nsize=48k"), [4, 8, 12]);
    let twelve = "rw=read:-12k\noffset=16k\nsize=32k";
    assert_eq!(part("64k", twelve), [5, 9, 7, 5, 9, 7, 5, 9]);
    let sixty = [vec![4], vec![8; 11]].concat();
    assert_eq!(part("64k", "rw=read:60k\noffset=16k\nsize=48k"), sixty);
    assert_eq!(part("64k", "rw=read:-100k\noffset=16k\nsize=32k"), []);
}

#[test]
fn either_direction_at_the_end_of_the_file_ends_the_pass() {
    for (text, passes) in [("rw=rw:8k", 1), ("rw=rw:8k\nloops=2", 2)] {
        let seen = blocks("64k", text);
        let ends = seen.iter().filter(|block| **block == 15).count();
        assert!((passes..=2 * passes).contains(&ends), "{seen:?}");
        assert!((6 * passes..=12 * passes).contains(&seen.len()), "{seen:?}");
    }
    // With a random mode fio draws the next block there.
    let runs = blocks("64k", "rw=randread:4\nnorandommap\nio_size=1m");
    assert_eq!(runs.len(), 256);
    let after_last = runs.windows(2).filter(|pair| pair[0] == 15).map(|pair| pair[1]);
    assert!(after_last.clone().count() > 8 && after_last.clone().any(|block| block != 0));
}

#[test]
fn runs_and_repeats_are_fios() {
    let blocks = |text: &str| blocks("32k", text);
    let runs = blocks("rw=randread:4\nnorandommap\nio_size=256k");
    assert_eq!(runs[..3], [0, 1, 2]);
    for run in runs[3..].chunks_exact(4) {
        assert!(run.windows(2).all(|w| w[0] == 7 || w[1] == w[0] + 1), "{runs:?}");
    }
    let repeats = blocks("rw=randwrite:4\nrw_sequencer=identical\nio_size=256k");
    assert_eq!(repeats[..3], [0, 0, 0]);
    for run in repeats[3..].chunks_exact(4) {
        assert!(run.iter().all(|block| block == &run[0]), "{repeats:?}");
    }
}

#[test]
fn rates_space_the_ios() {
    let mut generator = generator("[a]\nrate_iops=1000\nruntime=1\ntime_based\n");
    assert!(matches!(generator.next(0), Step::Transfer(_)));
    assert_eq!(generator.next(0), Step::Wait { until_ns: 1_000_000 });
    assert!(matches!(generator.next(1_000_000), Step::Transfer(_)));
    assert_eq!(generator.next(1_000_000), Step::Wait { until_ns: 2_000_000 });
}

#[test]
fn writes_are_followed_by_syncs() {
    let mut generator = generator("[a]\nrw=write\nfdatasync=2\nnumber_ios=3\nend_fsync=1\n");
    let steps: Vec<_> = std::iter::from_fn(|| Some(generator.next(0))).take(6).collect();
    let syncs: Vec<_> = steps.iter().map(|s| *s == Step::Sync).collect();
    assert_eq!(syncs, [false, false, true, false, true, false]);
    assert_eq!(steps[5], Step::Finished);
}

#[test]
fn a_sync_takes_the_turn_of_a_file() {
    // As fio 3.33 with `write_iolog`: W and S with the number of the file.
    let text = "[a]\nrw=write\nbs=4k\nsize=16k\nnrfiles=2\nfsync=1\nend_fsync=1\n";
    let mut generator = generator(text);
    let mut steps = Vec::new();
    loop {
        match generator.next(0) {
            Step::Transfer(transfer) => steps.push(format!("W{}", transfer.offset >> 20)),
            Step::Sync => steps.push(format!("S{}", generator.byte_of_file() >> 20)),
            _ => break,
        }
    }
    assert_eq!(steps.join(" "), "W0 S1 W0 S1 W1 S1 W1 S0 S1");
}

#[test]
fn a_clone_that_ends_within_its_ramp_is_counted_whole() {
    let mut generator = generator("[a]\nsize=8k\nramp_time=5\n");
    generator.start(100);
    for now_ns in [150, 200] {
        assert!(matches!(generator.next(now_ns), Step::Transfer(_)));
        generator.finished_in_ramp(Direction::Read, 4096);
    }
    let mut record = JobRecord::new("a", 1);
    assert_eq!(generator.close(300, &mut record), 200);
    let reads = record.direction(Direction::Read);
    assert_eq!((reads.ios(), reads.bytes, reads.latency.count()), (2, 8192, 0));
    // One that is measured leaves its ramp out.
    let mut record = JobRecord::new("a", 1);
    assert_eq!(generator.close(5_000_000_400, &mut record), 300);
    assert_eq!(record.ios(), 0);
}

/// The I/Os of a job with several files: file and block within it.
fn turns(text: &str) -> Vec<(u64, u64)> {
    let text = format!("[a]\nsize=48k\nnrfiles=3\n{text}\n");
    // Files lie 1 MiB apart.
    let place = |offset: u64| (offset >> 20, (offset & 0xF_FFFF) / 4096);
    offsets(&mut generator(&text)).into_iter().map(place).collect()
}

#[test]
fn files_take_turns_as_they_are_asked_to() {
    // As fio 3.33 with `write_iolog`.
    let rounds = |run: u64| -> Vec<(u64, u64)> {
        (0..4 / run)
            .flat_map(|round| (0..3).map(move |file| (file, round)))
            .flat_map(|(file, round)| (0..run).map(move |block| (file, round * run + block)))
            .collect()
    };
    assert_eq!(turns("rw=read"), rounds(1));
    assert_eq!(turns("rw=read\nfile_service_type=roundrobin:2"), rounds(2));
    assert_eq!(turns("rw=read\nfile_service_type=sequential"), rounds(4));
    assert_eq!(turns("rw=read\nloops=2"), [rounds(1), rounds(1)].concat());
}

#[test]
fn every_file_has_all_of_its_blocks_in_any_order() {
    for order in ["random", "random:3", "roundrobin", "sequential"] {
        let mut seen = turns(&format!("rw=randread\nfile_service_type={order}"));
        seen.sort_unstable();
        let all: Vec<_> = (0..3).flat_map(|file| (0..4).map(move |block| (file, block))).collect();
        assert_eq!(seen, all, "{order}");
    }
}

#[test]
fn a_distribution_of_files_prefers_some() {
    let seen = turns("rw=randread\nnorandommap\nio_size=4m\nfile_service_type=zipf:2.5");
    let mut counts = [0; 3];
    for (file, _) in &seen {
        counts[*file as usize] += 1;
    }
    counts.sort_unstable();
    assert_eq!(seen.len(), 1024);
    assert!(counts[2] > 500 && counts[0] < 300, "{counts:?}");
}

#[test]
fn a_pass_is_as_long_as_the_size_within_longer_files() {
    let seen = offsets(&mut generator("[a]\nrw=randread\nsize=64k\nfilesize=1m\n"));
    assert_eq!(seen.len(), 16);
    assert!(seen.iter().any(|offset| *offset >= 65_536));
    let half = offsets(&mut generator("[a]\nrw=read\nsize=64k\nio_size=50%\n"));
    assert_eq!(half.len(), 8);
}
