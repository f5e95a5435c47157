"""The command that makes an experiment again."""

from __future__ import annotations

import shlex

from blklab.spec import DEFAULT_CONFIDENCE, DEFAULT_MARGIN, ExperimentSpec

_DURATION_UNITS = (("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1))


def repeat_command(spec: ExperimentSpec) -> str:
    """The `blklab compare` command that asks for the same experiment, quoted for a POSIX shell.

    Schedulers, blocks or budget, and the seed are spelled out even where they are defaults, since defaults
    depend on the machine. A job file is named by the path that it was read from; its text, should the file
    be lost, is in the stored run.
    """
    words = ["blklab", "compare"]
    for workload in spec.workloads:
        words += ["--workload", workload.source]
    if spec.schedulers:
        words += ["--schedulers", ",".join(choice.canonical for choice in spec.schedulers)]
    if spec.blocks is not None:
        words += ["--blocks", str(spec.blocks)]
    if spec.budget_ns is not None:
        words += ["--budget", _exact_duration(spec.budget_ns)]
    words += ["--seed", str(spec.seed)]
    if spec.runtime_ns is not None:
        words += ["--runtime", _exact_duration(spec.runtime_ns)]
    for key, value in spec.queue.items():
        words += ["--queue", f"{key}={value}"]
    for group, settings in spec.cgroups.items():
        for key, value in settings.items():
            words += ["--cgroup", f"{group}:{key}={value}"]
    if spec.confidence != DEFAULT_CONFIDENCE:
        words += ["--confidence", repr(spec.confidence)]
    if spec.margin != DEFAULT_MARGIN:
        words += ["--margin", repr(spec.margin)]
    if spec.allow_writes:
        words.append("--allow-writes")
    # After `--` a target may begin with a dash.
    words += ["--", spec.target] if spec.target.startswith("-") else [spec.target]
    return shlex.join(words)


def continue_command(run_id: str, blocks: int | None = None) -> str:
    """The command that goes on with a stored run, up to `blocks` blocks where given."""
    words = ["blklab", "compare", "--resume", run_id]
    return shlex.join(words if blocks is None else [*words, "--blocks", str(blocks)])


def _exact_duration(duration_ns: int) -> str:
    """A duration that reads back to the same number of nanoseconds."""
    unit, factor = next((unit, factor) for unit, factor in _DURATION_UNITS if duration_ns % factor == 0)
    return f"{duration_ns // factor}{unit}"
