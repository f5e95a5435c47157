"""Control groups, on a tree of files that imitates cgroup v2.

The I/O controller can be under v1 or v2, not both; a machine that has it under v1 (with something of init's
still open there) cannot show v2. The tree has the files that Linux 6.18 has, and answers as it does; what a
real kernel says under v1 is in tests/host/test_control_groups.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from blklab.backends import host_groups
from blklab.backends.group_choices import skewing_shares
from blklab.backends.host_groups import HostGroups
from blklab.backends.protocol import SessionOptions
from blklab.errors import JobFileError, RequirementError, TunableError, UsageError
from blklab.linux.apply import cost_parameters as cost
from blklab.linux.apply.identity import Identity
from blklab.linux.apply.record import load_record, save_record
from blklab.linux.cgroups.choice_settings import ChoiceSettings
from blklab.linux.cgroups.hierarchy import Hierarchy, find_hierarchy, offered_attributes
from blklab.linux.cgroups.run_cgroups import RunCgroups
from blklab.linux.cgroups.settings import (
    device_numbers,
    group_names,
    honors_weights,
    shell_text,
    undo_writes,
    wanted_settings,
)
from blklab.linux.disks.disk import Disk
from blklab.linux.journal import undo as journal_undo
from blklab.linux.journal.journal import Journal
from blklab.linux.machine import host_change
from blklab.linux.queue.snapshot import QueueSnapshot
from blklab.spec.changes import parse_change
from blklab.spec.schedulers import parse_scheduler_choice, parse_scheduler_choices
from blklab.spec.workloads import Workload, parse_workload

CHILD_FILES = ("io.weight", "io.bfq.weight", "io.max", "cgroup.procs", "cgroup.subtree_control")
DISKS = [
    Disk(name, number, Path("/sys/x"), Path("/dev/null"), "", "", "", 1, None)
    for name, number in (("vda", "254:0"), ("vdb", "254:16"))
]


class TreeJournal:
    """Creates groups as the kernel does: with their files in them. Remembers its entries."""

    def __init__(self) -> None:
        self.created: list[str] = []
        self.protected: dict[str, list[str] | None] = {}
        self.files: tuple[str, ...] = CHILD_FILES

    def own_cgroup(self, path: Path) -> Path:
        path.mkdir()
        for name in self.files:
            (path / name).write_text("default 100\n" if name.endswith("weight") else "")
        self.created.append(path.name)
        return path

    def protect_attribute(self, path: Path, undo: list[str] | None = None) -> str:
        self.protected[path.name] = undo
        return path.read_text()


def kernel_like(kept: Callable[[str, str], str]) -> Callable[[Path, str], None]:
    """A write that leaves in the file the text that the kernel would show."""

    def write(path: Path, value: str) -> None:
        path.write_text(kept(path.name, value))

    return write


def as_linux_shows(name: str, value: str) -> str:
    if name.endswith("weight"):
        return f"default {value.removeprefix('default ')}\n"
    if name == "io.max":
        number, *limits = value.split()
        all_limits = {"rbps": "max", "wbps": "max", "riops": "max", "wiops": "max"}
        all_limits |= dict(limit.split("=", 1) for limit in limits)
        return f"8:0 rbps=1 wbps=max riops=max wiops=max\n{number} " + " ".join(
            f"{key}={limit}" for key, limit in all_limits.items()
        )
    if name == "io.cost.qos":
        number, *words = value.split()
        words = [f"{word}.00" if "pct" in word and "." not in word else word for word in words]
        control = [] if "ctrl=auto" in words else ["ctrl=user"]
        return " ".join([number, *control, *words, "wlat=5000 min=1.00 max=10000.00\n"])
    return value + "\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hierarchy:
    for name in ("io.cost.qos", "io.cost.model", "cgroup.subtree_control"):
        (tmp_path / name).write_text("")
    (tmp_path / "cgroup.controllers").write_text("cpu io memory\n")
    monkeypatch.setattr(host_change, "write_once", kernel_like(as_linux_shows))
    return Hierarchy(2, tmp_path)


def workload(text: str) -> Workload:
    return parse_workload(text, name="w", source="w.fio")


def create(
    tree: Hierarchy,
    groups: dict[str, dict[str, str]],
    works: list[Workload],
    journal: TreeJournal | None = None,
) -> tuple[RunCgroups, TreeJournal, dict[str, str]]:
    journal = journal or TreeJournal()
    settings = wanted_settings(2, groups, works, DISKS)
    made = RunCgroups(tree, "run")
    made.create(cast("Journal", journal), group_names(groups, works), settings)
    return made, journal, made.read_back(settings)


def test_groups_are_children_of_one_of_ours_with_control_handed_down(tree: Hierarchy) -> None:
    works = [workload("[a]\nsize=1m\ncgroup=batch\n[b]\nsize=1m\ncgroup=extra\n")]
    made, journal, _ = create(tree, {"batch": {"io.bfq.weight": "50"}}, works)
    assert journal.created == ["blklab-run", "batch", "extra"]
    assert journal.protected == {"cgroup.subtree_control": ["-io"]}
    assert (tree.root / "cgroup.subtree_control").read_text() == "+io\n"
    assert (tree.root / "blklab-run" / "cgroup.subtree_control").read_text() == "+io\n"
    assert made.processes_file("extra") == tree.root / "blklab-run" / "extra" / "cgroup.procs"


def test_control_that_is_handed_down_already_is_left_alone(tree: Hierarchy) -> None:
    (tree.root / "cgroup.subtree_control").write_text("cpu io\n")
    _, journal, _ = create(tree, {"batch": {}}, [])
    assert journal.protected == {}


def test_limits_are_written_for_each_leaf_and_read_back(
    tree: Hierarchy, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[tuple[str, str]] = []
    plain = kernel_like(as_linux_shows)

    def write(path: Path, value: str) -> None:
        written.append((path.name, value))
        plain(path, value)

    monkeypatch.setattr(host_change, "write_once", write)
    _, _, seen = create(tree, {"slow": {"io.max": "rbps=1048576 wiops=100"}}, [])
    assert ("io.max", "254:0 rbps=1048576 wiops=100") in written
    assert ("io.max", "254:16 rbps=1048576 wiops=100") in written
    assert "254:16 rbps=1048576 wbps=max riops=max wiops=100" in seen["cgroup/slow/io.max"]


def test_a_weight_of_a_job_goes_to_every_weight_that_the_kernel_has(tree: Hierarchy) -> None:
    works = [workload("[a]\nsize=1m\ncgroup=batch\ncgroup_weight=300\n")]
    _, _, seen = create(tree, {}, works)
    assert seen == {"cgroup/batch/io.bfq.weight": "default 300", "cgroup/batch/io.weight": "default 300"}


def test_a_weight_without_any_weight_in_the_kernel_is_an_error(tree: Hierarchy) -> None:
    journal = TreeJournal()
    journal.files = ("io.max", "cgroup.procs", "cgroup.subtree_control")
    with pytest.raises(TunableError, match="no I/O weight"):
        create(tree, {}, [workload("[a]\nsize=1m\ncgroup=b\ncgroup_weight=300\n")], journal)


def test_io_weight_is_not_io_bfq_weight(tree: Hierarchy) -> None:
    journal = TreeJournal()
    journal.files = ("io.bfq.weight", "cgroup.procs", "cgroup.subtree_control")
    with pytest.raises(TunableError, match=r"no io\.weight under cgroup v2") as caught:
        create(tree, {"batch": {"io.weight": "50"}}, [], journal)
    assert caught.value.hint is not None
    assert "io.bfq.weight" in caught.value.hint
    assert "CONFIG_BLK_CGROUP_IOCOST" in caught.value.hint


@pytest.mark.parametrize(
    ("attribute", "hint"),
    [("io.latency", "CONFIG_BLK_CGROUP_IOLATENCY"), ("blkio.throttle.read_bps_device", "io.max")],
)
def test_what_is_missing_says_where_it_comes_from(tree: Hierarchy, attribute: str, hint: str) -> None:
    with pytest.raises(TunableError, match=f"no {attribute}") as caught:
        create(tree, {"batch": {attribute: "target=5000"}}, [])
    assert hint in (caught.value.hint or "")


def test_a_value_that_the_kernel_changes_is_an_error(
    tree: Hierarchy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_change, "write_once", kernel_like(lambda name, value: "default 1000\n"))
    with pytest.raises(TunableError, match=r"asked for io\.weight = 2000, the kernel kept default 1000"):
        create(tree, {"batch": {"io.weight": "2000"}}, [])


def test_cost_parameters_belong_to_the_root_and_are_undone(tree: Hierarchy) -> None:
    with pytest.raises(UsageError, match="belongs to the root group"):
        wanted_settings(2, {"batch": {"io.cost.qos": "enable=1"}}, [], DISKS)
    _, journal, seen = create(tree, {"/": {"io.cost.qos": "enable=1 rpct=95 rlat=5000"}}, [])
    assert "rpct=95.00" in seen["cgroup/io.cost.qos"]
    assert journal.protected["io.cost.qos"] == ["254:0 enable=0 ctrl=auto", "254:16 enable=0 ctrl=auto"]


@pytest.mark.parametrize(
    ("now", "before", "restored"),
    [
        ("254:0 enable=0 ctrl=auto rpct=95.00 rlat=5000\n", "", True),
        ("254:0 enable=1 ctrl=auto rpct=95.00 rlat=5000\n", "", False),
        ("254:0 enable=0 ctrl=auto rpct=0.00\n8:0 enable=1 ctrl=user\n", "", False),
        ("254:0 enable=0 ctrl=auto rpct=0.00\n", "8:0 enable=1 ctrl=user\n", False),
    ],
)
def test_a_line_of_defaults_that_the_kernel_keeps_is_no_failure(
    now: str, before: str, restored: bool
) -> None:
    """io.cost keeps a line for a device that had none before; all else must be as before."""
    assert journal_undo._only_adds(now, before, ["254:0 enable=0 ctrl=auto"]) is restored


@pytest.mark.parametrize(
    ("undo", "lines"),
    [
        (["254:0 rbps=max"], "254:0 rbps=5\n"),
        (["254:0 x", "8:0 x"], "8:0 rbps=7\n254:0 rbps=5\n"),
        (["-io"], "8:0 rbps=7\n254:0 rbps=5\n8:16 rbps=9\n"),
        (None, "8:0 rbps=7\n254:0 rbps=5\n8:16 rbps=9\n"),
    ],
)
def test_only_lines_about_the_devices_of_a_run_are_its_own(undo: list[str] | None, lines: str) -> None:
    """Other programs may limit their devices in the same file meanwhile."""
    content = "8:0 rbps=7\n254:0 rbps=5\n8:16 rbps=9\n"
    assert journal_undo._lines_of_devices(undo, content) == lines


@pytest.mark.parametrize(
    ("name", "content", "value", "expected"),
    [
        ("io.max", "", "8:0 rbps=5", ["8:0 rbps=max wbps=max riops=max wiops=max"]),
        ("io.max", "8:0 rbps=7 wbps=max\n", "8:0 rbps=5", ["8:0 rbps=7 wbps=max"]),
        ("blkio.throttle.read_bps_device", "8:16 9\n", "8:0 5", ["8:0 0"]),
        ("blkio.throttle.read_bps_device", "8:0 9\n", "8:0 5", ["8:0 9"]),
        ("io.latency", "", "8:0 target=5", ["8:0 target=0"]),
        ("io.cost.qos", "8:0 enable=1 ctrl=auto rpct=95.00\n", "8:0 enable=0", ["8:0 enable=1 ctrl=auto"]),
        ("io.cost.qos", "8:0 enable=1 ctrl=user rpct=9.00\n", "8:0 x", ["8:0 enable=1 ctrl=user rpct=9.00"]),
        ("io.cost.model", "", "8:0 ctrl=user", ["8:0 ctrl=auto"]),
        ("io.weight", "default 100\n", "50", ["default 100"]),
    ],
)
def test_root_attributes_know_what_brings_them_back(
    tmp_path: Path, name: str, content: str, value: str, expected: list[str]
) -> None:
    path = tmp_path / name
    path.write_text(content)
    assert undo_writes(path, value) == expected


def test_jobs_that_cannot_join_are_errors_with_their_line() -> None:
    with pytest.raises(JobFileError, match=r"w\.fio:3: job a: cgroup_weight needs a cgroup"):
        group_names([], [workload("[a]\nsize=1m\ncgroup_weight=5\n")])
    different = [workload(f"[a]\nsize=1m\ncgroup=x\ncgroup_weight={weight}\n") for weight in (5, 6)]
    with pytest.raises(JobFileError, match="already has the weight 5"):
        wanted_settings(2, {}, different, DISKS)


def test_weights_matter_to_bfq_and_io_cost() -> None:
    assert honors_weights("bfq", {})
    assert not honors_weights("kyber", {})
    assert honors_weights("kyber", {"/": {"io.cost.qos": "enable=1"}})


def test_a_hidden_path_counts_as_its_device() -> None:
    hidden = Disk("nvme0c0n1", "", Path("/sys/x"), Path("/dev/null"), "", "", "", 1, None)
    assert device_numbers([hidden, *DISKS, *DISKS]) == ["1:3", "254:0", "254:16"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("30 1 0:26 / {root} rw - cgroup2 cgroup2 rw\n", 2),
        ("30 1 0:26 / {root} rw - cgroup2 cgroup2 rw\n31 1 0:27 / /b rw - cgroup cgroup rw,blkio\n", 1),
        ("31 1 0:27 / /b rw - cgroup cgroup rw,cpu\n", None),
    ],
)
def test_the_hierarchy_is_found(tmp_path: Path, lines: str, expected: int | None) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mountinfo").write_text(lines.format(root=tmp_path))
    (tmp_path / "cgroup.controllers").write_text("io\n")
    if expected is None:
        with pytest.raises(RequirementError, match="no control group hierarchy"):
            find_hierarchy(tmp_path)
    else:
        assert find_hierarchy(tmp_path).version == expected


def test_a_choice_s_settings_come_and_go(tree: Hierarchy) -> None:
    groups = RunCgroups(tree, "test")
    journal = TreeJournal()
    conditions = {"batch": {"io.weight": "200"}}
    groups.create(cast("Journal", journal), ["batch"], wanted_settings(2, conditions, (), DISKS[:1]))
    weight, limit = groups.folder("batch") / "io.weight", groups.folder("batch") / "io.max"
    qos = tree.root / "io.cost.qos"
    qos.write_text("")
    settings = ChoiceSettings(groups, conditions, DISKS[:1])
    light = parse_scheduler_choice("none:batch/io.weight=50:batch/io.max.rbps=5:/io.cost.qos.enable=1")
    settings.protect([light, light], cast("Journal", journal))
    assert journal.protected["io.cost.qos"] == ["254:0 enable=0 ctrl=auto"]
    settings.apply(light)
    assert "50" in weight.read_text()
    assert "rbps=5" in limit.read_text()
    assert "enable=1" in qos.read_text()
    assert [one.attribute for one in settings.in_force] == ["io.weight", "io.max", "io.cost.qos"]
    settings.apply(parse_scheduler_choice("bfq"))
    assert "200" in weight.read_text()
    assert "rbps=max" in limit.read_text()
    assert "enable=0" in qos.read_text()
    assert settings.in_force == []


def test_a_refused_choice_leaves_the_groups_as_they_were(tree: Hierarchy) -> None:
    groups = RunCgroups(tree, "test")
    conditions = {"batch": {"io.weight": "200"}}
    groups.create(cast("Journal", TreeJournal()), ["batch"], wanted_settings(2, conditions, (), DISKS[:1]))
    settings = ChoiceSettings(groups, conditions, DISKS[:1])
    with pytest.raises(TunableError, match=r"no io\.nonsense under cgroup v2"):
        settings.apply(parse_scheduler_choice("none:batch/io.weight=50:batch/io.nonsense=5"))
    assert "200" in (groups.folder("batch") / "io.weight").read_text()


WITH_VARIANTS = (*CHILD_FILES, "io.bfq-copy.weight", "io.mine.weight")
WEIGHTS_OF_BATCH = ("io.bfq.weight", "io.bfq-copy.weight", "io.mine.weight")


def weights_of(groups: Path) -> list[str]:
    """The weight that the group batch has for bfq, its copy and its variant mine."""
    return [(groups / "batch" / name).read_text().split()[-1] for name in WEIGHTS_OF_BATCH]


@pytest.fixture
def variants(tree: Hierarchy, monkeypatch: pytest.MonkeyPatch) -> TreeJournal:
    """The tree of a machine that has bfq's copy and a variant loaded beside it."""
    monkeypatch.setattr(host_groups, "find_hierarchy", lambda: tree)
    journal = TreeJournal()
    journal.files = WITH_VARIANTS
    return journal


