// A canvas that fits its box and the screen's pixels, and the colours of the page.

export class Canvas {
  constructor(element) {
    this.element = element;
    this.context = element.getContext("2d");
    new ResizeObserver(() => {
      this.stale = true;
      this.resized?.();
    }).observe(element);
    this.stale = true;
  }

  // Empties it and gives the context with its width and height in CSS pixels.
  begin() {
    if (this.stale) {
      const box = this.element.getBoundingClientRect();
      const scale = window.devicePixelRatio || 1;
      [this.width, this.height] = [box.width, box.height];
      this.element.width = Math.round(box.width * scale);
      this.element.height = Math.round(box.height * scale);
      this.context.setTransform(scale, 0, 0, scale, 0, 0);
      this.stale = false;
    }
    this.context.clearRect(0, 0, this.width, this.height);
    return this.context;
  }
}

const NAMES = ["page", "soft", "line", "grid", "text", "quiet", "accent", "bad", "metal", "metal-edge", "read", "program"];

// Colours from the style sheet, read again when the scheme changes.
export class Theme {
  constructor(changed) {
    this.refresh();
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", () => {
      this.refresh();
      changed();
    });
  }

  refresh() {
    const style = getComputedStyle(document.documentElement);
    for (const name of NAMES) this[name.replace("-edge", "Edge")] = style.getPropertyValue(`--${name}`).trim();
    this.tasks = Array.from({ length: 8 }, (_, index) => style.getPropertyValue(`--task-${index}`).trim());
    this.font = style.getPropertyValue("--font").trim();
  }

  task(job) {
    return this.tasks[job] ?? this.quiet;
  }
}

export function write(context, theme, text, x, y, { colour = theme.quiet, align = "left", px = 12, weight = 400, most } = {}) {
  context.font = `${weight} ${px}px ${theme.font}`;
  context.fillStyle = colour;
  context.textAlign = align;
  context.textBaseline = "middle";
  context.fillText(most === undefined ? text : shortened(context, text, most), x, y);
}

// The text, or as much of its beginning as has room.
function shortened(context, text, most) {
  if (context.measureText(text).width <= most) return text;
  let kept = text.length - 1;
  while (kept > 0 && context.measureText(`${text.slice(0, kept)}…`).width > most) kept -= 1;
  return kept > 1 ? `${text.slice(0, kept).trimEnd()}…` : "";
}
