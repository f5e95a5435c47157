"""Measures the playground in a browser: start-up, the cost of a frame, and frames a second as it plays.

A frame has 16.7 ms at 60 frames a second and 50 ms at 20. The page draws one chart in turn as it plays; where
the cost is measured, each frame draws all. From the project's folder, where Chromium is installed::

    python benches/playground.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from blklab.labs.playground.page import render_playground
from chromium import find_chromium, open_page
from playground_page import Playground, open_playground

FRAMES = """(() => {
  const { player } = playground;
  const costs = [];
  for (let frame = 1; frame <= 60; frame += 1) {
    const from = performance.now();
    for (const lane of player.lanes) { lane.advance(frame * FRAME_NS); lane.look(); }
    player.drawn(16);
    costs.push(performance.now() - from);
  }
  return costs.sort((one, other) => one - other);
})()"""
PLAYED = """new Promise((done) => {
  const { player } = playground;
  const [frames, from] = [player.frames, performance.now()];
  player.play(true);
  setTimeout(() => {
    player.play(false);
    done((player.frames - frames) * 1000 / (performance.now() - from));
  }, 2000);
})"""
CASES = {
    "hdd-7200": (
        ("none", "mq-deadline", "kyber", "bfq", "noop", "deadline", "anticipatory", "cfq"),
        "task=one,randread,depth:32&task=two,write,depth:8",
        800_000,
    ),
    "nvme-tlc": (
        ("none", "mq-deadline", "kyber", "bfq"),
        "task=readers,randread,depth:32,processes:8",
        500_000,
    ),
}
"""By disk: the schedulers, the tasks, and the simulated time of a frame in ns."""


def main() -> None:
    """Prints one line for the start and one for each disk and scheduler."""
    program = find_chromium()
    if program is None:
        sys.exit("chromium is not installed (Debian: chromium)")
    with tempfile.TemporaryDirectory() as folder, open_page(program) as page:
        file = Path(folder) / "playground.html"
        file.write_text(render_playground(), encoding="utf-8")
        page.emulate(width=1280)
        playground: Playground = open_playground(page, file)
        ready_ms = float(playground.evaluate("document.documentElement.dataset.ready"))
        print(f"ready after {ready_ms:.0f} ms, {file.stat().st_size / 1e6:.2f} MB")  # noqa: T201
        for disk, (schedulers, tasks, frame_ns) in CASES.items():
            for scheduler in schedulers:
                playground.open(f"#device={disk}&scheduler={scheduler}&{tasks}")
                playground.evaluate("playground.transport.setSpeed(0.01)")
                costs_ms = playground.evaluate(FRAMES.replace("FRAME_NS", str(frame_ns)))
                median, slowest = costs_ms[len(costs_ms) // 2], costs_ms[-4]
                played = playground.evaluate(PLAYED)
                cost = f"{median:.2f} ms a frame, 57 of 60 below {slowest:.2f} ms"
                print(f"{disk} {scheduler}: {cost}; {played:.0f} frames a second")  # noqa: T201


if __name__ == "__main__":
    main()
