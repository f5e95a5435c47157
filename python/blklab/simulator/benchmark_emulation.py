"""Emulates hdparm, iozone and tiotest with job files.

These benchmarks have access patterns of their own. As jobs they run on every backend, and on the simulator
without a disk. Sources: hdparm 9.58 (``do_time``), iozone 3.508 (``iozone.c``), tiobench's tiotest 0.4.2.

Differences: iozone's fwrite and fread use the C library with a buffer of one record, so the kernel sees the
same calls as from write and read; and a simulated file has no metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blklab.errors import UsageError

IOZONE_TESTS = (
    "write",
    "rewrite",
    "read",
    "reread",
    "random-read",
    "random-write",
    "backward-read",
    "record-rewrite",
    "stride-read",
    "fwrite",
    "frewrite",
    "fread",
    "freread",
)
"""iozone's tests, in the order in which it runs and prints them."""

IOZONE_STRIDE = 17
"""Records from one stride read to the next (iozone's ``-j``)."""

TIOTEST_PHASES = ("sequential-write", "random-write", "sequential-read", "random-read")
"""tiotest's phases, in order."""

_MODES = {
    "write": "write",
    "rewrite": "write",
    "read": "read",
    "reread": "read",
    "random-read": "randread",
    "random-write": "randwrite",
    "fwrite": "write",
    "frewrite": "write",
    "fread": "read",
    "freread": "read",
}


def iozone_job_file(
    record_bytes: int,
    file_bytes: int,
    tests: Sequence[str] = IOZONE_TESTS,
    *,
    direct: bool = False,
) -> str:
    """Writes a job file with iozone's tests, one section each, on one file that stays in the page cache.

    Each pass of the stride read starts one record later, as in iozone, and is a section of its own
    (``stride-read-0`` …). Random tests access every record once.

    Raises:
        UsageError: for an unknown test, or a file size that is not a whole number of records.
    """
    unknown = [test for test in tests if test not in IOZONE_TESTS]
    if unknown:
        raise UsageError(f"iozone has no test {unknown[0]!r}; it has {', '.join(IOZONE_TESTS)}")
    if record_bytes <= 0 or record_bytes % 512 or file_bytes < record_bytes or file_bytes % record_bytes:
        raise UsageError(
            f"a file of {file_bytes} bytes does not hold a whole number of records of {record_bytes} bytes, "
            "which must be a multiple of 512"
        )
    options = {"filename": "iozone", "ioengine": "psync", "direct": int(direct), "invalidate": 0}
    # iozone gives the kernel no advice about its accesses.
    options |= {"fadvise_hint": 0, "blocksize": record_bytes}
    sections: dict[str, dict[str, object]] = {}
    for test in tests:
        sections.update(_iozone_sections(test, record_bytes, file_bytes))
    return _job_file(f"iozone, file of {file_bytes} bytes, records of {record_bytes}", options, sections)


def _iozone_sections(test: str, record: int, size: int) -> Iterator[tuple[str, dict[str, object]]]:
    if test == "backward-read":
        # fio (3.33) reads the first record, then continues from two records before the end towards the start.
        # With one more record at the end, it reads every record once.
        yield test, {"readwrite": f"read:-{2 * record}", "size": size + record, "io_size": size}
    elif test == "record-rewrite":
        yield test, {"readwrite": "write", "size": record, "io_size": size}
    elif test == "stride-read":
        gap = (IOZONE_STRIDE - 1) * record
        for first in range(min(IOZONE_STRIDE, size // record)):
            offset = first * record
            records = -(-(size - offset) // (IOZONE_STRIDE * record))
            yield (
                f"{test}-{first}",
                {
                    "readwrite": f"read:{gap}",
                    "offset": offset,
                    "size": size - offset,
                    "io_size": records * record,
                },
            )
    else:
        yield test, {"readwrite": _MODES[test], "size": size}


def tiotest_job_file(
    threads: int = 4,
    file_bytes: int = 10 << 20,
    block_bytes: int = 4096,
    random_operations: int = 100_000,
    *,
    direct: bool = False,
    sync: bool = False,
) -> str:
    """Writes a job file with tiotest's four phases, one section each; each thread has its part of one file.

    Each write phase ends with an fsync that counts in the measured time. Random offsets may repeat.

    Args:
        threads: Threads of each phase.
        file_bytes: Bytes of each thread.
        block_bytes: Bytes of one access.
        random_operations: Accesses of each thread in a random phase.
        direct: Like tiotest's ``-X``.
        sync: Like tiotest's ``-S``.

    Raises:
        UsageError: for a number that is not positive, or a block larger than a thread's part.
    """
    if min(threads, block_bytes, random_operations) <= 0 or file_bytes < block_bytes:
        raise UsageError(
            "threads, blocks and operations must be positive, and a file must hold at least one block"
        )
    options = {
        "filename": "tiotest",
        "ioengine": "psync",
        "direct": int(direct),
        "sync": int(sync),
        "invalidate": 0,
        "fadvise_hint": 0,
        "blocksize": block_bytes,
        "size": file_bytes,
        "offset_increment": file_bytes,
        "numjobs": threads,
    }
    sections: dict[str, dict[str, object]] = {}
    for phase in TIOTEST_PHASES:
        pattern, direction = phase.split("-")
        section: dict[str, object] = {"readwrite": direction}
        if pattern == "random":
            section = {"readwrite": f"rand{direction}", "norandommap": 1}
            section["io_size"] = random_operations * block_bytes
        if direction == "write":
            section["end_fsync"] = 1
        sections[phase] = section
    return _job_file(f"tiotest, {threads} threads of {file_bytes} bytes", options, sections)


def _job_file(purpose: str, options: dict[str, object], sections: dict[str, dict[str, object]]) -> str:
    lines = [f"; purpose: {purpose}", "; decide-by: throughput", "", "[global]"]
    lines += [f"{name}={value}" for name, value in options.items()]
    for index, (name, section) in enumerate(sections.items()):
        lines += ["", f"[{name}]"] + (["stonewall"] if index else [])
        lines += [f"{option}={value}" for option, value in section.items()]
    return "\n".join(lines) + "\n"
