//! Several direct I/Os at a time, through the kernel's native asynchronous I/O (as libaio).
//!
//! Submission sleeps while the queue is full, as in the simulator; `io_uring` would hand it to a
//! kernel thread instead.

use std::ptr;

use blksim::core::record::Direction;
use blksim::workload::Job;
use blksim::workload::generator::{Step, Transfer};
use blksim::workload::own_priority::OwnPriority;

use super::contexts::Pause;
use super::job_process::Worker;
use super::synchronous;
use crate::aio_abi::{ControlBlock, DURABLE, FDSYNC, IoEvent, PREAD, PWRITE};
use crate::clock;
use crate::failure::{Failure, checked};

/// A call for more I/Os than this submits them in one plug (`AIO_PLUG_THRESHOLD` in fs/aio.c).
const PLUG_THRESHOLD: usize = 2;
/// A task that waits for another's signal with I/O in flight looks for it so often.
const SIGNAL_LOOK_NS: u64 = 20_000;
/// `IOCB_FLAG_IOPRIO`, and the shift of the class (`include/uapi/linux/ioprio.h`).
const FLAG_IOPRIO: u32 = 1 << 1;
const CLASS_SHIFT: u32 = 13;

/// An I/O in flight.
#[derive(Debug, Clone, Copy)]
struct InFlight {
    direction: Direction,
    offset: u64,
    bytes: u32,
    start_ns: u64,
    /// Its index among recorded I/Os, if it is one.
    replayed: u32,
}

/// I/Os in flight.
#[derive(Debug)]
pub struct Queue {
    context: libc::c_ulong,
    depth: usize,
    batch: usize,
    blocks: Vec<ControlBlock>,
    ios: Vec<InFlight>,
    free: Vec<usize>,
    /// Prepared, not yet submitted.
    waiting: Vec<*const ControlBlock>,
    events: Vec<IoEvent>,
}

impl Queue {
    /// The queue of a clone of a job.
    pub fn open(job: &Job, clone: u32) -> Result<Self, Failure> {
        // Tasks that replay differ in how many I/Os they have in flight.
        let replayed = job.replay.as_ref().map(|replay| replay.plans[clone as usize].depth());
        let depth = replayed.map_or(job.depth(), |depth| depth.clamp(1, job.depth())) as usize;
        let mut context: libc::c_ulong = 0;
        // SAFETY: the pointer is valid for the call.
        let result =
            unsafe { libc::syscall(libc::SYS_io_setup, depth, ptr::from_mut(&mut context)) };
        let doing =
            format!("preparing {depth} asynchronous I/Os (fs.aio-max-nr limits all programs')");
        checked(&doing, result as libc::c_int)?;
        let idle =
            InFlight { direction: Direction::Read, offset: 0, bytes: 0, start_ns: 0, replayed: 0 };
        Ok(Self {
            context,
            depth,
            // Recorded I/Os have a time each.
            batch: if job.replay.is_some() {
                1
            } else {
                job.iodepth_batch.min(job.depth()) as usize
            },
            blocks: vec![ControlBlock::default(); depth],
            ios: vec![idle; depth],
            free: (0..depth).rev().collect(),
            waiting: Vec::with_capacity(depth),
            events: vec![IoEvent::default(); depth],
        })
    }

    /// Runs until the generator is exhausted and every I/O is done, or the next I/O is another context's.
    pub fn work(&mut self, worker: &mut Worker, mut now_ns: u64) -> Result<Pause, Failure> {
        let mut exhausted = false;
        loop {
            let (mut wait_until_ns, mut awaited) = (None, None);
            while !exhausted && !self.free.is_empty() {
                // I/Os that are held back have the context of the next one.
                if let Some(context) = worker.other_context(now_ns) {
                    return Ok(Pause::HandedOn(context));
                }
                match worker.next(now_ns) {
                    Step::Transfer(transfer) if worker.calls(&transfer) => {
                        worker.take_off(false);
                        let mut delay_ns = worker.run_delay_ns();
                        now_ns = synchronous::call(worker, transfer, now_ns, &mut delay_ns)?;
                        worker.take_off(true);
                    }
                    Step::Transfer(transfer) => {
                        self.prepare(worker, transfer, now_ns);
                        if self.waiting.len() >= self.batch && !worker.gathers() {
                            now_ns = self.submit(worker, now_ns)?;
                        }
                    }
                    Step::Sync => {
                        now_ns = self.submit(worker, now_ns)?;
                        now_ns = worker.sync(now_ns)?;
                    }
                    Step::Wait { until_ns } => {
                        wait_until_ns = Some(until_ns);
                        break;
                    }
                    Step::AwaitCompletion => break,
                    Step::AwaitSignal(signal) => {
                        awaited = Some(signal);
                        break;
                    }
                    Step::Finished => exhausted = true,
                }
            }
            if exhausted || self.free.is_empty() || !worker.gathers() {
                now_ns = self.submit(worker, now_ns)?;
            }
            if self.free.len() == self.depth {
                match (wait_until_ns, awaited) {
                    (_, Some(signal)) => {
                        worker.await_signal(signal);
                        now_ns = clock::now_ns();
                    }
                    (None, None) if exhausted => return Ok(Pause::Ended(now_ns)),
                    (None, None) => {}
                    (Some(until_ns), None) => {
                        clock::sleep_until(until_ns);
                        now_ns = clock::now_ns();
                    }
                }
            } else {
                let think =
                    wait_until_ns.map(|until_ns| clock::timeout(until_ns.saturating_sub(now_ns)));
                let look = awaited.map(|_| clock::timespec(SIGNAL_LOOK_NS - clock::SLACK_NS));
                now_ns = self.reap(worker, now_ns, think.or(look))?;
            }
        }
    }

