"""The page's simulator is the native one, to the bit."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from typing import Any

import pytest

from blklab import _core
from blklab.spec.machines import shipped_machines
from blklab.spec.profiles import shipped_profiles
from playground_page import Playground

pytestmark = pytest.mark.browser

REQUESTS = 220
_SCHEDULERS = tuple(entry["name"] for entry in json.loads(_core.schedulers()))
_PATTERNS = ("randread", "read", "randwrite", "write", "randrw")


def _task(draw: random.Random, name: str) -> list[str]:
    buffered = draw.random() < 0.3
    lines = [
        f"[{name}]",
        f"readwrite={draw.choice(_PATTERNS)}",
        f"blocksize={draw.choice(('4k', '16k', '64k', '256k'))}",
        f"size={draw.choice(('16m', '256m', '2g'))}",
        f"direct={int(not buffered)}",
        f"ioengine={'psync' if buffered else 'libaio'}",
        f"iodepth={1 if buffered else draw.choice((1, 4, 32))}",
        f"numjobs={draw.randint(1, 3)}",
        "norandommap",
        draw.choice(("", "fsync=8", "thinktime=300", "prioclass=3", "prioclass=2\nprio=0", "cgroup=group")),
    ]
    return [line for line in lines if line]


def request(number: int) -> dict[str, Any]:
    """One of many different requests; device and scheduler go through all pairs."""
    draw = random.Random(f"playground {number}")  # noqa: S311 - not for secrets
    pairs = list(itertools.product(shipped_profiles().items(), _SCHEDULERS))
    (name, profile), scheduler = pairs[number % len(pairs)]
    tasks = [line for task in range(draw.randint(1, 3)) for line in [*_task(draw, f"task{task}"), ""]]
    machine = shipped_machines()[draw.choice(("zero-cpu-time", "ordinary"))]
    return {
        "device": {"profile": profile.text, "source": f"{name}.toml"},
        "scheduler": scheduler,
        "cgroups": {"group": {"io.weight": "30", "io.bfq.weight": "30"}},
        "jobs": {"text": "\n".join(["[global]", "time_based", "runtime=1s", "", *tasks]), "source": "test"},
        "runtime_ns": draw.choice((20, 50, 120)) * 1_000_000,
        "processors": machine.request(),
        "seed": number,
    }


def test_answers_equal_those_of_the_native_program(playground: Playground) -> None:
    for number in range(REQUESTS):
        text = json.dumps(request(number))
        in_browser = playground.evaluate(f"playground.simulate({json.dumps(text)})")
        assert in_browser == _core.simulate(text), f"request {number}"


def test_the_page_asks_what_python_asks(playground: Playground) -> None:
    """A set-up's own request, taken from the page, gives the same answer natively."""
    for lesson in range(int(playground.evaluate("playground.lessons.lessons.length"))):
        playground.click(playground.evaluate(f"'lesson-' + playground.lessons.lessons[{lesson}].id"))
        playground.evaluate("playground.player.play(false)")
        for lane in range(int(playground.evaluate("playground.player.lanes.length"))):
            asked = json.loads(playground.evaluate(f"JSON.stringify(playground.requestOf({lane}))"))
            asked |= {"runtime_ns": 30_000_000, "timeline": False}
            text = json.dumps(asked)
            assert playground.evaluate(f"playground.simulate({json.dumps(text)})") == _core.simulate(text)


def test_steps_of_any_length_give_the_rows_of_one_go(playground: Playground) -> None:
    """Rows of the timeline, taken frame by frame, are those that the native program writes."""
    playground.open(
        "#device=hdd-7200&scheduler=bfq&task=one,randread,depth:4&task=two,write,block:64k,depth:2"
    )
    asked = json.loads(playground.evaluate("JSON.stringify(playground.requestOf(0))"))
    digest = """(async () => {
      const { simulator } = playground;
      const handle = simulator.open(playground.requestOf(0));
      const parts = [];
      for (let ns = 0; ns < 400e6; ns += 7e6) {
        simulator.advance(handle, Math.min(400e6, ns + 7e6));
        const rows = simulator.rows(handle, 'requests');
        parts.push(new Uint8Array(rows.buffer, rows.byteOffset, rows.byteLength).slice());
      }
      simulator.close(handle);
      const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
      return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
    })()"""
    rows = bytes.fromhex(playground.evaluate(digest))
    text = json.dumps(asked | {"runtime_ns": 600_000_000})
    _, tables = _core.simulate_recorded(text)
    assert tables is not None
    assert len(rows) > 2000
    assert hashlib.sha256(rows).digest() == hashlib.sha256(tables[0][: len(rows)]).digest()
