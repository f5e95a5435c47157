// One scheduler at work: its simulation, its history, the changes made to it, and the moments that it can go back to.

import { History } from "./history.js";
import { requestOf } from "./request.js";
import { rowReader } from "./rows.js";
import { END } from "./simulator.js";

const STEP_EVENTS = 200000;
const MOST_MOMENTS = 48;

const REQUEST_COLUMNS = ["dispatch_ns", "complete_ns", "sector", "sectors", "job", "operation", "flags"];
const IO_COLUMNS = ["start_ns", "end_ns", "bytes", "job"];

export class Lane {
  constructor(simulator, setup, index, shipped) {
    this.simulator = simulator;
    this.device = shipped.devices[setup.device];
    this.scheduler = setup.lanes[index].scheduler;
    this.history = new History(setup.tasks.length);
    const format = simulator.catalogue.timeline;
    this.readRequests = rowReader(format, "requests", REQUEST_COLUMNS);
    this.readIos = rowReader(format, "ios", IO_COLUMNS);
    this.handle = simulator.open(requestOf(setup, index, shipped));
    this.view = simulator.view(this.handle);
    this.ended = false;
    // Changes by time, and how many of them are made at the present moment: fewer after going back.
    this.changes = [];
    this.made = 0;
    this.moments = [{ ns: 0, made: 0, handle: simulator.copy(this.handle) }];
  }

  get nowNs() {
    return this.view.now_ns;
  }

  close() {
    this.simulator.close(this.handle);
    for (const { handle } of this.moments) this.simulator.close(handle);
  }

  // Continues up to a time, with the changes made until then. `look` shows where it stands then.
  advance(untilNs) {
    while (this.changes[this.made]?.ns <= untilNs) {
      const { ns, change } = this.changes[this.made];
      this.#advance(ns);
      this.simulator.change(this.handle, change);
      this.made += 1;
    }
    this.#advance(untilNs);
  }

  #advance(untilNs) {
    this.ended = this.simulator.advance(this.handle, untilNs) === END;
    this.#drain();
  }

  // Continues until the device gets its next request.
  step() {
    const next = this.changes[this.made];
    const before = next && this.simulator.copy(this.handle);
    this.ended = this.simulator.step(this.handle, STEP_EVENTS) === END;
    if (next && this.simulator.view(this.handle).now_ns >= next.ns) {
      // A change comes first.
      this.simulator.close(this.handle);
      this.handle = before;
      this.advance(next.ns);
      this.step();
      return;
    }
    if (next) this.simulator.close(before);
    this.#drain();
    this.look();
  }

  #drain() {
    const oneHead = this.device.kind === "hdd";
    this.readRequests(this.simulator.rows(this.handle, "requests"), (row) => this.history.request(row, oneHead));
    this.readIos(this.simulator.rows(this.handle, "ios"), (row) => this.history.io(row));
  }

  look() {
    this.view = this.simulator.view(this.handle);
  }

  // Makes changes now, and again whenever time passes this moment after going back. The controls show all changes,
  // so those that were made later are made now, too.
  change(changes) {
    const all = [...this.changes.slice(this.made).map((one) => one.change), ...changes];
    const copy = this.simulator.copy(this.handle);
    try {
      for (const change of all) this.simulator.change(this.handle, change);
    } catch (error) {
      this.simulator.close(this.handle);
      this.handle = copy;
      throw error;
    }
    this.simulator.close(copy);
    this.changes = [...this.changes.slice(0, this.made), ...all.map((change) => ({ ns: this.nowNs, change }))];
    this.made = this.changes.length;
    this.look();
  }

  // Keeps this moment to go back to. Of many, every second one is let go.
  remember() {
    if (this.moments.at(-1).ns >= this.nowNs) return;
    this.moments.push({ ns: this.nowNs, made: this.made, handle: this.simulator.copy(this.handle) });
    if (this.moments.length <= MOST_MOMENTS) return;
    const kept = this.moments.filter((_, index) => index % 2 === 0);
    for (const [index, { handle }] of this.moments.entries()) if (index % 2) this.simulator.close(handle);
    this.moments = kept;
  }

  // Goes back to a time, or forward. The charts forget what has not happened yet.
  goTo(ns) {
    if (ns < this.nowNs) {
      while (this.moments.length > 1 && this.moments.at(-1).ns > ns) this.simulator.close(this.moments.pop().handle);
      this.simulator.close(this.handle);
      const { handle, ns: from, made } = this.moments.at(-1);
      this.handle = this.simulator.copy(handle);
      this.made = made;
      this.history.forgetAfter(from);
    }
    this.advance(ns);
    this.look();
  }
}
