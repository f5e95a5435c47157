"""io.cost's parameters: figures and intervals, the range of vrates, solutions, and their written forms."""

from __future__ import annotations

import math
import random
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from blklab.errors import RequirementError, RunFailedError, UsageError
from blklab.labs.calibration.disk.ground import SessionGround, opened_ground
from blklab.labs.calibration.disk.loads import CalibrationLoad
from blklab.labs.iocost.determine import QUEUE, IoCostRequest, determined
from blklab.labs.iocost.document import IoCostDocument
from blklab.labs.iocost.drive import calibrated_facts, model_forms
from blklab.labs.iocost.estimates import estimated
from blklab.labs.iocost.loads import coefficient_loads, latency_loads
from blklab.labs.iocost.measuring import (
    IocostPlan,
    LoadRun,
    Pace,
    load_order,
    measured_rounds,
    rate_before_drain,
)
from blklab.labs.iocost.remarks import remarks_on_sweep
from blklab.labs.iocost.solutions import (
    COEFFICIENTS,
    NAIVE,
    SOLUTIONS,
    latency_target_us,
    naive,
    swept_solutions,
)
from blklab.labs.iocost.stages import IocostStages, doubtful_remarks, measured
from blklab.labs.iocost.sweep import Qos, scaled
from blklab.labs.iocost.vrate_range import NEARLY, Floats, Vrate, VrateRange, vrate_range
from blklab.labs.iocost.written import hwdb_text, model_line, qos_line
from blklab.records.samples import LatencyHistogram, RunSample
from blklab.spec.machines import load_machine
from blklab.spec.plan import derive_seed
from blklab.spec.profiles import Profile
from blklab.spec.targets import parse_target
from plain_simulation import simulate

MACHINE = load_machine("ordinary")
MODEL = dict(zip(COEFFICIENTS, (500_000_000, 90_000, 80_000, 400_000_000, 70_000, 60_000), strict=True))
DISK = "virtual,read_latency=200us,write_latency=300us,parallel=3,queue_depth=8,full_duplex=0"
SHORT = IocostStages(rounds=3, runtime_us=100_000, processes=1, seed=3)


class Silent:
    def planned(self, plan: IocostPlan) -> None: ...

    def announce(self, line: str) -> None: ...

    def measuring(self, name: str, *, done: int, planned: int, left_ns: int | None = None) -> None:
        assert 0 <= done < planned


def request(target: str, *, profile: str | None = None, sweeps: bool = True, **more: str) -> IoCostRequest:
    return IoCostRequest(
        target=target,
        profile=profile,
        sweeps=sweeps,
        models=(),
        needs_model=False,
        machine=MACHINE,
        solution=more.get("solution"),
        stages=SHORT,
        file_bytes=None,
    )


def test_the_loads_are_those_of_the_kernels_script() -> None:
    loads = coefficient_loads(processes=2, queue_depth=128)
    assert tuple(loads) == COEFFICIENTS
    text = loads["rrandiops"].workload(space_bytes=1 << 30, ramp_us=1000, runtime_us=5000).text
    for line in ("rw=randread", "bs=4k", "iodepth=64", "direct=1", "numjobs=2", "time_based"):
        assert f"\n{line}\n" in text
    sequential = loads["wseqiops"].workload(space_bytes=1 << 30, ramp_us=1000, runtime_us=5000).text
    assert "\nrw=write\n" in sequential
    assert "numjobs" not in sequential, "several streams would be random to the kernel"
    paced = latency_loads(2, 128, rrandiops=1000, wrandiops=1)
    assert {load.depth for load in coefficient_loads(4, 31).values()} == {32, 8}
    assert {load.depth for load in coefficient_loads(8, 1).values()} == {2, 1}
    assert [load.rate_iops for load in paced.values()] == [900, 1]
    assert "rate_iops=450\n" in paced["rlat"].workload(space_bytes=1 << 30, ramp_us=1, runtime_us=1).text


def test_the_order_of_a_round_depends_on_seed_stage_and_number() -> None:
    orders = [
        load_order(COEFFICIENTS, seed=seed, stage=stage, number=number)
        for seed in (1, 2)
        for stage in ("model", "qos")
        for number in (0, 1)
    ]
    assert all(sorted(order) == sorted(COEFFICIENTS) for order in orders)
    assert len({tuple(order) for order in orders}) > 4
    assert load_order(COEFFICIENTS, seed=1, stage="model", number=0) == orders[0]


