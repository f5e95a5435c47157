// A set-up: everything that decides a run, and nothing else. The link, the controls, the request to the
// simulator and the exports all read and write this one object.

export const PATTERNS = ["randread", "read", "randwrite", "write", "randrw"];
export const CLASSES = ["none", "rt", "be", "idle"];
export const SHARING = ["scheduler", "iocost", "ioband"];
export const MOST_TASKS = 8;
export const MOST_GROUPS = 6;
export const MOST_PROCESSES = 16;

const NAME = /^[a-z][a-z0-9-]{0,15}$/;

// Fields of a task besides its name and pattern: kind, default, bounds or choices.
export const TASK_FIELDS = {
  block: { kind: "size", default: "4k", least: 512, most: 4 << 20 },
  file: { kind: "size", default: "", least: 1 << 20, most: 2 ** 43 },
  depth: { kind: "count", default: 1, least: 1, most: 128 },
  processes: { kind: "count", default: 1, least: 1, most: MOST_PROCESSES },
  buffered: { kind: "flag", default: false },
  fsync: { kind: "count", default: 0, least: 0, most: 10000 },
  think: { kind: "count", default: 0, least: 0, most: 1000000 },
  begin: { kind: "count", default: 0, least: 0, most: 600000 },
  class: { kind: "choice", default: "none", choices: CLASSES },
  level: { kind: "count", default: 4, least: 0, most: 7 },
  group: { kind: "group", default: "" },
};

const UNITS = { k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 };

// Bytes of a size such as 4k; null for a text that is none.
export function parseSize(text) {
  const found = /^(\d{1,6})([kmgt]?)$/i.exec(String(text).trim());
  return found ? Number(found[1]) * (UNITS[found[2].toLowerCase()] ?? 1) : null;
}

export function newTask(name, pattern, given = {}) {
  const task = { name, pattern };
  for (const [field, { default: value }] of Object.entries(TASK_FIELDS)) task[field] = given[field] ?? value;
  return task;
}

export function newSetup(given = {}) {
  return {
    device: "hdd-7200",
    driveQueue: 0,
    lanes: [{ scheduler: "mq-deadline", tunables: {} }],
    tasks: [],
    groups: [],
    sharing: "scheduler",
    machine: "zero-cpu-time",
    dispatchWait: 0,
    seed: 1,
    ...given,
  };
}

export const copyOf = (setup) => structuredClone(setup);
export const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

export class SetupError extends Error {}

function demand(holds, message) {
  if (!holds) throw new SetupError(message);
}

function checkField(task, field, { kind, least, most, choices }, groups) {
  const value = task[field];
  const where = `${task.name}: ${field} ${JSON.stringify(value)}`;
  if (kind === "count") {
    const fits = Number.isInteger(value) && value >= least && value <= most;
    demand(fits, `${where} must be a whole number from ${least} to ${most}`);
  } else if (kind === "size") {
    const bytes = parseSize(value);
    const fits = value === "" || (bytes !== null && bytes >= least && bytes <= most && bytes % 512 === 0);
    demand(fits && (field !== "block" || value !== ""), `${where} must be a size such as 4k, 1m or 64g`);
  } else if (kind === "choice") {
    demand(choices.includes(value), `${where} must be one of ${choices.join(", ")}`);
  } else if (kind === "flag") {
    demand(typeof value === "boolean", `${where} must be 0 or 1`);
  } else {
    demand(value === "" || groups.has(value), `${where}: there is no such group`);
  }
}

function checkLane({ scheduler, tunables }, shipped) {
  const known = shipped.schedulers.find((one) => one.name === scheduler);
  const names = shipped.schedulers.map((one) => one.name).join(", ");
  demand(known, `there is no scheduler ${JSON.stringify(scheduler)}; there are ${names}`);
  for (const name of Object.keys(tunables)) {
    const has = known.tunables.some((one) => one.name === name);
    demand(has, `${scheduler} has no tunable ${JSON.stringify(name)}`);
  }
}

// Throws a SetupError that names the mistake. `shipped` lists devices and schedulers.
export function checkSetup(setup, shipped) {
  const devices = Object.keys(shipped.devices).join(", ");
  demand(Object.hasOwn(shipped.devices, setup.device), `there is no device ${JSON.stringify(setup.device)}; there are ${devices}`);
  demand([1, 2].includes(setup.lanes.length), "a set-up has one scheduler, or two side by side");
  for (const lane of setup.lanes) checkLane(lane, shipped);
  demand(setup.tasks.length >= 1 && setup.tasks.length <= MOST_TASKS, `a set-up has 1 to ${MOST_TASKS} tasks`);
  demand(setup.groups.length <= MOST_GROUPS, `a set-up has at most ${MOST_GROUPS} groups`);
  const groups = new Set();
  for (const { name, weight } of setup.groups) {
    demand(NAME.test(name), `group ${JSON.stringify(name)}: a name has small letters, digits and hyphens`);
    demand(!groups.has(name), `there are two groups ${name}`);
    demand(Number.isInteger(weight) && weight >= 1 && weight <= 1000, `${name}: a weight is 1 to 1000`);
    groups.add(name);
  }
  const tasks = new Set();
  for (const task of setup.tasks) {
    demand(NAME.test(task.name) && task.name !== "global", `task ${JSON.stringify(task.name)}: a name has small letters, digits and hyphens`);
    demand(!tasks.has(task.name), `there are two tasks ${task.name}`);
    demand(PATTERNS.includes(task.pattern), `${task.name}: the pattern must be one of ${PATTERNS.join(", ")}`);
    for (const [field, about] of Object.entries(TASK_FIELDS)) checkField(task, field, about, groups);
    tasks.add(task.name);
  }
  demand(SHARING.includes(setup.sharing), `weights are kept by one of ${SHARING.join(", ")}`);
  const depth = setup.driveQueue;
  demand(Number.isInteger(depth) && depth >= 0 && depth <= 256, "the drive's queue is 1 to 256 commands, 0 for what the drive has");
  const machines = Object.keys(shipped.machines).join(", ");
  demand(Object.hasOwn(shipped.machines, setup.machine), `there is no machine ${JSON.stringify(setup.machine)}; there are ${machines}`);
  const waits = Number.isInteger(setup.dispatchWait) && setup.dispatchWait >= 0 && setup.dispatchWait <= 1000;
  demand(waits, "the wait in dispatch is 0 to 1000 ms");
  demand(Number.isInteger(setup.seed) && setup.seed >= 0 && setup.seed < 2 ** 31, "the seed is a whole number below 2^31");
  return setup;
}
