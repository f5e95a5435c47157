// Play, pause, step, speed, time, and the way back.

import { byId } from "./elements.js";
import { duration, speedText } from "./format.js";

// Simulated seconds per second on the wall, along the slider.
export const SPEEDS = [1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, Infinity];

export class Transport {
  constructor(player, restart) {
    this.player = player;
    this.play = byId("play");
    this.speed = byId("speed");
    this.back = byId("back");
    this.speed.max = SPEEDS.length - 1;
    this.play.addEventListener("click", () => this.toggle());
    byId("step").addEventListener("click", () => player.step());
    byId("restart").addEventListener("click", restart);
    this.speed.addEventListener("input", () => this.setSpeed(SPEEDS[Number(this.speed.value)]));
    this.back.addEventListener("input", () => {
      player.play(false);
      player.goTo(Number(this.back.value));
    });
    document.addEventListener("keydown", (event) => this.#key(event, restart));
  }

  toggle() {
    this.player.play(!this.player.playing);
    this.show();
  }

  setSpeed(speed) {
    const nearest = SPEEDS.reduce((best, one) => (Math.abs(Math.log(one / speed)) < Math.abs(Math.log(best / speed)) ? one : best));
    this.player.speed = speed === Infinity ? Infinity : nearest;
    this.player.effective = null;
    this.speed.value = SPEEDS.indexOf(this.player.speed);
    this.show();
  }

  #key(event, restart) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.("input, select, textarea, button, summary, a")) return;
    const act = { " ": () => this.toggle(), ".": () => this.player.step(), r: restart, "+": () => this.#faster(1), "-": () => this.#faster(-1) }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  #faster(steps) {
    const at = Number(this.speed.value) + steps;
    if (SPEEDS[at] !== undefined) this.setSpeed(SPEEDS[at]);
  }

  show() {
    const { player } = this;
    const { playing, nowNs, speed, effective } = player;
    const text = playing ? "Pause" : "Play";
    if (this.play.textContent !== text) this.play.textContent = text;
    byId("time").textContent = duration(nowNs);
    const words = speedText(speed);
    const behind = playing && speed !== Infinity && effective !== null && effective < speed * 0.7;
    byId("speed-text").textContent = behind ? `${words} wanted, ${speedText(effective)} reached` : words;
    this.speed.setAttribute("aria-valuetext", words);
    const [first] = player.lanes[0]?.moments ?? [];
    const latestNs = Math.max(nowNs, playing ? 0 : Number(this.back.max) || 0);
    this.back.min = first?.ns ?? 0;
    this.back.max = latestNs;
    this.back.value = nowNs;
    this.back.setAttribute("aria-valuetext", duration(nowNs));
  }
}
