"""Mail into a Maildir: a folder of messages that mail programs read, and no server is needed for."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from aioflow.folders import shown_path
from aioflow.messages.message import DeliveryError
from aioflow.messages.mime import Mail
from aioflow.state.moments import moment

_WRITTEN = moment("maildir-written", "a message lies in tmp of a Maildir, where nobody reads it")
_MOVED = moment("maildir-moved", "a message lies in new of a Maildir, and nobody has noted it yet")

_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")


async def put(mail: Mail, folder: Path) -> str:
    """Put a message into a Maildir, unless it has it already; returns where."""
    from anyio import to_thread

    try:
        return await to_thread.run_sync(_put, folder, mail)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DeliveryError(f"cannot write into the Maildir {shown_path(folder)}: {reason}") from error


def _name(key: str) -> str:
    """The same for every copy of a message, and for no other message."""
    plain = key if _PLAIN.fullmatch(key) else hashlib.sha256(key.encode()).hexdigest()
    return f"{plain}.aioflow"


def _put(folder: Path, mail: Mail) -> str:
    name = _name(mail.key)
    data = mail.as_bytes(with_bcc=True).replace(b"\r\n", b"\n")
    for each in ("tmp", "new", "cur"):
        (folder / each).mkdir(mode=0o700, parents=True, exist_ok=True)
    place = folder / "new" / name
    # Who has read it has moved it, with marks behind its name.
    if place.exists() or any(found.name.partition(":")[0] == name for found in (folder / "cur").iterdir()):
        return f"{name} was there already"
    draft = folder / "tmp" / name
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    _WRITTEN()
    draft.rename(place)
    _sync(folder / "new")
    _MOVED()
    return f"kept as {shown_path(place)}"


def _sync(folder: Path) -> None:
    """Make sure that the names in a folder outlast a crash, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
