"""Pages as files in a folder: one for each address, named by its hash, and an index of all of them.

A file appears whole. The index takes over the pages of earlier crawls, and is replaced when all are there.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from datetime import date
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

from aioflow.errors import InputError

INDEX = "index.jsonl"
_ENDINGS = {"html": ".html", "xml": ".xml", "json": ".json"}


class PageFiles:
    """Writes pages into a folder; `commit` puts the index into place, and `abandon` removes what is left."""

    def __init__(self, folder: Path, shown: str) -> None:
        self._folder = folder
        self._shown = shown
        self._index: BinaryIO | None = None
        self._temporary = folder / f".{INDEX}.{secrets.token_hex(4)}.part"
        self._written: set[str] = set()

    def start(self) -> None:
        """Make the folder and the new index."""
        try:
            self._folder.mkdir(exist_ok=True)
            self._index = self._temporary.open("xb")
        except OSError as error:
            raise self._cannot_write(error) from error

    def write(self, pages: Sequence[tuple[Mapping[str, Any], str, str]]) -> None:
        """Write pages, each with its entry in the index, its text and the kind of document."""
        assert self._index is not None
        try:
            for entry, text, kind in pages:
                digest = _digest(entry["url"])
                if digest in self._written:
                    continue
                self._written.add(digest)
                name = file_name(entry["url"], kind)
                self._put(name, text)
                line = json.dumps({**entry, "file": name}, ensure_ascii=False, default=_plain)
                self._index.write(line.encode("utf-8", "replace") + b"\n")
        except OSError as error:
            raise self._cannot_write(error) from error

    def _put(self, name: str, text: str) -> None:
        target = self._folder / name
        target.parent.mkdir(exist_ok=True)
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        try:
            temporary.write_bytes(text.encode("utf-8", "replace"))
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def end(self) -> None:
        """Take over the pages of earlier crawls that were not written again."""
        assert self._index is not None
        try:
            earlier = self._folder / INDEX
            if earlier.exists():
                with earlier.open("rb") as lines:
                    for line in lines:
                        if _digest(_url(line)) not in self._written:
                            self._index.write(line if line.endswith(b"\n") else line + b"\n")
            self._index.flush()
            os.fsync(self._index.fileno())
        except OSError as error:
            raise self._cannot_write(error) from error

    def commit(self) -> None:
        """Put the index in its place."""
        if self._index is not None:
            self._index.close()
            os.replace(self._temporary, self._folder / INDEX)
            self._index = None

    def abandon(self) -> None:
        """Remove the index if it was not committed; the files of pages do no harm."""
        if self._index is not None:
            self._index.close()
            self._index = None
            self._temporary.unlink(missing_ok=True)

    def _cannot_write(self, error: OSError) -> InputError:
        return InputError(f"cannot write to the folder {self._shown!r}: {error.strerror}")


def file_name(url: str, kind: str) -> str:
    """Return the name of a page's file: 256 folders share them."""
    digest = _digest(url)
    return f"{digest[:2]}/{digest}{_ENDINGS.get(kind, '.txt')}"


def _digest(url: str) -> str:
    return blake2b(url.encode("utf-8", "replace"), digest_size=16).hexdigest()


def _url(line: bytes) -> str:
    try:
        return str(json.loads(line)["url"])
    except (ValueError, KeyError, TypeError):
        return ""  # a line of somebody else: it stays


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else str(value)
