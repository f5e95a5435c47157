// Figures of a finished stretch of a run, from the simulator's own records.

import { requestOf } from "./request.js";

// Runs one lane of a set-up for so many simulated seconds and answers as the Python package does.
export function measure(simulator, setup, lane, shipped, seconds) {
  const request = { ...requestOf(setup, lane, shipped, { timeline: false }), runtime_ns: seconds * 1e9 };
  return JSON.parse(simulator.simulate(JSON.stringify(request)));
}

const jobOf = (outcome, task) => outcome.jobs.find((job) => job.name === task);

// Bytes a second of a task, in all directions.
export function jobThroughput(outcome, task) {
  const job = jobOf(outcome, task);
  const bytes = job.directions.reduce((sum, one) => sum + one.bytes, 0);
  return (bytes * 1e9) / job.runtime_ns;
}

// A percentile (p50, p99, max) or the mean of a task's latencies, without calls of fsync.
export function jobLatencyNs(outcome, task, metric) {
  const bins = new Map();
  let [count, sum, max] = [0, 0, 0];
  for (const { direction, latency } of jobOf(outcome, task).directions) {
    if (direction === "sync") continue;
    for (const [ns, number] of Object.entries(latency.bins)) bins.set(Number(ns), (bins.get(Number(ns)) ?? 0) + number);
    count += latency.count;
    sum += latency.sum_ns;
    max = Math.max(max, latency.max_ns);
  }
  if (metric === "mean") return sum / count;
  if (metric === "max") return max;
  let below = Math.ceil(count * (metric === "p99" ? 0.99 : 0.5));
  for (const ns of [...bins.keys()].sort((one, other) => one - other)) {
    below -= bins.get(ns);
    if (below <= 0) return ns;
  }
  return max;
}
