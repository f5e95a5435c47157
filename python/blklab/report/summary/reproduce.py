"""The command that makes an experiment again."""

from __future__ import annotations

import shlex

from blklab.spec.experiment import DEFAULT_CONFIDENCE, DEFAULT_MARGIN, ExperimentSpec

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
    if spec.budget_blocks is not None:
        words += ["--budget", f"{spec.budget_blocks}blocks"]
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
    words += _purpose(spec)
    words += _guest_words(spec)
    if spec.allow_writes:
        words.append("--allow-writes")
    # After `--` a target may begin with a dash.
    words += ["--", spec.target] if spec.target.startswith("-") else [spec.target]
    return shlex.join(words)


def _purpose(spec: ExperimentSpec) -> list[str]:
    """Goal, sweeps (their cells are among the schedulers already) and preconditioning."""
    words = [] if spec.goal is None else ["--goal", spec.goal.canonical]
    for sweep in spec.sweeps:
        words += ["--sweep", sweep.canonical]
    return [*words, "--precondition"] if spec.precondition else words


def _guest_words(spec: ExperimentSpec) -> list[str]:
    """What guest kernels were asked for; settled schedulers name theirs themselves."""
    words: list[str] = []
    if spec.kernels and (not spec.schedulers or any(choice.kernel is None for choice in spec.schedulers)):
        words += ["--kernel", ",".join(spec.kernels)]
    for key, value in spec.guest.model_dump(exclude_defaults=True).items():
        words += ["--memory" if key == "memory_bytes" else f"--{key}", str(value)]
    return words


def continue_command(run_id: str, blocks: int | None = None, *, settled: bool = False) -> str:
    """The command that goes on with a stored run.

    Args:
        run_id: Its name.
        blocks: How many blocks there shall be in the end, where that is to change.
        settled: Whether the run adds blocks until all is settled, so that a number is a limit.
    """
    words = ["blklab", "compare", "--resume", run_id]
    if blocks is not None:
        words += ["--budget", f"{blocks}blocks"] if settled else ["--blocks", str(blocks)]
    return shlex.join(words)


def _exact_duration(duration_ns: int) -> str:
    """A duration that reads back to the same number of nanoseconds."""
    unit, factor = next((unit, factor) for unit, factor in _DURATION_UNITS if duration_ns % factor == 0)
    return f"{duration_ns // factor}{unit}"
