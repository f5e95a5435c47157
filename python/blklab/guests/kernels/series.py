"""Series of patches: a mailbox as of ``git format-patch --stdout`` and ``b4 am``, or a folder of patches."""

from __future__ import annotations

import email
import email.policy
import itertools
import re
from pathlib import Path

from blklab.errors import PatchError
from blklab.guests.kernels.patches import Patch, find_patch, has_hunk, parse_patch, read_content

_MAIL = re.compile(rb"^From \S+ +\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4}\r?$", re.MULTILINE)
_ENCODED = re.compile(
    rb"^Content-Transfer-Encoding: *(?:base64|quoted-printable)", re.MULTILINE | re.IGNORECASE
)
_COVER_LETTER = re.compile(r"(?:v\d+-)?0000-")


def read_series(text: str) -> tuple[Patch, ...]:
    """Reads a patch, or all patches of a series, in the order in which ``git am`` applies them.

    In a mailbox that is the order of its mails; mails without a change, such as cover letters and replies,
    are left out. A folder holds its patches as ``*.patch``, in the order of their names, or in that of a file
    ``series``, as quilt keeps one.

    Args:
        text: A file, a folder, or the name of a shipped patch.

    Raises:
        UnknownNameError: if there is no such file or patch.
        PatchError: if a part of it is not a patch, or there is none.
    """
    path = find_patch(text)
    if not path.is_dir():
        return _patches_in(path)
    found = [patch for part in _files_of_series(path) for patch in _patches_in(part)]
    if not found:
        raise PatchError(f"the folder {path} holds no patch", hint="its patches are named *.patch")
    return tuple(found)


def _files_of_series(folder: Path) -> list[Path]:
    listed = folder / "series"
    if listed.is_file():
        lines = (line.partition("#")[0].split() for line in listed.read_text(encoding="utf-8").splitlines())
        # Options such as -p1 may follow a name.
        return [folder / words[0] for words in lines if words]
    return [path for path in sorted(folder.glob("*.patch")) if not _COVER_LETTER.match(path.name)]


def _patches_in(path: Path) -> tuple[Patch, ...]:
    content = read_content(path)
    bounds = [*(match.start() for match in _MAIL.finditer(content)), len(content)]
    mails = [_without_encoding(content[start:end]) for start, end in itertools.pairwise(bounds)]
    mails = [mail for mail in mails if has_hunk(mail)]
    if len(mails) < 2:
        whole = mails[0] if mails else _without_encoding(content)
        return (parse_patch(whole, Patch(path.name, path.absolute(), b"", ())),)
    return tuple(
        parse_patch(mail, _origin(path, mail, number, len(mails)))
        for number, mail in enumerate(mails, start=1)
    )


def _origin(path: Path, mail: bytes, number: int, count: int) -> Patch:
    subject = " ".join(str(email.message_from_bytes(mail)["Subject"] or "").split())
    part = f"{number} of {count}" + (f', "{subject}"' if subject else "")
    return Patch(f"{path.name} {number}/{count}", path.absolute(), b"", (), part=part)


def _without_encoding(mail: bytes) -> bytes:
    """A mail's text as it was written, if the mail is encoded for transport; else the same bytes."""
    head = mail.partition(b"\n\n")[0]
    if not _ENCODED.search(head):
        return mail
    message = email.message_from_bytes(mail, policy=email.policy.default)
    subject = f"Subject: {message['Subject']}\n\n".encode()
    payload = message.get_payload(decode=True)
    return subject + (payload if isinstance(payload, bytes) else b"")
