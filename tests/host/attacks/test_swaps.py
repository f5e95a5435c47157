"""The owner of the directory under test swaps blklab's scratch directory at every step that touches files.

Whatever he does, nothing outside of it is changed, nothing of his is attached or mounted, and the run either
completes or fails with an error of blklab's.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from blklab.linux.directories.mounts import read_mounts
from blklab.linux.journal.recovery import raise_for_failures, recover
from host.attacks.attacker import ATTACKS, Attack, Outcome, Scene, contents, racing, run_under_attack
from host.conftest import RUN_ID, Filesystem, cell, opened, work
from host.test_commands import command
from real_devices import own_loops

pytestmark = pytest.mark.root

_JOB = work(
    "[w]\nrw=randwrite\nbs=4k\nsize=1m\ndirect=1\nnumber_ios=8\n[r]\nrw=read\nbs=4k\nsize=1m\nnumber_ios=8\n"
)
_RUN_FOLDER = Path(f"/run/blklab-{RUN_ID}")

Program = Callable[[], None]
Scenario = Callable[[Scene], Program]


@pytest.fixture
def make_scene(ext4: Filesystem) -> Callable[[], Scene]:
    """Makes scenes, one after the other, on a disk of the test's own."""

    def make() -> Scene:
        for folder in ext4.folder.glob("scene-*"):
            shutil.rmtree(folder)
        folder = Path(tempfile.mkdtemp(prefix="scene-", dir=ext4.folder))
        return Scene.in_folder(folder)

    return make


# What blklab does meanwhile


def _jobs(scene: Scene) -> Program:
    def run() -> None:
        with opened(str(scene.target)) as session:
            session.check([], [_JOB])
            session.prepare([_JOB], lambda line: None)
            sample = session.run(cell("none", _JOB))
            assert sample.status == "ok", sample.error

    return run


def _commands(scene: Scene) -> Program:
    cold = command("echo it > cold", "cold = true\nspace = '16m'\n")
    warm = command("echo it > warm", "space = '1m'\n").model_copy(update={"name": "warm"})

    def run() -> None:
        with opened(str(scene.target)) as session:
            session.prepare([cold, warm], lambda line: None)
            for workload in (cold, warm):
                sample = session.run(cell("none", workload))
                assert sample.status == "ok", sample.error

    return run


def _loop(scene: Scene) -> Program:
    def run() -> None:
        with opened(f"loop:4m,dir={scene.target}") as session:
            session.prepare([_JOB], lambda line: None)

    return run


def _recovery(scene: Scene) -> Program:
    """The recovery by the next start, after a run was killed with everything made."""
    workload = command("echo it > cold", "cold = true\nspace = '16m'\n")

    def die() -> None:
        with opened(str(scene.target)) as session:
            session.prepare([workload, _JOB], lambda line: None)
            os._exit(1)

    child = os.fork()
    if not child:
        die()
    os.waitpid(child, 0)
    state = Path(os.environ["BLKLAB_STATE_DIR"])
    return lambda: raise_for_failures(recover(state))


SCENARIOS: tuple[Scenario, ...] = (_jobs, _commands, _loop, _recovery)


# What must hold afterwards


def _assert_harmless(scene: Scene, outcome: Outcome, state: Path, how: str) -> None:
    assert not outcome.defect, f"{how}: {outcome.defect}"
    assert contents(scene.victim) == scene.before, f"{how}: the victim's files changed"
    for path in scene.planted():
        assert not path.stat().st_blocks, f"{how}: blklab wrote to the attacker's {path}"
    kept = list(state.glob("journal/*.journal"))
    if kept:
        assert outcome.error.startswith("RestoreError"), f"{how}: a journal was kept after {outcome.error!r}"
        for report in recover(state, force=True):
            assert report.error is None, how
    assert own_loops(scene.root) == own_loops(_RUN_FOLDER) == [], how
    assert not [mount for mount in read_mounts(Path("/proc")) if RUN_ID in mount.mount_point], how
    assert not _RUN_FOLDER.exists(), how
    if not kept:
        left = [path for path in scene.root.rglob(".blklab-*") if path.lstat().st_uid == 0]
        # Renamed between its making and its opening, it is known by nothing.
        unknown = outcome.error.startswith("RefusedError") and not any(
            path for one in left for path in one.iterdir()
        )
        assert unknown or not left, f"{how}: {left} stays"


def _attack(scenario: Scenario, attack: Attack, step: str, scene: Scene, state: Path) -> None:
    outcome = run_under_attack(scenario(scene), scene, attack_at=step, attack=attack)
    how = f"{scenario.__name__}, {attack.__name__} at {step}"
    assert outcome.attacked, f"{how}: the attacker was kept from attacking, so this test shows nothing"
    _assert_harmless(scene, outcome, state, how)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("most", [6, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_swap_at_any_step_harms_nothing(
    scenario: Scenario, most: int, make_scene: Callable[[], Scene], state: Path, seed: int
) -> None:
    scene = make_scene()
    whole = run_under_attack(scenario(scene), scene)
    assert not whole.defect, whole.defect
    assert not whole.error
    steps = [step for step, under_way in whole.steps.items() if under_way]
    assert len(steps) > 10, "blklab's steps are not seen"
    attacks = [(step, attack) for step in steps for attack in ATTACKS]
    choose = random.Random(seed)  # noqa: S311 - not for secrets
    for step, attack in choose.sample(attacks, min(most, len(attacks))):
        _attack(scenario, attack, step, make_scene(), state)


@pytest.mark.parametrize("scenario", [_jobs, _commands])
@pytest.mark.parametrize("races", [4, pytest.param(200, marks=pytest.mark.slow)])
def test_an_owner_who_races_harms_nothing(
    scenario: Scenario, races: int, make_scene: Callable[[], Scene], state: Path, seed: int
) -> None:
    for number in range(races):
        scene, attack = make_scene(), ATTACKS[number % len(ATTACKS)]
        with racing(attack, scene, seed + number, longest_s=1):
            outcome = run_under_attack(scenario(scene), scene)
        _assert_harmless(scene, outcome, state, f"{scenario.__name__}, {attack.__name__}, race {number}")
