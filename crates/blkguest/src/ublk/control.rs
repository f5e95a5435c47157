//! Creates the disk and starts its server.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;

use blksim::error::ErrorKind;
use blksim::request::SECTOR_BYTES;
use io_uring::{IoUring, cqueue, opcode, squeue, types};

use super::abi::{self, ControlCommand, DeviceInfo, Params};
use super::server::Server;
use crate::board::Shared;
use crate::failure::Failure;
use crate::process;
use crate::request::{Request, TimeKind};

/// The number of the one disk.
const DEVICE: u32 = 0;

/// A disk of the guest kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Its name under `/sys/block` and `/dev`.
    pub name: String,
}

impl Disk {
    pub fn path(&self) -> String {
        format!("/dev/{}", self.name)
    }

    pub fn queue(&self, attribute: &str) -> String {
        format!("/sys/block/{}/queue/{attribute}", self.name)
    }
}

/// The ring of control commands. Each is answered before the next is given.
struct Control {
    file: File,
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
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
        Ok(Self { file, ring })
    }

    fn call(
        &mut self,
        doing: &str,
        operation: u32,
        command: ControlCommand,
    ) -> Result<(), Failure> {
        let command = ControlCommand { dev_id: DEVICE, queue_id: u16::MAX, ..command };
        let entry = opcode::UringCmd80::new(types::Fd(self.file.as_raw_fd()), operation)
            .cmd(command.bytes())
            .build();
        // SAFETY: what the command points to outlives this call, which waits for the answer.
        unsafe { self.ring.submission().push(&entry) }
            .map_err(|error| Failure::kernel(doing, error))?;
        self.ring.submit_and_wait(1).map_err(|error| Failure::kernel(doing, error))?;
        let result = self.ring.completion().next().map_or(-libc::EIO, |answer| answer.result());
        if result < 0 {
            return Err(Failure::kernel(doing, std::io::Error::from_raw_os_error(-result)));
        }
        Ok(())
    }
}

/// Creates the disk that a request describes and a process that serves it.
pub fn start(request: &Request, shared: Shared) -> Result<Disk, Failure> {
    let facts = &request.facts;
    if facts.queue_depth > abi::MAX_QUEUE_DEPTH {
        let (depth, most) = (facts.queue_depth, abi::MAX_QUEUE_DEPTH);
        let message = format!("a ublk disk takes {most} commands at once at most, not {depth}");
        return Err(Failure::of(ErrorKind::OutOfRange, "depth", message));
    }
    let mut control = Control::open()?;
    let max_bytes = facts.max_hw_sectors_kb / 4 * 4 * 1024;
    let mut info = DeviceInfo {
        nr_hw_queues: 1,
        queue_depth: facts.queue_depth as u16,
        max_io_buf_bytes: max_bytes,
        dev_id: DEVICE,
        ..DeviceInfo::default()
    };
    let addressed = |len: usize, addr: u64| ControlCommand {
        len: len as u16,
        addr,
        ..ControlCommand::default()
    };
    let address = (&raw mut info) as u64;
    control.call(
        "adding the disk",
        abi::CMD_ADD_DEV,
        addressed(size_of::<DeviceInfo>(), address),
    )?;
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
    let address = (&raw mut params) as u64;
    control.call(
        "describing the disk",
        abi::CMD_SET_PARAMS,
        addressed(size_of::<Params>(), address),
    )?;

    let device = request.setup.profile.build(request.setup.seed)?;
    let virtual_time = request.options.time == TimeKind::Virtual;
    let store = request.options.filesystem.is_some();
    let server = process::spawn("the server of the disk", shared, move || {
        Server::open(device, max_bytes, store, virtual_time, shared)?.run()
    })?;
    Shared::wait_for(&shared.server_ready, 1, || process::look(shared))?;
    let started = ControlCommand { data: [server as u64, 0], ..ControlCommand::default() };
    control.call("starting the disk", abi::CMD_START_DEV, started)?;
    Ok(Disk { name: format!("ublkb{DEVICE}") })
}
