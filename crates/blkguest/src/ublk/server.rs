//! Serves the disk: commands come from the driver, go through the device model,
//! and are answered at the moment that the model says.
//!
//! A server that polled would stop the guest's clock, so that it only ever
//! sleeps: for a command, or for the moment of the model's next event.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::ptr;
use std::slice;
use std::sync::atomic::Ordering::SeqCst;

use blksim::device::{Command, Device, Runner};
use blksim::devices::AnyDevice;
use blksim::request::{Operation, SECTOR_BYTES};
use io_uring::{IoUring, cqueue, opcode, squeue, types};

use super::abi::{self, IoDescriptor};
use super::store::Store;
use crate::board::{Shared, wake};
use crate::clock;
use crate::failure::Failure;

/// Marks a completion as that of a timer; others carry a tag.
const TIMER: u64 = 1 << 63;

/// The server of a disk.
pub struct Server {
    runner: Runner<AnyDevice>,
    store: Option<Store>,
    shared: Shared,
    virtual_time: bool,
    file: File,
    ring: IoUring<squeue::Entry, cqueue::Entry>,
    depth: u16,
    /// Commands as the driver wrote them, by tag.
    descriptors: *const IoDescriptor,
    /// Memory for data: a piece of `buffer_bytes` for each tag, or the same one for all where
    /// contents are not kept.
    buffers: *mut u8,
    buffer_bytes: usize,
    /// Moments for which a timer is set. Each is that of an event of the model, and
    /// those are never taken back, so that no timer is ever cancelled.
    timers: BTreeSet<u64>,
    /// The newest timer's moment, for the kernel to copy on the next submission.
    timer: Box<types::Timespec>,
    /// The moment that is 0 to the model.
    origin_ns: u64,
    /// The newest moment that is known to have come.
    now_ns: u64,
    in_flight: u32,
    /// Scratch.
    arrived: Vec<u16>,
    done: Vec<(u64, u32)>,
}

impl Server {
    /// Opens the disk's server side and offers to take commands.
    pub fn open(
        device: AnyDevice,
        buffer_bytes: u32,
        keeps_contents: bool,
        virtual_time: bool,
        shared: Shared,
    ) -> Result<Self, Failure> {
        let depth = device.facts().queue_depth as u16;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/ublkc0")
            .map_err(|error| Failure::kernel("opening the disk's server side", error))?;
        let bytes = (usize::from(depth) * size_of::<IoDescriptor>()).next_multiple_of(4096);
        let pieces = if keeps_contents { usize::from(depth) } else { 1 };
        let buffer_bytes = buffer_bytes as usize;
        // A timer, an answer and a fetch for each tag may be on their way at once.
        let entries = (u32::from(depth) * 2 + 8).next_power_of_two();
        let ring = IoUring::builder()
            .build(entries)
            .map_err(|error| Failure::kernel("creating the server's ring", error))?;
        let mut server = Self {
            runner: Runner::new(device),
            store: keeps_contents.then(Store::default),
            shared,
            virtual_time,
            descriptors: map(bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd())?.cast(),
            buffers: map(
                buffer_bytes * pieces,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
            )?,
            file,
            ring,
            depth,
            buffer_bytes,
            timers: BTreeSet::new(),
            timer: Box::default(),
            origin_ns: 0,
            now_ns: 0,
            in_flight: 0,
            arrived: Vec::new(),
            done: Vec::new(),
        };
        for tag in 0..depth {
            server.command(abi::IO_FETCH_REQ, tag, 0)?;
        }
        Ok(server)
    }