@pytest.mark.parametrize(
    ("conditions", "job", "expected"),
    [
        ({"batch": {"io.bfq.weight": "50"}}, "", ["50", "50", "50"]),
        ({}, "cgroup_weight=300\n", ["300", "300", "300"]),
        ({"batch": {"io.mine.weight": "70", "io.bfq.weight": "50"}}, "", ["50", "50", "70"]),
    ],
)
def test_each_bfq_has_its_weight_in_its_own_file(
    tree: Hierarchy,
    variants: TreeJournal,
    conditions: dict[str, dict[str, str]],
    job: str,
    expected: list[str],
) -> None:
    groups = HostGroups(SessionOptions(run_id="run", cgroups=conditions), DISKS[:1])
    work = workload(f"[a]\nsize=1m\ncgroup=batch\n{job}")
    choices = parse_scheduler_choices("none,bfq,bfq@copy,bfq@mine,kyber@other")
    groups.create(cast("Journal", variants), [work], choices)
    assert weights_of(tree.root / "blklab-run") == expected
    seen = groups.read_back()
    assert seen["cgroup/batch/io.mine.weight"] == f"default {expected[2]}"
    assert not any("other" in name for name in seen)


def test_a_weight_of_one_arm_goes_to_its_own_file(tree: Hierarchy, variants: TreeJournal) -> None:
    options = SessionOptions(run_id="run", cgroups={"batch": {"io.bfq.weight": "50"}})
    groups = HostGroups(options, DISKS[:1])
    heavy = "bfq:batch/io.bfq.weight=900,bfq@mine:batch/io.bfq.weight=900"
    choices = parse_scheduler_choices(heavy)
    groups.create(cast("Journal", variants), [workload("[a]\nsize=1m\ncgroup=batch\n")], choices)
    for choice, expected in zip(choices, (["900", "100", "50"], ["50", "100", "900"]), strict=True):
        groups.apply(choice)
        assert weights_of(tree.root / "blklab-run") == expected
    groups.undo_choice()
    assert weights_of(tree.root / "blklab-run") == ["50", "100", "50"]


