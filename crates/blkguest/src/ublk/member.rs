//! One served disk: its model, the driver's command descriptors, its data.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, RawFd};
use std::ptr;
use std::slice;

use blksim::block::request::{Operation, SECTOR_BYTES};
use blksim::devices::AnyDevice;
use blksim::devices::device::{Command, Device};

use super::abi::{self, IoDescriptor};
use super::store::Store;
use crate::failure::Failure;
use crate::served_model::ServedModel;
use crate::shared_memory::SharedMemory;

/// The server side of a disk.
pub struct Member {
    pub model: ServedModel,
    store: Option<Store>,
    file: File,
    pub depth: u16,
    /// Command descriptors written by the driver, by tag.
    descriptors: *const IoDescriptor,
    /// Data buffers: `buffer_bytes` for each tag, or one shared by all tags if contents are not kept.
    buffers: *mut u8,
    buffer_bytes: usize,
    /// By tag: whether the kernel commits the command by itself.
    self_answered: Vec<bool>,
}

impl Member {
    /// Opens the server side of the disk with this number.
    pub fn open(
        number: u32,
        device: AnyDevice,
        buffer_bytes: u32,
        keeps_contents: bool,
        shared: SharedMemory,
    ) -> Result<Self, Failure> {
        let depth = device.facts().queue_depth as u16;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(format!("/dev/ublkc{number}"))
            .map_err(|error| Failure::kernel("opening the disk's server side", error))?;
        let bytes = (usize::from(depth) * size_of::<IoDescriptor>()).next_multiple_of(4096);
        let pieces = if keeps_contents { usize::from(depth) } else { 1 };
        let buffer_bytes = buffer_bytes as usize;
        Ok(Self {
            model: ServedModel::new(number, device, shared),
            store: keeps_contents.then(Store::default),
            descriptors: map(bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd())?.cast(),
            buffers: map(
                buffer_bytes * pieces,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
            )?,
            file,
            depth,
            buffer_bytes,
            self_answered: vec![false; usize::from(depth)],
        })
    }

    pub fn descriptor_of_file(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Submits an arrived command to the model and copies its data.
    pub fn take(&mut self, tag: u16, now_ns: u64) -> Result<(), Failure> {
        self.transfer(tag);
        let command = self.describe(tag)?;
        self.model.take(now_ns, command);
        Ok(())
    }

    /// Whether the kernel commits this tag's command by itself.
    pub fn is_self_answered(&self, tag: u16) -> bool {
        self.self_answered[usize::from(tag)]
    }

    pub fn set_self_answered(&mut self, tag: u16, will: bool) {
        self.self_answered[usize::from(tag)] = will;
    }

    fn descriptor(&self, tag: u16) -> IoDescriptor {
        debug_assert!(tag < self.depth);
        // SAFETY: the driver maps a descriptor for each tag, and has filled in this one.
        unsafe { self.descriptors.add(usize::from(tag)).read_volatile() }
    }

    /// The data buffer of a tag.
    pub fn buffer(&self, tag: u16) -> *mut u8 {
        let piece = if self.store.is_some() { usize::from(tag) } else { 0 };
        // SAFETY: each tag has a buffer where contents are kept.
        unsafe { self.buffers.add(piece * self.buffer_bytes) }
    }

    /// Builds the model's command for a tag.
    fn describe(&self, tag: u16) -> Result<Command, Failure> {
        let descriptor = self.descriptor(tag);
        let operation = match descriptor.operation() {
            abi::IO_OP_READ => Operation::Read,
            abi::IO_OP_WRITE => Operation::Write,
            abi::IO_OP_FLUSH => Operation::Flush,
            abi::IO_OP_DISCARD => Operation::Discard,
            other => {
                let message =
                    format!("the driver sent the operation {other}, which was not offered");
                return Err(Failure::Internal { message });
            }
        };
        let (sector, nr_sectors) = match operation {
            Operation::Flush => (0, 0),
            _ => (descriptor.start_sector, descriptor.nr_sectors),
        };
        // The server has one queue.
        Ok(Command { id: u32::from(tag), operation, sector, nr_sectors, queue: 0 })
    }

    /// The clock when the driver got a command, from a kernel in which computing takes time.
    pub fn issued_ns(&self, tag: u16) -> u64 {
        self.descriptor(tag).addr
    }

    /// Copies the data of a command, where contents are kept.
    pub fn transfer(&mut self, tag: u16) {
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

    /// Result of a command: the bytes transferred.
    pub fn moved_bytes(&self, tag: u16) -> u32 {
        let descriptor = self.descriptor(tag);
        match descriptor.operation() {
            abi::IO_OP_READ | abi::IO_OP_WRITE => descriptor.nr_sectors * SECTOR_BYTES as u32,
            _ => 0,
        }
    }
}

fn map(bytes: usize, protection: i32, flags: i32, file: i32) -> Result<*mut u8, Failure> {
    // SAFETY: a new mapping at an address of the kernel's choice.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, file, 0) };
    if start == libc::MAP_FAILED {
        return Err(Failure::last("mapping memory of the disk"));
    }
    Ok(start.cast())
}
