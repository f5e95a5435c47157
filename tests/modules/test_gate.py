"""The gate before the host: it stops patched schedulers, keeps results, and lets none pass silently."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from blklab.cli import run
from blklab.errors import BlklabError, ExitCode, KernelSourceError, RefusedError, RequirementError
from blklab.labs.gate import gate as gate_module
from blklab.labs.gate import sources
from blklab.labs.gate.gate import first_of_its_own, pass_gate
from blklab.labs.gate.sources import GuestSource, nearest_source
from blklab.labs.judgement.conformance import Conformance
from blklab.labs.judgement.questions import JudgementQuestion
from blklab.labs.torture.document import FaultKind, MistakePart
from blklab.modules.building import ModuleRequest, build_module
from blklab.modules.gate_results import results_of
from blklab.modules.loading import find_arms
from blklab.modules.store import BuiltModule
from blklab.quantities.notes import Note
from blklab.spec.schedulers import parse_scheduler_choices
from modules.small_kernel import PATCH, RELEASE


class Observer:
    """Notes the stages."""

    def __init__(self) -> None:
        self.stages: list[str] = []

    def announce(self, line: str) -> None:
        self.stages.append(line)

    def progressed(self, *_: Any) -> None:
        """Ignores a step."""

    asked = ended = progressed


class Guests:
    """Stands in for building and running guests; holds what they would show."""

    def __init__(self, patch: pytest.MonkeyPatch, source: Path) -> None:
        self.failed: JudgementQuestion | None = None
        self.mistakes: dict[str, list[MistakePart]] = {}
        self.built: list[tuple[str, list[str]]] = []
        self.seeds: list[int] = []
        built = SimpleNamespace(version="6.1.192", build_id="b")
        patch.setattr(gate_module, "nearest_source", lambda _: GuestSource(source, "6.1"))
        patch.setattr(gate_module, "locate", lambda _: SimpleNamespace(sha256="s"))
        patch.setattr(gate_module, "find", lambda _: built)
        patch.setattr(gate_module, "build_with_checks", self.build)
        patch.setattr(gate_module, "check_conformance", self.check)
        patch.setattr(gate_module, "torture", self.torture)

    def build(self, name: str, _: Any, *, patches: Any, scheduler_files: Any, **__: Any) -> str:
        self.built.append((name, [Path(file).name for file in [*patches, *scheduler_files]]))
        return name

    def check(self, *_: Any, **__: Any) -> Conformance:
        return Conformance(54, self.failed, None if self.failed is None else "the kernel panicked")

    def torture(self, request: Any, *_: Any) -> Any:
        self.seeds.append(request.seeds)
        return SimpleNamespace(mistakes=self.mistakes.get(request.kernel, []))


def mistake(seed: int, message: str, kind: FaultKind = "complaint") -> MistakePart:
    return MistakePart(scheduler="kyber", seed=seed, kind=kind, message=message)


@pytest.fixture
def guests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guests:
    return Guests(monkeypatch, tmp_path / "linux")


@pytest.fixture
def mine(
    tmp_path: Path,
    request_for: Callable[..., ModuleRequest],
    monkeypatch: pytest.MonkeyPatch,
) -> BuiltModule:
    """A patched kyber for the small kernel, which runs."""
    monkeypatch.setattr("platform.release", lambda: RELEASE)
    monkeypatch.setattr("platform.version", lambda: "#1 SMP Debian 6.1.192-3 (2026-11-26)")
    patch = tmp_path / "mine.patch"
    patch.write_text(PATCH)
    return build_module(request_for(patches=(str(patch),)), lambda _: None)[0]


def remarks() -> list[str]:
    return find_arms(parse_scheduler_choices("kyber@mine")).remarks


def test_a_pass_is_kept_by_content_and_paid_once(guests: Guests, mine: BuiltModule) -> None:
    assert [isinstance(line, Note) for line in remarks()] == [False]
    assert "not through the gate" in remarks()[0]
    first = pass_gate(mine, Observer(), seeds=8)
    assert first is not None
    assert (first.questions, first.seeds, first.release) == (54, 8, "6.1.192")
    assert guests.built == [("gated", ["0001.patch"])]
    silent = Observer()
    assert pass_gate(mine, silent, seeds=8) == first
    assert pass_gate(mine, silent, seeds=4) == first
    assert silent.stages == []
    assert isinstance(remarks()[0], Note)
    assert pass_gate(mine, Observer(), seeds=16) != first
    assert guests.seeds == [8, 16]


def test_a_mistake_under_torture_stops_it_with_the_seed_and_the_command(
    guests: Guests, mine: BuiltModule
) -> None:
    guests.mistakes = {"gated": [mistake(17, "a read has waited for 61 s", "stuck")]}
    for _ in range(2):  # the second is the kept one
        with pytest.raises(RefusedError, match=r"seed 17: a read has waited") as caught:
            pass_gate(mine, Observer())
        hint = str(caught.value.hint)
        patch = mine.folder / "changes/0001.patch"
        assert f"blklab kernel torture gated --patch {patch} --source" in hint
        assert "-s kyber --seed 17" in hint and "--no-gate" in hint
        assert patch.read_text() == PATCH
    assert [name for name, _ in guests.built] == ["gated", "gated-unchanged"]
    assert "not through the gate" in remarks()[0]


def test_a_load_that_is_not_served_stops_it(guests: Guests, mine: BuiltModule) -> None:
    guests.failed = JudgementQuestion("ssd-sata", "kyber", "mixed")
    with pytest.raises(
        RefusedError, match="does not serve ssd-sata/kyber/mixed: the kernel panicked"
    ) as caught:
        pass_gate(mine, Observer())
    assert "--disk ssd-sata --load mixed" in str(caught.value.hint)
    assert guests.seeds == []


def test_mistakes_of_the_unchanged_scheduler_do_not_count(guests: Guests, mine: BuiltModule) -> None:
    guests.mistakes = {
        "gated": [mistake(15, "WARNING: CPU: 0 at block/kyber.c:573 exit+0x5b/0xe0")],
        "gated-unchanged": [mistake(23, "WARNING: CPU: 0 at block/kyber.c:571 exit+0x5c/0xe1")],
    }
    result = pass_gate(mine, Observer())
    assert result is not None and result.passed
    assert result.excused == ["seed 15, complaint"]
    own = mistake(31, "BUG: KASAN")
    assert first_of_its_own([*guests.mistakes["gated"], own], guests.mistakes["gated-unchanged"]) == (own, [])


def test_without_a_guest_nothing_passes(
    guests: Guests, mine: BuiltModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise RequirementError("a kernel cannot be built: flex is missing", hint="install flex")

    monkeypatch.setattr(gate_module, "build_with_checks", refuse)
    with pytest.raises(
        RequirementError, match="cannot pass the gate before the host: a kernel cannot"
    ) as caught:
        pass_gate(mine, Observer())
    assert "install flex; --no-gate" in str(caught.value.hint)
    assert mine.record.changes is not None
    assert results_of(mine.record.changes.sha256) == []


def test_the_nearest_source_is_taken(
    mine: BuiltModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def there(*releases: str) -> None:
        found = [(tuple(map(int, release.split("."))), tmp_path / release) for release in releases]
        monkeypatch.setattr(sources, "debian_archives", lambda: found)
        monkeypatch.setattr(sources, "fetched_archives", list)
        monkeypatch.setattr(sources, "find_all", lambda: ([], []))

    record = mine.record.model_copy(update={"release": "7.0.3-amd64"})
    there("6.1", "6.19", "7.3")
    assert nearest_source(record).release == "6.19"
    there()
    with pytest.raises(KernelSourceError, match="no source") as caught:
        nearest_source(record)
    assert "--release 7.0" in str(caught.value.hint)
    (tmp_path / "own.tar.xz").touch()
    assert (
        nearest_source(record.model_copy(update={"source": str(tmp_path / "own.tar.xz")})).release[:3]
        == "7.0"
    )
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(RequirementError, match="this machine is aarch64"):
        nearest_source(record)


def test_an_unchanged_copy_has_no_gate(
    guests: Guests,
    request_for: Callable[..., ModuleRequest],
) -> None:
    module, _ = build_module(request_for("kyber-copy"), lambda _: None)
    assert module.record.changes is None
    assert pass_gate(module, Observer()) is None
    assert guests.built == []


def test_a_file_becomes_a_scheduler_beside_the_original(
    guests: Guests,
    request_for: Callable[..., ModuleRequest],
    tmp_path: Path,
) -> None:
    text = (Path(request_for().source or "") / "block/kyber-iosched.c").read_text()
    (tmp_path / "edited.c").write_text(f"#define CREATE_TRACE_POINTS\n{text}")
    options = {"scheduler": None, "scheduler_file": str(tmp_path / "edited.c")}
    module, _ = build_module(request_for("mine", **options), lambda _: None)
    result = pass_gate(module, Observer())
    assert result is not None and result.scheduler == "mine"
    assert guests.built == [("gated", ["mine.c"])]
    kept = (module.folder / "changes/mine.c").read_text()
    assert '.elevator_name = "mine"' in kept and "CREATE_TRACE_POINTS" not in kept


def test_compare_and_run_ask_the_gate_first(
    guests: Guests, mine: BuiltModule, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    guests.mistakes = {"gated": [mistake(3, "a read has waited", "stuck")]}
    monkeypatch.setattr(import_module("blklab.cli.comparing"), "require_all", lambda _: None)
    load = tmp_path / "read.fio"
    load.write_text("[reader]\nrw=randread\nsize=1m\n")
    common = ["--store", f"sqlite:///{tmp_path}/runs.sqlite", "-q"]

    def not_reached(*_: Any, **__: Any) -> None:
        raise BlklabError("the experiment begins")

    monkeypatch.setattr(import_module("blklab.cli.comparing"), "compare", not_reached)
    monkeypatch.setattr(import_module("blklab.cli.running"), "run_once", not_reached)
    for words in (
        ["compare", str(tmp_path), "-w", str(load), "-s", "kyber,kyber@mine", *common],
        ["run", str(tmp_path), str(load), "-s", "kyber@mine", "-q"],
    ):
        assert run(words) == ExitCode.REFUSED
        assert "seed 3" in " ".join(capsys.readouterr().err.split())
        assert run([*words, "--no-gate"]) == ExitCode.INTERNAL
        assert "the experiment begins" in capsys.readouterr().err


def test_the_command_says_how_the_gate_ended(
    guests: Guests,
    mine: BuiltModule,
    tmp_path: Path,
    request_for: Callable[..., ModuleRequest],
    capsys: pytest.CaptureFixture[str],
) -> None:
    request = request_for()
    command = ["kernel", "module", "mine", "--patch", str(tmp_path / "mine.patch"), "-q"]
    command += [
        "--source",
        str(request.source),
        "--headers",
        str(request.headers),
        "--btf",
        str(request.types),
    ]
    assert run([*command, "--dry-run"]) == ExitCode.OK
    assert "gate: not passed yet" in capsys.readouterr().out
    assert run([*command, "--no-gate"]) == ExitCode.OK
    assert "not through the gate yet" in capsys.readouterr().out
    assert run([*command, "--seeds", "8", "--json", "-"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["gate"]["questions"] == 54
    assert run([*command, "--seeds", "8"]) == ExitCode.OK
    assert "through the gate on Linux 6.1.192: 54 loads and 8 seeds" in capsys.readouterr().out
    assert run([*command, "--dry-run"]) == ExitCode.OK
    assert "gate: passed on Linux 6.1.192" in capsys.readouterr().out
