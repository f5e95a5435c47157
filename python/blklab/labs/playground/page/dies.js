// A flash drive: its dies, each as full as it has work left, and the commands that the drive has.

import { write } from "./canvas.js";

const COMMANDS = 256;

export class Dies {
  constructor(lane) {
    this.channels = Number(lane.device.parameters.channels ?? 1);
    // The work that each die began with, to show how much of it is left.
    this.began = [];
  }

  draw(context, width, height, view, theme) {
    const { units } = view.device;
    const columns = Math.max(1, Math.min(this.channels, units.length));
    const rows = Math.ceil(units.length / columns);
    const top = 30;
    const gridHeight = height * 0.66 - top;
    const gap = 3;
    const cellWidth = (width - 24 - gap * (columns - 1)) / columns;
    const cellHeight = (gridHeight - gap * (rows - 1)) / rows;
    const atWork = units.filter((unit) => Math.max(unit.reads_end_ns, unit.work_end_ns) > view.now_ns).length;
    write(context, theme, `${units.length} dies on ${columns} channels, ${atWork} at work`, 12, 15, { colour: theme.text, weight: 600 });
    for (const [die, unit] of units.entries()) {
      const x = 12 + (die % columns) * (cellWidth + gap);
      const y = top + Math.floor(die / columns) * (cellHeight + gap);
      context.fillStyle = theme.metal;
      context.fillRect(x, y, cellWidth, cellHeight);
      // A read suspends a program, so a die that has both reads.
      const reads = unit.reads_end_ns > view.now_ns;
      const until = reads ? unit.reads_end_ns : unit.work_end_ns;
      const leftNs = until - view.now_ns;
      if (leftNs <= 0) continue;
      const began = this.began[die];
      if (began?.until !== until) this.began[die] = { until, ns: Math.max(leftNs, began?.until > view.now_ns ? began.ns : 0) };
      const part = Math.min(1, leftNs / this.began[die].ns);
      context.fillStyle = reads ? theme.read : theme.program;
      context.fillRect(x, y + cellHeight * (1 - part), cellWidth, cellHeight * part);
    }
    const legendY = top + gridHeight + 14;
    this.#legend(context, theme, legendY);
    this.#commands(context, theme, width, legendY + 18, height, view);
  }

  #legend(context, theme, y) {
    let x = 12;
    for (const [colour, text] of [[theme.read, "reads"], [theme.program, "programs or erases"]]) {
      context.fillStyle = colour;
      context.fillRect(x, y - 5, 10, 10);
      write(context, theme, text, x + 15, y);
      x += 15 + context.measureText(text).width + 18;
    }
  }

  #commands(context, theme, width, y, height, view) {
    const all = view.in_device;
    write(context, theme, `${view.in_device_count} in the drive`, 12, y + 6, { colour: theme.text });
    const room = Math.max(10, height - y - 24);
    const area = (width - 24) * room;
    const cell = Math.max(4, Math.min(14, Math.floor(Math.sqrt(area / Math.max(1, all.length)) - 2)));
    const perRow = Math.max(1, Math.floor((width - 24) / (cell + 2)));
    for (const [index, request] of all.slice(0, COMMANDS).entries()) {
      context.fillStyle = theme.task(request.job);
      context.fillRect(12 + (index % perRow) * (cell + 2), y + 18 + Math.floor(index / perRow) * (cell + 2), cell, cell);
    }
  }
}
