"""The exchange of a job: records of finished work by key, and claims of keys.

A key stands for one call of a statement: it is a hash of the request and its values. The first record of a
key wins, so repeating a call changes nothing. The exchange is the only part of a job that knows where these
things are stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec

from aioflow.relation import Batch, Document, Row
from aioflow.values.json import decode_row, encode_rows


class StageFailure(msgspec.Struct, frozen=True):
    """A failure that the plan took, by ERRORS."""

    kind: str
    message: str
    attempts: int = 1
    means_absence: bool = False


class StageRecord(msgspec.Struct):
    """The outcome of one call: its rows, and what it told of them.

    `counts` are counters of the statement, `partial` the reasons why rows may be missing, `pages` the
    addresses of the pages that were read and whether they had items.
    """

    rows: Batch = msgspec.field(default_factory=list)
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    partial: list[str] = msgspec.field(default_factory=list)
    pages: list[tuple[str, bool]] = msgspec.field(default_factory=list)
    failure: StageFailure | None = None

    @property
    def host(self) -> str:
        """The host of the first page that was read; "" if there is none."""
        return urlsplit(self.pages[0][0]).netloc if self.pages else ""

    @property
    def characters(self) -> int:
        """The length of the texts and documents in the rows."""
        values = (value.text if isinstance(value, Document) else value for row in self.rows for value in row)
        return sum(len(value) for value in values if isinstance(value, str))

    def encoded(self) -> str:
        """Return the record as JSON."""
        told: dict[str, Any] = {
            name: value
            for name, value in (("counts", self.counts), ("partial", self.partial), ("pages", self.pages))
            if value
        }
        if self.failure is not None:
            told["failure"] = list(msgspec.structs.astuple(self.failure))
        return f'{{"rows":[{",".join(encode_rows(self.rows))}],"told":{json.dumps(told)}}}'

    @classmethod
    def decoded(cls, text: str) -> StageRecord:
        """Return the record of a text of `encoded`."""
        content = _DECODER.decode(text)
        told = content.told
        failure = told.get("failure")
        return cls(
            [_row(row) for row in content.rows],
            told.get("counts", {}),
            told.get("partial", []),
            [(url, has_items) for url, has_items in told.get("pages", ())],
            None if failure is None else StageFailure(*failure),
        )


class _Encoded(msgspec.Struct):
    rows: list[msgspec.Raw]
    told: dict[str, Any]


_DECODER = msgspec.json.Decoder(_Encoded)


def _row(text: msgspec.Raw) -> Row:
    return decode_row(bytes(text))


class ExchangeStatistics(msgspec.Struct, frozen=True):
    """What a job has done so far."""

    done: int = 0
    failed: int = 0
    hosts: Mapping[str, int] = msgspec.field(default_factory=dict)


class Exchange(Protocol):
    """The records and claims of a job."""

    async def find(self, key: bytes) -> StageRecord | None:
        """Return the record of a key, if there is one."""

    async def put(self, key: bytes, record: StageRecord) -> None:
        """Store a record, unless the key has one. It is durable after the next `flush`, or soon."""

    async def claim(self, group: str, keys: Sequence[bytes], most: int | None = None) -> list[bool]:
        """Claim keys for a group, at most so many in all; return of each whether the group has it.

        A key that was claimed before, in this attempt at the job or an earlier one, is claimed again.
        """

    async def flush(self) -> None:
        """Make everything durable that was put and claimed."""
