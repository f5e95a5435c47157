"""Commands that repeat or continue a stored experiment."""

from __future__ import annotations

import shlex

from blklab.spec.experiment import OPTIONS, ExperimentSpec


def repeat_command(spec: ExperimentSpec) -> str:
    """The `blklab compare` command for the same experiment, quoted for a POSIX shell.

    Schedulers, blocks or budget, and the seed are always spelled out, since their defaults depend on the
    machine or may change. A job file is named by the path that it was read from; should the file be lost, its
    text is in the stored run.
    """
    words = ["blklab", "compare"]
    for option in OPTIONS:
        if not option.positional:
            words += option.arguments(spec)
    # After `--` a target may begin with a dash.
    words += ["--", spec.target] if spec.target.startswith("-") else [spec.target]
    return shlex.join(words)


def continue_command(
    run_id: str, blocks: int | None = None, *, settled: bool = False, budget: str | None = None
) -> str:
    """The command that continues a stored run.

    Args:
        run_id: Its name.
        blocks: The new total number of blocks; None keeps it.
        settled: Whether the run adds blocks until every question is settled, so that the number is a limit.
        budget: A new budget of time, in place of a number of blocks.
    """
    words = ["blklab", "compare", "--resume", run_id]
    if budget is not None:
        words += ["--budget", budget]
    if blocks is not None:
        words += ["--budget", f"{blocks}blocks"] if settled else ["--blocks", str(blocks)]
    return shlex.join(words)
