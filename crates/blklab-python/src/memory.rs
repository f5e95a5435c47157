//! Memory that this process may still use.

use blkrecord::limits::Memory;

/// Left for the rest of an analysis, and for other programs meanwhile.
const RESERVED_BYTES: u64 = 64 << 20;

/// The free memory, for a reader that keeps `bytes_each` of each I/O; `None` if it is unknown.
pub fn free_for(bytes_each: u64) -> Option<Memory> {
    let free_bytes = free_bytes()?.saturating_sub(RESERVED_BYTES);
    Some(Memory { free_bytes, bytes_each })
}

/// The least of what the machine has, what a limit of addresses (`ulimit -v`) leaves, and what a control group's leaves.
fn free_bytes() -> Option<u64> {
    [of_machine(), of_addresses(), of_cgroup()].into_iter().flatten().min()
}

fn of_machine() -> Option<u64> {
    kib_of(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

fn of_addresses() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    // "unlimited" is no number.
    let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
    let used = kib_of(&std::fs::read_to_string("/proc/self/status").ok()?, "VmSize:")?;
    Some(limit.saturating_sub(used))
}

/// Of the process's own group of version 2; its parents may have less, which nobody asks.
fn of_cgroup() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let folder = std::path::Path::new("/sys/fs/cgroup").join(path);
    let number = |name: &str| -> Option<u64> {
        std::fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok()
    };
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}

fn kib_of(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
}
