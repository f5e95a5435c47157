// One scheduler at work: its simulation, its history, and the moments that it can go back to.

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
    this.changes = [];
    this.moments = [{ ns: 0, handle: simulator.copy(this.handle) }];
  }

  get nowNs() {
    return this.view.now_ns;
  }

  close() {
    this.simulator.close(this.handle);
    for (const { handle } of this.moments) this.simulator.close(handle);
  }

  // Continues up to a time. `look` shows where it stands then.
  advance(untilNs) {
    this.ended = this.simulator.advance(this.handle, untilNs) === END;
    this.#drain();
  }

  // Continues until the device gets its next request.
  step() {
    this.ended = this.simulator.step(this.handle, STEP_EVENTS) === END;
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

  // Makes a change now, and again whenever time passes this moment after going back.
  change(change) {
    this.simulator.change(this.handle, change);
    this.changes.push({ ns: this.nowNs, change });
    this.look();
  }

  // Keeps this moment to go back to. Of many, every second one is let go.
  remember() {
    if (this.moments.at(-1).ns >= this.nowNs) return;
    this.moments.push({ ns: this.nowNs, handle: this.simulator.copy(this.handle) });
    if (this.moments.length <= MOST_MOMENTS) return;
    const kept = this.moments.filter((_, index) => index % 2 === 0);
    for (const [index, { handle }] of this.moments.entries()) if (index % 2) this.simulator.close(handle);
    this.moments = kept;
  }

  // Goes back to a time, or forward; the past up to there stays, what came after is dropped.
  goTo(ns) {
    if (ns < this.nowNs) {
      while (this.moments.length > 1 && this.moments.at(-1).ns > ns) this.simulator.close(this.moments.pop().handle);
      this.simulator.close(this.handle);
      const { handle, ns: from } = this.moments.at(-1);
      this.handle = this.simulator.copy(handle);
      this.history.forgetAfter(from);
      this.look();
    }
    const later = this.changes.filter((one) => one.ns > this.nowNs && one.ns <= ns);
    this.changes = this.changes.filter((one) => one.ns <= this.nowNs);
    for (const one of later) {
      this.advance(one.ns);
      this.look();
      this.simulator.change(this.handle, one.change);
      this.changes.push(one);
    }
    this.advance(ns);
    this.look();
  }
}
