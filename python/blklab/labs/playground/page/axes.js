// The frame of a chart over time: title, grid, labels, and the places of values.

import { niceStep, timeTick } from "./format.js";
import { write } from "./canvas.js";

export const LEFT = 62;
const TICK = 52; // px from one label of time to the next, at least
const RIGHT = 10;
const TOP = 26;
const BOTTOM = 20;

export class Axes {
  constructor(context, width, height, theme, { title, fromNs, toNs }) {
    Object.assign(this, { context, theme, fromNs, toNs });
    this.box = { x: LEFT, y: TOP, width: width - LEFT - RIGHT, height: height - TOP - BOTTOM };
    write(context, theme, title, 10, 11, { colour: theme.text, weight: 600, most: width - 20 });
    this.#times();
  }

  x(ns) {
    return this.box.x + ((ns - this.fromNs) / (this.toNs - this.fromNs)) * this.box.width;
  }

  // From 0 at the bottom to 1 at the top.
  y(part) {
    return this.box.y + (1 - part) * this.box.height;
  }

  #times() {
    const { context, theme, box } = this;
    const span = this.toNs - this.fromNs;
    const step = niceStep(span, Math.max(2, box.width / TICK));
    context.strokeStyle = theme.grid;
    context.lineWidth = 1;
    for (let ns = Math.ceil(Math.max(0, this.fromNs) / step) * step; ns <= this.toNs; ns += step) {
      const x = Math.round(this.x(ns)) + 0.5;
      context.beginPath();
      context.moveTo(x, box.y);
      context.lineTo(x, box.y + box.height);
      context.stroke();
      if (x > box.x + 14 && x < box.x + box.width - 16) write(context, theme, timeTick(Math.round(ns), step), x, box.y + box.height + 10, { align: "center", px: 11 });
    }
  }

  // A line of the grid at a part of the height, with its label.
  level(part, text) {
    const { context, theme, box } = this;
    const y = Math.round(this.y(part)) + 0.5;
    context.strokeStyle = theme.grid;
    context.beginPath();
    context.moveTo(box.x, y);
    context.lineTo(box.x + box.width, y);
    context.stroke();
    write(context, theme, text, box.x - 6, y, { align: "right", px: 11, most: LEFT - 8 });
  }

  clip(draw) {
    const { context, box } = this;
    context.save();
    context.beginPath();
    context.rect(box.x, box.y - 3, box.width, box.height + 6);
    context.clip();
    draw(context);
    context.restore();
  }
}
