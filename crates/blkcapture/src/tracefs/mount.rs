//! Finds tracefs, or mounts it where nobody else sees it.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::error::CaptureError;
use crate::lockdown;

/// The root of a tracefs, and what keeps it mounted.
#[derive(Debug)]
pub struct Tracefs {
    pub path: PathBuf,
    /// A mount that belongs to no folder; it vanishes with the descriptor, even after a kill.
    _detached: Option<OwnedFd>,
}

/// Where distributions mount it.
const USUAL: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// `FSCONFIG_CMD_CREATE` of linux/mount.h.
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
const FSOPEN_CLOEXEC: libc::c_uint = 1;
const FSMOUNT_CLOEXEC: libc::c_uint = 1;

/// A tracefs with instances.
pub fn find() -> Result<Tracefs, CaptureError> {
    // Some of its files can be read then, but no instance can be made: EINVAL.
    if lockdown::is_confidential() {
        return Err(CaptureError::Unavailable(lockdown::reason("tracefs")));
    }
    for path in USUAL.map(Path::new) {
        match fs::metadata(path.join("instances")) {
            Ok(_) => return Ok(Tracefs { path: path.to_owned(), _detached: None }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(CaptureError::kernel(path, error));
            }
            Err(_) => {}
        }
    }
    let mount = mount_detached(c"tracefs").map_err(|cause| match cause.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            CaptureError::NotPermitted { what: "mounting tracefs".to_owned(), cause }
        }
        _ => CaptureError::Unavailable(format!("this kernel has no tracefs to mount: {cause}")),
    })?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
    Ok(Tracefs { path, _detached: Some(mount) })
}

/// Mounts a file system of the kernel without a mount point.
fn mount_detached(kind: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: the string is terminated; the kernel returns a descriptor or an error.
    let context = owned(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), FSOPEN_CLOEXEC) })?;
    // SAFETY: this command takes neither a key nor a value.
    let created = unsafe {
        libc::syscall(
            libc::SYS_fsconfig,
            context.as_raw_fd(),
            FSCONFIG_CMD_CREATE,
            std::ptr::null::<libc::c_char>(),
            std::ptr::null::<libc::c_char>(),
            0,
        )
    };
    if created != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is that of a file system's context.
    owned(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), FSMOUNT_CLOEXEC, 0) })
}

fn owned(result: libc::c_long) -> io::Result<OwnedFd> {
    let Ok(descriptor) = i32::try_from(result) else { return Err(io::Error::last_os_error()) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
