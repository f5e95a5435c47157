// The controls of one task.

import { element, field, number, select } from "./elements.js";
import { MOST_PROCESSES, parseSize, TASK_FIELDS } from "./setup.js";

export const PATTERN_NAMES = {
  randread: "random reads",
  read: "sequential reads",
  randwrite: "random writes",
  write: "sequential writes",
  randrw: "random reads and writes",
};

const CLASS_NAMES = [
  ["none", "none"],
  ["rt", "real time"],
  ["be", "best effort"],
  ["idle", "idle"],
];
const BLOCKS = ["512", "4k", "16k", "64k", "256k", "1m"];

// `edit(change)` gets a function that changes the task in a copy of the set-up.
export function taskControls(setup, index, edit) {
  const task = setup.tasks[index];
  const set = (name, value) => edit((copy) => { copy.tasks[index][name] = value; });
  const named = (name) => ({ id: `task-${index}-${name}`, "data-control": `task.${name}` });
  const count = (name, text, hint, properties = {}) => {
    const { least, most } = TASK_FIELDS[name];
    return field(text, number(task[name], least, most, (value) => set(name, value), { ...named(name), ...properties }), hint);
  };
  const choice = (name, text, pairs, hint) =>
    field(text, select(pairs, String(task[name]), { ...named(name), onchange: (event) => set(name, typeof task[name] === "boolean" ? event.target.value === "true" : event.target.value) }), hint);
  const broad = (made) => { made.classList.add("broad"); return made; };
  const blocks = BLOCKS.includes(task.block) ? BLOCKS : [task.block, ...BLOCKS];
  const groups = [["", "none"], ...setup.groups.map(({ name }) => [name, name])];
  const levelled = task.class === "rt" || task.class === "be";
  return element(
    "details",
    { class: "task", open: setup.tasks.length === 1, name: "" },
    element(
      "summary",
      {},
      element("span", { class: `swatch task-${index}`, "aria-hidden": "true" }),
      element("b", { textContent: task.name }),
      element("span", { class: "quiet", textContent: ` ${summary(task)}` }),
    ),
    element(
      "div",
      { class: "fields" },
      broad(choice("pattern", "Does", Object.entries(PATTERN_NAMES))),
      choice("block", "Block", blocks.map((one) => [one, one]), "bytes of one I/O"),
      count("processes", "Processes", "processes that do this, each with a file of its own", { max: MOST_PROCESSES }),
      count("depth", "I/Os at once", "I/Os of each process under way at once; direct I/O only", { disabled: task.buffered }),
      choice("buffered", "Through", [["false", "direct I/O"], ["true", "the page cache"]], "O_DIRECT, or the page cache"),
      count("fsync", "fsync after", "writes between two calls of fsync; 0: never", { disabled: !task.pattern.includes("w") }),
      count("think", "Thinks, µs", "pause after each I/O"),
      count("begin", "Begins at, ms", "start delay"),
      choice("class", "I/O class", CLASS_NAMES, "ionice -c; none: as nice says"),
      count("level", "Level", "ionice -n: 0 is best", { disabled: !levelled }),
      choice("group", "Group", groups, "control group"),
      field("File size", sizeInput(task, (value) => set("file", value), named("file")), "of each process; empty: as large as fits"),
    ),
    element("button", {
      type: "button",
      class: "plain",
      textContent: `Remove ${task.name}`,
      disabled: setup.tasks.length === 1,
      "data-control": "task.remove",
      onclick: () => edit((copy) => copy.tasks.splice(index, 1)),
    }),
  );
}

function summary(task) {
  const many = task.processes > 1 ? `${task.processes} × ` : "";
  const level = { none: "", rt: `, real time ${task.level}`, be: `, best effort ${task.level}`, idle: ", idle class" }[task.class];
  return `${many}${PATTERN_NAMES[task.pattern]}, ${task.block}${level}${task.group ? `, ${task.group}` : ""}`;
}

function sizeInput(task, changed, properties) {
  const input = element("input", { type: "text", value: task.file, placeholder: "fills the disk", size: 8, ...properties });
  input.addEventListener("change", () => {
    const text = input.value.trim();
    const fits = text === "" || (parseSize(text) ?? 0) >= TASK_FIELDS.file.least;
    input.setCustomValidity(fits ? "" : "a size such as 64m or 10g");
    input.reportValidity();
    if (fits) changed(text);
  });
  return input;
}
