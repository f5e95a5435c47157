"""Reports on commands: their figures, and how they were run."""

from __future__ import annotations

import io
import json
from pathlib import Path

import jsonschema
import pytest

from blklab.analysis.verdict import analyse
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import CommandSample, JobSample, RunSample
from blklab.report.documents.comparison import CompareDocument, compare_document, run_document
from blklab.report.html.comparison import render_html
from blklab.report.terminal import Terminal
from blklab.report.text.comparison import render, render_run
from blklab.spec.command_options import with_command_options
from blklab.spec.workloads import workload_of_command
from blklab.testing.experiments import make_experiment, make_spec

SCHEMAS = Path(__file__).parents[2] / "docs" / "reference" / "schema"
SECOND_NS = 1_000_000_000
SLOWER = {"none": 1.0, "bfq": 0.5}


@pytest.fixture(scope="module")
def record() -> ExperimentRecord:
    """A cold command beside readers, twice as fast under bfq."""
    (workload,) = with_command_options(
        [workload_of_command("make -j2")], {"cold": True, "beside": "many-readers"}
    )
    plain = make_experiment(make_spec(["none", "bfq"], workloads=[workload], blocks=6))
    samples = [
        sample.model_copy(update={"jobs": [command_job(sample), *reader()]}) for sample in plain.samples
    ]
    return plain.model_copy(update={"samples": samples})


def command_job(sample: RunSample) -> JobSample:
    factor = SLOWER[sample.cell.scheduler] * (1 + sample.cell.block / 1000)
    return JobSample(
        name="command",
        clones=1,
        runtime_ns=round(4 * SECOND_NS * factor),
        directions=[],
        cpu_user_ns=SECOND_NS,
        cpu_system_ns=SECOND_NS // 10,
        context_switches=7,
        command=CommandSample(read_bytes=83_000_000, written_bytes=0, major_faults=12, io_delay_ns=SECOND_NS),
    )


def reader() -> list[JobSample]:
    plain = make_experiment(make_spec(["none", "bfq"], blocks=1)).samples[0]
    return [plain.jobs[0].model_copy(update={"name": "readers", "promised_weight": None})]


@pytest.fixture(scope="module")
def document(record: ExperimentRecord) -> CompareDocument:
    return compare_document(record, analyse(record))


def test_the_wall_time_decides_and_the_load_beside_is_shown(document: CompareDocument) -> None:
    assert document.verdict.best == ["bfq"]
    metrics = {result.metric for result in document.results}
    assert {"wall_time", "processor_time", "io_wait", "bytes_read"} <= metrics
    assert {"throughput", "latency_p99"} <= metrics
    assert not {"bytes_written", "longest_wait", "jain_index"} & metrics
    assert [verdict.metric for verdict in document.verdicts if verdict.decides] == ["wall_time"]
    means = {one.scheduler: one.mean for one in document.results if one.metric == "wall_time"}
    assert means["none"] == pytest.approx(4_000_000, rel=0.01)
    assert means["bfq"] == pytest.approx(2_000_000, rel=0.01)


def test_the_report_says_how_it_was_run(record: ExperimentRecord, document: CompareDocument) -> None:
    output = io.StringIO()
    render(document, Terminal(file=output, width=100), verbose=True)
    text = " ".join(output.getvalue().split())
    assert (
        "Cold: its file system was unmounted and mounted again before each run; beside many-readers, whose"
        in text
    )
    assert "wall time, s" in text
    page = render_html(record, document)
    assert "<b>Command</b>, cold: its file system was unmounted" in page
    assert "The command</h3>" in page
    assert "make -j2" in page


def test_a_single_run_has_a_table_of_its_own(record: ExperimentRecord) -> None:
    one = run_document("/srv", record.samples[0], scheduler="bfq", tunables={}, queue={})
    output = io.StringIO()
    render_run(one, Terminal(file=output, width=100))
    lines = output.getvalue().splitlines()
    (row,) = [line.split() for line in lines if "83.0 MB" in line]
    assert row[-1] == "12"
    assert "1.00 s" in " ".join(row)
    assert any(line.startswith("readers") for line in lines)
    assert one.jobs[0].command is not None
    assert one.jobs[0].command.io_wait_seconds == 1
    schema = json.loads((SCHEMAS / "run-1.json").read_text("utf-8"))
    jsonschema.validate(json.loads(one.model_dump_json(by_alias=True)), schema)
