"""Results that are held back until their operator has ended."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import ExitStack, aclosing
from typing import TypeVar, cast

from aioflow import Context, Schema, To
from aioflow.relation import Batch
from aioflow.spill import RowBuffer

Item = TypeVar("Item", To, Batch)


async def when_ended(items: AsyncGenerator[Item, None], context: Context) -> AsyncGenerator[Item, None]:
    """All that an operator yields, once it has ended well: for one whose rows mean nothing before."""
    opened: list[Item] = []
    held: dict[str | None, RowBuffer] = {}
    with ExitStack() as stack:
        async with aclosing(items):
            async for item in items:
                output, content = (item.output, item.content) if isinstance(item, To) else (None, item)
                if isinstance(content, Schema):
                    opened.append(item)
                    continue
                if output not in held:
                    held[output] = stack.enter_context(RowBuffer(context.memory))
                held[output].append(content)
        for item in opened:
            yield item
        for name, buffer in held.items():
            for batch in buffer.batches():
                yield cast(Item, batch if name is None else To(name, batch))
