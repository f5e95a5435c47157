// What happened lately, per task: rings of bins at several widths, and the last rows themselves.

export const WINDOWS_NS = [2e6, 8e6, 32e6, 128e6, 512e6, 2e9, 8e9, 32e9];
// The narrowest window that reaches from the beginning to a moment.
export const holding = (nowNs) => WINDOWS_NS.find((windowNs) => windowNs >= nowNs) ?? WINDOWS_NS.at(-1);
export const BINS = 200;
const RING = BINS + 40;
const PER_OCTAVE = 8;
const BUCKETS = 30 * PER_OCTAVE;
const RECENT = 3000;

// Buckets of latency by powers of two, eight to an octave, from 1 us on.
const bucketOf = (ns) => Math.min(BUCKETS - 1, Math.max(0, Math.floor(PER_OCTAVE * Math.log2(ns / 1000))));
const nsOfBucket = (bucket) => 1000 * 2 ** ((bucket + 0.5) / PER_OCTAVE);

class Level {
  constructor(windowNs, tasks) {
    this.windowNs = windowNs;
    this.binNs = windowNs / BINS;
    this.tasks = tasks;
    this.stamps = new Float64Array(RING).fill(-1);
    this.heldNs = new Float64Array(RING * tasks);
    this.bytes = new Float64Array(RING * tasks);
    this.latency = new Uint16Array(RING * tasks * BUCKETS);
    this.newest = 0;
  }

  // The place of a bin, emptied if an older bin had it; -1 if the bin itself is too old.
  #slot(bin) {
    const slot = bin % RING;
    if (this.stamps[slot] === bin) return slot;
    if (this.stamps[slot] > bin) return -1;
    this.stamps[slot] = bin;
    this.newest = Math.max(this.newest, bin);
    const [from, to] = [slot * this.tasks, (slot + 1) * this.tasks];
    this.heldNs.fill(0, from, to);
    this.bytes.fill(0, from, to);
    this.latency.fill(0, from * BUCKETS, to * BUCKETS);
    return slot;
  }

  held(task, fromNs, toNs) {
    const last = Math.floor(toNs / this.binNs);
    const first = Math.max(Math.floor(fromNs / this.binNs), last - RING + 1, 0);
    for (let bin = first; bin <= last; bin += 1) {
      const slot = this.#slot(bin);
      if (slot < 0) continue;
      const within = Math.min(toNs, (bin + 1) * this.binNs) - Math.max(fromNs, bin * this.binNs);
      this.heldNs[slot * this.tasks + task] += Math.max(0, within);
    }
  }

  ended(task, atNs, bytes, latencyNs) {
    const slot = this.#slot(Math.floor(atNs / this.binNs));
    if (slot < 0) return;
    const place = slot * this.tasks + task;
    this.bytes[place] += bytes;
    this.latency[place * BUCKETS + bucketOf(latencyNs)] += 1;
  }

  forgetAfter(nowNs) {
    const last = Math.floor(nowNs / this.binNs);
    for (let slot = 0; slot < RING; slot += 1) if (this.stamps[slot] > last) this.stamps[slot] = -1;
    this.newest = Math.min(this.newest, last);
  }

  // The figures of the bins from `first` to `last` inclusive, summed: held, bytes, and counts of latency.
  sum(task, first, last) {
    let [heldNs, bytes, ios] = [0, 0, 0];
    const counts = new Uint32Array(BUCKETS);
    for (let bin = Math.max(0, first); bin <= last; bin += 1) {
      const slot = bin % RING;
      if (this.stamps[slot] !== bin) continue;
      const place = slot * this.tasks + task;
      heldNs += this.heldNs[place];
      bytes += this.bytes[place];
      for (let bucket = 0, from = place * BUCKETS; bucket < BUCKETS; bucket += 1) {
        const count = this.latency[from + bucket];
        counts[bucket] += count;
        ios += count;
      }
    }
    return { heldNs, bytes, ios, counts };
  }
}

// The latency below which a share of counted I/Os lies, to 9 %; null if there are none.
export function percentileNs({ counts, ios }, share) {
  if (ios === 0) return null;
  let below = Math.max(1, Math.ceil(ios * share));
  for (let bucket = 0; bucket < BUCKETS; bucket += 1) {
    below -= counts[bucket];
    if (below <= 0) return nsOfBucket(bucket);
  }
  return null;
}

// The last rows, oldest first.
class Recent {
  constructor() {
    this.rows = [];
  }

  add(row) {
    this.rows.push(row);
    if (this.rows.length > 2 * RECENT) this.rows.splice(0, this.rows.length - RECENT);
  }
}

// The history of a lane. Place `tasks`, after those of the tasks, is the kernel's: writeback and flushes.
export class History {
  constructor(tasks) {
    this.tasks = tasks;
    this.levels = WINDOWS_NS.map((windowNs) => new Level(windowNs, tasks + 1));
    this.requests = new Recent();
    this.ios = new Recent();
    this.lastCompleteNs = 0;
  }

  // A request left the device. One head serves one request at a time, so its time began no earlier than the
  // last request's ended; flash works on many at once.
  request(row, oneHead) {
    const fromNs = oneHead ? Math.max(row.dispatch_ns, this.lastCompleteNs) : row.dispatch_ns;
    this.lastCompleteNs = row.complete_ns;
    const task = Math.min(row.job, this.tasks);
    for (const level of this.levels) level.held(task, fromNs, row.complete_ns);
    this.requests.add({
      fromNs,
      toNs: row.complete_ns,
      sector: row.sector,
      end: row.sector + row.sectors,
      task: row.job,
      operation: row.operation,
    });
  }

  io(row) {
    if (row.job >= this.tasks) return;
    const latencyNs = Math.max(1, row.end_ns - row.start_ns);
    for (const level of this.levels) level.ended(row.job, row.end_ns, row.bytes, latencyNs);
    this.ios.add({ atNs: row.end_ns, latencyNs, task: row.job });
  }

  // Time was turned back.
  forgetAfter(nowNs) {
    for (const level of this.levels) level.forgetAfter(nowNs);
    this.requests.rows = this.requests.rows.filter((row) => row.toNs <= nowNs);
    this.ios.rows = this.ios.rows.filter((row) => row.atNs <= nowNs);
    this.lastCompleteNs = this.requests.rows.at(-1)?.toNs ?? 0;
  }

  // The window whose width is nearest.
  level(windowNs) {
    const far = (level) => Math.abs(Math.log(level.windowNs / windowNs));
    return this.levels.reduce((best, level) => (far(level) < far(best) ? level : best));
  }
}
