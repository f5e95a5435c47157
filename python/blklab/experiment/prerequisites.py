"""Checks before the first run whether this machine has everything that experiments will need.

Sessions check their own needs as they open. An experiment of several targets, or a study of several
experiments, would find out only when the ones before it have run. The checks here change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from blklab.backends import backend_for
from blklab.errors import BlklabError, RequirementError
from blklab.guests.kernels.names import DEFAULT_NAME
from blklab.guests.kernels.store import find
from blklab.guests.programs import program_files
from blklab.linux.load.command import check_requirements
from blklab.linux.load.fio import find_fio
from blklab.linux.machine.requirements import require_linux, require_root
from blklab.modules.loading import find_arms
from blklab.shipped import require_guest_program
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.schedulers import COPY


def missing_for(specs: Iterable[ExperimentSpec]) -> list[BlklabError]:
    """The needs of experiments that this machine does not meet, each once, with what to do about it."""
    return _failures(check for spec in specs for check in _checks(spec))


def require_all(specs: Iterable[ExperimentSpec]) -> None:
    """Makes sure that all of them can run.

    Raises:
        BlklabError: for the one need that is not met, or for all of them together.
    """
    raise_missing(missing_for(specs))


def require_kernels(names: Iterable[str]) -> None:
    """Makes sure that guest kernels are built and that guests can run.

    Raises:
        BlklabError: likewise.
    """
    raise_missing(_failures([*(_kernel_check(name) for name in dict.fromkeys(names)), *_GUESTS]))


def raise_missing(missing: Sequence[BlklabError]) -> None:
    """Raises what is missing as one error.

    Raises:
        BlklabError: for the only one; for several a `RequirementError` that names all of them.
    """
    if len(missing) == 1:
        raise missing[0]
    if missing:
        hints = dict.fromkeys(error.hint for error in missing if error.hint)
        raise RequirementError(
            f"{len(missing)} things are missing: {'; '.join(error.message for error in missing)}",
            hint="; ".join(hints) or None,
        )


def _failures(checks: Iterable[Callable[[], object]]) -> list[BlklabError]:
    errors = [error for check in checks if (error := _failure(check)) is not None]
    return list({error.message: error for error in errors}.values())


def _failure(check: Callable[[], object]) -> BlklabError | None:
    try:
        check()
    except BlklabError as error:
        return error
    return None


def _checks(spec: ExperimentSpec) -> Iterator[Callable[[], object]]:
    backend = backend_for(spec.parsed_target)
    if backend.GUESTS:
        yield from _guest_checks(spec)
    elif backend.COMMANDS:
        yield from _host_checks(spec)


def _guest_checks(spec: ExperimentSpec) -> Iterator[Callable[[], object]]:
    named = [choice.kernel for choice in spec.schedulers if choice.kernel is not None or not spec.kernels]
    for name in dict.fromkeys([*spec.kernels, *named] or [None]):
        yield _kernel_check(name or DEFAULT_NAME)
    yield from _GUESTS
    if spec.guest.generator == "fio":
        yield find_fio
    if spec.guest.filesystem is not None:
        yield partial(program_files, [f"mkfs.{spec.guest.filesystem}"])
    yield from _command_checks(spec)


def _host_checks(spec: ExperimentSpec) -> Iterator[Callable[[], object]]:
    yield partial(require_root, "testing a disk", instead="try a modelled disk, such as sim:ssd-sata")
    yield find_fio
    modules = [one for one in spec.schedulers if one.kernel is not None and one.kernel != COPY]
    yield partial(find_arms, modules)
    yield from _command_checks(spec)


def _command_checks(spec: ExperimentSpec) -> Iterator[Callable[[], object]]:
    for workload in spec.workloads:
        if workload.command is not None:
            yield partial(check_requirements, workload.name, workload.command)


def _kernel_check(name: str) -> Callable[[], object]:
    return partial(find, name)


_GUESTS: tuple[Callable[[], object], ...] = (
    partial(require_linux, "running guest kernels"),
    require_guest_program,
)
