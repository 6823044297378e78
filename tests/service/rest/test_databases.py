"""Outboxes and suspects over REST."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.servers.smtp import SmtpServer
from tests.service.rest.served import Served, served, task

MAIL = """\
PLAN mail
{
  INPUT: a (x number)
  BODY
  {
    email (a, to="ann@example.org", subject="{count} rows")
  }
}
"""


def settings(port: int) -> dict[str, Any]:
    url = f"smtp://127.0.0.1:{port}"
    # A message that fails once waits for longer than the test takes.
    return {
        "email": {"default": {"url": url, "from": "me@example.org"}},
        "outbox": {"retry_base_seconds": 1000},
    }


async def posted(service: Served) -> list[Any]:
    """Run a task that posts a message; return the messages that wait."""
    (service.plans / "mail.plan").write_text(MAIL)
    await service.post("/api/tasks", {"task": task("mail", "mail.plan"), "replace": True})
    assert await service.run("mail") == "succeeded"
    found = await service.get("/api/outbox?database=default", "viewer")
    return list(found["messages"])


async def test_a_message_that_waits_is_listed_dropped_and_tried_again(tmp_path: Path) -> None:
    async with served(tmp_path, settings(1)) as service:
        (message,) = await posted(service)
        assert (message["state"], message["channel"]) in (("waiting", "email"), ("sending", "email"))
        assert "2 rows" in message["message"]
        body = {"database": "default", "keys": [message["key"][:8]]}
        assert await service.post("/api/outbox/drop", body) == {
            "messages": [{"key": message["key"], "problem": ""}]
        }
        assert (await service.get("/api/outbox?database=default"))["messages"] == []
        (dropped,) = (await service.get("/api/outbox?database=default&everything=true"))["messages"]
        assert dropped["state"] == "dropped"
        assert (await service.post("/api/outbox/drop", body))["messages"][0]["problem"] != ""
        await service.post("/api/outbox/retry", body)
        (again,) = (await service.get("/api/outbox?database=default"))["messages"]
        assert again["state"] in ("waiting", "sending")  # the service may be at it already
        status, answer = await service.ask(
            "POST", "/api/outbox/retry", {"database": "default", "keys": [message["key"], "zzz"]}
        )
        assert (status, answer["error"]["kind"]) == (404, "not-found")
        assert await service.post("/api/outbox/retry-dead", {"database": "default"}) == {"number": 0}


async def test_messages_are_delivered_on_request(tmp_path: Path) -> None:
    async with SmtpServer() as server, served(tmp_path, settings(server.port)) as service:
        await posted(service)
        report = await service.post("/api/outbox/deliver", {"database": "default"})
        assert report["waiting"] == 0
        assert report["troubles"] == []
        assert [mail.recipients for mail in server.kept] == [("ann@example.org",)]


async def test_pages_of_messages_have_each_message_once(tmp_path: Path) -> None:
    async with served(tmp_path, settings(1)) as service:
        for _ in range(3):
            await posted(service)
        first = await service.get("/api/outbox?database=default&limit=2")
        second = await service.get(f"/api/outbox?database=default&limit=2&cursor={first['next']}")
        keys = [each["key"] for each in (*first["messages"], *second["messages"])]
        assert len(set(keys)) == len(keys) == 3
        assert second["next"] is None


async def test_databases_are_listed_without_their_passwords(tmp_path: Path) -> None:
    more = {"database": {"main": {"url": f"sqlite:{tmp_path / 'main.db'}"}}}
    async with served(tmp_path, more) as service:
        found = (await service.get("/api/databases", "viewer"))["databases"]
        assert [each["name"] for each in found][:2] == ["service", "main"]
        assert [each["is_service"] for each in found][:2] == [True, False]
        by_id = await service.get(f"/api/suspects?database={found[1]['id']}")
        assert by_id == {"suspects": []}
        status, answer = await service.ask("GET", "/api/outbox?database=mian")
        assert (status, answer["error"]["kind"]) == (404, "not-found")
        assert "did you mean 'main'" in answer["error"]["message"]


async def test_suspects_are_listed_confirmed_and_forgotten(tmp_path: Path) -> None:
    rows = [{"url": f"http://h/{number}", "price": number} for number in range(20)]
    async with served(tmp_path) as service:
        for kept in (rows, rows, rows, rows[:5]):
            body = {"task": task("watch", "watch.plan", inputs={"houses": kept}), "replace": True}
            await service.post("/api/tasks", body)
            assert await service.run("watch") == "succeeded"
        (suspect,) = (await service.get("/api/suspects?database=default", "viewer"))["suspects"]
        assert (suspect["table"], suspect["gone"], suspect["confirmed"]) == ("houses", 15, "")
        body = {"database": "default", "table": "houses"}
        await service.post("/api/suspects/confirm", {**body, "quiet": True})
        (suspect,) = (await service.get("/api/suspects?database=default"))["suspects"]
        assert suspect["confirmed"] == "quiet"
        await service.post("/api/suspects/forget", body)
        assert (await service.get("/api/suspects?database=default"))["suspects"] == []
        status, _ = await service.ask("POST", "/api/suspects/forget", body)
        assert status == 404
