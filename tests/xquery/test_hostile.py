"""Queries that want more than a document: files, the network, the environment, all memory, for ever."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from aioflow.processes.frames import Limits
from aioflow.processes.pool import call_once
from aioflow.xquery import QueryError, QueryProcesses, XQueryTask, worker
from aioflow.xquery.worker import answer

SECRET = "the-secret-of-the-file"


def with_processes(use: Callable[[QueryProcesses], Coroutine[Any, Any, Any]], **settings: Any) -> Any:
    async def main() -> Any:
        processes = QueryProcesses({"xquery": settings})
        try:
            return await use(processes)
        finally:
            await processes.close()

    return asyncio.run(main())


def told(program: str, *, is_stylesheet: bool = False, **settings: Any) -> str:
    """The result of a query or stylesheet as text, or the reason why there is none."""

    async def use(processes: QueryProcesses) -> str:
        try:
            return (
                await processes.answer(XQueryTask(program, "<x/>", is_stylesheet=is_stylesheet))
            ).text or ""
        except QueryError as error:
            return str(error)

    return str(with_processes(use, **settings))


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.xml"
    path.write_text(f"<secret>{SECRET}</secret>")
    return path


@pytest.fixture
def listener() -> Iterator[tuple[str, list[bytes]]]:
    """An address on this machine, and what connected to it."""
    connections: list[bytes] = []
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                connections.append(b"")
                connection.close()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/", connections
        server.shutdown(socket.SHUT_RDWR)


READERS = [
    "doc('{0}')",
    "doc-available('{0}')",
    "collection('{0}')",
    "uri-collection('{0}')",
    "unparsed-text('{0}')",
    "unparsed-text-lines('{0}')",
    "unparsed-text-available('{0}')",
    "json-doc('{0}')",
    "import module namespace m = 'urn:m' at '{0}'; 1",
    "import schema 'urn:m' at '{0}'; 1",
    "load-xquery-module('urn:m', map {{'location-hints': '{0}'}})",
    "transform(map {{'stylesheet-location': '{0}', 'source-node': /}})",
    "parse-xml('<!DOCTYPE a [<!ENTITY x SYSTEM \"{0}\">]><a>&amp;x;</a>')",
    "parse-xml('<!DOCTYPE a SYSTEM \"{0}\"><a/>')",
    "parse-xml('<!DOCTYPE a [<!ENTITY % x SYSTEM \"{0}\"> %x;]><a/>')",
    'parse-xml(\'<a xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="{0}"/></a>\')',
    'parse-xml(\'<a xsi:noNamespaceSchemaLocation="{0}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"/>\')',
    "declare base-uri '{0}'; doc('')",
    "doc(resolve-uri('secret.xml', '{0}'))",
    "Q{{http://expath.org/ns/file}}read-text('{0}')",
    "Q{{java:java.nio.file.Files}}readString('{0}')",
    "Q{{http://saxon.sf.net/}}read-binary-resource('{0}')",
    "doc('jar:{0}!/x')",
]


@pytest.mark.parametrize("query", READERS)
def test_no_query_reads_a_file(query: str, secret: Path) -> None:
    for address in (secret.as_uri(), str(secret)):
        assert SECRET not in told(query.format(address))


@pytest.mark.parametrize("query", READERS)
def test_no_query_connects(query: str, listener: tuple[str, list[bytes]]) -> None:
    address, connections = listener
    told(query.format(address))
    assert connections == []


STYLESHEET = (
    '<xsl:stylesheet version="3.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">{}</xsl:stylesheet>'
)


@pytest.mark.parametrize(
    "body",
    [
        '<xsl:include href="{0}"/><xsl:template match="/"><a/></xsl:template>',
        '<xsl:import href="{0}"/><xsl:template match="/"><a/></xsl:template>',
        '<xsl:template match="/"><xsl:copy-of select="document(\'{0}\')"/></xsl:template>',
        '<xsl:template match="/"><xsl:source-document href="{0}"><xsl:copy-of select="."/>'
        "</xsl:source-document></xsl:template>",
        '<xsl:template match="/"><xsl:copy-of select="unparsed-text(\'{0}\')"/></xsl:template>',
        '<xsl:import-schema schema-location="{0}"/><xsl:template match="/"><a/></xsl:template>',
    ],
)
def test_no_stylesheet_reads_a_file_or_connects(
    body: str, secret: Path, listener: tuple[str, list[bytes]]
) -> None:
    address, connections = listener
    assert SECRET not in told(STYLESHEET.format(body.format(secret.as_uri())), is_stylesheet=True)
    told(STYLESHEET.format(body.format(address)), is_stylesheet=True)
    assert connections == []


def test_no_query_or_stylesheet_writes_a_file(tmp_path: Path) -> None:
    target = tmp_path / "written.xml"
    result = f'<xsl:result-document href="{target.as_uri()}"><a/></xsl:result-document>'
    writing = f'<xsl:template match="/">{result}</xsl:template>'
    told(STYLESHEET.format(writing), is_stylesheet=True)
    inner = STYLESHEET.format(writing).replace("'", "&apos;")
    told(f"transform(map {{'stylesheet-text': '{inner}', 'source-node': /}})")
    told(f"put(<a/>, '{target.as_uri()}')")
    told(f"Q{{http://expath.org/ns/file}}write('{target}', 'x')")
    assert list(tmp_path.iterdir()) == []


def test_the_environment_is_empty_and_the_folder_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", SECRET)
    assert told("count(available-environment-variables())") == "<result>0</result>"
    assert told("environment-variable('TOKEN')") == "<result/>"
    assert told("environment-variable('PATH')") == "<result/>"
    assert str(Path.cwd()) not in told("static-base-uri()")


def _try_to_open(path: str) -> list[str]:
    """In the other process, after a query: what the system says to files and sockets."""
    answer(XQueryTask("1"))
    refusals = []
    for attempt in (
        lambda: Path(path).read_text(),
        lambda: os.open(path, os.O_RDONLY),
        socket.socket,
        os.pipe,
        lambda: os.listdir("/"),
    ):
        try:
            attempt()
        except OSError as error:
            refusals.append(error.strerror or "")
    return [*refusals, str(dict(os.environ))]


def test_the_system_itself_refuses_files_and_connections_to_the_process(secret: Path) -> None:
    """Should SaxonC be deceived, there is still nothing that it could open."""
    found = call_once(_try_to_open, str(secret), limits=Limits(seconds=30), is_bare=True)
    assert found == ["Too many open files"] * 5 + ["{}"]


# --- too much -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            "count(for $a in 1 to 1000000, $b in 1 to 1000000 return $a * $b + count(/*))",
            "took longer than 1 s",
        ),
        ("declare function local:f($n) {local:f($n + 1)}; local:f(count(/*))", "took longer than 1 s"),
        ("declare function local:f($n) {1 + local:f($n + 1)}; local:f(count(/*))", "nested function calls"),
        ("matches(string-join((1 to 40) ! 'a'), '^(a+)+$' || name(/*))", ""),
        ("string-join(for $i in 1 to 300000000 return concat('abcdefghij', /*))", "needs more memory than"),
        ("<a>{for $i in 1 to 300000000 return <b>{$i, 'abcdefghijklmnopqrstuvwxyz'}</b>}</a>", "memory"),
        (
            "let $x := string(/) return fold-left(1 to 40, 'ab', function($s, $n) {$s || $s || $x})",
            "needs more memory",
        ),
        ("array {for $i in 1 to 300000000 return $i + count(/*)}", ""),
        (
            'parse-xml(\'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">'
            + "".join(
                f'<!ENTITY {chr(98 + level)} "{f"&amp;{chr(97 + level)};" * 10}">' for level in range(9)
            )
            + "]><a>&amp;j;</a>')",
            "DOCTYPE",
        ),
        ("parse-xml(string-join((1 to 1000000) ! '<a>'))", "256"),
        ("parse-json(string-join((1 to 3000000) ! '['))", ""),
    ],
)
def test_queries_that_take_too_much_have_an_error_within_the_limits(query: str, reason: str) -> None:
    seconds = 1 if "longer" in reason else 30
    assert reason in told(query, total_seconds=seconds, memory_bytes=400_000_000)


def test_the_processes_work_on_after_every_kind_of_end() -> None:
    async def use(processes: QueryProcesses) -> list[str]:
        found = []
        for query in (
            "1",
            "string-join(for $i in 1 to 300000000 return concat('abcdefghij', /*))",
            "2",
            "count(for $a in 1 to 1000000, $b in 1 to 1000000 return $a * $b + count(/*))",
            "3",
        ):
            try:
                found.append((await processes.answer(XQueryTask(query, "<x/>"), 2)).text or "")
            except QueryError:
                found.append("failed")
        return found

    texts = with_processes(use, memory_bytes=400_000_000)
    assert texts == ["<result>1</result>", "failed", "<result>2</result>", "failed", "<result>3</result>"]


def test_a_process_that_is_killed_is_replaced() -> None:
    async def use(processes: QueryProcesses) -> str:
        await processes.answer(XQueryTask("1"))
        for process in children():
            kill(process)
        return (await processes.answer(XQueryTask("2"))).text or ""

    assert with_processes(use) == "<result>2</result>"


def test_no_process_is_left_after_a_cancelled_query() -> None:
    before = children()

    async def use(processes: QueryProcesses) -> None:
        endless = XQueryTask(
            "count(for $a in 1 to 1000000, $b in 1 to 1000000 return $a * $b + count(/*))", "<x/>"
        )
        await processes.answer(XQueryTask("1"))
        asking = asyncio.ensure_future(processes.answer(endless))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait([asking])

    with_processes(use)
    assert children() == before


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)
    os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)


def children() -> set[int]:
    """The processes that this one started, and that have not ended."""
    listed = subprocess.run(
        ["ps", "-ww", "-o", "pid=,stat=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True
    )
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
    return {
        int(pid) for pid, state, args in rows if "aioflow.processes" in args and not state.startswith("Z")
    }


def test_what_a_query_traces_does_not_reach_the_terminal() -> None:
    script = (
        "import asyncio; from aioflow.xquery import QueryProcesses, XQueryTask\n"
        "async def main():\n"
        "    processes = QueryProcesses({})\n"
        "    print((await processes.answer(XQueryTask(\"trace('noise', 'label')\"))).text)\n"
        "    await processes.close()\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("<result>noise</result>\n", "")


def _unsealed(query: str) -> str:
    """In the other process: the answer of SaxonC alone, without the limit of the system."""
    setattr(worker, "seal", lambda: None)  # noqa: B010  # it is not exported
    found = answer(XQueryTask(query, "<x/>"))
    return f"{found.text} {found.problem}"


@pytest.mark.parametrize("query", READERS)
def test_saxon_refuses_files_and_connections_by_itself_too(
    query: str, secret: Path, listener: tuple[str, list[bytes]]
) -> None:
    """Where the system has no such limit, there is still the first barrier."""
    address, connections = listener
    told_of_file = call_once(
        _unsealed, query.format(secret.as_uri()), limits=Limits(seconds=30), is_bare=True
    )
    assert SECRET not in told_of_file
    call_once(_unsealed, query.format(address), limits=Limits(seconds=30), is_bare=True)
    assert connections == []
