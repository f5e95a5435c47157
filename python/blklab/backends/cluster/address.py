"""The address of a Dask scheduler, checked before Dask gets it.

Dask tries a wrong address again and again, waits for ever for a program that accepts connections and says
nothing, and waits for what it has begun when it gives up.
"""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from blklab.errors import RequirementError, reason_of

_SCHEMES = ("tcp", "tls", "ws", "wss")
_CONNECT_S = 5.0


def require_answer(address: str) -> None:
    """Checks that somebody accepts connections at an address.

    Args:
        address: ``tcp://host:8786`` or ``host:8786``; Dask knows further schemes.

    Raises:
        RequirementError: if it is no address, or if nobody does.
    """
    try:
        place = urlsplit(address if "://" in address else f"tcp://{address}")
        host, port = place.hostname, place.port
    except ValueError as error:
        raise nobody_answers(address, str(error).lower()) from None
    if place.scheme not in _SCHEMES:
        raise nobody_answers(address, f"blklab knows {', '.join(_SCHEMES)}, not {place.scheme}")
    if host is None or port is None:
        raise nobody_answers(address, f"it lacks a {'host' if host is None else 'port'}")
    try:
        with socket.create_connection((host, port), timeout=_CONNECT_S) as connection:
            # A scheduler introduces itself at once, but not within TLS or HTTP.
            introduced = place.scheme != "tcp" or bool(connection.recv(1))
    except TimeoutError as error:
        raise nobody_answers(address, f"not within {_CONNECT_S:.0f} s") from error
    except OSError as error:
        raise nobody_answers(address, reason_of(error)) from error
    if not introduced:
        raise nobody_answers(address, "the connection was closed")


def nobody_answers(address: str, reason: str) -> RequirementError:
    """The error for an address at which there is no scheduler."""
    return RequirementError(
        f"no Dask scheduler answers at {address}: {reason}",
        hint="start one with `dask scheduler`; it prints its address, such as tcp://10.0.0.5:8786",
    )
