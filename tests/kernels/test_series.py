"""Series of patches: mailboxes and folders, in the order of ``git am``, without cover letters and replies."""

from __future__ import annotations

import base64
import quopri
import shutil
import subprocess
from pathlib import Path

import pytest

from blklab.errors import PatchError, UnknownNameError
from blklab.guests.kernels.patches import apply_patches
from blklab.guests.kernels.series import read_series

STAMP = "Mon Sep 17 00:00:00 2001"
COVER = "Subject: [PATCH 0/2] two lines\n\nThey are needed.\n"
REPLY = "Subject: Re: [PATCH 1/2] first\n\n> @@ -1,2 +1,3 @@\n> +one\nWhy?\n"


def change(before: str, after: str) -> str:
    return f"--- a/block/a.c\n+++ b/block/a.c\n@@ -1,1 +1,1 @@\n-{before}\n+{after}\n"


def patch_mail(number: int, before: str, after: str) -> str:
    return (
        f"Subject: [PATCH {number}/2] {after}\n\nWhy.\n---\n block/a.c\n\n{change(before, after)}-- \n2.39\n"
    )


def mailbox(*mails: str) -> str:
    return "".join(f"From {number:040x} {STAMP}\n{mail}\n" for number, mail in enumerate(mails))


def applied(series: Path, tmp_path: Path) -> str:
    """The file after a series that begins with ``zero``."""
    if shutil.which("patch") is None:
        pytest.skip("patch is not installed")
    source = tmp_path / "source"
    (source / "block").mkdir(parents=True)
    (source / "block" / "a.c").write_text("zero\n")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    apply_patches(read_series(str(series)), source, scratch)
    return (source / "block" / "a.c").read_text()


def test_a_mailbox_is_applied_in_its_order(tmp_path: Path) -> None:
    path = tmp_path / "series.mbox"
    mails = [COVER, patch_mail(1, "zero", "one"), REPLY, patch_mail(2, "one", "two")]
    path.write_text(mailbox(*mails))
    first, second = read_series(str(path))
    assert (first.name, second.name) == ("series.mbox 1/2", "series.mbox 2/2")
    assert second.part == '2 of 2, "[PATCH 2/2] two"'
    assert applied(path, tmp_path) == "two\n"


@pytest.mark.parametrize("encoding", ["base64", "quoted-printable"])
def test_encoded_mails_are_decoded(tmp_path: Path, encoding: str) -> None:
    encode = base64.encodebytes if encoding == "base64" else quopri.encodestring
    body = encode(("Größe.\n---\n" + change("zero", "one = größer")).encode()).decode()
    head = (
        f"Subject: a change\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: {encoding}\n"
    )
    path = tmp_path / "one.mbox"
    path.write_text(mailbox(f"{head}\n{body}"))
    (patch,) = read_series(str(path))
    assert (patch.name, patch.part) == ("one.mbox", "")
    assert applied(path, tmp_path) == "one = größer\n"


def test_a_folder_is_applied_by_name_without_its_cover_letter(tmp_path: Path) -> None:
    folder = tmp_path / "series.d"
    folder.mkdir()
    (folder / "v2-0000-cover-letter.patch").write_text(COVER)
    (folder / "v2-0001-first.patch").write_text(patch_mail(1, "zero", "one"))
    (folder / "v2-0002-second.patch").write_text(patch_mail(2, "one", "two"))
    assert applied(folder, tmp_path) == "two\n"


def test_a_quilt_series_has_its_own_order(tmp_path: Path) -> None:
    (tmp_path / "z.patch").write_text(change("zero", "one"))
    (tmp_path / "a.patch").write_text(change("one", "two"))
    (tmp_path / "unused.patch").write_text(change("two", "three"))
    (tmp_path / "series").write_text("# ours\nz.patch -p1\n\na.patch # later\n")
    assert applied(tmp_path, tmp_path) == "two\n"


def test_what_git_writes_is_what_is_applied(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    repository = tmp_path / "repository"
    (repository / "block").mkdir(parents=True)

    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=tester", "-c", "user.email=tester@example.org"]
        command = ["git", "-C", str(repository), *identity, *arguments]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout

    git("init", "--quiet")
    for text in ("zero", "one", "two"):
        (repository / "block" / "a.c").write_text(f"{text}\n")
        git("add", ".")
        git("commit", "--quiet", "--message", f"From {text} on\n\nFrom here it is {text}.")
    series = tmp_path / "series.mbox"
    series.write_text(git("format-patch", "--stdout", "--cover-letter", "HEAD~2"))
    assert len(read_series(str(series))) == 2
    assert applied(series, tmp_path) == "two\n"


def test_a_part_that_does_not_fit_is_named(tmp_path: Path) -> None:
    path = tmp_path / "series.mbox"
    path.write_text(mailbox(patch_mail(1, "zero", "one"), patch_mail(2, "ONE", "two")))
    with pytest.raises(PatchError, match=r'series\.mbox \(2 of 2, "\[PATCH 2/2\] two"\) does not apply'):
        applied(path, tmp_path)
    assert (tmp_path / "source" / "block" / "a.c").read_text() == "zero\n"


def test_series_without_a_change_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PatchError, match="holds no patch"):
        read_series(str(tmp_path))
    path = tmp_path / "talk.mbox"
    path.write_text(mailbox(COVER, "Subject: Re: two lines\n\nNo.\n"))
    with pytest.raises(PatchError, match="is not a patch"):
        read_series(str(path))
    (tmp_path / "series").write_text("lost.patch\n")
    with pytest.raises(UnknownNameError, match="lost"):
        read_series(str(tmp_path))
