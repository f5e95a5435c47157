//! An own instance of tracefs: its events and buffers are apart from those of other tools.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use blkrecord::io::UNKNOWN_PROCESSOR;

use super::decode::{Decoder, EVENTS};
use super::format;
use super::mount::Tracefs;
use super::page::{self, Layout};
use crate::error::CaptureError;

/// Instances of ours are called `blklab-PROCESS-START`, so that the next recorder can tell which ones a
/// killed recorder left behind.
const PREFIX: &str = "blklab-";
/// Pages of one processor that are read in one go: others must not wait too long.
const MOST_PAGES: usize = 4096;

/// An instance; dropping it removes it.
#[derive(Debug)]
pub struct Instance {
    path: PathBuf,
    processors: Vec<Processor>,
    layout: Layout,
    page: Vec<u8>,
    removed: bool,
    /// Keeps tracefs mounted.
    _tracefs: Tracefs,
}

/// One processor's buffer.
#[derive(Debug)]
struct Processor {
    number: u16,
    raw: File,
    stats: PathBuf,
}

impl Instance {
    /// Removes what killed recorders left, and makes a new instance.
    pub fn create(tracefs: Tracefs, buffer_bytes: u64) -> Result<Self, CaptureError> {
        let instances = tracefs.path.join("instances");
        for path in left_over(&instances) {
            // It costs memory only: another recorder may just have removed it.
            let _ = fs::remove_dir(path);
        }
        let own = std::process::id();
        let start = start_time(own).unwrap_or_default();
        let path = (0..100)
            .map(|number| instances.join(format!("{PREFIX}{own}-{start}-{number}")))
            .find(|path| !path.exists())
            .unwrap_or_else(|| instances.join(format!("{PREFIX}{own}-{start}")));
        fs::create_dir(&path).map_err(|cause| CaptureError::kernel(&instances, cause))?;
        let mut instance = Self {
            path,
            processors: Vec::new(),
            layout: Layout::default(),
            page: Vec::new(),
            removed: false,
            _tracefs: tracefs,
        };
        instance.set_up(buffer_bytes)?;
        Ok(instance)
    }

    fn set_up(&mut self, buffer_bytes: u64) -> Result<(), CaptureError> {
        self.write("tracing_on", "0")?;
        // The clock of `clock_gettime`, common to all processors.
        self.write("trace_clock", "mono")?;
        // If the buffer is full, the kernel counts and drops what is new; what is old stays consistent.
        self.write("options/overwrite", "0")?;
        let folder = self.path.join("per_cpu");
        let entries =
            fs::read_dir(&folder).map_err(|cause| CaptureError::kernel(&folder, cause))?;
        let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        folders.sort();
        let kib = (buffer_bytes / 1024 / folders.len().max(1) as u64).max(64);
        self.write("buffer_size_kb", &kib.to_string())?;
        for folder in folders {
            let raw = folder.join("trace_pipe_raw");
            let raw = File::options()
                .read(true)
                .custom_flags(libc::O_NONBLOCK)
                .open(&raw)
                .map_err(|cause| CaptureError::kernel(&raw, cause))?;
            let name = folder.file_name().and_then(|name| name.to_str());
            let number = name.and_then(|name| name.strip_prefix("cpu")?.parse().ok());
            let number = number.unwrap_or(UNKNOWN_PROCESSOR);
            self.processors.push(Processor { number, raw, stats: folder.join("stats") });
        }
        let header = self.text("events/header_page")?;
        self.layout = Layout::parse(&header).ok_or_else(|| {
            CaptureError::Unavailable("the kernel's trace pages are unknown".to_owned())
        })?;
        self.page = vec![0; self.layout.page_bytes()];
        Ok(())
    }

    /// Enables the events of some devices, and starts.
    pub fn enable(&self, devices: &[u32]) -> Result<Decoder, CaptureError> {
        let mut decoder = Decoder::default();
        let filter: Vec<String> = devices.iter().map(|number| format!("dev == {number}")).collect();
        let filter = filter.join(" || ");
        for (name, meaning, needed) in EVENTS {
            let folder = format!("events/{name}");
            let Ok(text) = self.text(&format!("{folder}/format")) else {
                if needed {
                    let message = format!("this kernel has no tracepoint {name}");
                    return Err(CaptureError::Unavailable(message));
                }
                continue;
            };
            let layout =
                format::parse(&text).filter(|layout| decoder.add(layout, meaning)).ok_or_else(
                    || CaptureError::Unavailable(format!("the tracepoint {name} is unknown")),
                )?;
            if layout.field("dev").is_some() {
                self.write(&format!("{folder}/filter"), &filter)?;
            }
            self.write(&format!("{folder}/enable"), "1")?;
        }
        self.write("tracing_on", "1")?;
        Ok(decoder)
    }

