"""The five stages with aiostream: prints the processor time they take. Runs without aioflow."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import Sequence
from importlib import import_module
from time import process_time
from typing import Any

from benchmarks.fivestages import Row, brief, is_new, is_wanted, make_known, make_rows, priced


async def count(rows: Sequence[Row], known: Sequence[Row]) -> int:
    """How many rows come out of the five stages."""
    # Not by name: this package is installed nowhere but in the environment of the experiment.
    aiostream: Any = import_module("aiostream")
    stream, pipe = aiostream.stream, aiostream.pipe
    fresh = (
        stream.iterate(rows)
        | pipe.filter(is_wanted)
        | pipe.map(brief)
        | pipe.map(priced)
        | pipe.filter(is_new())
    )
    # Not merge, which is about twice as slow: it waits for both inputs at once.
    union = stream.chain(fresh, stream.iterate(known)) | pipe.filter(is_new())
    found = 0
    async with union.stream() as streamer:
        async for _ in streamer:
            found += 1
    return found


def main(size: int) -> None:
    rows, known = make_rows(size), make_known()
    asyncio.run(count(rows[:10], known[:10]))
    gc.collect()
    started = process_time()
    asyncio.run(count(rows, known))
    print(json.dumps(process_time() - started))


if __name__ == "__main__":
    main(int(sys.argv[1]))
