"""`blklab kernel`: output for people and programs, bad input, and dry runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from blklab.cli import run
from blklab.guests.kernels.building import BuildRequest, build
from blklab.guests.kernels.names import kernel_names


def _build_slow(tree: Path, patch: Path) -> list[str]:
    return ["kernel", "build", "slow", "--source", str(tree), "--patch", str(patch)]


def test_build_list_show_remove(
    kernel_cache: Path, kernel_tree: Path, kernel_patch: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["kernel", "build", "stock", "--source", str(kernel_tree)]) == 0
    assert run([*_build_slow(kernel_tree, kernel_patch), "--json", "-"]) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out[captured.out.index("{") :])
    assert document["schema"] == "blklab.kernel/1"
    assert document["built"] is True
    assert document["kernel"]["name"] == "slow"
    assert document["kernel"]["compiled_files"] == 1
    assert document["kernel"]["patches"][0]["files"] == ["block/kyber.c"]
    assert "compiling Linux 6.1.7" in captured.err

    assert run(["kernel", "list", "--json", "-"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [kernel["name"] for kernel in listed["kernels"]] == ["slow", "stock"]
    assert listed["size_bytes"] > 0
    assert run(["kernel", "list"]) == 0
    shown = capsys.readouterr().out
    assert "slower" in shown and "mq-deadline" in shown and str(kernel_cache) in shown

    assert run(["kernel", "show"]) == 0
    assert "6.1.7" in capsys.readouterr().out
    assert run(["kernel", "show", "slow", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["kernel"]["configuration"]["CONFIG_IOSCHED_BFQ"] == "y"
    assert run(["kernel", "show", "--configuration"]) == 0
    assert "CONFIG_HOSTFS=y\n" in capsys.readouterr().out

    assert run(["kernel", "remove", "slow", "--dry-run"]) == 0
    assert kernel_names() == ["slow", "stock"]
    assert run(["kernel", "remove", "slow", "stock", "--json", "-"]) == 0
    removed = json.loads(capsys.readouterr().out[len("would remove the kernel slow\n") :])
    assert removed["removed"] == ["slow", "stock"] and removed["freed_bytes"] > 0
    assert run(["kernel", "list"]) == 0
    assert "no kernel was built yet" in capsys.readouterr().out


def test_a_dry_run_changes_nothing(
    kernel_cache: Path, kernel_tree: Path, kernel_patch: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*_build_slow(kernel_tree, kernel_patch), "--dry-run"]
    assert run(arguments) == 0
    printed = capsys.readouterr().out
    assert "block/kyber.c" in printed
    assert [line for line in printed.splitlines() if "instrument" in line] == [
        line for line in printed.splitlines() if line.startswith("  instruments, where they apply: ")
    ]
    assert printed.count("instruments, where they apply: ") == 1
    assert run([*arguments, "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["exists"] is False and document["needed_bytes"] > 0
    assert document["options"]["CONFIG_NET"] == "n"
    assert not (kernel_cache / "builds").exists() and not (kernel_cache / "trees").exists()
    torn = kernel_patch.with_name("torn.patch")
    torn.write_text(kernel_patch.read_text().replace("/* line 11 */", "/* line 99 */"))
    assert run([*arguments[:-2], str(torn), "--dry-run"]) != 0
    assert "block/kyber.c: hunk 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["build", "a b"], 2, ["'a b'"]),
        (["build", "--source", "nowhere"], 2, ["nowhere"]),
        (["build", "--source", "note.txt"], 3, ["note.txt", "not an archive"]),
        (["build", "--source", "torn.tar.xz"], 3, ["torn.tar.xz", "cannot be unpacked"]),
        (["build", "--source", "empty"], 3, ["empty", "not a kernel source"]),
        (["build", "--source", "tree", "--patch", "nowhere.patch"], 2, ["nowhere.patch", "kyber-busy-wait"]),
        (["build", "--source", "tree", "--patch", "note.txt"], 2, ["note.txt", "not a patch"]),
        (["build", "--source", "tree", "--patch", "kyber-busy-wait"], 2, ["block/kyber-iosched.c"]),
        (["build", "--source", "tree", "--config", "note.txt"], 2, ["note.txt:1"]),
        (["build", "--source", "tree", "--config", "nowhere.config"], 2, ["nowhere.config"]),
        (
            ["build", "--source", "tree", "--config", "strange.config"],
            3,
            ["CONFIG_NOTHING=y", "strange.config:1"],
        ),
        (["build", "--source", "tree", "--jobs", "0"], 2, ["0"]),
        (["show", "nobody"], 2, ["nobody", "blklab kernel build nobody"]),
        (["show", "../../etc"], 2, ["../../etc"]),
        (["remove", "nobody"], 2, ["nobody"]),
        (["remove"], 2, ["--trees"]),
        (["bulid"], 2, ["bulid"]),
    ],
)
def test_bad_input(
    kernel_cache: Path,
    kernel_tree: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    words: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    kernel_tree.rename("tree")
    Path("empty").mkdir()
    Path("note.txt").write_text("just a note\n")
    Path("torn.tar.xz").write_text("torn")
    Path("strange.config").write_text("CONFIG_NOTHING=y\n")
    assert run(["kernel", *arguments]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    message = " ".join(captured.err.split())
    assert "error: " in message and "Traceback" not in message
    for word in words:
        assert word in message
    assert not list((kernel_cache / "builds").glob("*"))
    assert not list((kernel_cache / "work").glob("*"))


def test_missing_tools_are_named_with_their_packages(
    kernel_cache: Path,
    kernel_tree: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tools = tmp_path / "few"
    tools.mkdir()
    for program in ("make", "ld", "tar", "cp", "bc"):
        (tools / program).symlink_to(shutil.which(program) or "/bin/true")
    monkeypatch.setenv("PATH", str(tools))
    assert run(["kernel", "build", "--source", str(kernel_tree)]) == 3
    message = " ".join(capsys.readouterr().err.split())
    assert "without gcc, flex, bison" in message
    assert "apt-get install bison flex gcc" in message


def test_debians_source_is_missing(
    kernel_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("blklab.guests.kernels.source._DEBIAN_FOLDER", tmp_path)
    assert run(["kernel", "build"]) == 3
    message = " ".join(capsys.readouterr().err.split())
    assert "no kernel source" in message and "apt-get install linux-source" in message


def test_the_newest_of_debians_sources(
    kernel_cache: Path,
    tmp_path: Path,
    kernel_tree: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("linux-source-6.9.tar.xz", "linux-source-6.12.tar.xz", "linux-source-6.1.tar.xz"):
        (tmp_path / name).write_text(name)
    (tmp_path / "linux-source-6.20").mkdir()  # unpacked: a person's, named with its path
    monkeypatch.setattr("blklab.guests.kernels.source._DEBIAN_FOLDER", tmp_path)
    assert run(["kernel", "build", "--dry-run"]) == 0
    assert "linux-source-6.12.tar.xz" in capsys.readouterr().out


def test_damaged_kernels_are_told_from_none(
    kernel_cache: Path, kernel_tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["kernel", "list"]) == 0
    assert "no kernel was built yet" in capsys.readouterr().out
    kernel, _ = build(BuildRequest("mine", str(kernel_tree)))
    (kernel.folder / "build.json").write_text("")
    assert run(["kernel", "list"]) == 0
    said = capsys.readouterr()
    assert "no kernel can be used" in said.out
    assert "blklab kernel build mine" in said.err
