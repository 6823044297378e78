"""Who may ask: tokens, roles, Host, Origin, and the limit of failed attempts."""

from __future__ import annotations

from pathlib import Path

import pytest

from aioflow.service.rest.access import FAILURES_AT_MOST, FailureLimit
from aioflow.service.rest.routes import all_routes
from aioflow.service.store.tokens import ensure_owner_token, read_tokens
from tests.service.rest.served import served, task


async def test_every_route_but_those_for_health_login_and_feeds_needs_a_token(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        for route in all_routes():
            path = route.path.replace("{", "").replace("}", "")
            status, answer = await service.ask(route.method, path, role=None)
            if route.role is None:
                assert status != 401
            else:
                assert status == 401, route
                assert answer["error"]["kind"] == "unauthorized"
    assert {route.path for route in all_routes() if route.role is None} == {
        "/api/login",
        "/feeds/{key}/{feed}",
        "/healthz",
        "/readyz",
    }


async def test_a_role_that_is_too_low_is_refused_by_every_route(tmp_path: Path) -> None:
    lower = {"editor": "viewer", "owner": "editor"}
    async with served(tmp_path) as service:
        for route in all_routes():
            if route.role in lower:
                path = route.path.replace("{", "").replace("}", "")
                status, answer = await service.ask(route.method, path, role=lower[route.role])
                assert status == 403, route
                assert route.role in answer["error"]["message"]


async def test_a_viewer_reads_and_changes_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        await service.post("/api/tasks", {"task": task()})
        assert [
            each["definition"]["name"] for each in (await service.get("/api/tasks", "viewer"))["tasks"]
        ] == ["hello"]
        status, _ = await service.ask("DELETE", "/api/tasks/hello", role="viewer")
        assert status == 403
        assert len((await service.get("/api/tasks"))["tasks"]) == 1


async def test_a_wrong_token_and_a_revoked_one_are_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        wrong = {"Authorization": "Bearer aioflow_wrong"}
        assert (await service.ask("GET", "/api/whoami", role=None, headers=wrong))[0] == 401
        basic = {"Authorization": f"Basic {service.tokens['owner']}"}
        assert (await service.ask("GET", "/api/whoami", role=None, headers=basic))[0] == 401
        assert await service.get("/api/whoami", "viewer") == {"name": "viewer", "role": "viewer"}
        assert (await service.ask("DELETE", "/api/tokens/viewer"))[0] == 204
        assert (await service.ask("GET", "/api/whoami", role="viewer"))[0] == 401


async def test_the_text_of_a_token_is_shown_once_and_stored_nowhere(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        created = await service.post("/api/tokens", {"name": "console", "role": "viewer"})
        listed = await service.get("/api/tokens")
        assert "console" in [each["name"] for each in listed["tokens"]]
        assert created["token"] not in str(listed)
        async with service.service.database.reading() as statements:
            rows = await statements.fetch("SELECT name, role, digest, created, used FROM aioflow_tokens")
        assert created["token"] not in str(rows)
        headers = {"Authorization": f"Bearer {created['token']}"}
        status, answer = await service.ask("GET", "/api/whoami", role=None, headers=headers)
        assert (status, answer) == (200, {"name": "console", "role": "viewer"})
        status, _ = await service.ask("POST", "/api/tokens", {"name": "console", "role": "owner"})
        assert status == 409


async def test_the_last_token_of_an_owner_stays(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        status, answer = await service.ask("DELETE", "/api/tokens/owner")
        assert (status, answer["error"]["kind"]) == (409, "conflict")
        await service.post("/api/tokens", {"name": "second", "role": "owner"})
        assert (await service.ask("DELETE", "/api/tokens/owner"))[0] == 204


async def test_the_first_start_makes_a_token_of_an_owner_and_later_ones_do_not(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        database = service.service.database
        async with database.writing() as statements:
            assert await ensure_owner_token(statements) is None
            await statements.run("DELETE FROM aioflow_tokens")
        async with database.writing() as statements:
            first = await ensure_owner_token(statements)
            assert first is not None
            assert await ensure_owner_token(statements) is None
            assert [(each.name, each.role) for each in await read_tokens(statements)] == [("owner", "owner")]
        headers = {"Authorization": f"Bearer {first}"}
        assert (await service.ask("GET", "/api/tokens", role=None, headers=headers))[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1", "localhost:1", "", "127.0.0.1.evil.example"]
)
async def test_a_request_under_a_foreign_name_is_refused(tmp_path: Path, host: str) -> None:
    async with served(tmp_path) as service:
        status, answer = await service.ask("GET", "/api/tasks", headers={"Host": host})
        assert (status, answer["error"]["kind"]) == (403, "forbidden")
        assert (await service.ask("GET", "/healthz", role=None, headers={"Host": host}))[0] == 403


async def test_the_names_of_the_service_itself_are_accepted(tmp_path: Path) -> None:
    settings = {"service": {"url": "https://monitor.example.org"}}
    async with served(tmp_path, settings) as service:
        port = service.address.rpartition(":")[2]
        for host in (f"localhost:{port}", f"127.0.0.1:{port}", "monitor.example.org"):
            assert (await service.ask("GET", "/api/tasks", headers={"Host": host}))[0] == 200
        for origin in (f"http://localhost:{port}", service.address, "https://monitor.example.org"):
            assert (await service.ask("GET", "/api/tasks", headers={"Origin": origin}))[0] == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://localhost", "http://127.0.0.1:1", "file://"]
)
async def test_a_page_of_another_site_is_refused(tmp_path: Path, origin: str) -> None:
    async with served(tmp_path) as service:
        status, answer = await service.ask("POST", "/api/tasks", {"task": task()}, headers={"Origin": origin})
        assert (status, answer["error"]["kind"]) == (403, "forbidden")
        assert (await service.get("/api/tasks"))["tasks"] == []


async def test_login_checks_a_token_and_refuses_an_address_after_ten_wrong_ones(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        token = service.tokens["viewer"]
        status, answer = await service.ask("POST", "/api/login", {"token": token}, role=None)
        assert (status, answer) == (200, {"name": "viewer", "role": "viewer"})
        for _ in range(FAILURES_AT_MOST):
            assert (await service.ask("POST", "/api/login", {"token": "wrong"}, role=None))[0] == 401
        status, answer = await service.ask("POST", "/api/login", {"token": token}, role=None)
        assert (status, answer["error"]["kind"]) == (429, "too-many-requests")
        # Wrong tokens are refused elsewhere too; those who have one are not locked out by others.
        wrong = {"Authorization": "Bearer wrong"}
        assert (await service.ask("GET", "/api/tasks", role=None, headers=wrong))[0] == 429
        assert (await service.ask("GET", "/api/tasks", role="viewer"))[0] == 200


def test_the_limit_ends_after_a_minute_and_keeps_few_addresses() -> None:
    now = [0.0]
    limit = FailureLimit(lambda: now[0])
    for _ in range(FAILURES_AT_MOST):
        assert limit.wait_seconds("a") == 0
        limit.note("a")
    assert limit.wait_seconds("a") == 60
    assert limit.wait_seconds("b") == 0
    now[0] = 59.9
    assert limit.wait_seconds("a") > 0
    now[0] = 60.0
    assert limit.wait_seconds("a") == 0


async def test_answers_forbid_caching_sniffing_and_framing(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        for path in ("/healthz", "/nothing"):
            async with service.session.get(service.address + path) as response:
                assert response.headers["Cache-Control"] == "no-store"
                assert response.headers["X-Content-Type-Options"] == "nosniff"
                assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]
                assert "Access-Control-Allow-Origin" not in response.headers
