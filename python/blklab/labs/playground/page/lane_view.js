// One lane on the page: its pictures, its table, and what it says to those who do not see them.

import { Canvas } from "./canvas.js";
import { drawLatency, drawPositions, drawShares, drawThroughput } from "./charts.js";
import { Commands } from "./commands.js";
import { Dies } from "./dies.js";
import { byId, element } from "./elements.js";
import { duration, percent, rate, requestsText } from "./format.js";
import { BINS, percentileNs } from "./history.js";
import { armText, Platter } from "./platter.js";
import { Queue, queueHeight } from "./queue.js";
import { Names } from "./queue_rows.js";

const CHARTS = [drawPositions, drawShares, drawThroughput, drawLatency];
const CHART_NAMES = ["Positions", "Shares of the device’s time", "Throughput", "Latency"];

function stageFor(lane) {
  if (lane.view.device.kind === "hdd") return new Platter(lane);
  return lane.view.device.units.length ? new Dies(lane) : new Commands();
}

export class LaneView {
  constructor(lane, setup, theme, scales) {
    this.scales = scales;
    this.lane = lane;
    this.theme = theme;
    this.device = setup.device;
    this.names = setup.tasks.map(({ name }) => name);
    // Pages that tasks have written are the kernel's to write back.
    this.shown = setup.tasks.some((task) => task.buffered && task.pattern.includes("w")) ? [...this.names, "writeback"] : this.names;
    this.stage = stageFor(lane);
    const names = new Names(setup);
    this.queue = new Queue(names);
    this.queueHeight = queueHeight(lane.view, setup, names);
    const picture = (kind, label, name = kind) => element("canvas", { class: kind, role: "img", "aria-label": label, "data-picture": name });
    const stage = picture("stage", "The device");
    const queue = picture("queue", "The scheduler’s queue");
    // The first word names a chart in a lesson: "shares".
    const charts = CHART_NAMES.map((name) => picture("chart", name, name.split(" ")[0].toLowerCase()));
    this.title = element("h2", { textContent: `${lane.scheduler} on ${setup.device}` });
    this.saying = element("p", { class: "now" });
    this.cells = [];
    // What the open lesson tells to watch comes first, where a screen has it beside the lesson.
    const { watch } = byId("lanes").dataset;
    const watched = charts.filter((one) => one.dataset.picture === watch);
    const pictures = watch === "queue" ? [queue, stage] : [stage, queue];
    this.root = element(
      "section",
      { class: "lane", "aria-label": lane.scheduler },
      element("header", {}, this.title, this.saying),
      ...watched,
      element("div", { class: "pictures" }, ...pictures),
      element("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": `Tasks under ${lane.scheduler}` }, this.#table()),
      element("div", { class: "charts" }, ...charts.filter((one) => !watched.includes(one))),
    );
    this.stageCanvas = new Canvas(stage);
    this.queueCanvas = new Canvas(queue);
    this.charts = charts.map((canvas) => new Canvas(canvas));
    for (const one of [this.stageCanvas, this.queueCanvas, ...this.charts]) one.resized = () => this.resized?.();
    this.turn = 0;
  }

  // The scheduler was switched while it runs.
  rename(scheduler) {
    this.lane.scheduler = scheduler;
    this.title.textContent = `${scheduler} on ${this.device}`;
    this.root.setAttribute("aria-label", scheduler);
  }

  #table() {
    const head = ["Task", "Share", "Throughput", "Median", "99 %", "Waiting"].map((text) => element("th", { scope: "col", textContent: text }));
    const rows = this.shown.map((name, task) => {
      const cells = Array.from({ length: 5 }, () => element("td", { textContent: "–" }));
      this.cells.push(cells);
      const colour = task < this.names.length ? `task-${task}` : "kernel";
      const swatch = element("span", { class: `swatch ${colour}`, "aria-hidden": "true" });
      return element("tr", {}, element("th", { scope: "row" }, swatch, name), ...cells);
    });
    this.caption = element("caption", { textContent: "Tasks" });
    return element("table", {}, this.caption, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));
  }

  // Draws the device and the queue; every few frames also the charts and the table.
  draw(windowNs, all) {
    const { view } = this.lane;
    this.#picture(this.stageCanvas, this.stage);
    this.#picture(this.queueCanvas, this.queue);
    this.turn += 1;
    const level = this.lane.history.level(windowNs);
    // One chart in turn, so that no frame pays for all of them.
    for (const [index, chart] of this.charts.entries()) {
      if (!all && this.turn % CHARTS.length !== index) continue;
      const context = chart.begin();
      if (chart.width > 0) CHARTS[index](context, chart.width, chart.height, this.theme, this.lane, level, this.scales);
    }
    if (all || this.turn % 12 === 0) this.#figures(level, view);
  }

  #picture(canvas, drawer) {
    const context = canvas.begin();
    if (canvas.width > 0) drawer.draw(context, canvas.width, canvas.height, this.lane.view, this.theme);
  }

  #figures(level, view) {
    const last = Math.floor(this.lane.nowNs / level.binNs);
    const sums = this.shown.map((_, task) => level.sum(task, last - BINS, last));
    const held = sums.reduce((sum, one) => sum + one.heldNs, 0);
    const seconds = Math.min(level.windowNs, this.lane.nowNs) / 1e9 || 1;
    const waiting = this.shown.map(() => 0);
    for (const request of [...view.held, ...view.in_device]) {
      const task = Math.min(request.job, this.names.length);
      if (task < waiting.length) waiting[task] += 1;
    }
    for (const [task, sum] of sums.entries()) {
      const own = task < this.names.length;
      const [median, high] = [percentileNs(sum, 0.5), percentileNs(sum, 0.99)];
      const texts = [
        held ? percent(sum.heldNs / held) : "–",
        own ? rate(sum.bytes / seconds) : "–",
        median === null ? "–" : duration(median),
        high === null ? "–" : duration(high),
        String(waiting[task]),
      ];
      for (const [index, text] of texts.entries()) if (this.cells[task][index].textContent !== text) this.cells[task][index].textContent = text;
    }
    this.caption.textContent = `Tasks over the last ${duration(Math.min(level.windowNs, this.lane.nowNs) || level.windowNs)}`;
    const saying = this.#now(view);
    this.saying.textContent = saying;
    this.stageCanvas.element.setAttribute("aria-label", `The device: ${saying}`);
    const kinds = `${requestsText(view.held_count)} with ${this.lane.scheduler}, ${view.in_device_count} in the device`;
    this.queueCanvas.element.setAttribute("aria-label", kinds);
  }

  #now(view) {
    if (this.lane.ended) return "all tasks have ended";
    const { motion } = view.device;
    if (!motion) return view.in_device_count ? `${requestsText(view.in_device_count)} in the device` : "the device is idle";
    const served = view.in_device.find((request) => request.id === motion.command);
    const whose = served ? `${this.names[served.job] ?? "the kernel"}: ` : "";
    return `${whose}${armText(motion, view.now_ns)}`;
  }
}