def test_an_estimate_is_the_geometric_mean_with_students_interval() -> None:
    found = estimated("rbps", [90, 100, 110], load="x", factor=2)
    logs = np.log([90, 100, 110])
    half = 4.302653 * logs.std(ddof=1) / math.sqrt(3)
    assert found.value == pytest.approx(2 * math.exp(logs.mean()))
    assert (found.low, found.high) == pytest.approx(
        (found.value * math.exp(-half), found.value * math.exp(half))
    )
    assert found.rounds == [180, 200, 220]
    assert found.remark() is None
    same = estimated("rbps", [100, 100, 100], load="x")
    assert same.high / same.low == pytest.approx(math.exp(2 * 1.96 * 0.002), rel=1e-4)


def test_a_figure_that_falls_from_round_to_round_is_noted() -> None:
    falling = estimated("wrandiops", [1000, 900, 810, 730, 655, 590], load="x")
    assert falling.change == pytest.approx(-0.41, abs=0.01)
    assert "-41 %" in (falling.remark() or "")


def test_figures_that_the_rounds_leave_open_are_noted() -> None:
    sure = estimated("rbps", [100, 101, 99], load="x")
    open_ones = [estimated(name, [60, 100, 180], load="x") for name in ("wbps", "wlat")]
    assert doubtful_remarks([sure]) == []
    (note,) = doubtful_remarks([sure, *open_ones])
    assert "wbps and wlat may be off by more than 25 %" in note


def test_intervals_hold_the_truth_in_95_of_100_cases() -> None:
    draw = np.random.default_rng(20_261_123)
    truth = 54_321.0
    inside = 0
    for _ in range(2000):
        rates = truth * np.exp(draw.normal(0, draw.uniform(0.01, 0.2), size=6))
        found = estimated("rrandiops", rates.tolist(), load="x")
        inside += found.low <= truth <= found.high
    assert 0.935 <= inside / 2000 <= 0.965


def curve(vrates: Floats, *, knee: float, steepness: float, limit: float) -> tuple[Floats, Floats]:
    """Bandwidths and latencies of a device that saturates, with a latency that rises beyond a vrate."""
    bandwidths = np.minimum(vrates, limit)
    latencies = np.minimum(40, 1 + 0.003 * vrates + np.exp((vrates - knee) / 100 * steepness))
    return bandwidths, latencies


def least_of_the_best(vrates: Sequence[int], values: Floats) -> int:
    return vrates[int(np.flatnonzero(values >= NEARLY * values.max())[0])]


def test_the_range_holds_the_truth_in_95_of_100_cases() -> None:
    draw = np.random.default_rng(5)
    vrates = list(range(10, 151, 5))
    knees = saturations = 0
    for _ in range(300):
        knee = draw.uniform(40, 130)
        limit = knee * draw.uniform(1.0, 1.15)
        bandwidths, latencies = curve(
            np.array(vrates, dtype=float), knee=knee, steepness=draw.uniform(5, 60), limit=limit
        )
        true_knee = least_of_the_best(vrates, bandwidths / latencies)
        true_saturation = max(true_knee, least_of_the_best(vrates, bandwidths))
        shape = (8, len(vrates))
        noise = draw.uniform(0.005, 0.1)
        found = vrate_range(
            vrates,
            bandwidths * np.exp(draw.normal(0, draw.uniform(0.001, 0.02), shape)),
            latencies * np.exp(draw.normal(0, noise, shape) + draw.normal(0, noise, (8, 1))),
            np.ones(shape),
        )
        assert found is not None
        assert found.knee.low <= found.knee.value <= found.knee.high <= found.saturation.high
        knees += found.knee.low <= true_knee <= found.knee.high
        saturations += found.saturation.low <= true_saturation <= found.saturation.high
    assert knees >= 0.93 * 300
    assert saturations >= 0.95 * 300


def exact(values: Sequence[float]) -> Floats:
    return np.tile(np.array(values, dtype=float), (8, 1))


def test_the_range_of_exact_curves() -> None:
    vrates = [20, 40, 60, 80, 100]
    found = vrate_range(
        vrates, exact([20, 40, 60, 80, 81]), exact([10, 10, 11, 30, 90]), exact([1, 1, 1, 1, 1])
    )
    # Of bandwidth over latency, 60 over 11 is the most; 80 is within 2.5 % of 81.
    assert found == VrateRange(
        knee=Vrate(value=60, low=60, high=60), saturation=Vrate(value=80, low=80, high=80)
    )
    flat = vrate_range(vrates, exact([50] * 5), exact([10] * 5), exact([1] * 5))
    assert flat is not None
    assert flat.knee.value == flat.saturation.value == 20


