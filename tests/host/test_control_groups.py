"""Control groups of the running kernel, where cgroup v1 (blkio) or v2 (io) is mounted."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.errors import RequirementError, TunableError, UsageError
from blklab.linux.cgroups.hierarchy import Hierarchy, find_hierarchy
from blklab.spec.schedulers import parse_scheduler_choices
from host.conftest import IOS, READ, RUN_ID, LoopDevice, cell, opened, work

pytestmark = pytest.mark.root

TWO = f"""
[global]
rw=randread
bs=64k
size=8m
direct=1
ioengine=libaio
iodepth=16
number_ios={IOS}
[light]
cgroup=light
cgroup_weight=100
[heavy]
cgroup=heavy
cgroup_weight=800
"""


@pytest.fixture
def hierarchy() -> Hierarchy:
    try:
        return find_hierarchy()
    except RequirementError as error:
        pytest.skip(error.message)


@pytest.fixture
def v1(hierarchy: Hierarchy) -> Path:
    if hierarchy.version != 1:
        pytest.skip("blkio is not under cgroup v1 here")
    return hierarchy.root


def test_jobs_run_in_groups_with_their_weights(raw: LoopDevice, hierarchy: Hierarchy) -> None:
    """Checks only that; tests/uml/test_laws.py measures bfq's shares, undisturbed by other work."""
    two = work(TWO)
    with opened(raw.device) as session:
        session.check(parse_scheduler_choices("bfq:low_latency=0"), [two])
        sample = session.run(cell("bfq:low_latency=0", two))
        assert sample.status == "ok", sample.error
        weight = "blkio.bfq.weight" if hierarchy.version == 1 else "io.bfq.weight"
        assert sample.settings[f"cgroup/light/{weight}"].endswith("100")
        assert sample.settings[f"cgroup/heavy/{weight}"].endswith("800")
        folder = hierarchy.root / f"blklab-{RUN_ID}"
        for job in sample.jobs:
            assert job.directions[0].ios == IOS
            # bfq's account can miss a few; a job outside its group is charged nothing there.
            assert 0 < _bytes_charged(folder / job.name, raw) <= job.directions[0].bytes
    assert not folder.exists()


def _bytes_charged(group: Path, device: LoopDevice) -> int:
    """Bytes that the kernel charged to a control group for a device under bfq."""
    number = Path(f"/sys/block/{device.name}/dev").read_text().strip()
    v1, v2 = group / "blkio.bfq.io_service_bytes", group / "io.stat"
    if v1.exists():
        rows = [line.split() for line in v1.read_text().splitlines()]
        return sum(int(row[2]) for row in rows if row[:2] == [number, "Total"])
    if v2.exists():
        (line,) = [line for line in v2.read_text().splitlines() if line.startswith(f"{number} ")]
        return sum(
            int(word.partition("=")[2]) for word in line.split() if word.startswith(("rbytes", "wbytes"))
        )
    pytest.skip("this kernel does not account I/O by control group")


def test_a_throttle_acts_on_the_leaf(raw: LoopDevice, v1: Path) -> None:
    """Never faster than the limit; a busy machine may be slower."""
    limit = 1 << 20
    limited = work(READ.replace("size=8m", "size=8m\ncgroup=slow").replace(f"{IOS}", "256"))
    groups = {"slow": {"blkio.throttle.read_bps_device": str(limit)}}
    with opened(raw.device, cgroups=groups) as session:
        session.check([], [limited])
        sample = session.run(cell("none", limited))
        assert sample.status == "ok", sample.error
        (reads,) = sample.jobs[0].directions
        number = Path(f"/sys/block/{raw.name}/dev").read_text().strip()
        assert sample.settings["cgroup/slow/blkio.throttle.read_bps_device"] == f"{number} {limit}"
    # The kernel lets a slice's worth (100 ms) through at once.
    assert reads.bytes == limit
    assert reads.runtime_ns > 0.5e9


@pytest.mark.parametrize(
    ("attribute", "value", "hint"),
    [
        ("io.weight", "50", "blkio.bfq.weight"),
        ("io.bfq.weight", "50", "blkio.bfq.weight"),
        ("io.max", "rbps=1", "blkio.throttle"),
        ("io.cost.qos", "enable=1", "belongs to cgroup v2"),
        ("blkio.weight", "50", "blkio.bfq.weight"),
        ("blkio.nonsense", "1", ""),
    ],
)
def test_an_attribute_that_this_kernel_lacks_names_the_right_one(
    raw: LoopDevice, v1: Path, attribute: str, value: str, hint: str
) -> None:
    with (
        pytest.raises(TunableError, match=f"no {attribute} under cgroup v1") as caught,
        opened(raw.device, cgroups={"batch": {attribute: value}}) as session,
    ):
        session.check([], [work(READ.replace("size=8m", "size=8m\ncgroup=batch"))])
    assert hint in (caught.value.hint or "")
    assert not (v1 / f"blklab-{RUN_ID}").exists()
    raw.assert_unchanged()


