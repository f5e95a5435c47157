"""Schedulers that are modules of the running kernel and not loaded.

The kernel asks for the module ``NAME-iosched`` when a scheduler that it does not have is chosen
(``elv_iosched_load_module``, block/elevator.c, Linux 6.12; ``elevator_get`` in 6.1). That is an alias of
``bfq``, and the own name of ``kyber-iosched``: modules.alias and modules.dep say which ones there are. No
program is run to find out.
"""

from __future__ import annotations

import lzma
import platform
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from blklab.errors import RequirementError, SchedulerUnavailableError
from blklab.linux.machine.kernel_files import text_or_empty
from blklab.linux.processes.programs import find_program, run_program

_ALIAS = re.compile(r"^alias (\S+)-iosched (\S+)$", re.MULTILINE)
_FILE = re.compile(r"^(\S*?([^/\s]+?)\.ko[.a-z0-9]*):", re.MULTILINE)
_SUFFIX = "_iosched"
_FORBIDDING = re.compile(r"(?:blacklist|install)\s+(\S+)(?:\s+(\S+))?")
_NOTHING = {"/bin/false", "/bin/true", "/usr/bin/false", "/usr/bin/true", "false", "true"}
_FOLDERS = ("etc/modprobe.d", "run/modprobe.d", "usr/local/lib/modprobe.d", "usr/lib/modprobe.d")
_MAY_LOAD = 16
"""`CAP_SYS_MODULE` (include/uapi/linux/capability.h)."""
_SIGNATURE = b"~Module signature appended~\n"
GROUP_WEIGHTS = {"io.bfq.weight": "bfq", "blkio.bfq.weight": "bfq"}
"""Files of control groups that appear with a scheduler's module."""


@dataclass(frozen=True)
class SchedulerModules:
    """The schedulers that this machine's modules would add."""

    loadable: dict[str, str] = field(default_factory=dict)
    """Scheduler -> module, without those that are loaded."""
    refused: dict[str, str] = field(default_factory=dict)
    """Scheduler -> the reason why its module cannot be loaded here."""


def find_scheduler_modules(root: Path = Path("/")) -> SchedulerModules:
    """Finds the modules of schedulers that are not loaded. A kernel without modules has none.

    Args:
        root: The root of the file system.
    """
    if not (root / "proc/modules").exists():
        return SchedulerModules()
    folder = _module_folder(root)
    found = _modules_of_schedulers(root)
    absent = {name: module for name, module in found.items() if not _is_loaded(module, root)}
    if not absent:
        return SchedulerModules()
    obstacle = _obstacle(root)
    refused: dict[str, str] = {}
    forbidden = _forbidden(root)
    locked_down = "[none]" not in (text_or_empty(root / "sys/kernel/security/lockdown") or "[none]")
    files = _module_files(root)
    for name, module in absent.items():
        path = folder / files.get(module.replace("-", "_"), "missing")
        if obstacle:
            refused[name] = obstacle
        elif module in forbidden:
            refused[name] = f"{forbidden[module]} forbids the module {module}"
        elif not path.is_file():
            refused[name] = f"the file of the module {module} is not in {folder}"
        elif locked_down and _is_unsigned(path):
            refused[name] = f"the kernel is locked down, and the module {module} is not signed"
    loadable = {name: module for name, module in absent.items() if name not in refused}
    return SchedulerModules(loadable, refused)


def module_of(scheduler: str, root: Path = Path("/")) -> str | None:
    """The module that has a scheduler, loaded or not; None if it is part of the kernel, or of none."""
    return _modules_of_schedulers(root).get(scheduler)


def load_module(scheduler: str) -> None:
    """Loads the module of a scheduler, as the kernel itself would.

    Raises:
        SchedulerUnavailableError: if it cannot be loaded.
    """
    try:
        run_program(loading_command(scheduler).split(), package="kmod")
    except RequirementError as error:
        raise SchedulerUnavailableError(
            f"the module of the scheduler {scheduler} cannot be loaded: {error.message}",
            hint=error.hint or "the kernel's log (dmesg) may say why",
        ) from error