    /// Reads all buffers: of each event the time, the processor and the bytes. Each processor's come in the order
    /// of time.
    pub fn read(&mut self, mut give: impl FnMut(u64, u16, &[u8])) -> Result<(), CaptureError> {
        for processor in &mut self.processors {
            for _ in 0..MOST_PAGES {
                match processor.raw.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(count) => {
                        let mut give = |at_ns, bytes: &[u8]| give(at_ns, processor.number, bytes);
                        page::events(&self.page[..count], &self.layout, &mut give);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(CaptureError::kernel(&self.path, error)),
                }
            }
        }
        Ok(())
    }

    /// Events that the kernel dropped so far.
    pub fn lost(&self) -> Result<u64, CaptureError> {
        let mut lost = 0;
        for processor in &self.processors {
            let text = fs::read_to_string(&processor.stats)
                .map_err(|cause| CaptureError::kernel(&processor.stats, cause))?;
            lost += page::lost(&text);
        }
        Ok(lost)
    }

    /// Stops the events; what is in the buffers can still be read.
    pub fn stop(&self) -> Result<(), CaptureError> {
        self.write("tracing_on", "0")
    }

    /// Removes the instance.
    pub fn remove(&mut self) -> Result<(), CaptureError> {
        if self.removed {
            return Ok(());
        }
        self.processors.clear();
        fs::remove_dir(&self.path).map_err(|cause| CaptureError::kernel(&self.path, cause))?;
        self.removed = true;
        Ok(())
    }

    fn text(&self, name: &str) -> Result<String, CaptureError> {
        let path = self.path.join(name);
        read_text(&path).map_err(|cause| CaptureError::kernel(&path, cause))
    }

    fn write(&self, name: &str, value: &str) -> Result<(), CaptureError> {
        let path = self.path.join(name);
        let written = File::options()
            .write(true)
            .open(&path)
            .and_then(|mut file| file.write_all(value.as_bytes()));
        written.map_err(|cause| CaptureError::kernel(&path, cause))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // An error here has no one to go to; the next recorder tries again.
        let _ = self.remove();
    }
}

/// Reads a file of tracefs with a large buffer: of some, such as `header_page`, the kernel gives only what the
/// first read has room for.
fn read_text(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut text = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(String::from_utf8_lossy(&text).into_owned()),
            Ok(count) => text.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The instances of recorders that are gone, sorted. Only names of blklab's own form are considered.
pub fn left_over(instances: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(instances) else { return Vec::new() };
    let names = entries.flatten().filter(|entry| {
        owner_of(&entry.file_name().to_string_lossy())
            .is_some_and(|(process, start)| start_time(process).is_none_or(|now| now != start))
    });
    let mut paths: Vec<PathBuf> = names.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The process of an instance and its start, from `blklab-PROCESS-START-NUMBER`.
fn owner_of(name: &str) -> Option<(u32, String)> {
    let parts: Vec<&str> = name.strip_prefix(PREFIX)?.split('-').collect();
    let numbers = parts.iter().all(|part| part.parse::<u64>().is_ok());
    match parts[..] {
        [process, start, ..] if numbers && parts.len() <= 3 => {
            Some((process.parse().ok()?, start.to_owned()))
        }
        _ => None,
    }
}

/// When a process began, in ticks since boot: with it, its number is unique.
fn start_time(process: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The command, in parentheses, may contain anything. The start is field 22, the state field 3.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(19).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_instances_of_dead_recorders_are_left_over() {
        let folder = std::env::temp_dir().join(format!("blkcapture-left-{}", std::process::id()));
        let own = std::process::id();
        let start = start_time(own).unwrap();
        let alive = format!("blklab-{own}-{start}-0");
        // The same number, but another process.
        let reused = format!("blklab-{own}-1-0");
        let others = ["perf", "blklab-mine", "blklab-1-x-0", "blklab-4194305", "blklab--1-2"];
        for name in others.iter().copied().chain([&*alive, &*reused, "blklab-4194305-7-0"]) {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        let mut expected = vec![folder.join(&reused), folder.join("blklab-4194305-7-0")];
        expected.sort();
        assert_eq!(left_over(&folder), expected);
        fs::remove_dir_all(folder).unwrap();
    }
}
