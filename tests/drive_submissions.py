"""A file about a drive to send in, as tests need one."""

from __future__ import annotations

from blklab.labs.calibration.disk.document import CalibratedLoad, DiskCalibration, Figure, Nearest
from blklab.labs.calibration.disk.drift import Drift
from blklab.labs.calibration.disk.ground import DiskFacts, DiskMeasurement
from blklab.labs.calibration.disk.submission import Submission, submission_of
from blklab.linux.queue.hardware import HardwareQueues

SERIAL = "S5GXNF0R123456"
CAPACITY = 1 << 40
LOAD = "randread-4k-qd1"


def measurement(number: int, iops: float) -> DiskMeasurement:
    """One run."""
    return DiskMeasurement(
        number=number, load=LOAD, at_s=0, took_s=1, ios=100, iops=iops, p50_ns=1, p95_ns=2, p99_ns=3
    )


def calibration() -> DiskCalibration:
    """Of a fixed disk, which needs few figures."""
    figures = [
        Figure(key="capacity", value=CAPACITY, low=None, high=None, how="the kernel's own"),
        Figure(key="latency", value=100_000, low=99_000, high=101_000, how="fitted"),
    ]
    load = CalibratedLoad(
        load=LOAD, fitted=False, runs=2, iops=1000, predicted_iops=1010, p99_us=3, predicted_p99_us=3
    )
    return DiskCalibration(
        schema="blklab.calibrate/1",
        target="/home/ann/data",
        disk="nvme7n1",
        model=f"Samsung SSD 980 PRO 1TB {SERIAL}",
        kind="fixed",
        measured_on="2026-11-28T10:11:12+00:00",
        kernel="6.12.1-Secret-Host",
        machine="/home/ann/costs.toml",
        seed=1,
        runs=2,
        measured_s=1,
        figures=figures,
        model_error=0.01,
        loads=[load],
        drift=Drift(change=0, low=-1, high=1, outliers=0, runs=2),
        nearest=Nearest(profile="optane", rate_error_median=0.5),
        remarks=["measured on secret-host through ext4"],
    )


def submission() -> Submission:
    """Of a machine and a drive whose names occur in texts."""
    facts = DiskFacts(
        name="nvme7n1",
        model=f"Samsung SSD 980 PRO 1TB {SERIAL}",
        capacity_bytes=CAPACITY,
        space_bytes=1 << 30,
        writable=True,
        queues=HardwareQueues(number=8, depth=1023, max_sectors_kb=2048, volatile_cache=True),
        rotational=False,
    )
    return submission_of(
        calibration(),
        facts,
        [measurement(0, 990), measurement(1, 1010)],
        way="directory",
        firmware="5B2QGXA7",
        private=["secret-host", SERIAL, ""],
    )
