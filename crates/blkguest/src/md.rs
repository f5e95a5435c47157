//! Arrays of the kernel's md driver, without superblocks and marked clean, so that no resync runs.
//!
//! The interface is `include/uapi/linux/raid/md_u.h`, Linux 6.1.

use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::linux::fs::MetadataExt;

use blksim::devices::raid::RaidLevel;

use crate::array::Array;
use crate::disk::Disk;
use crate::failure::{Failure, checked};

/// Writing a name to it creates an array's device (`add_named_array` of `drivers/md/md.c`).
const NEW_ARRAY: &str = "/sys/module/md_mod/parameters/new_array";
const NAME: &str = "md0";

/// `mdu_array_info_t`.
#[repr(C)]
#[derive(Debug, Default)]
struct ArrayInfo {
    major_version: i32,
    minor_version: i32,
    patch_version: i32,
    ctime: u32,
    level: i32,
    size: i32,
    nr_disks: i32,
    raid_disks: i32,
    md_minor: i32,
    not_persistent: i32,
    utime: u32,
    state: i32,
    active_disks: i32,
    working_disks: i32,
    failed_disks: i32,
    spare_disks: i32,
    layout: i32,
    chunk_size: i32,
}

/// `mdu_disk_info_t`.
#[repr(C)]
#[derive(Debug, Default)]
struct DiskInfo {
    number: i32,
    major: i32,
    minor: i32,
    raid_disk: i32,
    state: i32,
}

/// `mdu_param_t`, which the kernel ignores once an array has been described.
#[repr(C)]
#[derive(Debug, Default)]
struct Parameters {
    personality: i32,
    chunk_size: i32,
    max_fault: i32,
}

/// `_IOW(MD_MAJOR, number, T)`.
const fn request<T>(number: u64) -> u64 {
    const MD_MAJOR: u64 = 9;
    1 << 30 | (size_of::<T>() as u64) << 16 | MD_MAJOR << 8 | number
}

const ADD_NEW_DISK: u64 = request::<DiskInfo>(0x21);
const SET_ARRAY_INFO: u64 = request::<ArrayInfo>(0x23);
const RUN_ARRAY: u64 = request::<Parameters>(0x30);

/// `MD_SB_CLEAN` and, for a disk, `MD_DISK_ACTIVE` and `MD_DISK_SYNC`, as bits.
const CLEAN: i32 = 1;
const ACTIVE_AND_IN_SYNC: i32 = 1 << 1 | 1 << 2;

/// Assembles the members in order.
pub fn assemble(array: &Array, members: &[Disk]) -> Result<Disk, Failure> {
    let device = create()?;
    let (level, layout, chunk_bytes) = match array.level {
        RaidLevel::Stripes => (0, 0, array.chunk_bytes),
        RaidLevel::Mirrors => (1, 0, 0),
        // Two copies, near each other.
        RaidLevel::StripedMirrors => (10, 1 << 8 | 2, array.chunk_bytes),
        // Left-symmetric.
        RaidLevel::Parity => (5, 2, array.chunk_bytes),
    };
    let disks = members.len() as i32;
    let info = ArrayInfo {
        minor_version: 90,
        level,
        nr_disks: disks,
        raid_disks: disks,
        not_persistent: 1,
        state: CLEAN,
        active_disks: disks,
        working_disks: disks,
        layout,
        chunk_size: chunk_bytes as i32,
        ..ArrayInfo::default()
    };
    call(&device, "describing the array", SET_ARRAY_INFO, &info)?;
    for (number, member) in members.iter().enumerate() {
        let path = member.path();
        let node = fs::metadata(&path)
            .map_err(|error| Failure::kernel(format!("looking at {path}"), error))?
            .st_rdev();
        let info = DiskInfo {
            number: number as i32,
            major: libc::major(node) as i32,
            minor: libc::minor(node) as i32,
            raid_disk: number as i32,
            state: ACTIVE_AND_IN_SYNC,
        };
        call(&device, "adding a disk to the array", ADD_NEW_DISK, &info)?;
    }
    call(&device, "starting the array", RUN_ARRAY, &Parameters::default())?;
    // md may stop an array whose last user closes it: this descriptor stays open until the guest ends.
    let _ = device.into_raw_fd();
    Ok(Disk { name: NAME.to_owned() })
}

fn create() -> Result<File, Failure> {
    fs::write(NEW_ARRAY, NAME).map_err(|error| Failure::Unsupported {
        field: "raid".to_owned(),
        message: format!(
            "this kernel makes no arrays ({error}): it lacks CONFIG_BLK_DEV_MD; --filesystem btrfs needs none"
        ),
    })?;
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(format!("/dev/{NAME}"))
        .map_err(|error| Failure::kernel("opening the array", error))
}

fn call<T>(device: &File, doing: &str, request: u64, argument: &T) -> Result<(), Failure> {
    // SAFETY: the argument is the structure that the request expects, and outlives the call.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), request, std::ptr::from_ref(argument)) };
    checked(doing, result).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_kernels_numbers() {
        assert_eq!(SET_ARRAY_INFO, 0x4048_0923);
        assert_eq!(ADD_NEW_DISK, 0x4014_0921);
        assert_eq!(RUN_ARRAY, 0x400c_0930);
    }
}
