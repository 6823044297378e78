"""The REST interface of a service whose task database, and that of its plans, is of each kind."""

from __future__ import annotations

from pathlib import Path

from tests.service.rest.served import served, task


async def test_a_service_on_any_database_answers_the_same(tmp_path: Path, database_url: str) -> None:
    settings = {"service": {"database": "default"}, "database": {"default": {"url": database_url}}}
    async with served(tmp_path, settings) as service:
        rows = [{"url": "http://h/1", "price": 100}, {"url": "http://h/2", "price": 200}]
        for number in range(3):
            rows[0]["price"] = 100 - number
            body = {"task": task("watch", "watch.plan", inputs={"houses": rows}), "replace": True}
            await service.post("/api/tasks", body)
            assert await service.run("watch") == "succeeded"
        first = await service.get("/api/tasks/watch/runs?limit=2")
        cursor = first["next"].replace("#", "%23")
        second = await service.get(f"/api/tasks/watch/runs?limit=2&cursor={cursor}")
        occurrences = [each["occurrence"] for each in (*first["runs"], *second["runs"])]
        assert len(set(occurrences)) == len(occurrences) == 3
        assert len((await service.get("/api/tasks/watch/news"))["news"]) == 4
        assert len((await service.get("/api/tasks/watch/rows"))["rows"]) == 2
        assert (await service.get("/api/suspects?database=default"))["suspects"] == []
        assert (await service.get("/api/outbox?database=default"))["messages"] == []
        created = await service.post("/api/tokens", {"name": "second", "role": "owner"})
        assert (await service.ask("POST", "/api/tokens", {"name": "second", "role": "owner"}))[0] == 409
        assert created["token"] not in str(await service.get("/api/tokens"))
        assert 'aioflow_runs{state="succeeded"} 3.0' in (await service.ask("GET", "/metrics"))[1]
        changed = (await service.get("/api/tasks/watch"))["changed"]
        change = {"changes": {"retries": 1}, "expected": changed}
        assert (await service.ask("PATCH", "/api/tasks/watch", change))[0] == 200
        assert (await service.ask("PATCH", "/api/tasks/watch", change))[0] == 409
        assert (await service.ask("DELETE", "/api/tokens/second"))[0] == 204
        found = (await service.get("/api/databases"))["databases"]
        assert [each["name"] for each in found] == ["default"]
        assert "@" not in found[0]["address"]
