"""fio's own job files: which are taken, and whether the models' I/Os are those of fio."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from blklab import _core
from blklab.errors import JobFileError
from blklab.linux.load.fio import check_job_file, find_fio, job_file_text
from blklab.linux.scratch.layout import regions_on_device
from blklab.spec.modelled_options import option_uses
from blklab.spec.workloads import Job, Workload, load_workload, parse_workload
from fio_examples import FOLDER, HOST_ONLY, LEFT_OUT, MODELLED, smaller
from plain_simulation import simulate

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="fio's examples are not installed (Debian: fio-examples)"
)
needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")

DEVICE_BYTES = 32 << 20
DEVIATIONS = 5
"""Standard deviations beyond which two samples do not come from one distribution: once in millions."""

Transfer = tuple[str, int, int]


def test_every_example_is_accounted_for() -> None:
    names = {path.stem for path in FOLDER.glob("*.fio")}
    assert names == {*LEFT_OUT, *HOST_ONLY, *MODELLED}
    assert len(MODELLED) >= 0.9 * len(MODELLED | HOST_ONLY)


@pytest.mark.parametrize("name", sorted(MODELLED | HOST_ONLY))
def test_examples_that_drive_disks_are_taken(name: str) -> None:
    work = load_workload(str(FOLDER / f"{name}.fio"))
    assert bool(work.host_only) == (name in HOST_ONLY)
    uses = option_uses(work)
    assert {use.option for use in uses} == {option for job in work.jobs for option in job.options}
    assert any(use.ground == "host_only" for use in uses) == (name in HOST_ONLY)


@pytest.mark.parametrize("name", sorted(LEFT_OUT))
def test_the_others_are_refused_with_the_line(name: str) -> None:
    with pytest.raises(JobFileError) as caught:
        load_workload(str(FOLDER / f"{name}.fio"))
    assert caught.value.line is not None


def fio_transfers(work: Workload, folder: Path, device: Path) -> list[list[Transfer]]:
    """The I/Os that fio makes of blklab's job file, by clone, from its own log."""
    regions = regions_on_device(work, str(device), DEVICE_BYTES)
    text = job_file_text(work, regions, seed=7)
    head, *sections = re.split(r"(?m)^(?=\[)", text)[1:]
    # Memory's file systems have no direct I/O; offsets and sizes do not depend on it.
    numbered = [
        f"{section.rstrip()}\nwrite_iolog=ios.{number}\n".replace("\ndirect=1\n", "\ndirect=0\n")
        for number, section in enumerate(sections)
    ]
    (folder / "job.fio").write_text(head + "".join(numbered), encoding="utf-8")
    command = [
        "timeout",
        "--signal=KILL",
        "50",
        "prlimit",
        f"--fsize={DEVICE_BYTES + (64 << 20)}",
        "fio",
        "--minimal",
        "job.fio",
    ]
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 0, answer.stderr + answer.stdout[-2000:]
    logs = [folder / f"ios.{number}" for number in range(len(sections))]
    return [read_log(log.read_text(encoding="utf-8")) if log.exists() else [] for log in logs]


def read_log(text: str) -> list[Transfer]:
    """The transfers in fio's log of I/Os, version 2 or 3."""
    found = re.findall(r"(?m) (read|write|trim) (\d+) (\d+)$", text)
    return [(direction, int(offset), int(size)) for direction, offset, size in found]


def model_transfers(work: Workload, most: int) -> list[list[Transfer]]:
    answer = json.loads(_core.job_transfers(work.text, work.source, DEVICE_BYTES, 7, most))
    return [[(d, offset, size) for d, offset, size, _ in clone] for clones in answer for clone in clones]


def ends_by_itself(job: Job, work: Workload) -> bool:
    """Whether its I/Os are as many on a fast disk as on a slow one."""
    return not (
        job.time_based
        or any(other.exitall for other in work.jobs)
        or job.options.get("latency_target")
        or job.runtime_ns is not None
    )


