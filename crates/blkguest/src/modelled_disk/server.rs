//! Serves the disks: hands commands to the device models, and answers each at the time its model gives.
//!
//! One process serves all members of an array. It always sleeps: until a command arrives, or until the
//! models' next event, whose commands the kernel answers by itself before it wakes the server.

use std::sync::atomic::Ordering::SeqCst;

use blksim::block::request::Operation;
use blksim::devices::device::Command;

use super::abi::{self, Arrived};
use super::turn::{TurnEnd, Turns};
use crate::failure::Failure;
use crate::served_model::ServedModel;
use crate::server_turn::ServerTurn;
use crate::shared_memory::SharedMemory;

/// The server of all disks.
#[derive(Debug)]
pub struct Server {
    pub models: Vec<ServedModel>,
    pub turns: Turns,
    pub shared: SharedMemory,
    pub virtual_time: bool,
    pub place: ServerTurn,
    /// Guest time that is 0 for the models; 0 until they are used.
    pub origin_ns: u64,
}

impl Server {
    /// Serves until the guest ends.
    pub fn run(mut self) -> Result<(), Failure> {
        if self.virtual_time {
            self.place.prepare();
        }
        self.shared.server_ready.store(1, SeqCst);
        self.shared.notify();
        let mut done = Vec::new();
        loop {
            let end = self.turns.take()?;
            if self.shared.modelled.load(SeqCst) == 0 {
                // During preparation the disks take no time.
                let names = self.turns.arrived().iter().map(|command| command.name);
                let names: Vec<u32> = names.collect();
                self.turns.done.extend(names);
            } else {
                self.pass_through_models(end, &mut done)?;
            }
        }
    }

    fn pass_through_models(
        &mut self,
        end: TurnEnd,
        done: &mut Vec<(u64, u32)>,
    ) -> Result<(), Failure> {
        if self.origin_ns == 0 {
            self.origin_ns = self.shared.start_ns.load(SeqCst);
            if self.virtual_time {
                self.place.begin();
            }
        }
        self.shared.device_now_ns.store(end.now_ns, SeqCst);
        let now_ns = end.now_ns.saturating_sub(self.origin_ns);
        for (number, model) in self.models.iter_mut().enumerate() {
            model.runner.advance(now_ns, done);
            for (done_ns, tag) in done.drain(..) {
                model.done(tag, done_ns);
                let name = abi::name(number, tag);
                if !(end.reached && self.turns.due.contains(&name)) {
                    self.turns.done.push(name);
                }
            }
        }
        for arrived in self.turns.arrived() {
            let (number, tag) = abi::place(arrived.name);
            self.models[number].take(now_ns, command(arrived, tag)?);
        }
        for model in &self.models {
            model.publish();
        }
        self.announce();
        Ok(())
    }

    /// Announces the models' next event, and the commands that are done then.
    fn announce(&mut self) {
        self.turns.due.clear();
        let next_ns = self.models.iter().filter_map(|model| model.runner.next_ns()).min();
        self.turns.moment_ns = next_ns.map(|next_ns| self.origin_ns + next_ns);
        let Some(next_ns) = next_ns else { return };
        for (number, model) in self.models.iter().enumerate() {
            let tags = model.runner.completing_at(next_ns);
            self.turns.due.extend(tags.map(|tag| abi::name(number, tag)));
        }
    }
}

/// The model's command.
fn command(arrived: &Arrived, tag: u32) -> Result<Command, Failure> {
    let operation = match arrived.operation {
        abi::OPERATION_READ => Operation::Read,
        abi::OPERATION_WRITE => Operation::Write,
        abi::OPERATION_FLUSH => Operation::Flush,
        abi::OPERATION_DISCARD => Operation::Discard,
        other => {
            let message = format!("the driver sent the operation {other}, which was not offered");
            return Err(Failure::Internal { message });
        }
    };
    let (sector, nr_sectors) = match operation {
        Operation::Flush => (0, 0),
        _ => (arrived.sector, arrived.nr_sectors),
    };
    // The driver of a guest has one queue.
    Ok(Command { id: tag, operation, sector, nr_sectors, queue: 0 })
}
