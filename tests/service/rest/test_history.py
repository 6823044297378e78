"""News, rows and feeds of tasks over REST."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tests.service.rest.served import Served, served, task

FIRST = [{"url": "http://h/1", "price": 100}, {"url": "http://h/2", "price": 200}]
SECOND = [
    {"url": "http://h/1", "price": 90},
    {"url": "http://h/2", "price": 200},
    {"url": "http://h/3", "price": 5},
]


async def watch(service: Served, rows: list[dict[str, Any]]) -> None:
    body = {"task": task("watch", "watch.plan", inputs={"houses": rows}), "replace": True}
    await service.post("/api/tasks", body)
    assert await service.run("watch") == "succeeded"


async def test_the_changes_that_a_task_finds_are_news(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        await service.post("/api/tasks", {"task": task("watch", "watch.plan")})
        assert await service.get("/api/tasks/watch/news", "viewer") == {"news": [], "next": None}
        await watch(service, FIRST)
        await watch(service, SECOND)
        news = (await service.get("/api/tasks/watch/news?limit=2", "viewer"))["news"]
        assert sorted((each["kind"], each["after"]["url"]) for each in news) == [
            ("added", "http://h/3"),
            ("changed", "http://h/1"),
        ]
        (changed,) = (await service.get("/api/tasks/watch/news?kind=changed"))["news"]
        assert (changed["columns"], changed["before"]["price"], changed["after"]["price"]) == (
            ["price"],
            100,
            90,
        )


async def test_pages_of_news_have_each_change_once(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        await watch(service, FIRST)
        await watch(service, SECOND)
        whole = (await service.get("/api/tasks/watch/news"))["news"]
        seen: list[Any] = []
        query = ""
        while True:
            page = await service.get(f"/api/tasks/watch/news?limit=1{query}")
            seen += page["news"]
            if page["next"] is None:
                break
            query = f"&cursor={page['next']}"
        assert seen == whole
        assert len(whole) == 4
        status, answer = await service.ask("GET", "/api/tasks/watch/news?cursor=nonsense")
        assert (status, answer["error"]["kind"]) == (422, "invalid")


async def test_the_rows_of_a_task_have_their_history(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        await watch(service, FIRST)
        await watch(service, SECOND)
        page = await service.get("/api/tasks/watch/rows", "viewer")
        assert (page["table"], page["tables"]) == ("houses", ["houses"])
        by_url = {each["row"]["url"]: each for each in page["rows"]}
        assert by_url["http://h/1"]["row"]["price"] == 90
        assert [(each["before"], each["after"]) for each in by_url["http://h/1"]["changes"]] == [(100, 90)]
        assert (await service.ask("GET", "/api/tasks/watch/rows?table=others"))[0] == 404
        first = await service.get("/api/tasks/watch/rows?limit=2")
        second = await service.get(f"/api/tasks/watch/rows?limit=2&cursor={first['next']}")
        assert len([*first["rows"], *second["rows"]]) == 3


async def test_feeds_are_read_under_a_secret_address_without_a_token(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        await watch(service, FIRST)
        await watch(service, SECOND)
        addresses = await service.get("/api/tasks/watch/feed-address", "editor")
        assert (await service.ask("GET", "/api/tasks/watch/feed-address", role="viewer"))[0] == 403
        assert (await service.get("/api/tasks/watch"))["feed_key"] == ""
        for kind, content_type in (
            ("rss", "application/rss+xml"),
            ("atom", "application/atom+xml"),
            ("json", "application/feed+json"),
        ):
            async with service.session.get(addresses[kind]) as response:
                assert (response.status, response.content_type) == (200, content_type)
                text = await response.text()
                assert "http://h/3" in text
        async with service.session.get(addresses["rss"]) as response:
            root = ElementTree.fromstring(await response.text())
        assert len(root.findall("./channel/item")) == 4


async def test_a_renewed_feed_address_replaces_the_old_one(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        await service.post("/api/tasks", {"task": task("watch", "watch.plan")})
        old = (await service.get("/api/tasks/watch/feed-address"))["rss"]
        new = (await service.post("/api/tasks/watch/feed-address"))["rss"]
        assert old != new
        for address, status in ((old, 404), (new, 200)):
            async with service.session.get(address) as response:
                assert response.status == status
        status, _ = await service.ask("GET", "/feeds/guess/news.rss", role=None)
        assert status == 404
        status, _ = await service.ask("GET", f"{new.removeprefix(service.address)}x", role=None)
        assert status == 404


async def test_guesses_of_feed_addresses_are_limited(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        statuses = [(await service.ask("GET", f"/feeds/{n}/news.rss", role=None))[0] for n in range(12)]
        assert statuses == [404] * 10 + [429] * 2


async def test_guesses_of_others_do_not_end_a_feed(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        await service.post("/api/tasks", {"task": task("watch", "watch.plan")})
        address = (await service.get("/api/tasks/watch/feed-address"))["rss"]
        for number in range(12):
            await service.ask("GET", f"/feeds/{number}/news.rss", role=None)
        async with service.session.get(address) as response:
            assert response.status == 200
