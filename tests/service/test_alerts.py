"""Alerts to the owner: after failures in a row, again while they last, and the all-clear; one an hour."""

from __future__ import annotations

import asyncio
import email
import email.policy
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from aioflow import Engine
from aioflow.authoring.operator import load_operators
from aioflow.service.actions import LocalActions
from aioflow.testing.scripted import client_over
from aioflow.web import Client
from aioflow.web.http import Request, Response
from tests.service.world import START, Work, World, world

__all__ = ["world"]


@pytest.fixture
def mailed(world: World) -> Path:
    """A folder of mails to the owner."""
    world.settings |= {"alert_email": ["owner@example.org"]}
    world.poll_seconds = 20
    folder = world.home.parent / "mail"
    world.more = {"email": {"default": {"url": f"maildir:{folder}", "from": "aioflow@example.org"}}}
    return folder


def mails(folder: Path) -> list[tuple[str, str]]:
    """Subjects and texts, in the order of their arrival."""
    found: list[Any] = [
        email.message_from_bytes(file.read_bytes(), policy=email.policy.default)
        for file in sorted((folder / "new").glob("*"), key=lambda each: each.stat().st_mtime_ns)
    ]
    return [(str(mail["Subject"]), mail.get_content().strip()) for mail in found]


def test_the_owner_is_told_after_failures_in_a_row_and_of_their_end(world: World, mailed: Path) -> None:
    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 20m", alert_after_failures=2))
        world.settings["alert_again_seconds"] = 5 * 3600
        Work.failing = {"a"}
        async with world.serving():
            await asyncio.sleep(1300)
            assert mails(mailed) == []
            await asyncio.sleep(1200)
            ((subject, text),) = mails(mailed)
            assert subject.startswith("aioflow: a: 2 runs in a row failed")
            assert "a failed" in text
            # While it lasts it is told again after some time, not with each run.
            await asyncio.sleep(4 * 3600)
            assert len(mails(mailed)) == 1
            await asyncio.sleep(2 * 3600)
            assert [("still, after" in text) for _, text in mails(mailed)] == [False, True]
            Work.failing = set()
            await asyncio.sleep(2 * 3600)
            assert mails(mailed)[-1][1].startswith("all clear: runs succeed again")
            assert len(mails(mailed)) == 3
            await asyncio.sleep(6 * 3600)
            assert len(mails(mailed)) == 3
        assert await actions.list_alerts() == []

    world.run(test)


def test_one_failure_that_a_retry_mends_is_no_alert(world: World, mailed: Path) -> None:
    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 1h", retries=2, alert_after_failures=1))
        Work.failing = {"a"}
        async with world.serving():
            await asyncio.sleep(3630)
            Work.failing = set()
            await asyncio.sleep(1800)
        assert mails(mailed) == []
        (run,) = await actions.list_runs("a")
        assert (run.state, run.attempts) == ("succeeded", 2)

    world.run(test)


