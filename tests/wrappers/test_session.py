"""What the wrappers of a run share: secrets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aioflow import Engine, RunError, loads
from aioflow.web import Client, HttpSettings, Request, Response, WebSettings
from tests.web.scripted import Site, answer

SECRETS = """
WRAPPER order (id)
{
  POST: "http://homes.example/order"
  AUTH: bearer "secret:SESSION_TOKEN"
  HEADERS: X-Key = "secret:SESSION_KEY"
  FORM: id, password = "secret:SESSION_PASSWORD"
  SAFE
  answer: "p"
}

PLAN p { INPUT: x OUTPUT: out BODY { wrapper ("order", x : out) } }
"""


def _order(request: Request) -> Response:
    assert request.headers["Authorization"] == "Bearer to/ken"
    assert b"pass%20word+%2B" in (request.body or b"") or b"pass+word+%2B" in (request.body or b"")
    return answer(200, {"Content-Type": "text/html"}, b"<p>done</p>")


async def _record_order(path: Path) -> None:
    settings = WebSettings(HttpSettings(robots=False, record=path))
    async with (
        Client.open(settings, network=Site(_order)) as client,
        Engine(services={Client: client}) as engine,
    ):
        assert len(await engine.run(loads(SECRETS), x=[{"id": 7}])) == 1


def test_what_was_recorded_with_secrets_is_replayed_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "order.recording"
    for name, value in (("TOKEN", "to/ken"), ("KEY", "the key"), ("PASSWORD", "pass word +")):
        monkeypatch.setenv(f"AIOFLOW_SECRET_SESSION_{name}", value)
    asyncio.run(_record_order(path))
    recorded = path.read_text()
    assert "ken" not in json.loads(recorded)["request"]["headers"]["Authorization"]
    for name in ("TOKEN", "KEY", "PASSWORD"):
        monkeypatch.delenv(f"AIOFLOW_SECRET_SESSION_{name}")

    async def replay(configuration: Mapping[str, Any]) -> list[str]:
        async with Engine(configuration=configuration) as engine:
            return [row["answer"] for row in await engine.run(loads(SECRETS), x=[{"id": 7}])]

    assert asyncio.run(replay({"http": {"replay": str(path)}})) == ["done"]
    with pytest.raises(RunError, match="there is no secret 'SESSION_"):
        asyncio.run(replay({}))
