"""Results that are held back until their operator has ended."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import ExitStack, aclosing

from aioflow import Context, Schema, To
from aioflow.relation import Batch
from aioflow.runtime.spill import RowBuffer, walk


async def when_ended(
    items: AsyncGenerator[To | Batch, None], context: Context, only: str = ""
) -> AsyncGenerator[To, None]:
    """Give all that an operator yields, once it has ended well; plain rows are for its only output."""
    opened: list[To] = []
    held: dict[str, RowBuffer] = {}
    with ExitStack() as stack:
        async with aclosing(items):
            async for item in items:
                result = item if isinstance(item, To) else To(only, item)
                if isinstance(result.content, Schema):
                    opened.append(result)
                elif context.reads_output(result.output):
                    if result.output not in held:
                        held[result.output] = stack.enter_context(RowBuffer(context.memory))
                    held[result.output].append(result.content)
        for result in opened:
            yield result
        for output, buffer in held.items():
            async for batch in walk(buffer, buffer.batches()):
                yield To(output, batch)
