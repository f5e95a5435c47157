// Plays the lanes: how much simulated time a frame has, and when moments are kept.

const BUDGET_MS = 10;
const SLICE_MS = 1.5;
const MOMENT_EVERY_MS = 400;
const LONGEST_FRAME_MS = 100;

export class Player {
  // `drawn` is called after each frame with the wall time between frames.
  constructor(drawn) {
    this.drawn = drawn;
    this.lanes = [];
    this.playing = false;
    this.speed = 0.02;
    this.sliceNs = 1e5;
    this.lastMs = null;
    this.lastMomentMs = 0;
    this.frames = 0;
    this.effective = null;
    this.failed = () => {};
  }

  get nowNs() {
    return this.lanes[0]?.nowNs ?? 0;
  }

  get ended() {
    return this.lanes.every((lane) => lane.ended);
  }

  show(lanes) {
    this.lanes = lanes;
    this.effective = null;
    this.drawn(0);
  }

  play(on) {
    if (on === this.playing) return;
    this.playing = on && this.lanes.length > 0;
    this.lastMs = null;
    if (this.playing) requestAnimationFrame((ms) => this.#frame(ms));
    else this.drawn(0);
  }

  #frame(ms) {
    if (!this.playing) return;
    const elapsedMs = this.lastMs === null ? 16 : Math.min(LONGEST_FRAME_MS, ms - this.lastMs);
    this.lastMs = ms;
    try {
      this.#advance(elapsedMs);
    } catch (error) {
      this.playing = false;
      this.failed(error);
      return;
    }
    this.frames += 1;
    this.drawn(elapsedMs);
    if (this.ended) this.playing = false;
    else requestAnimationFrame((next) => this.#frame(next));
  }

  // All lanes go on together in slices of simulated time, so that they stand at the same moment after each frame
  // and the slowest sets the pace.
  #advance(elapsedMs) {
    const fromNs = this.nowNs;
    const startMs = performance.now();
    const untilNs = fromNs + elapsedMs * 1e6 * this.speed;
    let [atNs, beganMs] = [fromNs, startMs];
    while (atNs < untilNs && beganMs - startMs < BUDGET_MS && !this.ended) {
      atNs = Math.min(untilNs, atNs + this.sliceNs);
      for (const lane of this.lanes) lane.advance(atNs);
      const nowMs = performance.now();
      const factor = SLICE_MS / Math.max(0.05, nowMs - beganMs);
      this.sliceNs = Math.min(1e10, Math.max(1e3, this.sliceNs * Math.min(2, Math.max(0.25, factor))));
      beganMs = nowMs;
    }
    for (const lane of this.lanes) lane.look();
    const gained = (this.nowNs - fromNs) / (elapsedMs * 1e6);
    this.effective = this.effective === null ? gained : this.effective * 0.9 + gained * 0.1;
    if (startMs - this.lastMomentMs > MOMENT_EVERY_MS) {
      this.lastMomentMs = startMs;
      for (const lane of this.lanes) lane.remember();
    }
  }

  step() {
    this.play(false);
    const lane = this.lanes[0];
    lane.step();
    for (const other of this.lanes.slice(1)) other.goTo(lane.nowNs);
    for (const one of this.lanes) one.remember();
    this.drawn(0);
  }

  goTo(ns) {
    for (const lane of this.lanes) lane.goTo(ns);
    this.drawn(0);
  }
}
