// The page's half of crates/blkplay: simulations in WebAssembly, by handle.

import { hooksOf } from "./own_scheduler.js";

export const GOAL = 1;
export const END = 2;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export class SimulatorError extends Error {}

async function inflated(base64) {
  const packed = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

export class Simulator {
  // From gzip in base64, as it lies in the page.
  static async load(base64) {
    return Simulator.of(await WebAssembly.compile(await inflated(base64)));
  }

  // From a compiled program; `Scheduler` is the class of a scheduler of one's own.
  static async of(module, Scheduler) {
    const simulator = new Simulator();
    simulator.module = module;
    simulator.hooks = hooksOf(Scheduler);
    await simulator.restart();
    return simulator;
  }

  // A fresh memory. All simulations are gone, which is the only way on after a defect.
  async restart() {
    this.exports = (await WebAssembly.instantiate(this.module, { page: this.hooks.functions })).exports;
    this.catalogue = JSON.parse(this.#text(this.#ask("catalogue")));
  }

  #call(name, ...given) {
    try {
      return this.exports[`blkplay_${name}`](...given);
    } catch (error) {
      throw new SimulatorError(`the simulator failed (${error.message}); this is a defect, please report it with the link of this page`);
    }
  }

  #ask(name, ...given) {
    const answer = this.#call(name, ...given);
    if (answer === 0) throw new SimulatorError(this.#text());
    return answer;
  }

  #bytes() {
    const from = this.exports.blkplay_output() >>> 0;
    return new Uint8Array(this.exports.memory.buffer, from, this.exports.blkplay_output_bytes() >>> 0);
  }

  #text() {
    return decoder.decode(this.#bytes());
  }

  #say(text) {
    const bytes = encoder.encode(text);
    const at = this.exports.blkplay_input(bytes.length) >>> 0;
    new Uint8Array(this.exports.memory.buffer, at, bytes.length).set(bytes);
  }

  // Gives the class of a scheduler of one's own a name.
  register(name) {
    this.#say(name);
    this.#ask("register");
  }

  // Runs a request to its end; the answer is that of the Python package, as text.
  simulate(request) {
    this.#say(request);
    this.#ask("simulate");
    return this.#text();
  }

  open(request) {
    this.#say(JSON.stringify(request));
    return this.#ask("open");
  }

  close(handle) {
    this.#call("close", handle);
  }

  // An independent copy of a simulation at this moment.
  copy(handle) {
    return this.#ask("copy", handle);
  }

  // Continues up to a time; answers GOAL or END.
  advance(handle, untilNs) {
    return this.#ask("advance", handle, untilNs);
  }

  // Continues until the device gets its next request, for at most so many events; answers GOAL, END or neither.
  step(handle, events) {
    return this.#ask("step", handle, events);
  }

  // Changes a running simulation; see crates/blkplay/src/change.rs.
  change(handle, change) {
    this.#say(JSON.stringify(change));
    this.#ask("change", handle);
  }

  view(handle) {
    this.#ask("view", handle);
    return JSON.parse(this.#text());
  }

  outcome(handle) {
    this.#ask("outcome", handle);
    return JSON.parse(this.#text());
  }

  // Rows that came since the last call; valid until the next call of anything here.
  rows(handle, table) {
    this.#ask(table, handle);
    const bytes = this.#bytes();
    return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
}
