// The charts over time: positions, shares of the device, throughput, latency.

import { Axes } from "./axes.js";
import { capacityText, percent, rateTick, tick } from "./format.js";
import { BINS, percentileNs } from "./history.js";

const EVERY = 4; // bins from one point of a curve to the next
const WITHIN = 12; // bins that a point sums

// A run fills its first window from the left; then the window moves.
function span(level, nowNs) {
  const fromNs = Math.max(0, nowNs - level.windowNs);
  return { fromNs, toNs: fromNs + level.windowNs };
}

// Where the device worked: a mark for each request, the head's way between them.
export function drawPositions(context, width, height, theme, lane, level) {
  const { nowNs, history, view } = lane;
  const axes = new Axes(context, width, height, theme, { title: "Position on the device", ...span(level, nowNs) });
  const capacity = lane.device.capacity_bytes / 512;
  for (const part of [0, 0.5, 1]) axes.level(part, capacityText(capacity * part * 512));
  axes.clip(() => {
    const rows = history.requests.rows;
    const first = rows.findIndex((row) => row.toNs >= axes.fromNs);
    const shown = first < 0 ? [] : rows.slice(first);
    if (lane.device.kind === "hdd") {
      context.beginPath();
      for (const row of shown) {
        context.lineTo(axes.x(row.fromNs + (row.toNs - row.fromNs) * 0.8), axes.y(row.sector / capacity));
        context.lineTo(axes.x(row.toNs), axes.y(row.end / capacity));
      }
      context.strokeStyle = theme.line;
      context.lineWidth = 1.2;
      context.stroke();
    }
    for (const row of shown) {
      context.fillStyle = theme.task(row.task);
      context.fillRect(axes.x(row.toNs) - 2, axes.y(row.end / capacity) - 2, 4, 4);
    }
    // Those that still wait, at the moment of now.
    context.lineWidth = 1.5;
    for (const request of view.held) {
      context.strokeStyle = theme.task(request.job);
      context.strokeRect(axes.x(nowNs) - 5, axes.y(request.sector / capacity) - 2, 4, 4);
    }
  });
}

// How the device's time was divided, from bin to bin.
export function drawShares(context, width, height, theme, lane, level) {
  const axes = new Axes(context, width, height, theme, { title: "Share of the device’s time", ...span(level, lane.nowNs) });
  for (const part of [0, 0.5, 1]) axes.level(part, percent(part));
  axes.clip(() => {
    for (const { ns, sums } of points(level, lane, EVERY)) {
      const all = sums.reduce((sum, one) => sum + one.heldNs, 0);
      let below = 0;
      // Whole pixels, so that neighbours meet without a seam.
      const [left, right] = [Math.round(axes.x(ns - EVERY * level.binNs)), Math.round(axes.x(ns))];
      for (const [task, { heldNs }] of sums.entries()) {
        if (all === 0 || heldNs === 0) continue;
        const part = heldNs / all;
        context.fillStyle = task < lane.history.tasks ? theme.task(task) : theme.quiet; // the last: the kernel's own
        context.fillRect(left, axes.y(below + part), right - left, axes.y(below) - axes.y(below + part));
        below += part;
      }
    }
  });
}

// The figures of each task at points along the window.
function points(level, lane, within) {
  const last = Math.floor(lane.nowNs / level.binNs) - 1;
  const found = [];
  for (let bin = Math.max(0, last - BINS) - ((last - BINS) % EVERY); bin <= last; bin += EVERY) {
    if (bin < 0) continue;
    // The last entry is the kernel's own: writeback and flushes.
    const sums = Array.from({ length: lane.history.tasks + 1 }, (_, task) => level.sum(task, bin - within + 1, bin));
    found.push({ ns: (bin + 1) * level.binNs, sums });
  }
  return found;
}

function curve(context, axes, dots, colour, dash = []) {
  context.setLineDash(dash);
  context.strokeStyle = colour;
  context.lineWidth = dash.length ? 1.6 : 2.2;
  context.beginPath();
  let drawn = false;
  for (const { ns, part } of dots) {
    if (part === null) {
      drawn = false;
      continue;
    }
    if (drawn) context.lineTo(axes.x(ns), axes.y(part));
    else context.moveTo(axes.x(ns), axes.y(part));
    drawn = true;
  }
  context.stroke();
  context.setLineDash([]);
}

export function drawThroughput(context, width, height, theme, lane, level, scales) {
  const axes = new Axes(context, width, height, theme, { title: "Throughput", ...span(level, lane.nowNs) });
  const all = points(level, lane, WITHIN);
  const seconds = (WITHIN * level.binNs) / 1e9;
  let most = 1000; // bytes per second: before the first I/O has ended, there is a scale all the same
  for (const { sums } of all) for (const { bytes } of sums) most = Math.max(most, bytes / seconds);
  most = niceCeiling(scales.covering("throughput", lane, 0, most)[1]);
  for (const part of [0, 0.5, 1]) axes.level(part, rateTick(most * part));
  axes.clip(() => {
    for (let task = 0; task < lane.history.tasks; task += 1) {
      const dots = all.map(({ ns, sums }) => ({ ns, part: sums[task].bytes / seconds / most }));
      curve(context, axes, dots, theme.task(task));
    }
  });
}

function niceCeiling(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((one) => one * power >= value);
}

// Median (solid) and 99th percentile (dashed) of latency, on a scale of powers of ten.
export function drawLatency(context, width, height, theme, lane, level, scales) {
  const axes = new Axes(context, width, height, theme, { title: "Latency: median, and 99th percentile dashed", ...span(level, lane.nowNs) });
  const all = points(level, lane, WITHIN);
  const curves = [];
  let [least, most] = [Infinity, 0];
  for (let task = 0; task < lane.history.tasks; task += 1) {
    for (const share of [0.5, 0.99]) {
      const dots = all.map(({ ns, sums }) => ({ ns, value: percentileNs(sums[task], share) }));
      for (const { value } of dots) {
        if (value === null) continue;
        least = Math.min(least, value);
        most = Math.max(most, value);
      }
      curves.push({ task, share, dots });
    }
  }
  if (most > 0) [least, most] = scales.covering("latency", lane, least, most);
  else [least, most] = [1e5, 1e8];
  const [low, high] = [Math.floor(Math.log10(least)), Math.max(Math.floor(Math.log10(least)) + 1, Math.ceil(Math.log10(most)))];
  const part = (value) => (Math.log10(value) - low) / (high - low);
  for (let power = low; power <= high; power += 1) axes.level((power - low) / (high - low), tick(10 ** power));
  axes.clip(() => {
    context.globalAlpha = 0.35;
    for (const io of lane.history.ios.rows.slice(-600)) {
      if (io.atNs < axes.fromNs) continue;
      context.fillStyle = theme.task(io.task);
      context.fillRect(axes.x(io.atNs) - 1, axes.y(part(io.latencyNs)) - 1, 2.5, 2.5);
    }
    context.globalAlpha = 1;
    for (const { task, share, dots } of curves) {
      const placed = dots.map(({ ns, value }) => ({ ns, part: value === null ? null : part(value) }));
      curve(context, axes, placed, theme.task(task), share === 0.99 ? [5, 3] : []);
    }
  });
}
