//! Runs a line in the command's root, and ends whatever it leaves behind.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::ptr;

use super::{Command, ROOT};
use crate::clock;
use crate::failure::{Failure, checked};

/// Standard error of the line.
const ERRORS: &str = "/run/errors";
/// Most bytes of it that are reported.
const KEPT_BYTES: u64 = 8192;

/// The end of a line.
#[derive(Debug)]
pub struct Ended {
    pub start_ns: u64,
    pub end_ns: u64,
    /// Negative for a signal.
    pub exit_code: i32,
    pub timed_out: bool,
    /// The last of its standard error.
    pub errors: String,
}

/// Lets the calling process, which has no other children, run lines with [`run`].
pub fn become_parent() -> Result<(), Failure> {
    // SAFETY: plain calls; the set is valid for both.
    unsafe {
        checked("adopting orphans", libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1))?;
        let set = child_signal();
        checked(
            "blocking SIGCHLD",
            libc::sigprocmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()),
        )?;
    }
    Ok(())
}

/// Runs a line for the shell to its end.
pub fn run(command: &Command, line: &str) -> Result<Ended, Failure> {
    let failed = |error: io::Error| Failure::Program {
        program: "the shell of the command".to_owned(),
        message: error.to_string(),
    };
    let shell = Shell::new(command, line)?;
    let errors = File::create(ERRORS).map_err(failed)?;
    let nothing = File::options().read(true).write(true).open("/dev/null").map_err(failed)?;
    let start_ns = clock::now_ns();
    // Not through the standard library, whose way needs a socket where the child changes its root.
    // SAFETY: this program has a single thread, so its child may do anything.
    let child = checked("creating the command's process", unsafe { libc::fork() })?;
    if child == 0 {
        shell.become_it(&nothing, &errors);
    }
    let (status, timed_out) = wait(child, start_ns + command.time_limit_ns)?;
    let end_ns = clock::now_ns();
    end_all_others();
    let exit_code =
        if libc::WIFSIGNALED(status) { -libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) };
    Ok(Ended { start_ns, end_ns, exit_code, timed_out, errors: last_words() })
}

/// The shell's strings, made before its process exists.
struct Shell {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    root: CString,
    directory: CString,
}

impl Shell {
    fn new(command: &Command, line: &str) -> Result<Self, Failure> {
        let text = |text: &str| {
            CString::new(text)
                .map_err(|_| Failure::Internal { message: format!("{text:?} has a NUL") })
        };
        let variables = command.environment.iter();
        Ok(Self {
            program: text("/bin/sh")?,
            arguments: ["/bin/sh", "-c", line].into_iter().map(text).collect::<Result<_, _>>()?,
            environment: variables
                .map(|(name, value)| text(&format!("{name}={value}")))
                .collect::<Result<_, _>>()?,
            root: text(ROOT)?,
            directory: text(&command.directory)?,
        })
    }

    /// Makes the calling process the shell; it does not return.
    fn become_it(&self, nothing: &File, errors: &File) -> ! {
        let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
            texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
        };
        let (arguments, environment) = (pointers(&self.arguments), pointers(&self.environment));
        // SAFETY: all pointers are to strings and sets that live until the end of the process.
        unsafe {
            libc::setsid();
            libc::prctl(libc::PR_SET_TIMERSLACK, clock::USUAL_SLACK_NS);
            for (descriptor, number) in [(nothing, 0), (nothing, 1), (errors, 2)] {
                libc::dup2(descriptor.as_raw_fd(), number);
            }
            // The runtime of Rust ignores it.
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            let set = child_signal();
            libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, ptr::null_mut());
            let prepared =
                libc::chroot(self.root.as_ptr()) == 0 && libc::chdir(self.directory.as_ptr()) == 0;
            if prepared {
                let (arguments, environment) = (arguments.as_ptr(), environment.as_ptr());
                libc::execve(self.program.as_ptr(), arguments, environment);
            }
            eprintln!("/bin/sh cannot be started: {}", io::Error::last_os_error());
            libc::_exit(127)
        }
    }
}

/// Waits until the child ends, and kills it when its time is over. Gives its status, and whether it was killed.
fn wait(child: libc::pid_t, until_ns: u64) -> Result<(libc::c_int, bool), Failure> {
    let set = child_signal();
    let mut status = 0;
    loop {
        // SAFETY: the pointer is valid for the call.
        let ended = unsafe { libc::waitpid(child, ptr::from_mut(&mut status), libc::WNOHANG) };
        if checked("waiting for the command", ended)? == child {
            return Ok((status, false));
        }
        let left = clock::timespec(until_ns.saturating_sub(clock::now_ns()));
        // SAFETY: both pointers are valid for the call.
        let signal =
            unsafe { libc::sigtimedwait(&raw const set, ptr::null_mut(), &raw const left) };
        if signal < 0 && clock::now_ns() >= until_ns {
            // SAFETY: plain calls, with a pointer that is valid for the second.
            unsafe {
                libc::kill(child, libc::SIGKILL);
                libc::waitpid(child, ptr::from_mut(&mut status), 0);
            }
            return Ok((status, true));
        }
    }
}

fn child_signal() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the first call fills in the set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        set.assume_init()
    }
}

/// Kills and reaps every process that descends from this one; orphans are its children.
fn end_all_others() {
    // SAFETY: plain calls with numbers.
    let own = unsafe { libc::getpid() };
    loop {
        for pid in descendants(own) {
            // SAFETY: as above.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        // SAFETY: as above; without a place for the status.
        if unsafe { libc::waitpid(-1, ptr::null_mut(), 0) } < 0 {
            return;
        }
    }
}

fn descendants(of: libc::pid_t) -> Vec<libc::pid_t> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let mut parents: Vec<(libc::pid_t, libc::pid_t)> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| {
            Some((pid, parent(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?))
        })
        .collect();
    parents.sort_unstable();
    let mut found = vec![of];
    let mut next = 0;
    while next < found.len() {
        let above = found[next];
        found.extend(parents.iter().filter(|(_, parent)| *parent == above).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

/// The parent in `/proc/PID/stat`; a program's name may hold anything.
fn parent(stat: &str) -> Option<libc::pid_t> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn last_words() -> String {
    use std::io::{Seek, SeekFrom};
    let read = || -> io::Result<String> {
        let mut file = File::open(ERRORS)?;
        let bytes = file.metadata()?.len();
        file.seek(SeekFrom::Start(bytes.saturating_sub(KEPT_BYTES)))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_are_found_behind_any_name() {
        assert_eq!(parent("12 (a) b) c) S 7 12 12 0"), Some(7));
        assert_eq!(parent("12"), None);
    }
}
