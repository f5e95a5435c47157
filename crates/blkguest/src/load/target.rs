//! The target of a clone's I/O: a region of the disk, or files on its file system.

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

/// Where a file of the layout is.
#[derive(Debug, Clone)]
pub struct Place {
    pub path: String,
    /// The first byte at that path in the layout's numbering of the device.
    pub start: u64,
}

/// An open file, and the part of it that a clone works on.
#[derive(Debug)]
struct OpenFile {
    file: File,
    place: Place,
    region: Region,
}

/// A clone's open files with a buffer for their data.
#[derive(Debug)]
pub struct Target {
    first: OpenFile,
    further: Vec<OpenFile>,
    buffer: Buffer,
    /// Whether each write has other data, which takes time.
    renews: bool,
}

impl OpenFile {
    fn open(place: Place, region: Region, job: &Job) -> Result<Self, Failure> {
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
        let path = &place.path;
        let text = CString::new(path.as_str())
            .map_err(|_| Failure::Internal { message: format!("{path:?} has a NUL") })?;
        // SAFETY: the path is a string that outlives the call.
        let descriptor =
            checked(&format!("opening {path}"), unsafe { libc::open(text.as_ptr(), flags) })?;
        // SAFETY: the descriptor is fresh and nobody else's.
        let file = unsafe { File::from_raw_fd(descriptor) };
        let opened = Self { file, place, region };
        if !job.direct {
            opened.advise(match job.advice {
                Advice::None => libc::POSIX_FADV_NORMAL,
                Advice::Sequential => libc::POSIX_FADV_SEQUENTIAL,
                Advice::Random => libc::POSIX_FADV_RANDOM,
            });
        }
        Ok(opened)
    }

    fn advise(&self, advice: libc::c_int) {
        let (start, bytes) = (self.offset(self.region.start), self.region.bytes as libc::off_t);
        // SAFETY: a plain call; ignored advice has no effect to report.
        unsafe { libc::posix_fadvise(self.descriptor(), start, bytes, advice) };
    }

    fn read_ahead(&self) -> Result<(), Failure> {
        let mut done = 0;
        while done < self.region.bytes {
            let bytes = (self.region.bytes - done).min(1 << 20) as usize;
            let offset = self.offset(self.region.start + done);
            // SAFETY: readahead takes numbers only.
            let result = unsafe { libc::readahead(self.descriptor(), offset, bytes) };
            checked(&format!("reading {} ahead", self.place.path), result as libc::c_int)?;
            done += bytes as u64;
        }
        Ok(())
    }

    fn descriptor(&self) -> libc::c_int {
        self.file.as_raw_fd()
    }

    fn offset(&self, byte: u64) -> libc::off_t {
        (byte - self.place.start) as libc::off_t
    }

    fn holds(&self, byte: u64) -> bool {
        (self.region.start..self.region.start + self.region.bytes).contains(&byte)
    }
}

impl Target {
    /// Opens the files of a clone's regions, each at its place. `renews` has each write get other data.
    pub fn open(
        places: &[Place],
        regions: &[Region],
        job: &Job,
        buffer: Buffer,
        renews: bool,
    ) -> Result<Self, Failure> {
        let open = |(place, region): (&Place, &Region)| OpenFile::open(place.clone(), *region, job);
        let mut files = places.iter().zip(regions).map(open);
        let first = files.next().unwrap_or_else(|| {
            Err(Failure::Internal { message: format!("job {} has no file", job.name) })
        })?;
        Ok(Self { first, further: files.collect::<Result<_, _>>()?, buffer, renews })
    }

    /// Drops the regions from the page cache.
    pub fn invalidate(&self) {
        self.files().for_each(|file| file.advise(libc::POSIX_FADV_DONTNEED));
    }

    /// Reads the regions into the page cache.
    pub fn pre_read(&self) -> Result<(), Failure> {
        self.files().try_for_each(OpenFile::read_ahead)
    }

    fn files(&self) -> impl Iterator<Item = &OpenFile> {
        std::iter::once(&self.first).chain(&self.further)
    }

    /// The file in which a byte of the layout lies.
    #[inline]
    fn file(&self, byte: u64) -> &OpenFile {
        self.further.iter().find(|file| file.holds(byte)).unwrap_or(&self.first)
    }

    /// Descriptor and offset of a byte of the layout.
    #[inline]
    pub fn locate(&self, byte: u64) -> (libc::c_int, libc::off_t) {
        let file = self.file(byte);
        (file.descriptor(), file.offset(byte))
    }

    /// The memory of an I/O, with the data that it writes.
    pub fn buffer(&self, direction: Direction, bytes: u32, memory: Memory) -> *mut u8 {
        if self.renews && direction == Direction::Write {
            self.buffer.of_new_data(bytes as usize, memory)
        } else {
            self.buffer.of_io(bytes as usize, memory)
        }
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
            Direction::Sync => return self.sync(byte, true),
            _ => {}
        }
        let (descriptor, offset) = self.locate(byte);
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
        let (descriptor, offset) = self.locate(byte);
        let range = [offset as u64, u64::from(bytes)];
        // SAFETY: the range outlives the call.
        let result = unsafe { libc::ioctl(descriptor, BLKDISCARD, range.as_ptr()) };
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
        let (name, file) = (direction.name(), self.file(byte));
        let (offset, path) = (file.offset(byte), &file.place.path);
        Err(Failure::Io {
            message: format!("{name} of {bytes} bytes at {offset} of {path}: {what}"),
        })
    }

    /// fsync or fdatasync of the file in which a byte of the layout lies.
    pub fn sync(&self, byte: u64, data_only: bool) -> Result<(), Failure> {
        let file = self.file(byte);
        // SAFETY: plain calls with a descriptor.
        let result = unsafe {
            if data_only {
                libc::fdatasync(file.descriptor())
            } else {
                libc::fsync(file.descriptor())
            }
        };
        if result < 0 {
            let error = std::io::Error::last_os_error();
            return Err(Failure::Io { message: format!("sync of {}: {error}", file.place.path) });
        }
        Ok(())
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}
