"""Random cells are reproducible, cover every option, and contain none that either side refuses."""

from __future__ import annotations

import json

from blklab import _core
from blklab.labs.fidelity.cells import FidelityCell
from blklab.labs.fidelity.random_cells import random_cells

NUMBER = 1200
LONGEST_NS = 20_000_000_000
NOT_DRAWN = {
    *(
        "bs_is_seq_rand",
        "bsrange",
        "buffered",
        "directory",
        "file_service_type",
        "filesize",
        "fill_device",
        "nrfiles",
    ),
    *("cmdprio", "cmdprio_bssplit", "cmdprio_class", "cmdprio_percentage"),
    *("do_verify", "verify", "verify_backlog", "verify_backlog_batch"),
    *("exitall", "exit_what", "wait_for", "new_group", "flow", "flow_id", "flow_sleep"),
    *("latency_percentile", "latency_run", "latency_target", "latency_window"),
    *("zonemode", "zonerange", "zonesize", "zoneskip"),
}
"""Options that only shape the sequence of I/Os, in one generator for simulator and guest;
`tests/linux/test_fio_examples.py` compares that sequence with fio's own."""


def options_of(cell: FidelityCell) -> set[str]:
    return {name for job in cell.jobs.values() for name in job}


def simulated_options() -> dict[str, str]:
    """The option's own name by every name and alias."""
    listed = json.loads(_core.job_options())
    simulated = [option for option in listed if option["support"] == "modelled"]
    return {name: option["name"] for option in simulated for name in (option["name"], *option["aliases"])}


def test_cells_depend_on_the_seed_alone_and_a_list_begins_with_the_shorter_one() -> None:
    assert random_cells(40, 3) == random_cells(40, 3)
    assert random_cells(40, 3)[:7] == random_cells(7, 3)
    assert random_cells(5, 3) != random_cells(5, 4)
    names = [cell.name for cell in random_cells(40, 3)]
    assert len(set(names)) == len(names)
    assert all(name.startswith(f"random/3/{index}/") for index, name in enumerate(names))


def test_every_option_of_jobs_that_is_simulated_comes_up() -> None:
    names = simulated_options()
    drawn = {names[name] for cell in random_cells(NUMBER, 1) for name in options_of(cell)}
    assert drawn == set(names.values()) - NOT_DRAWN


def test_every_tunable_attribute_and_control_of_groups_comes_up() -> None:
    cells = random_cells(NUMBER, 1)
    queue = {name for cell in cells for name in cell.queue}
    assert queue == {"nr_requests", "nomerges", "max_sectors_kb", "read_ahead_kb", "wbt_lat_usec"}
    controls = {name for cell in cells for group in cell.cgroups.values() for name in group}
    wanted = {"io.max", "io.latency", "io.weight", "io.bfq.weight", "io.cost.qos", "io.cost.model"}
    assert controls == wanted
    for scheduler in json.loads(_core.schedulers()):
        mine = [cell for cell in cells if cell.scheduler == scheduler["name"]]
        if mine:
            drawn = {name for cell in mine for name in cell.tunables}
            assert drawn == {tunable["name"] for tunable in scheduler["tunables"]}


def test_the_ordinary_is_more_frequent_than_the_rare() -> None:
    cells = random_cells(NUMBER, 1)
    having = {name: sum(name in options_of(cell) for cell in cells) for name in ("thinktime", "stonewall")}
    assert NUMBER / 10 < having["thinktime"] < NUMBER / 2
    assert 0 < having["stonewall"] < NUMBER / 10
    assert sum(not cell.cgroups for cell in cells) > NUMBER / 2


def test_no_cell_is_refused_or_longer_than_twenty_seconds() -> None:
    for cell in random_cells(NUMBER, 1):
        _core.check_request(cell.request_text(None))
        assert cell.runtime_ns <= LONGEST_NS
        ends = {"number_ios", "io_size", "loops"}
        assert all(job["time_based"] or ends & set(job) for job in cell.jobs.values())
