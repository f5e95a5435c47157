"""Runs a command again and again, each time with a signal at another moment, drawn at random.

Arguments: seed, how many times, and the command's arguments. Each time is a fork of one process that has
loaded everything, and so takes a fraction of a start. Prints one line of JSON for each: the signal, the exit
code, and what was said on standard error.
"""

from __future__ import annotations

import atexit
import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from blklab.cli import run

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LATEST = 1.2
"""Of the command's duration: a few signals come when all is done."""


def _interrupted(arguments: list[str], after_s: float, number: int) -> dict[str, Any]:
    with tempfile.TemporaryFile() as said:
        begun, begins = os.pipe()
        child = os.fork()
        if child == 0:
            os.dup2(said.fileno(), 2)
            # A signal before or after the command is not its business.
            for each in _SIGNALS:
                signal.signal(each, lambda *_: None)
            os.write(begins, b".")
            code = run(arguments)
            # A program's end runs these, a fork's end does not.
            atexit._run_exitfuncs()
            os._exit(code)
        os.read(begun, 1)
        os.close(begun)
        os.close(begins)
        time.sleep(after_s)
        os.kill(child, number)
        _, status = os.waitpid(child, 0)
        said.seek(0)
        text = said.read().decode(errors="replace")
    return {"signal": number, "code": os.waitstatus_to_exitcode(status), "said": text, "after_s": after_s}


def main(seed: str, times: str, *arguments: str) -> None:
    choose = random.Random(int(seed))  # noqa: S311 - not for secrets
    out = os.fdopen(os.dup(1), "w")
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    run(list(arguments))  # loads everything
    start_s = time.monotonic()
    if run(list(arguments)) != 0:
        sys.exit("the command fails by itself")
    duration_s = time.monotonic() - start_s
    for _ in range(int(times)):
        after_s, number = choose.uniform(0, _LATEST * duration_s), choose.choice(_SIGNALS)
        out.write(json.dumps(_interrupted(list(arguments), after_s, number)) + "\n")
        out.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
