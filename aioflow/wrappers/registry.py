"""The registry of readers: those registered here, and those of installed packages, loaded on first use."""

from __future__ import annotations

from typing import Any

from aioflow.config.entry_points import installed
from aioflow.errors import SettingError, suggestion
from aioflow.wrappers.definition import Extraction
from aioflow.wrappers.identity_cache import IdentityCache
from aioflow.wrappers.readers.reader import ENTRY_POINTS, Extractor, Reader

_readers: dict[str, Reader] = {}


def reader(name: str) -> Reader:
    """Return the reader of a name; a SettingError names those that there are when there is none."""
    key = name.lower()
    found = _readers.get(key) or _installed(key)
    if found is None:
        known = reader_names()
        hint = suggestion(name, known) or f" (there are: {', '.join(known) or 'none'})"
        raise SettingError(f"unknown reader {name!r}{hint}")
    _readers[key] = found
    return found


def compiled(extraction: Extraction) -> Extractor:
    """Return the extraction, compiled by its reader; once, however often it is asked for."""
    return _compiled(extraction)


def register_reader(added: Reader | type[Reader], name: str | None = None) -> None:
    """Make a reader known under its name, or another; the latest of one name counts."""
    _readers[(name or added.name).lower()] = _instance(added)


def forget_reader(name: str) -> None:
    """Take back a registration."""
    _readers.pop(name.lower(), None)


def reader_names() -> list[str]:
    """Return all names, those of installed packages included."""
    return sorted({*_readers, *(point.name.lower() for point in installed(ENTRY_POINTS))})


_compiled = IdentityCache[Extraction, Extractor](
    lambda extraction: reader(extraction.reader).compile(extraction)
)


def _installed(key: str) -> Reader | None:
    for point in installed(ENTRY_POINTS):
        if point.name.lower() == key:
            try:
                return _instance(point.load())
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                raise SettingError(
                    f"the reader {point.name!r} ({point.value}) cannot be loaded: {reason}"
                ) from error
    return None


def _instance(loaded: Any) -> Reader:
    found: Reader = loaded() if isinstance(loaded, type) else loaded
    if not callable(getattr(found, "compile", None)):
        raise TypeError(f"{loaded!r} is no reader: it has no method 'compile'")
    return found
