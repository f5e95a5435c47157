"""Kernels with the legacy block layer: what their builds get in addition, and what they offer."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from blklab.guests.kernels.building import BuildRequest, plan_build
from blklab.guests.kernels.configuration import read_fragment
from blklab.guests.kernels.legacy import additions_for
from blklab.guests.kernels.patches import shipped_instruments
from blklab.guests.kernels.source import locate
from blklab.shipped import shipped_folder

LEGACY = ["modelled-disk", "registers-stay-legacy", "virtual-time", "whole-xstate-legacy"]


def release(tree: Path, major: int, minor: int) -> None:
    text = f"VERSION = {major}\nPATCHLEVEL = {minor}\nSUBLEVEL = 7\nEXTRAVERSION =\n"
    (tree / "Makefile").write_text(text)


@pytest.mark.parametrize(("version", "is_legacy"), [((4, 19), True), ((4, 20), True), ((5, 2), False)])
def test_only_the_releases_of_the_legacy_block_layer_get_more(
    kernel_cache: Path, kernel_tree: Path, version: tuple[int, int], is_legacy: bool
) -> None:
    release(kernel_tree, *version)
    plan = plan_build(BuildRequest("old", str(kernel_tree)))
    names = [patch.path.stem for patch in plan.instruments[len(shipped_instruments()) :]]
    assert names == (LEGACY if is_legacy else [])
    assert ("CONFIG_IOSCHED_CFQ" in plan.options) == is_legacy
    assert plan.nr_shipped == len(plan.fragments) == (2 if is_legacy else 1)


def test_the_release_of_an_archive_is_in_its_name_or_in_its_makefile(
    kernel_tree: Path, tmp_path: Path
) -> None:
    release(kernel_tree, 4, 19)
    for name in ("linux-4.19.325.tar.gz", "old.tar.gz"):
        archive = tmp_path / name
        subprocess.run(["tar", "-C", kernel_tree.parent, "-czf", archive, kernel_tree.name], check=True)
        additions = additions_for(locate(str(archive)))
        assert [patch.path.stem for patch in additions.instruments] == LEGACY


def test_the_legacy_instruments_stay_away_from_the_block_layer() -> None:
    folder = shipped_folder("kernel") / "legacy"
    patches = sorted(folder.glob("*/*.patch"))
    assert [path.stem for path in patches] == LEGACY
    for path in patches:
        assert (path.parent / "README.md").is_file()
        files = [line.split()[1] for line in path.read_text().splitlines() if line.startswith("+++ ")]
        outside = {name for name in files if not name.startswith(("b/arch/um/", "b/arch/x86/um/"))}
        # Chooses a routine at boot that in virtual time cannot be measured.
        assert outside <= {"b/lib/raid6/algos.c"}
        assert "SPDX-License-Identifier: GPL-2.0" in path.read_text()
    options = {option.name for option in read_fragment(folder / "legacy.config").options}
    assert {"CONFIG_IOSCHED_CFQ", "CONFIG_CFQ_GROUP_IOSCHED", "CONFIG_IOSCHED_DEADLINE"} <= options
