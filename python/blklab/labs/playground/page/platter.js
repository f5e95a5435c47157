// The disk from above: the platter turns as the simulated one does, and the arm is where the simulated arm is.

import { duration } from "./format.js";
import { write } from "./canvas.js";

const TURN = 2 * Math.PI;
const DOTS = 400;
// From this part of a turn in a frame on, the eye sees nonsense, and the platter stands still instead.
const FASTEST_TURN = 0.2;

// Where the arm's tip is over a radius: the arm turns about a pivot beside the platter.
class Arm {
  constructor(cx, cy, outer) {
    this.cx = cx;
    this.cy = cy;
    this.pivot = { x: cx + outer * 1.08, y: cy + outer * 0.72 };
    this.length = outer * 1.02;
    this.distance = Math.hypot(this.pivot.x - cx, this.pivot.y - cy);
    this.towards = Math.atan2(this.pivot.y - cy, this.pivot.x - cx);
  }

  // The angle about the spindle at which a track of this radius passes under the head.
  angle(radius) {
    const { distance: d, length } = this;
    const cosine = (radius * radius + d * d - length * length) / (2 * radius * d);
    return this.towards - Math.acos(Math.min(1, Math.max(-1, cosine)));
  }

  tip(radius) {
    const angle = this.angle(radius);
    return { x: this.cx + radius * Math.cos(angle), y: this.cy + radius * Math.sin(angle) };
  }
}

// The arm's cylinder at a time within its last motion, with an acceleration and a braking half.
export function cylinderAt(motion, nowNs) {
  const span = motion.arrive_ns - motion.start_ns;
  const part = span > 0 ? Math.min(1, Math.max(0, (nowNs - motion.start_ns) / span)) : 1;
  const eased = part < 0.5 ? 2 * part * part : 1 - 2 * (1 - part) ** 2;
  const last = motion.to + (motion.end - motion.to) * Math.min(1, Math.max(0, (nowNs - motion.transfer_ns) / Math.max(1, motion.done_ns - motion.transfer_ns)));
  return part < 1 ? motion.from + (motion.to - motion.from) * eased : last;
}

// What the arm does at a time, in words.
export function armText(motion, nowNs) {
  if (nowNs >= motion.done_ns) return "the arm is idle";
  if (nowNs < motion.arrive_ns) return `the arm seeks, ${duration(motion.arrive_ns - nowNs)} to go`;
  if (nowNs < motion.transfer_ns) return `on track, the sector comes in ${duration(motion.transfer_ns - nowNs)}`;
  return `${motion.destages ? "writes from the drive's cache" : "transfers"}, ${duration(motion.done_ns - nowNs)} to go`;
}

export class Platter {
  constructor(lane) {
    this.device = lane.view.device;
    this.trail = [];
    this.lastNs = 0;
    this.frozen = 0;
  }

  draw(context, width, height, view, theme) {
    const { device, now_ns: nowNs } = view;
    const outer = Math.min(width * 0.42, height * 0.47);
    const inner = outer * 0.36;
    const cx = width / 2 - outer * 0.14;
    const cy = height / 2;
    const arm = new Arm(cx, cy, outer);
    const radiusOf = (cylinder) => outer * 0.975 - (outer * 0.975 - inner * 1.06) * (cylinder / device.cylinders);
    const turns = Math.abs(nowNs - this.lastNs) / device.revolution_ns;
    const still = turns > FASTEST_TURN;
    if (!still) this.frozen = nowNs % device.revolution_ns;
    this.lastNs = nowNs;
    const phaseNs = this.frozen;

    this.#disk(context, cx, cy, outer, inner, (phaseNs / device.revolution_ns) * TURN, theme);
    const place = (request) => {
      const radius = radiusOf(request.cylinder);
      const turnNs = (request.angle_ns - phaseNs + device.revolution_ns) % device.revolution_ns;
      const angle = arm.angle(radius) - (turnNs / device.revolution_ns) * TURN;
      return { x: cx + radius * Math.cos(angle), y: cy + radius * Math.sin(angle) };
    };
    this.#waiting(context, view, place, theme);
    this.#arm(context, arm, device.motion, nowNs, radiusOf, view, theme);
    if (still) write(context, theme, "too fast to see it turn", width - 10, 16, { align: "right" });
  }

