// Scales that the lanes share, so that their charts can be compared at a glance.

export class Scales {
  constructor() {
    this.ranges = new Map();
  }

  // Notes the range of a chart in one lane; answers the range that covers it in all of them.
  covering(chart, lane, least, most) {
    const ranges = this.ranges.get(chart) ?? new Map();
    this.ranges.set(chart, ranges.set(lane, [least, most]));
    const all = [...ranges.values()];
    return [Math.min(...all.map(([low]) => low)), Math.max(...all.map(([, high]) => high))];
  }
}
