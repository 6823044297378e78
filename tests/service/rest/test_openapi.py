"""The OpenAPI description and docs/rest.md: made from the declarations, and kept by every answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from aioflow.service.rest.openapi import openapi
from aioflow.service.rest.reference import reference
from aioflow.service.rest.routes import all_routes
from tests.service.rest.campaign import run_campaign, server, tags
from tests.service.rest.served import served

PAGE = Path(__file__).parents[3] / "docs" / "rest.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), "run `make docs`"


def test_the_description_is_valid_and_names_every_route_once() -> None:
    description = openapi()
    assert description["openapi"] == "3.1.0"
    operations = [
        (method.upper(), path, operation["operationId"])
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]
    assert sorted(operations) == sorted((route.method, route.path, route.name) for route in all_routes())
    names = [name for _, _, name in operations]
    assert len(set(names)) == len(names)
    for schema in description["components"]["schemas"].values():
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})


def test_every_route_is_described_in_words() -> None:
    for route in all_routes():
        assert route.summary.endswith("."), route.name
        assert "\n" not in route.summary, route.name


def test_bodies_refuse_unknown_keys() -> None:
    for route in all_routes():
        if route.body is not None:
            assert route.body.__struct_config__.forbid_unknown_fields, route.name


async def test_the_service_serves_its_own_description(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        found: Any = await service.get("/openapi.json", "viewer")
        assert found == msgspec.to_builtins(openapi())


@pytest.mark.parametrize("tag", tags())
def test_requests_that_are_made_up_are_answered_as_described(tag: str, tmp_path: Path) -> None:
    with server(tmp_path) as (address, token):
        run_campaign(address, token, 4, tag)
