"""Rules, profiles and programs that would overwrite a scheduler, in made-up trees."""

from __future__ import annotations

from pathlib import Path

import pytest
from sysfs_tree import SysfsTree

from blklab.linux.apply.overriders import overriders
from blklab.linux.apply.udev import RULES_DIRECTORY, Rule
from blklab.linux.disks.disk import Disk
from blklab.linux.disks.stack import all_disks
from blklab.spec.schedulers import parse_scheduler_choice


class Machine:
    """A made-up root with one disk, sda of the model EXAMPLE SSD."""

    def __init__(self, root: Path) -> None:
        self.root = root
        tree = SysfsTree(root)
        folder = tree.disk("sda", "8:0", files={"removable": "0\n"})
        (folder.parent / "model").write_text("EXAMPLE SSD    \n")
        (self.disk,) = all_disks(tree.roots)

    def file(self, path: str, text: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def tuned(self, profile: str = "", *, running: bool = True) -> None:
        """Installs tuned with one active profile."""
        self.file("etc/tuned/active_profile", "mine\n")
        if running:
            self.file("run/tuned/tuned.pid", "4711")
            (self.root / "proc/4711").mkdir(parents=True)
        if profile:
            self.file("usr/lib/tuned/profiles/mine/tuned.conf", profile)

    def found(
        self,
        choice: str = "bfq",
        *,
        rule: str | None = "90-blklab-x.rules",
        action: str = "add",
        disk: Disk | None = None,
    ) -> list[str]:
        written = None if rule is None else Rule(RULES_DIRECTORY / rule, f'ACTION=="{action}", …\n')
        settings = parse_scheduler_choice(choice)
        return [str(one) for one in overriders(disk or self.disk, settings, written, self.root)]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_plain_machine_has_none(machine: Machine) -> None:
    machine.file("usr/lib/udev/rules.d/60-block.rules", 'SUBSYSTEM=="block", OPTIONS+="watch"\n')
    machine.file("etc/tmpfiles.d/x.conf", "d /run/x 0755 root root -\n")
    assert machine.found() == []


_SETS = (
    'ACTION=="{action}", KERNEL=="sd[a-z]*", ATTR{{queue/rotational}}=="0", ATTR{{queue/scheduler}}="{to}"\n'
)


def test_a_later_rule_wins(machine: Machine) -> None:
    machine.file(
        "usr/lib/udev/rules.d/99-late.rules", "# a comment\n" + _SETS.format(action="add", to="kyber")
    )
    (found,) = machine.found()
    assert found == (
        "/usr/lib/udev/rules.d/99-late.rules:2 sets scheduler to kyber for sda, after blklab's rule; "
        "copy the file to /etc/udev/rules.d under the same name and take that line out there"
    )
    assert machine.found("kyber") == [], "it sets the same"


def test_an_earlier_rule_loses_unless_it_also_sets_at_changes(machine: Machine) -> None:
    place = "etc/udev/rules.d/60-ioschedulers.rules"
    machine.file(place, _SETS.format(action="add", to="kyber"))
    assert machine.found() == []
    machine.file(place, _SETS.format(action="add|change", to="kyber"))
    (found,) = machine.found()
    assert "at change events, which blklab's rule ignores; take that line out" in found
    assert machine.found(action="add|change") == [], "blklab's own rule runs at the same events, and later"
    machine.file(place, _SETS.format(action="remove", to="kyber"))
    assert machine.found() == []


def test_without_a_rule_any_event_overwrites(machine: Machine) -> None:
    machine.file("etc/udev/rules.d/60-x.rules", _SETS.format(action="add", to="kyber"))
    (found,) = machine.found(rule=None)
    assert "at every add event" in found


@pytest.mark.parametrize(
    "condition",
    [
        'KERNEL=="nvme*"',
        'KERNEL!="sd*"',
        'ATTR{queue/rotational}=="1"',
        'ATTRS{model}=="OTHER*"',
        'ENV{DEVTYPE}=="partition"',
        'SUBSYSTEM=="net"',
        'TEST=="queue/zoned_something"',
        'TEST!="queue/rotational"',
        'ATTR{no_such}=="1"',
        'DRIVERS=="nvme"',
    ],
)
def test_rules_for_other_disks_do_not_matter(machine: Machine, condition: str) -> None:
    machine.file("etc/udev/rules.d/99-x.rules", f'{condition}, ATTR{{queue/scheduler}}="none"\n')
    assert machine.found() == []


@pytest.mark.parametrize(
    ("condition", "sure"),
    [
        ('KERNEL=="vd*|sd?"', True),
        ('ATTRS{model}=="EXAMPLE SSD"', True),
        ('ATTRS{model}=="EXAMPLE*", ATTR{size}=="?*"', True),
        ('KERNELS=="0000:00:*"', True),
        ('SUBSYSTEM=="block", ENV{DEVTYPE}!="partition", TEST=="queue/scheduler"', True),
        ('PROGRAM=="/bin/check %k"', False),
        ('ENV{ID_BUS}=="ata"', False),
    ],
)
def test_conditions_that_cannot_be_checked_count_as_possible(
    machine: Machine, condition: str, sure: bool
) -> None:
    machine.file("etc/udev/rules.d/99-x.rules", f'{condition}, \\\n  ATTR{{queue/scheduler}}="none"\n')
    (found,) = machine.found()
    assert ("if its other conditions hold" in found) is not sure
    assert "99-x.rules:1 " in found


def test_a_masked_or_replaced_file_does_not_matter(machine: Machine) -> None:
    machine.file("usr/lib/udev/rules.d/99-late.rules", _SETS.format(action="add", to="kyber"))
    (machine.root / "etc/udev/rules.d").mkdir(parents=True)
    (machine.root / "etc/udev/rules.d/99-late.rules").symlink_to("/dev/null")
    assert machine.found() == []


def test_a_program_of_a_rule_runs_after_all_rules(machine: Machine) -> None:
    text = 'ACTION=="add", KERNEL=="sda", RUN+="/bin/sh -c \'echo none > /sys/block/%k/queue/scheduler\'"\n'
    machine.file("usr/lib/udev/rules.d/10-early.rules", text)
    (found,) = machine.found()
    assert "runs a program that sets the scheduler" in found
    assert "after all rules" in found


def test_tunables_count_and_blklabs_own_rule_does_not(machine: Machine) -> None:
    machine.file("etc/udev/rules.d/90-blklab-x.rules", _SETS.format(action="add", to="kyber"))
    machine.file("etc/udev/rules.d/95-x.rules", 'KERNEL=="sda", ATTR{queue/iosched/slice_idle}="8"\n')
    assert machine.found("bfq") == []
    (found,) = machine.found("bfq:slice_idle=0")
    assert "sets iosched/slice_idle to 8" in found
    machine.file("etc/udev/rules.d/96-x.rules", 'KERNEL=="sda", ATTR{queue/nr_requests}="8"\n')
    assert "sets nr_requests to 8" in machine.found("bfq:nr_requests=64")[0]
    (other,) = machine.found(rule="89-blklab-class-y.rules")
    assert "written by blklab: undo it" in other


@pytest.mark.parametrize(
    ("profile", "overwrites"),
    [
        ("[disk]\nelevator=kyber\n", True),
        ("[fast]\ntype=disk\ndevices=sd*\nelevator=kyber\n", True),
        ("[variables]\nio=kyber\n[disk]\nelevator=${io}\n", True),
        ("[sysfs]\n/sys/block/sd*/queue/scheduler=kyber\n", True),
        ("[disk]\nelevator=bfq\n", False),
        ("[disk]\nreadahead=4096\n", False),
        ("[disk]\ndevices=!sda\nelevator=kyber\n", False),
        ("[disk]\ndevices=nvme*\nelevator=kyber\n", False),
        ("[disk]\nenabled=0\nelevator=kyber\n", False),
        ("[main]\n# elevator=kyber\n", False),
    ],
)
def test_tuneds_active_profile(machine: Machine, profile: str, overwrites: bool) -> None:
    machine.tuned(profile)
    found = machine.found()
    assert bool(found) is overwrites
    if found:
        assert found[0].startswith(
            "/usr/lib/tuned/profiles/mine/tuned.conf (the active profile of tuned) sets the scheduler of sda "
            "to kyber"
        )
        assert "include=mine" in found[0]


def test_an_included_profile_counts_and_a_later_one_wins(machine: Machine) -> None:
    """As in CachyOS-Settings #228, where a profile that others include forces kyber."""
    machine.tuned("[main]\ninclude=common\n")
    machine.file("usr/lib/tuned/profiles/common/tuned.conf", "[disk]\nelevator=kyber\n")
    (found,) = machine.found()
    assert "to kyber" in found
    machine.file("usr/lib/tuned/profiles/mine/tuned.conf", "[main]\ninclude=common\n[disk]\nelevator=bfq\n")
    assert machine.found() == []
    machine.file("etc/tuned/mine/tuned.conf", "[main]\ninclude=mine\n[disk]\nelevator=none\n")
    assert "to none" in machine.found()[0], (
        "a profile may include itself, and the administrator's comes first"
    )


def test_tuned_matters_if_it_runs_or_will(machine: Machine) -> None:
    machine.tuned("[disk]\nelevator=kyber\n", running=False)
    assert machine.found() == []
    wants = machine.root / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True)
    (wants / "tuned.service").symlink_to("/usr/lib/systemd/system/tuned.service")
    assert len(machine.found()) == 1


