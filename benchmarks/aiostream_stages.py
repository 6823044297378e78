"""The five stages with aiostream: prints how many rows come out, and the processor time they take.

Runs without aioflow.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from importlib import import_module
from time import process_time
from typing import Any

from aioflow.benchmarks.fivestages import Work, brief, computed, is_new, is_wanted, numbers


async def count(work: Work) -> int:
    """How many rows come out of the five stages."""
    # Not by name: this package is installed nowhere but in the environment of the experiment.
    aiostream: Any = import_module("aiostream")
    stream, pipe = aiostream.stream, aiostream.pipe
    fresh = (
        stream.iterate(work.rows)
        | pipe.filter(is_wanted(work))
        | pipe.map(brief)
        | pipe.map(computed(work))
        | pipe.filter(is_new())
    )
    # Not merge, which waits for both inputs at once and is about three times as slow.
    union = stream.chain(fresh, stream.iterate(work.known)) | pipe.filter(is_new())
    found = 0
    async with union.stream() as streamer:
        async for _ in streamer:
            found += 1
    return found


def main(size: int) -> None:
    asyncio.run(count(numbers(10)))
    work = numbers(size)
    gc.collect()
    started = process_time()
    found = asyncio.run(count(work))
    print(json.dumps({"count": found, "seconds": process_time() - started}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
