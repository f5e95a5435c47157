//! The guest's file systems, and powering it off.

use std::ffi::CString;
use std::fs;
use std::io;
use std::ptr;

use crate::failure::{Failure, checked};

/// Mount point of the control groups.
pub const CGROUPS: &str = "/sys/fs/cgroup";
/// Mount point of configfs.
pub const CONFIGFS: &str = "/sys/kernel/config";
/// Mount point of debugfs.
pub const DEBUGFS: &str = "/sys/kernel/debug";
/// A tmpfs for files that the guest's processes exchange.
pub const RUN: &str = "/run";
/// Mount point of the file system on the modelled disk.
pub const DATA: &str = "/mnt";

/// Mounts what every run needs. Top-level mount points exist already.
pub fn mount_basics() -> Result<(), Failure> {
    mount("proc", "/proc", "proc", "")?;
    mount("sysfs", "/sys", "sysfs", "")?;
    mount("devtmpfs", "/dev", "devtmpfs", "")?;
    mount("tmpfs", RUN, "tmpfs", "")?;
    // Without it some facts are unknown.
    mount("debugfs", DEBUGFS, "debugfs", "").or_else(|failure| match failure {
        Failure::Unsupported { .. } => Ok(()),
        other => Err(other),
    })
}

/// Mounts one file system.
pub fn mount(source: &str, target: &str, kind: &str, options: &str) -> Result<(), Failure> {
    let text = |text: &str| {
        CString::new(text).map_err(|_| Failure::Internal { message: format!("{text:?} has a NUL") })
    };
    let (source, path, name, data) = (text(source)?, text(target)?, text(kind)?, text(options)?);
    // SAFETY: all pointers are to strings that outlive the call.
    let result = unsafe {
        libc::mount(source.as_ptr(), path.as_ptr(), name.as_ptr(), 0, data.as_ptr().cast())
    };
    if result == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EBUSY) => Ok(()), // the kernel itself mounts devtmpfs if configured so
        Some(libc::ENODEV) => Err(Failure::Unsupported {
            field: kind.to_owned(),
            message: format!("this kernel has no {kind}"),
        }),
        _ => Err(Failure::kernel(format!("mounting {kind} on {target}"), error)),
    }
}

/// Unmounts the file system at `target`.
pub fn unmount(target: &str) -> Result<(), Failure> {
    let path = CString::new(target)
        .map_err(|_| Failure::Internal { message: format!("{target:?} has a NUL") })?;
    // SAFETY: the path is a string that outlives the call.
    checked(&format!("unmounting {target}"), unsafe { libc::umount2(path.as_ptr(), 0) }).map(|_| ())
}

/// Reads a small file of proc or sysfs, without its trailing newline.
pub fn read_line(path: &str) -> io::Result<String> {
    Ok(fs::read_to_string(path)?.trim_end().to_owned())
}

/// Powers the guest off. Does not return.
pub fn power_off() -> ! {
    // SAFETY: plain calls; with RB_POWER_OFF the kernel does not return.
    unsafe {
        libc::reboot(libc::RB_POWER_OFF);
        // Not reached in a guest. Elsewhere the process ends.
        libc::_exit(1)
    }
}

/// The kernel's release and machine, from `uname`.
pub fn kernel_release() -> String {
    // SAFETY: zero is a valid value of the structure, which the call fills in.
    let name = unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        libc::uname(ptr::from_mut(&mut name));
        name
    };
    name.release.iter().take_while(|c| **c != 0).map(|c| *c as u8 as char).collect()
}
