//! I/O controllers (the kernel's rqos, with blk-throttle and dm-ioband), and the one place that
//! decides which of them stand at a queue.
//!
//! A policy that cannot change anything is left out and costs nothing.

mod ioband;
mod iocost;
mod iolatency;
pub mod policy;
mod throttle;
pub(crate) mod wbt;

use std::collections::BTreeSet;

use crate::block::cgroup::{Cgroups, MAX, UNLIMITED};
use crate::block::queue_facts::QueueFacts;
use crate::core::params::Values;

use crate::rqos::policy::Policy;
use crate::workload::Job;

/// The policies that settings and jobs call for.
pub fn build(
    cgroups: &Cgroups,
    queue: &Values,
    facts: QueueFacts,
    jobs: &[Job],
    seed: u64,
) -> Vec<Box<dyn Policy>> {
    let mut policies: Vec<Box<dyn Policy>> = Vec::new();
    let limited = cgroups.groups.iter().any(|g| MAX.iter().any(|p| g.max.get(p.name) != UNLIMITED));
    if limited {
        policies.push(Box::new(throttle::Throttle::new(&cgroups.groups, facts.jiffy_ns)));
    }
    if let Some(band) = &cgroups.band {
        policies.push(Box::new(ioband::IoBand::new(cgroups, band, seed)));
    }
    if cgroups.groups.iter().any(|group| group.latency_target_ns > 0) {
        policies.push(Box::new(iolatency::IoLatency::new(
            &cgroups.groups,
            facts.rotational,
            facts.nr_requests,
        )));
    }
    let target_ns = wbt_target_ns(queue, jobs);
    if target_ns > 0 {
        policies.push(Box::new(wbt::Wbt::new(target_ns, facts.reported_depth, facts.jiffy_ns)));
    }
    if cgroups.cost_qos.flag("enable") && cgroups.groups.len() > 1 {
        policies.push(Box::new(iocost::IoCost::new(
            cgroups,
            facts.rotational,
            facts.reported_depth,
            facts.jiffy_ns,
        )));
    }
    policies
}

/// True for the controllers that settings of groups put at a queue.
pub(crate) fn follows_groups(name: &str) -> bool {
    name != wbt::Wbt::NAME
}

/// The controller among `present` that leaves the queue if only `wanted` are called for: io.cost, which
/// can be turned off. The others stay, without an effect.
pub(crate) fn removable(
    present: &BTreeSet<&'static str>,
    wanted: &[Box<dyn Policy>],
) -> Option<&'static str> {
    let name = iocost::IoCost::NAME;
    let stays = wanted.iter().any(|policy| policy.name() == name);
    (present.contains(name) && !stays).then_some(name)
}

/// The target of writeback throttling; 0 if it is off. It acts on buffered writes alone.
pub(crate) fn wbt_target_ns(queue: &Values, jobs: &[Job]) -> u64 {
    let buffered_writes = jobs.iter().any(|job| job.mode.writes && job.buffered());
    if buffered_writes { queue.get_ns("wbt_lat_usec") } else { 0 }
}
