//! Numbers that a clone leaves for the first process.

use std::fs;
use std::sync::OnceLock;

use crate::failure::Failure;
use crate::mounts::RUN;

/// The folder for them; in a guest `/run`.
static FOLDER: OnceLock<String> = OnceLock::new();

/// Lets clones leave their numbers in another folder, before any of them exists.
pub fn keep_in(folder: String) {
    FOLDER.get_or_init(|| folder);
}

/// Leaves the numbers of a clone under a name.
pub fn leave(what: &str, number: u32, words: Vec<u64>) -> Result<(), Failure> {
    let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_ne_bytes).collect();
    fs::write(path(what, number), bytes)
        .map_err(|error| Failure::kernel(format!("leaving a clone's {what}"), error))
}

/// The numbers that a clone has left.
pub fn collect(what: &str, number: u32) -> Result<Vec<u64>, Failure> {
    let bytes = fs::read(path(what, number))
        .map_err(|error| Failure::kernel(format!("reading a clone's {what}"), error))?;
    let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
    Ok(bytes.chunks_exact(8).map(word).collect())
}

/// The failure of numbers that make no sense.
pub fn broken(what: &str) -> Failure {
    Failure::Internal { message: format!("a clone's {what} is broken") }
}

fn path(what: &str, number: u32) -> String {
    let folder = FOLDER.get().map_or(RUN, String::as_str);
    format!("{folder}/{what}-{number}")
}