def insert_module(path: Path) -> None:
    """Loads a module from its file, which no folder of the kernel's modules has.

    Raises:
        SchedulerUnavailableError: if the kernel does not take it.
    """
    if (obstacle := _obstacle(Path("/"))) is not None:
        raise SchedulerUnavailableError(f"the module {path} cannot be loaded: {obstacle}")
    try:
        run_program(["insmod", str(path)], package="kmod")
    except RequirementError as error:
        hint = "the kernel's log (dmesg) may say why"
        if "not permitted" in error.message or "Key was rejected" in error.message:
            hint = "the kernel takes only signed modules: build it again, which says how to sign it"
        raise SchedulerUnavailableError(
            f"the module {path} cannot be loaded: {error.message}", hint=hint
        ) from error


def module_version(module: str) -> str:
    """The version of a module in the kernel; empty if it has none."""
    return text_or_empty(Path("/sys/module") / module.replace("-", "_") / "version")


def loading_command(scheduler: str) -> str:
    """The same as a shell command."""
    return f"modprobe {scheduler}-iosched"


def is_loaded(module: str) -> bool:
    """Whether a module is in the kernel."""
    return _is_loaded(module, Path("/"))


def unload_module(module: str) -> str | None:
    """Takes a module out of the kernel unless something uses it.

    Returns:
        The reason why it stays, for people; None if it is out.
    """
    folder = Path("/sys/module") / module.replace("-", "_")
    if not folder.is_dir():
        return None
    users = text_or_empty(folder / "refcnt")
    if users != "0":
        return f"the module {module} stays loaded: it has {users or 'unknown'} users"
    program = find_program("rmmod")
    if program is None:
        return f"the module {module} stays loaded: rmmod is missing"
    answer = subprocess.run([program, "--", module], capture_output=True, text=True, check=False)
    if answer.returncode and folder.is_dir():
        return f"the module {module} stays loaded: {' '.join(answer.stderr.split())}"
    return None


def _module_folder(root: Path) -> Path:
    return root / "lib/modules" / platform.release()


def _modules_of_schedulers(root: Path) -> dict[str, str]:
    named = [module for module in _module_files(root) if module.endswith(_SUFFIX)]
    aliases = _ALIAS.findall(text_or_empty(_module_folder(root) / "modules.alias"))
    return {module.removesuffix(_SUFFIX): module for module in named} | dict(aliases)


def _module_files(root: Path) -> dict[str, str]:
    """Module -> its file below the folder of the kernel's modules."""
    text = text_or_empty(_module_folder(root) / "modules.dep")
    return {module.replace("-", "_"): path for path, module in _FILE.findall(text)}


def _is_loaded(module: str, root: Path) -> bool:
    return (root / "sys/module" / module.replace("-", "_")).is_dir()


def _obstacle(root: Path) -> str | None:
    """The reason why no module at all can be loaded; None if there is none."""
    if text_or_empty(root / "proc/sys/kernel/modules_disabled") == "1":
        return "kernel.modules_disabled is 1, until the next boot"
    status = text_or_empty(root / "proc/self/status")
    bound = re.search(r"^CapBnd:\s*([0-9a-f]+)$", status, re.MULTILINE)
    if bound is not None and not int(bound[1], 16) >> _MAY_LOAD & 1:
        return "processes here may not load modules, as in a container (CAP_SYS_MODULE)"
    return None if find_program("modprobe") else "modprobe is missing (apt install kmod)"


def _forbidden(root: Path) -> dict[str, Path]:
    """Modules that modprobe's configuration forbids to load by an alias, and the files that do."""
    found = {}
    for folder in _FOLDERS:
        for path in sorted((root / folder).glob("*.conf")):
            for line in text_or_empty(path).splitlines():
                match = _FORBIDDING.match(line.strip())
                if match and (match[2] is None or match[2] in _NOTHING):
                    found[match[1].replace("-", "_")] = Path("/") / path.relative_to(root)
    return found


def _is_unsigned(path: Path) -> bool:
    """Whether a module has no signature; compressed ones that cannot be read here count as signed."""
    try:
        data = path.read_bytes()
        if path.suffix == ".xz":
            data = lzma.decompress(data)
        elif path.suffix != ".ko":
            return False
    except (OSError, lzma.LZMAError):
        return False
    return not data.endswith(_SIGNATURE)
