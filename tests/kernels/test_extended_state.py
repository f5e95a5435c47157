"""User-mode Linux's code that restores extended state, on hosts that have more of it than a kernel keeps.

No host with AMX is needed: the code is built to keep less than any host has. `BLKLAB_OLD_LINUX` names a tree
of Linux 4.19 or 4.20, which is not ours to ship.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from blklab.shipped import shipped_folder

_FILE = Path("arch/x86/um/os-Linux/registers.c")
_KEPT_BYTES = 576
"""Those of x87 and SSE, and the header."""
_INCLUDES = {
    "longjmp.h": "#include <setjmp.h>\n",
    "sysdep/ptrace_user.h": f"#define FP_SIZE ({_KEPT_BYTES} / sizeof(unsigned long))\n",
    "asm/sigcontext.h": "#include <elf.h>\n",
    "linux/elf.h": "#include <elf.h>\n",
    "registers.h": (
        f"#define FP_SIZE ({_KEPT_BYTES} / sizeof(unsigned long))\n"
        "void arch_init_registers(int pid);\n"
        "int get_fp_registers(int pid, unsigned long *regs);\n"
        "int put_fp_registers(int pid, unsigned long *regs);\n"
    ),
}


def _answers(folder: Path, *, patched: bool) -> dict[str, list[int]]:
    """The answer: what `extended_state.c` prints with the tree's file."""
    tree = os.environ.get("BLKLAB_OLD_LINUX")
    if tree is None:
        pytest.skip("BLKLAB_OLD_LINUX names no tree of Linux 4.19 or 4.20")
    for program in ("gcc", "patch"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    source = folder / _FILE
    source.parent.mkdir(parents=True)
    shutil.copy(Path(tree) / _FILE, source)
    if patched:
        instrument = shipped_folder("kernel") / "legacy/whole-xstate-legacy/whole-xstate-legacy.patch"
        subprocess.run(["patch", "-p1", "-i", instrument], cwd=folder, check=True, capture_output=True)
    text, separator, _ = source.read_text().partition("unsigned long get_thread_reg(")
    assert separator, "all before it is about the extended state"
    source.write_text(text)
    for name, content in _INCLUDES.items():
        (folder / "include" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "include" / name).write_text(content)
    built = folder / "extended-state"
    main = Path(__file__).with_name("extended_state.c")
    command = ["gcc", "-I", str(folder / "include"), "-o", str(built), str(main), str(source)]
    subprocess.run(command, check=True)
    shown = subprocess.run([built], check=True, capture_output=True, text=True).stdout
    return {name: [int(word) for word in words] for name, *words in map(str.split, shown.splitlines())}


def test_the_code_of_4_19_is_refused_by_such_a_host(tmp_path: Path) -> None:
    answers = _answers(tmp_path, patched=False)
    if answers["bytes"][0] <= _KEPT_BYTES:
        pytest.skip("this host has no more than SSE")
    assert answers["restored"] == [-14], "EFAULT, as on a host with AMX"


def test_the_instrument_restores_what_is_kept(tmp_path: Path) -> None:
    answers = _answers(tmp_path, patched=True)
    assert answers["bytes"][1] == _KEPT_BYTES
    assert answers["restored"] == [0]
    assert answers["same"] == [1]
    assert answers["changed"] == [1]
