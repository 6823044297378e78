"""Results in files: JSON of one format, written whole or not at all, and read with care."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

from aioflow.bench.results import FORMAT, Claim, Curve, Finding, Goal, Plot, Results, Samples
from aioflow.errors import InputError

T = TypeVar("T")
_KIND = "aioflow benchmarks"


def save(results: Results, path: Path) -> None:
    """Write a file; who reads it meanwhile sees the one before or the new one, never a half."""
    text = json.dumps({"kind": _KIND, **asdict(results)}, indent=1, allow_nan=False, ensure_ascii=False)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(text + "\n", encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise InputError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from error


def load(path: Path) -> Results:
    """Read a file that `save` wrote."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path} holds no results of aioflow bench") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from error
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path} holds no results of aioflow bench: line {error.lineno} is no JSON"
        ) from None
    _expect_format(found, path)
    try:
        return _results(found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} does not hold together: {type(error).__name__}: {error}") from error


def _expect_format(found: Any, path: Path) -> None:
    if not isinstance(found, dict) or found.get("kind") != _KIND:
        raise InputError(f"{path} holds no results of aioflow bench")
    version = found.get("format")
    if not isinstance(version, int) or version > FORMAT:
        raise InputError(
            f"{path} has format {version}, which a newer aioflow wrote (this one reads up to {FORMAT})"
        )


def _results(found: Mapping[str, Any]) -> Results:
    findings = tuple(_finding(each) for each in found["findings"])
    return _made(Results, found, findings=findings)


def _finding(found: Mapping[str, Any]) -> Finding:
    return _made(
        Finding,
        found,
        samples=tuple(_made(Samples, each, values=_numbers(each["values"])) for each in found["samples"]),
        plots=tuple(_plot(each) for each in found["plots"]),
        claims=tuple(_claim(each) for each in found["claims"]),
        notes=tuple(map(str, found["notes"])),
    )


def _plot(found: Mapping[str, Any]) -> Plot:
    curves = tuple(
        _made(Curve, each, points=tuple((float(x), float(y)) for x, y in each["points"]))
        for each in found["curves"]
    )
    return _made(Plot, found, curves=curves)


def _claim(found: Mapping[str, Any]) -> Claim:
    goal = found.get("goal")
    return _made(Claim, found, goal=None if goal is None else _made(Goal, goal))


def _numbers(found: Any) -> tuple[float, ...]:
    return tuple(float(each) for each in found)


def _made(kind: type[T], found: Mapping[str, Any], **instead: Any) -> T:
    """A value of a data class; what an older format did not have takes its default."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]  # all are data classes
    return kind(**{name: value for name, value in found.items() if name in names} | instead)