    /// Serves until the guest ends.
    pub fn run(mut self) -> Result<(), Failure> {
        if self.virtual_time {
            be_last();
        }
        self.ring.submit().map_err(|error| Failure::kernel("fetching commands", error))?;
        self.shared.server_ready.store(1, SeqCst);
        wake(&self.shared.server_ready);
        loop {
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(error) => return Err(Failure::kernel("waiting for commands", error)),
            }
            let fired_ns = self.take_completions()?;
            if self.shared.modelled.load(SeqCst) == 0 {
                self.answer_at_once()?;
            } else {
                self.pass_through_model(fired_ns)?;
            }
        }
    }

    /// Collects commands that arrived; returns the moment of the last timer that fired.
    fn take_completions(&mut self) -> Result<Option<u64>, Failure> {
        let mut fired_ns = None;
        for entry in self.ring.completion() {
            let (subject, result) = (entry.user_data(), entry.result());
            if subject & TIMER != 0 {
                let moment_ns = subject & !TIMER;
                self.timers.remove(&moment_ns);
                fired_ns = fired_ns.max(Some(moment_ns));
            } else if result == 0 {
                self.arrived.push(subject as u16);
            } else {
                let error = std::io::Error::from_raw_os_error(-result);
                return Err(Failure::kernel("fetching a command", error));
            }
        }
        Ok(fired_ns)
    }

    /// While the experiment is being prepared, the disk takes no time.
    fn answer_at_once(&mut self) -> Result<(), Failure> {
        let mut arrived = std::mem::take(&mut self.arrived);
        for tag in arrived.drain(..) {
            self.transfer(tag);
            self.answer(tag)?;
        }
        self.arrived = arrived;
        Ok(())
    }

    fn pass_through_model(&mut self, fired_ns: Option<u64>) -> Result<(), Failure> {
        if self.origin_ns == 0 {
            self.origin_ns = self.shared.start_ns.load(SeqCst);
        }
        // A timer that fired tells the time; anything else may come at any moment.
        let now_ns = match fired_ns {
            Some(moment_ns) if self.arrived.is_empty() => moment_ns,
            _ => clock::now_ns(),
        };
        self.now_ns = self.now_ns.max(now_ns);
        self.shared.device_now_ns.store(self.now_ns, SeqCst);
        let now_ns = self.now_ns.saturating_sub(self.origin_ns);
        let mut done = std::mem::take(&mut self.done);
        self.runner.advance(now_ns, &mut done);
        for (_, tag) in done.drain(..) {
            self.in_flight -= 1;
            self.answer(tag as u16)?;
        }
        self.done = done;
        let mut arrived = std::mem::take(&mut self.arrived);
        for tag in arrived.drain(..) {
            self.transfer(tag);
            self.in_flight += 1;
            let command = self.describe(tag)?;
            self.runner.submit(now_ns, command);
        }
        self.arrived = arrived;
        let figures = &self.shared.figures;
        figures.peak_in_flight.fetch_max(self.in_flight, SeqCst);
        figures.busy_ns.store(self.runner.device().busy_ns(), SeqCst);
        self.set_timer()
    }

    /// Sets a timer for the model's next event, unless there is an earlier one.
    fn set_timer(&mut self) -> Result<(), Failure> {
        let Some(next_ns) = self.runner.next_ns() else { return Ok(()) };
        let moment_ns = self.origin_ns + next_ns;
        if self.timers.first().is_some_and(|earliest| *earliest <= moment_ns) {
            return Ok(());
        }
        self.timers.insert(moment_ns);
        *self.timer = types::Timespec::new()
            .sec(moment_ns / 1_000_000_000)
            .nsec((moment_ns % 1_000_000_000) as u32);
        let entry = opcode::Timeout::new(&raw const *self.timer)
            .flags(types::TimeoutFlags::ABS)
            .build()
            .user_data(TIMER | moment_ns);
        self.push(&entry)
    }

    fn descriptor(&self, tag: u16) -> IoDescriptor {
        debug_assert!(tag < self.depth);
        // SAFETY: the driver maps a descriptor for each tag, and has filled in this one.
        unsafe { self.descriptors.add(usize::from(tag)).read_volatile() }
    }

    fn buffer(&self, tag: u16) -> *mut u8 {
        let piece = if self.store.is_some() { usize::from(tag) } else { 0 };
        // SAFETY: there is a piece for each tag where contents are kept.
        unsafe { self.buffers.add(piece * self.buffer_bytes) }
    }

    /// The command of a tag, for the model; counts it.
    fn describe(&self, tag: u16) -> Result<Command, Failure> {
        let figures = &self.shared.figures;
        let descriptor = self.descriptor(tag);
        let (operation, counter) = match descriptor.operation() {
            abi::IO_OP_READ => (Operation::Read, &figures.reads),
            abi::IO_OP_WRITE => (Operation::Write, &figures.writes),
            abi::IO_OP_FLUSH => (Operation::Flush, &figures.flushes),
            other => {
                let message =
                    format!("the driver sent the operation {other}, which was not offered");
                return Err(Failure::Internal { message });
            }
        };
        counter.fetch_add(1, SeqCst);
        let (sector, nr_sectors) = match operation {
            Operation::Flush => (0, 0),
            _ => (descriptor.start_sector, descriptor.nr_sectors),
        };
        Ok(Command { id: u32::from(tag), operation, sector, nr_sectors })
    }

    /// Moves the data of a command, where contents are kept.
    fn transfer(&mut self, tag: u16) {
        let descriptor = self.descriptor(tag);
        let buffer = self.buffer(tag);
        let Some(store) = &mut self.store else { return };
        let bytes = descriptor.nr_sectors as usize * SECTOR_BYTES as usize;
        let offset = descriptor.start_sector * SECTOR_BYTES;
        // SAFETY: the buffer holds the largest command and belongs to this tag; the driver does
        // not touch it between the arrival and the answer.
        let data = unsafe { slice::from_raw_parts_mut(buffer, bytes) };
        match descriptor.operation() {
            abi::IO_OP_READ => store.read(offset, data),
            abi::IO_OP_WRITE => store.write(offset, data),
            _ => {}
        }
    }

    /// Answers a command and asks for the next one on its tag.
    fn answer(&mut self, tag: u16) -> Result<(), Failure> {
        let descriptor = self.descriptor(tag);
        let bytes = match descriptor.operation() {
            abi::IO_OP_READ | abi::IO_OP_WRITE => descriptor.nr_sectors * SECTOR_BYTES as u32,
            _ => 0,
        };
        self.command(abi::IO_COMMIT_AND_FETCH_REQ, tag, bytes as i32)
    }

    fn command(&mut self, operation: u32, tag: u16, result: i32) -> Result<(), Failure> {
        let entry = opcode::UringCmd16::new(types::Fd(self.file.as_raw_fd()), operation)
            .cmd(abi::io_command(tag, result, self.buffer(tag) as u64))
            .build()
            .user_data(u64::from(tag));
        self.push(&entry)
    }

    fn push(&mut self, entry: &squeue::Entry) -> Result<(), Failure> {
        // SAFETY: entries point to memory that lives as long as the server.
        unsafe { self.ring.submission().push(entry) }
            .map_err(|_| Failure::Internal { message: "the server's ring is full".to_owned() })
    }
}

/// Lets everybody else run first, so that commands of one moment come together: fewer wake-ups,
/// each of which is dear. No guest time passes meanwhile, and the order stays that of arrival.
fn be_last() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is valid for the call. Without it everything is slower, no more.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
}

fn map(bytes: usize, protection: i32, flags: i32, file: i32) -> Result<*mut u8, Failure> {
    // SAFETY: a new mapping at an address of the kernel's choice.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, file, 0) };
    if start == libc::MAP_FAILED {
        return Err(Failure::last("mapping memory of the disk"));
    }
    Ok(start.cast())
}
