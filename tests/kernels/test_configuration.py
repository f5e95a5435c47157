"""Configuration fragments, and their effect on a tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.errors import KernelConfigError, UnknownNameError
from blklab.guests.kernels.configuration import (
    Fragment,
    find_definitions,
    merge,
    parse_options,
    read_configuration,
    read_fragment,
    render,
    shipped_fragment,
)

NEEDED = """64BIT UML_TIME_TRAVEL_SUPPORT HIGH_RES_TIMERS BLOCK MQ_IOSCHED_DEADLINE MQ_IOSCHED_KYBER
IOSCHED_BFQ BFQ_GROUP_IOSCHED BLK_CGROUP BLK_DEV_THROTTLING BLK_CGROUP_IOLATENCY BLK_WBT BLK_WBT_MQ
BLK_DEV_NULL_BLK AIO HOSTFS EXT4_FS XFS_FS BTRFS_FS DEVTMPFS TMPFS CONFIGFS_FS DEBUG_FS PROC_FS SYSFS
MEMCG SYSVIPC"""


def test_the_shipped_fragment_asks_for_what_guests_need() -> None:
    options = merge([shipped_fragment()])
    assert len(options) == len(shipped_fragment().options), "an option is asked for twice"
    for name in NEEDED.split():
        assert options[f"CONFIG_{name}"].value == "y"
        assert not options[f"CONFIG_{name}"].optional, name
    assert {option.name for option in options.values() if option.optional} == {
        "CONFIG_BLK_DEV_UBLK",
        "CONFIG_BLK_CGROUP_IOCOST",
        "CONFIG_BLK_CGROUP_IOPRIO",
        "CONFIG_INIT_STACK_NONE",
        "CONFIG_IO_URING",
        "CONFIG_PROC_SYSCTL",
    }
    assert options["CONFIG_MODULES"].value == options["CONFIG_NET"].value == "n"


def test_reading_and_writing(tmp_path: Path) -> None:
    text = "# words\nCONFIG_A=y\n#: optional: since ever\nCONFIG_B=0x1F\n\n"
    text += '# CONFIG_C is not set\nCONFIG_D="a \\"b"\n'
    options = merge([read_fragment_of(tmp_path, text)])
    assert [(o.name, o.value, o.optional) for o in options.values()] == [
        ("CONFIG_A", "y", False),
        ("CONFIG_B", "0x1F", True),
        ("CONFIG_C", "n", False),
        ("CONFIG_D", '"a \\"b"', False),
    ]
    (tmp_path / ".config").write_text(render(options))
    assert read_configuration(tmp_path / ".config") == {
        "CONFIG_A": "y",
        "CONFIG_B": "0x1F",
        "CONFIG_D": '"a \\"b"',
    }


def read_fragment_of(folder: Path, text: str) -> Fragment:
    path = folder / "some.config"
    path.write_text(text)
    return read_fragment(path)


@pytest.mark.parametrize(
    "line", ["CONFIG_A", "A=y", "CONFIG_A=yes", "CONFIG_A=m", "CONFIG_A = y", "select A"]
)
def test_mistakes_name_their_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(KernelConfigError, match=r"some\.config:2"):
        read_fragment_of(tmp_path, f"CONFIG_B=y\n{line}\n")


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="nowhere"):
        read_fragment(tmp_path / "nowhere.config")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(KernelConfigError, match="not text"):
        read_fragment(tmp_path / "binary")


def test_the_last_fragment_has_its_way() -> None:
    options = [
        option for text in ("CONFIG_A=y\nCONFIG_B=y", "CONFIG_A=n") for option in parse_options(text, "x")
    ]
    merged = {option.name: option.value for option in options}
    assert merged == {"CONFIG_A": "n", "CONFIG_B": "y"}


def test_definitions_are_those_that_user_mode_linux_sees(tmp_path: Path) -> None:
    for path, text in {
        "block/Kconfig": "config SEEN\n\tdepends on X\n\tdepends on Y || Z\n\nconfig O\n\tdepends on W\n",
        "arch/arm/Kconfig": "config ARM_ONLY\n",
        "arch/x86/Kconfig": "config X86_ONLY\n",
        "arch/x86/um/Kconfig": "menuconfig UML_X\n\tbool\n\thelp\n\t  depends on talk.\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    found = find_definitions(tmp_path, {"SEEN", "ARM_ONLY", "X86_ONLY", "UML_X", "NOWHERE"})
    assert found == {"SEEN": ["X", "Y || Z"], "UML_X": []}
