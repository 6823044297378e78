"""Settings, code, health, metrics and sources over REST."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from aioflow.config.configuration import read_configuration
from tests.service.rest.served import served, task


async def test_urls_of_chats_show_no_tokens(tmp_path: Path) -> None:
    urls = {"chat": "slack://TokenA/TokenB/TokenC", "both": ["tgram://1:abc/chat", "secret:TEAM_CHAT"]}
    settings = {"notify": {name: {"url": url} for name, url in urls.items()}}
    async with served(tmp_path, settings) as service:
        found = {each["setting"]: each["value"] for each in (await service.get("/api/settings"))["settings"]}
        assert found["notify.chat.url"] == ["slack://********"]
        assert found["notify.both.url"] == ["tgram://********", "secret:TEAM_CHAT"]


async def test_settings_have_their_origin_and_no_credentials(tmp_path: Path) -> None:
    settings = {
        "host": {"api.example": {"headers": {"X-Token": "hidden"}}},
        "service": {"editor": {"allow": ["operator:email"]}},
    }
    async with served(tmp_path, settings) as service:
        found = {each["setting"]: each for each in (await service.get("/api/settings", "viewer"))["settings"]}
        assert found["workers"] == {"setting": "workers", "value": 15, "origin": "default"}
        assert found["service.editor.allow"]["value"] == ["operator:email"]
        assert "hidden" not in str(found)


async def test_an_owner_replaces_the_file_of_settings_after_a_check(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        path = "/api/settings/file"
        assert await service.get(path) == {"text": None, "version": None}
        text = '# mine\n[service]\nruns = 7\n[service.editor]\nallow = ["operator:email"]\n'
        status, saved = await service.ask("PUT", path, {"text": text})
        assert status == 200
        assert await service.get(path) == {"text": text, "version": saved["version"]}
        for wrong, message in (
            ("[service]\nruns = 0\n", "service.runs"),
            ("[service]\nrusn = 5\n", "did you mean 'runs'"),
            ("[service", "aioflow.toml"),
            ('[service.editor]\nallow = ["anything"]\n', "operator:email"),
        ):
            status, answer = await service.ask("PUT", path, {"text": wrong, "version": saved["version"]})
            assert (status, answer["error"]["kind"]) == (422, "invalid")
            assert message in answer["error"]["message"]
        assert (await service.ask("PUT", path, {"text": ""}))[0] == 409
        found = read_configuration(service.service.home)
        assert found["service"]["runs"] == 7
        for role in ("viewer", "editor"):
            assert (await service.ask("GET", path, role=role))[0] == 403


async def test_an_owner_adds_code(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        path = "/api/code/my_operators"
        assert (await service.ask("GET", path))[0] == 404
        text = "from aioflow import function\n"
        status, saved = await service.ask("PUT", path, {"text": text})
        assert status == 200
        assert await service.get("/api/code") == {"modules": ["my_operators"], "loaded": []}
        assert (service.service.home / "code" / "my_operators.py").read_text() == text
        status, answer = await service.ask("PUT", path, {"text": "def", "version": saved["version"]})
        assert (status, answer["error"]["kind"]) == (422, "invalid")
        assert "on line 1" in answer["error"]["message"]
        assert (await service.ask("PUT", path, {"text": ""}))[0] == 409
        assert (await service.ask("PUT", "/api/code/Wrong-Name", {"text": ""}))[0] == 422
        assert (await service.ask("DELETE", path))[0] == 204
        for role in ("viewer", "editor"):
            assert (await service.ask("PUT", path, {"text": ""}, role=role))[0] == 403


async def test_health_needs_no_token_and_readiness_tells_the_truth(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        assert await service.ask("GET", "/healthz", role=None) == (200, {"status": "ok"})
        assert await service.ask("GET", "/readyz", role=None) == (200, {"status": "ready"})
        service.service.stop()
        status, answer = await service.ask("GET", "/readyz", role=None)
        assert (status, answer["error"]["kind"]) == (503, "unavailable")
        assert (await service.ask("GET", "/healthz", role=None))[0] == 200


async def test_figures_for_prometheus_are_those_of_the_service(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        await service.post("/api/tasks", {"task": task('odd "name"\\')})
        await service.post("/api/tasks", {"task": task()})
        assert await service.run("hello") == "succeeded"
        status, text = await service.ask("GET", "/metrics", role="viewer")
        assert status == 200
        lines = text.splitlines()
        assert 'aioflow_tasks{state="active"} 2.0' in lines
        assert 'aioflow_runs{state="succeeded"} 1.0' in lines
        assert 'aioflow_task_failures{task="odd \\"name\\"\\\\"} 0.0' in lines
        assert 'aioflow_rest_requests_total{operation="add_task",status="201"} 2.0' in lines
        assert any(line.startswith("process_resident_memory_bytes") for line in lines)


async def test_metrics_name_the_extra_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path) as service:
        monkeypatch.setitem(sys.modules, "prometheus_client", None)
        status, answer = await service.ask("GET", "/metrics")
        assert (status, answer["error"]["kind"]) == (501, "missing-extra")
        assert "aioflow[metrics]" in answer["error"]["message"]


async def test_the_hosts_that_runs_have_asked_are_sources(tmp_path: Path) -> None:
    wrapper = (
        'PLAN fetch\n{\n  OUTPUT: b\n  BODY\n  {\n    wrapper ("home" : b)\n  }\n}\n'
        'WRAPPER home ()\n{\n  GET: "http://127.0.0.1:1/"\n  EACH: "li"\n  title: "a"\n}\n'
    )
    settings = {"http": {"allow": ["127.0.0.1:1"], "retries": 0}}
    async with served(tmp_path, settings) as service:
        assert (await service.get("/api/sources", "viewer")) == {"sources": []}
        (service.plans / "fetch.plan").write_text(wrapper)
        await service.post("/api/tasks", {"task": {"name": "fetch", "plan": "fetch.plan"}})
        assert await service.run("fetch") == "failed"
        (source,) = (await service.get("/api/sources", "viewer"))["sources"]
        assert source["host"] == "127.0.0.1:1"
        assert source["requests"] + sum(source["refused"].values()) > 0
