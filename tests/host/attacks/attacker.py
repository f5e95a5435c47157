"""Another user, without an account, who owns the directory above blklab's scratch directory.

The user swaps it for something of his own at one step of blklab's: just before a call that touches files, as
Python's auditing events tell them (`sys.addaudithook`). So the steps are listed by the code that runs.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import stat
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import blklab.errors

USER = 4242
"""No account has this number."""
EVENTS = (
    "open", "os.mkdir", "os.chmod", "os.chown", "os.rename", "os.remove", "os.rmdir", "os.symlink", "os.link",
    "os.truncate", "os.scandir", "os.listdir", "fcntl.ioctl", "subprocess.Popen", "shutil.rmtree",
    "shutil.copyfile", "blklab.openat2", "blklab.mount", "blklab.umount",
)  # fmt: skip
"""Auditing events of calls that touch files."""
_PACKAGE = str(Path(blklab.__file__).parent)
_FRAMES = 3
"""Of blklab's own functions that tell one step from another."""
_VICTIM_BYTES = 2 << 20
"""More than the job below writes: fio fails on files that are too short."""

Attack = Callable[["Scene"], None]


@dataclass
class Scene:
    """The directories of an attack, all below one that the attacker owns."""

    root: Path
    target: Path
    """The directory under test; the attacker's."""
    victim: Path
    """Root's: nothing in it may change."""
    swaps: int = 0
    before: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def in_folder(root: Path) -> Scene:
        """Makes the directories."""
        for folder in (root.parents[1], root.parent, root):
            folder.chmod(0o711)  # the attacker must get here
        home = root / "home"
        scene = Scene(home, home / "target", root / "victim")
        scene.target.mkdir(parents=True)
        scene.victim.mkdir(mode=0o700)
        for name in ("read-0", "written-0", "loop.img", "commands.img", "precious"):
            (scene.victim / name).write_bytes(os.urandom(4096))
            os.truncate(scene.victim / name, _VICTIM_BYTES)
        (scene.victim / "commands").mkdir(mode=0o700)
        (scene.victim / "empty").mkdir(mode=0o700)
        for path in (home, scene.target):
            os.chown(path, USER, USER)
        scene.before = contents(scene.victim)
        return scene

    @property
    def is_under_way(self) -> bool:
        """Whether there is a scratch directory to swap."""
        return any(self.target.glob(".blklab-*"))

    def planted(self) -> list[Path]:
        """Files that the attacker has put in the place of blklab's."""
        return [path for path in self.root.rglob("*.img") if path.lstat().st_uid == USER]


def contents(folder: Path) -> dict[str, str]:
    """Owner, mode, length, times and bytes of all files."""
    found = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = path.lstat()
        text = (
            f"{status.st_uid} {status.st_mode:o} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
        )
        if stat.S_ISREG(status.st_mode):
            text += hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path)] = text
    return found


# What is put in the place of the scratch directory


def put_directory(scene: Scene) -> None:
    """Renames the scratch directory, and makes one with images, and links to the victim's files, for it."""
    for path in _move_away(scene):
        path.mkdir(mode=0o777)
        for name in ("loop.img", "commands.img", "member-0.img"):
            (path / name).touch()
            os.truncate(path / name, 80 << 20)
        for name in ("read-0", "written-0", "commands", "mount"):
            (path / name).symlink_to(scene.victim / name)


def put_link(scene: Scene) -> None:
    """Renames the scratch directory, and makes a symbolic link to the victim's directory for it."""
    for path in _move_away(scene):
        path.symlink_to(scene.victim)


def put_parent(scene: Scene) -> None:
    """Renames the directory under test itself, and makes another in which a link has the scratch's name."""
    names = [path.name for path in scene.target.glob(".blklab-*")]
    moved = scene.root / f"moved-target-{scene.swaps}"
    scene.target.rename(moved)
    scene.target.mkdir()
    for name in names:
        (scene.target / name).symlink_to(scene.victim)


def put_link_above(scene: Scene) -> None:
    """Renames the directory under test itself, and makes a symbolic link to the victim's directory for it."""
    scene.target.rename(scene.root / f"moved-target-{scene.swaps}")
    scene.target.symlink_to(scene.victim)


