"""blklab's commands in the machine, and loads that are alike in all tests."""

from __future__ import annotations

import json
from typing import Any

from vm.machine import Machine

READ = """\
[reader]
rw=randread
bs=4k
size=8m
direct=1
ioengine=libaio
iodepth=8
time_based
runtime=1s
"""


def put_file(machine: Machine, path: str, text: str) -> str:
    """Writes a file in the machine, and returns its path."""
    machine.run(f"cat > {path}", stdin=text.encode())
    return path


def document(machine: Machine, command: str) -> Any:
    """The JSON document that a command of blklab prints."""
    return json.loads(machine.run(f"blklab {command} --json -").text)


def share_of_each(document: Any) -> dict[str, float]:
    """The part of all I/Os that each job of a run did."""
    ios = {job["name"]: job["ios"] for job in document["jobs"]}
    return {name: number / sum(ios.values()) for name, number in ios.items()}
