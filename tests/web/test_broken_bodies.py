"""Bodies that break off: they are asked for again, and as long as they are broken no row of them counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from aioflow import Engine, RunError, loads
from aioflow.testing import ScriptedSite, assert_nothing_left, run, run_plan
from aioflow.testing.scripted import Answer
from aioflow.web import Client
from aioflow.web.errors import ConnectionFailedError
from tests.web.misbehaving import Line, Server, answer
from tests.web.scripted import Chunks
from tests.web.test_transport import CHUNKED, in_chunks

COUNT = 400

READERS: Mapping[str, tuple[str, bytes, bytes, bytes]] = {
    "json": ('READ: json; EACH: "items[*]"; n: "n" number', b'{"items": [', b'{"n": %d},', b'{"n": -1}]}'),
    "csv": ("READ: csv; n: number", b"n,text\n", b"%d,x\n", b"-1,x\n"),
    "xml": (
        'READ: xml; EACH: "/feed/entry"; n: "n" number',
        b"<feed>",
        b"<entry><n>%d</n></entry>",
        b"<entry><n>-1</n></entry></feed>",
    ),
    "text": ('READ: text lines; n: "row (-?[0-9]+)" number', b"", b"row %d;\n", b"row -1;\n"),
    "html": ('EACH: "li"; n: "b" number', b"<ul>", b"<li><b>%d</b></li>", b"<li><b>-1</b></li></ul>"),
}
EXPECTED = [*range(COUNT), -1]


def page(reader: str) -> bytes:
    _, start, each, end = READERS[reader]
    return start + b"".join(each % number for number in range(COUNT)) + end


def wrapper(reader: str, more: str = "") -> str:
    return f'WRAPPER w (link) {{ GET: "{{+link}}"; {READERS[reader][0]}{more} }}'


async def _short(line: Line, body: bytes) -> None:
    await line.send(answer(body[: len(body) * 3 // 4], length=len(body)))
    line.close()


async def _reset(line: Line, body: bytes) -> None:
    await line.send(answer(body[: len(body) * 3 // 4], length=len(body)))
    line.reset()


async def _endless_chunks(line: Line, body: bytes) -> None:
    await line.send(CHUNKED + in_chunks(body[: len(body) * 3 // 4]))
    line.close()


BREAKS = {"short": _short, "reset": _reset, "chunked": _endless_chunks}


def broken_times(times: float, broken: Callable[[Line, bytes], Any], body: bytes) -> Any:
    """A server whose answer breaks off so many times."""
    asked = 0

    async def behave(line: Line) -> None:
        nonlocal asked
        while True:
            await line.request()
            asked += 1
            if asked <= times:
                await broken(line, body)
                return
            await line.send(answer(body))

    return behave


@asynccontextmanager
async def engine_for(server: Server, **http: Any) -> AsyncIterator[Engine]:
    settings = {"health": False, "robots": False, "retry_base_seconds": 0.001, "allow": [server.host], **http}
    engine = Engine(configuration={"http": settings})
    async with engine:
        yield engine
    await server.all_lost()
    assert_nothing_left(engine)


PLAN = '{} PLAN p {{ INPUT: x OUTPUT: out BODY {{ wrapper ("w", x : out) }} }}'
TAKING = '{} PLAN p {{ INPUT: x OUTPUT: out, failed BODY {{ wrapper ("w", x : out) {{ERRORS: failed}} }} }}'


async def rows_until_failure(engine: Engine, wrapper: str, server: Server) -> list[int]:
    """What leaves before a run fails for want of ERRORS."""
    stream = engine.stream(loads(PLAN.format(wrapper)), x=[{"link": server.url()}])
    seen = []
    try:
        async for row in stream:
            seen.append(row["n"])  # noqa: PERF401  # a comprehension would lose them with the failure
    except RunError as error:
        assert "the body broke off" in str(error) or "the connection broke" in str(error)  # noqa: PT017
        return seen
    pytest.fail("the run did not fail")


@pytest.mark.parametrize("text", [PLAN, TAKING], ids=["plain", "errors"])
@pytest.mark.parametrize("broken", BREAKS)
@pytest.mark.parametrize("reader", READERS)
async def test_a_body_that_broke_off_is_asked_for_again(reader: str, broken: str, text: str) -> None:
    async with Server(broken_times(2, BREAKS[broken], page(reader))) as server, engine_for(server) as engine:
        result = await engine.run(loads(text.format(wrapper(reader))), x=[{"link": server.url()}])
        assert [row["n"] for row in result.outputs["out"]] == EXPECTED
        assert "failed" not in result.outputs or not len(result.outputs["failed"])
        assert len(server.requests) == 3


@pytest.mark.parametrize("broken", BREAKS)
@pytest.mark.parametrize("reader", READERS)
async def test_no_row_of_a_body_that_stays_broken_counts(reader: str, broken: str) -> None:
    behave = broken_times(float("inf"), BREAKS[broken], page(reader))
    async with Server(behave) as server, engine_for(server, retries=2) as engine:
        result = await engine.run(loads(TAKING.format(wrapper(reader))), x=[{"link": server.url()}])
        assert len(result.outputs["out"]) == 0
        (failed,) = result.outputs["failed"]
        assert (failed["error-kind"], failed["attempts"]) == ("ConnectionFailedError", 3)
        assert len(server.requests) == 3
        assert await rows_until_failure(engine, wrapper(reader), server) == []


async def test_a_request_that_changes_the_world_is_not_repeated_for_its_body() -> None:
    posts = wrapper("json").replace("GET:", "POST:")
    behave = broken_times(float("inf"), _short, page("json"))
    async with Server(behave) as server, engine_for(server) as engine:
        result = await engine.run(loads(TAKING.format(posts)), x=[{"link": server.url()}])
        assert (len(result.outputs["out"]), len(result.outputs["failed"])) == (0, 1)
        assert len(server.requests) == 1


async def test_pages_before_one_that_stays_broken_do_not_count_where_the_failure_is_taken() -> None:
    following = b'{"items": [{"n": 1}, {"n": 2}], "next": "/broken"}'

    async def behave(line: Line) -> None:
        while True:
            if b"/broken" in (await line.request()).split(b"\r\n")[0]:
                await _short(line, following)
                return
            await line.send(answer(following))

    paged = wrapper("json", '; PAGING: next "next"')
    async with Server(behave) as server, engine_for(server, retries=0) as engine:
        result = await engine.run(loads(TAKING.format(paged)), x=[{"link": server.url()}])
        assert (len(result.outputs["out"]), len(result.outputs["failed"])) == (0, 1)
        assert await rows_until_failure(engine, paged, server) == [1, 2]


async def test_a_recording_has_the_answer_that_was_whole(tmp_path: Path) -> None:
    plan, path = loads(PLAN.format(wrapper("csv"))), tmp_path / "recorded.jsonl"
    async with Server(broken_times(1, _short, page("csv"))) as server:
        rows = [{"link": server.url()}]
        for settings in ({"record": str(path)}, {"replay": str(path)}):
            async with engine_for(server, **settings) as engine:
                assert [row["n"] for row in await engine.run(plan, x=rows)] == EXPECTED
        assert len(server.requests) == 2


# --- on a virtual clock, over a scripted network ----------------------------------------------------


def pieces(reader: str, *more: Exception, seconds: float = 0.0) -> Answer:
    body = page(reader)
    parts = [body[at : at + 1000] for at in range(0, len(body), 1000)]
    if more:
        parts = parts[: len(parts) * 3 // 4]
    return Answer(Chunks(*parts, *more, seconds=seconds))


QUIET = {"health": False, "retries": 0, "breaker_failures": 0}
LINK = "http://a.example/"


@pytest.mark.parametrize("reader", [reader for reader in READERS if reader != "html"])
def test_rows_leave_when_their_page_is_whole(reader: str) -> None:
    plan = loads(PLAN.format(wrapper(reader)))
    answered = pieces(reader, seconds=1.0)
    length = -(-len(page(reader)) // 1000)

    async def main() -> list[float]:
        async with (
            ScriptedSite({LINK: answered}).client({"http": QUIET}) as client,
            Engine(configuration={"http": QUIET}, services={Client: client}) as engine,
        ):
            clock = asyncio.get_running_loop().time
            return [clock() async for _ in engine.stream(plan, x=[{"link": LINK}])]

    assert set(run(main())) == {length + 1.0}


def test_held_bodies_stand_on_the_account_of_the_run() -> None:
    rows = 100_000
    body = b"n,text\n" + b"".join(b"%d,x\n" % number for number in range(rows))
    parts = [body[at : at + 10_000] for at in range(0, len(body), 10_000)]
    found = run_plan(
        PLAN.format(wrapper("csv")),
        network=ScriptedSite({LINK: Answer(Chunks(*parts))}),
        configuration={"http": QUIET},
        memory_bytes=1,
        x=[{"link": LINK}],
    )
    assert [row["n"] for row in found] == list(range(rows))
    assert found.statistics.spilled_rows > len(parts) // 2


@pytest.mark.parametrize("text", [PLAN, TAKING], ids=["plain", "errors"])
@pytest.mark.parametrize("is_whole", [True, False])
def test_a_body_beyond_what_is_held_streams_and_its_failure_ends_the_run(text: str, is_whole: bool) -> None:
    trouble: Sequence[Exception] = () if is_whole else (ConnectionFailedError("the body broke off"),)
    site = ScriptedSite({LINK: lambda request: pieces("json", *trouble)})
    settings = {**QUIET, "retries": 3, "hold_bytes": 1500}

    def ask() -> Any:
        return run_plan(
            text.format(wrapper("json")), network=site, configuration={"http": settings}, x=[{"link": LINK}]
        )

    if is_whole:
        assert [row["n"] for row in ask().outputs["out"]] == EXPECTED
        return
    with pytest.raises(RunError, match=r"the body broke off.*http\.hold_bytes \(1,500 bytes\)"):
        ask()
    assert len(site.urls) == 1


def test_a_large_page_without_items_keeps_its_tuple_with_outer() -> None:
    plan = PLAN.format(wrapper("json")).replace("x : out)", "x : out) {OUTER}")
    found = run_plan(
        plan,
        network=ScriptedSite({LINK: Answer(Chunks(b'{"items": [', b"]}"))}),
        configuration={"http": {**QUIET, "hold_bytes": 1}},
        x=[{"link": LINK}],
    )
    assert [dict(row) for row in found] == [{"link": LINK, "n": None}]
