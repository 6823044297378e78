"""Tasks and runs over REST, and the client, which acts as on the task database itself."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aioflow.compiler import check
from aioflow.errors import InputError
from aioflow.service.errors import EditConflictError, ForbiddenError, NotFoundError
from aioflow.service.rest import RemoteActions
from aioflow.service.rest.client import RemoteError
from aioflow.service.rest.content import TaskContent
from aioflow.service.task import TaskDefinition
from tests.service.rest.served import Gate, served, task


def test_the_content_of_a_task_has_the_keys_of_its_definition() -> None:
    assert TaskContent.__struct_fields__ == TaskDefinition.__struct_fields__


async def test_a_task_is_added_changed_run_and_removed(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        added = await service.post("/api/tasks", {"task": task(timeout_seconds="90s", schedule="@daily")})
        assert added["definition"]["timeout_seconds"] == 90
        assert added["state"] == "active"
        status, changed = await service.ask(
            "PATCH",
            "/api/tasks/hello",
            {"changes": {"schedule": None, "retries": 2, "timeout_seconds": None}},
        )
        assert status == 200
        assert changed["definition"]["retries"] == 2
        assert "schedule" not in changed["definition"]
        assert await service.run("hello") == "succeeded"
        runs = (await service.get("/api/tasks/hello/runs"))["runs"]
        assert [each["state"] for each in runs] == ["succeeded"]
        found = await service.get(f"/api/runs/{runs[0]['run_id']}")
        assert found["task_name"] == "hello"
        sample = await service.get(f"/api/runs/{runs[0]['run_id']}/sample")
        assert sample == {"rows": [{"output": "b", "row": {"x": 2}}]}
        assert (await service.ask("DELETE", "/api/tasks/hello")) == (200, {"name": "hello"})
        assert (await service.ask("GET", "/api/tasks/hello"))[0] == 404


async def test_a_name_with_any_characters_is_a_part_of_the_path(tmp_path: Path) -> None:
    names = ["a/b c", "50% & more?", "Häuser #1", "..", "a+b"]
    async with served(tmp_path) as service, service.remote() as remote:
        for name in names:
            await remote.add_task(task(name))
            assert (await remote.show_task(name)).definition.name == name
            assert (await remote.pause_task(name)).state == "paused"
        assert sorted(each.definition.name for each in await remote.list_tasks()) == sorted(names)


@pytest.mark.parametrize("role", ["editor", "owner"])
async def test_the_service_answers_while_the_plan_of_a_task_is_analysed(
    tmp_path: Path, role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def analyse(*arguments: Any, **options: Any) -> Any:
        begun.set()
        assert may_end.wait(30)
        return check.analyse(*arguments, **options)

    async with served(tmp_path) as service, asyncio.timeout(60):
        requests = [
            ("POST", "/api/tasks", {"task": task()}),
            ("GET", "/api/tasks/hello", None),
            ("PATCH", "/api/tasks/hello", {"changes": {"schedule": "@daily"}}),
            ("PATCH", "/api/tasks/hello", {"reload": True}),
            ("GET", "/api/tasks/hello/news", None),
        ]
        monkeypatch.setattr("aioflow.service.programs.analyse", analyse)
        for method, path, body in requests:
            begun.clear()
            may_end.clear()
            asked = asyncio.create_task(service.ask(method, path, body, role=role))
            assert await asyncio.to_thread(begun.wait, 10)
            assert (await service.get("/healthz"))["status"] == "ok"
            assert not asked.done()
            may_end.set()
            assert (await asked)[0] < 300


async def test_two_editors_do_not_overwrite_each_other(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        await service.post("/api/tasks", {"task": task()})
        mine = theirs = (await service.get("/api/tasks/hello"))["changed"]
        first = {"changes": {"retries": 1}, "expected": mine}
        assert (await service.ask("PATCH", "/api/tasks/hello", first))[0] == 200
        second = {"changes": {"retries": 5}, "expected": theirs}
        status, answer = await service.ask("PATCH", "/api/tasks/hello", second)
        assert (status, answer["error"]["kind"]) == (409, "conflict")
        assert (await service.get("/api/tasks/hello"))["definition"]["retries"] == 1


async def test_a_task_that_exists_is_replaced_only_on_request(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        await service.post("/api/tasks", {"task": task()})
        status, answer = await service.ask("POST", "/api/tasks", {"task": task(retries=1)})
        assert (status, answer["error"]["kind"]) == (409, "conflict")
        replaced = await service.post("/api/tasks", {"task": task(retries=1), "replace": True})
        assert replaced["definition"]["retries"] == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"plan": "nothing.plan"}, "there is no file"),
        ({"schedule": "whenever"}, "schedule"),
        ({"zone": "Mars/Olympus", "schedule": "@daily"}, "unknown time zone"),
        ({"retries": -1}, "from 0 to 100"),
        ({"timeout_seconds": "soon"}, "timeout_seconds"),
        ({"inputs": {"b": []}}, "no input"),
        ({"parameters": {"x": 1}}, "no parameter"),
        ({"name": " "}, "the name of a task"),
        ({"name": "x" * 300}, "at most 200"),
    ],
)
async def test_a_task_that_makes_no_sense_is_refused(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    async with served(tmp_path) as service:
        status, answer = await service.ask("POST", "/api/tasks", {"task": {**task(), **changes}})
        assert (status, answer["error"]["kind"]) == (422, "invalid")
        assert message in answer["error"]["message"]


async def test_mistakes_of_a_plan_have_their_places(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        (service.plans / "wrong.plan").write_text('PLAN wrong\n{\n  BODY\n  {\n    selct ("x" : y)\n  }\n}\n')
        status, answer = await service.ask(
            "POST", "/api/tasks", {"task": {"name": "w", "plan": "wrong.plan"}}
        )
        assert status == 422
        (found,) = answer["error"]["diagnostics"]
        assert (found["line"], found["column"], found["severity"]) == (5, 5, "error")
        assert "unknown operator 'selct'" in found["message"]


async def test_a_run_under_way_is_watched_and_cancelled(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        await service.post("/api/tasks", {"task": task("waiting", "waiting.plan")})
        with service.service.events.subscribed() as subscription:
            await service.post("/api/tasks/waiting/run")
            await Gate.reached.wait()
            (run,) = (await service.get("/api/runs?state=running"))["runs"]
            log = await service.get(f"/api/runs/{run['run_id']}/log")
            assert log["is_under_way"]
            assert "before" in log["text"]
            progress = await service.get(f"/api/runs/{run['run_id']}/progress")
            assert {each["operator"] for each in progress["steps"]} == {"log", "apply"}
            assert {each["variable"] for each in progress["edges"]} == {"a"}
            assert (await service.post("/api/tasks/waiting/cancel")) == {"number": 1}
            async with asyncio.timeout(30):
                states: list[str] = []
                while "cancelled" not in states:
                    batch = await subscription.next_batch()
                    states += [str(each.data.get("state")) for each in batch if each.kind == "run"]
        assert (await service.get("/api/runs"))["runs"][0]["state"] == "cancelled"
        assert (await service.ask("GET", f"/api/runs/{run['run_id']}/progress"))[0] == 404


async def test_the_trace_of_a_run_is_json_for_viewers_of_traces(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        await service.post("/api/tasks", {"task": task("waiting", "waiting.plan")})
        await service.post("/api/tasks/waiting/run")
        await Gate.reached.wait()
        (run,) = (await service.get("/api/runs?state=running"))["runs"]
        path = f"/api/runs/{run['run_id']}/trace"
        assert (await service.ask("GET", path))[0] == 404
        with service.service.events.subscribed() as subscription:
            Gate.opened.set()
            async with asyncio.timeout(30):
                while not any(each.data.get("state") for each in await subscription.next_batch()):
                    pass
        assert {each["name"] for each in (await service.get(path))["traceEvents"]} >= {"process_name"}


async def test_the_version_that_a_task_runs_is_compared_with_the_disk(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        used = service.plans / "used.plan"
        used.write_text("PLAN used { INPUT: a OUTPUT: b BODY { select (a, 'x > 1' : b) } }")
        path = service.plans / "main.plan"
        text = 'USE "used.plan"\nPLAN main { INPUT: a (x number) OUTPUT: b BODY { used (a : b) } }\n'
        path.write_text(text)
        await service.post("/api/tasks", {"task": task("main", "main.plan")})
        found = await service.get("/api/tasks/main/plan", "viewer")
        assert [(each["path"], each["on_disk"]) for each in found["files"]] == [
            (str(path), "same"),
            (str(used), "same"),
        ]
        assert found["files"][0]["text"] == text
        path.write_text(text.replace("x number", "x number, y char"))
        used.unlink()
        main, other = (await service.get("/api/tasks/main/plan", "viewer"))["files"]
        assert (main["on_disk"], other["on_disk"], main["text"]) == ("different", "missing", text)
        changed = [line for line in main["difference"].splitlines() if line[0] in "+-"][2:]
        line = text.splitlines()[1]
        assert changed == [f"-{line}", f"+{line.replace('x number', 'x number, y char')}"]


async def test_the_text_of_a_plan_elsewhere_is_shown_to_owners_only(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.plan"
    elsewhere.write_text("PLAN elsewhere { INPUT: a OUTPUT: b BODY { select (a, 'x > 1' : b) } }")
    async with served(tmp_path) as service:
        await service.post("/api/tasks", {"task": task("else", str(elsewhere))})
        for role, is_shown in (("owner", True), ("viewer", False)):
            (file,) = (await service.get("/api/tasks/else/plan", role))["files"]
            assert (file["text"] is not None, file["on_disk"] == "same") == (is_shown, is_shown)


async def test_pages_of_runs_have_each_run_once(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        await service.post("/api/tasks", {"task": task()})
        async with service.service.database.writing() as statements:
            for number in range(7):
                # Two of them are due at the same moment.
                due = f"2026-01-01T00:00:0{number // 2}.000000Z"
                await statements.run(
                    "INSERT INTO aioflow_occurrences (occurrence, task_id, cause, due, first_due, number, "
                    "start_after, priority, exclusive, state, reason, attempts, lost, fence, "
                    "cancel_requested) "
                    "VALUES ({}, {}, 'manual', {}, {}, 1, {}, 0, 1, 'skipped', '', 0, 0, 0, 0)",
                    *(f"t@{due}#{number}", "t", due, due, due),
                )
        seen: list[str] = []
        cursor = ""
        while True:
            page = await service.get(f"/api/runs?limit=3{cursor}")
            seen += [each["occurrence"] for each in page["runs"]]
            if page["next"] is None:
                break
            cursor = f"&cursor={page['next'].replace('#', '%23')}"
        assert [each[-1] for each in seen] == list("6543210")
        async with service.remote() as remote:
            assert [each.occurrence for each in await remote.list_runs(limit=1000)] == seen
            before = datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
            assert len(await remote.list_runs(before=before)) == 2


async def test_tasks_are_exported_and_imported_all_or_none(tmp_path: Path) -> None:
    async with served(tmp_path) as service, service.remote() as remote:
        await remote.add_task(task("one"))
        await remote.add_task(task("two", retries=3))
        exported = await remote.export_tasks()
        assert [each.name for each in exported] == ["one", "two"]
        assert [each.name for each in await remote.export_tasks(["two"])] == ["two"]
        contents = [msgspec.to_builtins(each) for each in exported]
        contents[0]["retries"] = 1
        report = await remote.import_tasks([*contents, task("three")])
        assert (report.added, report.changed, report.unchanged) == (["three"], ["one"], ["two"])
        with pytest.raises(InputError, match="no file"):
            await remote.import_tasks([task("four"), task("five", "nothing.plan")])
        assert len(await remote.list_tasks()) == 3


async def test_a_schedule_is_told_in_words_with_its_next_times(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        query = "text=30%208%20*%20*%20*&zone=Europe/Berlin&start=2026-03-28T12:00:00Z&count=2"
        found = await service.get(f"/api/schedules/preview?{query}")
        assert found == {
            "words": "at 8:30",
            "zone": "Europe/Berlin",
            "times": ["2026-03-29T08:30:00+02:00", "2026-03-30T08:30:00+02:00"],
        }
        status, answer = await service.ask("GET", "/api/schedules/preview?text=61%20*%20*%20*%20*")
        assert (status, answer["error"]["kind"]) == (422, "invalid")


async def test_the_client_has_the_results_and_errors_of_local_actions(tmp_path: Path) -> None:
    async with served(tmp_path) as service, service.remote() as remote:
        local = service.service
        from aioflow.service.actions import LocalActions

        actions = LocalActions(local.home, local.configuration, local.database, local.engine.registry)
        await remote.add_task(task())
        assert await service.run("hello") == "succeeded"
        assert await remote.list_tasks() == await actions.list_tasks()
        assert msgspec.structs.replace(
            await actions.show_task("hello"), feed_key=""
        ) == await remote.show_task("hello")
        assert await remote.list_runs("hello") == await actions.list_runs("hello")
        assert await remote.show_run("hello") == await actions.show_run("hello")
        assert await remote.list_services() == await actions.list_services()
        assert await remote.list_alerts() == await actions.list_alerts()
        assert await remote.cancel_runs("hello") == 0
        with pytest.raises(NotFoundError, match="there is no task 'helo'; did you mean 'hello'"):
            await remote.show_task("helo")
        with pytest.raises(EditConflictError, match="already"):
            await remote.add_task(task())
        with pytest.raises(InputError, match="from 0 to 100"):
            await remote.edit_task("hello", {"retries": -1})
        assert (await remote.edit_task("hello", {"retries": 1}, reload=True)).definition.retries == 1
        assert await remote.remove_task("hello") == "hello"


async def test_the_client_says_why_a_service_does_not_answer(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="like http"):
        RemoteActions("127.0.0.1:8650", "x")
    with pytest.raises(InputError, match="AIOFLOW_TOKEN"):
        RemoteActions("http://127.0.0.1:8650", "")
    async with served(tmp_path) as service:
        address = service.address
        async with RemoteActions(address, "aioflow_another") as remote:
            with pytest.raises(ForbiddenError, match="the token is wrong"):
                await remote.list_tasks()
        async with service.remote("viewer") as remote:
            with pytest.raises(ForbiddenError, match="needs the role editor"):
                await remote.remove_task("hello")
    async with RemoteActions(address, "x") as remote:
        with pytest.raises(RemoteError, match="is `aioflow serve` running"):
            await remote.list_tasks()


async def test_the_client_does_not_believe_another_server(tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = b"<html>hello</html>"
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body)
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        async with RemoteActions(f"http://127.0.0.1:{port}", "x") as remote:
            with pytest.raises(RemoteError, match="no service of aioflow"):
                await remote.list_tasks()
