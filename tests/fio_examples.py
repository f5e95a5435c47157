"""The job files that fio 3.33 ships (Debian's fio-examples), and smaller ones with the same I/O."""

from __future__ import annotations

import re
from pathlib import Path

from blklab.quantities.units import parse_size_bytes

FOLDER = Path("/usr/share/doc/fio/examples")

NETWORK = "drives a network or a cluster"
NOT_BLOCK = "drives no block device"
PASSED_BY = "passes commands by the I/O scheduler"
NO_TRANSFER = "creates, moves or measures files, but reads and writes no data"
NOTHING = "does no I/O"
PERSISTENT_MEMORY = "drives persistent memory"

LEFT_OUT = {
    "cpp_null": NOTHING, "cpuio": NOTHING, "exec": NOTHING, "null": NOTHING, "zipf": NOTHING,
    "dev-dax": PERSISTENT_MEMORY, "libpmem": PERSISTENT_MEMORY, "pmemblk": PERSISTENT_MEMORY,
    "dfs": NETWORK, "gfapi": NETWORK, "gpudirect-rdmaio-client": NETWORK, "gpudirect-rdmaio-server": NETWORK,
    "http-s3": NETWORK, "http-s3-crypto": NETWORK, "http-s3-storage-class": NETWORK, "http-swift": NETWORK,
    "http-webdav": NETWORK, "ime": NETWORK, "libhdfs": NETWORK, "libiscsi": NETWORK,
    "librpma_apm-client": NETWORK, "librpma_apm-server": NETWORK, "librpma_gpspm-client": NETWORK,
    "librpma_gpspm-server": NETWORK, "nbd": NETWORK, "netio": NETWORK, "netio_multicast": NETWORK,
    "nfs": NETWORK, "rados": NETWORK, "rbd": NETWORK, "rdmaio-client": NETWORK, "rdmaio-server": NETWORK,
    "e4defrag": NO_TRANSFER, "e4defrag2": NO_TRANSFER, "filecreate-ioengine": NO_TRANSFER,
    "filedelete-ioengine": NO_TRANSFER, "filestat-ioengine": NO_TRANSFER, "ftruncate": NO_TRANSFER,
    "libcufile-cufile": NOT_BLOCK, "libcufile-posix": NOT_BLOCK, "mtd": NOT_BLOCK,
    "libzbc-rand-write": PASSED_BY, "libzbc-seq-read": PASSED_BY, "sg_verify": PASSED_BY,
    "sg_verify-fail": PASSED_BY, "sg_write_same_ndob": PASSED_BY, "uring-cmd-ng": PASSED_BY,
    "uring-cmd-zoned": PASSED_BY, "xnvme-compare": PASSED_BY, "xnvme-zoned": PASSED_BY,
}  # fmt: skip
"""Files that drive neither files nor block devices through the kernel's block layer, each with the reason."""

HOST_ONLY = {"falloc", "zbd-rand-write", "zbd-seq-read"}
"""Files that models refuse: allocation of space, zoned devices."""

MODELLED = {
    "1mbs_clients", "aio-read", "backwards-read", "basic-verify", "butterfly", "cmdprio-bssplit",
    "cmdprio-percentage", "cross-stripe-verify", "dedupe-global", "disk-zone-profile", "enospc-pressure",
    "exitwhat", "fio-rand-RW",
    "fio-rand-read", "fio-rand-write", "fio-seq-RW", "fio-seq-read", "fio-seq-write", "fixed-rate-submission",
    "flow", "fsx", "iometer-file-access-server", "jesd219", "latency-profile", "numa",
    "poisson-rate-submission",
    "rand-zones", "ssd-steadystate", "ssd-test", "steadystate", "surface-scan", "tiobench-example", "waitfor",
}  # fmt: skip

_SIZES = re.compile(
    r"(?m)^(size|filesize|io_size|offset_increment|zonesize|zoneskip|offset)=(\d+[kmgKMG]?)\b"
)
_LARGEST_BYTES = 1 << 20
_CHANGES = {
    "zbd-seq-read": [
        (r"offset=140660178944", "offset=2m"),
        (r"size=10G", "size=2m"),
        (r"zonesize=256M", "zonesize=1m"),
    ],
    "1mbs_clients": [(r"rate=1250", "rate=12500k"), (r"startdelay=(\d+)", r"startdelay=\1ms")],
    "cross-stripe-verify": [(r"numjobs=30", "numjobs=3")],
    "exitwhat": [(r"rate=300,300,300", "rate=300k,300k,300k"), (r"number_ios=1000", "number_ios=60")],
    "fsx": [(r"loops=500000", "loops=3")],
    "latency-profile": [(r"latency_window=5000000", "latency_window=50000")],
    "poisson-rate-submission": [(r"rate_iops=50", "rate_iops=2000")],
}


def smaller(name: str) -> str:
    """The text of an example with sizes of at most 1 MiB and runtimes of half a second."""
    text = (FOLDER / f"{name}.fio").read_text(encoding="utf-8")
    for pattern, replacement in _CHANGES.get(name, []):
        text, count = re.subn(pattern, replacement, text)
        assert count, (name, pattern)
    sizes = [parse_size_bytes(match[2]) for match in _SIZES.finditer(text)]
    factor = 1
    while max(sizes, default=0) / factor > _LARGEST_BYTES:
        factor *= 2

    def divided(match: re.Match[str]) -> str:
        size = parse_size_bytes(match[2])
        # A small one, such as an offset beside much larger sizes, stays.
        return f"{match[1]}={size // factor}" if size >= 1 << 20 else match[0]

    text = _SIZES.sub(divided, text)
    return re.sub(r"(?m)^(runtime|timeout)=\w+", r"\1=500ms", text)