def test_a_dead_tuned_does_not_matter(machine: Machine) -> None:
    machine.tuned("[disk]\nelevator=kyber\n", running=False)
    machine.file("run/tuned/tuned.pid", "4711")
    assert machine.found() == []


def test_a_desktops_power_modes_select_profiles(machine: Machine) -> None:
    machine.tuned("[main]\nsummary=x\n")
    machine.file("etc/tuned/ppd.conf", "[main]\ndefault=balanced\n[profiles]\nperformance=loud\n")
    machine.file("usr/lib/tuned/loud/tuned.conf", "[disk]\nelevator=none\n")
    assert machine.found() == []
    wants = machine.root / "etc/systemd/system/graphical.target.wants"
    wants.mkdir(parents=True)
    (wants / "tuned-ppd.service").symlink_to("/usr/lib/systemd/system/tuned-ppd.service")
    (found,) = machine.found()
    assert "in the desktop's power mode performance" in found


def test_tuned_leaves_removable_disks_alone(machine: Machine) -> None:
    machine.tuned("[disk]\nelevator=kyber\n")
    (machine.disk.sys_path / "removable").write_text("1\n")
    assert machine.found() == []


def test_systemd_tmpfiles(machine: Machine) -> None:
    lines = (
        "# w /sys/block/sda/queue/scheduler - - - - none\nw- /sys/block/sd?/queue/scheduler - - - - kyber\n"
    )
    machine.file("etc/tmpfiles.d/io.conf", lines)
    (found,) = machine.found()
    assert found.startswith("/etc/tmpfiles.d/io.conf:2 makes systemd-tmpfiles set scheduler of sda to kyber")
    assert machine.found(rule=None) == [], "it writes at boot, when the setting is lost anyway"
    machine.file("etc/tmpfiles.d/io.conf", "w /sys/block/nvme*/queue/scheduler - - - - kyber\nw 'x\n")
    assert machine.found() == []


