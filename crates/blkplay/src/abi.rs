//! The functions that the page calls.
//!
//! Texts and tables go through one buffer in each direction: the page asks for room with
//! [`blkplay_input`] and writes its text there; an answer lies at [`blkplay_output`] until the next
//! call. A function that can fail returns 0 and leaves the message in the output. WebAssembly in a
//! browser has one thread, and each thread has buffers of its own, so native tests may call these
//! functions in parallel.

use std::cell::RefCell;

use blksim::core::error::Error;
use serde_json::{Value, json};

use crate::own_scheduler;
use crate::session::{self, Session};

/// Both buffers, and the running simulations by handle less one.
#[derive(Default)]
struct Desk {
    input: Vec<u8>,
    output: Vec<u8>,
    sessions: Vec<Option<Session>>,
}

thread_local! {
    static DESK: RefCell<Desk> = RefCell::default();
}

impl Desk {
    fn text(&self) -> Result<String, String> {
        String::from_utf8(self.input.clone()).map_err(|_| "the text is not UTF-8".to_owned())
    }

    fn say(&mut self, answer: &Value) {
        self.output = answer.to_string().into_bytes();
    }

    fn keep(&mut self, session: Session) -> u32 {
        let free = self.sessions.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.sessions.push(None);
            self.sessions.len() - 1
        });
        self.sessions[index] = Some(session);
        index as u32 + 1
    }

    fn session(&mut self, handle: u32) -> Result<&mut Session, String> {
        let index = (handle as usize).wrapping_sub(1);
        let session = self.sessions.get_mut(index).and_then(Option::as_mut);
        session.ok_or_else(|| format!("there is no simulation {handle}"))
    }
}

/// Does work at the desk; an error becomes 0 and its message the output.
fn attempt(work: impl FnOnce(&mut Desk) -> Result<u32, String>) -> u32 {
    DESK.with_borrow_mut(|desk| {
        work(desk).unwrap_or_else(|message| {
            desk.output = message.into_bytes();
            0
        })
    })
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn told(error: Error) -> String {
    error.to_string()
}

/// Room for a text of so many bytes from the page.
#[unsafe(no_mangle)]
pub extern "C" fn blkplay_input(bytes: usize) -> *mut u8 {
    DESK.with_borrow_mut(|desk| {
        desk.input = vec![0; bytes];
        desk.input.as_mut_ptr()
    })
}

/// Where the last answer lies.
#[unsafe(no_mangle)]
pub extern "C" fn blkplay_output() -> *const u8 {
    DESK.with_borrow(|desk| desk.output.as_ptr())
}

/// Bytes of the last answer.
#[unsafe(no_mangle)]
pub extern "C" fn blkplay_output_bytes() -> usize {
    DESK.with_borrow(|desk| desk.output.len())
}

/// Answers the catalogue: schedulers with their tunables, kinds of devices, and the tables of a timeline.
#[unsafe(no_mangle)]
pub extern "C" fn blkplay_catalogue() -> u32 {
    attempt(|desk| {
        desk.say(&json!({
            "schedulers": blksim_json::schedulers(),
            "devices": blksim_json::devices(),
            "timeline": blksim_json::timeline_format(),
        }));
        Ok(1)
    })
}

/// Registers the page's own scheduler under the name in the input; see [`crate::own_scheduler`].
#[unsafe(no_mangle)]
pub extern "C" fn blkplay_register() -> u32 {
    attempt(|desk| {
        own_scheduler::register(&desk.text()?).map_err(told)?;
        Ok(1)
    })
}

/// Runs the request in the input to its end and answers as the Python module does.
#[unsafe(no_mangle)]
pub extern "C" fn blkplay_simulate() -> u32 {
    attempt(|desk| {
        let outcome = session::run(&desk.text()?).map_err(told)?;
        desk.say(&outcome);
        Ok(1)
    })
}

/// Begins a simulation of the request in the input. Returns its handle, 0 for an error.
#[unsafe(no_mangle)]
pub extern "C" fn blkplay_open() -> u32 {
    attempt(|desk| {
        let session = Session::open(&desk.text()?).map_err(told)?;
        Ok(desk.keep(session))
    })
}

/// Ends a simulation. One that has ended already is left alone.
#[unsafe(no_mangle)]
pub extern "C" fn blkplay_close(handle: u32) {
    DESK.with_borrow_mut(|desk| {
        if let Some(session) = desk.sessions.get_mut((handle as usize).wrapping_sub(1)) {
            *session = None;
        }
    });
}

/// An independent copy of a simulation at this moment. Returns its handle.
#[unsafe(no_mangle)]
pub extern "C" fn blkplay_copy(handle: u32) -> u32 {
    attempt(|desk| {
        let copy = desk.session(handle)?.clone();
        Ok(desk.keep(copy))
    })
}

/// Continues up to a time. Returns 1 if it got there, 2 if all jobs have ended, 0 for an error.
#[unsafe(no_mangle)]
pub extern "C" fn blkplay_advance(handle: u32, until_ns: f64) -> u32 {
    attempt(|desk| {
        let reached = desk.session(handle)?.advance_until(until_ns as u64);
        reached.map(|reached| reached as u32).map_err(told)
    })
}

/// Continues until the device gets its next request, for at most so many events. Returns 1 if it did, 2 if
/// all jobs have ended, 3 if the events ran out, 0 for an error.
#[unsafe(no_mangle)]
pub extern "C" fn blkplay_step(handle: u32, events: u32) -> u32 {
    attempt(|desk| {
        let reached = desk.session(handle)?.step(events);
        reached.map(|reached| reached as u32).map_err(told)
    })
}

/// Makes the change in the input now; see [`crate::change`].
#[unsafe(no_mangle)]
pub extern "C" fn blkplay_change(handle: u32) -> u32 {
    attempt(|desk| {
        let text = desk.text()?;
        desk.session(handle)?.change(&text).map_err(told)?;
        Ok(1)
    })
}

/// Answers with the state at this moment; see [`crate::view`].
#[unsafe(no_mangle)]
pub extern "C" fn blkplay_view(handle: u32) -> u32 {
    attempt(|desk| {
        let view = desk.session(handle)?.view();
        desk.say(&view);
        Ok(1)
    })
}

/// Answers with the rows of requests that completed since the last call.
#[unsafe(no_mangle)]
pub extern "C" fn blkplay_requests(handle: u32) -> u32 {
    attempt(|desk| {
        desk.output = desk.session(handle)?.take_requests();
        Ok(1)
    })
}

/// Answers with the rows of I/Os that ended since the last call.
#[unsafe(no_mangle)]
pub extern "C" fn blkplay_ios(handle: u32) -> u32 {
    attempt(|desk| {
        desk.output = desk.session(handle)?.take_ios();
        Ok(1)
    })
}

/// Answers with the results so far, as the Python module does at the end.
#[unsafe(no_mangle)]
pub extern "C" fn blkplay_outcome(handle: u32) -> u32 {
    attempt(|desk| {
        let outcome = desk.session(handle)?.outcome();
        desk.say(&outcome);
        Ok(1)
    })
}
