// Wires the page: set-up, link, controls, lanes, player.

import { Theme } from "./canvas.js";
import { changesBetween } from "./changes.js";
import { Controls } from "./controls.js";
import { byId } from "./elements.js";
import { Scales } from "./scales.js";
import { compareLine, exportedJobs, EXPORT_FILE } from "./export.js";
import { Lane } from "./lane.js";
import { LaneView } from "./lane_view.js";
import { holding } from "./history.js";
import { examine, Lessons } from "./lessons.js";
import { fromHash, toHash } from "./link.js";
import { OwnScheduler } from "./own.js";
import { Player } from "./player.js";
import { requestOf } from "./request.js";
import { checkSetup, isSame } from "./setup.js";
import { Simulator } from "./simulator.js";
import { Transport } from "./transport.js";

const WINDOW_SECONDS = 8;
const PREVIEW_PART = 0.6; // of the charts' window
const SLOWEST_CONTROL_MS = 100;

class Playground {
  constructor(simulator, shipped, lessons) {
    this.simulator = simulator;
    this.shipped = { ...shipped, schedulers: simulator.catalogue.schedulers };
    this.views = [];
    this.theme = new Theme(() => this.draw(true));
    this.player = new Player(() => this.draw(false));
    this.player.failed = (error) => this.#fail(error);
    this.transport = new Transport(this.player, () => this.restart());
    this.controls = new Controls(this.shipped, (setup) => this.change(setup));
    this.lessons = new Lessons(lessons, {
      show: (lesson) => this.#scene(lesson),
      check: (lesson) => this.#guarded(() => examine(lesson, simulator, this.shipped)) ?? [],
    });
    this.own = new OwnScheduler(JSON.parse(byId("schedulers").textContent), () => ({
      setup: this.setup,
      shipped: this.shipped,
      module: simulator.module,
    }));
    this.#exports();
    addEventListener("hashchange", () => {
      // A link within the page leaves the set-up as it is.
      if (!location.hash.includes("=")) history.replaceState(null, "", toHash(this.setup));
      else if (location.hash !== toHash(this.setup)) this.openLink(location.hash);
    });
    this.shownMs = 0;
  }

  // Does something that a user's input may make impossible; the page says why.
  #guarded(work) {
    try {
      const answer = work();
      byId("problem").hidden = true;
      return answer;
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  #fail(error) {
    this.player.play(false);
    byId("problem").textContent = error.message;
    byId("problem").hidden = false;
    this.transport.show();
  }

  openLink(hash) {
    const first = this.lessons.lessons[0].link;
    const setup = this.#guarded(() => checkSetup(fromHash(hash) ?? fromHash(first), this.shipped));
    this.controls.reset();
    this.start(setup ?? fromHash(first), { keepProblem: setup === undefined });
  }

