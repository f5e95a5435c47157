"""Control groups of the running kernel, where cgroup v1 (blkio) or v2 (io) is mounted."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.errors import RequirementError, TunableError, UsageError
from blklab.linux.cgroups.run_cgroups import Hierarchy, find_hierarchy
from blklab.spec.schedulers import parse_scheduler_choices
from host.conftest import READ, LoopDevice, cell, opened, work

pytestmark = pytest.mark.root

TWO = """
[global]
rw=randread
bs=64k
size=8m
direct=1
ioengine=libaio
iodepth=16
time_based
ramp_time=300ms
runtime=1500ms
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


def test_weights_act_under_bfq(raw: LoopDevice, hierarchy: Hierarchy) -> None:
    """100 to 800: bfq divides the device's time accordingly, once its favours for latency are off."""
    two = work(TWO)
    with opened(raw.device) as session:
        session.check(parse_scheduler_choices("bfq:low_latency=0"), [two])
        sample = session.run(cell("bfq:low_latency=0", two))
        assert sample.status == "ok", sample.error
        light, heavy = (job.directions[0].bytes for job in sample.jobs)
        weight = "blkio.bfq.weight" if hierarchy.version == 1 else "io.bfq.weight"
        assert sample.settings[f"cgroup/light/{weight}"].endswith("100")
        assert sample.settings[f"cgroup/heavy/{weight}"].endswith("800")
        folder = hierarchy.root / "blklab-test"
        assert (folder / "light").is_dir()
    assert heavy / light > 2, f"{heavy / light:.2f}"
    assert not folder.exists()


def test_without_weights_the_same_jobs_share_evenly(raw: LoopDevice, hierarchy: Hierarchy) -> None:
    """The counterpart: so the ratio above comes from the weights."""
    even = work(TWO.replace("cgroup_weight=800", "cgroup_weight=100"))
    with opened(raw.device) as session:
        sample = session.run(cell("bfq:low_latency=0", even)) if not session.check([], [even]) else None
        assert sample is not None
        light, heavy = (job.directions[0].bytes for job in sample.jobs)
    assert 0.6 < heavy / light < 1.6, f"{heavy / light:.2f}"


def test_a_throttle_acts_on_the_leaf(raw: LoopDevice, v1: Path) -> None:
    limited = work(READ.replace("size=8m", "size=8m\ncgroup=slow").replace("200ms", "1s"))
    groups = {"slow": {"blkio.throttle.read_bps_device": str(1 << 20)}}
    with opened(raw.device, cgroups=groups) as session:
        session.check([], [limited])
        sample = session.run(cell("none", limited))
        assert sample.status == "ok", sample.error
        rate = sample.jobs[0].directions[0].bytes / sample.jobs[0].runtime_ns * 1e9
        number = Path(f"/sys/block/{raw.name}/dev").read_text().strip()
        assert sample.settings["cgroup/slow/blkio.throttle.read_bps_device"] == f"{number} {1 << 20}"
    assert 0.5 * (1 << 20) < rate < 2 * (1 << 20)


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
        session.check([], [work(READ)])
    assert hint in (caught.value.hint or "")
    assert not (v1 / "blklab-test").exists()
    raw.assert_unchanged()


def test_a_weight_out_of_range_is_refused_in_the_kernel_s_words(raw: LoopDevice, v1: Path) -> None:
    with (
        pytest.raises(
            TunableError, match=r"refused blkio\.bfq\.weight = 5000 \(numerical result out of range\)"
        ),
        opened(raw.device, cgroups={"batch": {"blkio.bfq.weight": "5000"}}) as session,
    ):
        session.check([], [work(READ)])
    assert not (v1 / "blklab-test").exists()


@pytest.mark.parametrize(
    "groups", [{"../up": {"blkio.bfq.weight": "5"}}, {"a": {"memory.max": "5"}}, {"a b": {}}, {".": {}}]
)
def test_names_that_lead_elsewhere_are_refused(raw: LoopDevice, groups: dict[str, dict[str, str]]) -> None:
    with pytest.raises(UsageError), opened(raw.device, cgroups=groups) as session:
        session.check([], [work(READ)])


def test_a_scheduler_that_ignores_weights_is_pointed_out(raw: LoopDevice, hierarchy: Hierarchy) -> None:
    with opened(raw.device) as session:
        warnings = session.check(parse_scheduler_choices("bfq,kyber,none"), [work(TWO)])
    assert warnings == ["weights of control groups make no difference under kyber, none"]


def test_a_root_group_s_throttle_comes_back(raw: LoopDevice, v1: Path) -> None:
    path = v1 / "blkio.throttle.read_bps_device"
    before = path.read_text()
    with opened(raw.device, cgroups={"/": {path.name: "5000000"}}) as session:
        session.check([], [work(READ)])
        assert path.read_text() != before
    assert path.read_text() == before


def test_a_dry_run_says_what_happens_to_groups(raw: LoopDevice, hierarchy: Hierarchy) -> None:
    with opened(raw.device, dry_run=True) as session:
        text = "\n".join(session.commands(cell("bfq", work(TWO))))
    folder = hierarchy.root / "blklab-test"
    assert f"mkdir {folder}\n" in text
    assert f"mkdir {folder}/heavy" in text
    assert f"echo 800 > {folder}/heavy/" in text
    assert f"exec_prerun=echo $PPID | tee {folder}/heavy/cgroup.procs" in text
    assert not folder.exists()
