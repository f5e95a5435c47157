from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blklab import _core
from blklab.errors import JobFileError, SpaceError
from blklab.linux.scratch.layout import Region, files_in_directory, regions_in_directory, regions_on_device
from blklab.spec.workloads import Workload, load_workload, parse_workload, shipped_workloads

MIB = 1 << 20


def workload(text: str) -> Workload:
    return parse_workload(text, name="test", source="test.fio")


def on_device(text: str, device_mib: int = 10) -> list[list[tuple[int, int]]]:
    regions = regions_on_device(workload(text), "/dev/x", device_mib * MIB)
    return [[(region.offset_bytes, region.size_bytes) for region in clones] for clones in regions]


def test_jobs_without_size_share_the_device() -> None:
    assert on_device("[a]\n[b]\noffset=1m\n") == [[(0, 10 * MIB)], [(MIB, 9 * MIB)]]


def test_clones_have_files_of_their_own() -> None:
    starts = [start for start, _ in on_device("[a]\nsize=1100k\nnumjobs=3\n")[0]]
    assert starts == [0, 2 * MIB, 4 * MIB]


def test_a_size_after_a_shares_offset_makes_the_file_longer() -> None:
    # fio 3.33: x has 20480 bytes, and the second job reads 4096 to 20480.
    text = "[a]\nsize=16k\nfilename=x\n[b]\nsize=16k\nfilename=x\noffset=10%\n[c]\nsize=1020k\noffset=50%\n"
    text += "filename=x\n[d]\nsize=4k\n"
    assert on_device(text) == [[(0, 16 << 10)], [(4096, 16 << 10)], [(8192, 1020 << 10)], [(2 * MIB, 4096)]]


def test_a_shared_name_is_one_file_and_as_large_as_asked() -> None:
    text = "[a]\nfilename=x\nsize=1m\nnumjobs=2\noffset_increment=1m\n[b]\nfilename=x\n[c]\nsize=1m\n"
    assert on_device(text) == [[(0, MIB), (MIB, MIB)], [(0, 2 * MIB)], [(2 * MIB, MIB)]]


def test_percentages_are_of_the_device() -> None:
    assert on_device("[a]\nsize=50%\n[b]\noffset=90%\n", 100) == [[(0, 50 * MIB)], [(90 * MIB, 10 * MIB)]]


def test_what_does_not_fit_is_an_error_with_both_figures() -> None:
    with pytest.raises(SpaceError, match=r"needs 12\.0 MiB.* has 10\.0 MiB"):
        on_device("[a]\nsize=6m\nnumjobs=2\n")


def test_an_offset_past_the_end_is_an_error_with_its_line() -> None:
    with pytest.raises(JobFileError, match=r"test\.fio:3: job a"):
        on_device("[a]\nfilename=x\noffset=10m\n")


def test_readers_and_writers_have_different_files_in_a_directory() -> None:
    reading, writing = workload("[a]\nsize=2m\n"), workload("[a]\nrw=write\nsize=1m\n[b]\nsize=4m\n")
    assert regions_in_directory(reading) == [(Region("read-0", 0, 2 * MIB),)]
    assert regions_in_directory(writing) == [
        (Region("written-0", 0, MIB),),
        (Region("read-0", 0, 4 * MIB),),
    ]
    assert files_in_directory([reading, writing]) == {"read-0": 4 * MIB, "written-0": MIB}


@pytest.mark.parametrize("text", ["[a]\n", "[a]\nfilename=x\n", "[a]\nsize=10%\n"])
def test_a_directory_needs_sizes(text: str) -> None:
    with pytest.raises(JobFileError) as caught:
        regions_in_directory(workload(text))
    assert caught.value.hint is not None
    assert "512m" in caught.value.hint


@pytest.mark.parametrize("name", sorted(shipped_workloads()))
def test_shipped_workloads_fit_into_a_directory_and_a_small_device(name: str) -> None:
    shipped = load_workload(name)
    assert sum(files_in_directory([shipped]).values()) <= 512 * MIB
    regions_on_device(shipped, "/dev/x", 600 * MIB)


def test_all_shipped_workloads_share_their_files() -> None:
    lengths = files_in_directory(load_workload(name) for name in shipped_workloads())
    assert sum(lengths.values()) <= 1024 * MIB


@given(
    st.lists(
        st.tuples(
            st.integers(1, 4), st.integers(4, 4000), st.sampled_from(["", "x", "y"]), st.integers(0, 64)
        ),
        min_size=1,
        max_size=6,
    )
)
def test_files_never_overlap_on_a_device(jobs: list[tuple[int, int, str, int]]) -> None:
    text = ""
    for index, (numjobs, size_kib, name, step_kib) in enumerate(jobs):
        text += f"[j{index}]\nnumjobs={numjobs}\nsize={size_kib}k\noffset_increment={step_kib}k\n"
        text += f"filename={name}\n" if name else ""
    parsed = workload(text)
    spans: dict[object, tuple[int, int]] = {}
    for index, (job, clones) in enumerate(
        zip(parsed.jobs, regions_on_device(parsed, "/dev/x", 1 << 40), strict=True)
    ):
        for clone, region in enumerate(clones):
            key = job.filename or (index, clone)
            start, end = spans.get(key, (region.offset_bytes, 0))
            spans[key] = min(start, region.offset_bytes), max(end, region.end_bytes)
    ordered = sorted(spans.values())
    assert all(first[1] <= second[0] for first, second in pairwise(ordered))


_SHARES = st.sampled_from(["", "0", "16k", "1m", "3m", "10%", "33%", "100%"])


@given(
    st.lists(
        st.tuples(
            st.integers(1, 3),
            _SHARES,
            _SHARES,
            _SHARES,
            st.sampled_from(["", "2m", "1234k"]),
            st.sampled_from(["", "x", "y", "/dev/x"]),
            st.sampled_from(["4k", "12k", "4k,16k"]),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_hosts_and_models_lay_out_alike(jobs: list[tuple[int, str, str, str, str, str, str]]) -> None:
    text = ""
    for index, (numjobs, *values) in enumerate(jobs):
        names = ("size", "offset", "offset_increment", "filesize", "filename", "bs")
        given_options = [f"{name}={value}" for name, value in zip(names, values, strict=True) if value]
        text += "\n".join([f"[j{index}]", f"numjobs={numjobs}", "rw=read", *given_options, ""])
    work = workload(text)
    try:
        hosts = regions_on_device(work, "/dev/x", 40 * MIB + 4096)
    except (JobFileError, SpaceError):
        hosts = None
    try:
        answer = json.loads(_core.job_transfers(text, "test.fio", 40 * MIB + 4096, 1, 1 << 20))
    except _core.SimulationError:
        answer = None
    if hosts is None or answer is None:
        # A model has no room for a part that a host refuses, and the other way round.
        assert answer is None or hosts is None
        return
    for job, regions, clones in zip(work.jobs, hosts, answer, strict=True):
        for region, transfers in zip(regions, clones, strict=True):
            assert transfers[0][1] == region.offset_bytes
            whole = region.size_bytes // job.block_size_bytes
            limit = region.size_bytes if region.pass_bytes is None else region.pass_bytes
            assert len(transfers) == min(whole, -(-limit // job.block_size_bytes))
