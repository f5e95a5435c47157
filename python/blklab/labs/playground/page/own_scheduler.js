// A scheduler of one's own, for the simulator: the page's half of crates/blkplay/src/own_scheduler.rs. The simulator
// calls these functions with handles and numbers; the scheduler sees requests and its queue.

const OPERATIONS = ["read", "write", "flush", "discard"];
const CLASSES = ["rt", "be", "idle"];
const THREW = -1;

class Queue {
  #timerNs = 0;

  constructor(rotational, nrRequests, deviceDepth) {
    this.rotational = rotational === 1;
    this.nr_requests = nrRequests;
    this.device_depth = deviceDepth;
    this.now_ns = 0;
  }

  // Asks for a call of timer() at a time, after which the queue dispatches. The last call counts.
  timer_at(timeNs) {
    if (!Number.isFinite(timeNs)) throw new TypeError(`timer_at(${timeNs}) is no time in nanoseconds`);
    this.#timerNs = Math.max(1, Math.round(timeNs));
  }

  takeTimerNs() {
    const timeNs = this.#timerNs;
    this.#timerNs = 0;
    return timeNs;
  }
}

function describe(answer) {
  try {
    return JSON.stringify(answer) ?? String(answer);
  } catch {
    return String(answer);
  }
}

class RunningScheduler {
  constructor(Scheduler, queue) {
    this.queue = queue;
    this.requests = new Map();
    this.scheduler = new Scheduler(queue);
    for (const method of ["insert", "dispatch"]) {
      if (typeof this.scheduler[method] !== "function") throw new TypeError(`the class Scheduler has no method ${method}()`);
    }
  }

  insert(nowNs, number, sector, bytes, operation, sync, task, ioprioClass, level, group, weight) {
    this.queue.now_ns = nowNs;
    const request = Object.freeze({
      number,
      sector,
      bytes,
      operation: OPERATIONS[operation],
      sync: sync === 1,
      task,
      ioprio_class: CLASSES[ioprioClass],
      ioprio_level: level,
      group,
      weight,
    });
    this.requests.set(number, request);
    this.scheduler.insert(request);
    return 0;
  }

  dispatch(nowNs) {
    this.queue.now_ns = nowNs;
    const request = this.scheduler.dispatch() ?? null;
    if (request === null) return 0;
    if (!Number.isInteger(request.number) || request.number < 1) throw new TypeError(`dispatch() returned ${describe(request)}, not a request or null`);
    return request.number;
  }

  completed(nowNs, number) {
    this.queue.now_ns = nowNs;
    const request = this.requests.get(number);
    this.requests.delete(number);
    this.scheduler.completed?.(request);
    return 0;
  }

  timer(nowNs) {
    this.queue.now_ns = nowNs;
    this.scheduler.timer?.();
    return 0;
  }
}

// The functions that the simulator imports, and `thrown`: the exception of the code that failed. Without a class
// there is none to begin.
export function hooksOf(Scheduler) {
  const running = new Map();
  let last = 0;
  const hooks = { thrown: null, functions: {} };
  const guarded = (work) => (...given) => {
    try {
      return work(...given);
    } catch (error) {
      hooks.thrown ??= error ?? new Error("the code threw nothing at all");
      return THREW;
    }
  };
  const begin = (rotational, nrRequests, deviceDepth) => {
    if (typeof Scheduler !== "function") throw new TypeError("there is no class Scheduler; begin with: class Scheduler {");
    last += 1;
    running.set(last, new RunningScheduler(Scheduler, new Queue(rotational, nrRequests, deviceDepth)));
    return last;
  };
  const call = (method) => (handle, ...given) => running.get(handle)[method](...given);
  const copy = () => {
    throw new Error("a scheduler of the page's own cannot be copied");
  };
  hooks.functions = {
    scheduler_begin: guarded(begin),
    scheduler_copy: guarded(copy),
    scheduler_end: (handle) => running.delete(handle),
    scheduler_insert: guarded(call("insert")),
    scheduler_dispatch: guarded(call("dispatch")),
    scheduler_completed: guarded(call("completed")),
    scheduler_timer: guarded(call("timer")),
    scheduler_take_timer_ns: (handle) => running.get(handle).queue.takeTimerNs(),
  };
  return hooks;
}
