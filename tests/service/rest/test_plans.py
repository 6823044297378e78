"""Plan files over REST: read, checked, completed, saved, drawn and run once."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from aioflow.compiler import check
from tests.service.rest.served import HELLO, Gate, Served, served, task

WRITES = """\
PLAN writes
{
  INPUT: a (x number)
  BODY
  {
    write (a, "out.csv")
  }
}
"""


async def lines_of(service: Served, body: dict[str, Any], role: str = "owner") -> list[Any]:
    status, text = await service.ask("POST", "/api/plans/run", body, role=role)
    assert status == 200, text
    return [json.loads(line) for line in text.splitlines()]


async def test_a_plan_is_saved_read_listed_and_removed(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        path = "/api/plans/team%2Fmine"
        status, saved = await service.ask("PUT", path, {"text": HELLO})
        assert status == 200
        found = await service.get(path)
        assert (found["text"], found["version"]) == (HELLO, saved["version"])
        assert "team/mine" in [each["name"] for each in (await service.get("/api/plans"))["plans"]]
        assert (service.plans / "team" / "mine.plan").read_text() == HELLO
        assert [each.name for each in (service.plans / "team").iterdir()] == ["mine.plan"]
        assert (await service.ask("DELETE", f"{path}?version=other"))[0] == 409
        assert (await service.ask("DELETE", f"{path}?version={saved['version']}"))[0] == 204
        assert (await service.ask("GET", path))[0] == 404


async def test_a_plan_that_somebody_else_has_changed_is_not_overwritten(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        version = (await service.get("/api/plans/hello"))["version"]
        text = HELLO.replace("x > 1", "x > 2")
        assert (await service.ask("PUT", "/api/plans/hello", {"text": text}))[0] == 409
        assert (await service.ask("PUT", "/api/plans/hello", {"text": text, "version": version}))[0] == 200
        other = HELLO.replace("x > 1", "x > 3")
        status, answer = await service.ask("PUT", "/api/plans/hello", {"text": other, "version": version})
        assert (status, answer["error"]["kind"]) == (409, "conflict")
        assert (service.plans / "hello.plan").read_text() == text


async def test_a_plan_with_mistakes_is_not_saved(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        wrong = HELLO.replace("select", "selct")
        status, answer = await service.ask("PUT", "/api/plans/new", {"text": wrong})
        assert (status, answer["error"]["kind"]) == (422, "invalid")
        assert answer["error"]["diagnostics"][0]["line"] == 7
        assert not (service.plans / "new.plan").exists()


async def test_a_text_is_checked_with_the_files_that_it_uses(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        text = (
            'USE "hello.plan"\nPLAN two\n{\n  INPUT: a (x number)\n  BODY\n  {\n    hello (a : b)\n  }\n}\n'
        )
        found = await service.post("/api/plans/check", {"text": text, "name": "two"}, role="viewer")
        assert found["sound"]
        broken = text.replace("hello (a : b)", "hello (a : b, c)")
        found = await service.post("/api/plans/check", {"text": broken})
        assert not found["sound"]
        assert [(each["line"], each["severity"]) for each in found["diagnostics"]] == [(7, "error")]
        found = await service.post("/api/plans/check", {"text": "PLAN {"})
        assert not found["sound"]
        assert not (await service.post("/api/plans/check", {"text": ""}))["sound"]


async def test_a_file_elsewhere_is_not_quoted_in_messages(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        # The folder with aioflow.toml is one that USE may go up to.
        (service.service.home / "aioflow.toml").write_text("# treasure = 5\nops = []\n")
        text = 'USE "../aioflow.toml"\nPLAN two\n{\n  BODY\n  {\n  }\n}\n'
        for role in ("viewer", "editor"):
            found = await service.post("/api/plans/check", {"text": text}, role=role)
            assert not found["sound"]
            assert "treasure" not in str(found)
            assert "ops" not in str(found)
        status, answer = await service.ask("PUT", "/api/plans/two", {"text": text}, role="editor")
        assert status == 422
        assert "ops" not in str(answer)
        assert "ops" in str(await service.post("/api/plans/check", {"text": text}, role="owner"))


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("PL", "keyword", {"PLAN"}),
        ("PLAN x { OUT", "keyword", {"OUTPUT"}),
        ("PLAN x { BODY { sel", "operator", {"select"}),
        ("PLAN other { } PLAN x { BODY { oth", "plan", {"other"}),
        ("PLAN x { INPUT: houses (a char)\n BODY { select (ho", "variable", {"houses"}),
        ('PLAN x { BODY { select (a, "b" : found) sort (fo', "variable", {"found"}),
        ("PLAN x { BODY { join (a, b : c) {TY", "option", {"TYPE"}),
        ("PLAN x { BODY { join (a, b : c) {WORK", "option", {"WORKERS"}),
        ('WRAPPER search { } PLAN x { BODY { wrapper ("se', "wrapper", {"search"}),
        ('PLAN x { BODY { apply (a, "rest_w', "function", set()),
        ('PLAN x { BODY { apply ("rest_w', "function", {"rest_wait"}),
        ("PLAN x { BODY { # sel", "operator", None),
    ],
)
async def test_words_are_completed_by_their_place(
    tmp_path: Path, text: str, kind: str, words: set[str] | None
) -> None:
    async with served(tmp_path) as service:
        items = [line for line in ("PLAN other", "WRAPPER search") if text.startswith(line)]
        text = text.replace("} PLAN", "}\nPLAN") if items else text
        body = {"text": text + "\n}}", "offset": len(text)}
        found = (await service.post("/api/plans/complete", body, role="viewer"))["completions"]
        if words is None:
            return  # inside of a comment anything may stand
        chosen = {each["text"] for each in found if each["kind"] == kind}
        assert words <= chosen
        assert all(each["text"].lower().startswith(text[each["start"] :].lower()) for each in found)


async def test_a_plan_is_drawn(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        for drawing, beginning in (("mermaid", "flowchart"), ("dot", "digraph"), ("svg", "<svg")):
            found = await service.get(f"/api/plans/hello/graph?format={drawing}", role="viewer")
            assert found["text"].startswith(beginning)
        assert (await service.ask("GET", "/api/plans/nothing/graph"))[0] == 404


async def test_a_text_that_is_not_saved_is_drawn(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        body = {"text": HELLO, "format": "mermaid"}
        found = await service.post("/api/plans/graph", body, role="viewer")
        assert found == await service.get("/api/plans/hello/graph?format=mermaid")
        text = 'USE "../service.db"\nPLAN two { BODY { } }'
        status, _ = await service.ask("POST", "/api/plans/graph", {"text": text}, role="viewer")
        assert status == 422


async def test_the_catalogue_has_the_reference_of_operators_and_functions(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        found = await service.get("/api/catalogue", "viewer")
        operators = {each["name"]: each for each in found["operators"]}
        select = operators["select"]
        assert select["form"] == "select (rel, [conditions] : out)"
        wrapper = {each["name"]: each for each in operators["wrapper"]["settings"]}
        assert wrapper["name"]["required"]
        assert not wrapper["OUTER"]["required"]
        assert (select["fires"], select["effects"], select["family"]) == ("stream", "never", "relational")
        assert operators["email"]["effects"] == "always"
        assert "rest_wait" in {each["name"] for each in found["functions"]}
        assert all(each["plans"] or each["wrappers"] for each in found["library"])


async def test_a_plan_is_run_once_and_its_rows_are_streamed(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        rows = [{"x": number} for number in range(5)]
        *found, last = await lines_of(service, {"name": "hello", "inputs": {"a": rows}})
        assert found == [{"output": "b", "row": {"x": number}} for number in (2, 3, 4)]
        assert (last["end"]["state"], last["end"]["rows"]) == ("ended", 3)
        *found, last = await lines_of(service, {"text": HELLO, "inputs": {"a": rows}, "limit": 1})
        assert len(found) == 1
        assert last["end"]["state"] == "cut"
        status, answer = await service.ask("POST", "/api/plans/run", {"text": HELLO})
        assert (status, answer["error"]["kind"]) == (422, "invalid")
        status, answer = await service.ask("POST", "/api/plans/run", {"name": "hello", "text": HELLO})
        assert status == 422


async def test_a_plan_with_effects_is_run_only_on_request(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        body = {"text": WRITES, "inputs": {"a": [{"x": 1}, {"x": 2}]}}
        status, answer = await service.ask("POST", "/api/plans/run", body)
        assert status == 422
        assert "this plan has effects (write)" in answer["error"]["message"]
        assert not (service.plans / "out.csv").exists()
        (last,) = await lines_of(service, {**body, "effects": True})
        assert last["end"]["state"] == "ended"
        assert (service.plans / "out.csv").read_text().split() == ["x", "1", "2"]


async def test_the_limit_of_rows_does_not_cut_a_run_with_effects(tmp_path: Path) -> None:
    text = WRITES.replace("  BODY", "  OUTPUT: b\n  BODY").replace('"out.csv")', '"out.csv" : b)')
    async with served(tmp_path) as service:
        rows = [{"x": number} for number in range(50)]
        body = {"text": text, "inputs": {"a": rows}, "effects": True, "limit": 2}
        *found, last = await lines_of(service, body)
        assert len(found) == 2
        assert last["end"]["state"] == "ended"
        assert len((service.plans / "out.csv").read_text().split()) == 51


async def test_a_run_that_fails_ends_with_its_reason(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        text = HELLO.replace('select (a, "x > 1" : b)', 'read ("nothing.csv" : b)')
        (last,) = await lines_of(service, {"text": text, "inputs": {"a": []}})
        assert last["end"]["state"] == "failed"
        assert "nothing.csv" in last["end"]["reason"]
        (last,) = await lines_of(
            service,
            {"name": "waiting", "inputs": {"a": [{"x": 1}]}, "effects": True, "timeout_seconds": 0.1},
        )
        assert last["end"]["state"] == "failed"


async def test_a_run_ends_when_its_reader_goes(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        headers = {"Authorization": f"Bearer {service.tokens['owner']}"}
        body = {"name": "waiting", "inputs": {"a": [{"x": 1}]}, "effects": True}
        async with service.session.post(
            f"{service.address}/api/plans/run", json=body, headers=headers
        ) as response:
            assert response.status == 200
            await Gate.reached.wait()
            response.close()
        async with asyncio.timeout(30):
            while service.service.engine.budget.common.used:
                await service.get("/healthz")


async def test_tasks_keep_the_version_that_they_have(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        await service.post("/api/tasks", {"task": task()})
        version = (await service.get("/api/plans/hello"))["version"]
        text = HELLO.replace("x > 1", "x > 5")
        assert (await service.ask("PUT", "/api/plans/hello", {"text": text, "version": version}))[0] == 200
        assert (await service.get("/api/tasks/hello"))["newer_version"] is not None
        assert await service.run("hello") == "succeeded"
        assert (await service.get("/api/runs/hello/sample"))["rows"] != []


@pytest.mark.parametrize("role", ["viewer", "editor", "owner"])
async def test_mistakes_in_a_named_plan_are_shown_to_every_role(tmp_path: Path, role: str) -> None:
    wrong = HELLO.replace("select", "selct")
    async with served(tmp_path) as service:
        body = {"text": wrong, "name": "team/mine"}
        (found,) = (await service.post("/api/plans/check", body, role=role))["diagnostics"]
        assert "selct" in found["message"]
        assert (found["file"], found["line"]) == (str(service.plans / "team" / "mine.plan"), 7)
        if role != "viewer":
            status, answer = await service.ask("PUT", "/api/plans/mine", {"text": wrong}, role=role)
            assert status == 422
            assert "selct" in answer["error"]["diagnostics"][0]["message"]
        assert (await service.ask("POST", "/api/plans/check", {"text": wrong, "name": "../x"}))[0] == 422


async def test_a_plan_in_a_folder_uses_the_files_beside_it(tmp_path: Path) -> None:
    text = 'USE "inner.plan"\n' + HELLO.replace("hello", "outer").replace(
        'select (a, "x > 1" : b)', "inner (a : b)"
    )
    async with served(tmp_path) as service:
        inner = HELLO.replace("hello", "inner")
        assert (await service.ask("PUT", "/api/plans/team%2Finner", {"text": inner}))[0] == 200
        assert (await service.post("/api/plans/check", {"text": text, "name": "team/outer"}))["sound"]
        assert (await service.ask("PUT", "/api/plans/team%2Fouter", {"text": text}))[0] == 200
        first, _ = await lines_of(service, {"name": "team/outer", "inputs": {"a": [{"x": 2}]}})
        assert first == {"output": "b", "row": {"x": 2}}


async def test_use_does_not_tell_which_files_there_are(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        (service.service.home / "aioflow.toml").write_text("# settings\n")
        (service.service.home / "private.plan").write_text(HELLO)
        for role in ("viewer", "editor"):
            answers = set()
            for name in (
                "../service.db",
                "../private.plan",
                "../nothing",
                "../privat.plan",
                "../../../x",
                "/",
            ):
                body = {"text": f'USE "{name}"\nPLAN two {{ BODY {{ }} }}'}
                found = await service.post("/api/plans/check", body, role=role)
                answers.add(tuple((each["message"], each["line"]) for each in found["diagnostics"]))
            assert answers == {(("only an owner may USE a file outside of the folder of plans", 1),)}
        body = {"text": 'USE "../service.db"\nPLAN two { BODY { } }'}
        status, answer = await service.ask("POST", "/api/plans/run", body, role="editor")
        assert (status, len(answer["error"]["diagnostics"])) == (422, 1)


@pytest.mark.parametrize("text", ["PLAN x { BODY {" + "\n" * 150_000, "INPUT: " + "a(" * 90_000])
async def test_a_text_of_any_form_is_completed_at_once(tmp_path: Path, text: str) -> None:
    async with served(tmp_path) as service, asyncio.timeout(20):
        await service.post("/api/plans/complete", {"text": text, "offset": len(text)}, role="viewer")


async def test_the_service_answers_while_a_plan_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def analyse(*arguments: Any, **options: Any) -> Any:
        begun.set()
        assert may_end.wait(30)
        return check.analyse(*arguments, **options)

    monkeypatch.setattr("aioflow.service.rest.handlers.plans.analyse", analyse)
    async with served(tmp_path) as service, asyncio.timeout(20):
        checked = asyncio.create_task(service.post("/api/plans/check", {"text": HELLO}, role="viewer"))
        assert await asyncio.to_thread(begun.wait, 10)
        assert (await service.get("/healthz"))["status"] == "ok"
        assert not checked.done()
        may_end.set()
        assert (await checked)["sound"]
