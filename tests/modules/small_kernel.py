"""A kernel of a few structures: its headers, its source, and its type information, as gcc writes it."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

RELEASE = "6.1.0-57-amd64"
BUILD = "#1 SMP Debian 6.1.192-3 (2026-11-26)"

BLK_MQ_H = """\
#ifndef BLK_MQ_H
#define BLK_MQ_H
enum { BLK_MQ_F_SHOULD_MERGE = 1, BLK_MQ_F_STACKING = 4 };
struct request_queue { struct elevator_queue *elevator; unsigned long queue_flags; int nr_requests; };
struct bio { struct bio *bi_next; unsigned int bi_opf; };
struct request {
    struct request_queue *q;
    union { struct { long seq; struct request *next; } flush; long priv[2]; };
    struct { int counter; } ref;
    int tag;
};
struct blk_mq_hw_ctx { long state; struct request_queue *queue; };
struct blk_mq_ctx { int cpu; };
struct blk_mq_tag_set { unsigned int flags; };
struct blk_mq_tags { int nr_tags; };
struct gendisk { int major; };
struct block_device { long bd_start_sect; };
#endif
"""
ELEVATOR_H = """\
#ifndef ELEVATOR_H
#define ELEVATOR_H
struct elevator_mq_ops { int (*init_sched)(void); };
struct elevator_type {
    struct elevator_mq_ops ops; const char *elevator_name; const char *elevator_alias;
};
struct elevator_queue { struct elevator_type *type; unsigned int registered:1, dying:2; };
#endif
"""
KYBER_C = """\
#include <linux/module.h>
#include "elevator.h"
#include "blk-mq.h"

struct kyber_data { struct request *next; };

static int kyber_init(void)
{
\treturn BLK_MQ_F_STACKING;
}

struct elevator_type kyber_sched = {
\t.ops = { .init_sched = kyber_init },
\t.elevator_name = "kyber",
};
MODULE_LICENSE("GPL");
"""
PATCH = """\
--- a/block/kyber-iosched.c
+++ b/block/kyber-iosched.c
@@ -7,6 +7,7 @@ struct kyber_data { struct request *next; };
\x20
 static int kyber_init(void)
 {
+\tmdelay(100);
 \treturn BLK_MQ_F_STACKING;
 }
\x20
"""
_MODULE_H = """\
#define MODULE_LICENSE(text) static const char license[] __attribute__((used)) = text
#define MODULE_VERSION(text) static const char version[] __attribute__((used)) = "version=" text
#define mdelay(milliseconds) ((void)(milliseconds))
"""
_BUILD = """\
include $(M)/Makefile
src := $(M)
FLAGS := -c -I$(CURDIR)/include -I$(M)
name := $(basename $(obj-m))
%.o:
\t$(CC) $(FLAGS) $(CFLAGS_$@) -o $(M)/$@ $(M)/$*.c
modules: $($(name)-y)
\tcd $(M) && ld -r -o $(name).ko $^
"""
_KERNEL_C = """\
#include "elevator.h"
#include "blk-mq.h"
int flags = BLK_MQ_F_STACKING;
struct request_queue a; struct bio b; struct request c; struct blk_mq_hw_ctx d; struct blk_mq_ctx e;
struct blk_mq_tag_set f; struct blk_mq_tags g; struct gendisk h; struct block_device i;
struct elevator_type j; struct elevator_queue k; struct elevator_mq_ops l;
__typeof__(BLK_MQ_F_STACKING) m; enum blk_eh_timer_return { BLK_EH_DONE = 3 } n;
"""


@dataclass
class SmallKernel:
    """The folders of a kernel."""

    headers: Path
    source: Path
    types: Path

    def change(self, file: str, before: str, after: str) -> None:
        """Changes a file of the source, but not of the kernel that was compiled from it."""
        path = self.source / file
        text = path.read_text()
        assert before in text
        path.write_text(text.replace(before, after))


def make_small_kernel(folder: Path) -> SmallKernel:
    """Writes a kernel's headers and source, and compiles its type information."""
    if shutil.which("gcc") is None or shutil.which("make") is None:
        pytest.skip("needs gcc and make")
    headers, source = folder / "headers", folder / "source"
    compiler = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True).stdout
    files = {
        headers / "Makefile": _BUILD,
        headers / ".config": f'CONFIG_CC_VERSION_TEXT="{compiler.splitlines()[0]}"\n',
        headers / "include/linux/module.h": _MODULE_H,
        headers / "include/generated/utsrelease.h": f'#define UTS_RELEASE "{RELEASE}"\n',
        headers / "include/generated/utsversion.h": f'#define UTS_VERSION "{BUILD}"\n',
        headers / "include/generated/package.h": '#define LINUX_PACKAGE_ID " Debian 6.1.192-3"\n',
        headers / "include/generated/uapi/linux/version.h": (
            "#define LINUX_VERSION_MAJOR 6\n#define LINUX_VERSION_PATCHLEVEL 1\n"
            "#define LINUX_VERSION_SUBLEVEL 192\n"
        ),
        source / "Makefile": "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 192\n",
        source / "block/Makefile": "obj-y := elevator.o\n",
        source / "block/blk-mq.h": BLK_MQ_H,
        source / "block/elevator.h": ELEVATOR_H,
        source / "block/kyber-iosched.c": KYBER_C,
        folder / "kernel.c": _KERNEL_C,
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    types = folder / "kernel.o"
    command = ["gcc", "-gbtf", "-c", f"-I{source / 'block'}", "-o", str(types), str(folder / "kernel.c")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("needs a gcc that writes BTF (12 or later)")
    return SmallKernel(headers, source, types)