def test_vrates_that_do_not_protect_the_group_are_out_of_the_question() -> None:
    vrates = [20, 40, 60]
    powers = (exact([10, 90, 99]), exact([10, 10, 10]))
    found = vrate_range(vrates, *powers, exact([0.5, 0.95, 0.8]))
    assert found is not None
    assert (found.knee.value, found.saturation.value) == (40, 40)
    assert vrate_range(vrates, *powers, exact([0.5, 0.6, 0.7])) is None
    stuck = exact([10, 10, 10])
    stuck[3, 1] = math.inf
    assert vrate_range(vrates, powers[0], stuck, exact([0.5, 0.95, 0.8])) is None


def both_ends(knee: int, saturation: int) -> VrateRange:
    return VrateRange(
        knee=Vrate(value=knee, low=knee, high=knee),
        saturation=Vrate(value=saturation, low=saturation, high=saturation),
    )


def test_solutions_scale_the_model_so_that_100_percent_is_their_highest_vrate() -> None:
    found = [
        *swept_solutions(MODEL, both_ends(60, 80), percentile=95, swept_us=(500, 200), targets_us=(400, 300)),
        naive(MODEL, percentile=95, latencies_us=(900, 800)),
    ]
    assert tuple(one.name for one in found) == SOLUTIONS
    isolation, between, bandwidth, plain = (one.parameters for one in found)
    assert isolation.model == scaled(MODEL, 0.6)
    assert isolation.qos == Qos(rpct=0, rlat=500, wpct=0, wlat=200)
    assert between.model == bandwidth.model == scaled(MODEL, 0.8)
    assert between.qos == Qos(rpct=95, rlat=400, wpct=95, wlat=300, min=75)
    assert plain.model == MODEL
    assert plain.qos == Qos(rpct=95, rlat=900, wpct=95, wlat=800, min=60)
    assert [(one.vrate_min, one.vrate_max) for one in found] == [(60, 60), (60, 80), (80, 80), (60, 100)]


def test_where_both_ends_are_one_there_is_nothing_between_them() -> None:
    found = swept_solutions(
        MODEL, both_ends(70, 70), percentile=95, swept_us=(500, 200), targets_us=(400, 300)
    )
    assert len({one.parameters for one in found}) == 1


def test_a_latency_target_has_headroom_over_all_runs_together() -> None:
    runs = [LatencyHistogram(count=9, bins={100_000: 9}, min_ns=100_000, max_ns=100_000)]
    runs.append(LatencyHistogram(count=1, bins={900_000: 1}, min_ns=900_000, max_ns=900_000))
    assert latency_target_us(runs, 50) == 150
    assert latency_target_us(runs, 95) == 1350


def test_the_kernels_lines() -> None:
    parameters = naive(MODEL, percentile=95, latencies_us=(900, 800)).parameters
    assert model_line(parameters, "8:16") == (
        "8:16 ctrl=user model=linear rbps=500000000 rseqiops=90000 rrandiops=80000"
        " wbps=400000000 wseqiops=70000 wrandiops=60000"
    )
    assert qos_line(parameters, None) == (
        "MAJ:MIN enable=1 ctrl=user rpct=95.00 rlat=900 wpct=95.00 wlat=800 min=60.00 max=100.00"
    )


def test_names_of_a_drive() -> None:
    assert model_forms("Samsung SSD 860") == ("Samsung SSD 860", "Samsung_SSD_860")
    assert model_forms("HFS256GD9TNG-62A0A") == ("HFS256GD9TNG-62A0A",)
    assert model_forms("virtio disk") == model_forms("loop device") == model_forms("") == ()
    text = '[calibration]\nmodel = "KBG40ZNV"\nmachine = "this"\n'
    profile = Profile(name="a", source="a.toml", kind="virtual", text=text, summary="")
    assert calibrated_facts(profile).model == "KBG40ZNV"
    assert calibrated_facts(profile).machine == "this"


MODELS = ("Samsung SSD 860", "We[i]rd*Disk #1")


def hwdb() -> str:
    solutions = [
        *swept_solutions(MODEL, both_ends(60, 80), percentile=95, swept_us=(500, 200), targets_us=(400, 300)),
        naive(MODEL, percentile=95, latencies_us=(900, 800)),
    ]
    return hwdb_text(solutions, models=MODELS, head=["made up", ""])