def test_a_weight_out_of_range_is_refused_in_the_kernel_s_words(raw: LoopDevice, v1: Path) -> None:
    with (
        pytest.raises(
            TunableError, match=r"refused blkio\.bfq\.weight = 5000 \(numerical result out of range\)"
        ),
        opened(raw.device, cgroups={"batch": {"blkio.bfq.weight": "5000"}}) as session,
    ):
        session.check([], [work(READ.replace("size=8m", "size=8m\ncgroup=batch"))])
    assert not (v1 / f"blklab-{RUN_ID}").exists()


@pytest.mark.parametrize(
    "groups", [{"../up": {"blkio.bfq.weight": "5"}}, {"a": {"memory.max": "5"}}, {"a b": {}}, {".": {}}]
)
def test_names_that_lead_elsewhere_are_refused(raw: LoopDevice, groups: dict[str, dict[str, str]]) -> None:
    with pytest.raises(UsageError), opened(raw.device, cgroups=groups) as session:
        session.check([], [work(READ)])


def test_a_weight_of_a_choice_is_in_force_with_it_and_taken_back(
    raw: LoopDevice, hierarchy: Hierarchy
) -> None:
    two = work("\n".join(line for line in TWO.splitlines() if "cgroup_weight" not in line))
    weight = "blkio.bfq.weight" if hierarchy.version == 1 else "io.bfq.weight"
    plain = "bfq:low_latency=0"
    heavy = f"{plain}:heavy/{weight}=300"
    with opened(raw.device) as session:
        assert weight in session.group_attributes()
        session.check(parse_scheduler_choices([plain, heavy]), [two])
        assert "control groups change between runs only" in str(session.unswitchable(two))
        path = hierarchy.root / f"blklab-{RUN_ID}" / "heavy" / weight
        assert path.read_text().split()[-1] == "100"
        sample = session.run(cell(heavy, two))
        assert sample.status == "ok", sample.error
        assert sample.settings[f"cgroup/heavy/{weight}"].endswith("300")
        sample = session.run(cell(plain, two))
        assert sample.status == "ok", sample.error
        assert path.read_text().split()[-1] == "100"
        assert f"echo 300 > {path}" in session.commands(cell(heavy, two))
        assert f"echo 300 > {path}" not in session.commands(cell(plain, two))


def test_io_cost_of_a_choice_needs_cgroup_v2(raw: LoopDevice, v1: Path) -> None:
    choices = parse_scheduler_choices("none,none:/io.cost.qos.enable=1")
    with (
        opened(raw.device) as session,
        pytest.raises(TunableError, match=r"no io\.cost\.qos under cgroup v1") as caught,
    ):
        session.check(choices, [work(READ)])
    assert "belongs to cgroup v2" in (caught.value.hint or "")
    raw.assert_unchanged()


def test_a_scheduler_that_ignores_weights_is_pointed_out(raw: LoopDevice, hierarchy: Hierarchy) -> None:
    with opened(raw.device) as session:
        warnings = session.check(parse_scheduler_choices("bfq,kyber,none"), [work(TWO)])
    assert warnings[0] == "control group weights have no effect under kyber and `none`"
    assert [warning.partition(":")[0] for warning in warnings[1:]] == [
        "shares by weight are skewed under bfq"
    ]


def test_a_root_group_s_throttle_comes_back(raw: LoopDevice, v1: Path) -> None:
    path = v1 / "blkio.throttle.read_bps_device"
    number = Path(f"/sys/block/{raw.name}/dev").read_text().strip()

    def lines() -> list[str]:
        """Lines about the test's device; other programs may limit theirs."""
        return [line for line in path.read_text().splitlines() if line.startswith(f"{number} ")]

    assert lines() == []
    with opened(raw.device, cgroups={"/": {path.name: "5000000"}}) as session:
        session.check([], [work(READ)])
        assert lines() == [f"{number} 5000000"]
    assert lines() == []


def test_a_dry_run_says_what_happens_to_groups(raw: LoopDevice, hierarchy: Hierarchy) -> None:
    with opened(raw.device, dry_run=True) as session:
        text = "\n".join(session.commands(cell("bfq", work(TWO))))
    folder = hierarchy.root / f"blklab-{RUN_ID}"
    assert f"mkdir {folder}\n" in text
    assert f"mkdir {folder}/heavy" in text
    assert f"echo 800 > {folder}/heavy/" in text
    assert f"exec_prerun=echo $PPID | tee {folder}/heavy/cgroup.procs" in text
    assert not folder.exists()
