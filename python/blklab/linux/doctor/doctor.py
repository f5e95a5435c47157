"""Checks everything that comparisons need on this machine, and says how to get the rest. Read-only."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from blklab.errors import BlklabError, reason_of
from blklab.linux.directories.mounts import read_mounts
from blklab.linux.disks.disk import Disk
from blklab.linux.disks.stack import all_disks, leaves_of
from blklab.linux.doctor.advice import arrays, elevator, encryption, group_weights, lockdown, offline
from blklab.linux.doctor.finding import Finding
from blklab.linux.processes.programs import find_program
from blklab.quantities.units import format_bytes

_USUAL_SCHEDULERS = ("mq-deadline", "kyber", "bfq")
"""Schedulers of current kernels."""
_ROOM_BYTES = 2 << 30
"""The size of the shipped workloads' test files, with a reserve."""
_DIRECT_BYTES = 4096


def examine() -> list[Finding]:
    """Runs all checks."""
    findings = [_system()]
    if sys.platform == "linux":
        findings += [_root(), _sysfs()]
        findings += _disks()
        findings += [*offline.check(), *elevator.check(), *lockdown.check(), *arrays.check()]
        findings += encryption.check()
        findings += group_weights.check(_active_schedulers())
        findings += [_fio(), *_tools(), _udev(), _cgroups(), *_recording(), _loop(), _room(), killed_runs()]
    findings += [_core(), _postgresql(), _chromium()]
    return findings


def _system() -> Finding:
    if sys.platform != "linux":
        return Finding(
            "system", "missing", f"{platform.system()}: only simulated devices", "use Linux for real disks"
        )
    return Finding("kernel", "ok", f"Linux {platform.release()}")


def _root() -> Finding:
    if os.geteuid() == 0:
        return Finding("root", "ok", "yes")
    return Finding("root", "missing", f"no: user {os.geteuid()}", "run with sudo")


def _sysfs() -> Finding:
    mount = next(
        (mount for mount in reversed(read_mounts(Path("/proc"))) if mount.mount_point == "/sys"), None
    )
    if mount is None:
        return Finding("/sys", "missing", "not mounted", "mount -t sysfs sysfs /sys")
    if "ro" in mount.options.split(","):
        return Finding("/sys", "missing", "read-only", "in a container: run privileged, or on the host")
    return Finding("/sys", "ok", "writable")


def _disks() -> list[Finding]:
    disks = all_disks()
    findings = [_schedulers_of(disk) for disk in disks]
    if not any(finding.state == "ok" for finding in findings):
        text = "none of them offers a choice of schedulers" if disks else "there are none"
        findings.append(
            Finding("disks", "missing", text, "a loop device works everywhere: blklab compare loop:1g")
        )
    return findings


def _schedulers_of(disk: Disk) -> Finding:
    from blklab.linux.queue.schedulers import offered_schedulers, why_unavailable  # noqa: PLC0415 - for Linux

    subject = f"disk {disk.name}"
    try:
        offers = [offered_schedulers(leaf) for leaf in leaves_of(disk)]
    except BlklabError as error:
        return Finding(subject, "lacking", error.message)
    offer = offers[0]
    missing = [name for name in _USUAL_SCHEDULERS if name not in offer.names]
    reasons = [why_unavailable(name, offer.modules) for name in missing]
    text = f"{', '.join(offer.marked)} (now {offer.active})"
    return Finding(subject, "ok" if len(offer.names) > 1 else "lacking", text, "; ".join(reasons) or None)


def _active_schedulers() -> list[tuple[Disk, str | None]]:
    from blklab.linux.queue.schedulers import available_schedulers  # noqa: PLC0415 - for Linux

    found = []
    for disk in all_disks():
        with suppress(BlklabError):
            found += [(leaf, available_schedulers(leaf)[0]) for leaf in leaves_of(disk)]
    return found


def _fio() -> Finding:
    try:
        from blklab.linux.load.fio import find_fio  # noqa: PLC0415 - needs the compiled core
    except ImportError as error:
        return Finding("fio", "missing", f"not checked: {error}")
    try:
        found = find_fio()
    except BlklabError as error:
        return Finding("fio", "missing", error.message, "apt install fio util-linux")
    return Finding("fio", "ok", f"{found.version} ({found.path})")


def _tools() -> list[Finding]:
    wanted = (
        ("wipefs", "writing to raw devices", "util-linux"),
        ("mkfs.ext4", "commands that are cold or on a device", "e2fsprogs"),
    )
    findings = []
    for program, purpose, package in wanted:
        path = find_program(program)
        findings.append(
            Finding(program, "ok", path)
            if path
            else Finding(program, "lacking", f"missing: needed for {purpose}", f"apt install {package}")
        )
    return findings


def _udev() -> Finding:
    purpose = "blklab apply needs it to set a scheduler at every boot"
    if shutil.which("udevadm") is None:
        return Finding("udev", "lacking", f"missing: {purpose}", "apt install udev")
    if not Path("/run/udev/control").exists():
        return Finding(
            "udev", "lacking", f"no udev daemon is running: {purpose}", "systemctl start systemd-udevd"
        )
    return Finding("udev", "ok", "running")


