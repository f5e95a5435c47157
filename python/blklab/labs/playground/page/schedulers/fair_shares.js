// Fair shares: the task that has used the device least for its weight goes
// next. On a disk with an arm, one request is in the drive at a time,
// because the drive would choose by itself; and a task keeps the disk for
// 8 MiB more than its share, since each change costs a seek. While it asks
// for nothing, the disk waits 3 ms for it: its next request is often near.

const WAIT_NS = 3e6;
// A seek takes as long as the transfer of so many bytes.
const SEEK_BYTES = 1 << 20;
const SLICE_BYTES = 8 << 20;

class Scheduler {
  constructor(queue) {
    this.queue = queue;
    this.tasks = new Map();
    this.last = null;
    this.end = -1;
    this.in_device = 0;
    this.until_ns = 0;
  }

  insert(request) {
    let task = this.tasks.get(request.task);
    if (!task) {
      task = { held: [], used: 0 };
      this.tasks.set(request.task, task);
    }
    // A task that comes back has no credit for the time that it was away.
    if (task.held.length === 0 && task !== this.last) {
      task.used = Math.max(task.used, this.least());
    }
    task.held.push(request);
  }

  waiting() {
    return [...this.tasks.values()].filter((task) => task.held.length > 0);
  }

  least() {
    const used = this.waiting().map((task) => task.used);
    return used.length > 0 ? Math.min(...used) : 0;
  }

  slice() {
    return this.queue.rotational ? SLICE_BYTES / this.last.weight : 0;
  }

  dispatch() {
    const waiting = this.waiting();
    if (waiting.length === 0) return null;
    if (this.queue.rotational && this.in_device > 0) return null;
    let next = waiting.reduce((one, other) => (other.used < one.used ? other : one));
    if (this.last && this.last.used <= next.used + this.slice()) {
      if (this.last.held.length > 0) {
        next = this.last;
      } else if (this.queue.now_ns < this.until_ns) {
        this.queue.timer_at(this.until_ns);
        return null;
      }
    }
    const request = next.held.shift();
    const seek = this.queue.rotational && request.sector !== this.end ? SEEK_BYTES : 0;
    this.end = request.sector + request.bytes / 512;
    next.used += (request.bytes + seek) / request.weight;
    next.weight = request.weight;
    this.last = next;
    this.in_device += 1;
    return request;
  }

  completed(request) {
    this.in_device -= 1;
    const task = this.tasks.get(request.task);
    if (this.queue.rotational && task === this.last) {
      this.until_ns = this.queue.now_ns + WAIT_NS;
    }
  }
}