def test_a_change_of_a_weight_reaches_every_bfq(variants: TreeJournal) -> None:
    change = parse_change("1s batch: io.bfq.weight=10")
    groups = HostGroups(SessionOptions(run_id="run", changes=[change]), DISKS[:1])
    work = workload("[a]\nsize=1m\ncgroup=batch\n")
    groups.create(cast("Journal", variants), [work], parse_scheduler_choices("bfq,bfq@mine"))
    writes = groups.for_changes()[1][change]
    assert [one.attribute for one in writes] == ["io.bfq.weight", "io.mine.weight"]


def test_a_preview_writes_the_file_of_the_arm(tree: Hierarchy, variants: TreeJournal) -> None:
    options = SessionOptions(run_id="run", cgroups={"batch": {"io.bfq.weight": "50"}})
    work = workload("[a]\nsize=1m\ncgroup=batch\n")
    files = dict.fromkeys(("bfq", "none", "kyber@mine"), "io.bfq.weight") | {"bfq@mine": "io.mine.weight"}
    for text, file in files.items():
        lines = HostGroups(options, DISKS[:1]).commands(parse_scheduler_choice(text), [work])
        assert [line for line in lines if ".weight" in line] == [
            f"echo 50 > {tree.root}/blklab-run/batch/{file}"
        ]


