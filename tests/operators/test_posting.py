"""What email, notify and phone share: runs look after the messages that earlier ones left."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from aioflow import Engine, Result, loads

PLAN = 'PLAN p { INPUT: x (n number) BODY { email (x, to="me@example.org", subject="New") } }'


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def told(rows: list[Any], url: str, deliver_seconds: float = 60) -> Result:
    configuration = {
        "email": {"default": {"url": url, "from": "watch@example.org"}},
        # Due again at once, however often.
        "outbox": {
            "deliver_seconds": deliver_seconds,
            "most_attempts": 100_000,
            "retry_base_seconds": 0.001,
            "retry_most_seconds": 0.001,
        },
    }

    async def main() -> Result:
        async with Engine(configuration=configuration) as engine:
            return await engine.run(loads(PLAN), x=rows)

    return asyncio.run(main())


def test_what_could_not_be_delivered_goes_out_with_the_next_run_though_it_finds_nothing() -> None:
    (warning,) = told([{"n": 1}], "smtp://127.0.0.1:1", deliver_seconds=1).warnings
    assert "1 message" in warning
    assert told([], "maildir:mail").warnings == ()
    assert len(list(Path("mail/new").iterdir())) == 1


def test_a_run_that_tells_nothing_makes_no_database() -> None:
    told([], "maildir:mail")
    assert not Path("aioflow.db").exists()
