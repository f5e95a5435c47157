//! A processor that does nothing but copy, one command after the other: what serves `ramdisk` and `loop`
//! where no cost table says what computing takes.

use crate::core::params::Values;

#[derive(Debug, Clone)]
pub struct Copier {
    command_ns: u64,
    bytes_per_second: u64,
    free_ns: u64,
    busy_ns: u64,
}

impl Copier {
    /// With the parameters `command` and `copy_bandwidth`.
    pub fn new(values: &Values) -> Self {
        Self {
            command_ns: values.get("command"),
            bytes_per_second: values.get("copy_bandwidth"),
            free_ns: 0,
            busy_ns: 0,
        }
    }

    /// Takes a command that copies so many bytes; returns when it is done.
    pub fn serve(&mut self, bytes: u64, now_ns: u64) -> u64 {
        let (command_ns, copying_ns) = self.times_ns(bytes);
        self.work(command_ns + copying_ns, now_ns)
    }

    /// The time of a command without the copying, and of copying so many bytes.
    pub fn times_ns(&self, bytes: u64) -> (u64, u64) {
        (self.command_ns, (bytes * 1_000_000_000).div_ceil(self.bytes_per_second))
    }

    /// Takes a command that takes so long; returns when it is done.
    pub fn work(&mut self, cost_ns: u64, now_ns: u64) -> u64 {
        self.free_ns = self.free_ns.max(now_ns) + cost_ns;
        self.busy_ns += cost_ns;
        self.free_ns
    }

    /// Counts work that the machine's processors did in its place.
    pub fn worked(&mut self, work_ns: u64) {
        self.busy_ns += work_ns;
    }

    pub fn busy_ns(&self) -> u64 {
        self.busy_ns
    }
}
