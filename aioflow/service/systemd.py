"""Messages to systemd: the service is ready, alive, or stopping.

The protocol is one datagram with a few words. The packages for it are as small as this module.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress

_SOCKET = "NOTIFY_SOCKET"
_WATCHDOG = "WATCHDOG_USEC"
_WATCHDOG_PROCESS = "WATCHDOG_PID"


def notify(state: str) -> bool:
    """Send a state such as `READY=1`; return whether a manager listens."""
    address = os.environ.get(_SOCKET, "")
    if not address.startswith(("/", "@")):
        return False
    # A name that begins with @ is in the abstract namespace.
    target = "\0" + address[1:] if address.startswith("@") else address
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.connect(target)
        channel.sendall(state.encode())
        return True
    return False


def watchdog_seconds() -> float | None:
    """Return the time within which systemd wants to hear from this process, or None."""
    wanted = os.environ.get(_WATCHDOG, "")
    process = os.environ.get(_WATCHDOG_PROCESS, "")
    if not wanted.isdigit() or (process and process != str(os.getpid())):
        return None
    return int(wanted) / 1_000_000


async def keep_watchdog() -> None:
    """Tell systemd again and again that the loop is alive; return at once if it does not ask."""
    limit = watchdog_seconds()
    while limit:
        notify("WATCHDOG=1")
        await asyncio.sleep(limit / 3)
