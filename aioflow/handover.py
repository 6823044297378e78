"""How the steps of a called plan come to read what its caller writes, without anything in between."""

from __future__ import annotations

from collections.abc import Sequence

from aioflow.once import EntryStream
from aioflow.outlet import Outlet, Target
from aioflow.stream import Stream


def hand_over(stream: Stream, targets: Sequence[Target]) -> None:
    """Let others read what one stream was to read, from its first row on."""
    stream.listener = None
    if not targets:
        stream.discard()
        return
    # A stream that must see every row stays between: when all readers have left, so does it.
    relay = Outlet(targets)
    if isinstance(stream, EntryStream):
        relay.on_unread = lambda: stream.let_go() if relay.unread else None
    if not any(target.reads for target in targets):  # they have left before it began
        stream.close()
        relay.end()
        return
    if stream.schema is not None:
        relay.open(stream.schema)
    if isinstance(stream, EntryStream):
        stream.forward_to(relay)
        return
    for source in tuple(stream.sources):
        source.replace(stream, targets)
    while (batch := stream.take()) is not None:
        relay.push(batch)
    relay.mark(stream.marks)
    relay.end(dead=stream.dead)
    stream.sources.clear()
    stream.release()