def test_tlp(machine: Machine) -> None:
    machine.file("etc/tlp.conf", 'DISK_DEVICES="nvme0n1 ata-EXAMPLE"\n#DISK_IOSCHED="x"\n')
    machine.file("etc/tlp.d/10-mine.conf", 'DISK_IOSCHED="keep mq-deadline"\n')
    assert machine.found() == [], "TLP is not installed"
    machine.file("usr/sbin/tlp", "")
    assert machine.found() == [], "the id belongs to no disk"
    (machine.root / "dev/disk/by-id").mkdir(parents=True)
    (machine.root / "dev/disk/by-id/ata-EXAMPLE").symlink_to("../../sda")
    (found,) = machine.found()
    assert found.startswith("/etc/tlp.d/10-mine.conf:1 makes TLP set the scheduler of sda to mq-deadline")
    assert machine.found("mq-deadline") == []
    machine.file("etc/tlp.conf", 'TLP_ENABLE=0\nDISK_DEVICES="sda"\n')
    assert machine.found() == []


def test_files_that_cannot_be_read_are_no_obstacle(machine: Machine) -> None:
    for path in ("etc/udev/rules.d/99-x.rules", "etc/tmpfiles.d/x.conf", "etc/tlp.d/x.conf"):
        (machine.root / path).mkdir(parents=True)
    machine.file("etc/udev/rules.d/98-x.rules", 'ATTR{queue/scheduler}="none\nRUN+=\\')
    machine.file("usr/sbin/tlp", "")
    machine.tuned("elevator=kyber\n[disk\n")
    assert machine.found() == []


def test_systemds_own_parameters_of_io_cost_come_later(machine: Machine) -> None:
    machine.file(
        "usr/lib/udev/rules.d/90-iocost.rules",
        'SUBSYSTEM=="block", ENV{IOCOST_SOLUTIONS}!="", RUN{program}+="iocost apply $env{DEVNAME}"\n',
    )
    assert machine.found("bfq") == []
    (found,) = machine.found("bfq:/io.cost.qos.enable=1")
    assert "runs a program that sets io.cost (iocost apply" in found
    assert machine.found("bfq:batch/io.weight=50") == []
