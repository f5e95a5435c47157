"""A source that builds in a moment: the real make and patch, and a makefile in place of the kernel's."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

MAKEFILE = """\
# SPDX-License-Identifier: GPL-2.0
VERSION = 6
PATCHLEVEL = 1
SUBLEVEL = 7
EXTRAVERSION =

objects := block/bfq.o block/kyber.o init/main.o

.PHONY: allnoconfig
allnoconfig:
\t@test -z "$$KCFLAGS" || { echo "error: the caller's environment came in"; exit 1; }
\t@grep -v -x -f dropped $(KCONFIG_ALLCONFIG) > .new; cmp -s .config .new || mv .new .config

linux: $(objects)
\t@echo "  LINK    linux"
\t@cat $^ > linux && chmod +x linux

block/%.o: block/%.c
\t@echo "  CC      $@"
\t@if grep -q BROKEN $<; then echo "$<:1:1: error: expected ';'"; exit 1; fi
\t@if grep -q HANGS $<; then touch $(STARTED); sleep 3600; fi
\t@if grep -q FULL $<; then echo "cc1: fatal error: cannot write: No space left on device"; exit 1; fi
\t@cp $< $@

init/%.o: init/%.c .config
\t@echo "  CC      $@"
\t@cat $< .config > $@
"""

KYBER = "".join(f"/* line {number} */\n" for number in range(1, 21))

KCONFIG = """\
config IOSCHED_BFQ
\tbool "bfq"
\tdepends on BLOCK
\tdepends on NET
\thelp
\t  Text.
"""

PATCH = """\
Slow it down.

--- a/block/kyber.c
+++ b/block/kyber.c
@@ -9,5 +9,6 @@
 /* line 9 */
 /* line 10 */
+/* slower */
 /* line 11 */
 /* line 12 */
 /* line 13 */
"""


@pytest.fixture
def kernel_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and every program that a build needs, with stand-ins for the unused ones."""
    for program in ("make", "patch", "tar", "xz", "gcc", "ld"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    stand_ins = tmp_path / "stand-ins"
    stand_ins.mkdir()
    for program in ("flex", "bison", "bc"):
        (stand_ins / program).write_text("#!/bin/sh\nexit 1\n")
        (stand_ins / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{stand_ins}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "blklab" / "kernels"


@pytest.fixture
def kernel_tree(tmp_path: Path) -> Path:
    """A user's tree of the stand-in source."""
    return make_tree(tmp_path / "linux-6.1.7")


def make_tree(folder: Path) -> Path:
    contents = {
        "Makefile": MAKEFILE,
        "dropped": "CONFIG_NOTHING=y\n",
        "arch/um/Kconfig": "config UML_TIME_TRAVEL_SUPPORT\n\tbool\n",
        "arch/x86/um/Kconfig": "",
        "arch/arm/Kconfig": "",
        "arch/arm/kernel.c": "left out\n",
        "block/Kconfig": KCONFIG,
        "block/bfq.c": "bfq\n",
        "block/kyber.c": KYBER,
        "init/main.c": "main\n",
        "Documentation/block/kyber.rst": "Kyber\n=====\n",
    }
    for path, text in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.fixture
def kernel_patch(tmp_path: Path) -> Path:
    path = tmp_path / "slower.patch"
    path.write_text(PATCH)
    return path
