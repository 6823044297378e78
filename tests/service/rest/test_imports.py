"""Tasks from files that are sent: TOML, lines as in a crontab, and backups of changedetection.io."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aioflow.errors import InputError
from aioflow.service.rest import uploads
from aioflow.service.rest.declarations import BYTES
from tests.service.backups import backup
from tests.service.rest.served import Served, served

WATCH_OF_PAGE = {"url": "http://example.com/news", "title": "News", "notification_muted": True}
TOML = """\
[[task]]
name = "one"
plan = "hello.plan"
schedule = "@daily"
[task.inputs]
a = [{x = 1}]
"""
SEND = "/api/import/changedetection"


async def send(service: Served, data: bytes, role: str = "owner", kind: str = BYTES) -> tuple[int, Any]:
    return await service.ask("POST", SEND, data=data, role=role, headers={"Content-Type": kind})


async def test_a_backup_is_imported_with_a_report(tmp_path: Path) -> None:
    steps = {**WATCH_OF_PAGE, "title": "Steps", "browser_steps": [1]}
    data = backup(tmp_path, WATCH_OF_PAGE, steps).read_bytes()
    async with served(tmp_path) as service:
        status, report = await send(service, data)
        assert status == 200
        assert report["added"] == ["news", "steps"]
        assert report["paused"] == ["steps"]
        notes = {each["name"]: " ".join(each["notes"]) for each in report["watches"]}
        assert "plans have no browser" in notes["steps"]
        assert len([*service.plans.glob("changedetection/*.plan")]) == 2
        _, again = await send(service, data)
        assert (again["added"], again["unchanged"]) == ([], ["news", "steps"])
        shown = await service.get("/api/tasks/steps")
        assert shown["state"] == "paused"


async def test_a_backup_that_fails_leaves_the_files_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path) as service:
        await send(service, backup(tmp_path, WATCH_OF_PAGE).read_bytes())
        (known,) = service.plans.glob("changedetection/*.plan")
        before = known.read_bytes()

        async def fails(*arguments: Any, **options: Any) -> Any:
            raise InputError("no")

        monkeypatch.setattr("aioflow.service.actions.LocalActions.import_tasks", fails)
        other = {**WATCH_OF_PAGE, "url": "http://example.com/other"}
        notified = {**other, "title": "More", "notification_muted": False}
        notified["notification_urls"] = ["mailto://a:b@example.com?to=c@example.com"]
        status, _ = await send(service, backup(tmp_path, other, notified).read_bytes())
        assert status == 422
        files = {path: path.read_bytes() for path in known.parent.iterdir()}
        assert files == {known: before}
        assert not (service.service.home / "changedetection.toml").exists()


async def test_a_backup_is_refused_that_is_none_or_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = backup(tmp_path, WATCH_OF_PAGE).read_bytes()
    async with served(tmp_path) as service:
        assert (await send(service, b"PK"))[0] == 422
        assert (await send(service, data, kind="text/plain"))[0] == 415
        assert (await send(service, data, role="editor"))[0] == 403
        monkeypatch.setattr(uploads, "UPLOAD_BYTES", 100)
        assert (await send(service, data))[0] == 413  # its length is not declared
        assert await service.get("/api/tasks") == {"tasks": []}


async def test_texts_of_tasks_are_imported_by_editors(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        body = {"text": TOML, "format": "toml"}
        report = await service.post("/api/import/text", body, role="editor")
        assert report == {"added": ["one"], "changed": [], "unchanged": []}
        body = {"text": "0 8 * * * hello.plan x=1\n@daily hello.plan 'a=[{\"x\": 2}]'", "format": "lines"}
        report = await service.post("/api/import/text", body, role="editor")
        assert report["added"] == ["hello x=1 (0 8 * * *)", "hello x=2 (@daily)"]
        report = await service.post("/api/import/text", body, role="editor")
        assert (report["added"], len(report["unchanged"])) == ([], 2)
        assert (await service.ask("POST", "/api/import/text", body, role="viewer"))[0] == 403


@pytest.mark.parametrize(
    ("text", "format", "status", "message"),
    [
        ("0 8 * * *", "lines", 422, "cron:1: a plan file must stand after the schedule"),
        ("@daily hello.plan a=@/etc/passwd", "lines", 422, "a file of rows is not sent"),
        ("@daily hello.plan a=-", "lines", 422, "a file of rows is not sent"),
        ("@daily hello.plan @/etc/passwd", "lines", 422, "a file of rows is not sent"),
        ("@daily ../aioflow.toml x=1", "lines", 403, "only use plans in the folder"),
        ("@daily /etc/passwd", "lines", 403, "only use plans in the folder"),
        (TOML.replace("hello.plan", "/etc/passwd"), "toml", 403, "only use plans in the folder"),
        ("[[job]]", "toml", 422, "cron: tasks are tables [[task]]"),
    ],
)
async def test_texts_with_mistakes_add_nothing(
    tmp_path: Path, text: str, format: str, status: int, message: str
) -> None:
    async with served(tmp_path) as service:
        good = TOML if format == "toml" else "@weekly hello.plan x=1\n"
        body = {"text": good + text, "format": format, "name": "cron"}
        if "job" in text or (status == 422 and format == "lines" and text == "0 8 * * *"):
            body["text"] = text
        found, answer = await service.ask("POST", "/api/import/text", body, role="editor")
        assert (found, message in answer["error"]["message"]) == (status, True), answer
        assert await service.get("/api/tasks") == {"tasks": []}


async def test_the_client_sends_files(tmp_path: Path) -> None:
    path = backup(tmp_path, WATCH_OF_PAGE)
    async with served(tmp_path) as service, service.remote() as remote:
        assert (await remote.import_text(TOML, "toml", "tasks.toml")).added == ["one"]
        assert (await remote.import_backup(path)).added == ["news"]
