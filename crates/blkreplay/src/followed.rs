//! The completions that the I/Os of a pool follow.
//!
//! Behind a pool of kernel workers there are other tasks, such as the programs on a loop device's file system, of which
//! the recording does not tell. If several of them compute at once, each I/O follows a completion of some time ago, and
//! others have come since. Were it to wait for the last of those, whichever came late would hold up all tasks.

use crate::completions::Completions;

/// For each I/O, by its place: the number of the pool's completions until the one that it follows.
///
/// That is the first one that no I/O has followed yet, as tasks mostly run in the order in which they wake, and not older
/// than an I/O usually takes. If there is none, the I/O follows what the one before it did. With none in flight it follows all.
///
/// # Arguments
/// * `queued_ns` - When each was queued, in that order.
/// * `done` - Of the pool's I/Os, those that were complete then.
pub fn followed(queued_ns: &[u64], done: &[u32], own: &Completions) -> Vec<u32> {
    let usual_ns = usual_latency_ns(queued_ns, own);
    let mut found = Vec::with_capacity(done.len());
    // Completions that were followed or that are too old, and those until the one that the last I/O followed.
    let (mut passed, mut last) = (0, 0);
    for (place, (queued_ns, done)) in queued_ns.iter().zip(done).enumerate() {
        let is_old = |count: u32| {
            let time_ns = own.time_ns(count + 1).unwrap_or(u64::MAX);
            time_ns.saturating_add(usual_ns) < *queued_ns
        };
        if *done as usize == place {
            (passed, last) = (*done, *done);
        } else {
            while passed < *done && is_old(passed) {
                passed += 1;
            }
            if passed < *done {
                passed += 1;
                last = passed;
            }
        }
        found.push(last);
    }
    found
}

/// The median.
fn usual_latency_ns(queued_ns: &[u64], own: &Completions) -> u64 {
    let latencies = queued_ns.iter().zip(&own.ranks).filter_map(|(queued_ns, rank)| {
        Some(own.time_ns(rank + 1).filter(|time_ns| *time_ns != u64::MAX)? - queued_ns)
    });
    let mut latencies: Vec<u64> = latencies.collect();
    latencies.sort_unstable();
    latencies.get(latencies.len() / 2).copied().unwrap_or(0)
}
