"""Runs cells on the simulator and on the kernel, several at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from blklab.errors import BlklabError
from blklab.labs.fidelity.cells import FidelityCell
from blklab.labs.fidelity.guest_kernel import GuestKernel
from blklab.labs.fidelity.measured import CellResult, compare_jobs
from blklab.records.samples import JobSample


def run_cell(cell: FidelityCell, kernel: GuestKernel) -> CellResult:
    """Runs one cell; a failure is recorded in the result."""
    try:
        real = kernel.runs.answer(cell.request())
        engine = real["engine"]
        text = cell.request_text(engine.get("first_tag"), engine["machine"]["memory"])
        simulator = _samples(json.loads(kernel.simulate(text)))
        return compare_jobs(cell.name, simulator, _samples(real))
    except BlklabError as error:
        return CellResult(cell=cell.name, failure=error.message)


def run_cells(
    cells: Sequence[FidelityCell],
    kernel: GuestKernel,
    *,
    workers: int,
    done: Callable[[CellResult], None] = lambda _: None,
) -> list[CellResult]:
    """Runs cells on several threads; returns the results in the order of the cells.

    Args:
        cells: The cells to run.
        kernel: The kernel to compare with.
        workers: Number of guests at once.
        done: Called with each result as it arrives, in the calling thread.
    """
    with ThreadPoolExecutor(workers) as pool:
        waiting = {pool.submit(run_cell, cell, kernel): index for index, cell in enumerate(cells)}
        found: dict[int, CellResult] = {}
        try:
            for future in as_completed(waiting):
                found[waiting[future]] = result = future.result()
                done(result)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [found[index] for index in range(len(cells))]


def _samples(answer: dict[str, Any]) -> list[JobSample]:
    return [JobSample.model_validate(job) for job in answer["jobs"]]
