//! Programs in the guest's root that a run may need.

use std::process::{Command, Stdio};

use crate::failure::Failure;

/// Folders searched for programs.
const FOLDERS: &[&str] = &["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin"];
/// Most bytes of a failed program's output that are reported.
const LAST_WORDS: usize = 2000;

/// Runs a program to its end.
pub fn run(name: &str, arguments: &[&str]) -> Result<(), Failure> {
    let path = FOLDERS
        .iter()
        .map(|folder| format!("{folder}/{name}"))
        .find(|path| std::fs::metadata(path).is_ok())
        .ok_or_else(|| Failure::Unsupported {
            field: name.to_owned(),
            message: format!("the guest has no program {name}"),
        })?;
    let failed = |message: String| Failure::Program { program: name.to_owned(), message };
    let output = Command::new(path)
        .args(arguments)
        .env("PATH", FOLDERS.join(":"))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let text = text.trim();
    let start = text.char_indices().rev().nth(LAST_WORDS).map_or(0, |(index, _)| index);
    Err(failed(format!("{}: {}", output.status, &text[start..])))
}
