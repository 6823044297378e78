"""Live events over REST, and the other streams that end when the server stops."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from aioflow.service.events import ServiceEvent
from aioflow.service.run_log import RunLogs
from tests.service.rest.served import Gate, Served, served, task


class Events:
    """The events that a listener gets."""

    def __init__(self, lines: Any) -> None:
        self._lines = lines
        self.id = ""

    async def next(self, kind: str) -> Any:
        """Return the data of the next event of a kind."""
        async with asyncio.timeout(30):
            name = ""
            async for line in self._lines:
                text = line.decode().rstrip("\n")
                if text.startswith("id: "):
                    self.id = text.removeprefix("id: ")
                elif text.startswith("event: "):
                    name = text.removeprefix("event: ")
                elif text.startswith("data: ") and name == kind:
                    return json.loads(text.removeprefix("data: "))
        raise AssertionError(f"the stream ended without {kind}")

    async def rest(self) -> str:
        """Return everything until the end of the stream."""
        async with asyncio.timeout(30):
            return "".join([line.decode() async for line in self._lines])


@asynccontextmanager
async def listening(
    service: Served, query: str = "", role: str = "viewer", last: str = ""
) -> AsyncIterator[Events]:
    headers = {"Authorization": f"Bearer {service.tokens[role]}"}
    if last:
        headers["Last-Event-ID"] = last
    async with service.session.get(f"{service.address}/api/events{query}", headers=headers) as response:
        assert response.status == 200
        assert response.content_type == "text/event-stream"
        yield Events(response.content)


async def test_a_listener_gets_states_lines_and_progress_of_runs(tmp_path: Path) -> None:
    async with served(tmp_path) as service, listening(service) as events:
        assert (await events.next("ready"))["running"] == []
        rows = [{"x": number} for number in range(100)]
        await service.post("/api/tasks", {"task": task("waiting", "waiting.plan", inputs={"a": rows})})
        assert (await events.next("task"))["task_id"]
        await service.post("/api/tasks/waiting/run")
        started = await events.next("run")
        assert started["data"] == {"state": "running"}
        line = await events.next("log")
        assert line["task_id"] == started["task_id"]
        assert line["run_id"] == started["run_id"]
        progress = await events.next("progress")
        while {each["operator"] for each in progress["steps"] if each["rows_in"]} != {"log", "apply"}:
            progress = await events.next("progress")
        assert progress["run_id"] == started["run_id"]
        (edge,) = [each for each in progress["edges"] if each["reader"] == "apply"]
        assert (edge["variable"], edge["rows_received"] + edge["rows_waiting"]) == ("a", 100)
        assert edge["sample"] in rows
        Gate.opened.set()
        assert (await events.next("run"))["data"]["state"] == "succeeded"


async def test_a_listener_may_ask_for_one_task_and_some_kinds(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        await service.post("/api/tasks", {"task": task("one")})
        await service.post("/api/tasks", {"task": task("two")})
        wanted = (await service.get("/api/tasks/two"))["task_id"]
        async with listening(service, "?task=two&kind=run") as events:
            await events.next("ready")
            assert await service.run("one") == "succeeded"
            assert await service.run("two") == "succeeded"
            for state in ("running", "succeeded"):
                found = await events.next("run")
                assert (found["task_id"], found["data"]["state"]) == (wanted, state)
        status, _ = await service.ask("GET", "/api/events?task=three")
        assert status == 404
        status, _ = await service.ask("GET", "/api/events?kind=gossip")
        assert status == 400


async def test_streams_end_when_the_server_stops(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        assert service.service.events.is_watched is False
        async with listening(service) as events:
            await events.next("ready")
            assert service.service.events.is_watched
            ended = asyncio.create_task(events.rest())
            await service.stop()
            assert "event: run" not in await ended
        assert not service.service.events.is_watched


async def test_many_lines_at_once_are_counted_and_left_out(tmp_path: Path) -> None:
    async with served(tmp_path) as service, listening(service) as events:
        await events.next("ready")
        now = service.service.clock()
        for number in range(900):
            service.service.events.publish(ServiceEvent("log", now, data={"line": str(number)}))
        assert await events.next("dropped") == {"kind": "log", "number": 700}
        for number in range(2000):
            service.service.events.publish(ServiceEvent("alert", now, data={"lines": [str(number)]}))
        assert (await events.next("dropped"))["data"]["number"] == 1000


@pytest.mark.parametrize("is_busy", [False, True])
async def test_a_listener_whose_token_was_revoked_gets_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_busy: bool
) -> None:
    monkeypatch.setattr("aioflow.service.rest.handlers.events._CHECK_SECONDS", 0.0)
    async with served(tmp_path) as service, listening(service) as events:
        await events.next("ready")
        assert (await service.ask("DELETE", "/api/tokens/viewer"))[0] == 204
        rest = asyncio.create_task(events.rest())
        while is_busy and not rest.done():
            event = ServiceEvent("log", service.service.clock(), data={"line": "at work"})
            service.service.events.publish(event)
            await asyncio.wait([rest], timeout=0.01)
        await rest


async def test_a_long_line_is_shortened(tmp_path: Path) -> None:
    async with served(tmp_path) as service, listening(service) as events:
        await events.next("ready")
        now = service.service.clock()
        service.service.events.publish(ServiceEvent("log", now, data={"line": "a" * 100_000}))
        line = (await events.next("log"))["data"]["line"]
        assert (len(line), line[-1]) == (2001, "…")


def publish(service: Served, *lines: str) -> None:
    for line in lines:
        service.service.events.publish(ServiceEvent("log", service.service.clock(), data={"line": line}))


async def test_a_listener_who_comes_back_gets_the_events_since_then(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        async with listening(service) as events:
            await events.next("ready")
            publish(service, "one")
            assert (await events.next("log"))["data"]["line"] == "one"
        missed = [str(number) for number in range(500)]
        publish(service, *missed)
        async with listening(service, last=events.id) as again:
            await again.next("ready")
            publish(service, "later")
            lines = [(await again.next("log"))["data"]["line"] for _ in range(501)]
            assert lines == [*missed, "later"]


async def test_a_listener_who_comes_back_too_late_is_told_so(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        async with listening(service) as events:
            await events.next("ready")
        publish(service, *map(str, range(1_005)))
        async with listening(service, last=events.id) as again:
            assert (await again.next("dropped"))["data"] == {"number": 5}
            assert (await again.next("log"))["data"]["line"] == "5"
        for wrong in ("0123:4", f"{events.id}{'9' * 30}", "x", f"{events.id.split(':')[0]}:9999"):
            async with listening(service, last=wrong) as others:
                assert await others.next("dropped") == {"number": None}


async def test_a_token_has_a_share_of_the_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aioflow.service.rest.handlers.events.LISTENERS_OF_TOKEN", 1)
    async with served(tmp_path) as service, listening(service, role="viewer") as events:
        await events.next("ready")
        assert (await service.ask("GET", "/api/events", role="viewer"))[0] == 429
        async with listening(service, role="editor") as others:
            await others.next("ready")


async def test_a_long_line_is_shortened_before_it_waits(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        with service.service.events.subscribed() as subscription:
            event = ServiceEvent("log", service.service.clock(), data={"line": "a" * 100_000})
            service.service.events.publish(event)
            (found,) = await subscription.next_batch()
            assert len(found.data["line"]) == 2001


def test_a_log_goes_on_after_a_line_that_is_longer_than_the_log() -> None:
    logs = RunLogs(100)
    logger = logging.getLogger("aioflow")
    with logs.attached(), logs.collecting("run"):
        logger.warning("a" * 1000)
        logger.warning("b")
        assert logs.text("run").endswith(" b")


async def test_only_so_many_listen_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aioflow.service.rest.handlers.events.LISTENERS_AT_MOST", 1)
    async with served(tmp_path) as service, listening(service) as events:
        await events.next("ready")
        status, answer = await service.ask("GET", "/api/events")
        assert (status, answer["error"]["kind"]) == (429, "too-many-requests")