def test_a_weight_of_a_module_that_is_not_among_the_schedulers(variants: TreeJournal) -> None:
    options = SessionOptions(run_id="run", cgroups={"batch": {"io.absent.weight": "50"}})
    work = workload("[a]\nsize=1m\ncgroup=batch\n")
    with pytest.raises(TunableError, match=r"no io\.absent\.weight under cgroup v2") as caught:
        HostGroups(options, DISKS[:1]).create(cast("Journal", variants), [work])
    assert "comes with the module absent" in (caught.value.hint or "")


def test_groups_show_what_the_kernel_offers(tmp_path: Path) -> None:
    (tmp_path / "io.cost.qos").write_text("")
    assert offered_attributes(Hierarchy(2, tmp_path)) == {
        "io.cost.qos",
        "io.max",
        "io.weight",
        "io.bfq.weight",
    }
    child = tmp_path / "system.slice"
    child.mkdir()
    for name in ("io.max", "io.weight", "memory.max"):
        (child / name).write_text("")
    assert offered_attributes(Hierarchy(2, tmp_path)) == {"io.cost.qos", "io.max", "io.weight"}
    bare = tmp_path / "bare"
    bare.mkdir()
    assert offered_attributes(Hierarchy(2, bare)) == {"io.max", "io.bfq.weight"}
    assert offered_attributes(Hierarchy(1, bare)) == set()
    (bare / "blkio.bfq.io_serviced").write_text("")
    assert offered_attributes(Hierarchy(1, bare)) == {"blkio.bfq.io_serviced", "blkio.bfq.weight"}


