// The same question for a real disk: a job file for fio and the command that compares schedulers with it.

import { controlGroups, jobFile } from "./request.js";

export const EXPORT_FILE = "playground.fio";

function decideBy(setup) {
  const reads = setup.tasks.some((task) => task.pattern.includes("r") && !task.pattern.endsWith("write"));
  return reads && setup.tasks.length > 1 ? "latency_p99" : "throughput";
}

// `size` is the size of each process's file as text; the playground's own files fill the simulated disk.
export function exportedJobs(setup, size) {
  const names = setup.tasks.map((task) => task.name).join(", ");
  const head = [
    `; purpose: ${names}, as set up in the playground on ${setup.device}.`,
    `; decide-by: ${decideBy(setup)}`,
  ];
  if (decideBy(setup) === "latency_p99") head.push(`; focus: ${focus(setup).name}`);
  return jobFile(setup, (task) => task.file || size, { head: [...head, ""], runtime: "10s" });
}

function focus(setup) {
  return setup.tasks.find((task) => task.pattern.endsWith("read")) ?? setup.tasks[0];
}

function schedulerText({ scheduler, tunables }) {
  const given = Object.entries(tunables).map(([name, value]) => `${name}=${value}`);
  return given.length ? `${scheduler}:${given.join(":")}` : scheduler;
}

const quoted = (text) => (/^[\w./:=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

// `target` is a path on the real disk, or sim:NAME.
export function compareLine(setup, target) {
  const words = ["blklab", "compare", target, "--workload", EXPORT_FILE];
  // A single scheduler is compared with all others that the disk offers.
  if (setup.lanes.length > 1) words.push("--schedulers", setup.lanes.map(schedulerText).join(","));
  for (const [group, attributes] of Object.entries(controlGroups(setup))) {
    for (const [name, value] of Object.entries(attributes)) words.push("--cgroup", `${group}:${name}=${value}`);
  }
  return words.map(quoted).join(" ");
}
