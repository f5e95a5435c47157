"""The Debian package, made of a wheel that holds the package as it lies in the tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

import blklab
from blklab import _core
from blklab.cli.reference.installed import shared_files, write_shared_files

ROOT = Path(__file__).resolve().parents[2]
NAME = "blklab-1.2.3"
LEFT_OUT = {"blkguest", Path(_core.__file__).name}
"""The guests' program is not needed here; the compiled core is added from where it is."""

_OF_THE_TEST = "uses-no-compression-for-control-tarball,uses-no-compression-for-data-tarball"
"""Tags that stand for this test only, whose package is not compressed, to be quick."""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for program in ("dpkg-deb", "dpkg-shlibdeps"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed (Debian: dpkg-dev)")
    folder = tmp_path_factory.mktemp("deb")
    source = Path(blklab.__file__).parent
    write_shared_files(folder / "share")
    wheel = folder / f"{NAME}-cp310-abi3-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in source.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts and path.name not in LEFT_OUT:
                archive.write(path, f"blklab/{path.relative_to(source)}")
        archive.write(_core.__file__, f"blklab/{Path(_core.__file__).name}")
        archive.writestr(
            f"{NAME}.dist-info/METADATA", "Metadata-Version: 2.4\nName: blklab\nVersion: 1.2.3\n"
        )
        archive.writestr(f"{NAME}.dist-info/RECORD", "")
        for path in (folder / "share").rglob("*"):
            if path.is_file():
                archive.write(path, f"{NAME}.data/data/share/{path.relative_to(folder / 'share')}")
    built = subprocess.run(
        [ROOT / "scripts" / "build-deb", wheel, folder],
        env={**os.environ, "DPKG_DEB_COMPRESSOR_TYPE": "none"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (package,) = folder.glob("*.deb")
    return package


def test_it_installs_every_file_where_debian_wants_it(package: Path) -> None:
    listed = subprocess.run(["dpkg-deb", "-c", package], capture_output=True, text=True, check=True).stdout
    files = {line.split()[5].removeprefix("./") for line in listed.splitlines()}
    wanted = {
        f"usr/share/{name}.gz" if name.startswith("man/") else f"usr/share/{name}" for name in shared_files()
    }
    wanted = {name.replace("zsh/site-functions", "zsh/vendor-completions") for name in wanted}
    assert wanted <= files
    assert {"usr/bin/blklab", "usr/lib/python3/dist-packages/blklab/__init__.py"} <= files
    assert all(" root/root " in line for line in listed.splitlines())


def test_it_depends_on_all_that_the_package_requires(package: Path) -> None:
    depends = subprocess.run(
        ["dpkg-deb", "-f", package, "Depends"], capture_output=True, text=True, check=True
    ).stdout
    for name in ("libc6", "python3 (>= 3.10)", "python3-numpy", "python3-prometheus-client", "python3-scipy"):
        assert name in depends


@pytest.mark.slow
def test_lintian_finds_nothing(package: Path) -> None:
    if shutil.which("lintian") is None:
        pytest.skip("lintian is not installed")
    checked = subprocess.run(
        ["lintian", "--allow-root", "--fail-on", "error,warning", "--suppress-tags", _OF_THE_TEST, package],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout
