// The controls of the set-up. They are built anew from the set-up whenever it changes, so they never disagree.

import { byId, element, field, number, select } from "./elements.js";
import { copyOf, MOST_GROUPS, MOST_TASKS, newTask } from "./setup.js";
import { taskControls } from "./task_controls.js";

const SHARING_NAMES = [
  ["scheduler", "the scheduler (bfq, cfq)"],
  ["iocost", "io.cost"],
  ["ioband", "dm-ioband"],
];

const hint = (text) => element("p", { class: "hint", textContent: text });

export class Controls {
  // `changed(setup)` is told of every change.
  constructor(shipped, changed) {
    this.shipped = shipped;
    this.changed = changed;
    this.root = byId("controls");
    this.open = new Map();
  }

  // Forgets which parts were open: another scene comes.
  reset() {
    this.open.clear();
    this.root.replaceChildren();
  }

  show(setup) {
    const focused = document.activeElement?.id;
    for (const one of this.root.querySelectorAll("details[data-key]")) this.open.set(one.dataset.key, one.open);
    this.setup = setup;
    this.root.replaceChildren(
      this.#device(),
      ...setup.lanes.map((_, index) => this.#lane(index)),
      this.#tasks(),
      this.#groups(),
      this.#more(),
    );
    for (const one of this.root.querySelectorAll("details[data-key]")) one.open = this.open.get(one.dataset.key) ?? one.open;
    if (focused) byId(focused)?.focus({ preventScroll: true });
  }

  #edit(change) {
    const copy = copyOf(this.setup);
    change(copy);
    this.changed(copy);
  }

