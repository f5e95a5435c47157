"""Conformance classes: tests that everything added to blklab passes, here and in other packages.

A package's tests inherit the class of its kind and name the entry::

    from blklab.testing.conformance import MetricConformance

    class TestLatencyP90(MetricConformance):
        NAME = "latency_p90"

pytest finds the tests by themselves; the entry must be installed (`blklab.registry`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import click

from blklab.analysis.metrics import METRICS
from blklab.api.experiments import compare
from blklab.backends import BACKENDS, backend_for
from blklab.cli import COMMANDS
from blklab.cli.commands import CommandHelp
from blklab.labs.reanalysis.readers import READERS, read_source
from blklab.labs.reanalysis.readers.protocol import ReaderOptions, Source
from blklab.labs.studies import STUDIES
from blklab.labs.studies.replication.options import StudyOptions
from blklab.records.samples import RunSample
from blklab.simulator.core import known_schedulers
from blklab.simulator.simulation import SimulationResult, simulate
from blklab.spec.targets import parse_target
from blklab.testing.experiments import make_experiment, make_spec, make_workload

_MIXED = {
    "reader": {"rw": "randread", "bs": "4k", "ioengine": "libaio", "iodepth": 16, "number_ios": 200},
    "writer": {"rw": "write", "bs": "64k", "ioengine": "libaio", "iodepth": 4, "number_ios": 50},
    "syncer": {"rw": "write", "bs": "4k", "ioengine": "psync", "fsync": 4, "number_ios": 20},
    "idler": {"rw": "randread", "bs": "8k", "ioengine": "psync", "prioclass": 3, "number_ios": 20},
}
"""Reads, writes, flushes and the idle class at once."""


class MetricConformance:
    """A metric gives one finite number for each run, or None."""

    NAME: ClassVar[str]

    def test_it_is_described(self) -> None:
        """Name, unit, direction and description are there."""
        metric = METRICS[self.NAME]
        assert metric.name == self.NAME
        assert metric.better in ("higher", "lower")
        assert isinstance(metric.unit, str)
        assert metric.description
        assert metric.fewest_ios >= 1

    def test_it_gives_a_number_or_none(self) -> None:
        """On runs that read, that write and that call fsync; the same number each time."""
        metric = METRICS[self.NAME]
        for sample in _samples():
            value = metric.compute(sample.jobs)
            assert value is None or math.isfinite(value)
            assert metric.compute(sample.jobs) == value

    def test_a_run_without_jobs_has_no_value(self) -> None:
        """None, and no exception."""
        assert METRICS[self.NAME].compute([]) is None


class ReaderConformance:
    """A reader recognises its own files alone, and gives each value with its line."""

    NAME: ClassVar[str]
    EXAMPLES: ClassVar[Mapping[str, str]]
    """Contents of files of this format, by name."""

    def test_it_is_described(self) -> None:
        """Name and summary are there, and so are examples."""
        assert READERS[self.NAME].NAME == self.NAME
        assert READERS[self.NAME].SUMMARY
        assert self.EXAMPLES

    def test_it_alone_recognises_its_files(self) -> None:
        """No other reader takes them, and it does not take an empty file."""
        for name, text in self.EXAMPLES.items():
            taking = [one for one in READERS if one != "csv" and READERS[one].recognises(Source(name, text))]
            assert taking == [self.NAME]
        assert not READERS[self.NAME].recognises(Source("empty", "\n"))

    def test_values_have_their_lines(self) -> None:
        """Every value is finite and names an existing line; factors have roles."""
        for name, text in self.EXAMPLES.items():
            source = Source(name, text)
            _, reading = read_source(source, ReaderOptions(), self.NAME)
            assert reading.measurements
            assert not reading.problems
            for one in reading.measurements:
                assert math.isfinite(one.value)
                assert one.location.file == name
                assert one.location.line is not None
                assert 1 <= one.location.line <= len(source.lines)

    def test_a_damaged_file_raises_nothing(self) -> None:
        """Cut off anywhere, it gives no more values than the whole."""
        for name, text in self.EXAMPLES.items():
            whole = len(READERS[self.NAME].read(Source(name, text), ReaderOptions()).measurements)
            for end in range(0, len(text), max(1, len(text) // 100)):
                reading = READERS[self.NAME].read(Source(name, text[:end]), ReaderOptions())
                assert len(reading.measurements) <= whole


class SchedulerConformance:
    """A simulated scheduler serves every request, and depends on the seed alone."""

    NAME: ClassVar[str]
    DEVICES: ClassVar[tuple[str, ...]] = ("hdd-7200", "ssd-sata")

    def test_it_is_listed(self) -> None:
        """With a summary."""
        (entry,) = (one for one in known_schedulers() if one["name"] == self.NAME)
        assert entry["summary"]

    def test_every_io_completes(self) -> None:
        """Reads, writes, flushes and the idle class."""
        for device in self.DEVICES:
            result = self._run(device)
            assert {job.name for job in result.jobs} == _MIXED.keys()
            for job in result.jobs:
                ios = sum(entry.ios for entry in job.directions if entry.direction != "sync")
                assert ios == _MIXED[job.name]["number_ios"]

    def test_a_run_repeats_to_the_bit(self) -> None:
        """With one seed."""
        assert self._run(self.DEVICES[0]) == self._run(self.DEVICES[0])

    def _run(self, device: str) -> SimulationResult:
        jobs: dict[str, dict[str, Any]] = {
            name: {"direct": 1, "size": "64m", **options} for name, options in _MIXED.items()
        }
        return simulate(device, jobs, scheduler=self.NAME, seed=3)


class BackendConformance:
    """A backend describes a target, runs it, and tells what it would run."""

    NAME: ClassVar[str]
    TARGET: ClassVar[str]
    """A target that can be tried quickly."""
    SCHEDULERS: ClassVar[tuple[str, str]] = ("none", "mq-deadline")

    def test_it_serves_its_targets(self) -> None:
        """And describes them without a change."""
        backend = backend_for(parse_target(self.TARGET))
        assert backend is BACKENDS[self.NAME]
        described = backend.describe(parse_target(self.TARGET))
        assert described.backend == self.NAME
        assert described.summary
        assert set(self.SCHEDULERS) <= set(described.schedulers)

    def test_it_runs_a_comparison(self, tmp_path: Any) -> None:
        """Every run is there, with figures and with the settings that were in force."""
        record = compare(
            self.TARGET,
            schedulers=self.SCHEDULERS,
            workloads="random-read-4k-qd1",
            runtime="100ms",
            blocks=2,
            store=str(tmp_path / "runs.db"),
        ).record
        assert record.state == "complete"
        assert len(record.samples) == 4
        for sample in record.samples:
            assert sample.status == "ok", sample.error
            assert METRICS["iops"].compute(sample.jobs)
            assert sample.cell.scheduler in sample.settings.values()


class StudyConformance:
    """A study lists experiments with names of their own, the same each time."""

    NAME: ClassVar[str]

    def test_its_files_can_be_read(self) -> None:
        """Claims with a title and a source."""
        claims = STUDIES[self.NAME].files().claims
        assert claims.title
        assert claims.source

    def test_its_experiments_are_pure(self) -> None:
        """Twice the same list, on each of its backends."""
        study = STUDIES[self.NAME]
        folder = study.files()
        for backend in study.backends:
            options = StudyOptions(backend=backend, quick=True)
            experiments = study.experiments(options, folder)
            names = [one.name for one in experiments]
            assert names
            assert len(set(names)) == len(names)
            assert list(study.experiments(options, folder)) == list(experiments)


class CommandConformance:
    """A command has help with examples, in brief and in full."""

    NAME: ClassVar[str]

    def test_it_has_help(self) -> None:
        """One line for the list of commands, and at least one example."""
        command = COMMANDS[self.NAME]
        assert command.get_short_help_str(limit=200)
        assert isinstance(command, CommandHelp)
        assert command.examples

    def test_help_in_brief_is_shorter(self) -> None:
        """``-h`` fits a screen."""
        command = COMMANDS[self.NAME]
        assert isinstance(command, CommandHelp)
        context = click.Context(command, info_name=self.NAME)
        assert len(command.brief_help(context)) <= len(command.get_help(context))


def _samples() -> list[RunSample]:
    """Made-up runs of loads that read, that write and that call fsync."""
    workloads = [
        make_workload("reads"),
        make_workload("writes", reads=False),
        make_workload("syncs", reads=False, syncs=True),
    ]
    return make_experiment(make_spec(["none", "bfq"], workloads, blocks=1)).samples
