// Lessons: scenes that set the playground and say what to watch. Their statements are checked against the simulator,
// here on demand and by the tests.

import { byId, element } from "./elements.js";
import { fromHash } from "./link.js";
import { jobLatencyNs, jobThroughput, measure } from "./measure.js";

// The measured figure of one side of a statement.
function figure(side, outcomes, names) {
  const outcome = outcomes[side.lane ?? 0];
  return side.metric === "throughput" ? jobThroughput(outcome, side.task) : jobLatencyNs(outcome, side.task, side.metric);
}

// Whether a statement holds, and the ratio that decides it: `left` over `right`, from `least` to `most`.
export function judge(statement, outcomes) {
  const [left, right] = [figure(statement.left, outcomes), figure(statement.right, outcomes)];
  const ratio = left / right;
  return { left, right, ratio, holds: ratio >= (statement.least ?? -Infinity) && ratio <= (statement.most ?? Infinity) };
}

// Runs a lesson's set-up and judges its statements.
export function examine(lesson, simulator, shipped) {
  const setup = fromHash(lesson.link);
  const outcomes = setup.lanes.map((_, lane) => measure(simulator, setup, lane, shipped, lesson.seconds));
  return lesson.statements.map((statement) => ({ text: statement.text, ...judge(statement, outcomes) }));
}

export class Lessons {
  constructor(lessons, { show, check }) {
    this.lessons = lessons;
    this.show = show;
    this.check = check;
    const list = byId("lesson-list");
    list.append(...lessons.map((lesson, index) => element("li", {}, element("button", {
      type: "button",
      id: `lesson-${lesson.id}`,
      "data-control": "lesson",
      textContent: lesson.title,
      onclick: () => this.open(index),
    }))));
    byId("lesson-close").addEventListener("click", () => this.close());
    byId("lesson-next").addEventListener("click", () => this.open((this.at + 1) % lessons.length));
    byId("lesson-check").addEventListener("click", () => this.#measure());
  }

  open(index) {
    this.at = index;
    const lesson = this.lessons[index];
    byId("lesson").hidden = false;
    byId("lesson-title").textContent = lesson.title;
    byId("lesson-text").textContent = lesson.text;
    byId("lesson-watch").textContent = lesson.watch;
    byId("lesson-statements").replaceChildren(...lesson.statements.map(({ text }) => element("li", { textContent: text })));
    for (const [other, one] of this.lessons.entries()) byId(`lesson-${one.id}`).setAttribute("aria-pressed", String(other === index));
    byId("lanes").dataset.watch = lesson.picture;
    this.show(lesson);
    byId(`lesson-${lesson.id}`).scrollIntoView({ block: "nearest", inline: "center" });
    byId("lesson").scrollIntoView({ block: "nearest" });
  }

  close() {
    byId("lesson").hidden = true;
    delete byId("lanes").dataset.watch;
    for (const one of this.lessons) byId(`lesson-${one.id}`).setAttribute("aria-pressed", "false");
  }

  #measure() {
    const judged = this.check(this.lessons[this.at]);
    byId("lesson-statements").replaceChildren(...judged.map(({ text, ratio, holds }) => element("li", { class: holds ? "holds" : "fails" }, text, element("b", { textContent: ` Measured just now: ${ratio.toPrecision(3)} to 1.` }))));
  }
}
