"""The types as users meet them: code that is right passes `mypy --strict`."""

from __future__ import annotations

from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parents[1]

USERS_CODE = '''
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from aioflow import Context, Engine, Record, Row, Stream, function, loads, map_concurrently, operator
from aioflow.authoring.context import Release
from aioflow.authoring.operator import same_as_input
from aioflow.testing import run_operator, rows
from aioflow.wrappers import Web, wrapper


@operator
async def bare(rel: Stream) -> AsyncIterator[Row]:
    """Pass everything on."""
    async for row in rel:
        yield row


@operator(schema=same_as_input)
async def with_settings(rel: Stream, *, times: int = 2) -> AsyncIterator[Row]:
    """Repeat."""
    async for row in rel:
        for _ in range(times):
            yield row


@operator(schema=same_as_input)
async def as_generator(rel: Stream) -> AsyncGenerator[Row, None]:
    """The longer annotation."""
    async for row in rel:
        yield row


@operator(schema=same_as_input, firing="tuple")
async def concurrent(rel: Stream, *, context: Context) -> AsyncIterator[Row]:
    """Call something for each tuple."""

    async def results(row: Row) -> AsyncIterator[int | Release]:
        yield len(row)

    async for row, result in map_concurrently(results, rel, context):
        if result:
            yield row


@function
async def bare_function(row: Mapping[str, Any]) -> AsyncIterator[Mapping[str, Any]]:
    yield row


@function(returns="n number", pure=True)
async def declared(row: Mapping[str, Any]) -> AsyncIterator[int]:
    yield 1


@function(returns="n number", blocking=True)
def in_a_thread(row: Mapping[str, Any]) -> Iterator[int]:
    yield 1


@wrapper(returns="n number")
async def pages(web: Web, *, url: str) -> AsyncIterator[Mapping[str, Any]]:
    yield {"n": (await web.get(url)).status}


async def main() -> list[Record]:
    assert await run_operator(bare, rows((1,))) == [(1,)]
    async with Engine() as engine:
        stream = engine.stream(loads("PLAN p { INPUT: x OUTPUT: x BODY { } }"), x=[{"n": 1}])
        async with aclosing(stream.named()) as named:
            async for name, record in named:
                return [record]
        async with aclosing(stream.batches()) as batches:
            async for name, records in batches:
                return records
    return []
'''


def test_operators_and_functions_may_be_annotated_as_async_iterators(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)  # the configuration's paths start here
    file = tmp_path / "users_code.py"
    file.write_text(USERS_CODE, encoding="utf-8")
    found, complaints, status = api.run(
        [
            "--config-file",
            str(ROOT / "pyproject.toml"),
            "--strict",
            "--follow-imports=silent",
            "--cache-dir",
            str(ROOT / ".mypy_cache"),
            str(file),
        ]
    )
    assert (found.splitlines()[:-1], complaints, status) == ([], "", 0)
