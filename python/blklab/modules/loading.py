"""Choices that name a module on a disk of this machine: which module each means, and the unchanged copy.

``kyber@mine`` is the module ``mine``, a variant of kyber; ``kyber@copy`` is kyber built in the same way
without a change. The copy is a placebo: as long as it differs from the original, something other than the
patch is at work.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from blklab.errors import KernelCacheError, RefusedError, UnknownNameError
from blklab.linux.machine.host_change import HostChange
from blklab.modules.building import ModuleRequest, build_module
from blklab.modules.gate_results import results_of
from blklab.modules.scheduler_source import STOCK
from blklab.modules.store import BuiltModule, find_module
from blklab.quantities.notes import as_notes
from blklab.spec.schedulers import COPY, SchedulerChoice, copy_name


@dataclass(frozen=True)
class ModuleArms:
    """The modules that an experiment's choices mean."""

    by_choice: Mapping[tuple[str, str], BuiltModule]
    """By scheduler and name, as in ``kyber@mine``."""

    @property
    def modules(self) -> list[BuiltModule]:
        """Each module once."""
        return list({module.folder: module for module in self.by_choice.values()}.values())

    @property
    def remarks(self) -> list[str]:
        """Remarks on the builds, for the record: notes, and a warning of each that is unproven or untried."""
        lines = []
        for (scheduler, name), module in self.by_choice.items():
            changes = module.record.changes
            files = [] if changes is None or changes.kind == "patches" else changes.files
            names = [patch.name for patch in module.record.patches] + [Path(file).name for file in files]
            made_of = ", ".join(names) or "no patch"
            line = f"{scheduler}@{name} is the module {module.record.build_id[:16]}: {made_of}"
            lacks = [] if module.record.proof is not None else ["unproven"]
            if changes is not None and not any(result.passed for result in results_of(changes.sha256)):
                lacks.append("not through the gate in a guest")
            lines += ["; ".join([line, *lacks])] if lacks else as_notes([line])
        return lines


def find_arms(choices: Iterable[SchedulerChoice]) -> ModuleArms:
    """Finds the modules that choices name; those of unchanged copies must be built too.

    Raises:
        UnknownNameError: if one was not built for the running kernel, or is of another scheduler.
        KernelCacheError: if its file is damaged.
    """
    found: dict[tuple[str, str], BuiltModule] = {}
    for choice in choices:
        if choice.kernel is None:
            continue
        name = choice.name_in_queue
        module = find_module(name)
        if module.record.scheduler != choice.name:
            raise UnknownNameError(
                f"the module {choice.kernel} is a variant of {module.record.scheduler}, not of {choice.name}",
                hint=f"write {module.record.scheduler}@{choice.kernel}",
            )
        if not module.is_intact:
            raise KernelCacheError(
                f"the module {module.file} is not the file that was built",
                hint=f"build it again: blklab kernel module {name} …",
            )
        found[choice.name, choice.kernel] = module
    return ModuleArms(found)


@dataclass(frozen=True)
class CopyBuild(HostChange):
    """The build of a scheduler's unchanged copy, which stays for later runs."""

    scheduler: str
    source: str | None
    """That of a module beside it; None for the source that the machine has."""
    announce: Callable[[str], None] = field(repr=False, compare=False)

    def make(self) -> None:
        """Builds it, unless there is a build of the same inputs.

        Raises:
            BlklabError: if it cannot be built.
        """
        request = ModuleRequest(copy_name(self.scheduler), scheduler=self.scheduler, source=self.source)
        build_module(request, self.announce)

    def shell(self) -> list[str]:
        """The command that builds the same module."""
        source = [] if self.source is None else ["--source", self.source]
        words = ["blklab", "kernel", "module", copy_name(self.scheduler), "--scheduler", self.scheduler]
        return [shlex.join([*words, *source])]


def build_copies(choices: Sequence[SchedulerChoice], announce: Callable[[str], None]) -> None:
    """Builds the unchanged copies that choices name, where they are missing.

    Raises:
        RefusedError: if a scheduler has no original that could be copied.
        BlklabError: if a copy cannot be built.
    """
    for build in copy_builds(choices, announce):
        build.make()


def copy_builds(
    choices: Sequence[SchedulerChoice], announce: Callable[[str], None] = lambda _: None
) -> list[CopyBuild]:
    """The builds of the unchanged copies that choices name, each once.

    A copy is built from the headers and source of a module of the same scheduler among the choices, or from
    those that the machine has.

    Raises:
        RefusedError: if a scheduler has no original that could be copied.
    """
    builds = []
    for choice in choices:
        if choice.kernel != COPY:
            continue
        if choice.name not in STOCK:
            raise RefusedError(
                f"{choice.name} is not one of the kernel's own schedulers, so it has no unchanged copy",
                hint=f"an unchanged copy is one of {', '.join(f'{name}@copy' for name in STOCK)}",
            )
        beside = next(
            (
                find_module(other.kernel).record
                for other in choices
                if other.name == choice.name and other.kernel not in (None, COPY)
            ),
            None,
        )
        builds.append(CopyBuild(choice.name, None if beside is None else beside.source, announce))
    return list(dict.fromkeys(builds))


def with_placebos(choices: Sequence[SchedulerChoice]) -> list[SchedulerChoice]:
    """Choices with an original and an unchanged copy beside each patched scheduler that lacks them.

    Both have the settings of the patched one, so that a difference between them is none of settings. A
    scheduler that is new has no original, and gets no copy.
    """
    result = list(choices)
    there = {(one.name, one.kernel, tuple(sorted(one.tunables.items()))) for one in choices}
    for choice in choices:
        if choice.kernel in (None, COPY) or find_module(choice.kernel).record.is_new:
            continue
        for kernel in (None, COPY):
            key = (choice.name, kernel, tuple(sorted(choice.tunables.items())))
            if key not in there:
                there.add(key)
                added = choice.model_copy(update={"kernel": kernel})
                result.append(added.model_copy(update={"label": added.without_label}))
    return result
