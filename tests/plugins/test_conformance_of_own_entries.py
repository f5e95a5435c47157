"""blklab's own entries pass the conformance classes that it ships for those of other packages."""

from __future__ import annotations

import pytest

from blklab.analysis.metrics import METRICS
from blklab.cli import COMMANDS
from blklab.labs.studies import STUDIES
from blklab.simulator.core import known_schedulers
from blklab.testing import conformance


@pytest.mark.parametrize("name", METRICS)
class TestMetrics(conformance.MetricConformance):
    @pytest.fixture(autouse=True)
    def _named(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(type(self), "NAME", name, raising=False)


@pytest.mark.parametrize("name", [str(entry["name"]) for entry in known_schedulers()])
class TestSchedulers(conformance.SchedulerConformance):
    DEVICES = ("hdd-7200",)

    @pytest.fixture(autouse=True)
    def _named(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(type(self), "NAME", name, raising=False)


@pytest.mark.parametrize("name", STUDIES)
class TestStudies(conformance.StudyConformance):
    @pytest.fixture(autouse=True)
    def _named(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(type(self), "NAME", name, raising=False)


@pytest.mark.parametrize("name", COMMANDS)
class TestCommands(conformance.CommandConformance):
    @pytest.fixture(autouse=True)
    def _named(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(type(self), "NAME", name, raising=False)


class TestSimBackend(conformance.BackendConformance):
    NAME = "sim"
    TARGET = "sim:fixed"


class TestHdparmReader(conformance.ReaderConformance):
    NAME = "hdparm"
    EXAMPLES = {  # noqa: RUF012 - a constant
        "hdparm.txt": "/dev/sda:\n Timing buffered disk reads: 356 MB in  3.01 seconds = 118.27 MB/sec\n"
    }