def test_the_hardware_database_has_every_solution() -> None:
    lines = hwdb().splitlines()
    assert lines[:3] == ["# made up", "#", ""]
    assert lines[3:5] == ["block:*:name:Samsung SSD 860:fwrev:*:", "block:*:name:We?i?rd?Disk ?1:fwrev:*:"]
    assert lines[5] == "  IOCOST_SOLUTIONS=isolation isolated-bandwidth bandwidth naive"
    assert lines[8] == (
        "  IOCOST_MODEL_ISOLATED_BANDWIDTH=rbps=400000000 rseqiops=72000 rrandiops=64000"
        " wbps=320000000 wseqiops=56000 wrandiops=48000"
    )
    assert lines[9] == (
        "  IOCOST_QOS_ISOLATED_BANDWIDTH=rpct=95.00 rlat=400 wpct=95.00 wlat=300 min=75.00 max=100.00"
    )
    assert len(lines) == 6 + 2 * len(SOLUTIONS)
    with pytest.raises(RequirementError, match="by its model"):
        hwdb_text([], models=[], head=[])


@pytest.mark.skipif(shutil.which("systemd-hwdb") is None, reason="systemd-hwdb is not installed")
@pytest.mark.parametrize("model", MODELS)
def test_systemd_compiles_the_file_and_finds_the_drive(model: str, tmp_path: Path) -> None:
    folder = tmp_path / "etc/udev/hwdb.d"
    folder.mkdir(parents=True)
    (folder / "90-blklab-iocost.hwdb").write_text(hwdb(), "utf-8")
    tool = ["systemd-hwdb", f"--root={tmp_path}"]
    compiled = subprocess.run([*tool, "--strict", "update"], capture_output=True, text=True, check=True)
    assert compiled.stderr == ""
    # The key that systemd's 90-iocost.rules look up.
    query = [*tool, "query", f"block::name:{model}:fwrev:1.0:"]
    answer = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    properties = dict(line.split("=", maxsplit=1) for line in answer.splitlines())
    solutions = properties["IOCOST_SOLUTIONS"].split()
    assert solutions == list(SOLUTIONS)
    for solution in solutions:
        key = solution.upper().replace("-", "_")
        model_words = dict(word.split("=") for word in properties[f"IOCOST_MODEL_{key}"].split())
        assert tuple(model_words) == COEFFICIENTS
        assert properties[f"IOCOST_QOS_{key}"].startswith("rpct=")
    other = [*tool, "query", "block::name:Another:fwrev:1.0:"]
    assert subprocess.run(other, capture_output=True, text=True, check=True).stdout == ""


