//! I/Os with a priority of their own (`cmdprio_percentage`, `cmdprio_bssplit`).

use super::job::{CommandPriority, PerDirection};
use super::own_priority::OwnPriority;
use crate::core::record::Direction;
use crate::core::rng::Stream;

/// Draws the priorities of a clone's I/Os.
#[derive(Debug, Clone)]
pub(super) struct CommandPriorities {
    shares: PerDirection<Vec<CommandPriority>>,
    draws: Stream,
}

impl CommandPriorities {
    /// `None` if no I/O has a priority of its own.
    pub fn new(shares: &PerDirection<Vec<CommandPriority>>, draws: Stream) -> Option<Box<Self>> {
        let any = !shares.read.is_empty() || !shares.write.is_empty();
        any.then(|| Box::new(Self { shares: shares.clone(), draws }))
    }

    /// The priority of an I/O; `None` for the process's own (`fio_cmdprio_set_ioprio` in
    /// engines/cmdprio.c, fio 3.33).
    pub fn draw(&mut self, direction: Direction, bytes: u32) -> Option<OwnPriority> {
        let shares = match direction {
            Direction::Read => &self.shares.read,
            _ => &self.shares.write,
        };
        let fits =
            |share: &&CommandPriority| share.bytes.is_none_or(|size| size == u64::from(bytes));
        if !shares.iter().any(|share| fits(&share)) {
            return None;
        }
        let mut draw = self.draws.below(100);
        for share in shares.iter().filter(fits) {
            if draw < share.percent {
                return Some(OwnPriority { class: share.class, level: share.level });
            }
            draw -= share.percent;
        }
        None
    }
}
