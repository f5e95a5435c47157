//! Ways of capturing that work on this machine, and what killed recorders left. Nothing is recorded.

use std::fs;
use std::path::Path;

use crate::bpf;
use crate::error::CaptureError;
use crate::tracefs::{instance, mount};

/// Checks whether the kernel takes the BPF programs; none of them runs.
///
/// # Errors
///
/// The reason why they cannot be used.
pub fn bpf(object: Option<&Path>) -> Result<(), CaptureError> {
    bpf::check(object)
}

/// Checks whether tracefs has instances and the tracepoints of the block layer; makes no instance.
///
/// # Errors
///
/// The reason why it cannot be used.
pub fn tracefs() -> Result<(), CaptureError> {
    let tracefs = mount::find()?;
    let instances = tracefs.path.join("instances");
    fs::read_dir(&instances).map_err(|cause| CaptureError::kernel(&instances, cause))?;
    for event in ["block_bio_queue", "block_rq_issue", "block_rq_complete"] {
        let format = tracefs.path.join("events/block").join(event).join("format");
        // A kernel that is locked down refuses to open it.
        fs::read(&format).map_err(|cause| CaptureError::kernel(&format, cause))?;
    }
    Ok(())
}

/// The tracefs instances that killed recorders left, by name; with `remove`, each is removed, or has the
/// reason why it could not be.
///
/// # Errors
///
/// The reason why tracefs cannot be looked into.
pub fn left_over(remove: bool) -> Result<Vec<(String, Option<String>)>, CaptureError> {
    let tracefs = mount::find()?;
    let paths = instance::left_over(&tracefs.path.join("instances"));
    let removed = |path: &Path| match fs::remove_dir(path) {
        Err(cause) if path.exists() => Some(cause.to_string()),
        _ => None,
    };
    let name = |path: &Path| {
        path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    };
    Ok(paths.iter().map(|path| (name(path), if remove { removed(path) } else { None })).collect())
}