  #disk(context, cx, cy, outer, inner, turned, theme) {
    const shine = context.createConicGradient(turned, cx, cy);
    for (let part = 0; part <= 4; part += 1) {
      shine.addColorStop(part / 4, theme.metal);
      if (part < 4) shine.addColorStop((part + 0.5) / 4, theme.metalEdge);
    }
    context.beginPath();
    context.arc(cx, cy, outer, 0, TURN);
    context.arc(cx, cy, inner, 0, TURN, true);
    context.fillStyle = shine;
    context.fill();
    context.strokeStyle = theme.line;
    context.lineWidth = 1;
    for (let ring = 0; ring <= 6; ring += 1) {
      context.beginPath();
      context.arc(cx, cy, inner + ((outer - inner) * ring) / 6, 0, TURN);
      context.stroke();
    }
    context.beginPath();
    context.arc(cx, cy, inner * 0.8, 0, TURN);
    context.fillStyle = theme.soft;
    context.fill();
    context.stroke();
    for (let screw = 0; screw < 6; screw += 1) {
      const angle = turned + (screw / 6) * TURN;
      context.beginPath();
      context.arc(cx + inner * 0.55 * Math.cos(angle), cy + inner * 0.55 * Math.sin(angle), inner * 0.07, 0, TURN);
      context.fillStyle = theme.line;
      context.fill();
    }
  }

  // Requests at their places: rings with the scheduler, discs in the drive.
  #waiting(context, view, place, theme) {
    const dot = (request, filled) => {
      const { x, y } = place(request);
      context.beginPath();
      context.arc(x, y, filled ? 4.5 : 4, 0, TURN);
      if (filled) {
        context.fillStyle = theme.task(request.job);
        context.fill();
        context.strokeStyle = theme.page;
        context.lineWidth = 1;
        context.stroke();
      } else {
        context.strokeStyle = theme.task(request.job);
        context.lineWidth = 2;
        context.stroke();
      }
    };
    for (const request of view.held.slice(0, DOTS)) dot(request, false);
    for (const request of view.in_device) dot(request, true);
  }

  #arm(context, arm, motion, nowNs, radiusOf, view, theme) {
    const radius = radiusOf(cylinderAt(motion, nowNs));
    const tip = arm.tip(radius);
    const served = view.in_device.find((request) => request.id === motion.command);
    const busy = nowNs < motion.done_ns;
    const transfers = busy && nowNs >= motion.transfer_ns;
    const colour = busy ? (served ? theme.task(served.job) : theme.quiet) : theme.line;
    if (transfers) {
      context.beginPath();
      context.arc(tip.x, tip.y, 15, 0, TURN);
      context.fillStyle = colour;
      context.globalAlpha = 0.35;
      context.fill();
      context.globalAlpha = 1;
    }
    const { pivot } = arm;
    const across = { x: -(tip.y - pivot.y) / arm.length, y: (tip.x - pivot.x) / arm.length };
    context.beginPath();
    context.moveTo(pivot.x + across.x * 11, pivot.y + across.y * 11);
    context.lineTo(tip.x + across.x * 2.5, tip.y + across.y * 2.5);
    context.lineTo(tip.x - across.x * 2.5, tip.y - across.y * 2.5);
    context.lineTo(pivot.x - across.x * 11, pivot.y - across.y * 11);
    context.closePath();
    context.fillStyle = theme.page;
    context.strokeStyle = theme.quiet;
    context.lineWidth = 1.5;
    context.fill();
    context.stroke();
    context.beginPath();
    context.arc(pivot.x, pivot.y, 15, 0, TURN);
    context.fillStyle = theme.soft;
    context.fill();
    context.stroke();
    context.beginPath();
    context.arc(tip.x, tip.y, 6.5, 0, TURN);
    context.fillStyle = colour;
    context.fill();
    context.strokeStyle = theme.text;
    context.stroke();
  }
}
