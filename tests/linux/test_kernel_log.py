"""The kernel's log: its records, whose lines count, which names a disk has there, and runs that it marks."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from blklab.linux.machine.disk_trouble import TROUBLES, names_of, troubles_in
from blklab.linux.machine.kernel_log import KMSG, KernelLog, LogLine, parse_record, why_unreadable
from blklab.linux.machine.monitor import MachineMonitor
from blklab.linux.machine.stacked_devices import devices_above
from blklab.records.machine_events import MOST_KERNEL_MESSAGES, MachineEvents


class FakeLog:
    """A kernel's log as a FIFO, which like the real one gives EAGAIN at its end."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "kmsg"
        os.mkfifo(self.path)
        self._reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        self._writer = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK)

    def opened(self) -> PipedLog:
        return PipedLog(self._reader)

    def write(self, text: str, *, facility: int = 0, device: str = "") -> None:
        properties = f" SUBSYSTEM=block\n DEVICE={device}\n" if device else ""
        record = f"{facility << 3 | 3},1234,5678901,-;{text}\n{properties}".encode()
        # A read of the real log returns one record.
        os.write(self._writer, record.ljust(PipedLog.RECORD_BYTES, b"\0"))


class PipedLog(KernelLog):
    """Records of one size, from a pipe."""

    RECORD_BYTES = 512

    def __init__(self, descriptor: int) -> None:
        self._descriptor = os.dup(descriptor)
        self._facilities = frozenset({0})

    def new_lines(self) -> list[LogLine]:
        lines: list[LogLine] = []
        while True:
            try:
                record = os.read(self._descriptor, self.RECORD_BYTES)
            except BlockingIOError:
                return lines
            parsed = parse_record(record.rstrip(b"\0").decode())
            if parsed is not None and parsed[0] in self._facilities:
                lines.append(parsed[1])