@pytest.mark.parametrize("most", [0, 1, 3])
def test_a_pause_after_failures_is_reported_whatever_is_said_of_failures(
    world: World, mailed: Path, most: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(actions: LocalActions) -> None:
        more: dict[str, Any] = {"pause_after_failures": 2, "alert_after_failures": most}
        await actions.add_task(world.task("a", "every 1h", **more))
        Work.failing = {"a"}
        async with world.serving():
            await asyncio.sleep(3600 * 3.5)
            text = mails(mailed)[-1][1]
            assert text.startswith("the task is paused, since 2 runs in a row failed: ")
            (alert,) = await actions.list_alerts()
            assert alert.kind == "paused"
            Work.failing = set()
            await actions.resume_task("a")
            await asyncio.sleep(3600 * 1.1)
            assert mails(mailed)[-1][1].startswith("all clear: a run has succeeded again")
        assert await actions.list_alerts() == []
        assert "task a is paused: 2 runs in a row have failed" in caplog.messages

    world.run(test)


def test_the_causes_of_a_task_that_has_ended_are_not_repeated(world: World, mailed: Path) -> None:
    async def test(actions: LocalActions) -> None:
        ends = (START + timedelta(hours=3.5)).isoformat()
        more: dict[str, Any] = {"ends": ends, "alert_after_failures": 1, "fails": True}
        world.settings["alert_again_seconds"] = 4 * 3600
        await actions.add_task(world.task("a", "every 1h", **more))
        async with world.serving():
            await asyncio.sleep(3600 * 9)
        assert (await actions.show_task("a")).state == "ended"
        assert await actions.list_alerts() == []
        texts = [text for _, text in mails(mailed)]
        assert not any("still" in text for text in texts)
        # The last run ends after the task, and its failure is reported too.
        assert any("3 runs in a row failed" in text for text in texts)
        assert len(texts) <= 3

    world.run(test)


def test_the_causes_of_a_task_that_a_person_pauses_are_not_repeated(world: World, mailed: Path) -> None:
    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 1h", alert_after_failures=1, fails=True))
        world.settings["alert_again_seconds"] = 2 * 3600
        async with world.serving():
            await asyncio.sleep(3600 * 1.5)
            await actions.pause_task("a", "the site is closed")
            assert await actions.list_alerts() == []
            await asyncio.sleep(3600 * 7)
        first, last = [text for _, text in mails(mailed)]
        assert first.startswith("1 run in a row failed")
        assert last.startswith("the task was paused, and this is not reported any more: 1 run")

    world.run(test)


def test_at_most_one_message_about_a_task_comes_in_an_hour(world: World, mailed: Path) -> None:
    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 5m", alert_after_failures=1))
        async with world.serving():
            for _ in range(12):
                Work.failing = {"a"}
                await asyncio.sleep(310)
                Work.failing = set()
                await asyncio.sleep(310)
        assert 2 <= len(mails(mailed)) <= 3

    world.run(test)


def test_silence_is_an_alert(world: World, mailed: Path) -> None:
    async def test(actions: LocalActions) -> None:
        more: dict[str, Any] = {"alert_after_failures": 0, "alert_after_silence_seconds": "2h"}
        await actions.add_task(world.task("a", "every 1h", **more))
        Work.failing = {"a"}
        async with world.serving():
            await asyncio.sleep(3600 * 2.1)
            ((subject, _),) = mails(mailed)
            assert "no run has succeeded for 2h" in subject
            (alert,) = await actions.list_alerts()
            assert alert.kind == "silent"
            Work.failing = set()
            await asyncio.sleep(3700)
            assert mails(mailed)[-1][1].startswith("all clear: a run has succeeded again")

    world.run(test)


def test_a_full_disk_is_an_alert(world: World, mailed: Path) -> None:
    world.settings["disk_free_bytes"] = 10**18

    async def test(actions: LocalActions) -> None:
        async with world.serving():
            await asyncio.sleep(100)
        ((subject, _),) = mails(mailed)
        assert "are free on the disk" in subject

    world.run(test)


def test_messages_that_cannot_leave_are_an_alert(world: World, mailed: Path) -> None:
    """The alert stays in the outbox with them; the list of alerts has it at once."""
    world.more = {"email": {"default": {"url": "smtp://127.0.0.1:9", "from": "aioflow@example.org"}}}
    world.settings["outbox_stuck_seconds"] = 3600

    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 10m", alert_after_failures=1, fails=True))
        async with world.serving():
            await asyncio.sleep(3 * 3600)
            kinds = {alert.kind for alert in await actions.list_alerts()}
            assert kinds == {"failing", "outbox"}

    world.run(test)


def test_messages_that_cannot_leave_stay_an_alert_while_services_come_and_go(world: World) -> None:
    """A service that begins, or one that works beside, does not take them for delivered."""
    world.more = {"email": {"default": {"url": "smtp://127.0.0.1:9", "from": "aioflow@example.org"}}}
    world.settings |= {"outbox_stuck_seconds": 3600, "alert_email": ["owner@example.org"]}

    async def began(actions: LocalActions) -> list[datetime]:
        return [alert.since for alert in await actions.list_alerts() if alert.kind == "outbox"]

    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 10m", alert_after_failures=1, fails=True))
        async with world.serving():
            await asyncio.sleep(2 * 3600)
            before = await began(actions)
        assert len(before) == 1
        for _ in range(2):
            async with world.serving(), world.serving():
                await asyncio.sleep(600)
                assert await began(actions) == before

    world.run(test)


def test_messages_that_were_given_up_are_an_alert_until_somebody_looks_after_them(world: World) -> None:
    world.more = {
        "email": {"default": {"url": "smtp://127.0.0.1:9", "from": "aioflow@example.org"}},
        "outbox": {"most_attempts": 2},
    }
    world.settings |= {"alert_email": ["owner@example.org"]}

    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 10m", alert_after_failures=1, fails=True))
        async with world.serving():
            await asyncio.sleep(900)
            (message,) = [each.message for each in await actions.list_alerts() if each.kind == "outbox"]
            assert "given up after 2 attempts" in message

    world.run(test)


def test_receivers_without_an_account_are_warned_of_at_the_start_and_keep_none_from_others(
    world: World, mailed: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world.settings |= {"alert_notify": "team", "alert_phone": ["+4915112345678"], "disk_free_bytes": 10**18}

    async def test(actions: LocalActions) -> None:
        async with world.serving():
            found = [each for each in caplog.messages if each.startswith("alerts cannot be sent: ")]
            assert ["notify" in each or "phone" in each for each in found] == [True, True]
            await asyncio.sleep(100)
        assert len(mails(mailed)) == 1

    world.run(test)


WATCHED = """
WRAPPER list (shop char)
{
  GET: "http://shop.example/{shop}"
  EACH: "li"
  title: "b"
}

PLAN watch
{
  INPUT: shops (shop char)
  BODY
  {
    wrapper ("list", shops : found)
    diff (found, "titles" : added, changed, removed) {KEY: "title"}
  }
}
"""


class EmptyingShop:
    """A page with ten items, or without any."""

    items = 10

    async def fetch(self, request: Request) -> Response:
        headers = CIMultiDictProxy(CIMultiDict({"Content-Type": "text/html"}))
        body = "".join(f"<li><b>item {number}</b></li>" for number in range(self.items))
        return Response(request.url, 200, headers, f"<ul>{body}</ul>".encode(), ())

    async def close(self) -> None:
        pass


def test_a_source_that_brings_nothing_and_changes_that_are_held_back_are_alerts_until_they_end(
    world: World, mailed: Path
) -> None:
    shop = EmptyingShop()
    world.plan.write_text(WATCHED)

    async def test(actions: LocalActions) -> None:
        inputs = {"shops": [{"shop": "a"}]}
        definition = {"name": "a", "plan": str(world.plan), "schedule": "every 10m", "inputs": inputs}
        await actions.add_task(definition)
        configuration = world.configuration()
        client = client_over(shop, configuration)
        services = {Client: client}
        engine = Engine(
            configuration=configuration, registry=load_operators(), services=services, clock=world.now
        )
        async with world.serving(world.service(engine=engine)):
            await asyncio.sleep(6 * 600 + 100)
            assert mails(mailed) == []
            shop.items = 0
            await asyncio.sleep(600)
            assert {alert.kind for alert in await actions.list_alerts()} == {"health", "suspect"}
            ((_, text),) = mails(mailed)
            assert "changes are held back because they may not be true: titles: 10 of 10 rows" in text
            assert "list gave no rows on 1 page, where its last 6 runs had about 10 a page" in text
            shop.items = 10
            await asyncio.sleep(2 * 3600)
            _, (_, text) = mails(mailed)
            assert "all clear: its sources bring the usual rows again" in text
            assert "all clear: nothing is held back any more" in text
        assert await actions.list_alerts() == []
        await client.close()

    world.run(test)
