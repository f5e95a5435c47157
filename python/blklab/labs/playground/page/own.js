// The section in which people write a scheduler of their own and race it.

import { byId, element } from "./elements.js";
import { duration, rate } from "./format.js";
import { jobLatencyNs, jobThroughput } from "./measure.js";
import { Race } from "./race.js";

const NAME = "yours";
const TITLES = { fifo: "First in, first out", elevator: "An elevator", fair_shares: "Fair shares" };
const KEPT = "blklab-own-scheduler";

// The browser may keep nothing for a file; then the code lives as long as the page.
function kept() {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null;
  }
}

function keep(code) {
  try {
    localStorage.setItem(KEPT, code);
  } catch {
    // As above.
  }
}

export class OwnScheduler {
  // `circumstances()` gives set-up, shipped devices and schedulers, and the compiled simulator.
  constructor(examples, circumstances) {
    this.examples = examples;
    this.circumstances = circumstances;
    this.code = byId("own-code");
    const example = byId("own-example");
    example.append(...Object.keys(examples).map((name) => element("option", { value: name, textContent: TITLES[name] ?? name })));
    example.addEventListener("change", () => this.#begin(examples[example.value]));
    this.code.value = kept() ?? examples.fifo;
    this.code.addEventListener("input", () => keep(this.code.value));
    byId("own-race").addEventListener("click", () => this.race());
    byId("own-stop").addEventListener("click", () => this.#stop("Stopped."));
  }

  // An example replaces the code; what was there can be had again with the editor's undo.
  #begin(code) {
    this.code.focus();
    this.code.select();
    if (!document.execCommand?.("insertText", false, code)) this.code.value = code;
    keep(this.code.value);
  }

  race() {
    const { setup, shipped, module } = this.circumstances();
    const seconds = Math.min(120, Math.max(1, Math.round(Number(byId("own-seconds").value)) || 10));
    byId("own-seconds").value = seconds;
    byId("own-problem").hidden = true;
    this.results = [];
    this.setup = setup;
    this.#show();
    this.#running(true);
    byId("own-status").textContent = "The race begins.";
    const racer = byId("racer").textContent;
    this.current = new Race({ code: this.code.value, racer, module, setup, shipped, own: NAME, seconds }, (message) => this.#hear(message, seconds));
  }

  #running(now) {
    byId("own-race").disabled = now;
    byId("own-stop").disabled = !now;
  }

  #stop(text) {
    this.current?.stop();
    this.current = null;
    this.#running(false);
    byId("own-status").textContent = text;
  }

  #hear(message, seconds) {
    if (message.kind === "progress") {
      byId("own-status").textContent = `${message.name}: ${(message.nowNs / 1e9).toFixed(1)} of ${seconds} s`;
    } else if (message.kind === "result") {
      this.results.push(message);
      this.#show();
    } else if (message.kind === "failed") {
      this.#failed(message);
    } else {
      this.#stop(this.results.length ? `${this.results.length} schedulers, ${seconds} simulated seconds each.` : "");
    }
  }

  #failed({ name, own, message, line }) {
    byId("own-problem").textContent = `${own ? "Your scheduler" : name}${line ? `, line ${line}` : ""}: ${message}`;
    byId("own-problem").hidden = false;
    if (own && line) this.#mark(line);
  }

  // Selects a line of the code, without a keyboard's focus leaving where it is.
  #mark(line) {
    const lines = this.code.value.split("\n");
    const from = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    this.code.setSelectionRange(from, from + (lines[line - 1]?.length ?? 0));
    const height = this.code.scrollHeight / Math.max(1, lines.length);
    this.code.scrollTop = Math.max(0, (line - 4) * height);
  }

  // Totals and tasks, the fastest first.
  #show() {
    const tasks = this.setup.tasks.map(({ name }) => name);
    const rows = this.results.map(({ name, own, outcome }) => {
      const parts = tasks.map((task) => ({ rate: jobThroughput(outcome, task), p99: jobLatencyNs(outcome, task, "p99") }));
      return { name, own, parts, total: parts.reduce((sum, part) => sum + part.rate, 0) };
    });
    rows.sort((one, other) => other.total - one.total);
    const most = Math.max(1, ...rows.map(({ total }) => total));
    const heads = ["Scheduler", "Together", "", ...tasks];
    const table = element(
      "table",
      { class: "race" },
      element("caption", { textContent: "Throughput, and the 99th percentile of latency beneath" }),
      element("thead", {}, element("tr", {}, ...heads.map((text) => (text ? element("th", { scope: "col", textContent: text }) : element("td"))))),
      element("tbody", {}, ...rows.map((row) => this.#row(row, most))),
    );
    byId("own-results").replaceChildren(...(rows.length ? [element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Results of the race" }, table)] : []));
  }

  #row({ name, own, parts, total }, most) {
    const bar = element("meter", { min: 0, max: most, value: total });
    bar.setAttribute("aria-label", `${name} beside the fastest`);
    return element(
      "tr",
      own ? { class: "yours" } : {},
      element("th", { scope: "row", textContent: name }),
      element("td", { textContent: rate(total) }),
      element("td", { class: "bar" }, bar),
      ...parts.map((part) => element("td", {}, rate(part.rate), element("small", { textContent: part.p99 > 0 ? `p99 ${duration(part.p99)}` : "no I/O" }))),
    );
  }
}
