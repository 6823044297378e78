"""What makes tuples count as the same: the setting kind of ONCE."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from operator import itemgetter
from typing import Any, ClassVar

from aioflow.dataclass import dataclass
from aioflow.expressions.binding import first_schema, shallow, text_of, unbound
from aioflow.expressions.code import Code
from aioflow.expressions.compiler import Compiler
from aioflow.expressions.lists import parse_expressions
from aioflow.expressions.scope import InputScope
from aioflow.relation import Row, Schema, identities, value_identities


@dataclass(frozen=True)
class Keys:
    """Attributes or expressions, `"url, lower(lang)"`: `names` are the attributes that they read.

    `of` gives a stand-in for each row of a batch: equal exactly when all values of the two rows are.
    """

    kind_name: ClassVar[str] = "a list of attributes or expressions"

    text: str
    names: tuple[str, ...]
    of: Callable[[Sequence[Row]], Sequence[Hashable]] = field(repr=False)

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Keys:
        text = text_of(value, cls.kind_name)
        return shallow(lambda: cls._bound(text, first_schema(inputs)))

    @classmethod
    def _bound(cls, text: str, schema: Schema | None) -> Keys:
        compiler = Compiler(InputScope(schema))
        codes = [compiler.value(node) for node in parse_expressions(text)]
        return cls(text, tuple(compiler.names), unbound if schema is None else _stand_ins(codes))


def _stand_ins(codes: Sequence[Code]) -> Callable[[Sequence[Row]], Sequence[Hashable]]:
    closures = [code.evaluate if code.position is None else itemgetter(code.position) for code in codes]
    if len(closures) == 1:
        only = closures[0]
        return lambda rows: value_identities(list(map(only, rows)))
    return lambda rows: identities(list(zip(*[map(closure, rows) for closure in closures], strict=True)))
