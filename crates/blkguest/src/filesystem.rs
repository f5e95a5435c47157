//! A file system on the disk or disks, with one file for each file of the layout, and a command's files.
//!
//! It is made before the device model's latencies apply. The layout's files are written with zeroes, which the
//! disk stores without memory; a file that was only allocated would be read without I/O.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use blksim::workload::layout::File;

use crate::array::Array;
use crate::disk::Disk;
use crate::failure::{Failure, checked};
use crate::mounts::{DATA, mount, unmount};
use crate::program;
use crate::request::FilesystemKind;

/// Fixed in place of a random identifier.
const IDENTITY: &str = "b1b1ab00-0000-4000-8000-000000000001";
/// Bytes per write when files are laid out.
const WRITE_BYTES: usize = 1 << 20;

/// Page-aligned zeroes, as direct writes need.
#[repr(align(4096))]
struct Zeroes([u8; WRITE_BYTES]);

static ZEROES: Zeroes = Zeroes([0; WRITE_BYTES]);

/// A mounted file system on the modelled disks.
#[derive(Debug)]
pub struct Filesystem {
    source: String,
    name: &'static str,
    options: String,
}

impl Filesystem {
    /// Makes and mounts it.
    ///
    /// btrfs takes the members of an array; every other file system takes the assembled disk.
    pub fn create(
        kind: FilesystemKind,
        array: Option<&Array>,
        members: &[Disk],
        disk: &Disk,
    ) -> Result<Self, Failure> {
        let source = disk.path();
        let (name, options) = make(kind, array, members, &source)?;
        mount(&source, DATA, name, &options)?;
        Ok(Self { source, name, options })
    }

    /// Unmounts it and mounts it again: nothing of it is in memory then.
    pub fn mount_again(&self) -> Result<(), Failure> {
        unmount(DATA)?;
        drop_caches()?;
        mount(&self.source, DATA, self.name, &self.options)
    }
}

/// Makes a file system; returns its name and the options to mount it with.
fn make(
    kind: FilesystemKind,
    array: Option<&Array>,
    members: &[Disk],
    path: &str,
) -> Result<(&'static str, String), Failure> {
    Ok(match kind {
        FilesystemKind::Ext4 => {
            let extended =
                format!("nodiscard,lazy_itable_init=1,lazy_journal_init=1,hash_seed={IDENTITY}");
            program::run("mkfs.ext4", &["-q", "-F", "-U", IDENTITY, "-E", &extended, path])?;
            // Otherwise the kernel does this in the background for minutes.
            ("ext4", "noinit_itable".to_owned())
        }
        FilesystemKind::Xfs => {
            let identity = format!("uuid={IDENTITY}");
            program::run("mkfs.xfs", &["-q", "-f", "-K", "-m", &identity, path])?;
            ("xfs", String::new())
        }
        FilesystemKind::Btrfs => {
            let paths: Vec<String> = members.iter().map(Disk::path).collect();
            let mut arguments = vec!["-q", "-f", "-K", "-U", IDENTITY];
            if let Some(array) = array {
                let profile = array.btrfs_profile();
                arguments.extend(["-d", profile, "-m", profile]);
            }
            arguments.extend(paths.iter().map(String::as_str));
            program::run("mkfs.btrfs", &arguments)?;
            // The kernel does not know the other members yet.
            let others: Vec<_> = paths[1..].iter().map(|path| format!("device={path}")).collect();
            ("btrfs", others.join(","))
        }
    })
}

/// Writes the layout's files; none of them is in memory then.
pub fn lay_out(files: &[File]) -> Result<(), Failure> {
    for (index, file) in files.iter().enumerate() {
        write(&file_path(index), file.bytes)?;
    }
    drop_caches()
}

fn drop_caches() -> Result<(), Failure> {
    // SAFETY: a plain call.
    unsafe { libc::sync() };
    fs::write("/proc/sys/vm/drop_caches", "3")
        .map_err(|error| Failure::kernel("emptying the page cache", error))
}

/// Path of the layout's file with this number.
pub fn file_path(index: usize) -> String {
    format!("{DATA}/file-{index}")
}

fn write(path: &str, bytes: u64) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::Io {
        message: format!("laying out {path} of {bytes} bytes: {error}"),
    };
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .custom_flags(libc::O_DIRECT)
        .open(path)
        .map_err(failed)?;
    // SAFETY: plain calls with a descriptor, numbers and a static.
    unsafe {
        // Contiguous, as far as the file system allows.
        checked("allocating a file", libc::fallocate(file.as_raw_fd(), 0, 0, bytes as libc::off_t))
            .map_err(|_| failed(io::Error::last_os_error()))?;
        let mut done = 0_u64;
        while done < bytes {
            // Whole pages; the last one is truncated again.
            let piece = (bytes - done).min(WRITE_BYTES as u64).next_multiple_of(4096) as usize;
            let start = ZEROES.0.as_ptr().cast();
            let written = libc::pwrite(file.as_raw_fd(), start, piece, done as libc::off_t);
            if written <= 0 {
                return Err(failed(io::Error::last_os_error()));
            }
            done += written as u64;
        }
    }
    file.set_len(bytes).map_err(failed)
}
