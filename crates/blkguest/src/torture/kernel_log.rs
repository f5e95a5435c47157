//! The kernel's own complaints.

use std::ptr;

/// `SYSLOG_ACTION_READ_ALL` and `SYSLOG_ACTION_SIZE_BUFFER` (`include/linux/syslog.h`).
const READ_ALL: libc::c_int = 3;
const SIZE: libc::c_int = 10;
/// Parts of lines that report a mistake of the kernel: `BUG()`, `WARN()`, KASAN, lockdep, hung tasks, a list
/// or an object that is not as it should be.
const MARKS: [&str; 9] = [
    "BUG: ",
    "WARNING: ",
    "INFO: task ",
    "INFO: trying to register non-static key",
    "INFO: possible",
    "ODEBUG: ",
    "list_add corruption",
    "list_del corruption",
    "blk_update_request: bio idx",
];
/// Most lines of a complaint in the answer.
const LINES: usize = 40;

/// User-mode Linux itself walks its memory maps without a lock (`arch/um`, Linux 6.1), which lockdep notes.
const OF_RCU: &str = "suspicious RCU usage";
/// Beginnings of names of functions in the block layer, its schedulers and its drivers.
const OF_BLOCK: [&str; 10] =
    ["blk", "elv", "dd_", "kyber", "bfq", "bio", "sbitmap", "null_", "ioc_", "submit_"];

/// The first complaint in the log, with what follows it; `None` if there is none.
pub fn complaint() -> Option<String> {
    first_complaint(&read())
}

fn first_complaint(log: &str) -> Option<String> {
    let lines: Vec<&str> = log.lines().map(without_prefix).collect();
    let begins = |line: &&str| MARKS.iter().any(|mark| line.contains(mark));
    let mut from = 0;
    loop {
        let first = from + lines[from..].iter().position(&begins)?;
        let end =
            lines[first + 1..].iter().position(begins).map_or(lines.len(), |at| first + 1 + at);
        let told = &lines[first..end];
        if !told[0].contains(OF_RCU) || told.iter().any(|line| is_of_block(line)) {
            return Some(told[..told.len().min(LINES)].join("\n"));
        }
        from = end;
    }
}

/// A line of a stack: ` [<60038fa0>] ? dump_trace+0x0/0x180`.
fn is_of_block(line: &str) -> bool {
    let Some((_, call)) = line.split_once(">] ") else { return false };
    let name = call.trim_start_matches("? ").trim_start_matches('_');
    OF_BLOCK.iter().any(|beginning| name.starts_with(beginning))
}

/// A line without its level and time: `<4>[   1.234567] text`.
fn without_prefix(line: &str) -> &str {
    let line = line.split_once('>').map_or(
        line,
        |(level, rest)| {
            if level.starts_with('<') { rest } else { line }
        },
    );
    match line.split_once("] ") {
        Some((time, rest)) if time.starts_with('[') => rest,
        _ => line,
    }
}

fn read() -> String {
    // SAFETY: without memory the call only gives a size; with it, it writes at most as much.
    unsafe {
        let size = libc::klogctl(SIZE, ptr::null_mut(), 0).max(0);
        let mut memory = vec![0_u8; size as usize];
        let bytes = libc::klogctl(READ_ALL, memory.as_mut_ptr().cast(), size).max(0);
        memory.truncate(bytes as usize);
        String::from_utf8_lossy(&memory).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_of_other_rooms_about_rcu_are_left_out() {
        let rcu = |name: &str| {
            format!("<4>[ 1.0] WARNING: suspicious RCU usage\n<4>[ 1.0]  [<60>] ? {name}+0x0/0x1\n")
        };
        let after = "<6>[ 2.0] usual\n<3>[ 2.0] BUG: sleeping function\n<3>[ 2.0] more\n";
        assert_eq!(first_complaint(&rcu("mas_find")), None);
        assert!(first_complaint(&rcu("__blk_mq_run")).is_some());
        let both = first_complaint(&format!("{}{after}", rcu("mas_find"))).unwrap();
        assert_eq!(both, "BUG: sleeping function\nmore");
        assert_eq!(first_complaint("<6>[ 2.0] usual\n"), None);
    }

    #[test]
    fn prefixes_go() {
        assert_eq!(without_prefix("<4>[    1.5] BUG: x"), "BUG: x");
        assert_eq!(without_prefix("[    1.5] [a] x"), "[a] x");
        assert_eq!(without_prefix("plain > text"), "plain > text");
    }
}
