"""The paper's tasks: a monitor that ends itself, and quotes that are mailed or sent by text message."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from aioflow import load
from aioflow.config.configuration import read_configuration
from aioflow.demo.running import Site
from aioflow.service.actions import LocalActions
from aioflow.service.home import open_service_database
from aioflow.service.service import MonitorService
from aioflow.service.store.occurrences import Occurrence
from aioflow.state.databases import Databases
from aioflow.testing import ScriptedSite, run_plan
from tests.plans.monitoring import mails_in, settings_for

PLANS = Path(__file__).parents[2] / "plans"


class Home:
    """A home whose service runs tasks at a time that the test says."""

    def __init__(self, folder: Path, site: Site) -> None:
        self.folder = folder
        self.settings = settings_for(f"sqlite:{folder / 'houses.db'}", folder, site)

    async def run(self, name: str, at: datetime) -> Occurrence:
        service = MonitorService(
            self.folder, read_configuration(self.folder, self.settings), clock=lambda: at
        )
        return await service.run_here(name)

    def actions(self) -> LocalActions:
        configuration = read_configuration(self.folder, self.settings)
        return LocalActions(self.folder, configuration, open_service_database(configuration, self.folder))

    async def tables(self) -> set[str]:
        databases = Databases(self.settings)
        connection = await databases.connect(databases.address(None, self.folder))
        try:
            rows = await connection.fetch("SELECT name FROM sqlite_master WHERE type = 'table'")
        finally:
            await connection.close()
        return {str(name) for (name,) in rows}


async def test_the_september_plan_mails_at_the_end_removes_itself_and_schedules_a_cleaner(
    tmp_path: Path, site: Site
) -> None:
    shutil.copytree(PLANS / "september", tmp_path / "plans")
    home = Home(tmp_path, site)
    actions = home.actions()
    try:
        await actions.add_task(
            {
                "name": "september",
                "plan": "september.plan",
                "schedule": "0 8 * 9 *",
                "parameters": {"to": "me@example.org"},
                "inputs": {
                    "criteria": [
                        {
                            "city": "Irvine",
                            "state": "CA",
                            "max-price": 550_000,
                            "min-beds": 4,
                            "site": site.url,
                        }
                    ]
                },
            }
        )
        before = await home.run("september", datetime(2026, 9, 29, 8, tzinfo=UTC))
        assert (before.state, mails_in(tmp_path)) == ("succeeded", [])
        assert [each.definition.name for each in await actions.list_tasks()] == ["september"]

        last = await home.run("september", datetime(2026, 9, 30, 8, tzinfo=UTC))
        assert last.state == "succeeded", last.reason
        (mail,) = mails_in(tmp_path)
        assert "houses were on the market in September" in str(mail["Subject"])
        (cleaner,) = await actions.list_tasks()
        assert (cleaner.definition.name, cleaner.definition.schedule) == ("september_cleaner", "0 4 * * *")
        assert "september_houses" in await home.tables()

        cleaned = await home.run("september_cleaner", datetime(2026, 10, 1, 4, tzinfo=UTC))
        assert cleaned.state == "succeeded", cleaned.reason
        assert await actions.list_tasks() == []
        assert "september_houses" not in await home.tables()
    finally:
        await actions.close()


@pytest.mark.parametrize(
    ("changes", "channel"), [((1.5, -3.0), "email"), ((1.5, -24.0), "phone"), ((21.0, 30.0), "phone")]
)
def test_stock_quotes_are_mailed_unless_a_price_has_changed_by_much(
    tmp_path: Path, changes: tuple[float, float], channel: str
) -> None:
    quotes = dict(zip(("ACME", "GLOB"), changes, strict=True))
    answers = {
        f"http://quotes.example/quotes/{symbol}.json": _json({"price": 100.5, "change": change})
        for symbol, change in quotes.items()
    }
    settings: dict[str, Any] = settings_for(f"sqlite:{tmp_path / 'quotes.db'}", tmp_path)
    settings |= {
        "phone": {"default": {"url": "https://gateway.example/send"}},
        "outbox": {"deliver_seconds": 0},
    }
    result = run_plan(
        load(PLANS / "examples" / "stock_quotes.plan"),
        network=ScriptedSite(answers),
        configuration=settings,
        parameters={"to": "me@example.org", "mobile": "+4915112345678"},
        portfolio=[{"symbol": symbol, "site": "http://quotes.example"} for symbol in quotes],
    )
    assert result.account.as_json()["messages"]["posted"] == 1
    (found,) = _outbox(tmp_path / "quotes.db")
    assert found[0] == channel
    assert all(symbol in found[1] for symbol in quotes)


def _json(content: dict[str, float]) -> Any:
    from aioflow.testing import Answer

    return Answer(json.dumps(content), headers={"Content-Type": "application/json"})


def _outbox(path: Path) -> list[tuple[str, str]]:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(path)) as database:
        return list(database.execute("SELECT channel, content FROM aioflow_outbox"))
