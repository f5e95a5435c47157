// Runs a race in a thread of its own, which the page can end: the same work under one scheduler after the other.
// The class Scheduler of the person who wrote it stands before this script.

import { END, Simulator } from "./simulator.js";

const SLICES = 200;
const TELL_MS = 100;

// Math.random() from a seed, so that a race is the same each time (mulberry32).
function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

// The line of the code that threw, as far as the browser says it.
function lineOf(error) {
  const found = /blob:[^\s)]*?:(\d+):\d+/.exec(String(error?.stack ?? ""));
  return found ? Number(found[1]) : null;
}

function run(simulator, { name, request }, own, tell) {
  simulator.hooks.thrown = null;
  const untilNs = request.runtime_ns;
  try {
    const handle = simulator.open(request);
    let told = performance.now();
    for (let slice = 1; slice <= SLICES * 2; slice += 1) {
      const reached = simulator.advance(handle, (untilNs * slice) / SLICES);
      if (simulator.hooks.thrown) throw simulator.hooks.thrown;
      if (performance.now() - told > TELL_MS) {
        told = performance.now();
        tell({ kind: "progress", name, nowNs: (untilNs * slice) / SLICES });
      }
      if (reached === END) break;
    }
    tell({ kind: "result", name, own, outcome: simulator.outcome(handle) });
    simulator.close(handle);
  } catch (error) {
    const thrown = simulator.hooks.thrown;
    const cause = thrown ?? error;
    const message = thrown ? `${thrown.name ?? "Error"}: ${thrown.message ?? thrown}` : error.message;
    tell({ kind: "failed", name, own, message, line: thrown ? lineOf(cause) : null });
  }
}

self.onmessage = async ({ data: { module, own, runs, seed } }) => {
  const tell = (message) => self.postMessage(message);
  try {
    // Browsers have a Scheduler of their own, which is another.
    const simulator = await Simulator.of(module, Scheduler === self.Scheduler ? undefined : Scheduler);
    simulator.register(own);
    for (const one of runs) {
      tell({ kind: "progress", name: one.name, nowNs: 0 });
      Math.random = seeded(seed);
      run(simulator, one, one.name === own, tell);
    }
    tell({ kind: "end" });
  } catch (error) {
    tell({ kind: "failed", name: own, own: true, message: error.message, line: null });
    tell({ kind: "end" });
  }
};