@needs_fio
@pytest.mark.parametrize("name", sorted(MODELLED))
def test_the_models_make_the_ios_of_fio(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """In order, or, where chance decides, with the same sizes, shares and distribution."""
    # The clones of a section that another waits for would share one log; the order is tested elsewhere.
    text = re.sub(r"(?m)^wait_for=.*$", "", smaller(name))
    work = parse_workload(text, name=name, source=f"{name}.fio")
    device = tmp_path / "device"
    if any("trim" in job.rw for job in work.jobs):
        # fio trims block devices only.
        device = request.getfixturevalue("make_loop")(DEVICE_BYTES >> 20).dev_path
    else:
        with device.open("wb") as file:
            file.truncate(DEVICE_BYTES)
    real = fio_transfers(work, tmp_path, device)
    models = model_transfers(work, max(map(len, real), default=0) + 1)
    jobs = [job for job in work.jobs for _ in range(job.numjobs)]
    assert len(real) == len(models) == len(jobs)
    for job, of_fio, of_model in zip(jobs, real, models, strict=True):
        if ends_by_itself(job, work):
            assert_same_number(job, of_fio, of_model)
        length = min(len(of_fio), len(of_model))
        assert_same_ios(job, of_fio[:length], of_model[:length])


def assert_same_number(job: Job, of_fio: Sequence[Transfer], of_model: Sequence[Transfer]) -> None:
    if job.sequential and not (job.reads and job.writes):
        assert len(of_fio) == len(of_model), job.name
    else:
        # Sizes that chance decides add up to the same bytes, give or take the last ones.
        of_each = [sum(size for _, _, size in ios) for ios in (of_fio, of_model)]
        most = max((size for ios in (of_fio, of_model) for _, _, size in ios), default=0)
        verified = 0.2 * max(of_each) if job.verifies and "norandommap" in job.options else 0
        assert of_each[0] <= of_each[1] + 2 * most + verified, job.name
        # Where reads and writes of several sizes share a map, a job ends by chance: see below.
        if "norandommap" in job.options or not {"bssplit", "bsrange"} & job.options.keys():
            assert of_each[1] <= of_each[0] + 2 * most + verified, job.name


@needs_fio
@pytest.mark.parametrize("sizes", ["bssplit=64k/40:1024k/60,1024k/100", "bs=64k,1024k", "bs=1024k,64k"])
def test_jobs_end_early_as_often_as_with_fio_when_reads_and_writes_differ_in_size(
    sizes: str, tmp_path: Path
) -> None:
    """fio marks reads and writes in one map, each by number of its own blocks, and ends with the file when
    the next free number lies beyond the last block of the next I/O's size."""
    nr_clones = 60
    text = f"[a]\nrw=randrw\nsize={DEVICE_BYTES}\nnumjobs={nr_clones}\nfilename=/dev/sda\n{sizes}"
    work = parse_workload(text, name="a", source="a.fio")
    device = tmp_path / "device"
    with device.open("wb") as file:
        file.truncate(DEVICE_BYTES)
    of_fio, of_model = (
        [sum(size for _, _, size in clone) for clone in clones]
        for clones in (fio_transfers(work, tmp_path, device), model_transfers(work, most=1 << 20))
    )
    assert sum(total < 0.75 * DEVICE_BYTES for total in of_fio) >= nr_clones / 10
    # Kolmogorov and Smirnov: two samples of one distribution differ by more in one of a hundred cases.
    furthest = max(
        abs(sum(total <= end for total in of_fio) - sum(total <= end for total in of_model)) / nr_clones
        for end in {*of_fio, *of_model}
    )
    assert furthest < 1.63 * math.sqrt(2 / nr_clones)


def assert_same_ios(job: Job, of_fio: Sequence[Transfer], of_model: Sequence[Transfer]) -> None:
    if job.sequential and not (job.reads and job.writes):
        assert list(of_fio) == list(of_model), job.name
        return
    assert_alike([d for d, _, _ in of_fio], [d for d, _, _ in of_model], f"{job.name}: directions")
    for direction in ("read", "write", "trim"):
        fio = [(offset, size) for d, offset, size in of_fio if d == direction]
        model = [(offset, size) for d, offset, size in of_model if d == direction]
        if min(len(fio), len(model)) < 20:
            continue
        low = min(offset for offset, _ in fio + model)
        step = (max(offset for offset, _ in fio + model) - low) // 20 + 1
        assert_alike([size for _, size in fio], [size for _, size in model], f"{job.name}: sizes")
        places = [[(offset - low) // step for offset, _ in ios] for ios in (fio, model)]
        assert_alike(places[0], places[1], f"{job.name}: offsets")
        assert alignment(fio) == alignment(model), job.name


def alignment(ios: Sequence[tuple[int, int]]) -> int:
    return math.gcd(*(offset for offset, _ in ios))


def assert_alike(fio: Sequence[object], model: Sequence[object], what: str) -> None:
    """Compares how often each value occurs in two samples, which may differ in length."""
    counts = Counter(fio), Counter(model)
    for value in counts[0].keys() | counts[1].keys():
        pooled = (counts[0][value] + counts[1][value]) / (len(fio) + len(model))
        spread = math.sqrt(pooled * (1 - pooled) * (1 / len(fio) + 1 / len(model)))
        difference = abs(counts[0][value] / len(fio) - counts[1][value] / len(model))
        assert difference <= DEVIATIONS * spread + 1e-9, f"{what}: {value!r} {difference:.4f}"


@needs_fio
@pytest.mark.parametrize("name", sorted(MODELLED | HOST_ONLY))
def test_fio_takes_what_blklab_writes_of_an_example(name: str, tmp_path: Path) -> None:
    work = parse_workload(smaller(name), name=name, source=f"{name}.fio")
    regions = regions_on_device(work, "/dev/blklab", DEVICE_BYTES)
    check_job_file(find_fio(), work, job_file_text(work, regions, seed=7), tmp_path)


@pytest.mark.parametrize("name", sorted(MODELLED))
def test_every_modelled_example_runs_in_the_simulator(name: str) -> None:
    work = parse_workload(smaller(name), name=name, source=f"{name}.fio")
    device = f"fixed,latency=100us,depth=32,capacity={DEVICE_BYTES}"
    result = simulate(device, work.text, scheduler="mq-deadline")
    assert [job.name for job in result.jobs] == [job.name for job in work.jobs]
    assert sum(entry.ios for job in result.jobs for entry in job.directions) > 0