COST = parse_scheduler_choice("none:batch/io.weight=50:/io.cost.qos.enable=1:/io.cost.qos.rlat=7")


def test_io_cost_of_a_disk_is_set_recorded_and_taken_back(
    tree: Hierarchy, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost, "find_hierarchy", lambda: tree)
    qos = tree.root / "io.cost.qos"
    assert cost.cost_parameters(DISKS[0], parse_scheduler_choice("bfq:batch/io.weight=5")) is None
    parameters = cost.cost_parameters(DISKS[0], COST)
    assert parameters is not None
    assert parameters.commands == [f"echo '254:0 enable=1 rlat=7' > {qos}"]
    journal = TreeJournal()
    undo = parameters.write(cast("Journal", journal))
    assert "enable=1 rlat=7" in qos.read_text()
    assert journal.protected["io.cost.qos"] == ["254:0 enable=0 ctrl=auto"]
    identity = Identity((("KERNEL", "vda"),), "the name vda")

    def recorded(writes: list[tuple[Path, str]]) -> None:
        save_record(
            identity,
            DISKS[0],
            COST.canonical,
            QueueSnapshot("bfq", {}),
            brought=(),
            rule_path=None,
            rule_text=None,
            former_groups=writes,
        )

    recorded(undo)
    # Applied again: the first change is undone before the second, so that what was before both is recorded.
    applied = load_record(identity)
    assert applied is not None
    journal = TreeJournal()
    cost.put_back(applied.former_groups, cast("Journal", journal))
    assert "enable=0" in qos.read_text()
    assert journal.protected["io.cost.qos"] == [
        "254:0 ctrl=user enable=1 rlat=7 wlat=5000 min=1.00 max=10000.00"
    ]
    recorded(parameters.write(cast("Journal", TreeJournal())))
    applied = load_record(identity)
    assert applied is not None
    assert applied.former_groups == tuple(undo) == ((qos, "254:0 enable=0 ctrl=auto"),)
    assert cost.put_back(applied.former_groups, cast("Journal", TreeJournal())) == [
        f"{qos}: 254:0 enable=0 ctrl=auto"
    ]
    assert "enable=0" in qos.read_text()


