//! The target of a clone's I/O: a region of the disk, or a file on its file system.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};

use blksim::core::record::Direction;
use blksim::workload::Job;
use blksim::workload::job::Advice;
use blksim::workload::layout::Region;
use blksim::workload::replay::Memory;

use super::buffer::Buffer;
use crate::failure::{Failure, checked};

/// `BLKDISCARD` (`_IO(0x12, 119)`, `include/uapi/linux/fs.h`).
const BLKDISCARD: libc::c_ulong = 0x1277;

/// How a recorded I/O is done.
#[derive(Debug, Clone, Copy, Default)]
pub struct Manner {
    /// A write that ends once it is on the medium.
    pub durable: bool,
    pub memory: Memory,
}

/// An open file with a buffer for its data.
#[derive(Debug)]
pub struct Target {
    file: File,
    path: String,
    /// The file's first byte in the layout's numbering of the device.
    start: u64,
    region: Region,
    buffer: Buffer,
    /// Whether each write has other data, which takes time.
    renews: bool,
}

impl Target {
    /// Opens `path`, whose first byte is byte `start` of the layout. `renews` has each write get other data.
    pub fn open(
        path: &str,
        start: u64,
        region: Region,
        job: &Job,
        buffer: Buffer,
        renews: bool,
    ) -> Result<Self, Failure> {
        let mut flags = libc::O_CLOEXEC;
        flags |= match (job.mode.reads, job.mode.writes) {
            (true, false) => libc::O_RDONLY,
            (false, _) => libc::O_WRONLY,
            (true, true) => libc::O_RDWR,
        };
        if job.direct {
            flags |= libc::O_DIRECT;
        }
        if job.sync {
            let data_only = job.options.get("sync").is_some_and(|text| text == "dsync");
            flags |= if data_only { libc::O_DSYNC } else { libc::O_SYNC };
        }
        let text = CString::new(path)
            .map_err(|_| Failure::Internal { message: format!("{path:?} has a NUL") })?;
        // SAFETY: the path is a string that outlives the call.
        let descriptor =
            checked(&format!("opening {path}"), unsafe { libc::open(text.as_ptr(), flags) })?;
        // SAFETY: the descriptor is fresh and nobody else's.
        let file = unsafe { File::from_raw_fd(descriptor) };
        let target = Self { file, path: path.to_owned(), start, region, buffer, renews };
        if !job.direct {
            target.advise(match job.advice {
                Advice::None => libc::POSIX_FADV_NORMAL,
                Advice::Sequential => libc::POSIX_FADV_SEQUENTIAL,
                Advice::Random => libc::POSIX_FADV_RANDOM,
            });
        }
        Ok(target)
    }

    fn advise(&self, advice: libc::c_int) {
        let (start, bytes) = (self.offset(self.region.start), self.region.bytes as libc::off_t);
        // SAFETY: a plain call; ignored advice has no effect to report.
        unsafe { libc::posix_fadvise(self.descriptor(), start, bytes, advice) };
    }

    /// Drops the region from the page cache.
    pub fn invalidate(&self) {
        self.advise(libc::POSIX_FADV_DONTNEED);
    }

    /// Reads the region into the page cache.
    pub fn pre_read(&self) -> Result<(), Failure> {
        let mut done = 0;
        while done < self.region.bytes {
            let bytes = (self.region.bytes - done).min(1 << 20) as usize;
            let offset = self.offset(self.region.start + done);
            // SAFETY: readahead takes numbers only.
            let result = unsafe { libc::readahead(self.descriptor(), offset, bytes) };
            checked(&format!("reading {} ahead", self.path), result as libc::c_int)?;
            done += bytes as u64;
        }
        Ok(())
    }

    pub fn descriptor(&self) -> libc::c_int {
        self.file.as_raw_fd()
    }

    /// The memory of an I/O, with the data that it writes.
    pub fn buffer(&self, direction: Direction, bytes: u32, memory: Memory) -> *mut u8 {
        if self.renews && direction == Direction::Write {
            self.buffer.of_new_data(bytes as usize, memory)
        } else {
            self.buffer.of_io(bytes as usize, memory)
        }
    }

    /// Offset in the file of a byte of the layout.
    pub fn offset(&self, byte: u64) -> libc::off_t {
        (byte - self.start) as libc::off_t
    }

    /// Reads or writes at a byte of the layout, flushes or discards.
    pub fn transfer(
        &self,
        direction: Direction,
        byte: u64,
        bytes: u32,
        manner: Manner,
    ) -> Result<(), Failure> {
        match direction {
            Direction::Trim => return self.trim(byte, bytes),
            Direction::Sync => return self.sync(true),
            _ => {}
        }
        let (descriptor, offset) = (self.descriptor(), self.offset(byte));
        let buffer = self.buffer(direction, bytes, manner.memory).cast();
        let data = libc::iovec { iov_base: buffer, iov_len: bytes as usize };
        // SAFETY: the buffer holds any of the job's I/Os.
        let result = unsafe {
            match direction {
                Direction::Read => libc::pread(descriptor, buffer, bytes as usize, offset),
                _ if manner.durable => {
                    libc::pwritev2(descriptor, &raw const data, 1, offset, libc::RWF_DSYNC)
                }
                _ => libc::pwrite(descriptor, buffer, bytes as usize, offset),
            }
        };
        let result = if result < 0 { -i64::from(errno()) } else { result as i64 };
        self.expect(result, direction, byte, bytes)
    }

    /// Discards a range, as fio does: only block devices have this call.
    fn trim(&self, byte: u64, bytes: u32) -> Result<(), Failure> {
        let range = [self.offset(byte) as u64, u64::from(bytes)];
        // SAFETY: the range outlives the call.
        let result = unsafe { libc::ioctl(self.descriptor(), BLKDISCARD, range.as_ptr()) };
        let result = if result < 0 { -i64::from(errno()) } else { i64::from(bytes) };
        self.expect(result, Direction::Trim, byte, bytes)
    }

    /// Checks the result of a transfer: a count, or a negative errno.
    pub fn expect(
        &self,
        result: i64,
        direction: Direction,
        byte: u64,
        bytes: u32,
    ) -> Result<(), Failure> {
        if result == i64::from(bytes) {
            return Ok(());
        }
        let what = match result {
            0.. => format!("moved {result} of {bytes} bytes"),
            error => std::io::Error::from_raw_os_error(-error as i32).to_string(),
        };
        let (name, offset) = (direction.name(), self.offset(byte));
        Err(Failure::Io {
            message: format!("{name} of {bytes} bytes at {offset} of {}: {what}", self.path),
        })
    }

    /// fsync or fdatasync.
    pub fn sync(&self, data_only: bool) -> Result<(), Failure> {
        // SAFETY: plain calls with a descriptor.
        let result = unsafe {
            if data_only {
                libc::fdatasync(self.descriptor())
            } else {
                libc::fsync(self.descriptor())
            }
        };
        if result < 0 {
            let error = std::io::Error::last_os_error();
            return Err(Failure::Io { message: format!("sync of {}: {error}", self.path) });
        }
        Ok(())
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}
