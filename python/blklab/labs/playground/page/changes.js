// What a changed set-up asks of a running simulation, if Linux can change it while it runs.

import { groupAttributes } from "./request.js";
import { copyOf, isSame } from "./setup.js";

const LIVE_TASK_FIELDS = ["class", "level"];

// The set-up without what can change while it runs.
function frame(setup) {
  const rest = copyOf(setup);
  for (const task of rest.tasks) for (const field of LIVE_TASK_FIELDS) delete task[field];
  for (const group of rest.groups) delete group.weight;
  rest.lanes = rest.lanes.length;
  return rest;
}

// A level means something in two classes only; without a class it is that of nice 0.
function priority({ name, class: kind, level }) {
  return { kind: "priority", task: name, class: kind, level: kind === "none" ? 4 : level };
}

// Changes of everything that both lanes have: priorities and weights.
function common(before, after) {
  const changes = [];
  for (const [index, task] of after.tasks.entries()) {
    if (!isSame(priority(before.tasks[index]), priority(task))) changes.push(priority(task));
  }
  for (const [index, { name, weight }] of after.groups.entries()) {
    if (before.groups[index].weight === weight) continue;
    for (const [attribute, value] of Object.entries(groupAttributes(after.sharing, weight))) {
      changes.push({ kind: "group", group: name, attribute, value });
    }
  }
  return changes;
}

// Changes of one lane's scheduler. A tunable that is given no longer gets its default.
function ofScheduler(was, is, shipped) {
  if (was.scheduler !== is.scheduler) return [{ kind: "scheduler", ...is }];
  const about = shipped.schedulers.find((one) => one.name === is.scheduler);
  const names = new Set([...Object.keys(was.tunables), ...Object.keys(is.tunables)]);
  return [...names]
    .filter((name) => was.tunables[name] !== is.tunables[name])
    .map((name) => ({
      kind: "tunable",
      name,
      value: is.tunables[name] ?? String(about.tunables.find((one) => one.name === name).default),
    }));
}

// The changes of each lane, in order; null if the run must start anew.
export function changesBetween(before, after, shipped) {
  if (!isSame(frame(before), frame(after))) return null;
  const forAll = common(before, after);
  return after.lanes.map((is, lane) => [...ofScheduler(before.lanes[lane], is, shipped), ...forAll]);
}
