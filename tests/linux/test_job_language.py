"""fio's job-file language: blklab's I/Os, of models and of the job files that it writes, are those of fio."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from blklab import _core
from blklab.errors import JobFileError, SpaceError
from blklab.linux.load.fio import job_file_text
from blklab.linux.scratch.layout import (
    files_in_directory,
    parts_on_device,
    regions_in_directory,
    regions_on_device,
)
from blklab.spec.workloads import Workload, load_workload, parse_workload

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")

CASES = Path(__file__).parent.parent / "cases" / "job_files"
DEVICE_BYTES = (16 << 20) + 4096
MIB = 1 << 20

Transfer = tuple[int, int, int]
"""Number of the file in order of appearance, offset in it, and bytes."""

OF_A_DEVICE = [
    "rw=read\nbs=64k\nsize=100%",
    "rw=read\nbs=64k\nsize=30%",
    "rw=read\nbs=64k\nsize=30%%",
    "rw=read\nbs=64k\noffset=50%\nsize=25%",
    "rw=read\nbs=64k\noffset=33%\nsize=1m",
    "rw=write\nbs=12k\noffset=10%",
    "rw=read\nbs=64k\nsize=60%\noffset=80%",
    "rw=read\nbs=64k\nfilesize=8m\nsize=50%",
    "rw=read\nbs=64k\nfilesize=8m\nsize=1m",
    "rw=read\nbs=64k\nsize=50%\nio_size=50%",
    "rw=read\nbs=64k\nio_size=100%",
    "rw=read\nbs=64k\nsize=0\nio_size=1m",
    "rw=read\nbs=64k\nsize=25%\nloops=2",
    "rw=read\nbs=64k\noffset=25%\nsize=25%\nio_size=40%",
    "rw=read:64k\nbs=64k\noffset=12%\nsize=33%",
]
"""Jobs on a device, of which they take shares."""

OF_FILES = [
    "rw=read\nbs=16k\nsize=640k\nnrfiles=4",
    "rw=read\nbs=16k\nsize=700k\nnrfiles=3",
    "rw=write\nbs=16k\nsize=640k\nnrfiles=4\nfile_service_type=sequential",
    "rw=read\nbs=16k\nsize=640k\nnrfiles=4\nfile_service_type=roundrobin:3",
    "rw=read\nbs=16k\nsize=320k\nnrfiles=2\nloops=2",
    "rw=read\nbs=16k\nnrfiles=3\nfilesize=160k\nsize=320k",
    "rw=read\nbs=4k\nsize=400k\nfilename=one:two",
    "rw=read\nbs=4k\nsize=200k\nfilename=one\nfilename=two",
    "rw=read\nbs=4k\nsize=200k\nfilename=one:one",
    "rw=write\nbs=700\nsize=64k",
    "rw=write\nbs=2300\nsize=64k\nfdatasync=1",
    "rw=read\nbs=8k\nbs=4k\nsize=64k",
    "rw=read\nbs=4KiB\nsize=64k",
    "rw=read\nkb_base=1000\nbs=4k\nsize=64k",
    "rw=read\nbs=4k\nsize=64k\ntime_based",
    "rw=read\nbs=4k\nsize=1m\nio_size=25%",
    "rw=read\nbsrange=4k:4k\nsize=64k",
    "rw=read#a comment\nbs=4k;another\nsize=64k",
    "rw=read\nbs=4k\nsize=64k:128k",
    "rw=read\nbs=4k\nsize=128k,64k",
    "rw=read\nbs=4k\nsize=64k\nunlink=1\nflow_watermark=100",
    "rw=write\nbs=16k\nsize=640k\nnrfiles=4\nfsync=4",
    "rw=write\nbs=4k\nsize=200k\nnrfiles=5\nfile_service_type=roundrobin:2\nfdatasync=2",
    "rw=read:8k\nbs=4k\nsize=128k\nnrfiles=2",
    "rw=read\nbs=4k\nsize=100k\nnrfiles=2\nio_size=300k",
    "rw=read\nbs=4k\nfilesize=64k\nnrfiles=4\nsize=256k",
    "rw=read\nbs=4k\nsize=256k\nfilename=one:two\nfilename=three\nfile_service_type=sequential",
    "rw=read\nbs=12k\nsize=500k\nnrfiles=3\nfile_service_type=sequential\nloops=2",
    "rw=read\nbs=16k\nsize=640k\nnrfiles=4\nio_size=50%",
    "rw=read\nbs=4k\nsize=50k\nloops=2",
    "rw=write\nbs=4k\nsize=50k\nio_size=150k",
    "rw=read\nbs=12k\nsize=160k\nfilename=one:two\nloops=3",
    "rw=write\nbsrange=8k-8k\nsize=96k\nfilename=one:two",
    "rw=read\nioengine=mmap\nbs=8k\nsize=128k",
    "rw=write\nioengine=mmap\nbs=4k\nsize=128k\nfilename=one:two\nfsync=4",
    "rw=read\nbs=4k,64k\nbs_is_seq_rand=1\nsize=128k",
    "rw=read\nbs=4k\nnrfiles=5\nfilesize=10k-100k",
    "rw=read\nbs=4k\nnrfiles=5\nfilesize=10k:100k\nsize=100k",
    "rw=write\nbs=4k\nnrfiles=5\nfilesize=10k-100k\nsize=50%\noffset=8k",
    "rw=write\nbs=1k\nnrfiles=3\nfilesize=20k-90k\nrandseed=77\nfile_service_type=sequential",
    "rw=read\nbs=1000\nnrfiles=3\nfilesize=20k-90k\nrandom_generator=tausworthe64\nloops=2",
    "rw=read\nbs=4k,1k\nnrfiles=4\nfilesize=20k-90k\nallrandrepeat=1",
    "rw=read\nbs=4k\nfilename=one:two\nfilesize=20k,90k\nio_size=300k",
    "rw=read\nbs=4k\nfilesize=20k-900k",
]
"""Jobs with files of their own, of at most 1 MiB each."""

RANDOM = [
    "rw=randread\nbs=4k\nsize=600k\nnrfiles=3",
    "rw=randread\nbs=4k\nsize=600k\nnrfiles=3\nfile_service_type=random",
    "rw=randwrite\nbs=4k\nsize=600k\nnrfiles=3\nfile_service_type=random:4",
    "rw=randread\nbs=4k\nsize=600k\nnrfiles=3\nfile_service_type=sequential",
    "rw=randwrite\nbs=8k\nsize=600k\nnrfiles=5\nfile_service_type=roundrobin:3",
    "rw=randread\nbs=4k\nnrfiles=6\nfilesize=8k-300k",
]
"""Random jobs that visit every block of several files once."""


def logged(folder: Path, text: str) -> list[Transfer]:
    """The I/Os that fio makes of a job file with one section, from its own log."""
    # fio goes on with a log that is there.
    (folder / "ios").unlink(missing_ok=True)
    (folder / "job.fio").write_text(f"{text}\nwrite_iolog=ios\n", encoding="utf-8")
    command = ["timeout", "50", "prlimit", f"--fsize={64 << 20}", "fio", "--minimal", "job.fio"]
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 0, answer.stderr + answer.stdout[-2000:]
    log = (folder / "ios").read_text(encoding="utf-8")
    found = re.findall(r"(?m)^(?:\d+ )?(\S+) (?:read|write) (\d+) (\d+)$", log)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(name for name, _, _ in found))}
    return [(numbers[name], int(offset), int(size)) for name, offset, size in found]


def modelled(work: Workload, most: int = 100_000) -> list[tuple[int, int]]:
    """Offsets on the device and sizes of the I/Os of a model."""
    answer = json.loads(_core.job_transfers(work.text, work.source, DEVICE_BYTES, 7, most))
    return [(offset, size) for clones in answer for clone in clones for _, offset, size, _ in clone]


def modelled_in_files(work: Workload) -> list[Transfer]:
    """The same for files of at most 1 MiB, which lie one MiB apart, numbered in order of appearance."""
    starts = [offset // MIB for offset, _ in modelled(work)]
    numbers = {start: number for number, start in enumerate(dict.fromkeys(starts))}
    return [(numbers[offset // MIB], offset % MIB, size) for offset, size in modelled(work)]


def read_as_job(options: str) -> Workload:
    return parse_workload(f"[a]\n{options}\n", name="a", source="a.fio")


@needs_fio
@pytest.mark.parametrize("options", OF_A_DEVICE)
def test_shares_of_a_device_have_fios_bases_and_rounding(options: str, tmp_path: Path) -> None:
    device = tmp_path / "device"
    with device.open("wb") as file:
        file.truncate(DEVICE_BYTES)
    of_fio = logged(tmp_path, f"[a]\n{options}\nfilename={device}")
    work = read_as_job(options)
    assert modelled(work) == [(offset, size) for _, offset, size in of_fio]
    text = job_file_text(work, regions_on_device(work, str(device), DEVICE_BYTES), seed=1)
    assert logged(tmp_path, text) == of_fio


@needs_fio
@pytest.mark.parametrize("options", [*OF_FILES, *RANDOM])
def test_files_have_fios_ios(options: str, tmp_path: Path) -> None:
    work = read_as_job(options)
    own, ours = tmp_path / "own", tmp_path / "ours"
    own.mkdir()
    ours.mkdir()
    of_fio = logged(own, f"[a]\n{options}")
    for name, length in files_in_directory([work]).items():
        (ours / name).write_bytes(bytes(length))
    of_blklab = logged(ours, job_file_text(work, regions_in_directory(work), seed=1))
    if options in RANDOM:
        # Chance decides the order; each file has all of its blocks once.
        shape = sorted(Counter(number for number, _, _ in of_fio).values())
        for ios in (of_fio, of_blklab, modelled_in_files(work)):
            assert sorted(Counter(number for number, _, _ in ios).values()) == shape
            assert len(set(ios)) == len(ios)
            assert {(offset, size) for _, offset, size in ios} == {
                (offset, size) for _, offset, size in of_fio
            }
        return
    assert modelled_in_files(work) == of_fio
    assert of_blklab == of_fio


@needs_fio
@pytest.mark.parametrize("options", ["", "randrepeat=1", "allrandrepeat=1"])
def test_the_seed_of_a_run_decides_the_order(options: str, tmp_path: Path) -> None:
    work = read_as_job(f"rw=randread\nbs=4k\nsize=256k\n{options}")
    for name, length in files_in_directory([work]).items():
        (tmp_path / name).write_bytes(bytes(length))
    texts = [job_file_text(work, regions_in_directory(work), seed=seed) for seed in (1, 1, 2)]
    first, again, other = [logged(tmp_path, text) for text in texts]
    assert first == again
    assert first != other
    assert Counter(first) == Counter(other)


@needs_fio
@pytest.mark.parametrize(
    ("options", "whole"),
    [
        ("rw=write\nbs=1.5k\nsize=96k", "rw=write\nbs=1536\nsize=96k"),
        ("rw=read\nbs=4k\nsize=0.5m\nio_size=0.25m", "rw=read\nbs=4k\nsize=512k\nio_size=256k"),
        ("rw=read\nbssplit=1.5k/50:1.5k/50\nsize=64k", "rw=read\nbs=1536\nsize=64k"),
    ],
)
def test_fractions_mean_the_same_whatever_fio_makes_of_them(options: str, whole: str, tmp_path: Path) -> None:
    work = read_as_job(options)
    assert "without arithmetic" in work.notes[0].message
    of_fio = logged(tmp_path, f"[a]\n{whole}")
    assert modelled_in_files(work) == of_fio
    for name, length in files_in_directory([work]).items():
        (tmp_path / name).write_bytes(bytes(length))
    assert logged(tmp_path, job_file_text(work, regions_in_directory(work), seed=1)) == of_fio


def test_fractions_of_times_are_whole_numbers_for_fio() -> None:
    work = read_as_job("rw=read\nbs=4k\nsize=1m\ntime_based\nruntime=0.5m\nthinktime=1.5ms")
    assert work.jobs[0].runtime_ns == 30 * 10**9
    text = job_file_text(work, regions_in_directory(work), seed=1)
    assert "thinktime=1500us" in text
    assert "0.5" not in text


@needs_fio
def test_file_names_add_up_from_global_and_section(tmp_path: Path) -> None:
    text = "[global]\nfilename=one\nbs=4k\nsize=64k\n[a]\nrw=read\nfilename=two"
    work = parse_workload(text, name="a", source="a.fio")
    assert modelled_in_files(work) == logged(tmp_path, text)


@needs_fio
def test_an_included_file_and_keywords_are_read_as_fio_reads_them(tmp_path: Path) -> None:
    for name in ("include", "arithmetic"):
        work = load_workload(str(CASES / f"{name}.fio"))
        text = (CASES / f"{name}.fio").read_text(encoding="utf-8").replace("numjobs", "; numjobs")
        shutil.copy(CASES / "common.inc", tmp_path)
        of_fio = logged(tmp_path, text.replace("direct=1", "direct=0"))
        assert modelled(work, len(of_fio))[: len(of_fio)] == [(o, s) for _, o, s in of_fio]
    assert work.jobs[0].numjobs == os.sysconf("SC_NPROCESSORS_CONF")
    assert work.notes[0].line == 3


def test_remarks_and_mistakes_name_the_included_file(tmp_path: Path) -> None:
    (tmp_path / "common.inc").write_text("bs=4k\nbs=soon\n")
    (tmp_path / "main.fio").write_text("[a]\ninclude common.inc\nsize=1m\n")
    with pytest.raises(JobFileError, match=r"common\.inc:2: .*not a size") as caught:
        load_workload(str(tmp_path / "main.fio"))
    assert caught.value.option == "blocksize"
    (tmp_path / "common.inc").write_text("bs=4k\nbs=8k\n")
    note = load_workload(str(tmp_path / "main.fio")).notes[0]
    assert note.message.endswith("common.inc:2)")
    (tmp_path / "common.inc").write_text("include common.inc\n")
    with pytest.raises(JobFileError, match="circle"):
        load_workload(str(tmp_path / "main.fio"))
    (tmp_path / "common.inc").write_text("[b]\nsize=1m\n")
    with pytest.raises(JobFileError, match="no sections"):
        load_workload(str(tmp_path / "main.fio"))
    (tmp_path / "common.inc").unlink()
    with pytest.raises(JobFileError, match="cannot be included: No such file"):
        load_workload(str(tmp_path / "main.fio"))


def test_variables_are_taken_from_the_environment_on_demand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "main.fio"
    path.write_text("[a]\nbs=${BLOCK}\nsize=${SIZE}m\n")
    with pytest.raises(JobFileError, match="name the file as env:FILE"):
        load_workload(str(path))
    monkeypatch.setenv("BLOCK", "16k")
    monkeypatch.setenv("SIZE", "3")
    (job,) = load_workload(f"env:{path}").jobs
    assert (job.block_size_bytes, job.size_bytes) == (16 << 10, 3 << 20)
    monkeypatch.delenv("SIZE")
    with pytest.raises(JobFileError, match=r"main\.fio:3: the environment has no variable SIZE"):
        load_workload(f"env:{path}")


TAKEN = {
    "include", "repeated-section", "repeated-option", "flag-above-one", "engine-alias", "size-zero",
    "arithmetic", "several-files", "two-names", "odd-blocks", "size-percent", "io-size-percent",
    "ramp-longer-than-job", "depth-of-sync-engine", "time-based-without-runtime", "too-large", "no-end",
}  # fmt: skip
REFUSED = {
    "range-as-block": "write bsrange=8k-128k",
    "cluster-engine": "the engine rbd drives a cluster",
    "template": "placeholder of a template",
}


def test_every_case_is_accounted_for() -> None:
    assert {path.stem for path in CASES.glob("*.fio")} == {*TAKEN, *REFUSED}


@pytest.mark.parametrize("name", sorted(TAKEN))
def test_a_file_of_fios_language_is_taken(name: str) -> None:
    work = load_workload(str(CASES / f"{name}.fio"))
    again = parse_workload(work.text, name="again", source="stored")
    assert [job.options for job in again.jobs] == [job.options for job in work.jobs]


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_file_that_cannot_be_used_is_told_why(name: str) -> None:
    with pytest.raises(JobFileError, match=re.escape(REFUSED[name])) as caught:
        load_workload(str(CASES / f"{name}.fio"))
    assert caught.value.line is not None


def test_several_files_need_a_directory_or_a_device_that_can_be_divided() -> None:
    work = load_workload(str(CASES / "several-files.fio"))
    (region,) = regions_in_directory(work)[0]
    assert [part.filename for part in region.parts] == ["read-0", "read-1", "read-2"]
    assert [part.size_bytes for part in region.parts] == [2 * MIB] * 3
    with pytest.raises(JobFileError, match="a device has none") as caught:
        regions_on_device(work, "/dev/x", 64 * MIB)
    assert caught.value.hint is not None
    assert "directory" in caught.value.hint
    ((divided,),) = regions_on_device(work, "/dev/x", 64 * MIB, part_path="/dev/x{}".format)
    assert [part.filename for part in divided.parts] == ["/dev/x1", "/dev/x2", "/dev/x3"]
    assert [part.offset_bytes for part in divided.parts] == [0, 0, 0]
    with pytest.raises(SpaceError, match="needs 6"):
        regions_on_device(work, "/dev/x", 5 * MIB, part_path="/dev/x{}".format)
    many = read_as_job("rw=read\nbs=4k\nnrfiles=256\nsize=1m")
    with pytest.raises(JobFileError, match="it can be divided into 255"):
        regions_on_device(many, "/dev/x", 1 << 30, part_path="/dev/x{}".format)


SEVERAL_DEVICES = [
    "rw=read\nbs=16k\nsize=640k\nfilename=/dev/a:/dev/b",
    "rw=write\nbs=16k\nsize=640k\nfilename=/dev/a:/dev/b\nfile_service_type=sequential",
    "rw=read\nbs=16k\nsize=700k\nfilename=/dev/a:/dev/b:/dev/c\nfile_service_type=roundrobin:3",
    "rw=read\nbs=4k\nfilesize=160k\nsize=320k\nfilename=/dev/a:/dev/b",
    "rw=read\nbs=4k\nsize=320k\nfilename=/dev/a:/dev/b\nloops=2",
]
"""Jobs on several devices, as people write them for arrays."""


@needs_fio
@pytest.mark.parametrize("options", SEVERAL_DEVICES)
def test_a_divided_device_stands_for_several(options: str, tmp_path: Path) -> None:
    """One disk has the I/Os that fio gives to several, in the same order."""
    work = read_as_job(options)
    of_fio = logged(tmp_path, "[a]\n" + options.replace("/dev/", ""))
    for part in parts_on_device(work):
        (tmp_path / f"part{part.number}").write_bytes(bytes(part.length_bytes))
    regions = regions_on_device(work, "/dev/x", DEVICE_BYTES, part_path=str(tmp_path / "part{}").format)
    assert logged(tmp_path, job_file_text(work, regions, seed=1)) == of_fio
    assert modelled_in_files(work) == of_fio


@needs_fio
def test_files_beyond_a_list_of_names_are_numbered(tmp_path: Path) -> None:
    work = read_as_job("rw=read\nbs=4k\nnrfiles=600\nsize=2400k")
    for name, length in files_in_directory([work]).items():
        (tmp_path / name).write_bytes(bytes(length))
    text = job_file_text(work, regions_in_directory(work), seed=1)
    assert "filename_format=read-$filenum" in text
    own = tmp_path / "own"
    own.mkdir()
    assert logged(tmp_path, text) == logged(own, "[a]\nrw=read\nbs=4k\nnrfiles=600\nsize=2400k")
    two = read_as_job("rw=read\nbs=4k\nnrfiles=600\nsize=2400k\nnumjobs=2")
    with pytest.raises(JobFileError, match="works on 600 files") as caught:
        job_file_text(two, regions_in_directory(two), seed=1)
    assert caught.value.hint == "lower nrfiles or numjobs"


@needs_fio
def test_a_header_without_its_bracket_is_read_as_fio_reads_it(tmp_path: Path) -> None:
    text = "[bs=64K\nrw=read\nbs=64k\nsize=256k\n"
    work = parse_workload(text, name="a", source="a.fio")
    assert work.jobs[0].name == "bs=64"
    assert "lacks its ]" in work.notes[0].message
    assert modelled_in_files(work) == logged(tmp_path, text)
    assert "--name=bs=64 " in subprocess.run(
        ["fio", "--showcmd", "job.fio"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.replace("\n", " ")
    with pytest.raises(JobFileError, match="needs a name and a closing"):
        parse_workload("[\nrw=read\nsize=1m\n", name="a", source="a.fio")


def test_text_behind_a_header_is_left_out_and_told() -> None:
    work = parse_workload("[fio-test]G\nrw=read\nsize=1m", name="a", source="a.fio")
    assert [job.name for job in work.jobs] == ["fio-test"]
    assert "G stands after the header" in work.notes[0].message
    commented = parse_workload("[a] ; G\nrw=read\nsize=1m", name="a", source="a.fio")
    assert not commented.notes


def test_command_lines_and_byte_order_marks_of_editors(tmp_path: Path) -> None:
    with pytest.raises(JobFileError, match=r"a command line, not a job file: write \[name\]"):
        parse_workload("fio --name=a --rw=read --size=1m", name="a", source="a.fio")
    marked = tmp_path / "a.fio"
    marked.write_text("[a]\nrw=read\nsize=1m", encoding="utf-8-sig")
    assert [job.name for job in load_workload(str(marked)).jobs] == ["a"]


def test_reads_and_writes_of_different_sizes_are_told_to_end_early() -> None:
    mixed = "[a]\nrw=randrw\nbs=4k,64k\nsize=1m"
    assert (
        "share one map of visited blocks" in parse_workload(mixed, name="a", source="a.fio").notes[0].message
    )
    for without in ("norandommap=1", "rw=rw", "bs=4k", "random_distribution=zipf:1.2"):
        notes = parse_workload(f"{mixed}\n{without}", name="a", source="a.fio").notes
        assert not any("map of visited" in note.message for note in notes), without


def test_options_that_blklab_decides_itself_are_left_out_with_a_note() -> None:
    work = read_as_job("rw=write\nbs=4k\nsize=1m\nioscheduler=bfq\nunlink=1\nallow_mounted_write=1")
    text = job_file_text(work, regions_in_directory(work), seed=1)
    assert not any(option in text for option in ("ioscheduler", "unlink", "allow_mounted_write"))
    assert [note.message for note in work.notes if note.option == "ioscheduler"] == [
        "bfq is not set; blklab sets the schedulers that it compares"
    ]
    (note,) = read_as_job("rw=read\nbs=4k\nsize=1m:2m").notes
    assert "the last of several values: 1m:2m is taken for 2m" in note.message


def test_a_negative_weight_starves_the_rest_of_its_flow_as_in_fio() -> None:
    """Fio 3.33 takes it for an unsigned number of 32 bits; older versions had other rules."""
    text = "[global]\nbs=4k\nsize=1m\nrw=read\n[a]\nflow=-2\n[b]\nflow=1\n"
    work = parse_workload(text, name="a", source="a.fio")
    assert work.jobs[0].options["flow"] == str(2**32 - 2)
    assert "hardly get a turn" in work.notes[0].message


def test_a_larger_target_is_named() -> None:
    work = load_workload(str(CASES / "too-large.fio"))
    with pytest.raises(SpaceError, match=r"needs 3\.00 GiB") as caught:
        regions_on_device(work, "/dev/loop8", 1 << 30)
    assert caught.value.hint is not None
    assert "loop:3g" in caught.value.hint
