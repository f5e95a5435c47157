"""The matrix, the errors, the cache and the page; only the marked test needs a kernel."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blklab import _core
from blklab.backends.uml_requirements import guest_obstacle
from blklab.cli import run
from blklab.errors import BlklabError, UnknownNameError
from blklab.labs.fidelity.cells import FidelityCell, selected
from blklab.labs.fidelity.early_blk_mq import early_blk_mq_matrix
from blklab.labs.fidelity.guest_kernel import GuestKernel
from blklab.labs.fidelity.kernel_runs import KernelRuns
from blklab.labs.fidelity.matrix import cell_of, matrix
from blklab.labs.fidelity.measured import CellResult, beyond_limits, compare_jobs, exceeds, spread
from blklab.labs.fidelity.page import filled_page
from blklab.labs.fidelity.report import FidelityDocument, moved_cells
from blklab.labs.fidelity.running import run_cells
from blklab.records.samples import DirectionSample, JobSample, LatencyHistogram
from blklab.spec.machines import load_machine

SECOND_NS = 1_000_000_000


def job(name: str, ios: int, latency_ns: int) -> JobSample:
    histogram = LatencyHistogram(
        count=ios, sum_ns=ios * latency_ns, min_ns=latency_ns, max_ns=latency_ns, bins={latency_ns: ios}
    )
    done = DirectionSample(
        direction="read", ios=ios, bytes=ios * 4096, runtime_ns=SECOND_NS, latency=histogram
    )
    return JobSample(name=name, clones=1, runtime_ns=SECOND_NS, directions=[done])


def simulated(cell: FidelityCell) -> dict[str, Any]:
    return dict(json.loads(_core.simulate(cell.request_text(None))))


def test_the_matrix_is_large_and_every_cell_is_a_request_that_the_simulator_takes() -> None:
    cells = matrix()
    assert len(cells) >= 150
    assert len({cell.name for cell in cells}) == len(cells)
    assert {cell.scheduler for cell in cells} == {"none", "mq-deadline", "kyber", "bfq"}
    for cell in cells:
        _core.check_request(cell.request_text(None))


def test_early_kernels_get_the_cells_that_they_can_run_and_kyber_is_simulated_as_it_was() -> None:
    cells = early_blk_mq_matrix()
    assert {cell.name for cell in matrix()} - {cell.name for cell in cells} == {
        "slow1/mq-deadline-aging=100/classes-be-idle",
        "slow1/mq-deadline-aging=100/classes-rt-be",
        "fixed4/mq-deadline-async_depth=4/readers-deepwriter",
        "fixed4/mq-deadline-async_depth=4/deepreader-writer",
    }
    for cell in cells:
        _core.check_request(cell.request_text(None))
        simulator, kernel = json.loads(cell.request_text(None))["scheduler"], cell.request()["scheduler"]
        assert simulator == ("kyber-4.12" if kernel == "kyber" else kernel)


def test_cells_are_chosen_by_pattern_or_part_of_the_name() -> None:
    cells = matrix()
    assert {cell.scheduler for cell in selected(cells, ["*/bfq*/*"])} == {"bfq"}
    assert selected(cells, []) == cells
    with pytest.raises(UnknownNameError, match="no-such"):
        selected(cells, ["no-such"])


def test_errors_are_relative_to_the_kernel_and_shares_are_points() -> None:
    result = compare_jobs(
        "x", [job("a", 1100, 90), job("b", 1000, 100)], [job("a", 1000, 100), job("b", 1000, 100)]
    )
    assert result.errors("throughput") == pytest.approx([0.1, 0.0])
    assert result.errors("mean_latency") == pytest.approx([-0.1, 0.0])
    assert result.worst("share") == pytest.approx(1100 / 2100 - 0.5)
    assert beyond_limits(result) == ["throughput", "mean_latency"]
    found = spread("throughput", [result])
    assert found is not None
    assert (found.observations, found.worst_cell) == (2, "x")
    assert exceeds(found)


def test_jobs_that_did_next_to_nothing_count_by_their_share_alone() -> None:
    result = compare_jobs(
        "x", [job("a", 2, 90), job("b", 1000, 100)], [job("a", 9, 100), job("b", 1000, 100)]
    )
    assert result.errors("throughput") == [0.0]
    assert result.worst("share") is not None


def test_a_missing_job_is_a_failure() -> None:
    assert compare_jobs("x", [job("a", 1, 1)], [job("b", 1, 1)]).failure is not None


def kernel_of(runs: KernelRuns) -> GuestKernel:
    return GuestKernel("k", runs, _core.simulate, parallel=2)


def test_the_simulator_against_itself_has_no_error_and_is_asked_once(tmp_path: Path) -> None:
    cells = [cell_of("fixed4", name, "readers-4") for name in ("none", "bfq")]
    asked: list[dict[str, Any]] = []

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        asked.append(request)
        return dict(json.loads(_core.simulate(json.dumps(request))))

    runs = kernel_of(KernelRuns("itself", answer, tmp_path))
    seen: list[str] = []
    results = run_cells(cells, runs, workers=2, done=lambda result: seen.append(result.cell))
    assert [result.cell for result in results] == [cell.name for cell in cells]
    assert sorted(seen) == sorted(cell.name for cell in cells)
    assert all(result.worst("throughput") == 0 for result in results)
    run_cells(cells, runs, workers=1)
    assert len(asked) == 2
    # Another kernel is asked anew.
    run_cells(cells, kernel_of(KernelRuns("another", answer, tmp_path)), workers=1)
    assert len(asked) == 4


def test_a_failed_run_is_part_of_the_result_and_is_not_kept(tmp_path: Path) -> None:
    def fail(request: dict[str, Any]) -> dict[str, Any]:
        raise BlklabError("the guest burst")

    cell = cell_of("fixed4", "none", "randread")
    [result] = run_cells([cell], kernel_of(KernelRuns("k", fail, tmp_path)), workers=1)
    assert result.failure == "the guest burst"
    document = FidelityDocument.of([result], kernel="k", simulator="0")
    assert not document.holds
    assert not list(tmp_path.iterdir())


def test_the_page_is_filled_and_changes_are_found() -> None:
    before = FidelityDocument.of(
        [compare_jobs("x", [job("a", 2000, 90)], [job("a", 1000, 100)])], kernel="k", simulator="0"
    )
    after = FidelityDocument.of(
        [compare_jobs("x", [job("a", 1010, 90)], [job("a", 1000, 100)])], kernel="k", simulator="0"
    )
    [(cell, old, new)] = moved_cells(after, before, "throughput")
    assert cell == "x"
    assert [old, new] == pytest.approx([1.0, 0.01])
    page = filled_page("a\n<!-- table: outside -->\nold\n<!-- end -->\nb\n", before)
    assert "`x`" in page
    assert "old" not in page
    assert page.endswith("b\n")
    stored = before.model_dump_json(by_alias=True)
    assert FidelityDocument.model_validate_json(stored) == before


def test_bad_input_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fidelity", "--cells", "no-such", "--list"]) == 2
    assert run(["fidelity", "--against", str(tmp_path / "none.json")]) == 2
    broken = tmp_path / "broken.json"
    broken.write_text("{}", encoding="utf-8")
    assert run(["fidelity", "--against", str(broken)]) == 6
    assert "Traceback" not in capsys.readouterr().err


def test_it_holds_the_simulator_against_a_kernel(tmp_path: Path) -> None:
    obstacle = guest_obstacle()
    if obstacle is not None:
        pytest.skip(obstacle)
    place = tmp_path / "result.json"
    code = run(["fidelity", "--cells", "fixed4/*/readers-4", "--json", str(place), "-q"])
    document = FidelityDocument.model_validate_json(place.read_text(encoding="utf-8"))
    assert len(document.results) >= 4
    assert not document.failures
    assert (code, document.holds) == (0, True)


def test_results_compare_only_what_both_have() -> None:
    assert spread("share", [CellResult(cell="x")]) is None


def test_the_simulator_searches_for_tags_from_where_the_kernel_began(tmp_path: Path) -> None:
    # Readers and a limited writer share 64 tags, so that it matters which tags readers have.
    common: dict[str, str | int] = {"direct": 1, "time_based": 1, "runtime": "1s", "size": "128m"}
    cell = FidelityCell(
        name="fixed/mq-deadline/limited-writer",
        device="fixed,depth=8,latency=4ms,jitter=400us",
        scheduler="mq-deadline",
        jobs={
            "both": {**common, "rw": "randrw", "ioengine": "io_uring", "iodepth": 16},
            "large": {**common, "rw": "randread", "bs": "128k"},
            "reader": {**common, "rw": "randread", "bs": "16k", "ioengine": "io_uring", "iodepth": 8},
        },
        runtime_ns=6 * SECOND_NS,
        queue={"nr_requests": "64"},
        seed=773,
    )
    began_at = json.loads(cell.request_text(20))
    assert json.loads(_core.simulate(json.dumps(began_at)))["jobs"] != simulated(cell)["jobs"]

    def answer(_: dict[str, Any]) -> dict[str, Any]:
        found = dict(json.loads(_core.simulate(json.dumps(began_at))))
        return found | {"engine": found["engine"] | {"first_tag": 20}}

    [result] = run_cells([cell], kernel_of(KernelRuns("itself", answer, tmp_path)), workers=1)
    assert (result.worst("throughput"), result.worst("mean_latency")) == (0, 0)


def test_a_cost_table_reaches_a_guest_with_its_own_scheduler_only() -> None:
    """A guest's kernel has room for a few schedulers, and a table can have every one that there ever was."""
    cell = next(cell for cell in matrix() if cell.scheduler == "bfq")
    table = load_machine("ordinary")
    assert len(table.schedulers) > 8
    request = replace(cell, machine=table).request()
    assert list(request["processors"]["schedulers"]) == ["bfq"]
