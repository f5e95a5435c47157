//! Creates the disks and starts their server.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;

use blksim::block::request::{MAX_DISCARD_SECTORS, SECTOR_BYTES};
use blksim::core::error::ErrorKind;
use blksim::devices::device::Facts;
use io_uring::{IoUring, cqueue, opcode, squeue, types};

use super::abi::{self, ControlCommand, DeviceInfo, Numbers, Params};
use super::member::Member;
use super::ring::Ring;
use super::server::Server;
use crate::disk::Disk;
use crate::failure::Failure;
use crate::process;
use crate::request::{Request, TimeKind};
use crate::server_turn::ServerTurn;
use crate::shared_memory::SharedMemory;
use crate::transport::{DeviceClock, Served, Transport};

/// The ring of control commands, one at a time.
struct Control {
    file: File,
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
    numbers: Numbers,
}

impl Control {
    fn open() -> Result<Self, Failure> {
        let unsupported = |error: std::io::Error| Failure::Unsupported {
            field: "driver".to_owned(),
            message: format!(
                "this kernel has no ublk ({error}); it needs Linux 6.0 with CONFIG_BLK_DEV_UBLK and \
                 CONFIG_IO_URING, or a fixed latency on the driver null_blk"
            ),
        };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/ublk-control")
            .map_err(unsupported)?;
        let ring = IoUring::builder().build(4).map_err(unsupported)?;
        Ok(Self { file, ring, numbers: Numbers::Bare })
    }

    fn call(
        &mut self,
        doing: &str,
        number: u32,
        operation: u32,
        command: ControlCommand,
    ) -> Result<(), Failure> {
        let command = ControlCommand { dev_id: number, queue_id: u16::MAX, ..command };
        let mut result = self.give(doing, operation, &command)?;
        if result == -libc::EOPNOTSUPP && self.numbers == Numbers::Bare {
            self.numbers = Numbers::Ioctl;
            result = self.give(doing, operation, &command)?;
        }
        if result < 0 {
            return Err(Failure::kernel(doing, std::io::Error::from_raw_os_error(-result)));
        }
        Ok(())
    }

    /// Submits a command and waits for its result.
    fn give(
        &mut self,
        doing: &str,
        operation: u32,
        command: &ControlCommand,
    ) -> Result<i32, Failure> {
        let number = self.numbers.control(operation);
        let entry = opcode::UringCmd80::new(types::Fd(self.file.as_raw_fd()), number)
            .cmd(command.bytes())
            .build();
        // SAFETY: what the command points to outlives this call, which waits for the answer.
        unsafe { self.ring.submission().push(&entry) }
            .map_err(|error| Failure::kernel(doing, error))?;
        self.ring.submit_and_wait(1).map_err(|error| Failure::kernel(doing, error))?;
        Ok(self.ring.completion().next().map_or(-libc::EIO, |answer| answer.result()))
    }

    /// Adds the disk with this number and sets its parameters. It offers discards if a job trims.
    fn add(
        &mut self,
        number: u32,
        facts: &Facts,
        max_bytes: u32,
        discards: bool,
    ) -> Result<(), Failure> {
        let mut info = DeviceInfo {
            nr_hw_queues: 1,
            queue_depth: facts.queue_depth as u16,
            max_io_buf_bytes: max_bytes,
            dev_id: number,
            ..DeviceInfo::default()
        };
        let addressed = |len: usize, addr: u64| ControlCommand {
            len: len as u16,
            addr,
            ..ControlCommand::default()
        };
        let command = addressed(size_of::<DeviceInfo>(), (&raw mut info) as u64);
        self.call("adding the disk", number, abi::CMD_ADD_DEV, command)?;
        let mut attrs = 0;
        if facts.rotational {
            attrs |= abi::ATTR_ROTATIONAL;
        }
        if facts.volatile_cache {
            attrs |= abi::ATTR_VOLATILE_CACHE;
        }
        let mut params = Params {
            len: size_of::<Params>() as u32,
            types: abi::PARAM_TYPE_BASIC,
            attrs,
            logical_bs_shift: 9,
            physical_bs_shift: 9,
            io_min_shift: 9,
            max_sectors: max_bytes / SECTOR_BYTES as u32,
            dev_sectors: facts.capacity_bytes / SECTOR_BYTES,
            ..Params::default()
        };
        if discards {
            params.types |= abi::PARAM_TYPE_DISCARD;
            params.discard_granularity = SECTOR_BYTES as u32;
            params.max_discard_sectors = MAX_DISCARD_SECTORS;
            params.max_discard_segments = 1;
        }
        let command = addressed(size_of::<Params>(), (&raw mut params) as u64);
        self.call("describing the disk", number, abi::CMD_SET_PARAMS, command)
    }
}

/// Disks over ublk.
#[derive(Debug)]
pub struct Ublk;

impl Transport for Ublk {
    fn start(&self, request: &Request, shared: SharedMemory) -> Result<Served, Failure> {
        let (disks, ring) = start(request, shared)?;
        let clock: &'static dyn DeviceClock = Box::leak(Box::new(ring));
        Ok(Served { disks, clock: Some(clock), least_start_ns: 0 })
    }
}

/// Creates the disks of a request and the process that serves them; returns its ring too.
fn start(request: &Request, shared: SharedMemory) -> Result<(Vec<Disk>, Ring), Failure> {
    let facts = &request.facts;
    if facts.queue_depth > abi::MAX_QUEUE_DEPTH {
        let (depth, most) = (facts.queue_depth, abi::MAX_QUEUE_DEPTH);
        let message = format!("a ublk disk takes {most} commands at once at most, not {depth}");
        return Err(Failure::of(ErrorKind::OutOfRange, "depth", message));
    }
    let numbers = 0..request.nr_disks();
    let max_bytes = facts.max_hw_sectors_kb / 4 * 4 * 1024;
    let store = request.options.filesystem.is_some();
    // First: a system call between adding the disks and making the server would let kernel threads
    // run in between, and change the order of server and clones that wake at the same time.
    let ring = Ring::open(request.nr_disks() * facts.queue_depth)?;
    let mut control = Control::open()?;
    let mut devices = Vec::new();
    for number in numbers.clone() {
        let discards = request.jobs.iter().any(|job| job.mode.trims);
        control.add(number, facts, max_bytes, discards)?;
        devices.push(request.setup.profile.build_member(request.setup.seed, number as usize)?);
    }
    let virtual_time = request.options.time == TimeKind::Virtual;
    let opcodes = control.numbers;
    let turn = ServerTurn::of(request);
    let server = process::spawn("the server of the disks", shared, move || {
        let members = devices.into_iter().enumerate();
        let members = members
            .map(|(number, device)| Member::open(number as u32, device, max_bytes, store, shared))
            .collect::<Result<Vec<_>, _>>()?;
        // SAFETY: this is the only server.
        unsafe { Server::open(members, virtual_time, opcodes, ring, turn, shared) }?.run()
    })?;
    shared.wait_for(&shared.server_ready, 1, || process::look(shared))?;
    for number in numbers.clone() {
        let started = ControlCommand { data: [server as u64, 0], ..ControlCommand::default() };
        control.call("starting the disk", number, abi::CMD_START_DEV, started)?;
    }
    let disks = numbers.map(|number| Disk { name: format!("ublkb{number}") }).collect();
    Ok((disks, ring))
}
