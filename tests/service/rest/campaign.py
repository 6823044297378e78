"""Requests made up from the OpenAPI description, right and wrong ones.

`python -m tests.service.rest.campaign` sends many. The service runs in a thread of its own, since
schemathesis waits for each answer.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from aioflow.service.rest.openapi import openapi
from aioflow.service.rest.routes import all_routes
from tests.service.rest.served import served, task

CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
LONGEST_LINE = 8_000
# They go on until the listener leaves.
ENDLESS = ("watch_events",)


@contextmanager
def server(folder: Path) -> Iterator[tuple[str, str]]:
    """A service in a thread; its address, and the token of an owner."""
    found: list[tuple[str, str]] = []
    begun = threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with served(folder) as service:
            await service.post("/api/tasks", {"task": task("name")})
            await service.post("/api/tasks", {"task": task("watch", "watch.plan")})
            found.append((service.address, service.tokens["owner"]))
            begun.set()
            await stop.wait()

    def work() -> None:
        try:
            loop.run_until_complete(serve())
        finally:
            begun.set()
            loop.close()

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


def tags() -> list[str]:
    return list(dict.fromkeys(route.tag for route in all_routes()))


def run_campaign(
    address: str, token: str, examples: int, tag: str, told: Callable[[str], None] = lambda text: None
) -> int:
    """Send requests to all operations of a tag; return their number. The first failure is raised."""
    schema = schemathesis.openapi.from_dict(openapi())
    headers = {"Authorization": f"Bearer {token}"}
    sent = 0
    for result in schema.get_all_operations():
        operation: Any = result.ok()  # type: ignore[union-attr]  # the description has no mistakes
        raw = operation.definition.raw
        if raw["operationId"] in ENDLESS or tag not in raw["tags"]:
            continue
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

            @settings(
                max_examples=examples,
                deadline=None,
                database=None,
                derandomize=True,
                phases=(Phase.generate,),
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def send(case: Any) -> None:
                nonlocal sent
                sent += 1
                response = case.call(base_url=address, headers=headers, timeout=30)
                # schemathesis does not take 413 for a refusal of wrong data.
                is_too_large = response.status_code == 413
                checks = [each for each in CHECKS if not (is_too_large and each is negative_data_rejection)]
                if len(response.request.url) < LONGEST_LINE:
                    case.validate_response(response, checks=checks)
                else:  # perhaps refused before it is a request
                    assert 400 <= response.status_code < 500

            with suppress(Unsatisfiable):  # nothing can be wrong about a request without parts
                send()
        told(f"{operation.label}: {sent} requests so far")
    return sent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=200, help="of each operation")
    examples = parser.parse_args().examples
    with tempfile.TemporaryDirectory() as folder, server(Path(folder)) as (address, token):
        total = sum(run_campaign(address, token, examples, tag, print) for tag in tags())
    print(f"{total} requests, none of them answered wrongly")


if __name__ == "__main__":
    main()
