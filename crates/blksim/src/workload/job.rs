//! A job: one section of a job file, its options read and checked.

use std::collections::BTreeMap;

use super::file_size_range::FileSizes;
use super::replay::JobReplay;

/// Kind of I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    pub reads: bool,
    /// It changes data: by writes, or by trims alone.
    pub writes: bool,
    /// Its only I/Os are trims.
    pub trims: bool,
    pub random: bool,
}

impl Mode {
    /// The mode called `text`, without the part after its colon.
    pub(super) fn parse(text: &str) -> Self {
        let text = text.split(':').next().unwrap_or_default();
        let random = text.starts_with("rand");
        let rest = text.strip_prefix("rand").unwrap_or(text);
        let (reads, writes) = match rest {
            "read" => (true, false),
            "write" | "trim" => (false, true),
            _ => (true, true),
        };
        Self { reads, writes, trims: rest == "trim", random }
    }
}

/// The sequence of offsets that are not random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sequence {
    /// Random modes: I/Os from one random offset to the next.
    pub nr_per_offset: u64,
    /// Random modes: the I/Os in between repeat the offset instead of going on in order.
    pub identical: bool,
    /// Sequential modes: bytes left out after each I/O; negative to go back.
    pub gap_bytes: i64,
}

/// A size that may depend on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Bytes(u64),
    Percent(u64),
}

impl Extent {
    pub fn fixed_bytes(self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Percent(_) => None,
        }
    }
}

/// A value for reads and one for writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerDirection<T> {
    pub read: T,
    pub write: T,
}

/// The distribution of random offsets.
#[derive(Debug, Clone, PartialEq)]
pub enum Distribution {
    Uniform,
    /// Exponent.
    Zipf(f64),
    /// Share of the range that gets the complementary share of accesses.
    Pareto(f64),
    /// Standard deviation in percent of the range, around its middle.
    Normal(f64),
    /// Zones one behind the other, of reads and of writes.
    Zoned(PerDirection<Vec<Zone>>),
}

/// A zone of a random distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone {
    /// Share of the accesses in percent.
    pub accesses: u64,
    /// End of the zone, in percent of the range or in bytes.
    pub end: Extent,
}

/// Sizes of I/Os.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockSizes {
    /// With weights; a single entry for a fixed size.
    List(Vec<(u64, u64)>),
    /// Multiples of the smallest, up to the largest.
    Range(u64, u64),
}

impl BlockSizes {
    pub fn fixed(bytes: u64) -> Self {
        Self::List(vec![(bytes, 100)])
    }

    /// The only size, if there is one.
    pub fn single(&self) -> Option<u64> {
        match self {
            Self::List(sizes) if sizes.len() == 1 => Some(sizes[0].0),
            Self::List(_) => None,
            Self::Range(smallest, largest) => (smallest == largest).then_some(*smallest),
        }
    }

    /// The sizes that are named, apart from those without a share.
    pub fn all(&self) -> Vec<u64> {
        match self {
            Self::List(sizes) => sizes.iter().map(|(bytes, _)| *bytes).collect(),
            Self::Range(smallest, largest) => vec![*smallest, *largest],
        }
    }

    pub fn largest(&self) -> u64 {
        match self {
            Self::List(sizes) => sizes.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0),
            Self::Range(_, largest) => *largest,
        }
    }

    pub fn smallest(&self) -> u64 {
        match self {
            Self::List(sizes) => sizes.iter().map(|(bytes, _)| *bytes).min().unwrap_or(0),
            Self::Range(smallest, _) => *smallest,
        }
    }
}

/// Reading back what was written (`verify`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verify {
    /// Writes after which reads begin; 0: at the end of a pass.
    pub backlog: u64,
    /// Reads at once.
    pub batch: u64,
}

/// Zones that a job visits one after the other (`zonemode=strided`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strides {
    /// Bytes to transfer within a zone.
    pub zone_bytes: u64,
    /// Length of a zone.
    pub range: u64,
    /// Bytes left out between two zones.
    pub skip: u64,
}

/// A share of I/Os with a priority of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandPriority {
    /// `None` for any size.
    pub bytes: Option<u64>,
    pub percent: u64,
    /// As ioprio numbers it.
    pub class: u8,
    pub level: u8,
}

/// A job's share of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    pub id: u64,
    pub weight: u64,
    pub sleep_ns: u64,
}

/// Search for the highest depth with which I/Os meet a latency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyGoal {
    pub target_ns: u64,
    pub window_ns: u64,
    pub percentile: f64,
    /// Go on with the search.
    pub run: bool,
}

/// The jobs that end with a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitWhat {
    Group,
    Stonewall,
    All,
}

/// A job's advice to the kernel about its buffered accesses (`fadvise_hint`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    None,
    Sequential,
    Random,
}

/// The order in which a job turns to its files.
#[derive(Debug, Clone, PartialEq)]
pub struct FileService {
    pub order: FileOrder,
    /// I/Os to one file before the next.
    pub ios_in_turn: u64,
}

/// See [`FileService`].
#[derive(Debug, Clone, PartialEq)]
pub enum FileOrder {
    RoundRobin,
    /// A file from beginning to end, then the next.
    Sequential,
    Random(Distribution),
}

/// A limit on the rate of one clone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RateLimit {
    pub bytes_per_second: PerDirection<u64>,
    pub ios_per_second: PerDirection<u64>,
    pub poisson: bool,
}

