"""Missing kernels, programs and rights are said before the first run, all of them at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.cli import run
from blklab.errors import BlklabError, ExitCode, MissingToolError, RequirementError
from blklab.experiment import prerequisites
from blklab.experiment.prerequisites import missing_for, raise_missing, require_all
from blklab.guests.kernels.names import unknown_kernel
from blklab.records.store import Store
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.request import SpecValues, build_specs


def _spec(target: str, *, workload: str = "many-readers", **more: object) -> ExperimentSpec:
    return build_specs(SpecValues(targets=[target], workloads=[workload], **more))[0]


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No guest kernel, no fio, no root, no programs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 1000)


def test_models_need_nothing(bare_machine: None) -> None:
    assert missing_for([_spec("sim:ssd-sata")]) == []


def test_a_disk_needs_root_and_fio(bare_machine: None, tmp_path: Path) -> None:
    messages = [error.message for error in missing_for([_spec(str(tmp_path))])]
    assert messages == ["testing a disk needs root", "fio is not installed"]


def test_programs_are_named_with_their_packages(bare_machine: None, tmp_path: Path) -> None:
    found = missing_for([_spec(str(tmp_path), workload="git-status")])
    assert [error.hint for error in found if "git-status" in error.message] == ["apt install git"]


def test_each_kernel_is_named_once_with_the_command_that_builds_it(bare_machine: None) -> None:
    specs = [_spec("uml:ssd-sata", kernels=["stock", "kyber-busy-wait"]), _spec("uml:ssd-sata")]
    hints = [error.hint or "" for error in missing_for(specs) if "there is no kernel" in error.message]
    assert len(hints) == 2
    assert "`blklab kernel build`" in hints[0]
    assert "`blklab kernel build kyber-busy-wait --patch kyber-busy-wait`" in hints[1]


def test_an_unknown_name_is_not_built_without_a_patch() -> None:
    assert "blklab kernel build mine --patch FILE" in (unknown_kernel("mine").hint or "")


def test_one_missing_thing_keeps_its_own_error() -> None:
    with pytest.raises(MissingToolError, match="fio is not installed"):
        raise_missing([MissingToolError("fio is not installed", hint="apt install fio")])
    raise_missing([])


def test_several_are_one_error_that_names_all() -> None:
    errors: list[BlklabError] = [unknown_kernel("mine"), MissingToolError("no fio", hint="apt install fio")]
    with pytest.raises(
        RequirementError, match=r"2 things are missing: there is no kernel mine.*; no fio"
    ) as found:
        raise_missing(errors)
    assert "apt install fio" in (found.value.hint or "")


def test_a_comparison_of_several_targets_checks_all_before_the_first(
    bare_machine: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, store = tmp_path / "both.toml", tmp_path / "runs.sqlite"
    spec.write_text('targets = ["sim:ssd-sata", "uml:ssd-sata"]\nworkloads = ["many-readers"]\nblocks = 3\n')
    assert run(["compare", "--spec", str(spec), "--store", str(store)]) != ExitCode.OK
    assert "there is no kernel stock" in capsys.readouterr().err
    assert not store.exists() or not _stored(store)


def _stored(store: Path) -> list[object]:
    with Store.opened(str(store)) as opened:
        return list(opened.list_runs())


def test_a_judgement_names_both_kernels(bare_machine: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kernel", "judge", "--kernel", "stock,mine"]) == ExitCode.REQUIREMENT
    error = capsys.readouterr().err
    assert "there is no kernel stock" in error
    assert "there is no kernel mine" in error


def test_checks_run_for_a_disk_that_can_be_tested(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("require_root", "find_fio"):
        monkeypatch.setattr(prerequisites, name, lambda *_, **__: None)
    require_all([_spec(str(tmp_path))])


def test_sudo_gets_the_path_that_it_would_not_find(
    bare_machine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "my tools" / "blklab"
    program.parent.mkdir()
    program.touch()
    monkeypatch.setattr("sys.argv", [str(program)])
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    hint = missing_for([_spec(str(tmp_path))])[0].hint
    assert hint == f"run with sudo '{program}', or try a modelled disk, such as sim:ssd-sata"
    monkeypatch.setattr("shutil.which", lambda *_, **__: "/usr/bin/blklab")
    assert (missing_for([_spec(str(tmp_path))])[0].hint or "").startswith("run with sudo, or try")
