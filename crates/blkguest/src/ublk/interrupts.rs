//! The server where computing takes time: the models take commands and complete them at their own
//! moments, however late the processor is; the kernel learns of a completion when the processor is free.

use std::sync::atomic::Ordering::SeqCst;

use super::server::Server;
use super::timers::CommandId;
use crate::clock;
use crate::failure::Failure;

impl Server {
    /// Hands the models all commands that have arrived and commits all that are complete, until none is
    /// left: each commit takes time, in which more of them complete.
    pub(super) fn interrupt(&mut self) -> Result<(), Failure> {
        if self.origin_ns == 0 {
            self.origin_ns = self.shared.start_ns.load(SeqCst);
        }
        let mut done: Vec<(u64, CommandId)> = Vec::new();
        loop {
            self.submit_arrived(&mut done)?;
            let now_ns = clock::now_ns();
            self.shared.device_now_ns.store(now_ns, SeqCst);
            self.advance(now_ns.saturating_sub(self.origin_ns), &mut done);
            if done.is_empty() {
                break;
            }
            // In the order in which they were completed, as interrupts come.
            done.sort_by_key(|(moment_ns, _)| *moment_ns);
            for (done_ns, place) in done.drain(..) {
                self.members[place.0].model.done(u32::from(place.1), done_ns);
                self.answer(place)?;
            }
            self.ring.submit().map_err(|error| Failure::kernel("answering commands", error))?;
            self.take_completions()?;
        }
        for member in &self.members {
            member.model.publish();
        }
        self.await_models()
    }

    /// Hands the models the arrived commands, each at the moment at which the driver got it.
    fn submit_arrived(&mut self, done: &mut Vec<(u64, CommandId)>) -> Result<(), Failure> {
        let now_ns = clock::now_ns();
        // A command that the driver got before it noted the time has none, but an address, which is later.
        let mut arrived: Vec<(u64, CommandId)> = std::mem::take(&mut self.arrived)
            .into_iter()
            .map(|place| (self.members[place.0].issued_ns(place.1).min(now_ns), place))
            .collect();
        arrived.sort_by_key(|(moment_ns, _)| *moment_ns);
        for (moment_ns, place) in arrived {
            let moment_ns = moment_ns.saturating_sub(self.origin_ns);
            self.advance(moment_ns, done);
            self.members[place.0].take(place.1, moment_ns)?;
        }
        Ok(())
    }

    fn advance(&mut self, now_ns: u64, done: &mut Vec<(u64, CommandId)>) {
        let mut of_member = Vec::new();
        for (number, member) in self.members.iter_mut().enumerate() {
            member.model.runner.advance(now_ns, &mut of_member);
            done.extend(
                of_member.drain(..).map(|(moment_ns, tag)| (moment_ns, (number, tag as u16))),
            );
        }
    }

    /// Arms a timer for the models' next event, unless an earlier one is armed.
    fn await_models(&mut self) -> Result<(), Failure> {
        let next_ns = self.members.iter().filter_map(|member| member.model.runner.next_ns()).min();
        let Some(next_ns) = next_ns else { return Ok(()) };
        let moment_ns = self.origin_ns + next_ns;
        if self.timers.earliest().is_some_and(|(earliest_ns, _)| earliest_ns <= moment_ns) {
            return Ok(());
        }
        let timer = self.timers.set(moment_ns, None);
        self.push(&[timer])
    }
}
