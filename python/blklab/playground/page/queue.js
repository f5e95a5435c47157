// The queue as the scheduler holds it: its lists, queues and trees, in its own words, each with its requests.

import { duration, size } from "./format.js";
import { write } from "./canvas.js";

const ROW = 34;
const LINE = 15;

// A fact's value in words; the unit is in its name.
export function factText([name, value]) {
  const said = (unit) => name.slice(0, -unit.length - 1).replaceAll("_", " ");
  if (typeof value === "boolean") return value ? name.replaceAll("_", " ") : "";
  if (name.endsWith("_ns")) return `${said("ns")} ${duration(Math.max(0, value))}`;
  if (name.endsWith("_sectors")) return `${said("sectors")} ${size(value * 512)}`;
  if (name.endsWith("_percent")) return `${said("percent")} ${value} %`;
  const shown = typeof value === "number" && !Number.isInteger(value) ? value.toPrecision(3) : value;
  return `${name.replaceAll("_", " ")} ${shown}`;
}

// Facts that the picture shows in another way, or that need the task's name.
const HIDDEN = new Set(["job", "task", "position_sector"]);

// All parts of a description that hold requests or say something, outermost first.
export function flattened(holding, depth = 0) {
  const own = { ...holding, depth };
  return [own, ...holding.parts.flatMap((part) => flattened(part, depth + 1))];
}

export class Queue {
  constructor(names) {
    this.names = names;
  }

  #title(part) {
    const task = part.facts.task_job ?? part.facts.job;
    const whose = task === undefined ? "" : ` of ${this.names[task] ?? "the kernel"}`;
    return `${part.kind.replaceAll("_", " ")}${whose}`;
  }

  draw(context, width, height, view, theme) {
    const byNumber = new Map(view.held.map((request) => [request.id, request]));
    write(context, theme, `${view.held_count} with the scheduler`, 10, 12, { colour: theme.text, weight: 600 });
    this.#tags(context, width, view, theme);
    const rows = flattened(view.holding);
    let y = 32;
    for (const part of rows) {
      const facts = Object.entries(part.facts).filter(([name]) => !HIDDEN.has(name)).map(factText).filter(Boolean);
      if (part.depth > 0 && part.requests.length === 0 && part.parts.length === 0 && !part.facts.in_service && y > height * 0.8) continue;
      if (y + LINE > height) {
        write(context, theme, "…", 10, height - 6);
        break;
      }
      y += this.#part(context, width, y, part, facts, byNumber, view, theme);
    }
    if (view.held_count === 0 && rows.length === 1) write(context, theme, "empty", 10, y + 8);
  }

  // One part: its title with facts, and below it its requests. Answers its height.
  #part(context, width, y, part, facts, byNumber, view, theme) {
    const x = 10 + part.depth * 14;
    const active = part.facts.in_service === true;
    const title = this.#title(part);
    write(context, theme, title, x, y + 4, { colour: active ? theme.accent : theme.text, weight: active ? 700 : 500 });
    const titleWidth = context.measureText(title).width;
    const line = facts.join(" · ");
    if (line) write(context, theme, line, x + titleWidth + 10, y + 4, { px: 11, most: width - x - titleWidth - 20 });
    if (part.requests.length === 0) return LINE + 4;
    if (part.kind.includes("sort")) this.#sorted(context, x, y + 17, width - x - 12, part, byNumber, view, theme);
    else this.#inOrder(context, x, y + 17, width - x - 12, part, byNumber, theme);
    return ROW;
  }

  // A list sorted by position: its requests along the device.
  #sorted(context, x, y, width, part, byNumber, view, theme) {
    const capacity = view.device.capacity_sectors;
    context.strokeStyle = theme.line;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, y + 5.5);
    context.lineTo(x + width, y + 5.5);
    context.stroke();
    for (const id of part.requests) {
      const request = byNumber.get(id);
      if (!request) continue;
      context.fillStyle = theme.task(request.job);
      context.fillRect(x + (request.sector / capacity) * (width - 4), y, 4, 11);
    }
    if (view.device.head_sector === null) return;
    const head = x + (view.device.head_sector / capacity) * (width - 4) + 2;
    context.fillStyle = theme.text;
    context.beginPath();
    context.moveTo(head - 4, y - 5);
    context.lineTo(head + 4, y - 5);
    context.lineTo(head, y);
    context.fill();
  }

  // Any other list: its requests in its order, the next one first. Reads are round, writes square.
  #inOrder(context, x, y, width, part, byNumber, theme) {
    const most = Math.floor(width / 13);
    const shown = part.requests.length > most ? part.requests.slice(0, most - 3) : part.requests;
    for (const [index, id] of shown.entries()) {
      const request = byNumber.get(id);
      context.fillStyle = theme.task(request?.job);
      if (request?.operation === "write") {
        context.fillRect(x + index * 13, y, 10, 10);
      } else {
        context.beginPath();
        context.arc(x + index * 13 + 5, y + 5, 5.2, 0, 2 * Math.PI);
        context.fill();
      }
    }
    const left = part.requests.length - shown.length;
    if (left) write(context, theme, `+${left}`, x + shown.length * 13 + 2, y + 6, { px: 11 });
  }

  #tags(context, width, view, theme) {
    const waiting = view.waiting_for_tag ? `, ${view.waiting_for_tag} wait for one` : "";
    const text = `${view.tags_used} of ${view.nr_requests} tags${waiting}`;
    write(context, theme, text, width - 10, 12, { align: "right", px: 11 });
  }
}