    fn prepare(&mut self, worker: &mut Worker, transfer: Transfer, start_ns: u64) {
        let Transfer { direction, offset, bytes, priority } = transfer;
        let Some(slot) = self.free.pop() else { return };
        let (replayed, manner) = worker.submitted();
        worker.asked(direction, offset, bytes, start_ns);
        self.ios[slot] = InFlight { direction, offset, bytes, start_ns, replayed };
        let (descriptor, place) = worker.target.locate(offset);
        let (flags, priority) = match priority {
            None => (0, 0),
            Some(OwnPriority { class, level }) => {
                (FLAG_IOPRIO, i16::from(class) << CLASS_SHIFT | i16::from(level))
            }
        };
        self.blocks[slot] = ControlBlock {
            data: slot as u64,
            rw_flags: if manner.durable { DURABLE } else { 0 },
            opcode: match direction {
                Direction::Read => PREAD,
                Direction::Sync => FDSYNC,
                _ => PWRITE,
            },
            priority,
            descriptor: descriptor as u32,
            // A sync takes none of these.
            buffer: match bytes {
                0 => 0,
                bytes => worker.target.buffer(direction, bytes, manner.memory) as u64,
            },
            bytes: u64::from(bytes),
            offset: if bytes > 0 { place } else { 0 },
            flags,
            ..ControlBlock::default()
        };
        self.waiting.push(&raw const self.blocks[slot]);
    }

    /// Submits the prepared I/Os; this may sleep.
    fn submit(&mut self, worker: &mut Worker, now_ns: u64) -> Result<u64, Failure> {
        if self.waiting.is_empty() {
            return Ok(now_ns);
        }
        let prepared = self.waiting.len();
        if prepared > self.batch {
            // Recorded I/Os of one plug. Two would get none, but the kernel plugs by the length of the list: it submits
            // those in front of an address that is none, and tells how many they were.
            self.waiting.resize(prepared.max(PLUG_THRESHOLD + 1), ptr::null());
        }
        let mut done = 0;
        while done < prepared {
            let left = &self.waiting[done..];
            // SAFETY: the blocks live in a vector that never grows; the buffer outlives the queue.
            let result = unsafe {
                libc::syscall(libc::SYS_io_submit, self.context, left.len(), left.as_ptr())
            };
            done += checked("submitting I/O", result as libc::c_int)? as usize;
        }
        self.waiting.clear();
        let now_ns = worker.moment_after(now_ns);
        worker.went_on(now_ns);
        Ok(now_ns)
    }

    /// Sleeps until an I/O is done, or for a time.
    fn reap(
        &mut self,
        worker: &mut Worker,
        now_ns: u64,
        timeout: Option<libc::timespec>,
    ) -> Result<u64, Failure> {
        // A look without a wait is made many times while the task thinks.
        let sleeps = timeout.is_none_or(|time| time.tv_sec > 0 || time.tv_nsec > 0);
        let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
        let mut delay_ns = if sleeps { worker.run_delay_ns() } else { 0 };
        // SAFETY: all pointers are valid for the call.
        let result = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                1_i64,
                self.depth,
                self.events.as_mut_ptr(),
                timeout,
            )
        };
        let count = checked("waiting for I/O", result as libc::c_int)? as usize;
        let now_ns = if count == 0 { clock::now_ns() } else { worker.moment_after(now_ns) };
        let told_ns =
            if sleeps && count > 0 { worker.without_delay(now_ns, &mut delay_ns) } else { now_ns };
        for event in &self.events[..count] {
            let slot = event.data as usize;
            let io = self.ios[slot];
            worker.target.expect(event.result, io.direction, io.offset, io.bytes)?;
            worker.replayed(io.replayed, told_ns);
            worker.finished(io.direction, io.bytes, io.start_ns, now_ns);
            self.free.push(slot);
        }
        Ok(now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_the_kernels() {
        assert_eq!((size_of::<ControlBlock>(), size_of::<IoEvent>()), (64, 32));
    }
}
