// An elevator: sweeps over the disk in order of sectors. What comes during
// a sweep waits for the next one, so nothing starves.

class Scheduler {
  constructor(queue) {
    this.sweep = [];
    this.next = [];
  }

  insert(request) {
    this.next.push(request);
  }

  dispatch() {
    if (this.sweep.length === 0) {
      this.sweep = this.next.sort((one, other) => one.sector - other.sector);
      this.next = [];
    }
    return this.sweep.shift() ?? null;
  }
}
