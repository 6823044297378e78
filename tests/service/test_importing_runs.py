"""Imported watches at work: a page on loopback changes, and a message arrives at a server or a webhook."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from aioflow import Engine, load
from aioflow.service.importing.changedetection import read_backup
from tests.servers.gateway import Answer, Gateway
from tests.servers.smtp import SmtpServer
from tests.service.backups import backup

BEFORE = """<html><head><title>Town news</title></head><body><nav>Visitors today: 5</nav>
<ul id="news"><li><a href="/1">Market on Sunday</a></li><li>Library is closed</li></ul>
<p class="price">Tickets cost 12 EUR</p><footer>Last update 10:00</footer></body></html>"""
AFTER = (
    BEFORE.replace("Visitors today: 5", "Visitors today: 9")
    .replace("Library is closed", "Library is open")
    .replace("10:00", "11:00")
    .replace("12 EUR", "15 EUR")
)
OFFER = """<html><head><script type="application/ld+json">
{"@type": "Product", "offers": {"price": "PRICE", "availability": "https://schema.org/InStock"}}
</script></head><body>A lamp</body></html>"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def run_watch(
    folder: Path, site: Gateway, watch: dict[str, Any], *bodies: str, **settings: Any
) -> None:
    """Import one watch of the site, and run its plan for each body of the page, one after the other."""
    kind = "application/json" if bodies[0].startswith("{") else "text/html"
    [imported] = read_backup(backup(folder, {"url": site.url("/town"), **watch}, **settings))
    plan = folder / f"{imported.name}.plan"
    plan.write_text(imported.plan_text)
    configuration = tomllib.loads(imported.settings) | {"http": {"allow": [site.host], "robots": False}}
    for body in bodies:
        site.as_usual()
        site.answer(Answer(200, body, {"Content-Type": kind}))
        async with Engine(configuration=configuration) as engine:
            await engine.run(load(plan))


async def mails(folder: Path, watch: dict[str, Any], *bodies: str, **settings: Any) -> list[tuple[str, str]]:
    """Return subjects and texts of the mails that a watch sends."""
    async with SmtpServer() as server, Gateway() as site:
        url = f"mailto://127.0.0.1:{server.port}?to=ann@example.org&from=watch@example.org"
        await run_watch(folder, site, watch, *bodies, notification_urls=[url], **settings)
    assert all(kept.recipients == ("ann@example.org",) for kept in server.kept)
    return [(str(kept.message["Subject"]), _text(kept.message)) for kept in server.kept]


def _text(message: Any) -> str:
    text = str(message.get_body(["plain"]).get_content()).replace("\r\n", "\n")
    return text.partition("\n-- \n")[0].strip()


async def test_a_change_of_a_whole_page_is_mailed_as_lines_that_are_new_and_gone(folder: Path) -> None:
    excluded = {"subtractive_selectors": ["nav"], "ignore_text": ["/last update/"]}
    [(subject, text)] = await mails(folder, {"title": "Town", **excluded}, BEFORE, BEFORE, AFTER, AFTER)
    assert subject == "4 changes: Town"
    new, gone = text.split("Gone (2)")
    assert "Library is open" in new
    assert "Tickets cost 15 EUR" in new
    assert "Library is closed" in gone
    assert "Visitors" not in text
    assert "Last update" not in text


@pytest.mark.parametrize("selector", ["#news li", "xpath://ul[@id='news']/li", "/html/body/ul"])
async def test_a_filter_limits_the_lines(selector: str, folder: Path) -> None:
    [(subject, text)] = await mails(folder, {"title": "Town", "include_filters": [selector]}, BEFORE, AFTER)
    assert subject == "2 changes: Town"
    assert "Library is open" in text
    assert "Tickets" not in text


async def test_an_extract_is_compared_and_not_its_line(folder: Path) -> None:
    watch = {"include_filters": [".price"], "extract_text": [r"/(\d+) EUR/"], "filter_text_removed": False}
    [(_, text)] = await mails(folder, watch, BEFORE, AFTER)
    assert text.split() == ["line", "----", "15"]


async def test_a_change_is_told_while_the_page_has_the_trigger_only(folder: Path) -> None:
    assert await mails(folder, {"trigger_text": ["museum"]}, BEFORE, AFTER) == []


async def test_a_change_is_told_when_the_page_has_the_trigger(folder: Path) -> None:
    assert len(await mails(folder, {"trigger_text": ["is OPEN"]}, BEFORE, AFTER)) == 1


async def test_a_change_is_not_told_while_the_page_has_a_forbidden_text(folder: Path) -> None:
    watch = {"text_should_not_be_present": ["market"]}
    assert await mails(folder, watch, BEFORE, AFTER) == []


async def test_a_change_of_a_price_is_mailed_as_old_and_new(folder: Path) -> None:
    bodies = [OFFER.replace("PRICE", price) for price in ("12.50", "10.00")]
    [(_, text)] = await mails(folder, {"processor": "restock_diff"}, *bodies)
    assert "12.5 → 10" in text
    assert "InStock" in text


async def test_a_value_of_json_is_mailed_as_old_and_new(folder: Path) -> None:
    bodies = [json.dumps({"state": {"name": name}}) for name in ("open", "closed")]
    [(_, text)] = await mails(folder, {"include_filters": ["json:$.state.name"]}, *bodies)
    assert "open → closed" in text


async def test_values_of_json_are_mailed_as_lines(folder: Path) -> None:
    bodies = [json.dumps({"items": [{"n": 1}, {"n": last}]}) for last in (2, 3)]
    [(subject, _)] = await mails(folder, {"title": "N", "include_filters": ["json:$.items[*].n"]}, *bodies)
    assert subject == "2 changes: N"


async def test_a_template_for_the_text_of_a_notification_is_used(folder: Path) -> None:
    watch = {
        "title": "Town",
        "notification_title": "{{watch_title}} moved",
        "notification_body": "Look:\n{{diff}}",
    }
    [(subject, text)] = await mails(folder, watch, BEFORE, AFTER)
    assert subject == "Town moved"
    assert text.startswith("Look:")
    assert "Library is open" in text


async def test_a_filter_that_finds_nothing_any_more_is_an_error_and_no_change(folder: Path) -> None:
    from aioflow import RunError

    with pytest.raises(RunError, match="line"):
        await mails(folder, {"include_filters": ["#news li"]}, BEFORE, "<html><body>Sorry</body></html>")


async def test_a_notification_url_of_apprise_gets_the_changes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Gateway() as hook, Gateway() as site:
        url = f"json://127.0.0.1:{hook.port}/hook"
        monkeypatch.setenv("AIOFLOW_SECRET_NOTIFY_JSON", url)
        await run_watch(folder, site, {"title": "Town", "notification_urls": [url]}, BEFORE, AFTER)
    [request] = hook.taken
    message = json.loads(request.body)
    assert message["title"] == "8 changes: Town"
    assert "Library is open" in message["message"]
