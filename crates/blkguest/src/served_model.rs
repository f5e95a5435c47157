//! The device model behind one served disk, with its counters.

use std::sync::atomic::Ordering::SeqCst;

use blksim::block::request::Operation;
use blksim::devices::AnyDevice;
use blksim::devices::device::{Command, Device, Runner};

use crate::command_log::CommandLog;
use crate::shared_memory::{DeviceStats, SharedMemory};

/// A device model at work.
#[derive(Debug)]
pub struct ServedModel {
    pub runner: Runner<AnyDevice>,
    stats: &'static DeviceStats,
    in_flight: u32,
    log: CommandLog,
    /// By tag, with the time of arrival; empty without a log.
    arrived: Vec<Option<(Command, u64)>>,
}

impl ServedModel {
    /// The model of the disk with this number.
    pub fn new(number: u32, device: AnyDevice, shared: SharedMemory) -> Self {
        let stats = &shared.page().stats[number as usize];
        let log = shared.commands();
        let tags = if log.is_kept() { device.facts().queue_depth as usize } else { 0 };
        let (runner, arrived) = (Runner::new(device), vec![None; tags]);
        Self { runner, stats, in_flight: 0, log, arrived }
    }

    /// Counts an arrived command and submits it.
    pub fn take(&mut self, now_ns: u64, command: Command) {
        let counter = match command.operation {
            Operation::Read => &self.stats.reads,
            Operation::Write | Operation::Discard => &self.stats.writes,
            Operation::Flush => &self.stats.flushes,
        };
        counter.fetch_add(1, SeqCst);
        self.in_flight += 1;
        if self.log.is_kept() {
            self.arrived[command.id as usize] = Some((command, now_ns));
        }
        self.runner.submit(now_ns, command);
    }

    /// Handles the model's completion of a tag's command.
    pub fn done(&mut self, tag: u32, now_ns: u64) {
        self.in_flight -= 1;
        if !self.log.is_kept() {
            return;
        }
        if let Some((command, arrived_ns)) = self.arrived[tag as usize].take() {
            self.log.add(&command, arrived_ns, now_ns);
        }
    }

    /// Publishes the disk's counters.
    pub fn publish(&self) {
        self.stats.peak_in_flight.fetch_max(self.in_flight, SeqCst);
        self.stats.busy_ns.store(self.runner.device().busy_ns(), SeqCst);
    }
}