def test_a_simulated_disks_coefficients_are_those_of_direct_simulations() -> None:
    with opened_ground(parse_target(f"sim:{DISK}"), seed=SHORT.seed, machine=MACHINE, queue=QUEUE) as ground:
        space_bytes = ground.facts.space_bytes
        found = measured(ground, SHORT, Silent())
    loads = coefficient_loads(1, 8)
    expected: dict[str, list[float]] = {name: [] for name in loads}
    number = 0
    for step in range(SHORT.rounds):
        for name in load_order(list(loads), seed=SHORT.seed, stage="model", number=step):
            runtime_us = SHORT.runtime_us
            result = simulate(
                DISK,
                loads[name].workload(space_bytes=space_bytes, ramp_us=runtime_us // 5, runtime_us=runtime_us),
                scheduler="none",
                queue=QUEUE,
                costs=MACHINE,
                seed=derive_seed(SHORT.seed, "calibrate", number),
                arrangement="drawn",
            )
            entry = result.jobs[0].directions[0]
            before_drain = (entry.ios - loads[name].depth) * 1e6 / runtime_us
            iops = max(before_drain, entry.ios * 1e9 / entry.runtime_ns)
            expected[name].append(iops * (1 << 20 if name.endswith("bps") else 1))
            number += 1
    for one in found.coefficients:
        assert one.rounds == pytest.approx(expected[one.name], rel=1e-9), one.name
    assert [one.name for one in found.latencies] == ["rlat", "wlat"]
    assert found.percentile == 95
    # Three servers of 0.2 and 0.3 ms and a queue before them.
    assert 1.5 * 200 < found.latencies_us[0] < found.latencies_us[1]


def drawn_disk(draw: random.Random) -> str:
    return ",".join(
        [
            "virtual",
            *(f"{key}={draw.randrange(100_000, 1_000_000)}ns" for key in ("read_latency", "write_latency")),
            *(f"{key}={draw.randrange(50, 400)}" for key in ("read_spread", "write_spread")),
            *(f"{key}={draw.randrange(100, 1000)}000000" for key in ("read_rate", "write_rate")),
            f"parallel={draw.randrange(1, 8)},queue_depth=32",
        ]
    )


@pytest.mark.slow
def test_a_disk_that_drains_slowly_is_rated_before_it_drains() -> None:
    # Requests at random on eight servers: with few left, most servers have none.
    disk = "virtual,read_latency=4ms,read_spread=10,parallel=8,placement=random,queue_depth=64"
    load = coefficient_loads(1, 64)["rrandiops"]
    rates = []
    for runtime_us, seeds in ((40_000_000, range(1)), (500_000, range(20))):
        workload = load.workload(space_bytes=1 << 30, ramp_us=100_000, runtime_us=runtime_us)
        found = [
            simulate(disk, workload, scheduler="none", queue=QUEUE, costs=MACHINE, seed=seed)
            for seed in seeds
        ]
        whole = np.mean([1e9 * one.jobs[0].directions[0].ios / one.jobs[0].runtime_ns for one in found])
        before = np.mean([rate_before_drain(one.jobs, load, runtime_us) for one in found])
        rates.append((whole, before))
    truth = rates[0][0]
    assert rates[1][0] < 0.97 * truth
    assert rates[1][1] == pytest.approx(truth, rel=0.015)


class Stalling(SessionGround):
    """A disk that completes nothing in its first runs."""

    stalls = 0
    runtimes_us: list[int]

    def sample(self, load: CalibrationLoad, *, number: int, runtime_us: int) -> RunSample:
        self.runtimes_us.append(runtime_us)
        found = super().sample(load, number=number, runtime_us=runtime_us)
        if len(self.runtimes_us) > self.stalls:
            return found
        return found.model_copy(
            update={"jobs": [job.model_copy(update={"directions": []}) for job in found.jobs]}
        )


class Noted(Silent):
    def __init__(self) -> None:
        self.plans: list[IocostPlan] = []
        self.left_ns: list[int | None] = []

    def planned(self, plan: IocostPlan) -> None:
        assert not self.left_ns
        self.plans.append(plan)

    def measuring(self, name: str, *, done: int, planned: int, left_ns: int | None = None) -> None:
        super().measuring(name, done=done, planned=planned)
        self.left_ns.append(left_ns)


@pytest.mark.parametrize(("rested", "least_ns"), [(False, 24 * 120_000_000), (True, None)])
def test_the_plan_comes_first_and_the_time_left_with_each_run(rested: bool, least_ns: int | None) -> None:
    noted = Noted()
    with opened_ground(parse_target(f"sim:{DISK}"), seed=1, machine=MACHINE, queue=QUEUE) as ground:
        ground.facts = replace(ground.facts, rested=rested)
        measured(ground, SHORT, noted)
    assert noted.plans == [IocostPlan(loads=8, rounds=3, least_ns=least_ns)]
    assert noted.left_ns[0] is None
    assert len(noted.left_ns) == 24
    assert all(left is not None and left > 0 for left in noted.left_ns[1:])


def test_the_time_left_follows_from_the_runs_so_far() -> None:
    pace = Pace(10_000_000)
    assert pace.left_ns is None
    pace.made(2_000_000, 4_000_000_000)
    assert pace.left_ns == 16_000_000_000
    pace.made(2_000_000, 2_000_000_000)
    assert pace.left_ns == 9_000_000_000


@pytest.mark.parametrize("stalls", [0, 2, 3])
def test_a_run_in_which_the_disk_stalled_is_made_again_for_longer(stalls: int) -> None:
    loads = {"rrandiops": coefficient_loads(1, 8)["rrandiops"]}
    with opened_ground(parse_target(f"sim:{DISK}"), seed=1, machine=MACHINE, queue=QUEUE) as ground:
        stalling = Stalling(ground._session, ground.facts, 1)
        stalling.stalls, stalling.runtimes_us = stalls, []

        def rounds() -> list[LoadRun]:
            return measured_rounds(
                stalling,
                loads,
                stage="model",
                rounds=1,
                runtimes_us={"rrandiops": 100_000},
                seed=1,
                first_number=0,
                planned=1,
                pace=Pace(100_000),
                observer=Silent(),
            )["rrandiops"]

        if stalls < 3:
            assert rounds()[0].iops > 0
        else:
            with pytest.raises(RunFailedError, match=r"no I/O in 0\.4 s"):
                rounds()
    assert stalling.runtimes_us == [100_000, 200_000, 400_000][: stalls + 1]


def test_intervals_of_drawn_disks_hold_what_long_simulations_find() -> None:
    draw = random.Random(7)  # noqa: S311 - not for secrets
    inside = total = 0
    for _ in range(5):
        disk = drawn_disk(draw)
        with opened_ground(parse_target(f"sim:{disk}"), seed=1, machine=MACHINE, queue=QUEUE) as ground:
            space_bytes = ground.facts.space_bytes
            stages = IocostStages(rounds=4, runtime_us=1_000_000, processes=1, seed=1)
            found = {one.name: one for one in measured(ground, stages, Silent()).coefficients}
        for name, load in coefficient_loads(1, 32).items():
            workload = load.workload(space_bytes=space_bytes, ramp_us=200_000, runtime_us=10_000_000)
            result = simulate(disk, workload, scheduler="none", queue=QUEUE, costs=MACHINE, seed=99)
            entry = result.jobs[0].directions[0]
            truth = (entry.bytes if name.endswith("bps") else entry.ios) * 1e9 / entry.runtime_ns
            inside += found[name].low <= truth <= found[name].high
            total += 1
    assert inside >= 0.9 * total, f"{inside} of {total}"


@pytest.fixture(scope="module")
def swept_virtual() -> IoCostDocument:
    return determined(request(f"sim:{DISK}"), Silent())


def test_a_sweep_finds_solutions_that_protect_the_group(swept_virtual: IoCostDocument) -> None:
    found = swept_virtual
    assert found.sweep is not None
    assert found.sweep.range is not None
    assert tuple(one.name for one in found.solutions) == SOLUTIONS
    assert found.chosen == "isolation"
    isolation = found.solution("isolation").expected
    without = found.sweep.without
    assert isolation is not None
    assert isolation.p99_us is not None
    assert without.p99_us is not None
    # The knee keeps at least half of the bandwidth at less than half of the latency.
    assert isolation.p99_us < without.p99_us / 2
    assert isolation.bytes_per_second > without.bytes_per_second / 2
    assert isolation.isolation >= 0.9
    bandwidth = found.solution("bandwidth").expected
    assert bandwidth is not None
    assert bandwidth.bytes_per_second >= isolation.bytes_per_second
    # At the knee the solution does what the sweep found there.
    at_knee = next(one for one in found.sweep.vrates if one.vrate == found.sweep.range.knee.value)
    assert isolation.bytes_per_second == pytest.approx(at_knee.expected.bytes_per_second, rel=0.05)


def test_a_sweep_without_an_end_and_one_that_loses_bandwidth_are_noted(
    swept_virtual: IoCostDocument,
) -> None:
    sweep = swept_virtual.sweep
    assert sweep is not None
    assert remarks_on_sweep(sweep) == []
    endless = sweep.model_copy(update={"range": both_ends(60, 150)})
    assert "beyond 150 %" in remarks_on_sweep(endless)[0]
    faster = sweep.without.model_copy(update={"bytes_per_second": 2 * sweep.without.bytes_per_second})
    assert "get 50 % of their bandwidth" in remarks_on_sweep(sweep.model_copy(update={"without": faster}))[0]
    assert "no vrate protects" in remarks_on_sweep(sweep.model_copy(update={"range": None}))[0]


def test_the_result_depends_on_the_request_alone(swept_virtual: IoCostDocument) -> None:
    again = determined(request(f"sim:{DISK}"), Silent())
    assert again.model_copy(update={"measured_on": ""}) == swept_virtual.model_copy(
        update={"measured_on": ""}
    )


def test_without_a_sweep_there_is_the_naive_solution_alone() -> None:
    found = determined(request(f"sim:{DISK}", sweeps=False), Silent())
    assert found.sweep is None
    assert [one.name for one in found.solutions] == [NAIVE]
    assert found.solutions[0].parameters.model == {one.name: one.whole for one in found.coefficients}
    assert found.solutions[0].expected is None
    assert found.model_line.startswith("MAJ:MIN ctrl=user model=linear rbps=")


def test_requests_that_contradict_themselves() -> None:
    with pytest.raises(UsageError, match="a model is swept itself"):
        determined(request("sim:fixed", profile="fixed"), Silent())
    with pytest.raises(UsageError, match="needs a sweep"):
        determined(request("sim:fixed", sweeps=False, solution="isolation"), Silent())
