// First in, first out.

class Scheduler {
  constructor(queue) {
    this.held = [];
  }

  insert(request) {
    this.held.push(request);
  }

  dispatch() {
    return this.held.shift() ?? null;
  }
}
