"""The loads of benchmarks on models: shipped workloads, and some beside them."""

from __future__ import annotations

from blklab.spec.workloads import Workload, load_workload, parse_workload

OWN = {
    "paced-clients": """; decide-by: latency_p99
[clients]
rw=randread
bs=16k
direct=1
numjobs=4
size=1g
thinktime=2ms
time_based
ramp_time=250ms
runtime=2s
""",
    "backup-beside-database": """; decide-by: iops
; focus: database
[global]
direct=1
time_based
ramp_time=250ms
runtime=2s
[database]
rw=randrw
rwmixread=80
bs=8k
ioengine=libaio
iodepth=8
size=1g
[backup]
rw=read
bs=1m
size=1g
""",
}
"""Loads beside the shipped ones: one that leaves the disk idle at times, one that mixes sizes and orders."""


def named_load(name: str) -> Workload:
    """A load of `OWN`, or else a shipped workload."""
    return parse_workload(OWN[name], name=name, source=name) if name in OWN else load_workload(name)