  // Shows a set-up from time 0.
  start(setup, { keepProblem = false } = {}) {
    const problem = byId("problem").textContent;
    const started = this.#guarded(() => {
      checkSetup(setup, this.shipped);
      return this.#lanes(setup);
    });
    if (!started) return;
    for (const lane of this.player.lanes) lane.close();
    const device = this.setup?.device;
    this.setup = setup;
    const scales = new Scales();
    this.views = started.map((lane) => new LaneView(lane, setup, this.theme, scales));
    for (const view of this.views) view.resized = () => this.#soon();
    byId("lanes").replaceChildren(...this.views.map(({ root }) => root));
    byId("lanes").style.setProperty("--queue-height", `${Math.max(...this.views.map(({ queueHeight }) => queueHeight))}px`);
    byId("lanes").classList.toggle("two", started.length === 2);
    if (device !== setup.device) this.transport.setSpeed(this.shipped.devices[setup.device].rotational ? 0.02 : 1e-4);
    byId("back").max = 0;
    this.previewNs = null;
    this.player.show(started);
    this.#told();
    this.draw(true);
    if (keepProblem) this.#fail(new Error(problem));
  }

  // Goes on a little, so that nobody opens an empty page.
  preview() {
    this.#guarded(() => this.player.goTo(this.player.speed * WINDOW_SECONDS * PREVIEW_PART * 1e9));
    this.previewNs = this.player.nowNs;
    this.draw(true);
  }

  #lanes(setup) {
    const lanes = [];
    try {
      for (const index of setup.lanes.keys()) lanes.push(new Lane(this.simulator, setup, index, this.shipped));
    } catch (error) {
      for (const lane of lanes) lane.close();
      throw error;
    }
    return lanes;
  }

  restart() {
    const { playing } = this.player;
    this.player.play(false);
    this.start(this.setup);
    this.player.play(playing);
    this.transport.show();
  }

  // A control changed: what Linux can change while it runs is changed so, anything else starts anew.
  change(setup) {
    const ok = this.#guarded(() => checkSetup(setup, this.shipped));
    if (!ok) {
      this.controls.show(this.setup);
      byId("problem").hidden = false;
      return;
    }
    const first = this.player.nowNs === this.previewNs;
    const changes = this.player.nowNs > 0 && !first ? changesBetween(this.setup, setup, this.shipped) : null;
    const { playing } = this.player;
    if (changes === null) {
      this.start(setup);
      if (first) this.preview();
    } else {
      this.#whileItRuns(setup, changes);
    }
    this.player.play(playing);
    this.transport.show();
  }

  #whileItRuns(setup, changes) {
    const { lanes } = this.player;
    const done = this.#guarded(() => {
      for (const [index, lane] of lanes.entries()) if (changes[index].length) lane.change(changes[index]);
      return true;
    });
    if (done) {
      this.setup = setup;
      for (const [index, view] of this.views.entries()) view.rename(setup.lanes[index].scheduler);
      this.#told(`Changed at ${byId("time").textContent}, while it runs.`);
    } else {
      this.controls.show(this.setup);
      byId("problem").hidden = false;
    }
    this.draw(true);
  }

  // The set-up is told to the controls, the link and the exports.
  #told(note = "") {
    this.controls.show(this.setup);
    byId("note").textContent = note;
    const hash = toHash(this.setup);
    if (location.hash !== hash) history.replaceState(null, "", hash);
    this.#showExport();
    this.transport.show();
  }

  // As fast as it goes, the charts hold all that has happened, as far as the widest of them reaches.
  #windowNs() {
    const { speed, nowNs } = this.player;
    return speed === Infinity ? holding(nowNs) : speed * WINDOW_SECONDS * 1e9;
  }

  draw(all) {
    for (const view of this.views) view.draw(this.#windowNs(), all || !this.player.playing);
    const nowMs = performance.now();
    if (all || !this.player.playing || nowMs - this.shownMs > SLOWEST_CONTROL_MS) {
      this.shownMs = nowMs;
      this.transport.show();
    }
  }

  #soon() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw(true);
    });
  }

  #scene(lesson) {
    this.player.play(false);
    this.controls.reset();
    this.start(checkSetup(fromHash(lesson.link), this.shipped));
    this.transport.setSpeed(lesson.speed);
    this.player.play(true);
    this.transport.show();
  }

  #exports() {
    const copy = (id, text) => byId(id).addEventListener("click", async () => {
      await navigator.clipboard?.writeText(text()).catch(() => {});
      byId("note").textContent = "Copied.";
    });
    copy("copy-link", () => location.href);
    copy("copy-jobs", () => byId("jobs").textContent);
    copy("copy-line", () => byId("line").textContent);
    for (const id of ["export-size", "export-target"]) byId(id).addEventListener("change", () => this.#showExport());
    byId("save-jobs").addEventListener("click", () => {
      const address = URL.createObjectURL(new Blob([byId("jobs").textContent], { type: "text/plain" }));
      Object.assign(document.createElement("a"), { href: address, download: EXPORT_FILE }).click();
      URL.revokeObjectURL(address);
    });
  }

  #showExport() {
    byId("jobs").textContent = exportedJobs(this.setup, byId("export-size").value);
    byId("line").textContent = compareLine(this.setup, byId("export-target").value || "/path/on/the/disk");
    byId("patched").hidden = this.setup.dispatchWait === 0;
  }

  // The request that a lane of the set-up makes.
  requestOf(lane) {
    return requestOf(this.setup, lane, this.shipped);
  }

  // A run for its result alone, as text; for tests and notebooks that drive the page.
  simulate(request) {
    return this.simulator.simulate(request);
  }

  isSetup(hash) {
    return isSame(this.setup, fromHash(hash));
  }
}

const shipped = JSON.parse(byId("shipped").textContent);
const lessons = JSON.parse(byId("lessons").textContent);
// In a frame of another page only the scene is of interest.
if (window.self !== window.top) document.documentElement.dataset.embedded = "";
try {
  const simulator = await Simulator.load(byId("program").textContent.trim());
  window.playground = new Playground(simulator, shipped, lessons);
  window.playground.openLink(location.hash);
  window.playground.preview();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
} catch (error) {
  byId("problem").textContent = `The simulator did not start: ${error.message}`;
  byId("problem").hidden = false;
  throw error;
}
