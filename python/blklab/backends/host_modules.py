"""Schedulers of modules on a host: loaded for a session, watched while it lasts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from blklab.errors import RunFailedError
from blklab.linux.journal.journal import Journal
from blklab.linux.journal.module_loading import ModuleInsertion
from blklab.linux.load.load_process import kill_loads
from blklab.linux.machine.kernel_mistakes import MistakeWatch
from blklab.modules.loading import find_arms
from blklab.modules.store import BuiltModule, find_module
from blklab.spec.schedulers import COPY, SchedulerChoice


class HostModules:
    """The modules of a session."""

    def __init__(self) -> None:
        self._watch: MistakeWatch | None = None
        self._names: list[str] = []

    def load(self, choices: Sequence[SchedulerChoice], journal: Journal) -> list[str]:
        """Loads the modules that choices name; the journal unloads them.

        Returns:
            Remarks on the builds.

        Raises:
            UnknownNameError: if one was not built for the running kernel.
            SchedulerUnavailableError: if the kernel does not take one.
        """
        arms = find_arms(choices)
        if arms.modules:
            watch = self.watch([module.record.module for module in arms.modules])
            journal.undo_apart_after(watch.first)
        for module in arms.modules:
            _insertion(module, journal).make()
        self.check()
        return arms.remarks

    def watch(self, modules: Sequence[str]) -> MistakeWatch:
        """Watches the kernel's log from now on; a mistake ends the load that is under way."""
        self._names += modules
        if self._watch is None:
            self._watch = MistakeWatch()
            self._watch.begin(kill_loads)
        return self._watch

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Makes the kernel's mistake the error of a load that failed because of it.

        Raises:
            KernelMistakeError: instead of the load's error, if the kernel reported a mistake.
        """
        try:
            yield
        except RunFailedError:
            self.check()
            raise

    def check(self) -> None:
        """Ends the experiment if the kernel reported a mistake since the modules were loaded.

        The load that was under way then is over already.

        Raises:
            KernelMistakeError: if it did.
        """
        if self._watch is not None:
            self._watch.raise_for_mistakes(list(dict.fromkeys(self._names)))

    def close(self) -> None:
        """Watches no longer."""
        if self._watch is not None:
            self._watch.close()


def module_commands(choice: SchedulerChoice) -> list[str]:
    """The shell commands that load a choice's module, which was built before the first run."""
    if choice.kernel is None:
        return []
    if choice.kernel == COPY:
        name = choice.name_in_queue
        file = f"jq -r '.modules[] | select(.name == \"{name}\").file'"
        return [f'insmod "$(blklab kernel list --json - | {file})"']
    return _insertion(find_module(choice.kernel), None).shell()


def _insertion(module: BuiltModule, journal: Journal | None) -> ModuleInsertion:
    return ModuleInsertion(module.file, module.record.build_id[:16], journal)