def test_io_cost_needs_a_kernel_and_a_version_that_have_it(
    tree: Hierarchy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost, "find_hierarchy", lambda: Hierarchy(1, tree.root))
    with pytest.raises(TunableError, match=r"no io\.cost\.qos under cgroup v1"):
        cost.cost_parameters(DISKS[0], COST)
    (tree.root / "io.cost.qos").unlink()
    monkeypatch.setattr(cost, "find_hierarchy", lambda: tree)
    with pytest.raises(TunableError, match=r"no io\.cost\.qos under cgroup v2") as error:
        cost.cost_parameters(DISKS[0], COST)
    assert "CONFIG_BLK_CGROUP_IOCOST" in str(error.value.hint)


def test_choices_under_which_shares_by_weight_are_skewed() -> None:
    choices = parse_scheduler_choices(
        "bfq:low_latency=0,bfq:low_latency=0:strict_guarantees=1,none,none:/io.cost.qos.enable=1,"
        "none:/io.cost.qos.enable=1:/io.cost.model.rrandiops=300"
    )
    by_bfq, by_cost = skewing_shares(choices, {})
    assert "skewed under bfq:low_latency=0:" in by_bfq
    assert "no effect under none:/io.cost.qos.enable=1:" in by_cost
    assert skewing_shares(choices[1:3], {}) == []
    assert skewing_shares(choices[2:3], {"/": {"io.cost.qos": "enable=1"}})
    measured = {"/": {"io.cost.qos": "enable=1", "io.cost.model": "ctrl=user model=linear rbps=1"}}
    assert skewing_shares(choices[2:3], measured) == []


def test_a_preview_does_not_look_at_a_device_that_it_does_not_make() -> None:
    coming = Disk("loop93", "", Path("/sys/x"), Path("/dev/no-such-loop"), "", "", "", 1, None)
    (number,) = device_numbers([coming])
    assert shell_text(f"{number} rbps=1m") == '"$(cat /sys/class/block/loop93/dev) rbps=1m"'
    assert shell_text("8:0 rbps=1m") == "'8:0 rbps=1m'"
