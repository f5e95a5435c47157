//! Programs in the kernel (`kernel/bpf/blkrecord.bpf.c`), which follow bios by their addresses and so have
//! all of them: control groups and priorities too.
//!
//! | Module | Contents |
//! |---|---|
//! | [`event`] | from the bytes of the ring buffer to I/Os and task events |
//! | [`cgroups`] | paths of control groups by their numbers |
//!
//! Programs, maps and ring buffer belong to descriptors of this process: the kernel removes them when it ends,
//! however it ends.

pub mod cgroups;
pub mod event;

use std::fmt;
use std::path::Path;

use aya::maps::{Array, MapData, PerCpuArray, RingBuf};
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf, EbpfLoader};
use blkrecord::batch::Batch;
use blkrecord::names::Names;

use crate::error::CaptureError;
use crate::lockdown;
use crate::request::{Devices, Request};
use crate::source::{Source, SourceCounts};
use cgroups::CgroupPaths;
use event::{Decoder, ENTRY_BYTES, Kind};

/// The programs and their tracepoints.
const PROGRAMS: [(&str, &str); 10] = [
    // Started in this order and stopped in the opposite one. Completions first: an I/O that is queued before its
    // completion is watched would never end.
    ("rq_complete", "block_rq_complete"),
    ("bio_complete", "block_bio_complete"),
    ("rq_issue", "block_rq_issue"),
    ("rq_insert", "block_rq_insert"),
    ("bio_split", "block_split"),
    ("bio_backmerge", "block_bio_backmerge"),
    ("bio_frontmerge", "block_bio_frontmerge"),
    ("process_fork", "sched_process_fork"),
    ("process_exit", "sched_process_exit"),
    ("bio_queue", "block_bio_queue"),
];
/// Where a kernel describes its types.
const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";
/// Disks that the programs compare with.
const MOST_DEVICES: usize = 32;
/// Places of a bucket in the table of bios.
const PLACES: usize = 16;
/// Places in the map of counters.
const LOST: u32 = 0;
const UNMATCHED: u32 = 1;

/// Captures through BPF.
pub struct BpfSource {
    programs: Ebpf,
    ring: RingBuf<MapData>,
    decoder: Decoder,
    counts: SourceCounts,
    /// Completions while the programs started, of I/Os whose queueing was not watched yet.
    unmatched_before: u64,
}

impl BpfSource {
    /// Loads the programs and starts them. Moments count from `began_ns`.
    pub fn start(
        devices: &Devices,
        request: &Request,
        began_ns: u64,
    ) -> Result<Self, CaptureError> {
        let Some(object) = &request.bpf_object else {
            return Err(not_built());
        };
        let disks = devices.disks();
        if disks.len() > MOST_DEVICES {
            let message = format!("BPF records at most {MOST_DEVICES} disks at a time");
            return Err(CaptureError::Unavailable(message));
        }
        let mut programs = load(object, &disks, request.buffer_bytes)?;
        let ring = programs.take_map("ring").ok_or_else(|| incomplete("ring"))?;
        let ring = RingBuf::try_from(ring).map_err(|error| refused("the ring buffer", &error))?;
        verify(&mut programs)?;
        attach(&mut programs)?;
        let mut source = Self {
            programs,
            ring,
            decoder: Decoder::new(began_ns, CgroupPaths::new(request.cgroup_root.clone())),
            counts: SourceCounts::default(),
            unmatched_before: 0,
        };
        source.unmatched_before = source.counter(UNMATCHED);
        Ok(source)
    }

    fn drain(&mut self, batch: &mut Batch, names: &mut Names) {
        while let Some(item) = self.ring.next() {
            match self.decoder.read(&item, names) {
                Some(Kind::Io(io)) => {
                    self.counts.events += 1;
                    self.counts.incomplete += u64::from(!io.completed.is_known());
                    batch.ios.push(io);
                }
                Some(Kind::Task(task)) => batch.tasks.push(task),
                None => {}
            }
        }
    }

    /// The sum of all processors. Only at the end: a look into a map costs a call of the kernel.
    fn counter(&self, place: u32) -> u64 {
        let Some(map) = self.programs.map("counters") else { return 0 };
        let Ok(counters) = PerCpuArray::<_, u64>::try_from(map) else { return 0 };
        counters.get(&place, 0).map(|values| values.iter().sum()).unwrap_or_default()
    }

    /// The I/Os that are still under way.
    fn take_open(&mut self, batch: &mut Batch, names: &mut Names) {
        let Some(map) = self.programs.map("buckets") else { return };
        let Ok(buckets) = Array::<_, [u64; PLACES]>::try_from(map) else { return };
        let Some(map) = self.programs.map("entries") else { return };
        let Ok(entries) = Array::<_, [u8; ENTRY_BYTES]>::try_from(map) else { return };
        let first = batch.ios.len();
        for (number, bucket) in (0_u32..).zip(buckets.iter().flatten()) {
            for (place, bio) in (0_u32..).zip(bucket) {
                if bio == 0 {
                    continue;
                }
                if let Ok(entry) = entries.get(&(number * PLACES as u32 + place), 0) {
                    batch.ios.push(self.decoder.io(&entry, names));
                }
            }
        }
        batch.ios[first..].sort_unstable_by_key(|io| (io.queued, io.sector));
        self.counts.incomplete += (batch.ios.len() - first) as u64;
    }
}

