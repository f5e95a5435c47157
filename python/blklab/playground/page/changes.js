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

// Changes for each lane, in order; null if the run must start anew.
export function changeBetween(before, after) {
  if (!isSame(frame(before), frame(after))) return null;
  const forAll = [];
  for (const [job, task] of after.tasks.entries()) {
    const was = before.tasks[job];
    if (LIVE_TASK_FIELDS.some((field) => was[field] !== task[field])) {
      forAll.push({ kind: "priority", job, class: task.class, level: task.level });
    }
  }
  for (const [index, { name, weight }] of after.groups.entries()) {
    if (before.groups[index].weight !== weight) forAll.push({ kind: "group", group: name, attributes: groupAttributes(after.sharing, weight) });
  }
  const changes = [];
  for (const [lane, { scheduler, tunables }] of after.lanes.entries()) {
    const was = before.lanes[lane];
    if (was.scheduler !== scheduler) changes.push({ lane, change: { kind: "scheduler", scheduler, tunables } });
    else if (!isSame(was.tunables, tunables)) {
      const names = new Set([...Object.keys(was.tunables), ...Object.keys(tunables)]);
      for (const name of names) {
        if (was.tunables[name] !== tunables[name]) changes.push({ lane, change: { kind: "tunable", name, value: tunables[name] ?? null } });
      }
    }
    for (const change of forAll) changes.push({ lane, change });
  }
  return changes;
}
