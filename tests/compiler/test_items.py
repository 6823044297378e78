"""Settings that name items, and items that are checked beside the others of their program."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from aioflow import Engine, PlanError, Row, Schema, SettingError, Stream, load, operator
from aioflow.authoring.function import parse_attributes
from aioflow.authoring.operator import Settings
from aioflow.errors import Diagnostic, suggestion
from aioflow.language import item_kind
from aioflow.language.kinds import item_kinds
from aioflow.plan import Program
from aioflow.source import Span


@dataclass(frozen=True)
class Shape:
    """Attributes that an item declares; `like` names another that must exist."""

    attributes: Schema
    like: str
    span: Span

    def problems(self, program: Program) -> Iterable[Diagnostic]:
        if self.like and program.item("shape", self.like) is None:
            known = [item.name for item in program.items]
            yield Diagnostic(f"unknown shape {self.like!r}{suggestion(self.like, known)}", self.span)


class ShapeName:
    """A setting that names a shape."""

    kind_name: ClassVar[str] = "the name of a shape"

    @classmethod
    def bind_item(cls, value: Any, inputs: Sequence[Schema | None], program: Program | None) -> Shape:
        item = program.item("shape", value) if program is not None else None
        if item is None:
            raise SettingError(f"unknown shape {value!r}")
        assert isinstance(item.content, Shape)
        return item.content


def _shaped(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    shape: Shape = settings["shape"]
    return shape.attributes


@operator(schema=_shaped, name="in_shape")
async def in_shape(rows: Stream, *, shape: ShapeName) -> AsyncGenerator[Row, None]:
    """Give each tuple the attributes of a shape."""
    async for row in rows:
        yield row


def _parse(name: str, header: str, body: str, header_span: Span, body_span: Span) -> Shape:
    return Shape(parse_attributes(body.strip()), header.strip(), header_span)


@pytest.fixture(autouse=True)
def _kind() -> Iterator[None]:
    item_kind("SHAPE", _parse)
    yield
    item_kinds.remove("SHAPE")


def _program(tmp_path: Any, text: str) -> Program:
    (tmp_path / "p.plan").write_text(text)
    return load(tmp_path / "p.plan")


def test_an_item_decides_which_attributes_come_out(tmp_path: Any) -> None:
    program = _program(
        tmp_path,
        "SHAPE point { x number, y number }\n"
        'PLAN p { INPUT: a OUTPUT: out BODY { in_shape (a, "point" : b) project (b, "z" : out) } }',
    )
    messages = [found.message for found in Engine().check(program)]
    assert len(messages) == 1
    assert messages[0].endswith("(there are: x, y)")


def test_an_unknown_item_is_found_when_the_plan_is_checked(tmp_path: Any) -> None:
    program = _program(tmp_path, 'PLAN p { INPUT: a OUTPUT: out BODY { in_shape (a, "pnt" : out) } }')
    (found,) = Engine().check(program)
    assert found.message == "unknown shape 'pnt'"
    assert found.span is not None
    assert found.span.place.endswith("p.plan:1:51")


def test_items_tell_what_is_wrong_with_them_beside_others(tmp_path: Any) -> None:
    program = _program(
        tmp_path,
        "SHAPE point { x }\nSHAPE other pont { y }\n"
        'PLAN p { INPUT: a OUTPUT: out BODY { in_shape (a, "other" : out) } }',
    )
    engine = Engine()
    with pytest.raises(PlanError, match="unknown shape 'pont'; did you mean 'point'"):
        engine.stream(program, a=[])


async def _rows(program: Program) -> list[Any]:
    async with Engine() as engine:
        return list(await engine.run(program, a=[{"q": 1, "r": 2}]))


def test_a_statement_runs_with_its_item(tmp_path: Any) -> None:
    import asyncio

    program = _program(
        tmp_path,
        'SHAPE point { x, y }\nPLAN p { INPUT: a OUTPUT: out BODY { in_shape (a, "point" : out) } }',
    )
    assert [dict(row) for row in asyncio.run(_rows(program))] == [{"x": 1, "y": 2}]
