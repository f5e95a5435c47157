//! The least that a simulation could cost: an event queue, requests in a
//! slab, flash dies and a histogram, without any of Linux.
//!
//! It is the yardstick for the host: one run measures it together with the
//! simulator, because a host's speed varies more from day to day than most
//! changes to the program make.

const DIES: usize = 64;
const BLOCKS: u64 = 244_190_646;
const READ_NS: [u64; 3] = [29_800, 35_800, 41_800];
const HOST_NS: u64 = 1_000;
const BUCKETS_PER_GROUP: u64 = 64;

#[derive(Clone, Copy)]
struct Request {
    block: u64,
    issued_ns: u64,
}

/// Events by (time, order of creation): a heap with four children a node.
#[derive(Default)]
struct Heap {
    keys: Vec<u128>,
    entered: u32,
}

impl Heap {
    /// The subject's highest bit tells the two kinds of event apart.
    fn push(&mut self, time_ns: u64, subject: u32) {
        let key = u128::from(time_ns) << 64 | u128::from(self.entered) << 32 | u128::from(subject);
        self.entered = self.entered.wrapping_add(1);
        let mut place = self.keys.len();
        self.keys.push(key);
        while place > 0 {
            let parent = (place - 1) / 4;
            if self.keys[parent] <= key {
                break;
            }
            self.keys[place] = self.keys[parent];
            place = parent;
        }
        self.keys[place] = key;
    }

    fn pop(&mut self) -> Option<(u64, u32)> {
        let first = *self.keys.first()?;
        let key = self.keys.pop()?;
        let end = self.keys.len();
        if end > 0 {
            let mut place = 0;
            loop {
                let children = 4 * place + 1..(4 * place + 5).min(end);
                let Some(least) = children.min_by_key(|&child| self.keys[child]) else { break };
                if key <= self.keys[least] {
                    break;
                }
                self.keys[place] = self.keys[least];
                place = least;
            }
            self.keys[place] = key;
        }
        Some(((first >> 64) as u64, first as u32))
    }
}

const COMPLETES: u32 = 1 << 31;

/// Runs `count` random reads, `depth` at a time; gives the simulated time and the mean latency.
pub fn simulate(count: u64, depth: u32) -> (u64, u64) {
    let mut heap = Heap::default();
    let mut slab: Vec<Request> = Vec::new();
    let mut free: Vec<u32> = Vec::new();
    let mut dies = [0_u64; DIES];
    let mut histogram = vec![0_u64; 64 * BUCKETS_PER_GROUP as usize];
    let (mut random, mut left, mut now_ns, mut sum_ns) = (0x9e37_79b9_7f4a_7c15_u64, count, 0, 0);
    for _ in 0..depth {
        heap.push(0, 0);
    }
    while let Some((time_ns, subject)) = heap.pop() {
        now_ns = time_ns;
        if subject & COMPLETES == 0 {
            if left == 0 {
                continue;
            }
            left -= 1;
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let block = ((u128::from(random) * u128::from(BLOCKS)) >> 64) as u64;
            let request = Request { block, issued_ns: now_ns };
            let id = if let Some(id) = free.pop() {
                slab[id as usize] = request;
                id
            } else {
                slab.push(request);
                (slab.len() - 1) as u32
            };
            let die = &mut dies[(block % DIES as u64) as usize];
            *die = now_ns.max(*die) + READ_NS[(block / DIES as u64 % 3) as usize];
            heap.push(*die, id | COMPLETES);
        } else {
            let id = subject & !COMPLETES;
            let request = slab[id as usize];
            std::hint::black_box(request.block);
            free.push(id);
            let latency_ns = now_ns - request.issued_ns;
            histogram[bucket_of(latency_ns)] += 1;
            sum_ns += latency_ns;
            heap.push(now_ns + HOST_NS, 0);
        }
    }
    assert_eq!(histogram.iter().sum::<u64>(), count);
    (now_ns, sum_ns / count)
}

/// 64 buckets for each power of two.
fn bucket_of(ns: u64) -> usize {
    let shift = (ns | BUCKETS_PER_GROUP).ilog2() - BUCKETS_PER_GROUP.ilog2();
    (u64::from(shift) * BUCKETS_PER_GROUP + (ns >> shift)) as usize
}