  #device() {
    const devices = Object.keys(this.shipped.devices).map((name) => [name, name]);
    const input = select(devices, this.setup.device, {
      id: "device",
      "data-control": "device",
      onchange: () => this.#edit((copy) => {
        copy.device = input.value;
        copy.driveQueue = 0;
      }),
    });
    const own = Number(this.shipped.devices[this.setup.device].parameters.queue_depth ?? 0);
    const depth = number(this.setup.driveQueue || own, 1, 256, (value) => this.#edit((copy) => { copy.driveQueue = value === own ? 0 : value; }), {
      id: "drive-queue",
      "data-control": "driveQueue",
    });
    const parts = [field("Disk", input), hint(this.shipped.devices[this.setup.device].summary)];
    if (this.shipped.devices[this.setup.device].kind === "hdd") parts.push(field("Commands that the drive queues", depth, "1: no NCQ, so only the scheduler orders requests"));
    return element("div", { class: "fields wide" }, ...parts);
  }

  #schedulers() {
    return this.shipped.schedulers.map(({ name }) => [name, name]);
  }

  #lane(index) {
    const { lanes } = this.setup;
    const { scheduler, tunables } = lanes[index];
    const input = select(this.#schedulers(), scheduler, {
      id: `scheduler-${index}`,
      "data-control": "scheduler",
      onchange: () => this.#edit((copy) => { copy.lanes[index] = { scheduler: input.value, tunables: {} }; }),
    });
    const parts = [element("div", { class: "fields wide" }, field(index ? "Beside it" : "Scheduler", input))];
    const about = this.shipped.schedulers.find((one) => one.name === scheduler);
    if (about.tunables.length) parts.push(this.#tunables(index, about, tunables));
    if (index === lanes.length - 1) parts.push(this.#beside());
    return element("div", { class: "lane-controls" }, ...parts);
  }

  #beside() {
    const two = this.setup.lanes.length === 2;
    const other = this.setup.lanes[0].scheduler === "none" ? "mq-deadline" : "none";
    return element("button", {
      type: "button",
      class: "plain",
      id: "beside",
      "data-control": "beside",
      textContent: two ? "Show only the first scheduler" : "Put a second scheduler beside it",
      onclick: () => this.#edit((copy) => {
        if (two) copy.lanes.pop();
        else copy.lanes.push({ scheduler: other, tunables: {} });
      }),
    });
  }

  #tunables(index, about, given) {
    const inputs = about.tunables.map((tunable) => {
      const value = given[tunable.name] ?? String(tunable.default);
      const id = `tunable-${index}-${tunable.name}`;
      const input = element("input", { type: "text", inputMode: "numeric", size: 8, value, id, "data-control": "tunable" });
      input.addEventListener("change", () => this.#edit((copy) => {
        const text = input.value.trim();
        if (text === "" || text === String(tunable.default)) delete copy.lanes[index].tunables[tunable.name];
        else copy.lanes[index].tunables[tunable.name] = text;
      }));
      const unit = tunable.unit && tunable.unit !== "bool" ? `, ${tunable.unit}` : "";
      return field(`${tunable.name}${unit}`, input, tunable.help);
    });
    const changed = Object.keys(given).length;
    const title = `Tunables of ${about.name}${changed ? ` (${changed} changed)` : ""}`;
    return element("details", { "data-key": `tunables-${index}` }, element("summary", { textContent: title }), element("div", { class: "fields" }, ...inputs));
  }

  #tasks() {
    const { tasks } = this.setup;
    const edit = (change) => this.#edit(change);
    const made = tasks.map((_, index) => {
      const one = taskControls(this.setup, index, edit);
      one.dataset.key = `task-${index}`;
      return one;
    });
    const add = element("button", {
      type: "button",
      id: "add-task",
      "data-control": "task.add",
      textContent: "Add a task",
      disabled: tasks.length >= MOST_TASKS,
      onclick: () => this.#edit((copy) => copy.tasks.push(newTask(this.#free("task", tasks), "randread"))),
    });
    return element("fieldset", {}, element("legend", { textContent: "Tasks" }), ...made, add);
  }

  #free(stem, taken) {
    const names = new Set(taken.map(({ name }) => name));
    let number = taken.length + 1;
    while (names.has(`${stem}${number}`)) number += 1;
    return `${stem}${number}`;
  }

  #groups() {
    const { groups, sharing } = this.setup;
    const rows = groups.map(({ name, weight }, index) => element(
      "div",
      { class: "group" },
      field(`Weight of ${name}`, number(weight, 1, 1000, (value) => this.#edit((copy) => { copy.groups[index].weight = value; }), {
        id: `weight-${index}`,
        "data-control": "group.weight",
      })),
      element("button", {
        type: "button",
        class: "plain",
        textContent: `Remove ${name}`,
        "data-control": "group.remove",
        onclick: () => this.#edit((copy) => {
          copy.groups.splice(index, 1);
          for (const task of copy.tasks) if (task.group === name) task.group = "";
        }),
      }),
    ));
    const keeper = select(SHARING_NAMES, sharing, {
      id: "sharing",
      "data-control": "sharing",
      onchange: () => this.#edit((copy) => { copy.sharing = keeper.value; }),
    });
    const add = element("button", {
      type: "button",
      id: "add-group",
      "data-control": "group.add",
      textContent: "Add a group",
      disabled: groups.length >= MOST_GROUPS,
      onclick: () => this.#edit((copy) => copy.groups.push({ name: this.#free("group", groups), weight: 100 })),
    });
    const shown = groups.length ? [...rows, element("div", { class: "fields wide" }, field("Weights are kept by", keeper))] : [];
    return element("details", { "data-key": "groups", open: groups.length > 0 }, element("summary", { textContent: `Control groups${groups.length ? ` (${groups.length})` : ""}` }), ...shown, add);
  }

  #more() {
    const { dispatchWait, machine, seed } = this.setup;
    const machines = Object.keys(this.shipped.machines).map((name) => [name, name]);
    const processors = select(machines, machine, {
      id: "machine",
      "data-control": "machine",
      onchange: () => this.#edit((copy) => { copy.machine = processors.value; }),
    });
    return element(
      "details",
      { "data-key": "more", open: dispatchWait > 0 || machine !== "zero-cpu-time" },
      element("summary", { textContent: "More" }),
      element("div", { class: "fields wide" }, field("Processors", processors), hint(this.shipped.machines[machine].summary)),
      element(
        "div",
        { class: "fields" },
        field("Wait in dispatch, ms", number(dispatchWait, 0, 1000, (value) => this.#edit((copy) => { copy.dispatchWait = value; }), {
          id: "dispatch-wait",
          "data-control": "dispatchWait",
        }), "as a patch with mdelay() in the scheduler's dispatch function waits"),
        field("Seed", number(seed, 0, 2 ** 31 - 1, (value) => this.#edit((copy) => { copy.seed = value; }), { id: "seed", "data-control": "seed" }), "of all random choices"),
      ),
    );
  }
}
