// The set-up as the part of a link behind #, readable and short: fields with their defaults are left out.

import { newSetup, newTask, SetupError, TASK_FIELDS } from "./setup.js";

const plain = (text) => encodeURIComponent(text).replaceAll("%2C", ",").replaceAll("%3A", ":");

function taskText(task) {
  const fields = Object.entries(TASK_FIELDS)
    .filter(([field, about]) => task[field] !== about.default)
    .map(([field]) => `${field}:${task[field] === true ? 1 : task[field]}`);
  return [task.name, task.pattern, ...fields].join(",");
}

export function toHash(setup) {
  const parts = [["device", setup.device]];
  if (setup.driveQueue) parts.push(["drive-queue", setup.driveQueue]);
  for (const { scheduler, tunables } of setup.lanes) {
    const given = Object.entries(tunables).map(([name, value]) => `${name}:${value}`);
    parts.push(["scheduler", [scheduler, ...given].join(",")]);
  }
  for (const task of setup.tasks) parts.push(["task", taskText(task)]);
  for (const { name, weight } of setup.groups) parts.push(["group", `${name},${weight}`]);
  if (setup.sharing !== "scheduler") parts.push(["sharing", setup.sharing]);
  if (setup.machine !== "zero-cpu-time") parts.push(["machine", setup.machine]);
  if (setup.dispatchWait) parts.push(["dispatch-wait", setup.dispatchWait]);
  if (setup.seed !== 1) parts.push(["seed", setup.seed]);
  return `#${parts.map(([name, value]) => `${name}=${plain(String(value))}`).join("&")}`;
}

const pair = (text) => {
  const at = text.indexOf(":");
  if (at < 1) throw new SetupError(`${JSON.stringify(text)} in the link is not NAME:VALUE`);
  return [text.slice(0, at), text.slice(at + 1)];
};

const whole = (text) => (/^\d{1,9}$/.test(text) ? Number(text) : NaN);

function readTask(text) {
  const [name, pattern, ...fields] = text.split(",");
  const given = {};
  for (const [field, value] of fields.map(pair)) {
    const about = TASK_FIELDS[field];
    if (!about || !Object.hasOwn(TASK_FIELDS, field)) throw new SetupError(`${name}: the link has an unknown field ${JSON.stringify(field)}`);
    if (about.kind === "count") given[field] = whole(value);
    else if (about.kind === "flag") given[field] = value === "1" ? true : value === "0" ? false : value;
    else given[field] = value;
  }
  return newTask(name, pattern, given);
}

const READERS = {
  device: (setup, text) => { setup.device = text; },
  scheduler: (setup, text) => {
    const [scheduler, ...tunables] = text.split(",");
    setup.lanes.push({ scheduler, tunables: Object.fromEntries(tunables.map(pair)) });
  },
  task: (setup, text) => { setup.tasks.push(readTask(text)); },
  group: (setup, text) => {
    const [name, weight = ""] = text.split(",");
    setup.groups.push({ name, weight: whole(weight) });
  },
  sharing: (setup, text) => { setup.sharing = text; },
  "drive-queue": (setup, text) => { setup.driveQueue = whole(text); },
  machine: (setup, text) => { setup.machine = text; },
  "dispatch-wait": (setup, text) => { setup.dispatchWait = whole(text); },
  seed: (setup, text) => { setup.seed = whole(text); },
};

// The set-up of a link, unchecked; null if the link holds none.
export function fromHash(hash) {
  const text = hash.replace(/^#/, "");
  if (!text.includes("=")) return null;
  const setup = newSetup({ lanes: [] });
  for (const part of text.split("&")) {
    const at = part.indexOf("=");
    const name = part.slice(0, Math.max(at, 0));
    if (!Object.hasOwn(READERS, name)) throw new SetupError(`the link has an unknown part ${JSON.stringify(part.slice(0, 40))}`);
    let value;
    try {
      value = decodeURIComponent(part.slice(at + 1));
    } catch {
      throw new SetupError(`${name} in the link cannot be read`);
    }
    READERS[name](setup, value);
  }
  return setup;
}