def _cgroups() -> Finding:
    try:
        from blklab.linux.cgroups.hierarchy import find_hierarchy  # noqa: PLC0415 - needs the compiled core
    except ImportError as error:
        return Finding("control groups", "lacking", f"not checked: {error}")
    try:
        hierarchy = find_hierarchy()
    except BlklabError as error:
        return Finding("control groups", "lacking", error.message, error.hint)
    prefix = "blkio." if hierarchy.version == 1 else "io."
    settings = sorted(
        name
        for name in _writable_files(hierarchy.root)
        if name.startswith(prefix) and name != "blkio.reset_stats"
    )
    return Finding(
        "control groups",
        "ok",
        f"version {hierarchy.version} at {hierarchy.root}: {', '.join(settings) or 'no settings'}",
    )


def _writable_files(root: Path) -> set[str]:
    """Names of the files in a control group and its children that can be written."""
    found = set()
    for folder in [root, *(entry for entry in root.iterdir() if entry.is_dir())]:
        try:
            found |= {path.name for path in folder.iterdir() if path.stat().st_mode & 0o200}
        except OSError:  # noqa: PERF203 - other programs remove their groups at any moment
            continue
    return found


def _recording() -> list[Finding]:
    if os.geteuid() != 0:
        return [Finding("recording", "lacking", "not checked: recording I/O needs root", "run with sudo")]
    try:
        from blklab.linux.recording.support import left_over, ways_of_recording  # noqa: PLC0415 - compiled
    except ImportError as error:
        return [Finding("recording", "lacking", f"not checked: {error}")]
    ways = ways_of_recording()
    usable = [way.name for way in ways if way.reason is None]
    instead = f"blklab record uses {usable[0]} instead" if usable else "blklab record cannot work here"
    findings = [
        Finding(f"recording: {way.name}", "ok", "can be used")
        if way.reason is None
        else Finding(f"recording: {way.name}", "lacking", way.reason, instead)
        for way in ways
    ]
    left = ", ".join(instance.name for instance in left_over(remove=False))
    if left:
        text = f"left {left} in tracefs"
        findings.append(Finding("killed recordings", "lacking", text, "blklab restore"))
    return findings


def _loop() -> Finding:
    subject, place = "loop devices", Path("/var/tmp")  # noqa: S108 - examined, not trusted
    if not Path("/dev/loop-control").exists():
        return Finding(subject, "lacking", "there is no loop driver", "modprobe loop")
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".blklab-") as file:
            file.write(bytes(_DIRECT_BYTES))
            file.flush()
            os.close(os.open(file.name, os.O_RDONLY | os.O_DIRECT))
    except OSError as error:
        return Finding(
            subject,
            "lacking",
            f"no direct I/O on files in {place}: {reason_of(error)}",
            "name another directory: loop:1g,dir=PATH",
        )
    return Finding(subject, "ok", f"with direct I/O over files in {place}")


def _room() -> Finding:
    places = {str(Path.cwd()), "/var/tmp"}  # noqa: S108 - examined, not trusted
    free = {place: shutil.disk_usage(place).free for place in sorted(places) if Path(place).is_dir()}
    text = ", ".join(f"{format_bytes(bytes_free)} in {place}" for place, bytes_free in free.items())
    if max(free.values(), default=0) >= _ROOM_BYTES:
        return Finding("free space", "ok", text)
    return Finding(
        "free space", "lacking", text, f"the shipped workloads need up to {format_bytes(_ROOM_BYTES)}"
    )


def killed_runs() -> Finding:
    """Whether killed runs left anything changed, as `blklab restore --dry-run` sees it."""
    from blklab.linux.journal.recovery import any_journals, preview  # noqa: PLC0415 - for Linux
    from blklab.linux.journal.state import state_directory  # noqa: PLC0415

    if os.geteuid() != 0 and any_journals(state_directory()):
        return Finding(
            "killed runs",
            "lacking",
            "there are journals that only root can read",
            "sudo blklab restore",
        )
    reports = preview(state_directory())
    changed = [report.run_id for report in reports if report.done]
    unclear = [report.run_id for report in reports if report.error is not None]
    if changed:
        return Finding(
            "killed runs", "lacking", f"{', '.join(changed)} left settings changed", "blklab restore"
        )
    if unclear:
        text = f"the journals of {', '.join(unclear)} cannot be read"
        return Finding("killed runs", "lacking", text, "blklab restore")
    if reports:
        names = ", ".join(report.run_id for report in reports)
        return Finding("killed runs", "ok", f"{names} was killed; every setting has its former value")
    return Finding("killed runs", "ok", "none left settings changed")


def _core() -> Finding:
    if importlib.util.find_spec("blklab._core") is None:
        return Finding("compiled core", "missing", "missing", "make build, or pip install the built package")
    return Finding("compiled core", "ok", "job parser and simulator")


def _postgresql() -> Finding:
    subject = "PostgreSQL driver"
    if importlib.util.find_spec("psycopg") is None:
        return Finding(
            subject, "lacking", "missing: only SQLite stores work", "pip install 'blklab[postgresql]'"
        )
    return Finding(subject, "ok", "psycopg")


def _chromium() -> Finding:
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        return Finding(
            "chromium",
            "lacking",
            "missing: only the test of the HTML report needs it",
            "apt install chromium",
        )
    return Finding("chromium", "ok", path)
