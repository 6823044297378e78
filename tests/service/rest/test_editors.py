"""Editors: their tasks and plans use nothing that [service.editor] allow does not list."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from aioflow import aggregate_function
from tests.service.rest.served import HELLO, Served, served, task

ALLOWED = [
    "operator:email",
    "operator:write",
    "operator:dbappend",
    "operator:wrapper",
    "database:main",
    "folder:shared",
    "recipient:*@example.org",
    "account:email.team",
    "function:harmless_*",
    "secret:OPEN",
]
SETTINGS = {
    "service": {"editor": {"allow": ALLOWED}},
    "database": {"default": {"url": "sqlite:default.db"}, "main": {"url": "sqlite:main.db"}},
    "email": {
        "default": {"url": "smtp://localhost", "from": "me@example.org"},
        "team": {"url": "smtp://localhost", "from": "team@example.org"},
        "boss": {"url": "smtp://localhost", "from": "boss@example.org"},
    },
}


@aggregate_function
def rest_spread(values: Sequence[Any]) -> Any:
    return max(values) - min(values)


@aggregate_function
def harmless_spread(values: Sequence[Any]) -> Any:
    return max(values) - min(values)


def plan(statement: str, *, parameters: str = "", rest: str = "", name: str = "made") -> str:
    """The text of a plan with one statement."""
    head = f"  PARAM: {parameters}\n" if parameters else ""
    body = f"  BODY\n  {{\n    {statement}\n  }}\n}}\n"
    return f"PLAN {name}\n{{\n  INPUT: a (x number, address char)\n{head}{body}{rest}"


def made(**more: Any) -> dict[str, Any]:
    return {"name": "made", "plan": "made.plan", "inputs": {"a": []}, **more}


async def refused(service: Served, text: str, **more: Any) -> str:
    """Have an editor add a task and run the plan once; return why that is refused."""
    (service.plans / "made.plan").write_text(text)
    status, answer = await service.ask("POST", "/api/tasks", {"task": made(**more)}, role="editor")
    assert (status, answer["error"]["kind"]) == (403, "forbidden"), answer
    assert (await service.get("/api/tasks"))["tasks"] == []
    reason = str(answer["error"]["message"])
    assert "An owner can list it" in reason
    return reason


GET = 'WRAPPER search ()\n{\n  GET: "https://example.org/"\n  EACH: "li"\n  title: "a"\n}\n'


def with_secret(text: str) -> str:
    return GET.replace("EACH", f'AUTH: bearer "{text}"\n  EACH')


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (plan('notify (a, "hello")'), "the operator notify"),
        (plan('read ("x.csv" : b)'), "the operator read"),
        (plan('dbquery ("select 1" : b) {DB: main}'), "the operator dbquery"),
        (plan('dbappend (a, "t") {DB: default}'), "the database default"),
        (plan('dbappend (a, "t")'), "the database default"),
        (plan('write (a, "out.csv")'), "the file out.csv"),
        (plan('write (a, "../shared/../aioflow.toml") {FORMAT: csv}'), "the file ../shared/../aioflow.toml"),
        (plan('write (a, "/tmp/out.csv")'), "the file /tmp/out.csv"),
        (plan('write (a, "../shared/link/out.csv")'), "the file ../shared/link/out.csv"),
        (plan('write (a, "-")'), "standard input or output"),
        (plan('email (a, to="eve@evil.example", subject="x") {DB: main}'), "the recipient eve@evil.example"),
        (
            plan('email (a, to="ann@example.org", subject="x") {DB: main; BCC: "eve@evil.example"}'),
            "the recipient eve@evil.example",
        ),
        (
            plan('email (a, to="ann@example.org", subject="x") {DB: main; REPLY_TO: "eve@evil.example"}'),
            "the recipient eve@evil.example",
        ),
        (
            plan('email (a, to="eve%evil.example@example.org", subject="x") {DB: main}'),
            "the recipient eve%evil.example@example.org",
        ),
        (plan('email (a, to="{address}", subject="x") {DB: main; EACH}'), "recipients that come from data"),
        (
            plan('email (a, to="ann@example.org", subject="x") {DB: main; VIA: boss}'),
            "the account email.boss",
        ),
        (plan('email (a, to="ann@example.org", subject="x")'), "the database default"),
        (plan('apply (a, "rest_wait" : b)'), "the function rest_wait"),
        (plan('aggregate (a, "Rest_spread (x) as y" : b)'), "the function rest_spread"),
        (plan("schedule (a : b)"), "the tasks that it adds are not checked"),
        (plan('wrapper ("search" : b)', rest=GET.replace("GET", "POST")), "the method POST"),
        (
            plan('wrapper ("search" : b)', rest=with_secret("secret:BANK")),
            "the secret BANK",
        ),
        (
            plan('wrapper ("search" : b)', rest=with_secret("secre\\x74:BANK")),
            "the secret BANK",
        ),
    ],
)
async def test_an_editor_cannot_use_what_is_not_listed(tmp_path: Path, text: str, named: str) -> None:
    async with served(tmp_path, SETTINGS) as service:
        shared = service.service.home / "shared"
        shared.mkdir()
        (shared / "link").symlink_to(tmp_path)
        if "schedule" in text:
            text = text.replace("(x number, address char)", "(plan char, schedule char)")
        assert named in await refused(service, text)
        # An owner may.
        status, answer = await service.ask("POST", "/api/tasks", {"task": made()})
        assert status == 201, answer


@pytest.mark.parametrize(
    "text",
    [
        plan('select (a, "x > 1" : b)'),
        plan('aggregate (a, "SUM(x) as y, harmless_spread(x) as z" : b)'),
        plan('dbappend (a, "t") {DB: main}'),
        plan('write (a, "../shared/out.csv")'),
        plan('email (a, to="Ann <ann@example.org>", subject="x") {DB: main}'),
        plan('email (a, to="ann@EXAMPLE.org", subject="x") {DB: main; VIA: team}'),
        plan("write (a, $path)", parameters='path = "../shared/out.csv"'),
        plan('wrapper ("search" : b)', rest=GET),
        plan('wrapper ("search" : b)', rest=with_secret("secret:OPEN")),
    ],
)
async def test_an_editor_may_use_what_is_listed(tmp_path: Path, text: str) -> None:
    async with served(tmp_path, SETTINGS) as service:
        (service.service.home / "shared").mkdir()
        status, answer = await service.ask("PUT", "/api/plans/made", {"text": text}, role="editor")
        assert status == 200, answer
        status, answer = await service.ask("POST", "/api/tasks", {"task": made()}, role="editor")
        assert status == 201, answer
        for action in ("pause", "resume", "run", "cancel"):
            body: Any = {} if action == "pause" else None
            status, answer = await service.ask("POST", f"/api/tasks/made/{action}", body, role="editor")
            assert status < 300, answer


async def test_parameters_cannot_bring_in_what_is_not_listed(tmp_path: Path) -> None:
    text = plan("write (a, $path)", parameters='path = "../shared/out.csv"')
    async with served(tmp_path, SETTINGS) as service:
        (service.service.home / "shared").mkdir()
        assert "the file /tmp/x.csv" in await refused(service, text, parameters={"path": "/tmp/x.csv"})
        built = plan('write (a, "${folder}/x.csv")', parameters='folder = "../shared"')
        assert "the file /tmp/x.csv" in await refused(service, built, parameters={"folder": "/tmp"})
        (service.plans / "made.plan").write_text(text)
        assert (await service.ask("POST", "/api/tasks", {"task": made()}, role="editor"))[0] == 201
        for changes in (
            {"parameters": {"path": "/tmp/x.csv"}},
            {"database": "default"},
            {"accounts": {"email": "boss"}},
            {"accounts": {"database": "default"}},
            {"reload": "automatic"},
            {"plan": "/etc/passwd"},
            {"plan": "../../x.plan"},
        ):
            status, answer = await service.ask(
                "PATCH", "/api/tasks/made", {"changes": changes}, role="editor"
            )
            assert (status, answer["error"]["kind"]) == (403, "forbidden"), changes
            assert "root:" not in str(answer)


async def test_plans_that_are_called_and_used_are_looked_at(tmp_path: Path) -> None:
    inner = plan("write (a, $target)", parameters="target", name="inner")
    text = 'USE "inner.plan"\n' + plan('inner (a, "/tmp/x.csv")')
    recursive = plan(
        'select (a, "x > 0" : b) write (a, $path) made (b, "${path}x.csv")',
        parameters='path = "../shared/x.csv"\n  MAX_DEPTH: 50',
    )
    async with served(tmp_path, SETTINGS) as service:
        (service.service.home / "shared").mkdir()
        (service.plans / "inner.plan").write_text(inner)
        assert "the file /tmp/x.csv" in await refused(service, text)
        # A recursion whose values are followed only so far is refused beyond that.
        assert "a value that only the run tells" in await refused(service, recursive)


async def test_an_editor_leaves_the_tasks_and_plans_of_owners_alone(tmp_path: Path) -> None:
    async with served(tmp_path, SETTINGS) as service:
        (service.plans / "owned.plan").write_text(plan('dbappend (a, "t")', name="owned"))
        owned = made(name="owned", plan="owned.plan")
        await service.post("/api/tasks", {"task": owned})
        for method, path, body in (
            ("PATCH", "/api/tasks/owned", {"changes": {"retries": 1}}),
            ("DELETE", "/api/tasks/owned", None),
            ("POST", "/api/tasks/owned/pause", {}),
            ("POST", "/api/tasks/owned/resume", None),
            ("POST", "/api/tasks/owned/run", None),
            ("POST", "/api/tasks/owned/cancel", None),
            ("POST", "/api/tasks", {"task": {**made(name="owned"), "plan": "hello.plan"}, "replace": True}),
            ("POST", "/api/import", {"tasks": [{**made(name="owned"), "plan": "hello.plan"}]}),
            ("DELETE", "/api/plans/owned", None),
            ("POST", "/api/plans/run", {"name": "owned", "inputs": {"a": []}, "effects": True}),
        ):
            status, answer = await service.ask(method, path, body, role="editor")
            assert (status, answer["error"]["kind"]) == (403, "forbidden"), (method, path)
        version = (await service.get("/api/plans/owned"))["version"]
        body = {"text": HELLO.replace("hello", "owned"), "version": version}
        assert (await service.ask("PUT", "/api/plans/owned", body, role="editor"))[0] == 403
        (found,) = (await service.get("/api/tasks"))["tasks"]
        assert found["state"] == "active"


async def test_a_plan_that_a_task_takes_over_by_itself_is_left_to_owners(tmp_path: Path) -> None:
    async with served(tmp_path, SETTINGS) as service:
        await service.post("/api/tasks", {"task": task(reload="automatic")})
        version = (await service.get("/api/plans/hello"))["version"]
        body = {"text": HELLO.replace("x > 1", "x > 2"), "version": version}
        status, answer = await service.ask("PUT", "/api/plans/hello", body, role="editor")
        assert (status, answer["error"]["kind"]) == (403, "forbidden")
        assert "takes over changes" in answer["error"]["message"]
        assert (await service.ask("DELETE", "/api/plans/hello", role="editor"))[0] == 403
        assert (await service.ask("PUT", "/api/plans/hello", body))[0] == 200


async def test_an_editor_saves_no_plan_that_names_something_forbidden(tmp_path: Path) -> None:
    async with served(tmp_path, SETTINGS) as service:
        text = plan('dbappend (a, "t")')
        status, answer = await service.ask("PUT", "/api/plans/made", {"text": text}, role="editor")
        assert (status, answer["error"]["kind"]) == (403, "forbidden")
        assert not (service.plans / "made.plan").exists()
        # A plan for others may leave open what its tasks decide.
        text = plan("write (a, $path)", parameters="path")
        assert (await service.ask("PUT", "/api/plans/made", {"text": text}, role="editor"))[0] == 200
        (service.service.home / "shared").mkdir()
        for path, status in (("/tmp/x.csv", 403), ("../shared/x.csv", 201)):
            body = {"task": made(parameters={"path": path})}
            assert (await service.ask("POST", "/api/tasks", body, role="editor"))[0] == status


async def test_the_database_of_the_service_cannot_be_listed(tmp_path: Path) -> None:
    settings = {
        "service": {"database": "main", "editor": {"allow": ["operator:dbappend", "database:*"]}},
        "database": {"main": {"url": f"sqlite:{tmp_path / 'main.db'}"}},
    }
    async with served(tmp_path, settings) as service:
        reason = await refused(service, plan('dbappend (a, "t") {DB: main}'))
        assert "that of the service itself" in reason


async def test_an_editor_without_a_list_uses_pure_operators_only(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        status, _ = await service.ask("POST", "/api/tasks", {"task": task()}, role="editor")
        assert status == 201
        assert "the operator write" in await _only_reason(service, plan('write (a, "x.csv")'))


async def _only_reason(service: Served, text: str) -> str:
    (service.plans / "made.plan").write_text(text)
    status, answer = await service.ask("POST", "/api/tasks", {"task": made()}, role="editor")
    assert status == 403
    return str(answer["error"]["message"])


async def test_an_editor_changes_listed_databases_only(tmp_path: Path) -> None:
    async with served(tmp_path, SETTINGS) as service:
        for path, more in (
            ("/api/outbox/deliver", {}),
            ("/api/outbox/retry", {"keys": ["a"]}),
            ("/api/outbox/drop", {"keys": ["a"]}),
            ("/api/outbox/retry-dead", {}),
            ("/api/suspects/forget", {"table": "t"}),
            ("/api/suspects/confirm", {"table": "t"}),
        ):
            status, _ = await service.ask("POST", path, {"database": "default", **more}, role="editor")
            assert status == 403
            status, _ = await service.ask("POST", path, {"database": "main", **more}, role="editor")
            assert status in (200, 404)


@pytest.mark.parametrize("name", ["run-id", "started"])
async def test_a_value_of_the_run_cannot_lead_into_a_listed_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "allowed"
    folder.mkdir()
    # With an empty value it would be an absolute path.
    text = plan(f'write (a, "${{{name}}}{folder}/x.csv")')
    async with served(tmp_path, _with_folder(str(folder))) as service:
        assert f"{folder}/x.csv" in await refused(service, text)
        body = {"text": text, "inputs": {"a": []}, "effects": True}
        assert (await service.ask("POST", "/api/plans/run", body, role="editor"))[0] == 403


def _with_folder(folder: str) -> dict[str, Any]:
    return {"service": {"editor": {"allow": ["operator:write", "operator:read", f"folder:{folder}"]}}}


@pytest.mark.parametrize(
    "path",
    ["../code/mine.csv", "../aioflow.toml", "../service.db", "../service.db-wal", "other.plan", "a/b.csv"],
)
async def test_a_listed_folder_does_not_open_the_files_of_the_service(tmp_path: Path, path: str) -> None:
    async with served(tmp_path, _with_folder(".")) as service:
        assert f"the file {path}" in await refused(service, plan(f'write (a, "{path}") {{FORMAT: csv}}'))
        (service.plans / "made.plan").write_text(plan('write (a, "../mine.csv")'))
        status, answer = await service.ask("POST", "/api/tasks", {"task": made()}, role="editor")
        assert status == 201, answer


async def test_a_listed_folder_does_not_show_the_settings(tmp_path: Path) -> None:
    async with served(tmp_path, _with_folder(".")) as service:
        text = plan('read ("../aioflow.toml" : b) {FORMAT: csv}')
        assert "the file ../aioflow.toml" in await refused(service, text)


async def test_an_editor_adds_no_plan_that_a_task_would_take_over_by_itself(tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    inner = plan('select (a, "x > 0" : b)', name="inner")
    (library / "inner.plan").write_text(inner)
    async with served(tmp_path) as service:
        (service.service.home / "aioflow.toml").write_text(f'[plans]\npath = ["{library}"]\n')
        (service.plans / "outer.plan").write_text('USE "inner.plan"\n' + plan("inner (a)", name="outer"))
        await service.post("/api/tasks", {"task": made(plan="outer.plan", reload="automatic")})
        # USE looks beside a plan before it looks into other folders.
        status, answer = await service.ask("PUT", "/api/plans/inner", {"text": inner}, role="editor")
        assert (status, answer["error"]["kind"]) == (403, "forbidden"), answer
        assert (await service.ask("PUT", "/api/plans/other", {"text": inner}, role="editor"))[0] == 200


async def test_a_home_that_is_a_link_is_the_same_folder(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        (tmp_path / "link").symlink_to(service.service.home)
        path = str(tmp_path / "link" / "plans" / "hello.plan")
        await service.post("/api/tasks", {"task": task(plan=path, reload="automatic")})
        assert (await service.ask("DELETE", "/api/plans/hello", role="editor"))[0] == 403