def _move_away(scene: Scene) -> Iterator[Path]:
    for number, path in enumerate(scene.target.glob(".blklab-*")):
        path.rename(scene.target / f".blklab-moved-{scene.swaps}-{number}")
        yield path


ATTACKS: tuple[Attack, ...] = (put_directory, put_link, put_parent, put_link_above)


@contextmanager
def as_attacker() -> Iterator[None]:
    """Acts as the other user, with none of root's rights."""
    os.setegid(USER)
    os.seteuid(USER)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def attack_now(attack: Attack, scene: Scene) -> bool:
    """Performs an attack as the other user; whether he had the right to."""
    scene.swaps += 1
    with as_attacker():
        try:
            attack(scene)
        except OSError:
            return False
    return True


# Steps


class Steps:
    """The steps of blklab's that have been reached, in order, each once."""

    def __init__(self, scene: Scene, attack_at: str | None, attack: Attack | None) -> None:
        self.reached: dict[str, bool] = {}
        self._scene = scene
        self._attack_at = attack_at
        self._attack = attack
        self._busy = False
        self.watching = False
        self.attacked = False

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        """For `sys.addaudithook`, which cannot be taken back: only in a process of its own."""
        if not self.watching or self._busy or event not in EVENTS or _is_kernels(arguments):
            return
        self._busy = True
        try:
            step = _step(event, sys._getframe(1))
            if step is None or step in self.reached:
                return
            self.reached[step] = self._scene.is_under_way
            if step == self._attack_at and self._attack is not None:
                self.attacked = attack_now(self._attack, self._scene)
        finally:
            self._busy = False


def _is_kernels(arguments: tuple[Any, ...]) -> bool:
    """Whether the first argument is a path of the kernel's own file systems, which no user can rename."""
    return bool(arguments) and str(arguments[0]).startswith(("/proc/", "/sys/"))


def _step(event: str, frame: FrameType | None) -> str | None:
    """The event, with the places in blklab that led to it."""
    places: list[str] = []
    while frame is not None and len(places) < _FRAMES:
        file = frame.f_code.co_filename
        if file.startswith("<frozen importlib") and not places:
            return None  # a module is loaded, once
        if file.startswith(_PACKAGE):
            places.append(f"{Path(file).stem}:{frame.f_lineno}")
        frame = frame.f_back
    return f"{event} {' < '.join(places)}" if places else None


@dataclass(frozen=True)
class Outcome:
    """The end of a program under attack."""

    steps: dict[str, bool]
    """Each with whether there was a scratch directory."""
    error: str
    """Empty if it completed; else the name of an error of blklab's, and its message."""
    defect: str
    """The trace of any other exception."""
    attacked: bool
    """Whether the attacker could do what he wanted to."""


def run_under_attack(
    program: Callable[[], None], scene: Scene, *, attack_at: str | None = None, attack: Attack | None = None
) -> Outcome:
    """Runs a program in a process of its own, and attacks at one of its steps."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        steps = Steps(scene, attack_at, attack)
        os.setgroups([])
        sys.addaudithook(steps.hook)
        error = defect = ""
        try:
            steps.watching = True
            program()
        except blklab.errors.BlklabError as raised:
            error = f"{type(raised).__name__}: {raised.message}"
        except BaseException:
            defect = traceback.format_exc()
        steps.watching = False
        text = repr((steps.reached, error, defect, steps.attacked))
        with os.fdopen(writer, "w") as file:
            file.write(text)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    os.waitpid(child, 0)
    return Outcome(*eval(text))  # noqa: S307 - our own child's


@contextmanager
def racing(attack: Attack, scene: Scene, seed: int, longest_s: float) -> Iterator[None]:
    """Has the other user attack again and again from a process of his own, at random moments."""
    child = os.fork()
    if not child:
        os.setgroups([])
        os.setresgid(USER, USER, USER)
        os.setresuid(USER, USER, USER)
        choose = random.Random(seed)  # noqa: S311 - not for secrets
        while True:
            while not scene.is_under_way:
                pass
            time.sleep(choose.uniform(0, longest_s) ** 2)
            scene.swaps += 1
            with suppress(OSError):
                attack(scene)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