def _make(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(f"{text}\n")
    return folder


@pytest.fixture
def disks(tmp_path: Path) -> dict[str, Path]:
    """SATA, NVMe and virtio-scsi as in sysfs; md0 and dm-0 on a partition of the SATA disk."""
    devices = tmp_path / "devices/pci0000:00"
    sata = devices / "0000:00:1f.2/ata3/host2/target2:0:0/2:0:0:0"
    sda = _make(sata / "block/sda", dev="8:0")
    sda1 = _make(sda / "sda1", dev="8:1", partition="1")
    nvme = _make(devices / "0000:00:04.0/nvme/nvme0/nvme0n1", dev="259:0")
    sdb = _make(devices / "0000:00:05.0/virtio2/host12/target12:0:0/12:0:0:0/block/sdb", dev="8:16")
    for disk in (sda, sdb):
        (disk / "device").symlink_to(disk.parent.parent)
    (nvme / "device").symlink_to(nvme.parent)
    md0 = _make(tmp_path / "devices/virtual/block/md0", dev="9:0")
    dm0 = _make(tmp_path / "devices/virtual/block/dm-0", dev="253:0")
    for below, above in ((sda1, md0), (md0, dm0)):
        (below / "holders").mkdir()
        (below / "holders" / above.name).symlink_to(above)
    return {"sda": sda, "nvme0n1": nvme, "sdb": sdb}


@pytest.mark.parametrize(
    ("record", "facility", "line"),
    [
        ("6,1,2,-;plain text\n", 0, LogLine("plain text")),
        ("30,1,2,-,caller=T1;from a program\n", 3, LogLine("from a program")),
        (
            "3,1,2,-;sd 2:0:0:0: [sda] x\n SUBSYSTEM=scsi\n DEVICE=+scsi:2:0:0:0\n",
            0,
            LogLine("sd 2:0:0:0: [sda] x", "+scsi:2:0:0:0"),
        ),
        (r"6,1,2,-;a\x0ab\x1b[31m" + "\n", 0, LogLine("a b [31m")),
    ],
)
def test_records(record: str, facility: int, line: LogLine) -> None:
    assert parse_record(record) == (facility, line)


@pytest.mark.parametrize("record", ["", "no semicolon", "x,1;text", ";text"])
def test_records_that_are_none(record: str) -> None:
    assert parse_record(record) is None


REAL = (
    ("nvme0n1", "timeout", "nvme nvme0: I/O tag 458 (11ca) opcode 0x2 (I/O Cmd) QID 1 timeout, aborting"),
    ("nvme0n1", "timeout", "nvme nvme0: I/O 12 QID 3 timeout, reset controller"),
    ("nvme0n1", "abort", "nvme nvme0: Abort status: 0x0"),
    ("nvme0n1", "reset", "nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff"),
    ("nvme0n1", "reset", "nvme 0000:00:04.0: resetting controller"),
    ("nvme0n1", "I/O error", "nvme0n1: I/O Cmd(0x2) @ LBA 0, 8 blocks, I/O Error (sct 0x0 / sc 0x6) "),
    ("nvme0n1", "I/O error", "I/O error, dev nvme0n1, sector 0 op 0x0:(READ)"),
    ("nvme0n1", "I/O error", "nvme0n1: Read(0x2) @ LBA 0, 8 blocks, Invalid Field (sct 0x0 / sc 0x2)"),
    ("sda", "I/O error", "blk_update_request: I/O error, dev sda, sector 2048 op 0x1:(WRITE) flags 0x800"),
    ("sda", "medium error", "critical medium error, dev sda, sector 1000 op 0x0:(READ) flags 0x0"),
    ("sda", "I/O error", "Buffer I/O error on dev sda1, logical block 0, async page read"),
    ("sda", "exception", "ata3.00: exception Emask 0x0 SAct 0x40 SErr 0x0 action 0x6 frozen"),
    ("sda", "I/O error", "ata3.00: failed command: READ FPDMA QUEUED"),
    ("sda", "medium error", "ata3.00: error: { UNC }"),
    ("sda", "reset", "ata3: hard resetting link"),
    ("sda", "device lost", "sd 2:0:0:0: rejecting I/O to offline device"),
    ("sda", "I/O error", "sd 2:0:0:0: [sda] tag#3 FAILED Result: hostbyte=DID_BAD_TARGET"),
    ("sda", "medium error", "sd 2:0:0:0: [sda] tag#3 Sense Key : Medium Error [current] "),
    ("sda", "array", "md/raid1:md0: Disk failure on sda1, disabling device."),
    ("sda", "file system", "EXT4-fs error (device dm-0): ext4_find_entry:1683: inode #2"),
    ("sdb", "device lost", "sd 12:0:0:0: Device offlined - not ready after error recovery"),
)  # fmt: skip


@pytest.mark.parametrize(("disk", "kind", "text"), REAL)
def test_lines_of_kernels(disks: dict[str, Path], disk: str, kind: str, text: str) -> None:
    for name, folder in disks.items():
        found = troubles_in([LogLine(text)], names_of([folder]))
        assert [message.kind for message in found] == ([kind] if name == disk else [])


@pytest.mark.parametrize(
    "text",
    [
        "sda: sda1",
        "sd 2:0:0:0: [sda] Attached SCSI disk",
        "EXT4-fs (sda1): mounted filesystem with ordered data mode",
        "ata3: SATA link up 1.5 Gbps (SStatus 113 SControl 300)",
        "I/O error, dev sdaa, sector 0",
        "sd 12:0:0:0:0: rejecting I/O to offline device",
    ],
)
def test_lines_that_are_no_trouble_or_of_others(disks: dict[str, Path], text: str) -> None:
    assert troubles_in([LogLine(text)], names_of([disks["sda"]])) == []


def test_a_line_that_names_no_disk_is_attributed_by_its_device(disks: dict[str, Path]) -> None:
    line = LogLine("rejecting I/O to offline device", "+scsi:2:0:0:0")
    assert len(troubles_in([line], names_of([disks["sda"]]))) == 1
    assert troubles_in([line], names_of([disks["sdb"]])) == []


def test_what_is_stacked_on_a_disk(disks: dict[str, Path]) -> None:
    assert {folder.name for folder in devices_above(disks["sda"])} == {"sda1", "md0", "dm-0"}


def test_each_kind_of_trouble_names_its_source() -> None:
    assert all(trouble.kind and trouble.source for trouble in TROUBLES)


def _monitored(disk: Path, log: FakeLog, *lines: str) -> MachineEvents:
    monitor = MachineMonitor([disk], open_log=log.opened)
    log.write("I/O error, dev sda, sector 1 op 0x0:(READ)", facility=1)  # a program's, whatever it says
    with monitor.monitoring(8_000_000_000):
        for line in lines:
            log.write(line)
    assert monitor.events is not None
    return monitor.events


def test_a_run_keeps_the_trouble_of_its_disk(disks: dict[str, Path], tmp_path: Path) -> None:
    events = _monitored(
        disks["sda"], FakeLog(tmp_path), "ata3: hard resetting link", "ata4: hard resetting link"
    )
    assert events.kernel_log_read is True
    assert [message.text for message in events.kernel_messages] == ["ata3: hard resetting link"]
    assert events.trouble == 'reset: "ata3: hard resetting link"'


def test_a_flood_of_lines_is_counted(disks: dict[str, Path], tmp_path: Path) -> None:
    nr_lines = MOST_KERNEL_MESSAGES + 30
    events = _monitored(disks["sda"], FakeLog(tmp_path), *["ata3: hard resetting link"] * nr_lines)
    assert len(events.kernel_messages) == MOST_KERNEL_MESSAGES
    assert events.nr_kernel_messages == nr_lines
    assert events.trouble is not None
    assert events.trouble.startswith("reset (20) and 30 more: ")


def test_a_log_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    def refuse() -> KernelLog:
        raise PermissionError(1, "Operation not permitted")

    monitor = MachineMonitor([tmp_path], open_log=refuse)
    with monitor.monitoring():
        pass
    assert monitor.events is not None
    assert monitor.events.kernel_log_read is False
    assert why_unreadable(tmp_path / "none") == "no such file or directory"


def test_events_of_older_versions_are_read() -> None:
    events = MachineEvents.model_validate_json('{"duration_ns": 2000000000, "pressure_ns": {}}')
    assert events.kernel_log_read is None
    assert events.trouble is None
    assert events.overrun_ns == 0


@pytest.mark.parametrize(
    ("asked_s", "took_s", "over_s"),
    [(8, 62, 54), (8, 12.9, 0), (8, 13.1, 5.1), (600, 655, 0), (600, 665, 65), (None, 1000, 0)],
)
def test_a_run_that_takes_far_longer_than_asked(asked_s: float | None, took_s: float, over_s: float) -> None:
    asked_ns = None if asked_s is None else round(asked_s * 1e9)
    events = MachineEvents(duration_ns=round(took_s * 1e9), asked_ns=asked_ns)
    assert events.overrun_ns == round(over_s * 1e9)


@pytest.mark.root
def test_this_machines_log_has_what_comes_after_its_opening(tmp_path: Path) -> None:
    """Lines that root writes have the facility of programs: by default they do not count."""
    if not (KMSG.exists() and stat.S_ISCHR(KMSG.stat().st_mode)) or why_unreadable() is not None:
        pytest.skip(f"the kernel's log cannot be read here: {why_unreadable()}")
    disk = _make(tmp_path / "blklabtest0", dev="999:0")
    text = "I/O error, dev blklabtest0, sector 0 op 0x0:(READ) (a test of blklab)"
    of_programs = MachineMonitor([disk], open_log=lambda: KernelLog(facilities=(0, 1)))
    of_kernel = MachineMonitor([disk])
    KMSG.write_text(f"<11>{text} before\n")
    with of_programs.monitoring(), of_kernel.monitoring():
        KMSG.write_text(f"<11>{text}\n")
    assert of_programs.events is not None
    assert [message.text for message in of_programs.events.kernel_messages] == [text]
    assert of_kernel.events is not None
    assert of_kernel.events.kernel_messages == []
    assert of_kernel.events.kernel_log_read is True
