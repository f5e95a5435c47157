// Numbers as people read them.

const digits = (value) => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2));

export function duration(ns) {
  if (ns === 0) return "0 s";
  if (ns < 1e3) return `${Math.round(ns)} ns`;
  if (ns < 1e6) return `${digits(ns / 1e3)} µs`;
  if (ns < 1e9) return `${digits(ns / 1e6)} ms`;
  return `${digits(ns / 1e9)} s`;
}

// The same without zeros behind the point, for the scale of a chart.
const plain = (text) => text.replace(/\.0+ /, " ").replace(/(\.\d*[1-9])0+ /, "$1 ");
export const tick = (ns) => plain(duration(ns));
export const rateTick = (bytesPerSecond) => plain(rate(bytesPerSecond));

// A time on a scale of such steps: as many digits as tell two steps apart.
export function timeTick(ns, stepNs) {
  if (ns === 0) return "0 s";
  const [unit, unitNs] = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]].find(([, one]) => ns >= one) ?? ["ns", 1];
  const places = Math.max(0, Math.ceil(-Math.log10(stepNs / unitNs) - 1e-9));
  return `${(ns / unitNs).toFixed(places)} ${unit}`;
}

// Bytes per second, in decimal units as drives are sold.
export function rate(bytesPerSecond) {
  if (bytesPerSecond < 1e3) return `${Math.round(bytesPerSecond)} B/s`;
  if (bytesPerSecond < 1e6) return `${digits(bytesPerSecond / 1e3)} kB/s`;
  if (bytesPerSecond < 1e9) return `${digits(bytesPerSecond / 1e6)} MB/s`;
  return `${digits(bytesPerSecond / 1e9)} GB/s`;
}

export function size(bytes) {
  for (const [unit, factor] of [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 1024]]) {
    if (bytes >= factor) return `${Number((bytes / factor).toFixed(bytes % factor ? 1 : 0))} ${unit}`;
  }
  return `${bytes} B`;
}

// Bytes in decimal units, as drives are sold.
export function capacityText(bytes) {
  for (const [unit, factor] of [["TB", 1e12], ["GB", 1e9], ["MB", 1e6]]) {
    if (bytes >= factor) return `${Number((bytes / factor).toPrecision(3))} ${unit}`;
  }
  return `${bytes} B`;
}

export const percent = (share) => `${Math.round(share * 100)} %`;

export const requestsText = (count) => `${count} ${count === 1 ? "request" : "requests"}`;

// A step of 1, 2 or 5 times a power of ten that divides a range into about `parts`.
export function niceStep(range, parts) {
  const rough = range / parts;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5].find((one) => one * power >= rough) ?? 10);
}

// The speed of the playback in words.
export function speedText(speed) {
  if (speed === Infinity) return "as fast as it goes";
  if (speed > 0.95 && speed < 1.05) return "real time";
  const factor = speed < 1 ? 1 / speed : speed;
  const rounded = factor >= 10 ? Math.round(factor) : Number(factor.toPrecision(2));
  return `${rounded.toLocaleString("en")} × ${speed < 1 ? "slower" : "faster"}`;
}
