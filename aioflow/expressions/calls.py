"""Closures for calls of functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioflow.errors import SettingError
from aioflow.expressions.code import Code
from aioflow.expressions.syntax import Call

if TYPE_CHECKING:
    from aioflow.expressions.compiler import Compiler


def call(compiler: Compiler, node: Call) -> Code:
    raise SettingError(f"unknown function {node.function!r}", offset=node.offset)
