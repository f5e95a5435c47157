// A race of schedulers on the same work, in a worker: a scheduler of one's own can neither hang the page nor reach it.

import { requestOf } from "./request.js";

// Time without a sign of life after which the code is taken to have a loop without an end.
const SILENCE_MS = 5000;

const CURRENT = ["none", "mq-deadline", "kyber", "bfq"];

// One's own, the schedulers of the lanes, and those of today's kernels.
export function racers(setup, own) {
  return [...new Set([own, ...setup.lanes.map(({ scheduler }) => scheduler), ...CURRENT])];
}

function requests(setup, shipped, own, seconds) {
  return racers(setup, own).map((name) => {
    const lane = setup.lanes.findIndex(({ scheduler }) => scheduler === name);
    const lanes = [lane < 0 ? { scheduler: name, tunables: {} } : setup.lanes[lane]];
    const request = requestOf({ ...setup, lanes }, 0, shipped, { timeline: false });
    return { name, request: { ...request, runtime_ns: seconds * 1e9 } };
  });
}

export class Race {
  // `heard` is told of progress, results, failures and the end: { kind, name, … }.
  constructor({ code, racer, module, setup, shipped, own, seconds }, heard) {
    this.heard = heard;
    this.started = false;
    const text = `${code}\n;(() => {\n${racer}\n})();\n`;
    this.address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    this.worker = new Worker(this.address);
    this.worker.onmessage = ({ data }) => this.#hear(data);
    this.worker.onerror = (event) => {
      event.preventDefault();
      // Firefox keeps the message of a script that cannot be read to itself.
      this.#fail(event.message || "SyntaxError: the code cannot be read, and this browser does not say where", event.lineno || null);
    };
    this.at = { name: own, nowNs: 0 };
    this.own = own;
    this.#watch();
    this.worker.postMessage({ module, own, runs: requests(setup, shipped, own, seconds), seed: setup.seed });
  }

  #hear(message) {
    this.#watch();
    if (message.kind === "progress") this.at = message;
    if (message.kind === "end") this.stop();
    this.heard(message);
  }

  #watch() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const when = this.at.name === this.own ? ` at ${(this.at.nowNs / 1e9).toPrecision(3)} s of the race` : "";
      this.#fail(`stopped: no answer for ${SILENCE_MS / 1000} s${when}. Is there a loop without an end?`, null);
    }, SILENCE_MS);
  }

  #fail(message, line) {
    this.stop();
    this.heard({ kind: "failed", name: this.own, own: true, message, line });
    this.heard({ kind: "end" });
  }

  stop() {
    clearTimeout(this.timer);
    this.worker.terminate();
    URL.revokeObjectURL(this.address);
  }
}