/// One job, as it is to run.
#[derive(Debug, Clone)]
pub struct Job {
    pub name: String,
    pub line: u32,
    /// Effective options: canonical name to the original text.
    pub options: BTreeMap<&'static str, String>,
    pub option_lines: BTreeMap<&'static str, u32>,
    pub numjobs: u32,
    pub mode: Mode,
    /// As written: `randread`.
    pub mode_text: String,
    pub sequence: Sequence,
    pub direct: bool,
    pub engine: String,
    pub iodepth: u32,
    pub iodepth_batch: u32,
    pub block_sizes: PerDirection<BlockSizes>,
    /// The sizes of reads are those of I/Os in order, and the sizes of writes those of random ones.
    pub sizes_by_order: bool,
    pub block_align: Option<PerDirection<u64>>,
    pub size: Option<Extent>,
    /// The lengths of its files, if given.
    pub filesize: Option<FileSizes>,
    pub offset: Extent,
    pub offset_increment: Extent,
    pub io_size: Option<u64>,
    /// Instead of `io_size`: percent of the size.
    pub io_size_percent: Option<u64>,
    pub number_ios: Option<u64>,
    pub loops: u64,
    pub runtime_ns: Option<u64>,
    pub time_based: bool,
    pub ramp_time_ns: u64,
    pub startdelay_ns: u64,
    pub stonewall: bool,
    pub new_group: bool,
    /// Name of a section that must have ended.
    pub wait_for: Option<String>,
    /// Other jobs end with the first one that ends, in whichever job this is set.
    pub exitall: bool,
    pub exit_what: ExitWhat,
    /// Names of its files, with the directory. Empty if it names none.
    pub filenames: Vec<String>,
    /// Files of each clone, if it names none.
    pub nr_files: u64,
    pub file_service: FileService,
    pub rwmixread: u64,
    pub percentage_random: u64,
    pub distribution: Distribution,
    pub norandommap: bool,
    pub randseed: Option<u64>,
    pub fsync: u64,
    pub fdatasync: u64,
    pub end_fsync: bool,
    /// `O_SYNC` or `O_DSYNC`.
    pub sync: bool,
    pub invalidate: bool,
    pub pre_read: bool,
    pub advice: Advice,
    pub thinktime_ns: u64,
    pub thinktime_blocks: u64,
    pub rate: RateLimit,
    pub verify: Option<Verify>,
    pub strides: Option<Strides>,
    pub flow: Option<Flow>,
    pub latency_goal: Option<LatencyGoal>,
    /// Of reads and of writes.
    pub command_priorities: PerDirection<Vec<CommandPriority>>,
    pub prioclass: Option<u8>,
    pub prio: Option<u8>,
    pub nice: Option<i32>,
    pub cgroup: Option<String>,
    pub cgroup_weight: Option<u64>,
    /// Recorded I/Os that its clones replay, in place of all that the options say about I/Os.
    pub replay: Option<JobReplay>,
}

impl Job {
    /// Gives a time-based job another runtime. Its ramp time is cut to the same length, so that a
    /// short run stays short.
    pub fn run_for(&mut self, runtime_ns: u64) {
        if self.time_based {
            self.runtime_ns = Some(runtime_ns);
            self.ramp_time_ns = self.ramp_time_ns.min(runtime_ns);
        }
    }

    /// Lets the job run until another process ends it, or else for a time.
    pub fn run_without_end(&mut self, longest_ns: u64) {
        self.time_based = true;
        self.runtime_ns = Some(longest_ns);
        self.ramp_time_ns = 0;
        self.number_ios = None;
        self.io_size = None;
        self.loops = 1;
    }

    /// Its I/Os pass through the page cache. A mapped file has no other way, whatever `direct` says.
    pub fn buffered(&self) -> bool {
        (!self.direct || self.mapped()) && !self.mode.trims
    }

    /// It moves data by page faults in a mapped file instead of by calls.
    pub fn mapped(&self) -> bool {
        self.engine == "mmap"
    }

    /// It repeats until its runtime is over; without one, fio forgets that it should.
    pub fn repeats(&self) -> bool {
        self.time_based && self.runtime_ns.is_some()
    }

    /// The engine keeps several I/Os in flight.
    pub fn asynchronous(&self) -> bool {
        matches!(self.engine.as_str(), "libaio" | "io_uring" | "posixaio")
    }

    /// Most I/Os in flight.
    ///
    /// No engine of fio's trims asynchronously (`do_io_u_trim` in `io_u.c`, fio 3.33).
    pub fn depth(&self) -> u32 {
        if self.asynchronous() && !self.mode.trims { self.iodepth } else { 1 }
    }

    /// The largest block that occurs.
    pub fn largest_block(&self) -> u64 {
        self.occurring_sizes().map(BlockSizes::largest).max().unwrap_or(0)
    }

    /// The smallest block that occurs.
    pub fn smallest_block(&self) -> u64 {
        self.occurring_sizes().map(BlockSizes::smallest).min().unwrap_or(u64::MAX)
    }

    fn occurring_sizes(&self) -> impl Iterator<Item = &BlockSizes> {
        let both = self.sizes_by_order;
        let reads = (self.mode.reads || both).then_some(&self.block_sizes.read);
        let writes = (self.mode.writes || both).then_some(&self.block_sizes.write);
        reads.into_iter().chain(writes)
    }
}

/// An option that is not followed to the letter on some ground, or on all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    pub job: String,
    pub option: String,
    pub line: u32,
    pub message: String,
}

/// A job file, read and checked.
#[derive(Debug, Clone, Default)]
pub struct JobFile {
    pub source: String,
    pub jobs: Vec<Job>,
    /// Options that models refuse.
    pub host_only: Vec<Remark>,
    /// Options that models leave out.
    pub warnings: Vec<Remark>,
    /// Options that are followed differently on all grounds.
    pub notes: Vec<Remark>,
}

/// Signals between the tasks that replay in a job file.
pub fn nr_signals(jobs: &[Job]) -> usize {
    jobs.iter().find_map(|job| job.replay.as_ref()).map_or(0, |replay| replay.nr_signals)
}
