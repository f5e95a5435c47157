// Draws the queue as the scheduler holds it: sorted lists with the head, lists by age, queues with their slices or
// budgets, tokens.

import { write } from "./canvas.js";
import { queueRows } from "./queue_rows.js";

const HEIGHTS = { head: 22, sorted: 38, list: 38, queue: 44, tokens: 54 };
const CHIP = 13;

// The height that a scheduler's rows take, in px, for as many queues as tasks may bring.
const LEAST = 140;
const MOST = 400;
const QUEUES = 4;
const HAS_QUEUES = new Set(["bfq", "cfq"]);

export function queueHeight(view, setup, names) {
  const { rows } = queueRows(view, names);
  const shown = rows.reduce((sum, row) => sum + HEIGHTS[row.type], 0);
  const coming = HAS_QUEUES.has(view.holding.kind) ? HEIGHTS.head * (1 + setup.groups.length) + HEIGHTS.queue * Math.min(QUEUES, names.processes.length + 1) : 0;
  return Math.min(MOST, Math.max(LEAST, 44 + Math.max(shown, coming)));
}

export class Queue {
  constructor(names) {
    this.names = names;
  }

  draw(context, width, height, view, theme) {
    Object.assign(this, { context, theme, view });
    write(context, theme, `${view.held_count} with the scheduler`, 12, 15, { colour: theme.text, weight: 600 });
    const room = width - 36 - context.measureText(`${view.held_count} with the scheduler`).width;
    const waiting = view.waiting_for_tag ? `, ${view.waiting_for_tag} wait for one` : "";
    write(context, theme, `${view.tags_used} of ${view.nr_requests} tags${waiting}`, width - 12, 15, { align: "right", px: 11, most: room });
    const { rows, byNumber } = queueRows(view, this.names);
    this.byNumber = byNumber;
    let y = 32;
    for (const [index, row] of rows.entries()) {
      if (y + HEIGHTS[row.type] > height - 4) {
        write(context, theme, `and ${rows.length - index} more`, 12, height - 10, { px: 11 });
        break;
      }
      const x = 12 + row.depth * 12;
      this.#title(row, x, y, width);
      // A list that is alone has all of the room.
      row.lines = rows.length === 1 ? Math.max(1, Math.floor((height - y - 24) / CHIP)) : 1;
      this[`_${row.type}`]?.(row, x, y + 17, width - x - 12);
      y += HEIGHTS[row.type];
    }
  }

  #title(row, x, y, width) {
    const { context, theme } = this;
    let from = x;
    if (row.type === "queue") {
      context.fillStyle = theme.task(row.job ?? -1);
      context.fillRect(x, y + 1, 10, 10);
      from += 16;
    }
    const colour = row.active ? theme.accent : theme.text;
    write(context, theme, row.text, from, y + 6, { colour, weight: row.active ? 700 : 500, most: width - from - 12 });
    const taken = Math.min(context.measureText(row.text).width, width - from - 12);
    const bar = row.bar ? this.#barWidth(width - x - 12) + 12 : 0;
    const room = Math.max(20, width - from - taken - 24 - bar);
    context.font = `11px ${theme.font}`;
    const detail = [row.detail, ...(row.shorter ?? [])].find((text) => text && context.measureText(text).width <= room) ?? row.detail;
    if (detail) write(context, theme, detail, from + taken + 10, y + 6, { px: 11, colour: row.late ? theme.bad : theme.quiet, most: room });
  }

  // Along the device, with the head above its place and the scheduler's next request marked.
  _sorted(row, x, y, width) {
    const { context, theme, view } = this;
    const place = (sector) => x + (sector / view.device.capacity_sectors) * (width - 5) + 2.5;
    context.strokeStyle = theme.line;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, y + 6);
    context.lineTo(x + width, y + 6);
    context.stroke();
    for (const id of row.requests) {
      const request = this.byNumber.get(id);
      if (!request) continue;
      context.fillStyle = theme.task(request.job);
      context.fillRect(place(request.sector) - 2, y, 4, 12);
      if (id === row.next) {
        context.strokeStyle = theme.text;
        context.strokeRect(place(request.sector) - 4.5, y - 2.5, 9, 17);
      }
    }
    if (view.device.head_sector === null) return;
    const head = place(view.device.head_sector);
    context.fillStyle = theme.text;
    context.beginPath();
    context.moveTo(head - 4, y - 5);
    context.lineTo(head + 4, y - 5);
    context.lineTo(head, y + 1);
    context.fill();
  }

  // In its order, the next one first.
  _list(row, x, y, width) {
    const perLine = Math.max(1, Math.floor(width / CHIP));
    const whole = Math.min(row.lines - 1, Math.ceil(row.requests.length / perLine) - 1);
    for (let line = 0; line < whole; line += 1) this.#chips(row.requests.slice(line * perLine, (line + 1) * perLine), x, y + line * CHIP, width);
    this.#chips(row.requests.slice(Math.max(0, whole) * perLine), x, y + Math.max(0, whole) * CHIP, width);
    if (row.requests.length === 0) write(this.context, this.theme, "none waits", x, y + 5, { px: 11 });
  }

  _queue(row, x, y, width) {
    const { context, theme } = this;
    const barWidth = this.#barWidth(width);
    if (row.bar) {
      context.fillStyle = theme.metal;
      context.fillRect(x + width - barWidth, y, barWidth, 10);
      context.fillStyle = theme.accent;
      context.fillRect(x + width - barWidth, y, barWidth * row.bar.part, 10);
      write(context, theme, row.bar.text, x + width, y - 11, { align: "right", px: 11, most: barWidth });
    }
    this.#chips(row.requests, x, y, width - barWidth - 8);
    if (row.requests.length === 0) write(context, theme, row.active ? "none waits; one is served or awaited" : "none waits", x, y + 5, { px: 11 });
  }

  #barWidth(width) {
    return Math.min(150, width * 0.34);
  }

  _tokens(row, x, y, width) {
    const { context, theme } = this;
    const cell = Math.min(9, (width - 2) / row.tokens);
    for (let token = 0; token < row.tokens; token += 1) {
      context.fillStyle = token < row.used ? theme.accent : theme.metal;
      context.fillRect(x + token * cell, y, Math.max(1, cell - 1.5), 9);
    }
    this.#chips(row.requests, x, y + 15, width);
  }

  // Requests side by side: reads round, writes square. Of a long list the beginning and the last one.
  #chips(requests, x, y, width) {
    const most = Math.max(1, Math.floor(width / CHIP));
    if (requests.length <= most) {
      for (const [index, id] of requests.entries()) this.#chip(id, x + index * CHIP, y);
      return;
    }
    const shown = Math.max(0, most - 5);
    for (const [index, id] of requests.slice(0, shown).entries()) this.#chip(id, x + index * CHIP, y);
    write(this.context, this.theme, `+${requests.length - shown - 1}`, x + shown * CHIP + 2, y + 5, { px: 11 });
    this.#chip(requests.at(-1), x + (shown + 3) * CHIP, y);
  }

  #chip(id, x, y) {
    const { context, theme } = this;
    const request = this.byNumber.get(id);
    context.fillStyle = theme.task(request?.job ?? -1);
    if (request?.operation === "write") {
      context.fillRect(x, y, 10, 10);
    } else {
      context.beginPath();
      context.arc(x + 5, y + 5, 5, 0, 2 * Math.PI);
      context.fill();
    }
  }
}
