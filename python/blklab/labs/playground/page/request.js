// From a set-up to the request that the simulator takes, and to the job file that fio takes.

import { parseSize } from "./setup.js";

// Runs go on until the page ends them; nobody watches a disk for longer than this.
const RUNTIME = "6h";

// The largest file that spreads all of them over the device, in whole MiB; each process has its own.
export function fileBytes(setup, task, capacity) {
  if (task.file !== "") return parseSize(task.file);
  const processes = setup.tasks.reduce((sum, one) => sum + one.processes, 0);
  const part = Math.floor((capacity * 0.95) / processes / 2 ** 20) * 2 ** 20;
  return Math.max(2 ** 20, part);
}

function ioengine(task) {
  return task.buffered || task.depth === 1 ? "psync" : "libaio";
}

const PRIOCLASS = { rt: 1, be: 2, idle: 3 };

function section(setup, task, size) {
  const lines = [`[${task.name}]`, `readwrite=${task.pattern}`, `blocksize=${task.block}`, `size=${size}`];
  if (task.pattern.startsWith("rand")) lines.push("norandommap");
  lines.push(`direct=${task.buffered ? 0 : 1}`, `ioengine=${ioengine(task)}`);
  if (!task.buffered && task.depth > 1) lines.push(`iodepth=${task.depth}`);
  if (task.processes > 1) lines.push(`numjobs=${task.processes}`);
  if (task.fsync > 0) lines.push(`fsync=${task.fsync}`);
  if (task.think > 0) lines.push(`thinktime=${task.think}`);
  if (task.begin > 0) lines.push(`startdelay=${task.begin}ms`);
  if (task.class !== "none") lines.push(`prioclass=${PRIOCLASS[task.class]}`);
  if (task.class === "rt" || task.class === "be") lines.push(`prio=${task.level}`);
  if (task.group !== "") lines.push(`cgroup=${task.group}`);
  return lines.join("\n");
}

// The job file. `sizeOf` gives the size of a task's files as text.
export function jobFile(setup, sizeOf, { head = [], runtime = RUNTIME } = {}) {
  const sections = setup.tasks.map((task) => section(setup, task, sizeOf(task)));
  return [...head, "[global]", "time_based", `runtime=${runtime}`, "", sections.join("\n\n"), ""].join("\n");
}

// Attributes of control groups, by the mechanism that keeps the weights.
export function controlGroups(setup) {
  const groups = {};
  if (setup.groups.length === 0) return groups;
  if (setup.sharing === "iocost") groups["/"] = { "io.cost.qos": "enable=1 ctrl=user rpct=0 wpct=0 min=100 max=100" };
  if (setup.sharing === "ioband") groups["/"] = { "ioband.policy": "weight" };
  for (const { name, weight } of setup.groups) groups[name] = groupAttributes(setup.sharing, weight);
  return groups;
}

export function groupAttributes(sharing, weight) {
  const text = String(weight);
  if (sharing === "iocost") return { "io.weight": text };
  if (sharing === "ioband") return { "ioband.weight": text };
  return { "io.bfq.weight": text, "io.weight": text };
}

// Processors and what computing costs on them, with the wait that a patch with mdelay() adds to each dispatch.
function processors(setup, scheduler, shipped) {
  const { table } = shipped.machines[setup.machine];
  if (setup.dispatchWait === 0) return table;
  const costs = table.schedulers[scheduler] ?? {};
  const dispatch_ns = (costs.dispatch_ns ?? 0) + setup.dispatchWait * 1e6;
  return { ...table, schedulers: { ...table.schedulers, [scheduler]: { ...costs, dispatch_ns } } };
}

// Changed parameters of the device: how many commands it queues itself.
export function deviceParameters(setup) {
  return setup.driveQueue ? { queue_depth: String(setup.driveQueue) } : {};
}

// The request of one lane.
export function requestOf(setup, lane, shipped, { timeline = true } = {}) {
  const { profile, capacity_bytes: capacity } = shipped.devices[setup.device];
  const { scheduler, tunables } = setup.lanes[lane];
  const text = jobFile(setup, (task) => String(fileBytes(setup, task, capacity)));
  return {
    device: { profile, source: `${setup.device}.toml`, parameters: deviceParameters(setup) },
    scheduler,
    tunables,
    cgroups: controlGroups(setup),
    jobs: { text, source: "playground" },
    seed: setup.seed,
    processors: processors(setup, scheduler, shipped),
    timeline,
  };
}
