//! A file or a pipe whose reading can be interrupted.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

use crate::interrupt::Interrupt;

/// An open file or pipe.
#[derive(Debug)]
pub struct Stream {
    file: File,
    /// Of a pipe, whose writer may be slow or never come.
    #[cfg_attr(not(unix), expect(dead_code, reason = "pipes are Unix's"))]
    interrupt: Option<Interrupt>,
}

impl Stream {
    /// Opens a regular file or a pipe; other kinds of files have no end.
    pub fn open(path: &Path, interrupt: &Interrupt) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true);
        // To open a pipe waits for its writer, and to read it for its bytes: here `wait` waits for both. Without
        // O_NOCTTY a terminal could become that of a process without one.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(
            &mut options,
            libc::O_NONBLOCK | libc::O_NOCTTY,
        );
        let file = options.open(path)?;
        let kind = file.metadata()?.file_type();
        if kind.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        let is_pipe = is_pipe(kind);
        if !kind.is_file() && !is_pipe {
            return Err(io::Error::other("neither a regular file nor a pipe"));
        }
        Ok(Self { file, interrupt: is_pipe.then(|| interrupt.clone()) })
    }
}

#[cfg(unix)]
fn is_pipe(kind: std::fs::FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&kind)
}

#[cfg(not(unix))]
fn is_pipe(_: std::fs::FileType) -> bool {
    false
}

impl Read for Stream {
    #[cfg(unix)]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(interrupt) = &self.interrupt else { return self.file.read(buffer) };
        loop {
            interrupt.check().map_err(io::Error::other)?;
            if !is_readable(&self.file)? {
                continue;
            }
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    }

    #[cfg(not(unix))]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

/// Waits a little until a pipe has bytes or has lost its writer; false if neither has happened.
#[cfg(unix)]
fn is_readable(file: &File) -> io::Result<bool> {
    use std::os::fd::AsRawFd;

    /// Between two looks whether to go on.
    const WAIT_MS: libc::c_int = 50;

    let mut polled = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the pointer is to one entry of ours.
    match unsafe { libc::poll(&raw mut polled, 1, WAIT_MS) } {
        0 => Ok(false),
        1.. => Ok(true),
        _ => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            error => Err(error),
        },
    }
}