/// Lets the kernel check all programs without running one.
///
/// # Errors
///
/// The reason why they cannot run here.
pub fn check(object: Option<&Path>) -> Result<(), CaptureError> {
    let Some(object) = object else { return Err(not_built()) };
    let mut programs = load(object, &[1], 1 << 20)?;
    verify(&mut programs)
}

fn load(object: &Path, disks: &[u32], buffer_bytes: u64) -> Result<Ebpf, CaptureError> {
    let bytes = std::fs::read(object).map_err(|cause| CaptureError::kernel(object, cause))?;
    let btf = kernel_types()?;
    let mut numbers = [0_u32; MOST_DEVICES];
    numbers[..disks.len()].copy_from_slice(disks);
    let count = disks.len() as u32;
    // The kernel wants a power of two.
    let ring_bytes = buffer_bytes.clamp(1 << 20, 1 << 30).next_power_of_two() as u32;
    EbpfLoader::new()
        .btf(Some(&btf))
        .set_global("nr_devices", &count, true)
        .set_global("devices", &numbers, true)
        .set_max_entries("ring", ring_bytes)
        .load(&bytes)
        .map_err(|error| refused("the BPF programs", &error))
}

/// The kernel's own types, to which the programs are fitted.
fn kernel_types() -> Result<Btf, CaptureError> {
    if !Path::new(KERNEL_TYPES).exists() {
        let message = "this kernel does not describe its types (CONFIG_DEBUG_INFO_BTF)";
        return Err(CaptureError::Unavailable(message.to_owned()));
    }
    Btf::from_sys_fs().map_err(|error| refused("the kernel's types (BTF)", &error))
}

/// Loads all programs: the kernel checks them.
fn verify(programs: &mut Ebpf) -> Result<(), CaptureError> {
    let btf = kernel_types()?;
    for (name, tracepoint) in PROGRAMS {
        let loaded = program_of(programs, name)?.load(tracepoint, &btf);
        loaded.map_err(|error| refused(&format!("the program at {tracepoint}"), &error))?;
    }
    Ok(())
}

/// Starts the programs, in their order.
fn attach(programs: &mut Ebpf) -> Result<(), CaptureError> {
    for (name, tracepoint) in PROGRAMS {
        let attached = program_of(programs, name)?.attach();
        attached.map_err(|error| refused(&format!("the program at {tracepoint}"), &error))?;
    }
    Ok(())
}

fn program_of<'a>(
    programs: &'a mut Ebpf,
    name: &str,
) -> Result<&'a mut BtfTracePoint, CaptureError> {
    let program = programs.program_mut(name).ok_or_else(|| incomplete(name))?;
    program.try_into().map_err(|error| refused(&format!("the program {name}"), &error))
}

fn not_built() -> CaptureError {
    CaptureError::Unavailable("this blklab was built without BPF programs".to_owned())
}

fn incomplete(part: &str) -> CaptureError {
    CaptureError::Unavailable(format!("the BPF object has no {part}"))
}

/// The kernel does not take it: too old, locked down, or without a capability.
fn refused(what: &str, error: &dyn std::error::Error) -> CaptureError {
    if lockdown::is_confidential() {
        return CaptureError::Unavailable(lockdown::reason(what));
    }
    let mut reasons = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        reasons = format!("{reasons}: {inner}");
        cause = inner.source();
    }
    // The verifier's log has a line per instruction, then the objection, then statistics.
    let mut lines = reasons.lines().filter(|line| {
        !["processed ", "verification time ", "stack depth "]
            .iter()
            .any(|start| line.starts_with(start))
    });
    let first = lines.next().unwrap_or_default();
    let last: Vec<&str> = lines.rev().take(2).collect();
    let shown: Vec<&str> = std::iter::once(first).chain(last.into_iter().rev()).collect();
    let reasons = shown.join(" … ");
    CaptureError::Unavailable(format!("the kernel refuses {what}: {reasons}"))
}

impl Source for BpfSource {
    fn name(&self) -> &'static str {
        "bpf"
    }

    fn missing(&self) -> Vec<String> {
        Vec::new()
    }

    fn poll(&mut self, batch: &mut Batch, names: &mut Names) -> Result<(), CaptureError> {
        self.drain(batch, names);
        Ok(())
    }

    fn stop(&mut self, batch: &mut Batch, names: &mut Names) -> Result<(), CaptureError> {
        // Without its queueing, a completion would count as unmatched from here on.
        self.counts.unmatched = self.counter(UNMATCHED) - self.unmatched_before;
        // Completions last: an I/O that is queued after they are watched would never end.
        for (name, _) in PROGRAMS.into_iter().rev() {
            if let Some(program) = self.programs.program_mut(name) {
                // Unloading detaches it.
                let program: Result<&mut BtfTracePoint, _> = program.try_into();
                if let Ok(program) = program {
                    let _ = program.unload();
                }
            }
        }
        self.drain(batch, names);
        self.take_open(batch, names);
        self.counts.lost = self.counter(LOST);
        Ok(())
    }

    fn counts(&self) -> SourceCounts {
        self.counts
    }
}

impl fmt::Debug for BpfSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("BpfSource").field("counts", &self.counts).finish_non_exhaustive()
    }
}
