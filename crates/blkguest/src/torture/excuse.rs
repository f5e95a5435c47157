//! The time for which mq-deadline may leave the disk idle because one of its tunables was lowered.
//!
//! It takes a request's deadline less the expiry that is in force *now* for the time at which the request came
//! (`started_after()`, `block/mq-deadline.c`, Linux 6.1 and 6.12). After `read_expire` or `write_expire` was lowered,
//! requests that wait seem to come in the future, and are not dispatched before then.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::SeqCst;

use crate::shared_memory::SharedPage;

const TUNABLES: [&str; 2] = ["read_expire", "write_expire"];
const NS_PER_MS: u64 = 1_000_000;

/// Memory that the process which changes tunables shares with the one that watches the disk.
#[derive(Debug, Clone, Copy)]
pub struct Excuse(pub &'static SharedPage);

impl Excuse {
    /// The part of an idle time that has no excuse.
    pub fn without(self, now_ns: u64, idle_ns: u64) -> u64 {
        idle_ns.min(now_ns.saturating_sub(self.0.excused_until_ns.load(SeqCst)))
    }

    /// The scheduler has no request: those that come now have the present expiry.
    pub fn emptied(self) {
        if self.0.excused_until_ns.swap(0, SeqCst) > 0 {
            self.0.nr_excuses_ended.fetch_add(1, SeqCst);
        }
    }
}

/// The expiries that requests in the scheduler may have, in milliseconds.
#[derive(Debug)]
pub struct Expiries {
    excuse: Excuse,
    nr_emptied: u64,
    longest: BTreeMap<String, u64>,
}

impl Expiries {
    pub fn new(excuse: Excuse) -> Self {
        Self { excuse, nr_emptied: 0, longest: BTreeMap::new() }
    }

    /// A tunable is about to be changed.
    pub fn change(&mut self, name: &str, before: u64, after: u64, now_ns: u64) {
        if !TUNABLES.contains(&name) {
            return;
        }
        let nr_emptied = self.excuse.0.nr_excuses_ended.load(SeqCst);
        if nr_emptied != self.nr_emptied {
            self.nr_emptied = nr_emptied;
            self.longest.clear();
        }
        let longest = self.longest.entry(name.to_owned()).or_default();
        *longest = before.max(*longest);
        let later_ns = longest.saturating_sub(after) * NS_PER_MS;
        if later_ns > 0 {
            self.excuse.0.excused_until_ns.fetch_max(now_ns + later_ns, SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_memory::SharedMemory;

    #[test]
    fn a_lowered_expiry_excuses_requests_that_came_before() {
        let shared = SharedMemory::new(&[1], &[1], &[], 0, 0).unwrap();
        let excuse = Excuse(shared.page());
        let mut expiries = Expiries::new(excuse);
        let ms = NS_PER_MS;
        expiries.change("prio_aging_expire", 10_000, 1, 0);
        expiries.change("read_expire", 500, 1000, 0);
        assert_eq!(excuse.without(90 * ms, 80 * ms), 80 * ms);
        expiries.change("read_expire", 1000, 900, 100 * ms);
        assert_eq!(excuse.without(150 * ms, 80 * ms), 0);
        assert_eq!(excuse.without(220 * ms, 80 * ms), 20 * ms);
        // A request may be there since the expiry was a second.
        expiries.change("read_expire", 900, 800, 150 * ms);
        assert_eq!(excuse.without(351 * ms, 80 * ms), ms);
        excuse.emptied();
        assert_eq!(excuse.without(160 * ms, 5 * ms), 5 * ms);
        expiries.change("read_expire", 800, 790, 200 * ms);
        assert_eq!(excuse.without(220 * ms, 80 * ms), 10 * ms);
    }
}
