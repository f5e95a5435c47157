//! The kernel's tracepoints, read from an own tracefs instance.
//!
//! | Module | Contents |
//! |---|---|
//! | [`mount`] | tracefs where it is mounted, or a mount of our own that nobody sees |
//! | [`instance`] | an instance: its buffers, filters and events; removed at the end |
//! | [`format`] | where the fields of an event are, as the kernel describes them |
//! | [`page`] | the events of one page of the ring buffer |
//! | [`decode`] | from the bytes of an event to what it tells |

pub mod decode;
pub mod format;
pub mod instance;
pub mod mount;
pub mod page;

use blkrecord::batch::Batch;
use blkrecord::event::{Action, Event};
use blkrecord::io::{Moment, UNKNOWN_TASK};
use blkrecord::names::Names;
use blkrecord::pairing::Pairing;
use blkrecord::task_event::{TaskEvent, TaskEventKind};

use crate::clock;
use crate::error::CaptureError;
use crate::request::{Devices, Request};
use crate::source::{Source, SourceCounts};
use crate::tasks::Tasks;
use decode::{Decoded, Decoder};
use instance::Instance;

/// An event is in its processor's buffer this long after its time at the latest.
const SETTLED_NS: u64 = 2_000_000;

/// Captures through tracefs.
#[derive(Debug)]
pub struct TracefsSource {
    instance: Instance,
    decoder: Decoder,
    devices: Devices,
    tasks: Tasks,
    pairing: Pairing,
    /// Events that may still have earlier ones from other processors before them.
    waiting: Vec<(u64, Decoded)>,
    began_ns: u64,
    lost: u64,
    /// Why BPF does not work here.
    no_bpf: Option<String>,
}

impl TracefsSource {
    /// Makes an instance and starts it. Moments count from `began_ns`.
    pub fn start(
        devices: Devices,
        request: &Request,
        began_ns: u64,
        no_bpf: Option<String>,
    ) -> Result<Self, CaptureError> {
        let root = mount::find()?;
        let instance = Instance::create(root, request.buffer_bytes)?;
        let decoder = instance.enable(&devices.numbers())?;
        Ok(Self {
            instance,
            decoder,
            devices,
            tasks: Tasks::new(request.facts.cgroup_version),
            pairing: Pairing::new(),
            waiting: Vec::new(),
            began_ns,
            lost: 0,
            no_bpf,
        })
    }

    fn read(&mut self, names: &mut Names) -> Result<(), CaptureError> {
        let Self { instance, decoder, waiting, .. } = self;
        instance.read(|at_ns, processor, bytes| {
            if let Some(mut decoded) = decoder.decode(bytes, names) {
                if let Decoded::Block(event) = &mut decoded {
                    event.processor = processor;
                }
                waiting.push((at_ns, decoded));
            }
        })?;
        self.lost = instance.lost()?;
        Ok(())
    }

    /// Takes all events up to a time, in the order of time.
    fn take(&mut self, until_ns: u64, batch: &mut Batch, names: &mut Names) {
        // Stable: each processor's events are in order already.
        self.waiting.sort_by_key(|(at_ns, _)| *at_ns);
        let settled = self.waiting.partition_point(|(at_ns, _)| *at_ns <= until_ns);
        for (at_ns, decoded) in self.waiting.drain(..settled) {
            let at_ns = at_ns.saturating_sub(self.began_ns);
            match decoded {
                Decoded::Block(event) => {
                    let Some(device) = self.devices.disk(event.device) else { continue };
                    let mut event = Event { at_ns, device, ..event };
                    if event.action == Action::Queue {
                        let task = self.tasks.get(event.tid, names);
                        (event.tgid, event.cgroup) = (task.tgid, task.cgroup);
                    }
                    self.pairing.take(&event, batch);
                }
                Decoded::Fork { parent, child, command } => {
                    self.tasks.forked(parent, child);
                    let kind = TaskEventKind::Fork;
                    let at = Moment::at(at_ns);
                    batch.tasks.push(TaskEvent { at, kind, tid: child, parent, command });
                }
                Decoded::Exit { tid, command } => {
                    self.tasks.exited(tid);
                    let kind = TaskEventKind::Exit;
                    let at = Moment::at(at_ns);
                    batch.tasks.push(TaskEvent { at, kind, tid, parent: tid, command });
                }
            }
        }
    }
}

impl Source for TracefsSource {
    fn name(&self) -> &'static str {
        "tracefs"
    }

    fn missing(&self) -> Vec<String> {
        let mut missing = vec![
            "processes and control groups of tasks that ended within 20 ms of their I/O".to_owned(),
            "the control group that is charged, if it is not the submitting task's own".to_owned(),
            "the segments of memory that the data of I/Os lie in".to_owned(),
        ];
        if let Some(reason) = &self.no_bpf {
            missing.push(format!("that takes BPF, which cannot be used: {reason}"));
        }
        missing
    }

    fn poll(&mut self, batch: &mut Batch, names: &mut Names) -> Result<(), CaptureError> {
        let until_ns = clock::monotonic_ns().saturating_sub(SETTLED_NS);
        self.read(names)?;
        self.take(until_ns, batch, names);
        Ok(())
    }

    fn stop(&mut self, batch: &mut Batch, names: &mut Names) -> Result<(), CaptureError> {
        self.instance.stop()?;
        self.read(names)?;
        self.take(u64::MAX, batch, names);
        self.pairing.finish(batch);
        self.instance.remove()
    }

    fn counts(&self) -> SourceCounts {
        let counts = self.pairing.counts();
        SourceCounts {
            events: counts.events,
            lost: self.lost,
            unmatched: counts.unmatched,
            incomplete: counts.incomplete,
        }
    }
}

/// The task of an event: the kernel's idle task, 0, stands for any that was interrupted.
fn task_of(pid: u32) -> u32 {
    if pid == 0 { UNKNOWN_TASK } else { pid }
}
