// From a scheduler's description of its queue to the rows that show it.

import { duration, size } from "./format.js";

const SIDES = new Set(["reads", "writes", "sync", "async"]);
const CLASS_BRIEF = { "real-time": "rt", "best-effort": "be" };

// The names of tasks and groups, by the simulator's numbers.
export class Names {
  constructor(setup) {
    this.jobs = setup.tasks.map(({ name }) => name);
    this.processes = setup.tasks.flatMap((task, job) => Array.from({ length: task.processes }, (_, one) => ({ job, one, many: task.processes > 1 })));
    this.groups = ["root", ...setup.groups.map(({ name }) => name).sort()];
  }

  job(task) {
    return this.processes[task]?.job ?? null;
  }

  // A process by its number; kernel threads come after those of the set-up.
  task(task) {
    const process = this.processes[task];
    if (!process) return "writeback";
    return process.many ? `${this.jobs[process.job]} ${process.one + 1}` : this.jobs[process.job];
  }

  group(group) {
    return this.groups[group] ?? `group ${group}`;
  }
}

const until = (ns, nowNs) => duration(Math.max(0, ns - nowNs));

// What the scheduler as a whole is about, in words.
function state(kind, facts, nowNs, names) {
  const said = [];
  if (facts.wait === "for next") said.push(`keeps the arm for ${names.task(facts.awaited_task)}: ${until(facts.wait_until_ns, nowNs)} left`);
  if (facts.wait === "for completion") said.push(`waits for the request of ${names.task(facts.awaited_task)}`);
  if (facts.idling && facts.idling_until_ns !== undefined) said.push(`keeps the disk idle for the next request: ${until(facts.idling_until_ns, nowNs)} left`);
  if (facts.direction) said.push(`serves ${facts.direction}`);
  if (typeof facts.batch === "number") said.push(`request ${facts.batch} of the batch`);
  if (typeof facts.batch === "string") said.push(`batch of ${facts.batch}, ${until(facts.batch_end_ns, nowNs)} left`);
  if (facts.starved) said.push(`writes passed over ${facts.starved} ${facts.starved === 1 ? "time" : "times"}`);
  if (facts.raised_queues) said.push(`${facts.raised_queues === 1 ? "one queue has a raised weight" : `${facts.raised_queues} queues have raised weights`}`);
  return said.join(" · ");
}

function lists(part) {
  const of = (kind) => part.parts.find((one) => one.kind === kind)?.requests ?? [];
  return { sorted: of("sorted"), fifo: of("fifo") };
}

function sideRows(part, depth, nowNs) {
  const { sorted, fifo } = lists(part);
  const deadline = part.facts.first_deadline_ns;
  const late = deadline !== undefined && deadline < nowNs;
  const when = deadline === undefined ? "" : late ? `deadline passed ${duration(nowNs - deadline)} ago` : `first deadline in ${duration(deadline - nowNs)}`;
  return [
    { type: "sorted", depth, text: `${part.kind} by position`, requests: sorted, next: part.facts.next },
    { type: "list", depth, text: `${part.kind} by age`, detail: when, late, requests: fifo },
  ];
}

function slice(facts, nowNs) {
  if (facts.budget !== undefined) {
    if (!facts.in_service) return null;
    return { part: Math.min(1, facts.service / Math.max(1, facts.budget)), text: `${size(facts.service * 512)} of ${size(facts.budget * 512)}` };
  }
  const length = facts.slice_end_ns - facts.slice_start_ns;
  if (!facts.active || !(length > 0) || facts.slice_is_new) return null;
  return { part: Math.min(1, Math.max(0, (nowNs - facts.slice_start_ns) / length)), text: `slice of ${duration(length)}` };
}

function queueRow(part, depth, context) {
  const { nowNs, names, byNumber } = context;
  const { facts } = part;
  const { sorted, fifo } = lists(part);
  const active = facts.in_service === true || facts.active === true;
  const served = active ? context.activeTask : undefined;
  const known = facts.task ?? fifo.map((id) => byNumber.get(id)?.task).find((task) => task !== undefined) ?? served;
  const job = facts.sync && known !== undefined ? names.job(known) : null;
  const one = known === undefined ? "a task" : names.task(known);
  const who = facts.sync ? (facts.shared ? `${one} and others` : one) : "writes without a waiter";
  const level = facts.class === "idle" ? "idle class" : `${facts.class} ${facts.level}`;
  const weight = facts.weight === undefined ? "" : `, weight ${facts.weight}`;
  const raised = facts.raised ? `, raised: ${facts.raised}` : "";
  const brief = facts.class === "idle" ? "idle" : `${CLASS_BRIEF[facts.class] ?? facts.class} ${facts.level}`;
  return {
    type: "queue",
    depth,
    job,
    text: who,
    detail: `${level}${weight}${raised}`,
    shorter: [`${brief}${weight}${facts.raised ? ", raised" : ""}`, `${brief}${weight}`, brief],
    active,
    bar: slice(facts, nowNs),
    requests: fifo.length >= sorted.length ? fifo : sorted,
  };
}

function domainRow(part, depth) {
  const { name, tokens, tokens_used: used } = part.facts;
  const requests = part.parts.flatMap((one) => one.requests);
  const waits = part.parts.some((one) => one.facts.waits_for_token);
  return { type: "tokens", depth, text: String(name), detail: `${used} of ${tokens} tokens${waits ? ", waits for one" : ""}`, used, tokens, active: part.facts.in_turn, requests };
}

function partRows(part, depth, context) {
  const { nowNs, names } = context;
  const below = (deeper) => part.parts.flatMap((one) => partRows(one, deeper, context));
  if (SIDES.has(part.kind)) return sideRows(part, depth, nowNs);
  if (part.kind === "domain") return [domainRow(part, depth)];
  if (part.kind === "queue") return [queueRow(part, depth, context)];
  if (part.kind === "class") return [{ type: "head", depth, text: `class ${part.facts.class}` }, ...below(depth + 1)];
  if (part.kind === "group" && part.facts.group !== 0) {
    const weight = part.facts.weight === undefined ? "" : `weight ${part.facts.weight}`;
    return [{ type: "head", depth, text: names.group(part.facts.group), detail: weight }, ...below(depth + 1)];
  }
  if (part.parts.length === 0) return [{ type: "list", depth, text: "in order of arrival", requests: part.requests }];
  return below(depth);
}

// The rows of a view; those that are served first stand first.
export function queueRows(view, names) {
  const { holding, now_ns: nowNs } = view;
  const byNumber = new Map(view.held.map((request) => [request.id, request]));
  const context = { nowNs, names, byNumber, activeTask: holding.facts.active_task };
  const text = state(holding.kind, holding.facts, nowNs, names);
  const head = text ? [{ type: "head", depth: 0, text }] : [];
  const rows = holding.parts.length
    ? holding.parts.flatMap((part) => partRows(part, 0, context))
    : [{ type: "list", depth: 0, text: "in order of arrival", requests: holding.requests }];
  return { rows: [...head, ...rows], byNumber };
}
